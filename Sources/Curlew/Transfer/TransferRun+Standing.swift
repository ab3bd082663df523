// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import CurlewSupport

extension TransferRun {
    /// The state of the transfer, also between two attempts.
    var standing: Lifecycle.State {
        if case .failure = first { return .finished }
        if isOverDirectly { return .finished }
        let (drive, current, isPaused, hasStarted, hasEnded) = state.withLock { state in
            (state.drive, state.current, state.isPaused, state.startedAt > 0, state.end != nil)
        }
        let now = current?.snapshot.state
        guard let drive else { return now == .finished && !hasEnded ? .running : now ?? .idle }
        switch drive.answer {
        case .failure: return .finished
        case .success(let response): return response.body.carrier == nil ? .finished : now ?? .finished
        case nil:
            if let now, now != .finished, now != .idle { return now }
            if isPaused { return .paused }
            return download?.isQueued == true ? .queued : hasStarted ? .running : .idle
        }
    }

    /// The progress of the current attempt; reading it does not start the transfer.
    var currentProgress: TransferProgress {
        if let download {
            var progress = progress(download.progress)
            if case .success = state.withLock({ $0.drive })?.answer { progress.isFinished = true }
            return progress
        }
        guard let current = state.withLock({ $0.current }) else {
            return end(of: nil) ?? .refused
        }
        var progress = progress(current.snapshot.counters, rate: 0)
        if progress.isFinished, standing != .finished || hasFailed { progress.isFinished = false }
        return progress
    }

    /// The error of a failed transfer; nil while it runs, and after a success.
    var wireError: NetworkError? {
        let last: Attempt?
        switch state.withLock({ $0.drive })?.answer {
        case .failure(let error): return error
        case .success(let response): last = response.body.carrier
        case nil: last = isOverDirectly ? direct : nil
        }
        return last.flatMap { attempt in attempt.engine.failure.map { attempt.error($0, nil) } }
    }

    /// The error of a failed transfer whose body another reader has taken; nil while it runs, and after a success.
    ///
    /// A cancelled task gets `.cancelled`. When the transfer is cancelled, every task gets `.cancelled` at once, even
    /// before the loop has processed the cancellation.
    var failureOfTakenBody: NetworkError? {
        let (readerError, isCancelled) = state.withLock { ($0.readerError, $0.isCancelled) }
        if let readerError, !readerError.isCancellation { return readerError }
        // Read the state before the error: a transfer that ends in between would otherwise show neither.
        let isEnding = isCancelled && standing != .finished
        if let error = wireError ?? readerError { return error }
        return Task.isCancelled || isEnding ? .cancelled(.receiving, request) : nil
    }

    /// Whether a transfer with several attempts failed; its last attempt may have succeeded.
    private var hasFailed: Bool {
        if case .failure = state.withLock({ $0.drive })?.answer { true } else { false }
    }

    /// The metrics of the attempt that delivered the response, or that failed last; nil before that.
    var metrics: TransferMetrics? {
        if isOverDirectly { return direct?.metrics }
        switch state.withLock({ $0.drive })?.answer {
        case nil: return nil
        case .success(let response): return response.metrics
        case .failure: return state.withLock { $0.current }?.outcome.map { TransferMetrics($0.metrics) }
        }
    }
}

extension TransferRun {
    /// Cancels the current attempt of a transfer that continues with another attempt.
    func dropAttempt() { state.withLock { $0.current }?.cancel() }

    /// Waits until the transfer is not paused any more; false when the task was cancelled first.
    func waitWhilePaused() async -> Bool {
        while true {
            let seen = signal.count
            if !isPaused { return true }
            guard await signal.wait(after: seen) else { return false }
        }
    }
}
