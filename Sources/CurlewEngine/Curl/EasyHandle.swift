// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewShims

/// One pooled libcurl handle, which keeps its options between transfers: only options that differ are set.
final class EasyHandle {
    /// The libcurl options for a method and a body; a method with another name is set in addition.
    fileprivate enum Shape: Equatable {
        case get, head
        case fields(count: Int)
        case upload(length: Int64)
    }

    /// Bodies below this size are sent together with the head in one write; libcurl sends larger ones separately.
    static let smallBody = 64 << 10
    /// The number of bytes that libcurl requests at once for a longer body.
    private static let longBuffer = 256 << 10

    let curl: UnsafeMutableRawPointer
    /// A domain outlives its handles: it stores the idle ones, and ends those in use before it is freed.
    unowned(unsafe) let domain: CurlDomain
    /// The transport of `domain`; safe because the transport owns its domains.
    unowned(unsafe) let transport: CurlTransport
    /// The deliveries of the loop, which outlive its transport.
    unowned(unsafe) let deliveries: Deliveries
    /// The TLS sessions in use; the handle keeps them until it is freed, possibly after its domain.
    private var sessions: TLSSessions
    #if !DEBUG
    @exclusivity(unchecked)
    #endif
    var transfer: EngineTransfer? { didSet { loopState = transfer?.loopStatePointer } }
    /// The loop's half of `transfer`.
    #if !DEBUG
    @exclusivity(unchecked)
    #endif
    private(set) var loopState: UnsafeMutablePointer<LoopState>?
    /// The clock of the turn, in nanoseconds of the monotonic clock.
    let clock: UnsafePointer<UInt64>
    /// The index of the handle in `CurlTransport.inUse`.
    var index = -1
    #if !DEBUG
    @exclusivity(unchecked)
    #endif
    var judge: ConnectionJudge?
    /// The judge of an https proxy; nil before the handshake with it.
    var proxyJudge: ConnectionJudge?
    /// The HTTP/2 stream of the request, identified by the pointer that libcurl gave to nghttp2.
    var stream: UnsafeMutableRawPointer?
    /// Sockets opened for the transfer since it last began to send.
    #if !DEBUG
    @exclusivity(unchecked)
    #endif
    var opened: [SocketTable.Connection] = []
    /// The head that is being received.
    let head = HeadBuffer()
    /// The number of open sockets when `keepConnecting()` last made libcurl check them.
    var checkedSockets = 0
    /// The endpoints that the transfer attempts; nil if libcurl selects them.
    var attempts: ConnectionAttempts?
    /// The connections that the engine attempts in parallel with those of libcurl.
    var rivals: [Rival] = []
    /// The endpoint of the transfer's connection, if libcurl reports another one.
    var endpoint: SocketAddress?
    /// The port of the URL or the proxy, for endpoints without a port.
    var defaultPort: UInt16 = 0
    /// Whether libcurl retried a request because its connection had died.
    var hasRetried = false
    /// Whether a proxy refused the tunnel with a 407; libcurl keeps state of that response in the handle.
    var isRefusedByProxy = false

    private let detail: UnsafeMutablePointer<CChar>
    private(set) var url: ParsedURL?
    private var lines: HeaderLines?
    private var shape = Shape.get
    /// libcurl's default until another size is set.
    private var uploadBuffer = smallBody
    private var method: String?
    private(set) var receiveBuffer = 0
    private var connectTimeout = 0
    private var continueTimeout = 1000
    private var waitsForShare = false
    var isFresh = false
    private var isExclusive = false
    private var sendsAfterError = false
    private var connectsOnly = false
    private var usedVersion = EngineConfiguration.Version.automatic
    /// The local port of the connection that the handle joins only to flush pending frames, and whether it has done so.
    var flushing: (port: Int, isDone: Bool)?
    /// The messages of libcurl since `recordMessages()` was last called, and whether they are still recorded.
    var streamMessages: UnsafeMutablePointer<curlew_stream_log>?
    var isRecording = false
    /// The addresses given to libcurl, which reads them when the transfer begins.
    private var addresses: UnsafeMutablePointer<curl_slist>?

