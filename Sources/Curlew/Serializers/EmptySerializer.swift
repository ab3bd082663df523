// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension Serializers {
    /// Discards the body, for requests whose status is the whole response.
    ///
    /// A client's verbs read at most 64 KiB of a discarded body, also for interceptors, and abort a longer one; a
    /// transfer collects the body within its limit.
    ///
    /// ```swift
    /// try await api.delete("users/42", using: Serializers.Empty())
    /// ```
    public struct Empty: ResponseSerializer {
        /// Creates a serializer that reads nothing.
        public init() {}

        /// Discards the body.
        public func output(from response: IncomingResponse) async { await response.discard() }
    }
}

extension ResponseSerializer where Self == Serializers.Empty {
    /// Discards any body.
    public static var empty: Serializers.Empty { Serializers.Empty() }
}
