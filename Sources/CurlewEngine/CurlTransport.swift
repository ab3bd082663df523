// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// CurlTransport runs transfers on the loop thread: it admits them, gives them handles, executes commands, and detects
// ends and exceeded limits. It is a part of the session actor; no other thread touches it.

internal import CurlewShims
internal import Glibc
internal import CurlewSupport

package final class CurlTransport {
    /// The loop keeps its transport while its thread runs, and the thread keeps the loop.
    unowned(unsafe) let loop: EventLoop
    let limits: EngineConfiguration
    let sockets: SocketTable
    let streams = StreamEnds()
    /// Whether transfers can share an HTTP/2 connection without TLS; this depends on libcurl's version.
    let sharesPlainHTTP2 = CurlVersion.current.sharesPlainHTTP2
    /// Small slabs hold the first bytes of a body, large ones the rest of a body that arrives fast.
    let slabs = SlabPool(size: 64 << 10, most: 16)
    let largeSlabs = SlabPool(size: 256 << 10, most: 8)
    /// The monotonic clock in nanoseconds, read once a turn.
    var now: UInt64 { clock.pointee }
    /// A pointer to the clock, for code that reads it often.
    var clock: UnsafePointer<UInt64> { UnsafePointer(turnClock) }
    private let turnClock: UnsafeMutablePointer<UInt64>

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
    #if !DEBUG
    @exclusivity(unchecked)
    #endif
    private var dirty: [EngineTransfer] = []
    /// Tasks that wait for ends of this turn and have not been resumed yet.
    #if !DEBUG
    @exclusivity(unchecked)
    #endif
    var ended: [Waiter] = []
    /// Transfers that have to report progress later because their last report is too recent, and the time of the first
    /// report.
    private var deferredProgress: [EngineTransfer] = []
    private var deferredUntil = Monotonic.never
    /// Transfers that have received their maximum for this turn.
    private var pausedForTurn: [EngineTransfer] = []
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
    var sweptAt: UInt64 = 0
    /// libcurl was called outside its events, and may have results.
    var wantsTurn = false
    /// Incremented by every callback of libcurl that moved bytes.
    var progress: UInt64 = 0
    private(set) var isClosed = false
    /// The loop accepts no transfers at all: its time limit has passed, or all transfers have ended.
    private(set) var isOver = false
    /// `EventLoop.idle()` waits until no work is left.
    var awaitsIdle = false
    /// The observer of all transfers.
    var observer: (any EngineObserver)?
    #if !DEBUG
    @exclusivity(unchecked)
    #endif
    private var closers: [UnsafeContinuation<Void, Never>] = []
    private var closeAt = Monotonic.never

    init(loop: EventLoop, epoll: CInt) {
        self.loop = loop
        turnClock = .allocate(capacity: 1)
        turnClock.initialize(to: Monotonic.now())
        limits = loop.configuration
        throttle = limits.throttle
        origins = Origins(streamsPerConnection: limits.streamsPerConnection)
        sockets = SocketTable(
            epoll: epoll, idleLifetime: limits.idleLifetime, lifetime: limits.connectionLifetime)
        observer = loop.observerOfAll
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
        if !pausedForTurn.isEmpty { resumeTurns() }
    }

    /// Returns whether a transfer has received its maximum for this turn, and registers it to be resumed in the next
    /// turn.
    ///
    /// libcurl 7.88 reads up to a hundred times in one call while bytes are available.
    func endTurnIfFull(for transfer: EngineTransfer, _ count: Int) -> Bool {
        if transfer.loopState.turn != now {
            transfer.loopState.turn = now
            transfer.loopState.inTurn = 0
        }
        transfer.loopState.inTurn += count
        guard transfer.loopState.inTurn >= limits.turn, !transfer.loopState.isTurnOver else { return false }
        transfer.loopState.isTurnOver = true
        pausedForTurn.append(transfer)
        return true
    }

    private func resumeTurns() {
        let transfers = pausedForTurn
        pausedForTurn = []
        for transfer in transfers {
            transfer.loopState.isTurnOver = false
            transfer.applyPauses()
        }
    }

    func socketIsReady(token: UInt64, mask: UInt32) {
        let (descriptor, number) = SocketTable.parts(of: token)
        guard Int(number) < domains.count, let domain = domains[Int(number)] else { return }
        guard sockets.wants(descriptor) else { return sockets.handleUnexpectedEvent(descriptor, mask) }
        let progress = self.progress
        var action: CInt = 0
        if mask & (curlew_readable | curlew_hung_up | curlew_peer_closed) != 0 { action |= CURL_CSELECT_IN }
        if mask & curlew_writable != 0 { action |= CURL_CSELECT_OUT }
        if mask & curlew_failed != 0 { action |= CURL_CSELECT_ERR }
        var running: CInt = 0
        curl_multi_socket_action(domain.multi, descriptor, action, &running)
        guard self.progress == progress else { return sockets.moved(descriptor) }
        if action == CURL_CSELECT_OUT { return sockets.recordFutileWrite(descriptor, now: now) }
        sockets.moved(descriptor)
    }

    /// Handles due timers, ended transfers, arrived bytes and passed limits, in this order.
    func advance(now: UInt64) {
        wantsTurn = false
        for number in domains.indices where isTimerDue(number, now) { domains[number]?.fireIfDue(now: now) }
        if !connecting.isEmpty { connecting.removeAll { !$0.keepConnecting() } }
        collectEnded()
        if !dirty.isEmpty { flush(now) }
        if now >= deferredUntil { flushProgress(now) }
        if now >= releaseAt { release(now) }
        if now >= firstRetryAt { endRetryPauses(now) }
        if !grownOrigins.isEmpty { admitToGrownOrigins() }
        if now >= sweepAt { sweep(now) }
        if now >= sockets.rearmAt { sockets.rearm(now) }
        if now >= sockets.expireAt { sockets.expire() }
        if now >= closeAt { cancelAll(EngineFailure.Reason.closed) }
        if !ended.isEmpty { resumeEnded() }
    }

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

    /// Returns the milliseconds until the next deadline, rounded up; 0 for pending work, -1 for no deadline.
    func timeout(now: UInt64) -> CInt {
        if wantsTurn || !pausedForTurn.isEmpty || !dirty.isEmpty { return 0 }
        var first = min(sweepAt, closeAt, deferredUntil, releaseAt, firstRetryAt, sockets.rearmAt, sockets.expireAt)
        for number in domains.indices { if let domain = domains[number] { first = min(first, domain.deadline) } }
        guard first != Monotonic.never else { return -1 }
        return first <= now ? 0 : CInt(clamping: (first - now + 999_999) / 1_000_000)
    }

    var isIdle: Bool { inUse.isEmpty && waiting.isEmpty && resolving.isEmpty }

    func markDirty(_ transfer: EngineTransfer) {
        progress &+= 1
        guard !transfer.loopState.isDirty else { return }
        transfer.loopState.isDirty = true
        dirty.append(transfer)
    }

    private func flush(_ now: UInt64) {
        if dirty.count == 1 { return flush(dirty.removeLast(), now) }
        var batch: [EngineTransfer] = []
        swap(&batch, &dirty)
        for transfer in batch { flush(transfer, now) }
        batch.removeAll(keepingCapacity: true)
        if dirty.isEmpty { swap(&batch, &dirty) }
    }

    private func flush(_ transfer: EngineTransfer, _ now: UInt64) {
        transfer.loopState.isDirty = false
        guard let handle = transfer.loopState.handle else { return }
        transfer.sendDeferredSentEvent()
        transfer.publish(now)
        if transfer.checkEarlyResponse() { end(handle, nil) }
    }

    /// Publishes a transfer's bytes and progress at `time`.
    func deferProgress(of transfer: EngineTransfer, until time: UInt64) {
        deferredUntil = min(deferredUntil, time)
        guard !transfer.loopState.isProgressDeferred else { return }
        transfer.loopState.isProgressDeferred = true
        deferredProgress.append(transfer)
    }

    private func flushProgress(_ now: UInt64) {
        let late = deferredProgress
        deferredProgress = []
        deferredUntil = Monotonic.never
        for transfer in late {
            transfer.loopState.isProgressDeferred = false
            if transfer.loopState.handle != nil { transfer.publish(now) }
        }
    }

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
    func markUnshared(_ origin: Origin) { if origin.isShared { recount(origin) { origin.isShared = false } } }

    /// Records, inside a callback of libcurl, that a transfer uses a new connection.
    func recordConnection(_ transfer: EngineTransfer, to origin: Origin) {
        if transfer.loopState.opensConnection { recount(origin) { origin.forgetOpening(transfer) } }
        if !origin.isKnown {
            origin.isKnown = true
            var facts = curlew_tls_facts()
            if let handle = transfer.loopState.handle, curlew_tls_read(handle.curl, &facts), facts.http2 {
                share(origin)
            }
        }
        if origin.waiting > 0 { grownOrigins.append(origin) }
    }

    private func admitToGrownOrigins() {
        let origins = grownOrigins
        grownOrigins = []
        for origin in origins { ready.nominate(origin) }
        admitReady()
    }

    // MARK: Commands

    func cancel(_ transfer: EngineTransfer) { remove(transfer, .cancelled) }

    /// Ends a transfer in any state.
    func remove(_ transfer: EngineTransfer, _ reason: EngineFailure.Reason) {
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

    /// Applies changes made by other threads: pause, the stream's reader, the producer of the body, priority.
    func adjust(_ transfer: EngineTransfer) {
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
        let requestedState = transfer.requestedState
        if !requestedState.collects, let chunk = transfer.loopState.collected?.takeChunk() {
            transfer.loopState.chunks.append(chunk)
            transfer.loopState.unpublished += chunk.count
        }
        if !requestedState.collects { transfer.loopState.discardCollected() }
        if transfer.loopState.isUserPaused && !requestedState.isPaused { transfer.loopState.resumedAt = now }
        transfer.loopState.isUserPaused = requestedState.isPaused
        transfer.loopState.isFlowPaused = requestedState.isFlowPaused
        transfer.loopState.isStarved = false
        markDirty(transfer)
        transfer.loopState.buffered = requestedState.buffered
        transfer.applyPauses()
        scheduleSweep(transfer)
    }

    // MARK: Queries and commands of the session, on its loop

    var allTransfers: [EngineTransfer] {
        inUse.compactMap(\.transfer) + Array(resolving.values) + Array(waiting.values)
    }

    package var snapshots: [EngineTransfer.Snapshot] {
        allTransfers.sorted { $0.id < $1.id }.map { transfer in
            if transfer.loopState.handle != nil { transfer.publish(now) }
            return transfer.snapshot
        }
    }

    /// Closes idle connections and forgets TLS sessions; running transfers keep their connections until they end.
    package func resetConnections() {
        names.forget()
        for domain in domains { if let domain { retire(domain) } }
    }

    /// Rejects new transfers, and resumes `done` when the running ones have ended and no hold is left, or when `limit`
    /// nanoseconds have passed.
    func shutDown(within limit: UInt64?, done: UnsafeContinuation<Void, Never>) {
        isClosed = true
        loop.holds.withLock { $0.isClosing = true }
        closers.append(done)
        if limit == 0 { cancelAll(.closed) } else if let limit { closeAt = min(closeAt, Monotonic.now() &+ limit) }
    }

    private func cancelAll(_ reason: EngineFailure.Reason) {
        closeAt = Monotonic.never
        isOver = true
        // Waiting transfers end first; otherwise they would be admitted into the slots released by the others.
        for transfer in allTransfers.reversed() { remove(transfer, reason) }
    }

    /// Ends paused transfers, because no session is left to resume them.
    func endPaused() {
        for transfer in allTransfers.reversed() where transfer.wantsPause { remove(transfer, .closed) }
    }

    /// Resumes the callers of `EventLoop.idle()` and `shutDown`, once a turn, if no transfer and no unread record is
    /// left: a record could start the next run of a transfer that has just ended.
    func resumeIfIdle() {
        guard awaitsIdle || !closers.isEmpty, isIdle else { return }
        let isQuiet = loop.isQuiet
        if isQuiet || isOver { finishClosing() }
        if isQuiet && awaitsIdle {
            awaitsIdle = false
            loop.resumeIdleWaiters()
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

    /// Frees all resources on the loop thread, after the last transfer.
    func close() {
        resetConnections()
        dirty = []
    }
}
