// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Reads nothing: for requests whose answer is in the status.
///
/// A client's verbs take at most 64 KiB of a body that nobody wants, also for interceptors, and break off what is longer;
/// a transfer collects it within its limit.
///
/// ```swift
/// try await api.delete("users/42", using: EmptySerializer())
/// ```
public struct EmptySerializer: ResponseSerializer {
    /// Reads nothing.
    public init() {}

    /// Lets go of the body.
    public func output(from response: IncomingResponse) async { await response.discard() }
}

extension ResponseSerializer where Self == EmptySerializer {
    /// Nothing, whatever the body is.
    public static var empty: EmptySerializer { EmptySerializer() }
}
