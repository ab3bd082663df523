// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// CurlTransport: what the loop thread does with transfers. It admits them, lends them handles, carries out orders,
// notices ends and limits. Part of the session actor; nothing in it is ever touched by another thread.

internal import CurlewShims
internal import Glibc

package final class CurlTransport {
    unowned let loop: EventLoop
    let sockets: SocketTable
    let slabs: SlabPool
    /// The clock, read once a turn.
    private(set) var now = Monotonic.now()

    private var urls = URLCache()
    private var domains: [CurlDomain?] = []
    private var inUse: [EasyHandle] = []
    private var dirty: [EngineTransfer] = []
    /// Transfers whose watchers are owed news that came too soon after the last, and when to tell them.
    private var owing: [EngineTransfer] = []
    private var oweAt = Monotonic.never
    /// Origins that can take more than was thought.
    private var widened: [Origin] = []
    private var waiting: [UInt64: EngineTransfer] = [:]
    private var lastTicket: UInt64 = 0
    private var sweepAt = Monotonic.never
    private var isClosed = false
    private var closers: [UnsafeContinuation<Void, Never>] = []
    private var closeAt = Monotonic.never

    init(loop: EventLoop, epoll: CInt) {
        self.loop = loop
        sockets = SocketTable(epoll: epoll)
        slabs = SlabPool(size: 64 << 10)
    }

    // MARK: Turns

    func beginTurn(now: UInt64) { self.now = now }

    func socketIsReady(token: UInt64, mask: UInt32) {
        let (descriptor, number) = SocketTable.parts(of: token)
        guard sockets.wants(descriptor), Int(number) < domains.count, let domain = domains[Int(number)] else { return }
        var action: CInt = 0
        if mask & (curlew_readable | curlew_hung_up) != 0 { action |= CURL_CSELECT_IN }
        if mask & curlew_writable != 0 { action |= CURL_CSELECT_OUT }
        if mask & curlew_failed != 0 { action |= CURL_CSELECT_ERR }
        var running: CInt = 0
        curl_multi_socket_action(domain.multi, descriptor, action, &running)
    }

    /// Due timers, ended transfers, arrived bytes, passed limits, in that order.
    func advance(now: UInt64) {
        for domain in domains { domain?.fireIfDue(now: now) }
        collectEnded()
        if !dirty.isEmpty { flush(now) }
        if now >= oweAt { settle(now) }
        if !widened.isEmpty { admitWidened() }
        if now >= sweepAt { sweep(now) }
        if now >= closeAt { cancelAll(EngineFailure.Reason.closed) }
    }

    /// Milliseconds until something is due, rounded up; -1 for nothing.
    func timeout(now: UInt64) -> CInt {
        var first = min(sweepAt, closeAt, oweAt)
        for domain in domains { if let domain, domain.deadline < first { first = domain.deadline } }
        guard first != Monotonic.never else { return -1 }
        return first <= now ? 0 : CInt(clamping: (first - now + 999_999) / 1_000_000)
    }

    var isIdle: Bool { inUse.isEmpty && waiting.isEmpty }

    func markDirty(_ transfer: EngineTransfer) {
        guard !transfer.wire.isDirty else { return }
        transfer.wire.isDirty = true
        dirty.append(transfer)
    }

    private func flush(_ now: UInt64) {
        var batch: [EngineTransfer] = []
        swap(&batch, &dirty)
        for transfer in batch {
            transfer.wire.isDirty = false
            if transfer.wire.handle != nil { transfer.publish(now) }
        }
        batch.removeAll(keepingCapacity: true)
        if dirty.isEmpty { swap(&batch, &dirty) }
    }

    /// Makes a transfer's watchers hear of what has come once `time` is there.
    func owe(_ transfer: EngineTransfer, at time: UInt64) {
        guard !transfer.wire.isOwing else { return }
        transfer.wire.isOwing = true
        owing.append(transfer)
        oweAt = min(oweAt, time)
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
        guard !origin.isShared else { return }
        origin.isShared = true
        if !origin.queue.isEmpty { widened.append(origin) }
    }

    private func admitWidened() {
        let origins = widened
        widened = []
        for origin in origins { admitWaiting(origin) }
    }

    /// How many transfers an origin takes at once: one for each connection, unless they can share one.
    private func places(at origin: Origin) -> Int {
        let limits = loop.configuration
        if origin.isShared || limits.version == .http2PriorKnowledge { return limits.transfersPerHost }
        return min(limits.transfersPerHost, limits.connectionsPerHost)
    }

    // MARK: Orders

    func start(_ transfer: EngineTransfer) {
        guard transfer.outcome == nil else { return }
        if isClosed { return fail(transfer, .closed, .preparing) }
        guard let url = urls.url(for: transfer.plan) else {
            let text = "libcurl does not take the URL"
            return fail(transfer, .curl(code: CURLE_URL_MALFORMAT.rawValue, text: text), .preparing)
        }
        transfer.wire.origin = url.origin
        transfer.wire.lastActivity = now
        transfer.wire.priority = transfer.plan.priority
        if url.origin.active < places(at: url.origin) && admit(transfer, url) { return }
        if transfer.outcome == nil { queue(transfer, url.origin) }
    }

    private func queue(_ transfer: EngineTransfer, _ origin: Origin) {
        lastTicket += 1
        if transfer.wire.ticket == 0 { transfer.wire.ticket = lastTicket }
        transfer.wire.priority = transfer.priorityNow
        waiting[transfer.id] = transfer
        origin.queue.join(transfer, priority: transfer.wire.priority, ticket: transfer.wire.ticket)
        if let total = transfer.plan.totalTimeout { sweepAt = min(sweepAt, transfer.startedAt &+ total) }
    }

    /// Puts a transfer on the wire; false when it wants to stay paused.
    private func admit(_ transfer: EngineTransfer, _ url: ParsedURL) -> Bool {
        guard let collects = transfer.tryAdmission() else { return false }
        guard let domain = live(transfer.plan.trust), let handle = domain.takeHandle(),
            handle.apply(transfer.plan, url: url)
        else {
            fail(transfer, .noResources(errno: ENOMEM), .preparing)
            return true
        }
        transfer.wire.handle = handle
        transfer.wire.admittedAt = now
        transfer.wire.lastActivity = now
        if collects { transfer.wire.collected = CollectedBody() }
        handle.transfer = transfer
        handle.place = inUse.count
        inUse.append(handle)
        url.origin.active += 1
        domain.active += 1
        domain.lastUsed = now
        let code = curl_multi_add_handle(domain.multi, handle.curl)
        if code != CURLM_OK {
            let text = String(cString: curl_multi_strerror(code))
            end(handle, EngineFailure(.curl(code: CURLE_FAILED_INIT.rawValue, text: text), phase: .preparing))
            return true
        }
        scheduleSweep(transfer)
        return true
    }

    private func live(_ trust: TrustDomain) -> CurlDomain? {
        if let live = trust.live { return live }
        let number = domains.firstIndex { $0 == nil } ?? domains.count
        guard let made = CurlDomain(number: UInt32(number), trust: trust, transport: self) else { return nil }
        if number == domains.count { domains.append(made) } else { domains[number] = made }
        trust.live = made
        retireSpareDomains(keeping: made)
        return made
    }

    /// Domains that nobody uses are kept for a while, since clients come back, but only a few of them.
    private func retireSpareDomains(keeping kept: CurlDomain) {
        let spare = domains.compactMap { $0 }.filter { $0.active == 0 && $0 !== kept }
            .sorted { $0.lastUsed < $1.lastUsed }
        for domain in spare.prefix(max(0, spare.count - 6)) { retire(domain) }
    }

    private func retire(_ domain: CurlDomain) {
        domain.isRetired = true
        if domain.trust.live === domain { domain.trust.live = nil }
        if domain.active == 0 { domains[Int(domain.number)] = nil }
    }

    func cancel(_ transfer: EngineTransfer) { remove(transfer, .cancelled) }

    private func remove(_ transfer: EngineTransfer, _ reason: EngineFailure.Reason) {
        if let handle = transfer.wire.handle {
            end(handle, EngineFailure(reason, phase: phase(of: handle, transfer)))
        } else {
            waiting[transfer.id] = nil
            transfer.wire.origin = nil
            fail(transfer, reason, .queued)
        }
    }

    /// Looks again at everything others may have changed: pause, the reader, the body's producer, priority.
    func adjust(_ transfer: EngineTransfer) {
        let wishes = transfer.wishes
        guard transfer.wire.handle != nil else {
            guard let origin = transfer.wire.origin, waiting[transfer.id] != nil else { return }
            if wishes.priority != transfer.wire.priority { queue(transfer, origin) }
            return admitWaiting(origin)
        }
        if !wishes.collects, let chunk = transfer.wire.collected?.takeChunk() {
            transfer.wire.chunks.append(chunk)
            transfer.wire.unpublished += chunk.count
        }
        if !wishes.collects { transfer.wire.collected = nil }
        transfer.wire.isUserPaused = wishes.isPaused
        transfer.wire.isFlowPaused = wishes.isFlowPaused
        transfer.wire.isStarved = false
        markDirty(transfer)
        transfer.wire.buffered = wishes.buffered
        transfer.applyPauses()
        scheduleSweep(transfer)
    }

    private func admitWaiting(_ origin: Origin) {
        var heldBack: [EngineTransfer] = []
        while origin.active < places(at: origin), let (next, priority) = origin.queue.next() {
            // Left, or joined again with another priority.
            guard waiting[next.id] != nil, next.wire.handle == nil, priority == next.wire.priority else { continue }
            guard let url = urls.url(for: next.plan) else {
                waiting[next.id] = nil
                fail(next, .noResources(errno: ENOMEM), .queued)
                continue
            }
            if admit(next, url) { waiting[next.id] = nil } else { heldBack.append(next) }
        }
        for transfer in heldBack {
            origin.queue.join(transfer, priority: transfer.wire.priority, ticket: transfer.wire.ticket)
        }
        if isClosed && isIdle { finishClosing() }
    }

    // MARK: Ends

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
                end(handle, failure(of: handle, transfer, message.pointee.data.result))
            }
        }
    }

    private func end(_ handle: EasyHandle, _ failure: EngineFailure?) {
        guard let transfer = handle.transfer else { return }
        let domain = handle.domain
        let metrics = metrics(of: handle, transfer)
        curl_multi_remove_handle(domain.multi, handle.curl)
        inUse[inUse.count - 1].place = handle.place
        inUse.swapAt(handle.place, inUse.count - 1)
        inUse.removeLast()
        domain.active -= 1
        transfer.wire.handle = nil
        transfer.publish(now, isForReader: failure?.isCancellation != true)
        domain.giveBack(handle)
        if domain.isRetired && domain.active == 0 { domains[Int(domain.number)] = nil }
        transfer.complete(failure: failure, body: transfer.wire.collected, metrics: metrics)
        transfer.wire.collected = nil
        if let origin = transfer.wire.origin {
            origin.active -= 1
            if !origin.queue.isEmpty { admitWaiting(origin) }
        }
        if isClosed && isIdle { finishClosing() }
    }

    private func fail(_ transfer: EngineTransfer, _ reason: EngineFailure.Reason, _ phase: EngineFailure.Phase) {
        var metrics = RawMetrics()
        metrics.queued = Monotonic.now() &- transfer.startedAt
        transfer.complete(failure: EngineFailure(reason, phase: phase), metrics: metrics)
        if isClosed && isIdle { finishClosing() }
    }

    // MARK: Limits

    private func scheduleSweep(_ transfer: EngineTransfer) {
        if let total = transfer.plan.totalTimeout { sweepAt = min(sweepAt, transfer.startedAt &+ total) }
        if let idle = transfer.plan.idleTimeout, transfer.wire.handle != nil, !transfer.isHeldBack {
            sweepAt = min(sweepAt, transfer.wire.lastActivity &+ idle)
        }
    }

    /// Ends what has been idle or has run too long, and finds out when to look again.
    private func sweep(_ now: UInt64) {
        sweepAt = Monotonic.never
        var late: [(EngineTransfer, EngineFailure.Limit)] = []
        for transfer in inUse.compactMap(\.transfer) + Array(waiting.values) {
            if let total = transfer.plan.totalTimeout, now >= transfer.startedAt &+ total {
                late.append((transfer, .total))
            } else if let idle = transfer.plan.idleTimeout, let handle = transfer.wire.handle, !transfer.isHeldBack,
                now >= transfer.wire.lastActivity &+ idle
            {
                if curlew_get_offset(handle.curl, CURLINFO_PRETRANSFER_TIME_T) > 0 {
                    late.append((transfer, .idle))
                } else {
                    // Not connected yet: that is the connect timeout's business.
                    transfer.wire.lastActivity = now
                    scheduleSweep(transfer)
                }
            } else {
                scheduleSweep(transfer)
            }
        }
        for (transfer, limit) in late { remove(transfer, .timedOut(limit)) }
    }

    // MARK: What the session asks, on its loop

    package var snapshots: [EngineTransfer.Snapshot] {
        let running = inUse.compactMap(\.transfer) + Array(waiting.values)
        return running.sorted { $0.id < $1.id }.map { transfer in
            if transfer.wire.handle != nil { transfer.publish(now) }
            return transfer.snapshot
        }
    }

    /// Closes idle connections and forgets TLS sessions; running transfers keep theirs until they end.
    package func resetConnections() { for domain in domains { if let domain { retire(domain) } } }

    /// Refuses new transfers, then resumes `done` when the running ones have ended, at the latest after `limit`.
    func shutDown(within limit: UInt64?, done: UnsafeContinuation<Void, Never>) {
        isClosed = true
        closers.append(done)
        if limit == 0 { cancelAll(.closed) } else if let limit { closeAt = min(closeAt, Monotonic.now() &+ limit) }
        if isIdle { finishClosing() }
    }

    private func cancelAll(_ reason: EngineFailure.Reason) {
        closeAt = Monotonic.never
        for transfer in Array(waiting.values) + inUse.compactMap(\.transfer) { remove(transfer, reason) }
    }

    /// Ends what is paused when nobody is left who could resume it.
    func abandonPaused() {
        for transfer in Array(waiting.values) + inUse.compactMap(\.transfer) where transfer.wantsPause {
            remove(transfer, .closed)
        }
    }

    private func finishClosing() {
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