    init?(domain: CurlDomain) {
        guard let curl = curl_easy_init() else { return nil }
        self.curl = curl
        self.domain = domain
        transport = domain.transport
        deliveries = transport.deliveries
        clock = deliveries.clock
        sessions = domain.live.sessions.first
        detail = .allocate(capacity: Int(CURL_ERROR_SIZE))
        detail.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
        setConstants()
    }

    deinit {
        curl_easy_cleanup(curl)
        curl_slist_free_all(addresses)
        detail.deallocate()
        streamMessages?.deallocate()
        head.free()
    }

    private func setConstants() {
        let configuration = transport.limits
        setEngineCallbacks(on: self)
        _ = curlew_set_pointer(curl, CURLOPT_ERRORBUFFER, detail)
        _ = curlew_set_pointer(curl, CURLOPT_SHARE, sessions.share)
        // libcurl uses no signals, and does not join a resolver thread when a transfer ends during look-up.
        _ = curlew_set_long(curl, CURLOPT_NOSIGNAL, 1)
        _ = curlew_set_long(curl, CURLOPT_QUICK_EXIT, 1)
        receiveBuffer = configuration.receiveBuffer
        _ = curlew_set_long(curl, CURLOPT_BUFFERSIZE, receiveBuffer)
        _ = curlew_set_string(curl, CURLOPT_PROTOCOLS_STR, "http,https")
        _ = curlew_set_string(curl, CURLOPT_PROXY, "")
        // Without a value, libcurl reads `no_proxy` of the environment for each request, although no proxy is set.
        _ = curlew_set_string(curl, CURLOPT_NOPROXY, "")
        _ = curlew_set_long(curl, CURLOPT_NOPROGRESS, 1)
        _ = curlew_set_long(curl, CURLOPT_HAPPY_EYEBALLS_TIMEOUT_MS, Int(configuration.attemptDelay / 1_000_000))
        _ = curlew_set_long(curl, CURLOPT_FOLLOWLOCATION, 0)
        _ = curlew_set_long(curl, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1)
        usedVersion = configuration.version.overTCP
        _ = curlew_set_long(curl, CURLOPT_HTTP_VERSION, usedVersion.option)
        // Only `judge` judges servers: libcurl's own host check accepts a bare common name, and any VERIFYPEER other
        // than 1 makes libcurl ignore a rejection by it. The judge shares its roots, so libcurl must not load any.
        _ = curlew_set_long(curl, CURLOPT_SSL_VERIFYPEER, 1)
        _ = curlew_set_long(curl, CURLOPT_SSL_VERIFYHOST, 0)
        _ = curlew_set_string(curl, CURLOPT_CAINFO, nil)
        _ = curlew_set_string(curl, CURLOPT_CAPATH, nil)
        configuration.tls.apply(to: curl)
        domain.trust.route?.apply(to: curl, configuration.tls)
        // The session's own limit expires first: libcurl checks this one only when it needs a connection, in whole
        // seconds.
        let idle = min(configuration.idleLifetime / 1_000_000_000, 1 << 30) + 2
        _ = curlew_set_long(curl, CURLOPT_MAXAGE_CONN, Int(idle))
        // The session provides the addresses, and drops them before libcurl does.
        _ = curlew_set_long(curl, CURLOPT_DNS_CACHE_TIMEOUT, Int(2 * NameCache.lifetime / 1_000_000_000))
    }

