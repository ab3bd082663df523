// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// CurlTransport: what the loop thread does with transfers. It admits them, lends them handles, carries out orders,
// notices ends and limits. Part of the session actor; nothing in it is ever touched by another thread.

internal import CurlewShims
internal import Glibc

package final class CurlTransport {
    /// The loop keeps its transport as long as its thread runs, and the thread the loop.
    unowned(unsafe) let loop: EventLoop
    let limits: EngineConfiguration
    let sockets: SocketTable
    let streams = StreamEnds()
    /// Whether transfers can share a connection of HTTP/2 without TLS, by libcurl's version.
    let sharesPlainHTTP2 = CurlVersion.current.sharesPlainHTTP2
    /// For what comes first of a body, and for what follows when there is more than that.
    let slabs = SlabPool(size: 64 << 10, most: 16)
    let largeSlabs = SlabPool(size: 256 << 10, most: 8)
    /// The clock, read once a turn.
    var now: UInt64 { clock.pointee }
    /// Where it stands, for those who read it often.
    var clock: UnsafePointer<UInt64> { UnsafePointer(turnClock) }
    private let turnClock: UnsafeMutablePointer<UInt64>

    #if !DEBUG
    @exclusivity(unchecked)
    #endif
    var origins: Origins
    var names = NameCache()
    #if !DEBUG
    @exclusivity(unchecked)
    #endif
    var domains: [CurlDomain?] = []
    #if !DEBUG
    @exclusivity(unchecked)
    #endif
    var inUse: [EasyHandle] = []
    /// Those that connect to one of several addresses.
    var connecting: [EasyHandle] = []
    #if !DEBUG
    @exclusivity(unchecked)
    #endif
    private var dirty: [EngineTransfer] = []
    /// Ends of this turn of which nobody has been told.
    #if !DEBUG
    @exclusivity(unchecked)
    #endif
    var ended: [EngineTransfer.Told] = []
    /// Transfers whose watchers are owed news that came too soon after the last, and when to tell them.
    private var owing: [EngineTransfer] = []
    private var oweAt = Monotonic.never
    /// Transfers that have received enough for this turn.
    private var turnsOver: [EngineTransfer] = []
    /// What all transfers together may take, those that have taken too much, and when the first may go on.
    var throttle: Throttle
    var limited: [EngineTransfer] = []
    var releaseAt = Monotonic.never
    /// Handles that send their requests again after a while, and when the first of them does.
    var resting: [(handle: EasyHandle, until: UInt64)] = []
    var restsUntil = Monotonic.never
    /// Origins that can take more than was thought.
    var widened: [Origin] = []
    /// Transfers without a place.
    var waiting: [UInt64: EngineTransfer] = [:]
    /// Transfers with a place whose host's name is being looked up.
    var resolving: [UInt64: EngineTransfer] = [:]
    /// Origins where somebody waits and there was a place, by who is first in their lines.
    #if !DEBUG
    @exclusivity(unchecked)
    #endif
    var ready = CalledOrigins()
    var isAdmitting = false
    /// How many connections the transfers with a place need.
    #if !DEBUG
    @exclusivity(unchecked)
    #endif
    var demand = 0
    var lastTicket: UInt64 = 0
    var sweepAt = Monotonic.never
    var sweptAt: UInt64 = 0
    /// libcurl was called out of turn, and may have something to say.
    var wantsTurn = false
    /// Grows with every call of libcurl's that moved something.
    var progress: UInt64 = 0
    private(set) var isClosed = false
    /// Nothing may continue either: the time is over, or everything has ended.
    private(set) var isOver = false
    /// Somebody waits until nothing is left to do.
    var awaitsIdle = false
    /// Who watches all transfers.
    var witness: (any EngineWitness)?
    private var closers: [UnsafeContinuation<Void, Never>] = []
    private var closeAt = Monotonic.never

    init(loop: EventLoop, epoll: CInt) {
        self.loop = loop
        turnClock = .allocate(capacity: 1)
        turnClock.initialize(to: Monotonic.now())
        limits = loop.configuration
        throttle = Throttle(limits.bandwidth)
        origins = Origins(streamsPerConnection: limits.streamsPerConnection)
        sockets = SocketTable(
            epoll: epoll, idleLifetime: limits.idleLifetime, lifetime: limits.connectionLifetime)
        witness = loop.witnessOfAll
        streams.start()
    }

    deinit {
        streams.stop()
        turnClock.deallocate()
    }

    // MARK: Turns

    func beginTurn(now: UInt64) {
        turnClock.pointee = now
        sockets.now = now
        if !turnsOver.isEmpty { resumeTurns() }
    }

    /// Whether a transfer has received so much in this turn that the others have theirs first.
    ///
    /// libcurl 7.88 reads on as long as something is there, up to a hundred times.
    func isTurnOver(for transfer: EngineTransfer, _ count: Int) -> Bool {
        if transfer.wire.turn != now {
            transfer.wire.turn = now
            transfer.wire.inTurn = 0
        }
        transfer.wire.inTurn += count
        guard transfer.wire.inTurn >= limits.turn, !transfer.wire.isTurnOver else { return false }
        transfer.wire.isTurnOver = true
        turnsOver.append(transfer)
        return true
    }

    private func resumeTurns() {
        let transfers = turnsOver
        turnsOver = []
        for transfer in transfers {
            transfer.wire.isTurnOver = false
            transfer.applyPauses()
        }
    }

    func socketIsReady(token: UInt64, mask: UInt32) {
        let (descriptor, number) = SocketTable.parts(of: token)
        guard Int(number) < domains.count, let domain = domains[Int(number)] else { return }
        guard sockets.wants(descriptor) else { return sockets.stray(descriptor, mask) }
        let progress = self.progress
        var action: CInt = 0
        if mask & (curlew_readable | curlew_hung_up | curlew_peer_closed) != 0 { action |= CURL_CSELECT_IN }
        if mask & curlew_writable != 0 { action |= CURL_CSELECT_OUT }
        if mask & curlew_failed != 0 { action |= CURL_CSELECT_ERR }
        var running: CInt = 0
        curl_multi_socket_action(domain.multi, descriptor, action, &running)
        guard self.progress == progress else { return sockets.moved(descriptor) }
        if action == CURL_CSELECT_OUT { return sockets.isVainlyWritable(descriptor, now: now) }
        sockets.moved(descriptor)
    }

    /// Due timers, ended transfers, arrived bytes, passed limits, in that order.
    func advance(now: UInt64) {
        wantsTurn = false
        for domain in domains { domain?.fireIfDue(now: now) }
        if !connecting.isEmpty { connecting.removeAll { !$0.keepConnecting() } }
        collectEnded()
        if !dirty.isEmpty { flush(now) }
        if now >= oweAt { settle(now) }
        if now >= releaseAt { release(now) }
        if now >= restsUntil { endRests(now) }
        if !widened.isEmpty { admitWidened() }
        if now >= sweepAt { sweep(now) }
        if now >= sockets.rearmAt { sockets.rearm(now) }
        if now >= sockets.expireAt { sockets.expire() }
        if now >= closeAt { cancelAll(EngineFailure.Reason.closed) }
        if !ended.isEmpty { tellEnded() }
    }

    private func collectEnded() {
        for domain in domains {
            guard let domain, domain.active > 0 else { continue }
            var left: CInt = 0
            while let message = curl_multi_info_read(domain.multi, &left) {
                guard message.pointee.msg == CURLMSG_DONE, let easy = message.pointee.easy_handle,
                    let context = curlew_get_private(easy)
                else { continue }
                let handle = Unmanaged<EasyHandle>.fromOpaque(context).takeUnretainedValue()
                guard let transfer = handle.transfer else { continue }
                let failure = failure(of: handle, transfer, message.pointee.data.result)
                if let failure, restart(handle, transfer, after: failure) { continue }
                end(transfer.wire.handle ?? handle, failure, isCut: false)
            }
        }
    }

    /// Milliseconds until something is due, rounded up; -1 for nothing.
    func timeout(now: UInt64) -> CInt {
        if wantsTurn || !turnsOver.isEmpty || !dirty.isEmpty { return 0 }
        var first = min(sweepAt, closeAt, oweAt, releaseAt, restsUntil, sockets.rearmAt, sockets.expireAt)
        for domain in domains { if let domain, domain.deadline < first { first = domain.deadline } }
        guard first != Monotonic.never else { return -1 }
        return first <= now ? 0 : CInt(clamping: (first - now + 999_999) / 1_000_000)
    }

    var isIdle: Bool { inUse.isEmpty && waiting.isEmpty && resolving.isEmpty }

    func markDirty(_ transfer: EngineTransfer) {
        progress &+= 1
        guard !transfer.wire.isDirty else { return }
        transfer.wire.isDirty = true
        dirty.append(transfer)
    }

    private func flush(_ now: UInt64) {
        var batch: [EngineTransfer] = []
        swap(&batch, &dirty)
        for transfer in batch {
            transfer.wire.isDirty = false
            guard let handle = transfer.wire.handle else { continue }
            transfer.tellOwedSending()
            transfer.publish(now)
            if transfer.isAnsweredEarly { end(handle, nil) }
        }
        batch.removeAll(keepingCapacity: true)
        if dirty.isEmpty { swap(&batch, &dirty) }
    }

    /// Makes a transfer's watchers hear of what has come once `time` is there.
    func owe(_ transfer: EngineTransfer, at time: UInt64) {
        oweAt = min(oweAt, time)
        guard !transfer.wire.isOwing else { return }
        transfer.wire.isOwing = true
        owing.append(transfer)
    }

    private func settle(_ now: UInt64) {
        let late = owing
        owing = []
        oweAt = Monotonic.never
        for transfer in late {
            transfer.wire.isOwing = false
            if transfer.wire.handle != nil { transfer.publish(now) }
        }
    }

    /// Takes note, inside a callback of libcurl, that an origin's transfers share connections.
    func widen(_ origin: Origin) {
        origin.speaksHTTP2 = true
        share(origin)
    }

    private func share(_ origin: Origin) {
        guard !origin.isShared, origin.isSecure || sharesPlainHTTP2 else { return }
        recount(origin) { origin.isShared = true }
        widened.append(origin)
    }

    /// Takes note that an origin does not let transfers share connections any more.
    func narrow(_ origin: Origin) { if origin.isShared { recount(origin) { origin.isShared = false } } }

    /// Takes note, inside a callback of libcurl, that a transfer has a connection that was not there before.
    func hasConnected(_ transfer: EngineTransfer, to origin: Origin) {
        if transfer.wire.opensConnection { recount(origin) { origin.forgetOpening(transfer) } }
        if !origin.isKnown {
            origin.isKnown = true
            var facts = curlew_tls_facts()
            if let handle = transfer.wire.handle, curlew_tls_read(handle.curl, &facts), facts.http2 { share(origin) }
        }
        if origin.waiting > 0 { widened.append(origin) }
    }

    private func admitWidened() {
        let origins = widened
        widened = []
        for origin in origins { ready.call(origin) }
        admitReady()
    }

    // MARK: Orders

    func cancel(_ transfer: EngineTransfer) { remove(transfer, .cancelled) }

    /// Ends a transfer wherever it stands.
    func remove(_ transfer: EngineTransfer, _ reason: EngineFailure.Reason) {
        if let handle = transfer.wire.handle {
            end(handle, EngineFailure(reason, phase: phase(of: handle, transfer)))
        } else if resolving[transfer.id] != nil {
            withdraw(transfer)
            fail(transfer, reason, .resolving)
        } else {
            if let origin = transfer.wire.origin { leaveLine(transfer, origin) }
            fail(transfer, reason, .queued)
            if !ready.isEmpty { admitReady() }
        }
    }

    /// Looks again at everything others may have changed: pause, the reader, the body's producer, priority.
    func adjust(_ transfer: EngineTransfer) {
        transfer.tellPause()
        guard transfer.wire.handle != nil else {
            guard let origin = transfer.wire.origin, waiting[transfer.id] != nil else { return }
            if transfer.wantsPause {
                stepAside(transfer, origin)
            } else if !transfer.wire.isInLine || transfer.priorityNow != transfer.wire.priority {
                queue(transfer, origin)
            }
            return admitReady()
        }
        let wishes = transfer.wishes
        if !wishes.collects, let chunk = transfer.wire.collected?.takeChunk() {
            transfer.wire.chunks.append(chunk)
            transfer.wire.unpublished += chunk.count
        }
        if !wishes.collects { transfer.wire.collected = nil }
        if transfer.wire.isUserPaused && !wishes.isPaused { transfer.wire.resumedAt = now }
        transfer.wire.isUserPaused = wishes.isPaused
        transfer.wire.isFlowPaused = wishes.isFlowPaused
        transfer.wire.isStarved = false
        markDirty(transfer)
        transfer.wire.buffered = wishes.buffered
        transfer.applyPauses()
        scheduleSweep(transfer)
    }

    // MARK: What the session asks, on its loop

    var everyone: [EngineTransfer] { inUse.compactMap(\.transfer) + Array(resolving.values) + Array(waiting.values) }

    package var snapshots: [EngineTransfer.Snapshot] {
        everyone.sorted { $0.id < $1.id }.map { transfer in
            if transfer.wire.handle != nil { transfer.publish(now) }
            return transfer.snapshot
        }
    }

    /// Closes idle connections and forgets TLS sessions; running transfers keep theirs until they end.
    package func resetConnections() {
        names.forget()
        for domain in domains { if let domain { retire(domain) } }
    }

    /// Refuses new transfers, then resumes `done` when the running ones have ended and nothing is held, at the latest after
    /// `limit`.
    func shutDown(within limit: UInt64?, done: UnsafeContinuation<Void, Never>) {
        isClosed = true
        loop.holds.withLock { $0.isClosing = true }
        closers.append(done)
        if limit == 0 { cancelAll(.closed) } else if let limit { closeAt = min(closeAt, Monotonic.now() &+ limit) }
    }

    private func cancelAll(_ reason: EngineFailure.Reason) {
        closeAt = Monotonic.never
        isOver = true
        // Those who wait first, or the places of the others would be given to them.
        for transfer in everyone.reversed() { remove(transfer, reason) }
    }

    /// Ends what is paused when nobody is left who could resume it.
    func abandonPaused() {
        for transfer in everyone.reversed() where transfer.wantsPause { remove(transfer, .closed) }
    }

    /// Tells those who wait for the end of everything, once a turn, when no record is left to be carried out: one of them
    /// could be the next run of what has just ended.
    func tellIfIdle() {
        guard awaitsIdle || !closers.isEmpty, isIdle else { return }
        let isQuiet = loop.isQuiet
        if isQuiet || isOver { finishClosing() }
        if isQuiet && awaitsIdle {
            awaitsIdle = false
            loop.tellIdle()
        }
    }

    func finishClosing() {
        guard isClosed else { return }
        isOver = true
        resetConnections()
        closeAt = Monotonic.never
        let done = closers
        closers = []
        for closer in done { closer.resume() }
    }

    /// Frees everything, on the loop thread, after the last transfer.
    func close() {
        resetConnections()
        dirty = []
    }
}
