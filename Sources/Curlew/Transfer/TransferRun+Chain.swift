// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import CurlewSupport
internal import FoundationEssentials

extension TransferRun {
    // MARK: The chain

    /// Runs the chain in a task that does not depend on any of the tasks that await the transfer.
    func runChain() {
        // In a child process of fork() no task would ever run.
        guard session.loop.hasThread else { return on(.fail(closed)) }
        let (own, first) = state.withLock { ($0.hold, $0.machine.latest) }
        guard let hold = own ?? first?.takeHold() ?? session.loop.hold() else {
            first?.cancel()
            return on(.fail(closed))
        }
        let startPriority = state.withLock { state in
            state.hold = hold
            return state.startPriority
        }
        let task = Task(priority: startPriority) { await execute() }
        let isCancelled = state.withLock { state in
            if !state.machine.isFinished { state.chainTask = task }
            return state.machine.isCancelled || state.machine.isExpired
        }
        if isCancelled { task.cancel() }
    }

    private var closed: NetworkError { NetworkError(EngineFailure(.closed, phase: .preparing), request: request) }

    /// Passes the request through the chain, in the calling task, and gives the result to the machine.
    func execute() async {
        let alarm = session.totalTimeout(of: request) == nil ? nil : Task { await self.watchTotalTimeout() }
        defer { alarm?.cancel() }
        do throws(NetworkError) {
            if let error = cancellationBeforeChain { throw error }
            let response = try await Interception.Next(self, chain)(request)
            // A chain that did not send the request does not need the attempt that was started before it.
            state.withLock { $0.takeFirst() }?.engine.cancel()
            try await respond(withBodyInMemory(response))
        } catch {
            await abandonAttempt()
            fail(error.with(duration: elapsed))
        }
    }

    /// Runs the transfer for the calling task, in that task if possible, and returns the collected response.
    ///
    /// - Parameter continues: Whether the run continues an attempt that was started without it.
    func runForCaller(continues: Bool) async throws(NetworkError) -> Response<Data> {
        try checkStart()
        // The time limit must also stop the interceptors, and only a task of the transfer's own can be cancelled.
        let needsTask = session.totalTimeout(of: request) != nil
        if continues {
            if needsTask { runChain() } else { await execute() }
        } else if !needsTask, state.withLock({ $0.beginChain(by: session.loop.clock) }) {
            if let hold = session.loop.hold() {
                state.withLock { $0.hold = hold }
                await execute()
            } else {
                on(.fail(closed))
            }
        }
        return try await response()
    }

    /// The error of a transfer that was cancelled before its chain ran; nil while its attempt still runs, whose end has
    /// the error.
    private var cancellationBeforeChain: NetworkError? {
        let (isCancelled, latest) = state.withLock { ($0.machine.isCancelled, $0.machine.latest) }
        guard isCancelled, latest == nil || latest?.hasFinished == true else { return nil }
        return .cancelled(latest == nil ? .preparing : .receiving, request)
    }

    /// Returns the response with its body in memory, for any number of tasks, unless an attempt of this transfer
    /// delivers the body or a stream has claimed it.
    private func withBodyInMemory(_ response: IncomingResponse) async throws(NetworkError) -> IncomingResponse {
        if isStreamed { return response }
        switch response.body.source {
        case .bytes: return response
        case .wire(let attempt) where owns(attempt): return response
        case .wire, .pull: break
        }
        let (data, trailers) = try await response.body.copied(upTo: session.bodyLimit(of: request), of: request)
        let body = IncomingBody(data, trailers: trailers)
        return IncomingResponse(response.head, body, response.request, response.attempt)
    }

    private func respond(_ response: IncomingResponse) async {
        // The attempt of another transfer, whose response an interceptor has kept, reports to that transfer.
        guard let attempt = response.body.carrier ?? response.attempt, owns(attempt) else {
            return on(.respond(ChainResponse(response), nil, hasEnded: true))
        }
        while !respond(response, receivedBy: attempt) { _ = await attempt.engine.waitForEndUncancelled() }
    }

    func owns(_ attempt: Attempt) -> Bool { attempt.engine.plan.transfer == id }

    /// Discards the current attempt of a chain that has failed, and waits for its end.
    private func abandonAttempt() async {
        guard let engine = state.withLock({ $0.machine.latest }) else { return }
        engine.discardBody()
        _ = await engine.waitForEndUncancelled()
    }