    /// Sets the options that differ from those of the last transfer.
    ///
    /// - Returns: False if libcurl is out of memory.
    func apply(_ transfer: EngineTransfer, url: ParsedURL, on transport: CurlTransport) -> Bool {
        var isFine = true
        func set(_ code: CURLcode) { if code != CURLE_OK { isFine = false } }
        let now = transport.now
        if url.origin.isSecure,
            self.url?.origin !== url.origin || domain.live.sessions.areExpired(sessions, now: now)
        {
            set(useSessions(of: url.origin, now: now))
        }
        if self.url !== url {
            set(curlew_set_pointer(curl, CURLOPT_CURLU, UnsafeRawPointer(url.handle)))
            self.url = url
        }
        // Without TLS, libcurl reads as much as the buffer holds; with TLS, it reads one record at a time.
        let isBulk = transfer.loopState.collected == nil && !transfer.plan.isSecure
        // A copy of all limits would cost more than the rest of this function.
        let buffer = isBulk ? transport.limits.bulkBuffer : transport.limits.receiveBuffer
        let size = transport.readSize(of: transfer, buffer)
        // libcurl 7.88 rejects this option while it has a buffer. It keeps the buffer of a transfer that never
        // connected.
        if receiveBuffer != size, curlew_set_long(curl, CURLOPT_BUFFERSIZE, size) == CURLE_OK { receiveBuffer = size }
        let lines = transfer.lines
        if self.lines !== lines {
            set(curlew_set_pointer(curl, CURLOPT_HTTPHEADER, lines.list))
            self.lines = lines
        }
        set(applyConnection(transfer, on: transport))
        if !url.origin.lookUps.isEmpty { set(applyAddresses(transfer, url.origin, now)) }
        // The look-up has used a part of the connect timeout.
        let since = transfer.loopState.connectingSince
        let spent = since < now ? now - since : 0
        let left = transfer.plan.limits.connect.map { max(1_000_000, $0 &- min(spent, $0)) }
        let timeout = left.map { Int(Int32(clamping: $0 / 1_000_000)) } ?? Int(Int32.max)
        if connectTimeout != timeout {
            set(curlew_set_long(curl, CURLOPT_CONNECTTIMEOUT_MS, timeout))
            connectTimeout = timeout
        }
        if sendsAfterError {
            sendsAfterError = false
            set(curlew_set_long(curl, CURLOPT_KEEP_SENDING_ON_ERROR, 0))
        }
        let patience = Int(Int32(clamping: max(1, transfer.plan.limits.continueTimeout / 1_000_000)))
        if continueTimeout != patience {
            set(curlew_set_long(curl, CURLOPT_EXPECT_100_TIMEOUT_MS, patience))
            continueTimeout = patience
        }
        let (shape, implied) = EasyHandle.shape(of: transfer)
        if self.shape != shape || shape.hasFields {
            set(take(shape, transfer.upload))
            self.shape = shape
        }
        let method = transfer.plan.method == implied ? nil : transfer.plan.method
        if self.method != method {
            set(curlew_set_string(curl, CURLOPT_CUSTOMREQUEST, method))
            self.method = method
        }
        detail.pointee = 0
        return isFine
    }

    /// Makes the handle join an open connection to the server of a URL, and leave it open.
    func selectConnections(to url: ParsedURL) {
        if self.url !== url {
            _ = curlew_set_pointer(curl, CURLOPT_CURLU, UnsafeRawPointer(url.handle))
            self.url = url
        }
        if isExclusive {
            isExclusive = false
            _ = curlew_set_long(curl, CURLOPT_FORBID_REUSE, 0)
        }
        let version = transport.limits.version.overTCP
        if usedVersion != version {
            usedVersion = version
            _ = curlew_set_long(curl, CURLOPT_HTTP_VERSION, version.option)
        }
    }

    /// The time at which the TLS sessions of the handle expire.
    var sessionsEnd: UInt64 { domain.live.sessions.end(of: sessions) }

    /// Makes the handle use the share of TLS sessions that all handles of the domain use for this origin.
    private func useSessions(of origin: Origin, now: UInt64) -> CURLcode {
        let sessions = domain.live.sessions.sessions(of: origin, now: now)
        if sessions === self.sessions { return CURLE_OK }
        let code = curlew_set_pointer(curl, CURLOPT_SHARE, sessions.share)
        // The assignment releases the old share, which libcurl no longer uses.
        self.sessions = sessions
        return code
    }

