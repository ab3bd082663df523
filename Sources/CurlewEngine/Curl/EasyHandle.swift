// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewShims

/// One pooled libcurl handle, which keeps its options from transfer to transfer: only differences are set.
final class EasyHandle {
    /// How libcurl must be set up for a method and body; the method's own name goes on top where it differs.
    fileprivate enum Shape: Equatable {
        case get, head
        case fields(count: Int)
        case upload(length: Int64)
    }

    /// Bodies below this size leave together with the head, in one write; libcurl would not do that with larger ones.
    static let smallBody = 64 << 10
    /// What libcurl asks for at once of a longer one.
    private static let longBuffer = 256 << 10

    let curl: UnsafeMutableRawPointer
    /// A domain outlives its handles: it keeps those that rest, and ends those in use before it goes.
    unowned(unsafe) let domain: CurlDomain
    /// Those that the handle uses now, kept until it is freed, which may be after its domain.
    private var sessions: TLSSessions
    #if !DEBUG
    @exclusivity(unchecked)
    #endif
    var transfer: EngineTransfer? { didSet { wire = transfer?.wireHalf } }
    /// The loop's half of that transfer.
    #if !DEBUG
    @exclusivity(unchecked)
    #endif
    private(set) var wire: UnsafeMutablePointer<Wire>?
    /// The turn's clock.
    let clock: UnsafePointer<UInt64>
    /// Where the handle stands among those in use.
    var place = -1
    #if !DEBUG
    @exclusivity(unchecked)
    #endif
    var gate: TrustGate?
    /// The HTTP/2 stream of its request, by a pointer that is libcurl's.
    var stream: UnsafeMutableRawPointer?
    /// Sockets that were opened for the transfer since it last began to send.
    #if !DEBUG
    @exclusivity(unchecked)
    #endif
    var opened: [SocketTable.Connection] = []
    /// The head that is being received.
    let head = HeadBuffer()
    /// How many they were when libcurl was last made to look at them.
    private var looked = 0
    /// In which order the transfer tries addresses, when not as they were found.
    private var order: AddressOrder?
    /// Whether libcurl sent a request again because the connection it was sent on had died.
    var hasRetried = false

    private let detail: UnsafeMutablePointer<CChar>
    private(set) var url: ParsedURL?
    private var lines: HeaderLines?
    private var shape = Shape.get
    /// libcurl's own choice, until it is told another.
    private var uploadBuffer = smallBody
    private var method: String?
    private(set) var receiveBuffer = 0
    private var connectTimeout = 0
    private var continueTimeout = 1000
    private var waitsForShare = false
    var isFresh = false
    private var isAlone = false
    private var keepsSending = false
    private var spoken = EngineConfiguration.Version.automatic
    /// The local port of the connection that the handle joins only to send what libcurl keeps back, and whether it has.
    var flushing: (port: Int, isDone: Bool)?
    /// What libcurl has said since it was last listened to, and whether it still is.
    var words: UnsafeMutablePointer<curlew_stream_words>?
    var isListening = false
    /// The addresses given to libcurl, which reads them when the transfer begins.
    private var addresses: UnsafeMutablePointer<curl_slist>?

    init?(domain: CurlDomain) {
        guard let curl = curl_easy_init() else { return nil }
        self.curl = curl
        self.domain = domain
        clock = domain.transport.clock
        sessions = domain.live.sessions.first
        detail = .allocate(capacity: Int(CURL_ERROR_SIZE))
        detail.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
        setConstants()
    }

    deinit {
        curl_easy_cleanup(curl)
        curl_slist_free_all(addresses)
        detail.deallocate()
        words?.deallocate()
        head.free()
    }

