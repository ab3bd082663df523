// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewShims
internal import Glibc
internal import CurlewSupport

extension EngineTransfer {
    // MARK: Receiving the body (called by libcurl)

    func receive(_ bytes: UnsafeRawPointer, _ count: Int) -> Bool {
        guard let transport = wire.handle?.domain.transport else { return false }
        wire.lastActivity = transport.now
        // libcurl treats some malformed status lines as a body.
        guard wire.isHeadComplete else { return refuse(.invalidHead("it has no status line (RFC 9112 §4)")) }
        if wire.counters.received == 0 && !bodyBegan() { return false }
        wire.counters.received += Int64(count)
        if let collected = wire.collected {
            guard collected.count + count <= plan.collectLimit else {
                wire.abort = .bodyTooLarge(limit: plan.collectLimit)
                return false
            }
            guard collected.append(bytes, count) else {
                wire.abort = .noResources(errno: ENOMEM)
                return false
            }
        } else {
            keep(bytes, count, transport)
            if wire.unpublished + wire.buffered >= loop.configuration.highWater { publish(transport.now) }
            if !plan.isSecure && transport.endTurnIfFull(for: self, count) { applyPauses() }
        }
        transport.markDirty(self)
        if transport.throttle.receiving != nil || wire.throttle != nil { transport.charge(self, received: count) }
        if wire.isUserPaused { applyPauses() }
        return true
    }

    /// Returns false if the announced length of the body exceeds the collect limit.
    private func bodyBegan() -> Bool {
        let length = wire.check.length ?? -1
        wire.counters.expectedToReceive = length
        guard length > 0, let collected = wire.collected else { return true }
        guard length <= Int64(plan.collectLimit) else {
            wire.abort = .bodyTooLarge(limit: plan.collectLimit)
            return false
        }
        collected.reserve(Int(clamping: length))
        return true
    }

    private func keep(_ bytes: UnsafeRawPointer, _ count: Int, _ transport: CurlTransport) {
        var done = 0
        while done < count {
            // The reader may get each slab as a separate step, so a fast transfer gets large slabs.
            let isLarge =
                max(wire.unpublished, wire.burst) >= 2 * transport.slabs.size
                && loop.configuration.highWater >= transport.largeSlabs.size
            let slab = wire.slab ?? (isLarge ? transport.largeSlabs : transport.slabs).take()
            if wire.slab == nil {
                wire.slab = slab
                wire.slabStart = 0
            }
            done += slab.append(bytes + done, count - done)
            if slab.used == slab.capacity {
                wire.chunks.append(Chunk(slab: slab, offset: wire.slabStart, count: slab.used - wire.slabStart))
                wire.slab = nil
            }
        }
        wire.unpublished += count
    }

    /// Publishes the bytes that arrived and resumes the reader, once a turn or when the high-water mark is reached.
    ///
    /// A reader whose task was cancelled is not resumed: it receives one step only, which has to be the error.
    func publish(_ now: UInt64, isForReader: Bool = true) {
        let isProgressDue = now &- wire.lastProgress >= loop.configuration.progressInterval
        if isProgressDue { wire.lastProgress = now }
        var isDeferred = false
        var wakes: (UnsafeContinuation<Step, Never>, Step)?
        var watchers: [(ticket: UInt64, continuation: UnsafeContinuation<Counters?, Never>)] = []
        var headDueAt: UInt64?
        var heads: (waiters: [UnsafeContinuation<Headed, Never>], head: RawHead)?
        var leaving = SmallList<EndWaiter>()
        let counters = shared.withLock { shared -> Counters in
            hand(to: &shared, at: now)
            if isProgressDue {
                shared.isProgressDue = true
                swap(&watchers, &shared.progressWaiters)
            } else {
                // A busy reader needs the progress as well: when it returns, no more bytes may arrive.
                isDeferred = !shared.progressWaiters.isEmpty || shared.readerWantsProgress
            }
            if isForReader, let reader = shared.reader,
                let step = shared.takeStep(withProgress: shared.readerWantsProgress)
            {
                shared.reader = nil
                wakes = (reader, step)
            }
            if !shared.headWaiters.isEmpty, isForReader, let head = shared.head {
                if canDelayHead(now, shared.collects) {
                    headDueAt = wire.headAt &+ Self.headDelay
                } else {
                    heads = (shared.headWaiters, head)
                    shared.headWaiters = []
                }
            }
            if wire.isRedirecting, isForReader { leaving = shared.takeRedirectWaiters() }
            wire.buffered = shared.buffered
            // Once receiving is paused, only the reader resumes it, and posts a record for that.
            let isFull = shared.isFlowPaused || shared.buffered >= loop.configuration.highWater
            shared.isFlowPaused = !shared.collects && isFull
            wire.isFlowPaused = shared.isFlowPaused
            return shared.counters
        }
        wakes.map { reader, step in reader.resume(returning: step) }
        for watcher in watchers { watcher.continuation.resume(returning: counters) }
        leaving.forEach { $0.continuation.resume(returning: nil) }
        if let heads { for waiter in heads.waiters { waiter.resume(returning: .head(heads.head)) } }
        if wire.isFlowPaused { applyPauses() }
        guard let transport = wire.handle?.domain.transport else { return }
        if isDeferred {
            transport.deferProgress(of: self, until: wire.lastProgress &+ loop.configuration.progressInterval)
        }
        if let headDueAt { transport.deferProgress(of: self, until: headDueAt) }
    }

