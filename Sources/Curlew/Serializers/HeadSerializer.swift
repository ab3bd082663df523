// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Returns the head of a response, and discards the body like ``EmptySerializer``.
public struct HeadSerializer: ResponseSerializer {
    /// Creates a serializer for any response.
    public init() {}

    /// Returns the head.
    public func output(from response: IncomingResponse) async -> ResponseHead {
        await response.discard()
        return response.head
    }
}

extension ResponseSerializer where Self == HeadSerializer {
    /// The head of the response.
    public static var head: HeadSerializer { HeadSerializer() }
}
