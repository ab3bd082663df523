// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// A request as the server received it.
public struct RecordedRequest: Sendable {
    /// The method, as sent.
    public internal(set) var method: String
    /// The request target, as sent (RFC 9112 §3.2): path and query, or a whole URL if the client uses the server as a
    /// proxy, or `host:port` with CONNECT.
    public internal(set) var target: String
    /// The target's path, still percent-encoded; for an absolute URL its path, for CONNECT the whole target.
    public internal(set) var path: String
    /// The query without its question mark, still percent-encoded; nil if the target has no question mark.
    public internal(set) var query: String?
    /// `HTTP/1.1` or `HTTP/1.0`; `HTTP/2` on an `HTTP2Server`.
    public internal(set) var version: String
    /// The header fields in the order of arrival, with names as sent.
    public internal(set) var fields: [(name: String, value: String)]
    /// The scheme as HTTP/2 names it (RFC 9113 §8.3.1); nil on a `MockServer`.
    public internal(set) var scheme: String?
    /// The authority as HTTP/2 names it (RFC 9113 §8.3.1); nil on a `MockServer`, where `Host` is a field.
    public internal(set) var authority: String?
    /// The trailer fields of a chunked body or of an HTTP/2 request, in order.
    public internal(set) var trailers: [(name: String, value: String)] = []

    /// The body's first bytes, up to `MockServer.Options.requestBodyLimit`.
    ///
    /// The array is empty until the server reads the body; see `isBodyComplete`.
    public internal(set) var body: [UInt8] = []
    /// The number of body bytes read so far, without chunk framing, including the bytes beyond the limit.
    public internal(set) var bodyLength = 0
    /// The SHA-256 digest of all body bytes as 64 lower-case hexadecimal digits.
    ///
    /// The value is the digest of no bytes until the server has read the body.
    public internal(set) var bodySHA256 = RecordedRequest.emptyDigest
    /// Whether the body has been read to its end.
    ///
    /// True from the start for a request without a body.
    public internal(set) var isBodyComplete = false

    /// The number of the accepted connection that carried the request; the server's first connection is 1.
    public internal(set) var connection: Int
    /// The number of the request on its connection; the first is 1.
    public internal(set) var ordinal: Int
    /// The HTTP/2 stream of the request (RFC 9113 §5.1.1); 0 on a `MockServer`.
    public internal(set) var stream = 0
    /// The code with which the client reset the stream; nil without a reset, and on a `MockServer`.
    public internal(set) var resetCode: HTTP2ErrorCode?
    /// Whether the connection has ended, so that nothing more can arrive; always false on a `MockServer`.
    public internal(set) var isConnectionClosed = false
    /// Whether the request has `Expect: 100-continue`.
    public internal(set) var expectsContinue = false
    /// Whether the server sent `100 Continue`, because the request expected it and no body byte had arrived yet.
    public internal(set) var sentContinue = false
    /// The results of the TLS handshake; nil on a plain connection.
    public internal(set) var tls: TLS?

    /// The results of the TLS handshake of a request's connection.
    public struct TLS: Sendable, Hashable {
        /// The version: `TLSv1.3`, `TLSv1.2` and so on.
        public internal(set) var version: String
        /// The cipher suite, as OpenSSL names it: `TLS_AES_256_GCM_SHA384`, `ECDHE-ECDSA-AES128-GCM-SHA256` and so on.
        public internal(set) var cipher: String
        /// Whether the connection resumed an earlier session.
        public internal(set) var isResumed: Bool
        /// The server name that the client sent (SNI, RFC 6066 §3); nil if it sent no name, as required for an IP
        /// address.
        public internal(set) var serverName: String?
        /// The protocol selected by ALPN (RFC 7301); nil if the client offered no protocol that the server speaks.
        public internal(set) var applicationProtocol: String?
        /// Whether the client requested an OCSP response (RFC 6066 §8); always false on a resumed connection, where the
        /// server does not evaluate that extension.
        public internal(set) var requestedOCSPResponse: Bool
        /// The DER bytes of the client's certificate; nil if the client sent no certificate or the server did not
        /// request it.
        public internal(set) var clientCertificate: [UInt8]?
        /// The common name in the subject of the client's certificate; nil without a certificate or a common name.
        public internal(set) var clientCommonName: String?
        /// The DER bytes of the certificates that the client sent after its own, in that order; empty on a resumed
        /// connection.
        public internal(set) var clientIntermediates: [[UInt8]]
    }

    /// Returns the first value of a field; the case of names does not matter.
    public func field(_ name: String) -> String? {
        fields.first { $0.name.lowercased() == name.lowercased() }?.value
    }

    /// Returns all values of a field in order; the case of names does not matter.
    public func fields(_ name: String) -> [String] {
        fields.filter { $0.name.lowercased() == name.lowercased() }.map(\.value)
    }

    /// The kept part of the body as text; invalid UTF-8 is replaced.
    public var bodyText: String {
        String(decoding: body, as: UTF8.self)
    }

    static let emptyDigest = SHA256Stream().hex
}

extension RecordedRequest: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// One line with method, target, body length and connection.
    public var description: String { "\(method) \(target) (\(bodyLength) bytes, connection \(connection))" }

    /// The description, so that lists of requests stay readable.
    public var debugDescription: String { description }

    /// The description and the fields, without the body, which may be large.
    public var customMirror: Mirror {
        Mirror(self, children: ["description": description, "fields": fields], displayStyle: .struct)
    }
}
