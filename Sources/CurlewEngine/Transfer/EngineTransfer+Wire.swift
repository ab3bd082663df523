// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewShims
internal import Glibc

/// The half of a transfer that the loop thread alone touches.
struct Wire {
    var handle: EasyHandle?
    var origin: Origin?
    var check = HeadCheck()
    /// Bytes of all heads and of the trailers, and how many there may be.
    var headBytes = 0
    let headLimit: Int
    var isHeadComplete = false
    /// The head names another place to ask, where whoever made the plan may go.
    var leadsElsewhere = false
    /// When it was.
    var headAt: UInt64 = 0
    /// Whether an informational response came, and when the first line of the response after it did; 0 before that.
    var hasInformational = false
    var finalHeadBeganAt: UInt64 = 0
    /// Lines after the body, without the last, empty one.
    var trailers: [UInt8] = []
    /// The judge of a connection whose end ends the body.
    var closingGate: TrustGate?
    var expectsBody = true
    var collected: CollectedBody?
    var slab: Slab?
    /// Where the part of `slab` that was not handed over begins.
    var slabStart = 0
    var chunks: [Chunk] = []
    /// Bytes received and not yet handed over, as many as were handed over last, and bytes the reader had not taken when last
    /// asked.
    var unpublished = 0
    var burst = 0
    var buffered = 0
    var counters = Counters()
    var isDirty = false
    var isOwing = false
    var lastProgress: UInt64 = 0
    /// What libcurl was told to pause.
    var isReceivingPaused = false
    var isSendingPaused = false
    var isStarved = false
    var isUserPaused = false
    var isFlowPaused = false
    /// What it may take by itself, whether it has taken too much for now, and whether it stands in line for more.
    var throttle: Throttle?
    var isReceivingLimited = false
    var isSendingLimited = false
    var isLimited = false
    /// The turn in which it last received, how much that was, and whether it was so much that others come first.
    var turn: UInt64 = 0
    var inTurn = 0
    var isTurnOver = false
    /// Why we made libcurl give up, known before libcurl says so.
    var abort: EngineFailure.Reason?
    var bodyOffset = 0
    var bodySentAt: UInt64 = 0
    /// When the transfer got its place, and when libcurl began with it: after a look-up, and after vain attempts.
    var admittedAt: UInt64 = 0
    var launchedAt: UInt64 = 0
    var hasPlace = false
    /// The addresses that libcurl is given.
    var name: ResolvedName?
    var resumedAt: UInt64 = 0
    /// Since when the rate is measured, and what had moved by then.
    var measuredAt: UInt64 = 0
    var measured: Int64 = 0
    /// Whether the response is a stream of events; nil until somebody asks.
    var isEventStream: Bool?
    /// How often the request was begun again by us, and how often libcurl began to send it since.
    var restarts = 0
    var sends = 0
    /// How often it was because of the connection.
    var repairs = 0
    /// How often it was after a refusal that libcurl gave up at, and whether a connection is made first.
    var refusals = 0
    var connectsFirst = false
    /// The body waits while an answer that came before its end is received.
    var isUploadHeld = false
    /// When libcurl was last made to look at a silent HTTP/2 connection.
    var nudgedAt: UInt64 = 0
    /// The body is sent as it is, after the server has refused its coding.
    var usesAlternative = false
    /// What is sent after the server has refused to be asked.
    var linesWithoutExpect: HeaderLines?
    /// The request is sent again by HTTP/1.1, and why.
    var isByHTTP1 = false
    var failureOverHTTP2: EngineFailure?
    /// The request is sent again because of its connection.
    var needsFreshConnection = false
    /// It opens one more connection, since those that there are have no room for all.
    var opensConnection = false
    /// There is no idle connection where it goes.
    var findsNoneIdle = false
    /// Over which the request was last sent.
    var connection: SocketTable.Connection?
    /// Whether that one was known to speak HTTP/2.
    var isShared = false
    /// How often libcurl asked for bytes since.
    var pulls = 0
    /// Of the connection that a long body is sent over, with TLS.
    var uploadGate: TrustGate?
    /// libcurl reads no more, though it still sends.
    var hasAnswerEnded = false
    /// When the answer was whole and the body all handed over, but not all sent.
    var answeredAt: UInt64?
    var lastActivity: UInt64 = 0
    /// Where it stands in its origin's line, whether it does, and since when it has not been paused.
    var ticket: UInt64 = 0
    var isInLine = false
    var inLineSince: UInt64 = 0
    var priority = 0
    var tls: curlew_tls_facts?
    /// The server's own certificate, when somebody measures.
    var certificate: X509Certificate?
    /// Nil when nobody watches.
    var watch: Watch?
    var socketErrno: CInt = 0

    init(_ plan: borrowing TransferPlan) {
        headLimit = plan.headLimit
        if plan.bandwidth.isLimited { throttle = Throttle(plan.bandwidth) }
    }

    var isFresh: Bool { needsFreshConnection || opensConnection || findsNoneIdle }

    /// Since when the connect timeout counts: with the look-up, but anew for each attempt.
    var connectingSince: UInt64 { restarts > 0 ? launchedAt : admittedAt }

    /// Forgets the part of a head that came before the connection broke.
    mutating func forgetHead() {
        hasInformational = false
        finalHeadBeganAt = 0
        handle?.head.clear()
        check = HeadCheck()
        headBytes = 0
        tls = nil
        certificate = nil
    }

