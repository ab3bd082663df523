// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// A request as the server got it.
public struct RecordedRequest: Sendable {
    /// The method, as sent.
    public internal(set) var method: String
    /// The request target, as sent (RFC 9112 §3.2): path and query, or a whole URL when the client takes the server
    /// for a proxy, or `host:port` with CONNECT.
    public internal(set) var target: String
    /// The target's path, still percent-encoded; of an absolute URL its path, of CONNECT the whole target.
    public internal(set) var path: String
    /// What follows the question mark, without it and still percent-encoded; nil when there is none.
    public internal(set) var query: String?
    /// `HTTP/1.1` or `HTTP/1.0`; `HTTP/2` on an `HTTP2Server`.
    public internal(set) var version: String
    /// The header fields in the order they came, names as sent.
    public internal(set) var fields: [(name: String, value: String)]
    /// The scheme as HTTP/2 names it (RFC 9113 §8.3.1); nil on a `MockServer`.
    public internal(set) var scheme: String?
    /// The authority as HTTP/2 names it (RFC 9113 §8.3.1); nil on a `MockServer`, where `Host` is a field.
    public internal(set) var authority: String?
    /// The trailer fields of a chunked body, or of HTTP/2, in order.
    public internal(set) var trailers: [(name: String, value: String)] = []

    /// The body's first bytes, up to `MockServer.Options.requestBodyLimit`.
    ///
    /// Empty until the body is read; see `isBodyComplete`.
    public internal(set) var body: [UInt8] = []
    /// How many bytes of body have been read so far, without chunk framing, those beyond the limit included.
    public internal(set) var bodyLength = 0
    /// The SHA-256 digest of all body bytes read, 64 lower-case hexadecimal digits; of no bytes until the body is read.
    public internal(set) var bodySHA256 = RecordedRequest.emptyDigest
    /// Whether the body has been read to its end.
    ///
    /// True at once for a request without one.
    public internal(set) var isBodyComplete = false

    /// Which accepted connection it came on; the server's first is 1.
    public internal(set) var connection: Int
    /// Which request on its connection it is; the first is 1.
    public internal(set) var ordinal: Int
    /// Its HTTP/2 stream (RFC 9113 §5.1.1); 0 on a `MockServer`.
    public internal(set) var stream = 0
    /// The code with which the client reset its stream; nil when it did not, and on a `MockServer`.
    public internal(set) var resetCode: HTTP2ErrorCode?
    /// Whether its connection has ended, so that nothing more will come; always false on a `MockServer`.
    public internal(set) var isConnectionClosed = false
    /// Whether it said `Expect: 100-continue`.
    public internal(set) var expectsContinue = false
    /// Whether the server sent `100 Continue`, because it was expected and no body had come by then.
    public internal(set) var sentContinue = false
    /// What the TLS handshake settled; nil on a plain connection.
    public internal(set) var tls: TLS?

    /// What the TLS handshake of a request's connection settled.
    public struct TLS: Sendable, Hashable {
        /// The version: `TLSv1.3`, `TLSv1.2` and so on.
        public internal(set) var version: String
        /// The cipher suite, as OpenSSL names it: `TLS_AES_256_GCM_SHA384`, `ECDHE-ECDSA-AES128-GCM-SHA256` and so on.
        public internal(set) var cipher: String
        /// Whether the connection resumed an earlier session.
        public internal(set) var isResumed: Bool
        /// The name that the client asked for (SNI, RFC 6066 §3); nil when it sent none, as it must for an IP address.
        public internal(set) var serverName: String?
        /// The protocol agreed on by ALPN (RFC 7301); nil when the client offered none that the server speaks.
        public internal(set) var applicationProtocol: String?
        /// Whether the client asked for an OCSP response (RFC 6066 §8); false on a resumed connection, where it is not
        /// looked at.
        public internal(set) var askedForStaple: Bool
        /// The DER bytes of the certificate that the client showed; nil when it showed none or was not asked.
        public internal(set) var clientCertificate: [UInt8]?
        /// The common name in the subject of that certificate; nil without one.
        public internal(set) var clientCommonName: String?
        /// The DER bytes of the certificates that the client sent after its own, in that order; none on a resumed
        /// connection.
        public internal(set) var clientIntermediates: [[UInt8]]
    }

    /// The first value of a field; names are compared without regard to case.
    public func field(_ name: String) -> String? {
        fields.first { $0.name.lowercased() == name.lowercased() }?.value
    }

    /// All values of a field in order; names are compared without regard to case.
    public func fields(_ name: String) -> [String] {
        fields.filter { $0.name.lowercased() == name.lowercased() }.map(\.value)
    }

    /// The kept part of the body as text, broken UTF-8 replaced.
    public var bodyText: String {
        String(decoding: body, as: UTF8.self)
    }

    static let emptyDigest = SHA256Stream().hex
}

extension RecordedRequest: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// One line: method, target and how long the body is.
    public var description: String { "\(method) \(target) (\(bodyLength) bytes, connection \(connection))" }

    /// The same line, so that lists of requests stay readable.
    public var debugDescription: String { description }

    /// The line and the fields; never the body, which may be large.
    public var customMirror: Mirror {
        Mirror(self, children: ["description": description, "fields": fields], displayStyle: .struct)
    }
}
