// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import CurlewSupport

extension TransferRun {
    /// The end of a transfer, or what it has reached, at one instant.
    struct Snapshot: Sendable {
        /// How the transfer finished; nil while it runs.
        let finish: Machine.Finish?
        /// The outcome of the attempt that finished the transfer.
        let outcome: EngineTransfer.Outcome?
        /// The current or last attempt.
        let latest: EngineTransfer?
        /// The attempt of a transfer whose chain has not run.
        fileprivate let first: Attempt?
        /// The counters of the latest attempt.
        let counters: Counters?
        fileprivate let cancellation: NetworkError

        /// The error of a failed transfer; nil while it runs, and after a success.
        var error: NetworkError? {
            switch finish {
            case .failed(let error)?: error
            case .cancelled?: cancellation
            case .attempt(_, nil)?: outcome?.failure.flatMap { first?.error($0, outcome) }
            case .attempt(_, let response?)?: response.value.failure(outcome)
            case .made?, nil: nil
            }
        }

        /// The metrics of the attempt that delivered the response, or of the last attempt; nil until the transfer has
        /// finished.
        var metrics: TransferMetrics? {
            switch finish {
            case nil: nil
            case .attempt(_, nil)?: outcome.flatMap { first?.metrics($0) }
            case .attempt(let engine, let response?)?:
                if let outcome, let attempt = response.value.attempt, attempt.engine === engine {
                    response.value.marking(attempt.metrics(outcome))
                } else {
                    response.value.metrics
                }
            case .made(let response)?: response.value.metrics
            case .failed?, .cancelled?: latest?.outcome.map { TransferMetrics($0.metrics) }
            }
        }
    }

    /// The state that users see, at this instant.
    var visibleState: Lifecycle.State {
        // Read before the lock of the run is taken, because downloads take that lock inside their own.
        let isQueued = download?.isQueued == true
        return state.withLock { $0.visibleState($0.machine.latest?.snapshot.state, isQueued: isQueued) }
    }

    /// The end of the transfer, or what it has reached at this instant.
    var snapshot: Snapshot {
        state.withLock { state in
            let latest = state.machine.latest
            return Snapshot(
                finish: state.machine.finish, outcome: state.outcome, latest: latest, first: state.first,
                counters: latest?.snapshot.counters, cancellation: .cancelled(state.phase, request))
        }
    }

    /// The metrics of the attempt that delivered the response, or of the last attempt; nil until the transfer has
    /// finished.
    var metrics: TransferMetrics? { snapshot.metrics }

    /// The error of a failed transfer whose body another reader has taken; nil while it runs without a cancellation,
    /// and after a success.
    ///
    /// If there is no other error, a cancelled task gets `.cancelled`. When the transfer is cancelled, every task gets
    /// `.cancelled` at once, even before the loop has processed the cancellation.
    var failureOfTakenBody: NetworkError? {
        let (readerError, isCancelled) = state.withLock { ($0.readerError, $0.machine.isCancelled) }
        if let readerError, !readerError.isCancellation { return readerError }
        let snapshot = snapshot
        if let error = snapshot.error ?? readerError { return error }
        let isEnding = isCancelled && snapshot.finish == nil
        return Task.isCancelled || isEnding ? .cancelled(.receiving, request) : nil
    }

    // MARK: Progress

    /// The progress of the current attempt or of the download; reading it does not start the transfer.
    var currentProgress: TransferProgress { progress(of: snapshot) }

    /// Returns the progress in a snapshot; its rate is 0.
    func progress(of snapshot: Snapshot) -> TransferProgress {
        var progress: TransferProgress
        if let download {
            progress = download.progress
            progress.bytesPerSecond = 0
            progress.elapsed = elapsed
        } else if case .made(let response)? = snapshot.finish {
            let count: Int64 = if case .bytes(let data, _) = response.value.body.source { Int64(data.count) } else { 0 }
            return TransferProgress(received: count, expectedToReceive: count, isFinished: true, elapsed: elapsed)
        } else if let counters = snapshot.counters {
            progress = TransferProgress(counters, rate: 0)
            progress.elapsed = reportedElapsed(at: counters)
        } else {
            progress = TransferProgress()
        }
        progress.isFinished = snapshot.finish != nil && snapshot.error == nil
        return progress
    }

    /// Returns the time of the transfer at an attempt's counters; the reported time never decreases.
    private func reportedElapsed(at counters: Counters) -> Duration {
        let now = elapsed
        return state.withLock { state in
            guard state.startedAt > 0 else { return .zero }
            // An attempt that does not run yet has no time of its own.
            let isRunning = counters.at > state.startedAt
            let time = isRunning ? .nanoseconds(Int64(clamping: counters.at - state.startedAt)) : now
            state.reportedElapsed = max(state.reportedElapsed, time)
            return state.reportedElapsed
        }
    }
}

extension TransferRun.State {
    /// The phase for the error of an interceptor, and for that of a cancellation between two attempts.
    var phase: NetworkError.Phase { machine.attempts == 0 ? .preparing : .validating }

    /// The state that users see.
    ///
    /// - Parameters:
    ///   - engine: The state of the current or last attempt.
    ///   - isQueued: Whether a download waits in its queue.
    fileprivate func visibleState(_ engine: Lifecycle.State?, isQueued: Bool) -> Lifecycle.State {
        switch machine.phase {
        case .idle: return .idle
        case .finished: return .finished
        case .folded, .responded: return engine == .finished || engine == nil ? .running : engine ?? .running
        case .runningChain:
            if let engine, engine != .finished, engine != .idle { return engine }
            return machine.isPaused ? .paused : isQueued ? .queued : .running
        }
    }
}