    /// Copies the bytes and counters of the loop into the locked half.
    func hand(to shared: inout Shared, at now: UInt64) {
        if let slab = wire.slab, slab.used > wire.slabStart {
            wire.chunks.append(Chunk(slab: slab, offset: wire.slabStart, count: slab.used - wire.slabStart))
            wire.slabStart = slab.used
        }
        if !wire.chunks.isEmpty {
            shared.append(wire.chunks)
            wire.chunks.removeAll(keepingCapacity: true)
        }
        if !wire.trailers.isEmpty { shared.trailers = wire.trailers }
        shared.buffered += wire.unpublished
        wire.burst = wire.unpublished
        wire.unpublished = 0
        shared.counters.sent = wire.counters.sent
        shared.counters.received = wire.counters.received
        shared.counters.expectedToReceive = wire.counters.expectedToReceive
        // The clock of the turn may be older than the start of the transfer.
        shared.counters.at = max(shared.counters.at, now)
    }

    /// Whether callers that wait for the head can wait longer.
    ///
    /// The end of a collected body usually arrives right after the head, and each resumption costs a third of a
    /// request's time.
    private func canDelayHead(_ now: UInt64, _ collects: Bool) -> Bool {
        collects && now &- wire.headAt < Self.headDelay && wire.counters.expectedToReceive <= 256 << 10
    }

    /// Nanoseconds that the head of a collected response waits for the end.
    private static let headDelay: UInt64 = 1_000_000

    // MARK: Sending (called by libcurl)

    func send(into buffer: UnsafeMutableRawPointer, _ capacity: Int) -> Int {
        guard let transport = wire.handle?.domain.transport else { return Int(CURL_READFUNC_ABORT) }
        if wire.isUserPaused {
            wire.isSendingPaused = true
            return Int(CURL_READFUNC_PAUSE)
        }
        guard let capacity = transport.allowance(for: self, of: capacity) else {
            wire.isSendingPaused = true
            return Int(CURL_READFUNC_PAUSE)
        }
        let count: Int
        switch upload {
        case .none: count = 0
        case .bytes(let bytes):
            count = min(capacity, bytes.count - wire.bodyOffset)
            bytes.withUnsafeBytes { if let base = $0.baseAddress { memcpy(buffer, base + wire.bodyOffset, count) } }
            wire.bodyOffset += count
        case .pipe(let pipe):
            switch pipe.pull(into: buffer, capacity) {
            case .bytes(let pulled): count = pulled
            case .end: count = 0
            case .failed(let reason):
                wire.abort = reason
                return Int(CURL_READFUNC_ABORT)
            case .wait:
                wire.isStarved = true
                wire.isSendingPaused = true
                return Int(CURL_READFUNC_PAUSE)
            }
        }
        wire.lastActivity = transport.now
        wire.pulls += 1
        wire.counters.sent += Int64(count)
        if transport.throttle.sending != nil || wire.throttle != nil { transport.charge(self, sent: count) }
        if count == 0 || wire.counters.sent == shared.withLock({ $0.counters.expectedToSend }) {
            wire.bodySentAt = transport.now
            sendSentEvent()
        }
        transport.markDirty(self)
        return count
    }

    func rewindBody() -> Bool {
        wire.measuredAt = 0
        wire.sentSeen = 0
        wire.bodySentAt = 0
        wire.counters.sent = 0
        wire.bodyOffset = 0
        if case .pipe(let pipe) = upload { return pipe.rewind() }
        return true
    }

    /// Records why no socket could be opened, if a resource is exhausted.
    func noteSocketFailure(_ code: CInt) {
        if [EMFILE, ENFILE, ENOBUFS, ENOMEM].contains(code) { wire.socketErrno = code }
    }

    // MARK: Pausing (on the loop, also from inside callbacks)

    /// Pauses or resumes libcurl's receiving and sending, as the reader, the body's producer and the user currently
    /// require.
    func applyPauses() {
        guard let handle = wire.handle else { return }
        let receiving = wire.isFlowPaused || wire.isUserPaused || wire.isTurnOver || wire.isReceivingLimited
        let sending = wire.isStarved || wire.isUserPaused || wire.isUploadHeld || wire.isSendingLimited
        let wasPaused = wire.isReceivingPaused || wire.isSendingPaused
        if !receiving && !sending && !wasPaused { return }
        wire.isReceivingPaused = receiving
        wire.isSendingPaused = sending
        if !receiving && wasPaused { wire.measuredAt = 0 }
        if !receiving { wire.lastActivity = max(wire.lastActivity, handle.domain.transport.now) }
        curl_easy_pause(handle.curl, (receiving ? CURLPAUSE_RECV : 0) | (sending ? CURLPAUSE_SEND : 0))
        // libcurl releases the socket while receiving is paused, so it does not report an end that occurred meanwhile.
        guard wasPaused, !wire.isReceivingPaused, let connection = wire.connection, connection != .unknown,
            !handle.domain.transport.sockets.wants(connection.descriptor)
        else { return }
        noteReadingStopped(from: connection.descriptor, sends: false)
    }

    /// Whether the engine itself causes the silence of the connection.
    var isHeldBack: Bool { wire.isFlowPaused || wire.isUserPaused || wire.isLimited }
}
