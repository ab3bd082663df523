// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension Serializers {
    /// Reads a response with a closure.
    ///
    /// ```swift
    /// let size = Serializers.Closure(accepts: ["image/*"]) { response in try await response.collect().count }
    /// ```
    public struct Closure<Output: Sendable>: ResponseSerializer {
        /// The media types that the closure can read, for `Accept` and for checking the response's `Content-Type`.
        public let accepts: [MediaType]
        private let read: @Sendable (IncomingResponse) async throws -> Output

        /// Creates a serializer from a closure.
        ///
        /// - Parameters:
        ///   - accepts: The media types that the closure can read; any type unless given.
        ///   - read: Called in the task that awaits the value, with an acceptable response. A `NetworkError` that it
        ///     throws passes unchanged; any other error becomes the cause of a `NetworkError` of kind `decodingFailed`.
        public init(
            accepts: [MediaType] = [.any], _ read: @escaping @Sendable (IncomingResponse) async throws -> Output
        ) {
            self.accepts = accepts
            self.read = read
        }

        /// Calls the closure.
        /// - Throws: The error that the closure throws.
        public func output(from response: IncomingResponse) async throws -> Output { try await read(response) }
    }
}
