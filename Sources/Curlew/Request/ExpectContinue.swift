// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Which request bodies wait for the server's word (`Expect: 100-continue`, RFC 9110 §10.1.1), over HTTP/1.1.
///
/// A server that refuses then does so before the body is sent. One that says nothing gets the body after a time
/// (`http.expectContinueTimeout`), and one that answers 417 gets the request again without asking.
///
/// ```swift
/// request.options.expectContinue = .never
/// ```
public struct ExpectContinue: Sendable, Hashable, Codable {
    /// From which length on; nil for never.
    let threshold: ByteCount?

    /// No body waits.
    public static let never = ExpectContinue(threshold: nil)
    /// Every body waits.
    public static let always = ExpectContinue(threshold: 0)

    /// Bodies of at least this length wait, and those whose length is not known.
    public static func above(_ length: ByteCount) -> ExpectContinue { ExpectContinue(threshold: length) }
}

/// Which connection serves a request.
public enum ConnectionUse: String, Sendable, Hashable, Codable, CaseIterable {
    /// One of the session's, which others use before, after or, over HTTP/2, at the same time.
    ///
    /// A request whose method is not idempotent does not reuse an HTTP/1.1 connection that was idle for 4 s or longer:
    /// the server may be about to close it.
    case shared
    /// A connection of the session, as with `shared`. If a reused connection ends before the first byte of the
    /// response, the request is sent again once, whatever its method.
    ///
    /// Idempotent requests (RFC 9110 §9.2.2) are sent again without this option. Usually the server closed an idle
    /// connection and did not read the request, but it may have processed it: use this only for requests that are safe
    /// to repeat. A body that can be read only once is not sent again.
    case resending
    /// One that is opened for this request and closed after it, by HTTP/1.1 unless the session speaks nothing but
    /// HTTP/2.
    ///
    /// For long streams that are read slowly or paused: libcurl 7.88 holds up to 32 MiB for each paused stream of an
    /// HTTP/2 connection on which others go on. A paused connection holds what the kernel holds.
    case own
}
