// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import CurlewSupport

extension TransferRun {
    // MARK: The chain

    /// The drive, begun now if there was none, with an attempt that is known to be only the first step.
    func drive(from attempt: Attempt? = nil) -> Drive {
        let (drive, isNew) = state.withLock { $0.drive(from: attempt) }
        if isNew { drive.begin(self) }
        return drive
    }

    /// Begins a drive, unless there is one or the direct attempt has a reader, who begins one when it is needed.
    func driveUnlessRead(from attempt: Attempt) {
        let begun = state.withLock { state -> Drive? in
            if state.isReadDirectly { return nil }
            let (drive, isNew) = state.drive(from: attempt)
            return isNew ? drive : nil
        }
        begun?.begin(self)
    }

    /// Why nothing can be started any more.
    var obstacle: NetworkError? {
        let (isCancelled, primed) = state.withLock { ($0.isCancelled, $0.primed) }
        // What is on the wire tells itself how it ended.
        if isCancelled, primed == nil { return .cancelled(.preparing, request) }
        if isCancelled, primed?.engine.outcome != nil { return .cancelled(.receiving, request) }
        // In a child of fork() no task would ever run.
        if !host.loop.hasThread { return NetworkError(EngineFailure(.closed, phase: .preparing), request: request) }
        return nil
    }

    /// Passes the request through everything that surrounds it; whoever asks releases the transfer after its end.
    ///
    /// - Throws: `NetworkError` of any kind.
    func answer() async throws(NetworkError) -> IncomingResponse {
        try hold()
        do throws(NetworkError) {
            return try await Next(self, host.interceptors(of: request)[...])(request)
        } catch {
            throw error.with(duration: elapsed)
        }
    }

    /// The innermost step: puts a request on the wire and waits for the head of its response.
    func send(_ request: Request) async throws(NetworkError) -> IncomingResponse {
        let attempt = try next(request)
        if state.withLock({ $0.claim != .stream }) {
            switch await attempt.engine.headed() {
            case .head(let raw):
                return IncomingResponse(attempt.opened(raw).head, IncomingBody(attempt), request, attempt)
            case .ended(let outcome): throw attempt.error(outcome)
            case .superseded: break
            }
        }
        let reader = attempt.reader
        if let head = reader.head {
            return IncomingResponse(head, IncomingBody(attempt), request, attempt)
        }
        let (withProgress, drive) = state.withLock { ($0.wantsProgress, $0.drive) }
        while let element = try await reader.next(withProgress: withProgress) {
            if case .head(let head) = element {
                return IncomingResponse(head, IncomingBody(attempt), request, attempt)
            }
            drive?.deposit(element)
            notify()
        }
        throw .headless(request)
    }

    /// The attempt to run now, started: the one the drive began with, or a new one.
    private func next(_ request: Request) throws(NetworkError) -> Attempt {
        let primed = state.withLock { state in
            defer { state.primed = nil }
            return state.primed
        }
        if let primed {
            begin()
            return primed
        }
        let isCancelled = state.withLock { $0.isCancelled }
        // Before the task's cancellation, which may come of it.
        if !isCancelled, let total = host.totalTimeout(of: request), elapsed >= total {
            throw .overdue(request, after: total)
        }
        if isCancelled || Task.isCancelled { throw .cancelled(phase, request) }
        adoptHold()
        let course = state.withLock { state in
            let course = state.course ?? TransferCourse(isOver: state.end != nil)
            state.course = course
            return course
        }
        let place = AttemptPlace(
            id: id, ordinal: attempts + 1, offset: elapsedNanoseconds, continues: true, course: course,
            isSaved: keeper != nil)
        // An interceptor may have made a new request that has lost it.
        var request = request
        let withheld = state.withLock { $0.withheld }
        request.withheld += withheld.filter { !request.withheld.contains($0) }
        let attempt = try host.attempt(request, at: place)
        start(attempt, for: request)
        return attempt
    }

    private func start(_ attempt: Attempt, for request: Request) {
        let engine = attempt.engine
        let (repeated, witness, isCancelled, isStreamed) = state.withLock { state in
            defer {
                state.attempts += 1
                state.current = engine
                state.latest = request
                state.isLedElsewhere = false
            }
            if state.isPaused { engine.pause() }
            if state.priority != self.request.options.priority.rawValue { engine.priority = state.priority }
            return (
                state.attempts > 0 && !state.isLedElsewhere ? (state.latest, state.attempts) : nil, state.witness,
                state.isCancelled, state.claim == .stream
            )
        }
        if let (request, attempt) = repeated { emit(.retried, of: request ?? self.request, attempt: attempt) }
        if let witness { engine.watch(witness) }
        if isCancelled { engine.cancel() }
        // Before the start, or the loop would have to be told.
        if isStreamed { _ = attempt.reader }
        engine.startPrepared()
        notify()
    }

