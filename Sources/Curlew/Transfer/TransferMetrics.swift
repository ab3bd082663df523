// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The metrics of a transfer: the duration of each phase, the bytes in both directions, and the connection.
///
/// A phase that did not happen has a duration of zero: a reused connection has zero `resolve`, `connect` and `secure`.
///
/// ```swift
/// print(response.metrics)     // 84 ms total: connect 12 ms, secure 30 ms, wait 40 ms, receive 2 ms; …
/// ```
public struct TransferMetrics: Sendable, Hashable {
    /// Waiting in the session's queue.
    public var queued: Duration
    /// Looking up the host's name.
    public var resolve: Duration
    /// Opening the connection.
    public var connect: Duration
    /// The TLS handshake, including the evaluation of the certificates.
    public var secure: Duration
    /// Writing the request's head and body.
    public var send: Duration
    /// From the last byte written to the first byte of the response.
    public var wait: Duration
    /// From the first to the last byte of the response.
    public var receive: Duration
    /// From the start of the attempt to its end, including the time in the queue.
    public var total: Duration

    /// Bytes of the request's head.
    public var requestHeadBytes: Int64
    /// Bytes of the request's body, as sent.
    public var requestBodyBytes: Int64
    /// Bytes of the response's head.
    public var responseHeadBytes: Int64
    /// Bytes of the response's body, as received (compressed if it was).
    public var responseBodyBytes: Int64
    /// Bytes of the response's body after decoding; as received when it had no content coding, or when `decompression`
    /// is off.
    ///
    /// While a stream is being read, it is the number of bytes decoded so far.
    public var decodedBodyBytes: Int64
    /// The content codings that were decoded, such as "gzip", in the order of their application; nil without any.
    public var contentEncoding: String?

    /// The protocol version of the response.
    public var version: ResponseHead.HTTPVersion
    /// The reason why HTTP/3 was not used, such as "libcurl 7.88.1 does not support HTTP/3"; nil if it was used, or if
    /// `http.version` does not allow it.
    public var withoutHTTP3: String?
    /// The local address of the connection, as "address:port", IPv6 addresses in brackets; empty without a connection.
    public var localAddress: String
    /// The remote address of the connection, that of the proxy if one was used, as "address:port"; the path of a Unix
    /// socket; empty without a connection.
    public var remoteAddress: String
    /// The proxy of the request and the reason for it; nil when neither the session nor the request has a rule about
    /// it.
    public var proxy: Proxy.Choice?
    /// Whether another transfer had used the connection before.
    public var isConnectionReused: Bool
    /// The TLS version, such as "TLSv1.3"; nil without TLS.
    public var tlsVersion: String?
    /// The cipher suite, by OpenSSL's name; nil without TLS.
    public var tlsCipher: String?
    /// Whether the TLS session was resumed from an earlier one.
    public var isTLSSessionResumed: Bool
    /// The server's own certificate, even for a resumed session; nil without TLS.
    public var serverCertificate: Certificate?
    /// How the session's cache handled the request; nil without a cache.
    ///
    /// For a response that needed no server, all durations and sizes are zero.
    public var cache: HTTPCache.Report?

    /// Creates metrics from their parts, each empty by default; `decodedBodyBytes` defaults to `responseBodyBytes`.
    public init(
        queued: Duration = .zero, resolve: Duration = .zero, connect: Duration = .zero, secure: Duration = .zero,
        send: Duration = .zero, wait: Duration = .zero, receive: Duration = .zero, total: Duration = .zero,
        requestHeadBytes: Int64 = 0, requestBodyBytes: Int64 = 0, responseHeadBytes: Int64 = 0,
        responseBodyBytes: Int64 = 0, decodedBodyBytes: Int64? = nil, contentEncoding: String? = nil,
        version: ResponseHead.HTTPVersion = .http1_1, localAddress: String = "", remoteAddress: String = "",
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
    /// A line with the total, the phases that took time, the bytes in both directions, and the connection.
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
        if let withoutHTTP3 { parts.append("no HTTP/3: \(withoutHTTP3)") }
        if let proxy { parts.append("proxy: \(proxy)") }
        if let cache { parts.append("cache: \(cache)") }
        return parts.joined(separator: "; ")
    }
}