    private func setConstants() {
        let configuration = domain.transport.limits
        setEngineCallbacks(on: self)
        _ = curlew_set_pointer(curl, CURLOPT_ERRORBUFFER, detail)
        _ = curlew_set_pointer(curl, CURLOPT_SHARE, sessions.share)
        // No signals, and no join of a resolver thread when a transfer ends during look-up.
        _ = curlew_set_long(curl, CURLOPT_NOSIGNAL, 1)
        _ = curlew_set_long(curl, CURLOPT_QUICK_EXIT, 1)
        receiveBuffer = configuration.receiveBuffer
        _ = curlew_set_long(curl, CURLOPT_BUFFERSIZE, receiveBuffer)
        _ = curlew_set_string(curl, CURLOPT_PROTOCOLS_STR, "http,https")
        _ = curlew_set_string(curl, CURLOPT_PROXY, "")
        _ = curlew_set_long(curl, CURLOPT_NOPROGRESS, 1)
        _ = curlew_set_long(curl, CURLOPT_FOLLOWLOCATION, 0)
        _ = curlew_set_long(curl, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1)
        spoken = configuration.version
        _ = curlew_set_long(curl, CURLOPT_HTTP_VERSION, spoken.option)
        // The gate is the only judge: libcurl's own host check would accept a bare common name, and anything but
        // VERIFYPEER 1 would make the gate's refusal advisory. Its roots are shared, so libcurl must not load any.
        _ = curlew_set_long(curl, CURLOPT_SSL_VERIFYPEER, 1)
        _ = curlew_set_long(curl, CURLOPT_SSL_VERIFYHOST, 0)
        _ = curlew_set_string(curl, CURLOPT_CAINFO, nil)
        _ = curlew_set_string(curl, CURLOPT_CAPATH, nil)
        _ = curlew_set_long(curl, CURLOPT_SSLVERSION, configuration.tlsOption)
        if !configuration.tls.negotiates { _ = curlew_set_long(curl, CURLOPT_SSL_ENABLE_ALPN, 0) }
        // Ours comes first: this one only looks when a connection is wanted, and counts in whole seconds.
        let idle = min(configuration.idleLifetime / 1_000_000_000, 1 << 30) + 2
        _ = curlew_set_long(curl, CURLOPT_MAXAGE_CONN, Int(idle))
        // Addresses come from the session, which forgets them before libcurl does.
        _ = curlew_set_long(curl, CURLOPT_DNS_CACHE_TIMEOUT, Int(2 * NameCache.lifetime / 1_000_000_000))
    }

