// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Reads a response by a closure.
///
/// ```swift
/// let size = ClosureSerializer(accepts: ["image/*"]) { response in try await response.collect().count }
/// ```
public struct ClosureSerializer<Output: Sendable>: ResponseSerializer {
    /// What it can read: becomes `Accept`, and the rule for the response's `Content-Type`.
    public let accepts: [MediaType]
    private let read: @Sendable (IncomingResponse) async throws -> Output

    /// Reads by a closure.
    ///
    /// - Parameters:
    ///   - accepts: What it can read; anything unless given.
    ///   - read: Called in the task of whoever awaits the value, with a response that was found acceptable. A
    ///     `NetworkError` it throws passes as it is, any other becomes the cause of one of kind `decodingFailed`.
    public init(
        accepts: [MediaType] = [.any], _ read: @escaping @Sendable (IncomingResponse) async throws -> Output
    ) {
        self.accepts = accepts
        self.read = read
    }

    /// Calls the closure.
    /// - Throws: What the closure throws.
    public func output(from response: IncomingResponse) async throws -> Output { try await read(response) }
}
