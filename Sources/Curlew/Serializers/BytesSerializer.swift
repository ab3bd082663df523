// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials

extension Serializers {
    /// Returns the body, decoded from its content codings and otherwise unchanged.
    ///
    /// ```swift
    /// let sound = Serializers.Bytes(accepting: ["audio/mpeg", "audio/ogg;q=0.5"])
    /// ```
    public struct Bytes: ResponseSerializer {
        /// The media types of the body, for `Accept` and for checking the response's `Content-Type`.
        public let accepts: [MediaType]

        /// Creates a serializer for some media types; for any type unless given.
        ///
        /// An empty list also accepts every type, but sets no `Accept` field: the field of the client or the session is
        /// sent.
        public init(accepting types: [MediaType] = [.any]) {
            accepts = types
        }

        /// Reads the whole body.
        ///
        /// - Throws: `NetworkError`: the error that ended the transfer.
        public func output(from response: IncomingResponse) async throws -> Data { try await response.collect() }
    }
}

extension ResponseSerializer where Self == Serializers.Bytes {
    /// Returns the unchanged body, of any type.
    public static var bytes: Serializers.Bytes { Serializers.Bytes() }

    /// Returns the unchanged body if it has one of the given types; any type if the list is empty.
    public static func bytes(accepting types: [MediaType]) -> Serializers.Bytes { Serializers.Bytes(accepting: types) }
}
