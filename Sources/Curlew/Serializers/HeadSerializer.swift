// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The head of a response, whose body is let go as by ``EmptySerializer``.
public struct HeadSerializer: ResponseSerializer {
    /// Takes any response.
    public init() {}

    /// The head.
    public func output(from response: IncomingResponse) async -> ResponseHead {
        await response.discard()
        return response.head
    }
}

extension ResponseSerializer where Self == HeadSerializer {
    /// The head of the response.
    public static var head: HeadSerializer { HeadSerializer() }
}
