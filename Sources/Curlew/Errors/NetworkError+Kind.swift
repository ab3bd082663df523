// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension NetworkError {
    /// The kind of a failure: an open set, so a `switch` over it needs a `default`.
    ///
    /// ```swift
    /// switch error.kind {
    /// case .timedOut, .connectionLost: offerRetry()
    /// default: show(error)
    /// }
    /// ```
    public struct Kind: RawRepresentable, Hashable, Sendable, Codable, CustomStringConvertible {
        /// The stable name in snake case, such as "timed_out".
        public let rawValue: String

        /// Creates a kind with any name.
        public init(rawValue: String) {
            self.rawValue = rawValue
        }

        /// The stable name with spaces: "timed out".
        public var description: String {
            String(rawValue.map { $0 == "_" ? " " : $0 })
        }

        /// Whether the response was received correctly and its body explains the failure.
        var keepsRefusedBody: Bool { self == .unacceptableStatus || self == .unacceptableContentType }
    }
}

extension NetworkError.Kind {
    /// The request cannot be sent as it is: its URL, method or a field is invalid;
    /// ``NetworkError/requestFlaw-swift.property`` says which part.
    public static let invalidRequest = Self(rawValue: "invalid_request")
    /// The host's name has no address, or no resolver responded.
    public static let cannotResolve = Self(rawValue: "cannot_resolve")
    /// No address of the host, or the proxy, accepted a connection.
    public static let cannotConnect = Self(rawValue: "cannot_connect")
    /// A proxy did not connect to the server; the message contains the proxy's status or reason.
    public static let proxyRefused = Self(rawValue: "proxy_refused")
    /// A proxy requires a name and a password, or does not accept the credentials (status 407).
    public static let proxyAuthenticationRequired = Self(rawValue: "proxy_authentication_required")
    /// The TLS handshake failed for another reason than trust; a handshake that merely breaks off is
    /// ``connectionLost``.
    public static let tlsFailed = Self(rawValue: "tls_failed")
    /// The trust evaluator refused the peer's certificates.
    public static let untrusted = Self(rawValue: "untrusted")
    /// A timeout expired; the message names the timeout, its length and the option that sets it.
    public static let timedOut = Self(rawValue: "timed_out")
    /// The connection broke before the response was complete.
    public static let connectionLost = Self(rawValue: "connection_lost")
    /// An HTTP/2 server refused the stream without acting on the request (RFC 9113 §8.7).
    public static let streamRefused = Self(rawValue: "stream_refused")
    /// The server failed repeatedly, so a ``CircuitBreaker`` did not send the request.
    public static let circuitOpen = Self(rawValue: "circuit_open")
    /// The peer sent something that is not HTTP, more head than the limit allows, or an unknown content coding.
    public static let invalidResponse = Self(rawValue: "invalid_response")
    /// The body ended before its content coding (gzip and so on) did; the decoded bytes are incomplete.
    public static let truncatedEncoding = Self(rawValue: "truncated_encoding")
    /// The body's bytes are not valid in its content coding (gzip and so on).
    public static let corruptEncoding = Self(rawValue: "corrupt_encoding")
    /// The redirects exceeded the limit, or formed a loop.
    public static let tooManyRedirects = Self(rawValue: "too_many_redirects")
    /// The redirect policy refused a redirect: one from https to http, or one for which the policy's closure threw an
    /// error, which is `cause`.
    public static let redirectRefused = Self(rawValue: "redirect_refused")
    /// An interceptor threw its own error, which is `cause`.
    public static let interceptorFailed = Self(rawValue: "interceptor_failed")
    /// There were no credentials for the request; `cause` says why.
    public static let authenticationFailed = Self(rawValue: "authentication_failed")
    /// A validator refused the status.
    public static let unacceptableStatus = Self(rawValue: "unacceptable_status")
    /// A validator refused the media type.
    public static let unacceptableContentType = Self(rawValue: "unacceptable_content_type")
    /// The response's body exceeds the limit for collecting it, or an element of a stream exceeds its decoder's limit.
    public static let bodyTooLarge = Self(rawValue: "body_too_large")
    /// The request had to be sent again, but its body can be read only once.
    public static let bodyNotReplayable = Self(rawValue: "body_not_replayable")
    /// The source of a body threw an error, or did not provide the declared length.
    public static let bodyFailed = Self(rawValue: "body_failed")
    /// A value could not be encoded as a request's body or query.
    public static let encodingFailed = Self(rawValue: "encoding_failed")
    /// A response's body could not be decoded as the expected value.
    public static let decodingFailed = Self(rawValue: "decoding_failed")
    /// A file cannot be saved at its destination; `cause` is a ``DownloadDestination/Failure``.
    public static let destinationFailed = Self(rawValue: "destination_failed")
    /// The bytes of a download do not have the digest that was expected, or that the server stated.
    public static let checksumMismatch = Self(rawValue: "checksum_mismatch")
    /// A download was to be resumed, but the resource on the server has changed.
    public static let contentChanged = Self(rawValue: "content_changed")
    /// Only a stored response was allowed, and the cache has no response.
    public static let cacheMiss = Self(rawValue: "cache_miss")
    /// The store of an ``HTTPCache`` failed, usually while a stored body was read; `cause` is its error.
    public static let cacheFailed = Self(rawValue: "cache_failed")
    /// This process ran out of memory, file descriptors or disk space.
    public static let resourceExhausted = Self(rawValue: "resource_exhausted")
    /// The libraries on this machine do not support the operation.
    public static let unsupported = Self(rawValue: "unsupported")
    /// The transfer or the task around it was cancelled.
    public static let cancelled = Self(rawValue: "cancelled")
    /// The session was shut down.
    public static let sessionClosed = Self(rawValue: "session_closed")
    /// A fault of this library; please report it.
    public static let `internal` = Self(rawValue: "internal")
}
