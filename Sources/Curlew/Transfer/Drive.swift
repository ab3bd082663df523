// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import FoundationEssentials
internal import CurlewSupport

/// The pass of one transfer's request through its chain, in a task of its own, so that it does not depend on any of the
/// tasks that await the transfer.
final class Drive: Sendable {
    private struct State {
        var task: Task<Void, Never>?
        var isCancelled = false
        /// Whether the task was cancelled because the transfer exceeded its total timeout.
        var isOverdue = false
        var answer: Result<IncomingResponse, NetworkError>?
        /// The elements for the reader of the stream that arrive before the response.
        var informational: [TransferElement] = []
        var progress: TransferElement?
    }

    private let state = Lock(State())

    /// The response, whose body is unread or in memory; nil while the chain is running.
    var answer: Result<IncomingResponse, NetworkError>? { state.withLock { $0.answer } }

    /// Whether the transfer exceeded its total timeout before it was cancelled.
    var hasExpired: Bool { state.withLock { $0.isOverdue && !$0.isCancelled } }

    func begin(_ run: TransferRun) {
        do throws(NetworkError) {
            if let error = run.obstacle { throw error }
            // Take the hold now: otherwise the session would be idle until the task runs.
            try run.hold()
        } catch {
            state.withLock { $0.answer = .failure(error) }
            run.release()
            run.notify()
            return run.finish(error)
        }
        let task = Task { await self.work(run) }
        let isCancelled = state.withLock { state in
            state.task = task
            return state.isCancelled || state.isOverdue
        }
        if isCancelled { task.cancel() }
    }

    func cancel() {
        let task = state.withLock { state in
            state.isCancelled = true
            return state.task
        }
        task?.cancel()
    }

    private func work(_ run: TransferRun) async {
        defer { run.release() }
        let (attempt, error) = await answer(run)
        run.notify()
        // Hold the transfer until its last attempt has ended.
        if let attempt {
            let outcome = await attempt.engine.ended()
            run.releaseHold(attempt.engine)
            // A download owns its bytes, so the outcome of the last attempt does not matter.
            run.finish(run.download == nil ? outcome.failure.map { attempt.error($0, outcome) } : nil)
        } else {
            await run.abandon()
            run.finish(error)
        }
        run.notify()
    }

    /// Runs the chain, stores the response, and returns its attempt or the error of the chain.
    private func answer(_ run: TransferRun) async -> (Attempt?, NetworkError?) {
        let alarm = run.hasTotalTimeout ? Task { await self.watch(run) } : nil
        defer { alarm?.cancel() }
        do throws(NetworkError) {
            let response = try await made(run.answer(), for: run)
            if let attempt = response.attempt { run.adopt(attempt.engine) }
            state.withLock { $0.answer = .success(response) }
            return (response.attempt, nil)
        } catch {
            let late = error.isCancellation ? error.overdue(run.totalTimeoutMessage) : error
            let error = state.withLock { state in
                let error = state.isOverdue && !state.isCancelled ? late : error
                state.answer = .failure(error)
                return error
            }
            return (nil, error)
        }
    }

    /// Cancels the chain at the total timeout; an active attempt ends earlier, because the engine has the same limit.
    private func watch(_ run: TransferRun) async {
        // A request that an interceptor sent may have another limit.
        while let left = run.timeLeft {
            guard left > .zero else { return expire() }
            do { try await ContinuousClock().wait(for: left) } catch { return }
            await run.currentEnd()
        }
    }

    private func expire() {
        let task = state.withLock { state in
            state.isOverdue = true
            return state.task
        }
        task?.cancel()
    }

    /// Releases the response's body, after a reader has taken it or when there will be no reader.
    ///
    /// The body's sources may hold the transfer, which holds this drive.
    func forgetBody() {
        state.withLock { state in
            guard case .success(let response) = state.answer else { return }
            let body = IncomingBody(GoneSource(), carrier: response.body.carrier)
            state.answer = .success(IncomingResponse(response.head, body, response.request, response.attempt))
        }
    }

    /// Returns the response with its body in memory, for any number of tasks, unless a stream has claimed the body.
    private func made(_ response: IncomingResponse, for run: TransferRun) async throws(NetworkError) -> IncomingResponse
    {
        guard case .pull = response.body.source, !run.state.withLock({ $0.claim == .stream }) else { return response }
        let limit = run.host.bodyLimit(of: run.request)
        let (data, trailers) = try await response.body.whole(upTo: limit, of: run.request)
        let body = IncomingBody(data, trailers: trailers)
        return IncomingResponse(response.head, body, response.request, response.attempt)
    }

    // MARK: For the reader of the stream

    /// Stores an element that arrived before the head.
    func deposit(_ element: TransferElement) {
        state.withLock { state in
            switch element {
            case .informational:
                if state.informational.count < EngineTransfer.informationalKept { state.informational.append(element) }
            case .progress: state.progress = element
            default: break
            }
        }
    }

    /// Removes and returns the next stored element.
    func takeElement() -> TransferElement? {
        state.withLock { state in
            if !state.informational.isEmpty { return state.informational.removeFirst() }
            defer { state.progress = nil }
            return state.progress
        }
    }
}

extension NetworkError {
    /// Returns the error of a request that is not sent because the total timeout has passed.
    static func overdue(_ request: Request, after total: Duration?) -> NetworkError {
        NetworkError(
            .timedOut, phase: .preparing, totalTimeoutMessage(of: request, after: total),
            hint: "The time passed before this request, one of several, was sent.", request: request)
    }

    /// Returns the error of a chain that was cancelled by the total timeout.
    fileprivate func overdue(_ totalTimeoutMessage: String) -> NetworkError {
        NetworkError(
            .timedOut, phase: phase, totalTimeoutMessage,
            hint: "The time passed in an interceptor.", request: request, response: response, attempts: attempts,
            earlier: earlier, duration: duration)
    }
}
