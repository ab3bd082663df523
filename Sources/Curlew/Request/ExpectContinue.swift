// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension Request {
    /// The request bodies that wait for an interim response of the server (`Expect: 100-continue`, RFC 9110 §10.1.1),
    /// over HTTP/1.1.
    ///
    /// A server can then refuse the request before the body is sent. If the server sends no response within
    /// `http.expectContinueTimeout`, the body is sent. If the server responds with 417, the request is sent again
    /// without `Expect`.
    ///
    /// ```swift
    /// request.options.expectContinue = .never
    /// ```
    public struct ExpectContinue: Sendable, Hashable, Codable {
        /// The minimum length of a body that waits; nil if no body waits.
        let threshold: ByteCount?

        /// No body waits.
        public static let never = Request.ExpectContinue(threshold: nil)
        /// Every body waits.
        public static let always = Request.ExpectContinue(threshold: 0)

        /// Returns a policy by which bodies of unknown length, and bodies of at least this length, wait.
        public static func above(_ length: ByteCount) -> Request.ExpectContinue {
            Request.ExpectContinue(threshold: length)
        }
    }
}

extension Request {
    /// The kind of connection that serves a request.
    public enum ConnectionUse: String, Sendable, Hashable, Codable, CaseIterable {
        /// A connection of the session, which other requests use before, after or, over HTTP/2, at the same time.
        ///
        /// A request whose method is not idempotent does not reuse an HTTP/1.1 connection that was idle for 4 s or
        /// longer: the server may be about to close it.
        case shared
        /// A connection of the session, as with `shared`. If a reused connection ends before the first byte of the
        /// response, the request is sent again once, with any method.
        ///
        /// Idempotent requests (RFC 9110 §9.2.2) are sent again without this option. Usually the server closed an idle
        /// connection and did not read the request, but it may have processed it: use this only for requests that are
        /// safe to repeat. A body that can be read only once is not sent again.
        case resending
        /// A connection opened for this request and closed after it, over HTTP/1.1 unless the session allows only
        /// HTTP/2.
        ///
        /// Use it for long streams that are read slowly or paused: libcurl 7.88 buffers up to 32 MiB for each paused
        /// stream of an HTTP/2 connection whose other streams continue. A paused connection of its own occupies only
        /// the kernel's buffers.
        case own
    }
}
