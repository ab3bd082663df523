// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import CurlewSupport

extension TransferRun {
    // MARK: The chain

    /// Returns the drive, and starts it if there is no drive yet, with an attempt that turned out to be only the first.
    func drive(from attempt: Attempt? = nil) -> Drive {
        let (drive, isNew) = state.withLock { $0.drive(from: attempt) }
        if isNew { drive.begin(self) }
        return drive
    }

    /// Starts a drive, unless there is one already or the direct attempt has a reader, which starts one when necessary.
    func startDriveUnlessRead(from attempt: Attempt) {
        let begun = state.withLock { state -> Drive? in
            if state.hasDirectReader { return nil }
            let (drive, isNew) = state.drive(from: attempt)
            return isNew ? drive : nil
        }
        begun?.begin(self)
    }

    /// The error that prevents the transfer from starting; nil when it can start.
    var obstacle: NetworkError? {
        let (isCancelled, firstAttempt) = state.withLock { ($0.isCancelled, $0.firstAttempt) }
        // An attempt that is still running reports its end itself.
        if isCancelled, firstAttempt == nil { return .cancelled(.preparing, request) }
        if isCancelled, firstAttempt?.engine.outcome != nil { return .cancelled(.receiving, request) }
        // In a child process of fork() no task would ever run.
        if !host.loop.hasThread { return NetworkError(EngineFailure(.closed, phase: .preparing), request: request) }
        return nil
    }

    /// Passes the request through all interceptors and returns the response; the caller calls `release()` afterwards.
    ///
    /// - Throws: `NetworkError` of any kind.
    func answer() async throws(NetworkError) -> IncomingResponse {
        try hold()
        do throws(NetworkError) {
            return try await Interception.Next(self, host.interceptors(of: request)[...])(request)
        } catch {
            throw error.with(duration: elapsed)
        }
    }

    /// Sends a request, as the innermost step of the chain, and waits for the head of its response.
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

    /// Returns the attempt to run now, which was started: the one that the drive started with, or a new one.
    private func next(_ request: Request) throws(NetworkError) -> Attempt {
        let firstAttempt = state.withLock { state in
            defer { state.firstAttempt = nil }
            return state.firstAttempt
        }
        if let firstAttempt {
            begin()
            return firstAttempt
        }
        let isCancelled = state.withLock { $0.isCancelled }
        // Check the time limit before the task's cancellation, since the limit may have caused the cancellation.
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
        let position = AttemptPosition(
            id: id, ordinal: attempts + 1, offset: elapsedNanoseconds, continues: true, course: course,
            isSaved: download != nil)
        // An interceptor may have created a new request without the withheld fields.
        var request = request
        let withheld = state.withLock { $0.withheld }
        request.withheld += withheld.filter { !request.withheld.contains($0) }
        let attempt = try host.attempt(request, at: position)
        start(attempt, for: request)
        return attempt
    }

    private func start(_ attempt: Attempt, for request: Request) {
        let engine = attempt.engine
        let (repeated, distributor, isCancelled, isStreamed) = state.withLock { state in
            defer {
                state.attempts += 1
                state.current = engine
                state.latest = request
                state.followsRedirect = false
            }
            if state.isPaused { engine.pause() }
            if state.priority != self.request.options.priority.rawValue { engine.priority = state.priority }
            return (
                state.attempts > 0 && !state.followsRedirect ? (state.latest, state.attempts) : nil, state.distributor,
                state.isCancelled, state.claim == .stream
            )
        }
        if let (request, attempt) = repeated { emit(.retried, of: request ?? self.request, attempt: attempt) }
        if let distributor { engine.watch(distributor) }
        if isCancelled { engine.cancel() }
        // Create the reader before the start: otherwise the loop would have to be notified.
        if isStreamed { _ = attempt.reader }
        engine.startPrepared()
        notify()
    }

    /// Makes the given attempt the current one, so that `pause()`, `resume()` and `cancel()` apply to it.
    func adopt(_ engine: EngineTransfer) {
        state.withLock { state in
            state.current = engine
            if state.isPaused { engine.pause() }
            if state.isCancelled { engine.cancel() }
        }
    }

    /// Discards the current attempt of a chain that has failed, and waits for its end.
    func abandon() async {
        guard let current = state.withLock({ $0.current }) else { return }
        current.discardBody()
        _ = await current.ended()
    }

    /// Whether the transfer has a total timeout.
    var hasTotalTimeout: Bool { host.totalTimeout(of: request) != nil }

    /// The time left for the request that was sent last, or for the first one; nil when there is no limit.
    var timeLeft: Duration? {
        host.totalTimeout(of: latest).map { $0 - elapsed }
    }

    /// The message about the timeout of the request that was sent last, or of the first one.
    var totalTimeoutMessage: String {
        NetworkError.totalTimeoutMessage(of: latest, after: host.totalTimeout(of: latest))
    }

    private var latest: Request { state.withLock { $0.latest } ?? request }

    /// Waits for the end of the current attempt.
    func currentEnd() async { _ = await state.withLock({ $0.current })?.ended() }

    /// Waits for a duration, or until the session closes.
    ///
    /// - Throws: `CancellationError` when the task is cancelled, and any error of the clock.
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

    /// Notifies observers that another attempt follows after a delay.
    func willRetry(after wait: Duration, _ error: NetworkError) { emit(.waiting(wait, after: error)) }

    /// Resets the withheld fields for a request that starts over at the original URL.
    func resetWithheldFields(_ request: Request) {
        state.withLock { if !$0.withheld.isEmpty { $0.withheld = request.withheld } }
    }

    /// Records a redirect that the next attempt follows, and notifies observers.
    func didRedirect(elsewhere request: Request, by status: Status) {
        state.withLock { state in
            state.followsRedirect = true
            state.withheld = request.withheld
        }
        emit(.redirected(status, to: request.url))
    }

    // MARK: Holds

    /// Makes the session count the transfer as running, also between two attempts.
    func hold() throws(NetworkError) {
        let (isHeld, isFirst) = state.withLock { state in
            if state.startedAt == 0 { state.startedAt = Monotonic.now() }
            return (state.isHeld, state.firstAttempt == nil)
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

    /// Takes over the hold that the engine acquired when it received a redirect.
    private func adoptHold() {
        guard let current = state.withLock({ $0.current }), current.takeHold() else { return }
        let hadOne = state.withLock { state in
            defer { state.isHeld = true }
            return state.isHeld
        }
        if hadOne { host.loop.release() }
    }

    /// Releases the hold, so that the session can close or become idle.
    func release() {
        let (wasHeld, current) = state.withLock { state in
            defer { state.isHeld = false }
            return (state.isHeld, state.current)
        }
        if wasHeld { host.loop.release() }
        if let current { releaseHold(current) }
    }

    /// Releases the hold for a redirect that is not followed.
    func releaseHold(_ engine: EngineTransfer) { if engine.takeHold() { host.loop.release() } }
}

extension TransferRun.State {
    /// Returns the drive, and whether it was created now.
    fileprivate mutating func drive(from attempt: Attempt?) -> (Drive, isNew: Bool) {
        if let drive { return (drive, false) }
        let drive = Drive()
        self.drive = drive
        firstAttempt = attempt
        return (drive, true)
    }
}
