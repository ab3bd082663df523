// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension Serializers {
    /// Returns the head of a response, and discards the body like ``Serializers/Empty``.
    public struct Head: ResponseSerializer {
        /// Creates a serializer for any response.
        public init() {}

        /// Returns the head.
        public func output(from response: IncomingResponse) async -> ResponseHead {
            await response.discard()
            return response.head
        }
    }
}

extension ResponseSerializer where Self == Serializers.Head {
    /// The head of the response.
    public static var head: Serializers.Head { Serializers.Head() }
}
