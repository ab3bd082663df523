// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import FoundationEssentials
internal import CurlewSupport

extension TransferRun {
    // MARK: The value

    /// Returns the collected response; every call returns the same one.
    ///
    /// A cancelled task stops waiting. If no other task waits or reads the file, the transfer is cancelled, unless it
    /// is detached.
    nonisolated(nonsending) func response() async throws(NetworkError) -> Response<Data> {
        try checkStart()
        try claimValue()
        guard await waitUntilFinished() else { throw withdrawn }
        // Most responses need no decoding; returning them here saves an asynchronous call.
        if let plain = plainResponse { return plain }
        return try await collected()
    }

    /// The response of a transfer that finished without its chain, if the response needs no decoding.
    private var plainResponse: Response<Data>? {
        let (first, outcome) = state.withLock { state -> (Attempt?, EngineTransfer.Outcome?) in
            guard case .finished(.attempt(_, nil)) = state.machine.phase else { return (nil, nil) }
            return (state.first, state.outcome)
        }
        guard let first, let outcome else { return nil }
        return first.plainResponse(outcome)
    }

    /// Starts the transfer and waits until it has finished; returns false when the task was cancelled and the transfer
    /// continues.
    private nonisolated(nonsending) func waitUntilFinished() async -> Bool {
        let id = EngineTransfer.nextID()
        refold()
        return await withTaskCancellationHandler {
            await withUnsafeContinuation { continuation in
                on(.awaitFinish(Waiter(continuation, id: id)))
                // A cancellation before this point has found no waiter.
                if Task.isCancelled { on(.leave(id)) }
            }
        } onCancel: {
            on(.leave(id))
        }
    }

    /// Waits until the transfer has finished or was never started, even if the waiting task is cancelled.
    func waitUntilFinishedUncancelled() async {
        _ = await withUnsafeContinuation { continuation in
            if state.withLock({ $0.machine.hasStarted }) {
                on(.awaitFinish(Waiter(continuation)))
            } else {
                continuation.resume(returning: true)
            }
        }
    }

    /// Returns the response of a transfer that has finished.
    private func collected() async throws(NetworkError) -> Response<Data> {
        let (finish, outcome, first) = state.withLock { ($0.machine.finish, $0.outcome, $0.first) }
        switch finish {
        case .attempt(_, nil)?:
            guard let first, let outcome else { throw .headless(request) }
            return try await first.collected(outcome)
        case .attempt(_, let response?)?:
            if let error = response.value.failure(outcome) { throw error }
            guard let outcome, let attempt = response.value.body.unreadAttempt, attempt.engine.claimCollecting() else {
                return try response.value.inMemory()
            }
            var collected = try await attempt.collected(outcome)
            collected.head = response.value.head
            return collected
        case .made(let response)?: return try response.value.inMemory()
        case .failed(let error)?: throw error
        case .cancelled?, nil: throw cancellation
        }
    }

    /// The attempt that delivered the response; nil if no attempt did.
    var finalAttempt: Attempt? {
        state.withLock { state in
            switch state.machine.finish {
            case .attempt(_, nil)?: state.first
            case .attempt(_, let response?)?, .made(let response)?: response.value.attempt
            case .failed?, .cancelled?, nil: nil
            }
        }
    }

    /// The request of the response: the last one after redirects.
    var finalRequest: Request {
        state.withLock { state in
            switch state.machine.finish {
            case .attempt(_, let response?)?, .made(let response)?: response.value.request
            default: state.first?.request ?? request
            }
        }
    }

    /// Whether a holder has cancelled the transfer, or the last waiting task was cancelled.
    var isCancelled: Bool { state.withLock { $0.machine.isCancelled } }

    /// The error of a transfer that was cancelled before its start, or between two attempts.
    var cancellation: NetworkError { .cancelled(phase, request) }

    /// The error for a cancelled task whose transfer continues.
    private var withdrawn: NetworkError {
        guard attempts > 0, let now = state.withLock({ $0.machine.latest })?.snapshot else {
            return .cancelled(.preparing, request)
        }
        let phase: EngineFailure.Phase = now.counters.received > 0 ? .receiving : .waiting
        return NetworkError(
            EngineFailure(.cancelled, phase: now.state == .queued ? .queued : phase), request: request,
            duration: elapsed)
    }

    /// Claims the body for `value`, so that it is collected.
    ///
    /// - Throws: An error when a stream has taken the body.
    private func claimValue() throws(NetworkError) {
        let hasClaim = state.withLock { $0.machine.claimValue() }
        if hasClaim || download != nil { return }
        if let error = failureOfTakenBody { throw error }
        throw NetworkError(
            invalid: .usage, "A stream has taken the body, so the transfer has no value.",
            hint: "Await the value or iterate the stream, not both.", request: request, phase: .receiving)
    }

    /// Throws if the transfer was refused (its end is then reported), or if the task was cancelled before the start.
    func checkStart() throws(NetworkError) {
        if let error = state.withLock({ $0.machine.refusal }) {
            start()
            throw error
        }
        if Task.isCancelled && state.withLock({ !$0.machine.hasStarted }) { throw .cancelled(.preparing, request) }
    }
}
