// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Converts a response to one kind of result.
///
/// ```swift
/// struct LineCount: ResponseSerializer {
///     func output(from response: IncomingResponse) async throws -> Int {
///         try await response.collect().count { $0 == UInt8(ascii: "\n") }
///     }
/// }
///
/// let lines = try await api.get("log.txt", using: LineCount())
/// ```
public protocol ResponseSerializer<Output>: Sendable {
    /// The type of the result.
    associatedtype Output: Sendable

    /// The media types that the serializer can read, for `Accept` and for checking the response's `Content-Type`; any
    /// type by default.
    var accepts: [MediaType] { get }

    /// Whether the serializer reads the body while it arrives; false by default.
    ///
    /// If false, the whole body is in memory when ``output(from:)`` is called, and a connection that is lost before its
    /// end may be retried. If true, `value(for:using:)` and the verbs of a client call ``output(from:)`` as soon as the
    /// head is acceptable. Then ``output(from:)`` limits the size of the body itself, a loss after the head is not
    /// retried, and a return before the end of the body ends the transfer. A ``Transfer`` collects the body in either
    /// case.
    var readsArrivingBody: Bool { get }

    /// Converts an acceptable response to the result.
    ///
    /// Called in the task that awaits the value.
    /// - Throws: Any error. A `NetworkError` passes unchanged; any other error becomes the cause of a `NetworkError` of
    ///   kind `decodingFailed`.
    func output(from response: IncomingResponse) async throws -> Output

    /// Returns the serializer with the client's format for the parts that it leaves to the client; by default, the
    /// serializer itself.
    ///
    /// - Parameter format: The client's format.
    func bound(to format: any ResponseFormat) -> Self
}

extension ResponseSerializer {
    /// Any media type.
    public var accepts: [MediaType] { [.any] }

    /// False: the body is collected first.
    public var readsArrivingBody: Bool { false }

    /// Returns the serializer unchanged, because it does not use the client's format.
    public func bound(to format: any ResponseFormat) -> Self { self }
}