    /// Selects the connections that may serve the transfer.
    private func applyConnection(_ transfer: EngineTransfer, on transport: CurlTransport) -> CURLcode {
        var code = CURLE_OK
        func set(_ option: CURLoption, _ value: Int) {
            let result = curlew_set_long(curl, option, value)
            if result != CURLE_OK { code = result }
        }
        let version = transport.limits.version
        // Over TLS, libcurl waits for a connection in progress to find out whether it can be shared. Without TLS,
        // libcurl 7.88 would delay all other transfers until the first response of the host has ended, which may never
        // happen.
        let sharesPlain = version == .http2PriorKnowledge && transport.sharesPlainHTTP2
        let isSecure = transfer.plan.isSecure
        let exclusive = transfer.plan.ownsConnection || version == .http2PriorKnowledge && !isSecure && !sharesPlain
        let isUnshared = isSecure && url.map { $0.origin.isKnown && !$0.origin.isShared } ?? false
        let waits = (isSecure || sharesPlain) && !exclusive && !isUnshared
        if waitsForShare != waits {
            set(CURLOPT_PIPEWAIT, waits ? 1 : 0)
            waitsForShare = waits
        }
        if isFresh != (transfer.loopState.isFresh || exclusive) {
            isFresh.toggle()
            set(CURLOPT_FRESH_CONNECT, isFresh ? 1 : 0)
        }
        if isExclusive != exclusive {
            isExclusive.toggle()
            set(CURLOPT_FORBID_REUSE, isExclusive ? 1 : 0)
        }
        // An exclusive connection uses HTTP/1.1 if it can choose, because other transfers could join an HTTP/2
        // connection.
        let usesHTTP1 = (exclusive || transfer.loopState.usesHTTP1) && version != .http2PriorKnowledge
        let mayUseHTTP3 = version == .http3 && !usesHTTP1 && transfer.reasonAgainstHTTP3 == nil
        let usedVersion = usesHTTP1 ? .http1Only : mayUseHTTP3 ? .http3 : version.overTCP
        if self.usedVersion != usedVersion {
            set(CURLOPT_HTTP_VERSION, usedVersion.option)
            self.usedVersion = usedVersion
        }
        return code
    }

    /// Whether the transfer may use HTTP/3.
    var mayUseHTTP3: Bool { usedVersion == .http3 }

    /// Makes libcurl start a transfer that waits to share a connection.
    ///
    /// - Returns: False if the transfer does not wait.
    func stopWaitingForShare() -> Bool {
        guard waitsForShare, let transfer, transfer.loopState.sends == 0, opened.isEmpty else { return false }
        waitsForShare = false
        _ = curlew_set_long(curl, CURLOPT_PIPEWAIT, 0)
        curl_multi_remove_handle(domain.multi, curl)
        // libcurl's clock starts again.
        transfer.loopState.launchedAt = transport.now
        transfer.loopState.lastActivity = max(transport.now, transfer.loopState.lastActivity)
        transport.add(self)
        return true
    }

    /// Gives libcurl the addresses of the hosts; libcurl adds them to its cache.
    private func applyAddresses(_ transfer: EngineTransfer, _ origin: Origin, _ now: UInt64) -> CURLcode {
        guard let name = transfer.loopState.name, domain.recordGivenAddresses(name, origin, now: now) else {
            return CURLE_OK
        }
        var list: UnsafeMutablePointer<curl_slist>?
        for host in origin.lookUps {
            guard let found = host == origin.peer ? name : name.server else { continue }
            let ips = found.endpoints(of: host, at: origin).map(\.ip).joined(separator: ",")
            list = curl_slist_append(list, "+\(host.host):\(host.port):\(ips)")
        }
        let code = curlew_set_pointer(curl, CURLOPT_RESOLVE, list)
        curl_slist_free_all(addresses)
        addresses = list
        return list == nil ? CURLE_OUT_OF_MEMORY : code
    }

    /// Makes libcurl keep sending the body after an error response; call this inside the callback that delivers the
    /// head.
    func keepSending() {
        sendsAfterError = true
        _ = curlew_set_long(curl, CURLOPT_KEEP_SENDING_ON_ERROR, 1)
    }

    /// Makes libcurl end the transfer with success before it sends a request, and keep the connection for others; call
    /// this inside the callback before the request.
    ///
    /// libcurl reserves a connection for its handle only if the option is set before the connection is made. A failure
    /// of the callback would close the connection.
    func stopBeforeSending() {
        connectsOnly = true
        _ = curlew_set_long(curl, CURLOPT_CONNECT_ONLY, 1)
    }

    /// Prevents libcurl from closing the connection of `stopBeforeSending()`; call this before the handle leaves its
    /// multi handle.
    func keepConnection() {
        guard connectsOnly else { return }
        connectsOnly = false
        _ = curlew_set_long(curl, CURLOPT_CONNECT_ONLY, 0)
    }