    private func fail(_ error: NetworkError) {
        on(.fail(isOverdue && error.isCancellation ? error.overdue(totalTimeoutMessage) : error))
    }

    // MARK: The innermost step

    /// Sends a request and waits for the head of its response; the first call takes an attempt that was started before
    /// the chain.
    func send(_ request: Request) async throws(NetworkError) -> IncomingResponse {
        let attempt: Attempt
        if let first = state.withLock({ $0.takeFirst() }) { attempt = first } else { attempt = try start(request) }
        await waitForHead(of: attempt)
        if Task.isCancelled {
            attempt.engine.cancel()
            _ = await attempt.engine.waitForEndUncancelled()
        }
        switch attempt.engine.firstResult {
        case .head(let raw)?: return attempt.response(raw)
        case .ended(let outcome)?: throw attempt.error(outcome)
        case nil: throw .headless(request)
        }
    }

    private func waitForHead(of attempt: Attempt) async {
        await wait(for: attempt) { state, waiter in
            let status = attempt.engine.requestHead()
            if case .isPending = status { _ = state.machine.on(.awaitHead(attempt.id, waiter)) }
            return status
        }
    }

    /// Waits until the body of a response is collected, without taking it, or until a reader starts to stream it.
    ///
    /// - Returns: The response, with a body in memory if interceptors have changed the body.
    func waitUntilCollected(_ response: IncomingResponse) async throws(NetworkError) -> IncomingResponse {
        guard let attempt = response.body.unreadAttempt, owns(attempt) else {
            return try await withBodyInMemory(response)
        }
        await wait(for: attempt) { state, waiter in
            if state.machine.claim == .stream { return .isKnown }
            let status = attempt.engine.endStatus
            if case .isPending = status { _ = state.machine.on(.awaitEnd(attempt.id, waiter)) }
            return status
        }
        if let outcome = attempt.engine.outcome, let failure = outcome.failure, !isStreamed {
            throw attempt.error(failure, outcome)
        }
        return response
    }

    /// Waits for a report of an attempt; a cancelled task cancels the attempt.
    ///
    /// - Parameter register: Registers the waiter under the lock of the run if the report is pending; returns its
    ///   status.
    private func wait(
        for attempt: Attempt, _ register: (inout State, Waiter) -> EngineTransfer.ReportStatus
    ) async {
        let isComplete = await withTaskCancellationHandler {
            await withUnsafeContinuation { (continuation: UnsafeContinuation<Bool, Never>) in
                let waiter = Waiter(continuation)
                switch state.withLock({ register(&$0, waiter) }) {
                case .isKnown: continuation.resume(returning: true)
                case .isEnding: continuation.resume(returning: false)
                case .isPending: break
                }
            }
        } onCancel: {
            attempt.engine.cancel()
        }
        if !isComplete { _ = await attempt.engine.waitForEndUncancelled() }
    }

    /// Starts another attempt.
    private func start(_ request: Request) throws(NetworkError) -> Attempt {
        let isCancelled = state.withLock { $0.machine.isCancelled }
        // Check the time limit before the task's cancellation, since the limit may have caused the cancellation.
        if !isCancelled, let total = session.totalTimeout(of: request), elapsed >= total {
            throw .overdue(request, after: total)
        }
        if isCancelled || Task.isCancelled { throw .cancelled(phase, request) }
        let (number, previous) = state.withLock { ($0.machine.reserveOrdinal(), $0.machine.latest) }
        let position = AttemptPosition(
            id: id, ordinal: number, offset: elapsedNanoseconds, continues: true, isSaved: download != nil)
        let request = withholding(request)
        let attempt: Attempt
        do throws(NetworkError) {
            attempt = try session.attempt(request, at: position)
        } catch {
            state.withLock { $0.machine.releaseOrdinal(number) }
            throw error
        }
        let (last, isRepeated) = state.withLock { state in
            defer { (state.latestRequest, state.followsRedirect) = (request, false) }
            return (state.latestRequest, number > 1 && !state.followsRedirect)
        }
        if isRepeated { emit(.retried, of: last ?? self.request, attempt: number - 1) }
        on(.sent(attempt.engine))
        // Release `previous` and `last` after the lock, because their release may run code of the user.
        withExtendedLifetime((previous, last)) {}
        return attempt
    }

    // MARK: Steps of interceptors

