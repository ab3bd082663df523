// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import CurlewSupport

extension TransferRun {
    /// Where the transfer stands, between two attempts too.
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
            return keeper?.isQueued == true ? .queued : hasStarted ? .running : .idle
        }
    }

    /// The progress of what is on the wire, without starting anything.
    var currentProgress: TransferProgress {
        if let keeper {
            var progress = progress(keeper.progress)
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

    /// Why the transfer has ended without success, as far as it has.
    var wireError: NetworkError? {
        let last: Attempt?
        switch state.withLock({ $0.drive })?.answer {
        case .failure(let error): return error
        case .success(let response): last = response.body.carrier
        case nil: last = isOverDirectly ? direct : nil
        }
        return last.flatMap { attempt in attempt.engine.failure.map { attempt.error($0, nil) } }
    }

    /// How a transfer has failed whose body somebody else took; nil while it runs, and after a success.
    ///
    /// A cancelled task gets `.cancelled`, and so does every task as soon as the transfer is cancelled, although the loop
    /// has not carried that out yet.
    var failureOfTakenBody: NetworkError? {
        let (readerError, isCancelled) = state.withLock { ($0.readerError, $0.isCancelled) }
        if let readerError, !readerError.isCancellation { return readerError }
        // Asked before the error of the wire, or a transfer that ends between the two would have neither.
        let isEnding = isCancelled && standing != .finished
        if let error = wireError ?? readerError { return error }
        return Task.isCancelled || isEnding ? .cancelled(.receiving, request) : nil
    }

    /// Whether a transfer of several attempts failed, of which the last one may have succeeded.
    private var hasFailed: Bool {
        if case .failure = state.withLock({ $0.drive })?.answer { true } else { false }
    }

    /// What was measured of the attempt that brought the response, or failed last; nil while there is none.
    var metrics: TransferMetrics? {
        if isOverDirectly { return direct?.metrics }
        switch state.withLock({ $0.drive })?.answer {
        case nil: return nil
        case .success(let response): return response.metrics
        case .failure: return state.withLock { $0.current }?.outcome.map { TransferMetrics($0.metrics) }
        }
    }
}