    /// Clears addresses that libcurl may not have read: a later transfer would add them to its cache as if they were
    /// new.
    func forgetAddresses() {
        guard addresses != nil else { return }
        _ = curlew_set_pointer(curl, CURLOPT_RESOLVE, nil)
        curl_slist_free_all(addresses)
        addresses = nil
    }

    private static func shape(of transfer: EngineTransfer) -> (Shape, method: String) {
        switch transfer.upload {
        case .none:
            switch transfer.plan.method {
            case "GET": (.get, "GET")
            case "HEAD": (.head, "HEAD")
            // RFC 9110 §8.6 requires Content-Length: 0 for methods that define a meaning for a body.
            case "POST", "PUT", "PATCH": (.fields(count: 0), "POST")
            default: (.get, "GET")
            }
        case .bytes(let bytes) where !transfer.isBodyPulled: (.fields(count: bytes.count), "POST")
        case .bytes(let bytes): (.upload(length: Int64(bytes.count)), "PUT")
        case .pipe(let pipe): (.upload(length: pipe.length ?? -1), "PUT")
        }
    }

    private func take(_ shape: Shape, _ upload: TransferPlan.Upload) -> CURLcode {
        // Every change sets GET first, which clears the options of the previous shape.
        if self.shape.hasFields { _ = curlew_set_pointer(curl, CURLOPT_POSTFIELDS, nil) }
        let reset = curlew_set_long(curl, CURLOPT_HTTPGET, 1)
        // libcurl keeps this buffer only while it sends a body.
        let buffer = shape.isLong ? EasyHandle.longBuffer : EasyHandle.smallBody
        if uploadBuffer != buffer {
            _ = curlew_set_long(curl, CURLOPT_UPLOAD_BUFFERSIZE, buffer)
            uploadBuffer = buffer
        }
        switch shape {
        case .get: return reset
        case .head: return curlew_set_long(curl, CURLOPT_NOBODY, 1)
        case .fields(let count):
            _ = curlew_set_offset(curl, CURLOPT_POSTFIELDSIZE_LARGE, Int64(count))
            guard case .bytes(let bytes) = upload else { return curlew_set_string(curl, CURLOPT_COPYPOSTFIELDS, "") }
            return bytes.withUnsafeBytes { raw in
                curlew_set_pointer(curl, CURLOPT_COPYPOSTFIELDS, raw.baseAddress ?? UnsafeRawPointer(detail))
            }
        case .upload(let length):
            _ = curlew_set_long(curl, CURLOPT_UPLOAD, 1)
            return curlew_set_offset(curl, CURLOPT_INFILESIZE_LARGE, length)
        }
    }

    /// Whether libcurl wrote a message about the failure.
    var hasDetail: Bool { detail.pointee != 0 }

    /// Returns the meaning of the last failure.
    func fault(for code: CURLcode) -> CurlFault { CurlFault(code: code.rawValue, text: String(cString: detail)) }

    /// Returns libcurl's message about the last failure, or its text for the code.
    func text(for code: CURLcode) -> String {
        detail.pointee != 0 ? String(cString: detail) : String(cString: curl_easy_strerror(code))
    }
}

extension EasyHandle.Shape {
    fileprivate var hasFields: Bool { if case .fields = self { true } else { false } }

    /// Whether the body has an unknown length, or does not fit into libcurl's usual buffer.
    fileprivate var isLong: Bool {
        if case .upload(let length) = self { length < 0 || length > EasyHandle.smallBody } else { false }
    }
}

extension EngineConfiguration.Version {
    fileprivate var option: Int {
        switch self {
        case .automatic: Int(CURL_HTTP_VERSION_2TLS)
        case .http1Only: Int(CURL_HTTP_VERSION_1_1)
        case .http2PriorKnowledge: Int(CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE)
        // libcurl attempts HTTP/3 first, and after a short delay also the other versions.
        case .http3: Int(CURL_HTTP_VERSION_3)
        }
    }

    /// The version for connections that cannot use HTTP/3.
    fileprivate var overTCP: EngineConfiguration.Version { self == .http3 ? .automatic : self }
}