    /// Forgets an attempt of which nothing has reached the reader.
    mutating func beginAgain(at now: UInt64) {
        forgetHead()
        findsNoneIdle = false
        slab = nil
        chunks = []
        counters = Counters()
        bodyOffset = 0
        bodySentAt = 0
        socketErrno = 0
        abort = nil
        answeredAt = nil
        hasAnswerEnded = false
        uploadGate = nil
        measuredAt = 0
        isUploadHeld = false
        isReceivingPaused = false
        isSendingPaused = false
        isStarved = false
        isTurnOver = false
        launchedAt = now
        lastActivity = now
        restarts += 1
        sends = 0
    }
}

extension EngineTransfer {
    // MARK: Receiving the body (called by libcurl)

    func receive(_ bytes: UnsafeRawPointer, _ count: Int) -> Bool {
        guard let transport = wire.handle?.domain.transport else { return false }
        wire.lastActivity = transport.now
        // libcurl takes some first lines that it does not understand for a body.
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
            if !plan.isSecure && transport.isTurnOver(for: self, count) { applyPauses() }
        }
        transport.markDirty(self)
        if transport.throttle.receiving != nil || wire.throttle != nil { transport.charge(self, received: count) }
        if wire.isUserPaused { applyPauses() }
        return true
    }

    /// False when the body is announced to be longer than will be collected.
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
            // Each slab may be a step of the reader's, so those who get much at once get large ones.
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

    /// Hands over what arrived and wakes the reader, once a turn or when the high-water mark is reached.
    ///
    /// A reader whose task was cancelled is not woken: it gets one answer only, which has to be the error.
    func publish(_ now: UInt64, isForReader: Bool = true) {
        let isProgressDue = now &- wire.lastProgress >= loop.configuration.progressInterval
        if isProgressDue { wire.lastProgress = now }
        var isOwed = false
        var wakes: (UnsafeContinuation<Step, Never>, Step)?
        var watchers: [(ticket: UInt64, continuation: UnsafeContinuation<Counters?, Never>)] = []
        var headDueAt: UInt64?
        var heads: (waiters: [UnsafeContinuation<Headed, Never>], head: RawHead)?
        var leaving = Few<EndWaiter>()
        let counters = shared.withLock { shared -> Counters in
            hand(to: &shared, at: now)
            if isProgressDue {
                shared.isProgressDue = true
                swap(&watchers, &shared.progressWaiters)
            } else {
                // To a reader that is busy as well: when it comes back, nothing may move any more.
                isOwed = !shared.progressWaiters.isEmpty || shared.readerWantsProgress
            }
            if isForReader, let reader = shared.reader,
                let step = shared.takeStep(withProgress: shared.readerWantsProgress)
            {
                shared.reader = nil
                wakes = (reader, step)
            }
            if !shared.headWaiters.isEmpty, isForReader, let head = shared.head {
                if isHeadEarly(now, shared.collects) {
                    headDueAt = wire.headAt &+ Self.headDelay
                } else {
                    heads = (shared.headWaiters, head)
                    shared.headWaiters = []
                }
            }
            if wire.leadsElsewhere, isForReader { leaving = shared.takeLeaving() }
            wire.buffered = shared.buffered
            // Once paused, only the reader ends it: it has to post for libcurl to hear of it.
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
        if isOwed { transport.owe(self, at: wire.lastProgress &+ loop.configuration.progressInterval) }
        if let headDueAt { transport.owe(self, at: headDueAt) }
    }

    /// Makes visible what arrived and what moved.
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
        // The turn's clock may have been read before the transfer was started.
        shared.counters.at = max(shared.counters.at, now)
    }

    /// Whether whoever waits for the head need not hear of it yet.
    ///
    /// The end of a collected body comes mostly right after the head, and each waking costs as much as a third of a
    /// request.
    private func isHeadEarly(_ now: UInt64, _ collects: Bool) -> Bool {
        collects && now &- wire.headAt < Self.headDelay && wire.counters.expectedToReceive <= 256 << 10
    }

    /// How long the head of a collected response waits for the end, in nanoseconds.
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
            tellSending()
        }
        transport.markDirty(self)
        return count
    }

    func rewindBody() -> Bool {
        wire.measuredAt = 0
        wire.bodySentAt = 0
        wire.counters.sent = 0
        wire.bodyOffset = 0
        if case .pipe(let pipe) = upload { return pipe.rewind() }
        return true
    }

    /// Remembers why no socket could be made, when it is for want of something.
    func noteSocketFailure(_ code: CInt) {
        if [EMFILE, ENFILE, ENOBUFS, ENOMEM].contains(code) { wire.socketErrno = code }
    }

    // MARK: Pausing (on the loop, also from inside callbacks)

    /// Makes libcurl pause or go on as the reader, the body's producer and the user want it now.
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
        // What ended while receiving was paused, libcurl tells nobody: it had let go of the socket before.
        guard wasPaused, !wire.isReceivingPaused, let connection = wire.connection, connection != .unknown,
            !handle.domain.transport.sockets.wants(connection.descriptor)
        else { return }
        readsNoMore(from: connection.descriptor, sends: false)
    }

    /// Whether silence is our own doing.
    var isHeldBack: Bool { wire.isFlowPaused || wire.isUserPaused || wire.isLimited }
}
