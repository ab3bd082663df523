// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import FoundationEssentials
internal import CurlewSupport

/// A reference to one run of a request, which keeps the transfer alive.
///
/// Every public view of a transfer holds a token. When the last one is released, an unfinished transfer is cancelled,
/// unless it was started with `start()` and is not paused: a paused transfer could never be resumed.
final class TransferToken: Sendable {
    let run: TransferRun

    init(_ run: TransferRun) { self.run = run }

    deinit {
        guard !run.isDetached || run.isPaused else { return }
        run.cancel()
        run.state.withLock { $0.drive }?.forgetBody()
    }
}

extension TransferToken: CustomReflectable {
    /// The request alone.
    var customMirror: Mirror { Mirror(self, children: ["request": run.request.description]) }
}

extension TransferRun {
    // MARK: For one task that does not share the transfer

    /// Runs the transfer in the calling task and returns the collected response.
    func collect() async throws(NetworkError) -> Response<Data> {
        if let first {
            if let error = refused() { throw error }
            let attempt = try first.get()
            try refuseCancelledTask()
            begin()
            if let outcome = await attempt.engine.endingOrLed(), !isProvisional(outcome) {
                return try await attempt.response(outcome)
            }
            state.withLock { $0.firstAttempt = attempt }
        } else if hasTotalTimeout {
            // The time limit must also stop the interceptors, and only a task of the transfer's own can be cancelled.
            return try await response()
        } else {
            try refuseCancelledTask()
        }
        defer { release() }
        do throws(NetworkError) {
            let response = try await answer()
            let whole = try await whole(response)
            if let attempt = response.attempt { _ = await attempt.engine.ended() }
            finish(nil)
            return whole
        } catch {
            await abandon()
            finish(error)
            throw error
        }
    }

    private func whole(_ response: IncomingResponse) async throws(NetworkError) -> Response<Data> {
        if let attempt = response.body.untouched {
            defer { releaseHold(attempt.engine) }
            return try await collected(response, attempt, attempt.engine.ending())
        }
        let (body, trailers) = try await response.body.whole(upTo: host.bodyLimit(of: request), of: response.request)
        return Response(
            head: response.head, value: body, metrics: response.metrics ?? TransferMetrics(), trailers: trailers)
    }

    // MARK: For all tasks that await the value

    /// Returns the collected response; every call returns the same one.
    func response() async throws(NetworkError) -> Response<Data> {
        try claimValue()
        try refuseCancelledTask()
        state.withLock { $0.waitingTasks += 1 }
        let interest = Interest(self)
        defer { interest.end() }
        begin()
        if let attempt = direct, state.withLock({ $0.drive == nil }) {
            if let outcome = try await outcome(of: attempt, interest, orLed: true), !isProvisional(outcome) {
                return try await attempt.response(outcome)
            }
            _ = drive(from: attempt)
        }
        return try await driven(interest)
    }

    private func driven(_ interest: Interest) async throws(NetworkError) -> Response<Data> {
        let drive = drive()
        while drive.answer == nil {
            let seen = signal.count
            guard drive.answer == nil else { break }
            if await signal.wait(after: seen) { continue }
            if interest.leave() { throw withdrawn }
            cancel()
            await waitForAnswer(of: drive)
        }
        guard let answer = drive.answer else { throw .cancelled(.waiting, request) }
        let response = try answer.get()
        switch response.body.source {
        case .wire(let attempt) where response.body.untouched != nil:
            guard let outcome = try await outcome(of: attempt, interest) else { throw .headless(request) }
            return try await collected(response, attempt, outcome)
        case .bytes(let body, let trailers):
            return Response(
                head: response.head, value: body, metrics: response.metrics ?? TransferMetrics(), trailers: trailers)
        case .wire, .pull: throw .takenBody(response.request)
        }
    }

    /// Waits for the response, even if the waiting task is cancelled.
    func waitForAnswer(of drive: Drive) async {
        while true {
            let seen = signal.count
            if drive.answer != nil { return }
            await signal.waitUncancelled(after: seen)
        }
    }

    private func collected(
        _ response: IncomingResponse, _ attempt: Attempt, _ outcome: EngineTransfer.Outcome
    ) async throws(NetworkError) -> Response<Data> {
        var collected = try await attempt.response(outcome)
        collected.head = response.head
        return collected
    }

    /// The error for a task that stops waiting while other tasks continue to wait.
    private var withdrawn: NetworkError {
        guard attempts > 0, let now = state.withLock({ $0.current })?.snapshot else {
            return .cancelled(.preparing, request)
        }
        let phase: EngineFailure.Phase = now.counters.received > 0 ? .receiving : .waiting
        return NetworkError(
            EngineFailure(.cancelled, phase: now.state == .queued ? .queued : phase), request: request,
            duration: elapsed)
    }

    /// Waits for the end of an attempt; nil when `orLed` is true and the response is a redirect.
    ///
    /// When the task is cancelled, the call throws if other tasks still wait, and cancels the transfer otherwise.
    private func outcome(
        of attempt: Attempt, _ interest: Interest, orLed: Bool = false
    ) async throws(NetworkError) -> EngineTransfer.Outcome? {
        let engine = attempt.engine
        if let outcome = await engine.finished(orLed: orLed) { return outcome }
        if orLed && !Task.isCancelled { return nil }
        if interest.leave() { throw withdrawn }
        // No other task waits: cancel the transfer too, and wait until it has ended before returning.
        cancel()
        return await engine.ended()
    }
}

/// The registration of one task that awaits the value of a transfer.
private final class Interest: Sendable {
    private let run: TransferRun
    private let hasEnded = Lock(false)

    init(_ run: TransferRun) { self.run = run }

    func end() { _ = leave() }

    /// Ends the registration, and returns whether the transfer continues without this task.
    func leave() -> Bool {
        let isFirst = hasEnded.withLock { hasEnded in
            defer { hasEnded = true }
            return !hasEnded
        }
        return run.state.withLock { state in
            if isFirst { state.waitingTasks -= 1 }
            return state.waitingTasks > 0 || state.isDetached
        }
    }
}

extension EngineTransfer {
    /// Waits for the end; a cancelled task cancels the transfer and gets its outcome.
    func ending() async -> Outcome {
        if let outcome = await finished() { return outcome }
        cancel()
        return await ended()
    }

    /// Waits for the end, as `ending()` does; nil when the response is a redirect or a reader takes the steps.
    func endingOrLed() async -> Outcome? {
        if let outcome = await finished(orLed: true) { return outcome }
        return Task.isCancelled ? await ending() : nil
    }
}

extension NetworkError {
    static func headless(_ request: Request) -> NetworkError {
        NetworkError(.internal, phase: .receiving, "A response ended before its head.", request: request)
    }

    static func takenBody(_ request: Request) -> NetworkError {
        NetworkError(
            invalid: .usage, "The body has been read already.",
            hint: "A body is read once. An interceptor that reads it returns a response with a new body (with(body:)).",
            request: request, phase: .receiving)
    }
}