    /// Records what an interceptor does next, and notifies observers.
    func announce(_ step: Interception.Step) {
        switch step {
        case .waits(let wait, let error):
            state.withLock { $0.isRetrying = true }
            session.relay.keep(retrying: self)
            emit(.waiting(wait, after: error))
        case .restarts(let request):
            state.withLock { if !$0.withheld.isEmpty { $0.withheld = request.withheld } }
        case .redirects(let request, let status):
            state.withLock { state in
                state.followsRedirect = true
                state.withheld = request.withheld
            }
            emit(.redirected(status, to: request.url))
        case .cached(let report, let request): emit(.cached(report), of: request, attempt: attempts)
        case .upgrades(let request):
            // A retry of the http request is still a retry.
            emit(.redirected(.temporaryRedirect, to: request.url))
        }
    }

    // MARK: The total timeout

    /// Cancels the chain at the total timeout; an active attempt ends by itself, because the engine has the same limit.
    private func watchTotalTimeout() async {
        // A request that an interceptor sent may have another limit.
        while let total = session.totalTimeout(of: latestRequest) {
            let left = total - elapsed
            guard left > .zero else { return on(.expire) }
            do { try await session.clock.wait(for: left) } catch { return }
            _ = await state.withLock({ $0.machine.latest })?.waitForEndUncancelled()
        }
    }

    /// The message of a total timeout, for the limit of the latest request.
    private var totalTimeoutMessage: String {
        NetworkError.totalTimeoutMessage(of: latestRequest, after: session.totalTimeout(of: latestRequest))
    }

    private var latestRequest: Request { state.withLock { $0.latestRequest } ?? request }

    // MARK: For the context of interceptors

    func context(for request: Request) -> Interception.Context {
        Interception.Context(self, total: session.totalTimeout(of: request))
    }

    /// Returns a request that omits the fields that redirects to other origins have removed; an interceptor may have
    /// made a new request that does not.
    func withholding(_ request: Request) -> Request {
        let missing = state.withLock { $0.withheld }.filter { !request.withheld.contains($0) }
        if missing.isEmpty { return request }
        var request = request
        request.withheld += missing
        return request
    }

    /// Whether an attempt was started before the chain, and the chain has not taken it yet.
    var isFirstAttemptSent: Bool { state.withLock { $0.machine.hasFirst } }

    func certificateError(for request: Request) -> NetworkError? {
        let errors = state.withLock { $0.certificateErrors }
        if errors.isEmpty { return nil }
        return (try? request.target()).flatMap { errors[HostName.key($0.host) ?? $0.host] }
    }

    func keepCertificateError(_ error: NetworkError, of host: String) {
        let key = HostName.key(host) ?? host
        state.withLock { if $0.certificateErrors[key] == nil { $0.certificateErrors[key] = error } }
    }

    var isStreamed: Bool { state.withLock { $0.machine.claim == .stream } }

    var attempts: Int { state.withLock { $0.machine.attempts } }

    /// The phase for the error of an interceptor.
    var phase: NetworkError.Phase { state.withLock { $0.phase } }

    /// The time since the start; zero before it.
    var elapsed: Duration { .nanoseconds(Int64(clamping: elapsedNanoseconds)) }

    private var elapsedNanoseconds: UInt64 {
        let start = state.withLock { $0.startedAt }
        return start == 0 ? 0 : session.loop.clock.now() &- start
    }
}

extension Interception {
    /// A step that an interceptor takes next.
    enum Step {
        /// The interceptor waits before it sends the request again after an error.
        case waits(Duration, after: NetworkError)
        /// The interceptor starts over at the original URL.
        case restarts(Request)
        /// The interceptor follows a redirect with a request.
        case redirects(to: Request, by: Status)
        /// The cache has handled a request.
        case cached(HTTPCache.Report, for: Request)
        /// The interceptor sends an http request as this https request.
        case upgrades(to: Request)
    }
}

extension NetworkError {
    /// Returns the error of a request that is not sent because the total timeout has passed.
    static func overdue(_ request: Request, after total: Duration?) -> NetworkError {
        NetworkError(
            .timedOut, phase: .preparing, totalTimeoutMessage(of: request, after: total),
            hint: "The time limit passed before this attempt was sent.", request: request)
    }

    /// Returns the error of a chain that was cancelled by the total timeout.
    fileprivate func overdue(_ totalTimeoutMessage: String) -> NetworkError {
        NetworkError(
            .timedOut, phase: phase, totalTimeoutMessage,
            hint: "The time limit passed while an interceptor was running.", request: request, response: response,
            attempts: attempts, earlier: earlier, duration: duration)
    }
}
