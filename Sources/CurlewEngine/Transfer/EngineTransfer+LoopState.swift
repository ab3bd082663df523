// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewShims
internal import Glibc
internal import CurlewSupport

extension EngineTransfer {
    // MARK: Receiving the body (called by the transport)

    func receive(_ bytes: UnsafeRawPointer, _ count: Int, _ deliveries: Deliveries) -> Bool {
        loopState.lastActivity = deliveries.now
        // libcurl treats some malformed status lines as a body.
        guard loopState.isHeadComplete else { return refuse(.invalidHead("it has no status line (RFC 9112 §4)")) }
        if loopState.counters.received == 0 && !bodyBegan() { return false }
        loopState.counters.received += Int64(count)
        if let collected = loopState.collected?.count {
            guard collected + count <= plan.limits.bodySize else {
                loopState.abort = .bodyTooLarge(limit: plan.limits.bodySize)
                return false
            }
            guard loopState.collected?.append(bytes, count) == true else {
                loopState.abort = .noResources(errno: ENOMEM)
                return false
            }
        } else {
            keep(bytes, count, deliveries)
            if loopState.unpublished + loopState.buffered >= loop.configuration.highWater { publish(deliveries.now) }
            if !plan.isSecure && deliveries.endTurnIfFull(for: self, count) { applyPauses() }
        }
        deliveries.markDirty(self)
        if loopState.isUserPaused { applyPauses() }
        return true
    }

    /// Returns false if the announced length of the body exceeds the collect limit.
    private func bodyBegan() -> Bool {
        let length = loopState.check.length ?? -1
        loopState.counters.expectedToReceive = length
        guard length > 0, loopState.collected != nil else { return true }
        guard length <= Int64(plan.limits.bodySize) else {
            loopState.abort = .bodyTooLarge(limit: plan.limits.bodySize)
            return false
        }
        loopState.collected?.reserve(Int(clamping: length))
        return true
    }

    private func keep(_ bytes: UnsafeRawPointer, _ count: Int, _ deliveries: Deliveries) {
        var done = 0
        while done < count {
            // The reader may get each slab as a separate step, so a fast transfer gets large slabs.
            let isLarge =
                max(loopState.unpublished, loopState.burst) >= 2 * deliveries.slabs.size
                && loop.configuration.highWater >= deliveries.largeSlabs.size
            let slab = loopState.slab ?? (isLarge ? deliveries.largeSlabs : deliveries.slabs).take()
            if loopState.slab == nil {
                loopState.slab = slab
                loopState.slabStart = 0
            }
            done += slab.append(bytes + done, count - done)
            if slab.used == slab.capacity {
                loopState.chunks.append(
                    Chunk(slab: slab, offset: loopState.slabStart, count: slab.used - loopState.slabStart))
                loopState.slab = nil
            }
        }
        loopState.unpublished += count
    }

    /// Publishes the bytes that arrived and resumes the reader, once a turn or when the high-water mark is reached.
    ///
    /// A reader whose task was cancelled is not resumed: it receives one step only, which has to be the error.
    func publish(_ now: UInt64, isForReader: Bool = true) {
        let isProgressDue = now &- loopState.lastProgress >= loop.configuration.progressInterval
        if isProgressDue { loopState.lastProgress = now }
        var isDeferred = false
        var wakes: (UnsafeContinuation<Step, Never>, Step)?
        var headDueAt: UInt64?
        var sink: (any TransferSink)?
        var (reportsHead, reportsUpdate) = (false, false)
        var leaver: Waiter?
        shared.withLock { shared in
            copyReceived(to: &shared, at: now)
            if isProgressDue {
                shared.isProgressDue = true
                reportsUpdate = shared.isProgressWanted
            } else {
                // A busy reader needs the progress as well: when it returns, no more bytes may arrive.
                isDeferred = shared.isProgressWanted || shared.readerWantsProgress
            }
            if isForReader, let reader = shared.reader,
                let step = shared.takeStep(withProgress: shared.readerWantsProgress)
            {
                shared.reader = nil
                wakes = (reader, step)
            }
            if !shared.isHeadFinal, isForReader { swap(&leaver, &shared.endOrHeadWaiter) }
            if let owner = shared.sink {
                sink = owner
                if isForReader, shared.head != nil, !shared.isHeadReported {
                    (reportsHead, headDueAt) = headReport(of: shared, at: now)
                    shared.isHeadReported = reportsHead
                }
                if !shared.collects, !shared.informational.isEmpty { reportsUpdate = true }
            }
            loopState.buffered = shared.buffered
            // Once receiving is paused, only the reader resumes it, and posts a record for that.
            let isFull = shared.isFlowPaused || shared.buffered >= loop.configuration.highWater
            shared.isFlowPaused = !shared.collects && isFull
            loopState.isFlowPaused = shared.isFlowPaused
        }
        if reportsUpdate { sink?.receivedUpdate(of: self) }
        if reportsHead { sink?.receivedHead(of: self, isFinal: loopState.isHeadFinal) }
        wakes.map { reader, step in reader.resume(returning: step) }
        leaver?.resume()
        if loopState.isFlowPaused { applyPauses() }
        guard let deliveries = loopState.deliveries else { return }
        if isDeferred {
            deliveries.deferPublishing(of: self, until: loopState.lastProgress &+ loop.configuration.progressInterval)
        }
        if let headDueAt { deliveries.deferPublishing(of: self, until: headDueAt) }
    }

