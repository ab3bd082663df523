// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// CurlTransport runs transfers on the loop thread: it admits them, gives them handles, executes commands, and detects
// ends and exceeded limits. It is a part of the session actor; no other thread touches it.

internal import CurlewShims
internal import Glibc
internal import CurlewSupport

package final class CurlTransport: Transport {
    /// The loop keeps its transport while its thread runs, and the thread keeps the loop.
    unowned(unsafe) let loop: EventLoop
    let limits: EngineConfiguration
    let sockets: SocketTable
    let streams = StreamEnds()
    /// Whether transfers can share an HTTP/2 connection without TLS; this depends on libcurl's version.
    let sharesPlainHTTP2 = CurlVersion.current.sharesPlainHTTP2
    let deliveries: Deliveries
    /// The monotonic clock in nanoseconds, read once a turn.
    var now: UInt64 { deliveries.now }

    #if !DEBUG
    @exclusivity(unchecked)
    #endif
    var origins: Origins
    #if !DEBUG
    @exclusivity(unchecked)
    #endif
    var names = NameCache()
    #if !DEBUG
    @exclusivity(unchecked)
    #endif
    var domains: [CurlDomain?] = []
    #if !DEBUG
    @exclusivity(unchecked)
    #endif
    var inUse: [EasyHandle] = []
    /// Handles that connect to a host with several addresses.
    #if !DEBUG
    @exclusivity(unchecked)
    #endif
    var connecting: [EasyHandle] = []
    /// The next time at which a handle in `connecting` attempts another address.
    private var raceAt = Monotonic.never
    /// The limits shared by all transfers, the transfers that wait for them, and when the first one may continue.
    var throttle: Throttle
    var limited: [EngineTransfer] = []
    var releaseAt = Monotonic.never
    /// Handles whose requests are sent again after a pause, and when the first pause ends.
    #if !DEBUG
    @exclusivity(unchecked)
    #endif
    var pausedRetries: [(handle: EasyHandle, until: UInt64)] = []
    var firstRetryAt = Monotonic.never
    /// Origins that can now run more transfers.
    #if !DEBUG
    @exclusivity(unchecked)
    #endif
    var grownOrigins: [Origin] = []
    /// Origins with TLS whose connections cannot be shared, which the handshake or a response has shown.
    private var unsharedOrigins: [Origin] = []
    /// Transfers without a slot, by their identifier.
    #if !DEBUG
    @exclusivity(unchecked)
    #endif
    var waiting: [UInt64: EngineTransfer] = [:]
    /// Transfers with a slot whose host name is being looked up.
    #if !DEBUG
    @exclusivity(unchecked)
    #endif
    var resolving: [UInt64: EngineTransfer] = [:]
    /// Origins with waiting transfers and possibly a free slot, ordered by their first waiting transfers.
    #if !DEBUG
    @exclusivity(unchecked)
    #endif
    var ready = ReadyOrigins()
    var isAdmitting = false
    /// The number of connections that all transfers with a slot need.
    #if !DEBUG
    @exclusivity(unchecked)
    #endif
    var demand = 0
    var lastSequenceNumber: UInt64 = 0
    var sweepAt = Monotonic.never
    /// The next time at which HTTP/2 connections are checked for silence.
    var pingAt = Monotonic.never
    var sweptAt: UInt64 = 0
    /// libcurl was called outside its events, and may have results.
    var wantsTurn = false

    init(loop: EventLoop, deliveries: Deliveries, epoll: CInt) {
        self.loop = loop
        self.deliveries = deliveries
        limits = loop.configuration
        throttle = limits.throttle
        origins = Origins(streamsPerConnection: limits.streamsPerConnection)
        sockets = SocketTable(
            epoll: epoll, idleLifetime: limits.idleLifetime, lifetime: limits.connectionLifetime,
            mostRequests: limits.requestsPerConnection)
        streams.start()
        if let pings = limits.pings {
            streams.didAnswer = { [unowned self] session in
                sockets.recordAnswer(of: session)
                pingAt = min(pingAt, now &+ pings.interval)
            }
        }
    }

    deinit {
        streams.stop()
        withdrawLookUps()
    }

    // MARK: Turns

    package func beginTurn(now: UInt64) { sockets.now = now }

    package func socketIsReady(token: UInt64, mask: UInt32) {
        let (descriptor, number) = SocketTable.parts(of: token)
        if !connecting.isEmpty, connecting.contains(where: { $0.rivalIsReady(descriptor) }) { return }
        guard Int(number) < domains.count, let domain = domains[Int(number)] else { return }
        if let pings = limits.pings, mask & curlew_readable != 0 {
            sockets.recordBytes(from: descriptor)
            pingAt = min(pingAt, now &+ pings.interval)
        }
        guard sockets.wants(descriptor) else { return sockets.handleUnexpectedEvent(descriptor, mask) }
        let progress = deliveries.progress
        var action: CInt = 0
        if mask & (curlew_readable | curlew_hung_up | curlew_peer_closed) != 0 { action |= CURL_CSELECT_IN }
        if mask & curlew_writable != 0 { action |= CURL_CSELECT_OUT }
        if mask & curlew_failed != 0 { action |= CURL_CSELECT_ERR }
        var running: CInt = 0
        curl_multi_socket_action(domain.multi, descriptor, action, &running)
        guard deliveries.progress == progress else { return sockets.moved(descriptor) }
        if action == CURL_CSELECT_OUT { return sockets.recordFutileWrite(descriptor, now: realTime(at: now)) }
        sockets.moved(descriptor)
    }

    /// Handles due timers, ended transfers, arrived bytes and passed limits, in this order.
    package func advance(now: UInt64) {
        wantsTurn = false
        let realTime = realTime(at: now)
        for number in domains.indices where isTimerDue(number, realTime) { domains[number]?.fireIfDue(now: realTime) }
        if !connecting.isEmpty {
            connecting.removeAll { !$0.keepConnecting() }
            raceAt = connecting.reduce(Monotonic.never) { min($0, $1.raceAt) }
        }
        collectEnded()
        deliveries.flush(now) { transfer in
            if transfer.checkEarlyResponse(), let handle = transfer.loopState.handle { end(handle, nil) }
        }
        if now >= releaseAt { release(now) }
        if now >= firstRetryAt { endRetryPauses(now) }
        if !unsharedOrigins.isEmpty { releaseWaiting() }
        if !grownOrigins.isEmpty { admitToGrownOrigins() }
        if now >= sweepAt { sweep(now) }
        if now >= pingAt, let pings = limits.pings { checkPings(pings) }
        if realTime >= sockets.rearmAt { sockets.rearm(realTime) }
        if now >= sockets.expireAt { sockets.expire() }
    }

    /// The time of the system in a turn: timers of libcurl and sockets keep that time also beside a stub of the clock.
    private func realTime(at now: UInt64) -> UInt64 { loop.clock.stub == nil ? now : Monotonic.now() }

    // Loops over domains use their numbers, because a loop over the array counts a reference to each domain.

    private func isTimerDue(_ number: Int, _ now: UInt64) -> Bool {
        if let domain = domains[number] { domain.deadline <= now } else { false }
    }

    private func isActive(_ number: Int) -> Bool {
        if let domain = domains[number] { domain.active > 0 } else { false }
    }

    private func collectEnded() {
        for number in domains.indices where isActive(number) {
            // The reference keeps a domain that is retired meanwhile.
            guard let domain = domains[number] else { continue }
            var left: CInt = 0
            while let message = curl_multi_info_read(domain.multi, &left) {
                guard message.pointee.msg == CURLMSG_DONE, let easy = message.pointee.easy_handle,
                    let context = curlew_get_private(easy)
                else { continue }
                let handle = Unmanaged<EasyHandle>.fromOpaque(context).takeUnretainedValue()
                guard let transfer = handle.transfer else { continue }
                if let failure = failure(of: handle, transfer, message.pointee.data.result) {
                    if restart(handle, transfer, after: failure) { continue }
                    end(transfer.loopState.handle ?? handle, failure, isCut: false)
                } else {
                    end(handle, transfer, nil, isCut: false)
                }
            }
        }
    }

    package var deadline: UInt64 {
        if wantsTurn { return 0 }
        let first = min(sweepAt, releaseAt, firstRetryAt, pingAt, sockets.expireAt)
        var real = min(sockets.rearmAt, raceAt)
        for number in domains.indices { if let domain = domains[number] { real = min(real, domain.deadline) } }
        if loop.clock.stub == nil { return min(first, real) }
        return real <= Monotonic.now() ? 0 : first
    }

    package var isIdle: Bool { inUse.isEmpty && waiting.isEmpty && resolving.isEmpty }

    /// Records, inside a callback of libcurl, that transfers of an origin share connections.
    func markShared(_ origin: Origin) {
        origin.speaksHTTP2 = true
        share(origin)
    }

    private func share(_ origin: Origin) {
        guard !origin.isShared, origin.isSecure || sharesPlainHTTP2 else { return }
        recount(origin) { origin.isShared = true }
        grownOrigins.append(origin)
    }

    /// Records that transfers of an origin do not share connections any more.
    func markUnshared(_ origin: Origin) {
        guard origin.isShared else { return }
        recount(origin) { origin.isShared = false }
        if origin.isSecure { unsharedOrigins.append(origin) }
    }

    /// Records, inside a callback of libcurl, that a transfer uses a new connection.
    func recordConnection(_ transfer: EngineTransfer, to origin: Origin) {
        if transfer.loopState.opensConnection { recount(origin) { origin.forgetOpening(transfer) } }
        if !origin.isKnown {
            origin.isKnown = true
            var facts = curlew_tls_facts()
            if let handle = transfer.loopState.handle, curlew_tls_read(handle.curl, &facts),
                facts.http2 || facts.http3
            {
                share(origin)
            } else if origin.isSecure {
                unsharedOrigins.append(origin)
            }
        }
        if origin.waiting > 0 { grownOrigins.append(origin) }
    }

    /// Makes libcurl open connections for the transfers that waited to share one.
    ///
    /// Newer versions of libcurl would make them wait until the first response has ended.
    private func releaseWaiting() {
        let origins = unsharedOrigins
        unsharedOrigins = []
        guard CurlVersion.current.keepsWaitingForShare else { return }
        for handle in inUse where origins.contains(where: { $0 === handle.transfer?.loopState.origin }) {
            if handle.stopWaitingForShare() { wantsTurn = true }
        }
    }

    private func admitToGrownOrigins() {
        let origins = grownOrigins
        grownOrigins = []
        for origin in origins { ready.nominate(origin) }
        admitReady()
    }

    // MARK: Commands

    package func remove(_ transfer: EngineTransfer, _ reason: EngineFailure.Reason) {
        if let handle = transfer.loopState.handle {
            end(handle, EngineFailure(reason, phase: phase(of: handle, transfer)))
        } else if resolving[transfer.id] != nil {
            withdraw(transfer)
            fail(transfer, reason, .resolving)
        } else {
            if let origin = transfer.loopState.origin { leaveQueue(transfer, origin) }
            fail(transfer, reason, .queued)
            if !ready.isEmpty { admitReady() }
        }
    }

    package func adjust(_ transfer: EngineTransfer) {
        transfer.sendPauseEvent()
        guard transfer.loopState.handle != nil else {
            guard let origin = transfer.loopState.origin, waiting[transfer.id] != nil else { return }
            if transfer.wantsPause {
                suspendWaiting(transfer, origin)
            } else if !transfer.loopState.isInQueue || transfer.priorityNow != transfer.loopState.priority {
                queue(transfer, origin)
            }
            return admitReady()
        }
        transfer.applyRequests(deliveries)
        scheduleSweep(transfer)
    }

    // MARK: For the loop

    package var allTransfers: [EngineTransfer] {
        inUse.compactMap(\.transfer) + Array(resolving.values) + Array(waiting.values)
    }

    package func resetConnections() {
        names.forget()
        for domain in domains { if let domain { retire(domain) } }
    }
}