    /// Sets what differs from the last transfer.
    ///
    /// False when libcurl is out of memory.
    func apply(_ transfer: EngineTransfer, url: ParsedURL, now: UInt64) -> Bool {
        var isFine = true
        func set(_ code: CURLcode) { if code != CURLE_OK { isFine = false } }
        let usedBy = self.url?.origin
        if self.url !== url {
            set(curlew_set_pointer(curl, CURLOPT_CURLU, UnsafeRawPointer(url.handle)))
            self.url = url
        }
        if url.origin.isSecure, usedBy !== url.origin || domain.live.sessions.areOld(sessions, now: now) {
            set(useSessions(of: url.origin, now: now))
        }
        // Where libcurl reads what it is offered; with TLS that is one record at a time.
        let isBulk = transfer.wire.collected == nil && !transfer.plan.isSecure
        let limits = domain.transport.limits
        let size = domain.transport.readSize(of: transfer, isBulk ? limits.bulkBuffer : limits.receiveBuffer)
        // libcurl 7.88 refuses while it has a buffer, which it keeps when a transfer ends before it had a connection.
        if receiveBuffer != size, curlew_set_long(curl, CURLOPT_BUFFERSIZE, size) == CURLE_OK { receiveBuffer = size }
        let lines = transfer.lines
        if self.lines !== lines {
            set(curlew_set_pointer(curl, CURLOPT_HTTPHEADER, lines.list))
            self.lines = lines
        }
        set(applyConnection(transfer.plan, isFresh: transfer.wire.isFresh, isByHTTP1: transfer.wire.isByHTTP1))
        set(applyAddresses(transfer.wire.name, url.origin, now))
        // The look-up has used some of it.
        let since = transfer.wire.connectingSince
        let spent = since < now ? now - since : 0
        let left = transfer.plan.connectTimeout.map { max(1_000_000, $0 &- min(spent, $0)) }
        let timeout = left.map { Int(Int32(clamping: $0 / 1_000_000)) } ?? Int(Int32.max)
        if connectTimeout != timeout {
            set(curlew_set_long(curl, CURLOPT_CONNECTTIMEOUT_MS, timeout))
            connectTimeout = timeout
        }
        if keepsSending {
            keepsSending = false
            set(curlew_set_long(curl, CURLOPT_KEEP_SENDING_ON_ERROR, 0))
        }
        let patience = Int(Int32(clamping: max(1, transfer.plan.continueTimeout / 1_000_000)))
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

    /// When the TLS sessions that the handle uses become too old.
    var sessionsEnd: UInt64 { domain.live.sessions.end(of: sessions) }

    /// TLS sessions of an origin are where all handles of the domain look for them.
    private func useSessions(of origin: Origin, now: UInt64) -> CURLcode {
        let sessions = domain.live.sessions.sessions(of: origin, now: now)
        if sessions === self.sessions { return CURLE_OK }
        let code = curlew_set_pointer(curl, CURLOPT_SHARE, sessions.share)
        // The share of before is let go only now that libcurl has done so.
        self.sessions = sessions
        return code
    }

    /// Which connections may serve the transfer.
    private func applyConnection(_ plan: borrowing TransferPlan, isFresh fresh: Bool, isByHTTP1: Bool) -> CURLcode {
        var code = CURLE_OK
        func set(_ option: CURLoption, _ value: Int) {
            let result = curlew_set_long(curl, option, value)
            if result != CURLE_OK { code = result }
        }
        let version = domain.transport.limits.version
        // Over TLS it is worth waiting whether a connection that is being made can be shared. Without, libcurl 7.88 would
        // hold everybody back until the first response of a host has ended, which may be never.
        let sharesPlain = version == .http2PriorKnowledge && domain.transport.sharesPlainHTTP2
        let alone = plan.ownsConnection || version == .http2PriorKnowledge && !plan.isSecure && !sharesPlain
        let waits = (plan.isSecure || sharesPlain) && !alone
        if waitsForShare != waits {
            set(CURLOPT_PIPEWAIT, waits ? 1 : 0)
            waitsForShare = waits
        }
        if isFresh != (fresh || alone) {
            isFresh.toggle()
            set(CURLOPT_FRESH_CONNECT, isFresh ? 1 : 0)
        }
        if isAlone != alone {
            isAlone.toggle()
            set(CURLOPT_FORBID_REUSE, isAlone ? 1 : 0)
        }
        // A connection of one's own speaks HTTP/1.1 where there is a choice: others could join one of HTTP/2.
        let spoken = (alone || isByHTTP1) && version != .http2PriorKnowledge ? .http1Only : version
        if self.spoken != spoken {
            set(CURLOPT_HTTP_VERSION, spoken.option)
            self.spoken = spoken
        }
        return code
    }

    /// Gives libcurl the addresses of the host, which it then takes from its cache.
    private func applyAddresses(_ name: ResolvedName?, _ origin: Origin, _ now: UInt64) -> CURLcode {
        guard let name, !domain.knows(name, origin, now: now) else { return CURLE_OK }
        let entry = "+\(origin.host):\(origin.port):\(name.addresses.joined(separator: ","))"
        let list = curl_slist_append(nil, entry)
        let code = curlew_set_pointer(curl, CURLOPT_RESOLVE, list)
        curl_slist_free_all(addresses)
        addresses = list
        return list == nil ? CURLE_OUT_OF_MEMORY : code
    }

    /// Tells a new socket what it must know before it connects, and where to.
    func prepare(_ descriptor: CInt, for address: UnsafeMutablePointer<curl_sockaddr>, to origin: Origin?) {
        let configuration = domain.transport.limits
        if configuration.tcp != EngineConfiguration.TCP() {
            var options = configuration.tcp.options
            curlew_tcp_set(descriptor, &options)
        }
        guard configuration.addressOrder != .asResolved, let origin, let name = transfer?.wire.name else { return }
        if opened.isEmpty {
            order = AddressOrder(name.addresses, configuration.addressOrder, turn: origin.turn)
            origin.turn += 1
        }
        order?.apply(to: address)
    }

    /// Counts out what was opened and never became a connection.
    func forgetOpened(in sockets: SocketTable) {
        if opened.isEmpty { return }
        sockets.vanished(opened)
        opened = []
    }

    /// Makes libcurl go on when one address did not answer: 7.88 turns to the next of the same family without connecting
    /// to it, and nothing would call it for seconds.
    ///
    /// False once nothing is left to be looked at.
    func keepConnecting() -> Bool {
        guard let transfer, !opened.isEmpty else {
            looked = 0
            return false
        }
        guard looked != opened.count, !opened.contains(where: { domain.transport.sockets.wants($0.descriptor) }) else {
            return true
        }
        looked = opened.count
        // A pause that is none makes libcurl look at the handle.
        let pauses =
            (transfer.wire.isReceivingPaused ? CURLPAUSE_RECV : 0)
            | (transfer.wire.isSendingPaused ? CURLPAUSE_SEND : 0)
        curl_easy_pause(curl, pauses ^ CURLPAUSE_SEND)
        curl_easy_pause(curl, pauses)
        return true
    }

    /// Makes libcurl go on with the body after an answer that is an error, inside the callback that hands it over.
    func keepSending() {
        keepsSending = true
        _ = curlew_set_long(curl, CURLOPT_KEEP_SENDING_ON_ERROR, 1)
    }

    /// Takes back what libcurl may not have read: a later transfer would bring old addresses into its cache as new ones.
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
            case "HEAD": (.head, "HEAD")
            // Content-Length: 0 is owed where the method gives a body a meaning (RFC 9110 §8.6).
            case "POST", "PUT", "PATCH": (.fields(count: 0), "POST")
            default: (.get, "GET")
            }
        case .bytes(let bytes) where !transfer.isBodyPulled: (.fields(count: bytes.count), "POST")
        case .bytes(let bytes): (.upload(length: Int64(bytes.count)), "PUT")
        case .pipe(let pipe): (.upload(length: pipe.length ?? -1), "PUT")
        }
    }

    private func take(_ shape: Shape, _ upload: TransferPlan.Upload) -> CURLcode {
        // Every change goes through GET, which drops what the other shapes leave behind.
        if self.shape.hasFields { _ = curlew_set_pointer(curl, CURLOPT_POSTFIELDS, nil) }
        let reset = curlew_set_long(curl, CURLOPT_HTTPGET, 1)
        // libcurl keeps the buffer only while it sends a body.
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

    /// Whether libcurl wrote something about the failure.
    var hasDetail: Bool { detail.pointee != 0 }

    /// Whether a stream that failed was closed by the server without an error, in libcurl's words or for want of them.
    var isClosedCleanly: Bool { !hasDetail || String(cString: detail).contains("closed cleanly, but") }

    /// What libcurl wrote about the last failure, or its text for the code.
    func text(for code: CURLcode) -> String {
        detail.pointee != 0 ? String(cString: detail) : String(cString: curl_easy_strerror(code))
    }
}

extension EasyHandle.Shape {
    fileprivate var hasFields: Bool { if case .fields = self { true } else { false } }

    /// Whether it is a body of unknown length, or one that does not fit into libcurl's usual buffer.
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
        }
    }
}

extension EngineConfiguration.TCP {
    fileprivate var options: curlew_tcp_options {
        curlew_tcp_options(
            keep_idle: keepAliveIdle, keep_interval: keepAliveInterval, keep_count: keepAliveCount,
            user_timeout: userTimeout, fast_open: fastOpen)
    }
}

extension EngineConfiguration {
    fileprivate var tlsOption: Int {
        let minimum = minimumTLS == .v1_3 ? CURL_SSLVERSION_TLSv1_3 : CURL_SSLVERSION_TLSv1_2
        let maximum =
            switch maximumTLS {
            case .v1_2: CURL_SSLVERSION_MAX_TLSv1_2
            case .v1_3: CURL_SSLVERSION_MAX_TLSv1_3
            case nil: CURL_SSLVERSION_MAX_NONE
            }
        return Int(minimum) | Int(maximum)
    }
}