    /// Makes the run that brings the response the one that orders go to.
    func adopt(_ engine: EngineTransfer) {
        state.withLock { state in
            state.current = engine
            if state.isPaused { engine.pause() }
            if state.isCancelled { engine.cancel() }
        }
    }

    /// Ends what is left on the wire of a chain that gave nothing of it.
    func abandon() async {
        guard let current = state.withLock({ $0.current }) else { return }
        current.letGo()
        _ = await current.ended()
    }

    /// Whether the transfer may take only so long.
    var hasTotalTimeout: Bool { host.totalTimeout(of: request) != nil }

    /// What is left of the time that the request sent last may take, or the first one; nil for any time.
    var timeLeft: Duration? {
        host.totalTimeout(of: latest).map { $0 - elapsed }
    }

    /// The sentence for the end of the time that the request sent last may take, or the first one.
    var lateness: String { NetworkError.lateness(of: latest, after: host.totalTimeout(of: latest)) }

    private var latest: Request { state.withLock { $0.latest } ?? request }

    /// Waits for the end of what is on the wire.
    func currentEnd() async { _ = await state.withLock({ $0.current })?.ended() }

    /// Waits, but no longer than the session lets transfers go on.
    ///
    /// - Throws: `CancellationError` when the task is cancelled, and what the clock throws.
    func pause(for wait: Duration, by clock: any Clock<Duration>) async throws {
        let closing = host.closing
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await clock.wait(for: wait) }
            group.addTask { _ = await closing.wait(after: 0) }
            defer { group.cancelAll() }
            try await group.next()
        }
        try Task.checkCancellation()
    }

    /// Takes note that another attempt follows after a while.
    func willRetry(after wait: Duration, _ error: NetworkError) { emit(.waiting(wait, after: error)) }

    /// Takes note that a request begins where the transfer did, and has left nothing behind.
    func isAskedAnew(_ request: Request) {
        state.withLock { if !$0.withheld.isEmpty { $0.withheld = request.withheld } }
    }

    /// Takes note that a response leads elsewhere, where the next attempt goes.
    func isLed(elsewhere request: Request, by status: Status) {
        state.withLock { state in
            state.isLedElsewhere = true
            state.withheld = request.withheld
        }
        emit(.redirected(status, to: request.urlText))
    }

    // MARK: Holds

    /// Makes the session count the transfer as one that goes on, also between two attempts.
    func hold() throws(NetworkError) {
        let (isHeld, isFirst) = state.withLock { state in
            if state.startedAt == 0 { state.startedAt = Monotonic.now() }
            return (state.isHeld, state.primed == nil)
        }
        if isHeld { return }
        if host.loop.hold() {
            state.withLock { $0.isHeld = true }
        } else if isFirst {
            throw NetworkError(EngineFailure(.closed, phase: .preparing), request: request)
        } else {
            adoptHold()
        }
    }

    /// Takes over the hold that the engine took when it saw a redirect.
    private func adoptHold() {
        guard let current = state.withLock({ $0.current }), current.takeHold() else { return }
        let hadOne = state.withLock { state in
            defer { state.isHeld = true }
            return state.isHeld
        }
        if hadOne { host.loop.release() }
    }

    /// Lets the session end, and be idle, without the transfer.
    func release() {
        let (wasHeld, current) = state.withLock { state in
            defer { state.isHeld = false }
            return (state.isHeld, state.current)
        }
        if wasHeld { host.loop.release() }
        if let current { forgo(current) }
    }

    /// Gives back the hold of a redirect that nobody follows.
    func forgo(_ engine: EngineTransfer) { if engine.takeHold() { host.loop.release() } }
}

extension TransferRun.State {
    /// The drive, and whether it was made now.
    fileprivate mutating func drive(from attempt: Attempt?) -> (Drive, isNew: Bool) {
        if let drive { return (drive, false) }
        let drive = Drive()
        self.drive = drive
        primed = attempt
        return (drive, true)
    }
}
