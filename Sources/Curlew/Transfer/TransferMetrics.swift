// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// How a transfer went: how long each phase took, how much was moved, and over what connection.
///
/// Phases that did not happen take no time: a reused connection has zero for `resolve`, `connect` and `secure`.
///
/// ```swift
/// print(response.metrics)     // 84 ms total: connect 12 ms, secure 30 ms, wait 40 ms, receive 2 ms; …
/// ```
public struct TransferMetrics: Sendable, Hashable {
    /// Waiting for a turn under the session's limits.
    public var queued: Duration
    /// Looking up the host's name.
    public var resolve: Duration
    /// Opening the connection.
    public var connect: Duration
    /// The TLS handshake, with the judgement of the certificates.
    public var secure: Duration
    /// Writing the request's head and body.
    public var send: Duration
    /// From the last byte written to the first byte of the response.
    public var wait: Duration
    /// From the first to the last byte of the response.
    public var receive: Duration
    /// From the start of the transfer to its end, with the wait in the queue.
    public var total: Duration

    /// Bytes of the request's head.
    public var requestHeadBytes: Int64
    /// Bytes of the request's body, as sent.
    public var requestBodyBytes: Int64
    /// Bytes of the response's head.
    public var responseHeadBytes: Int64
    /// Bytes of the response's body, as received (compressed if it was).
    public var responseBodyBytes: Int64
    /// Bytes of the response's body after its content codings were undone; as received when it had none, or when
    /// `decompression` is off.
    ///
    /// What was decoded so far, while a stream is still read.
    public var decodedBodyBytes: Int64
    /// The content codings that were undone, such as "gzip", in the order they had been applied; nil when none was.
    public var contentEncoding: String?

    /// The protocol version that was spoken.
    public var version: HTTPVersion
    /// This end of the connection, as "address:port", IPv6 addresses in brackets; empty when there was none.
    public var localAddress: String
    /// The other end of the connection, the proxy's if one was used, as "address:port"; empty when there was none.
    public var remoteAddress: String
    /// Whether the connection had served another transfer before.
    public var isConnectionReused: Bool
    /// The TLS version, such as "TLSv1.3"; nil without TLS.
    public var tlsVersion: String?
    /// The cipher suite, by OpenSSL's name; nil without TLS.
    public var tlsCipher: String?
    /// Whether the TLS session was resumed from an earlier one.
    public var isTLSSessionResumed: Bool
    /// The server's own certificate, also of a resumed session; nil without TLS.
    public var serverCertificate: Certificate?

    /// Metrics of their parts, each empty unless given; decoded bytes are those of the response's body unless given.
    public init(
        queued: Duration = .zero, resolve: Duration = .zero, connect: Duration = .zero, secure: Duration = .zero,
        send: Duration = .zero, wait: Duration = .zero, receive: Duration = .zero, total: Duration = .zero,
        requestHeadBytes: Int64 = 0, requestBodyBytes: Int64 = 0, responseHeadBytes: Int64 = 0,
        responseBodyBytes: Int64 = 0, decodedBodyBytes: Int64? = nil, contentEncoding: String? = nil,
        version: HTTPVersion = .http1_1, localAddress: String = "", remoteAddress: String = "",
        isConnectionReused: Bool = false, tlsVersion: String? = nil, tlsCipher: String? = nil,
        isTLSSessionResumed: Bool = false, serverCertificate: Certificate? = nil
    ) {
        (self.queued, self.resolve, self.connect, self.secure) = (queued, resolve, connect, secure)
        (self.send, self.wait, self.receive, self.total) = (send, wait, receive, total)
        (self.requestHeadBytes, self.requestBodyBytes) = (requestHeadBytes, requestBodyBytes)
        (self.responseHeadBytes, self.responseBodyBytes) = (responseHeadBytes, responseBodyBytes)
        (self.decodedBodyBytes, self.contentEncoding) = (decodedBodyBytes ?? responseBodyBytes, contentEncoding)
        self.version = version
        self.localAddress = localAddress
        self.remoteAddress = remoteAddress
        self.isConnectionReused = isConnectionReused
        self.tlsVersion = tlsVersion
        self.tlsCipher = tlsCipher
        self.isTLSSessionResumed = isTLSSessionResumed
        self.serverCertificate = serverCertificate
    }
}

extension TransferMetrics: CustomStringConvertible {
    /// One line: the total, the phases that took time, the bytes both ways, and the connection.
    public var description: String {
        let phases = [
            ("queued", queued), ("resolve", resolve), ("connect", connect), ("secure", secure), ("send", send),
            ("wait", wait), ("receive", receive),
        ]
        let times = phases.filter { $0.1 != .zero }.map { "\($0.0) \($0.1.brief)" }.joined(separator: ", ")
        let sent = ByteCount(requestHeadBytes) + ByteCount(requestBodyBytes)
        let received = ByteCount(responseHeadBytes) + ByteCount(responseBodyBytes)
        var parts = ["\(total.brief) total" + (times.isEmpty ? "" : ": \(times)")]
        parts.append("\(sent) sent, \(received) received")
        if let contentEncoding { parts.append("\(contentEncoding) decoded to \(ByteCount(decodedBodyBytes))") }
        parts.append("\(version)" + (remoteAddress.isEmpty ? "" : " to \(remoteAddress)"))
        if let tlsVersion { parts.append(isTLSSessionResumed ? "\(tlsVersion) resumed" : tlsVersion) }
        if isConnectionReused { parts.append("reused") }
        return parts.joined(separator: "; ")
    }
}