    /// Copies the bytes and counters of the loop into the locked half.
    func copyReceived(to shared: inout LockedState, at now: UInt64) {
        if let slab = loopState.slab, slab.used > loopState.slabStart {
            loopState.chunks.append(
                Chunk(slab: slab, offset: loopState.slabStart, count: slab.used - loopState.slabStart))
            loopState.slabStart = slab.used
        }
        if !loopState.chunks.isEmpty {
            shared.append(loopState.chunks)
            loopState.chunks.removeAll(keepingCapacity: true)
        }
        if !loopState.trailers.isEmpty { shared.trailers = loopState.trailers }
        shared.buffered += loopState.unpublished
        loopState.burst = loopState.unpublished
        loopState.unpublished = 0
        shared.counters.sent = loopState.counters.sent
        shared.counters.received = loopState.counters.received
        shared.counters.expectedToReceive = loopState.counters.expectedToReceive
        // The clock of the turn may be older than the start of the transfer.
        shared.counters.at = max(shared.counters.at, now)
    }

    /// Returns whether the sink gets the head now, and otherwise the time of the report; nil without a report.
    ///
    /// The end of a collected body usually arrives right after the head, and each resumption costs a third of a
    /// request's time.
    private func headReport(
        of shared: borrowing LockedState, at now: UInt64
    ) -> (isDue: Bool, dueAt: UInt64?) {
        guard shared.isHeadFinal else { return (true, nil) }
        guard shared.isHeadWanted || !shared.collects else { return (false, nil) }
        let canWait =
            shared.collects && now &- loopState.headAt < Self.headDelay
            && loopState.counters.expectedToReceive <= 256 << 10
        return canWait ? (false, loopState.headAt &+ Self.headDelay) : (true, nil)
    }

    /// Nanoseconds that the report of a collected response's head waits for the end.
    private static let headDelay: UInt64 = 1_000_000

    // MARK: Sending (called by the transport)

    /// The result of a request for bytes of the body.
    enum Pulled {
        /// The number of bytes; 0 at the end.
        case bytes(Int)
        /// The producer has no bytes yet.
        case wait
        /// The transfer has to end with the reason in `abort`.
        case failed
    }

    func pull(into buffer: UnsafeMutableRawPointer, _ capacity: Int, _ deliveries: Deliveries) -> Pulled {
        let count: Int
        switch upload {
        case .none: count = 0
        case .bytes(let bytes):
            count = min(capacity, bytes.count - loopState.bodyOffset)
            bytes.withUnsafeBytes {
                if let base = $0.baseAddress { memcpy(buffer, base + loopState.bodyOffset, count) }
            }
            loopState.bodyOffset += count
        case .pipe(let pipe):
            switch pipe.pull(into: buffer, capacity) {
            case .bytes(let pulled): count = pulled
            case .end: count = 0
            case .failed(let reason):
                loopState.abort = reason
                return .failed
            case .wait:
                loopState.isStarved = true
                return .wait
            }
        }
        loopState.lastActivity = deliveries.now
        loopState.pulls += 1
        loopState.counters.sent += Int64(count)
        if count == 0 || loopState.counters.sent == shared.withLock({ $0.counters.expectedToSend }) {
            loopState.bodySentAt = deliveries.now
            sendSentEvent()
        }
        deliveries.markDirty(self)
        return .bytes(count)
    }

    func rewindBody() -> Bool {
        loopState.measuredAt = 0
        loopState.sentSeen = 0
        loopState.bodySentAt = 0
        loopState.counters.sent = 0
        loopState.bodyOffset = 0
        if case .pipe(let pipe) = upload { return pipe.rewind() }
        return true
    }

    /// Records why no socket could be opened, if a resource is exhausted.
    func noteSocketFailure(_ code: CInt) {
        if [EMFILE, ENFILE, ENOBUFS, ENOMEM].contains(code) {
            loopState.socketFailure = LoopState.SocketFailure(.noResources(errno: code))
        }
    }

    // MARK: Pausing (on the loop, also from inside callbacks)

    /// Pauses or resumes libcurl's receiving and sending, as the reader, the body's producer and the user currently
    /// require.
    func applyPauses() {
        guard let handle = loopState.handle else { return }
        let receiving =
            loopState.isFlowPaused || loopState.isUserPaused || loopState.isTurnOver || loopState.isReceivingLimited
        let sending =
            loopState.isStarved || loopState.isUserPaused || loopState.isUploadHeld || loopState.isSendingLimited
        let wasPaused = loopState.isReceivingPaused || loopState.isSendingPaused
        if !receiving && !sending && !wasPaused { return }
        loopState.isReceivingPaused = receiving
        loopState.isSendingPaused = sending
        if !receiving && wasPaused { loopState.measuredAt = 0 }
        if !receiving { loopState.lastActivity = max(loopState.lastActivity, handle.deliveries.now) }
        curl_easy_pause(handle.curl, (receiving ? CURLPAUSE_RECV : 0) | (sending ? CURLPAUSE_SEND : 0))
        // libcurl releases the socket while receiving is paused, so it does not report an end that occurred meanwhile.
        guard wasPaused, !loopState.isReceivingPaused, let connection = loopState.connection, connection != .unknown,
            !handle.transport.sockets.wants(connection.descriptor)
        else { return }
        noteReadingStopped(from: connection.descriptor, sends: false)
    }

    /// Whether the engine itself causes the silence of the connection.
    var isHeldBack: Bool { loopState.isFlowPaused || loopState.isUserPaused || loopState.isLimited }
}
