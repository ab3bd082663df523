// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Turns a response into one kind of result.
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
    /// What it makes of a response.
    associatedtype Output: Sendable

    /// What it can read: becomes `Accept`, and the rule for the response's `Content-Type`; anything unless said
    /// otherwise.
    var accepts: [MediaType] { get }

    /// Turns a response, which was found acceptable, into the result.
    ///
    /// Called in the task of whoever awaits the value.
    /// - Throws: Any error. A `NetworkError` passes as it is, any other becomes the cause of one of kind
    ///   `decodingFailed`.
    func output(from response: IncomingResponse) async throws -> Output

    /// The same serializer with a format for what it leaves to the client; itself unless said otherwise.
    ///
    /// - Parameter format: The client's.
    func bound(to format: any ResponseFormat) -> Self
}

extension ResponseSerializer {
    /// Anything.
    public var accepts: [MediaType] { [.any] }

    /// Itself: it has no need of the client's format.
    public func bound(to format: any ResponseFormat) -> Self { self }
}
