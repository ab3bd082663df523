// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import CurlewSupport

/// An observer of a transfer's progress.
final class ProgressObserver: Sendable {
    private struct State {
        /// The observed attempt, and its last counters.
        var engine: EngineTransfer?
        var last: Counters?
        var isDone = false
        var meter = RateMeter()
        /// The last progress that was delivered for a download, and its time.
        var delivered: TransferProgress?
        var deliveredAt: UInt64 = 0
        /// Whether a timer is running that wakes the observer for the next progress.
        var isTimed = false
    }

    private let token: TransferToken
    private let state = Lock(State())

    init(_ token: TransferToken) { self.token = token }

    func next() async -> TransferProgress? {
        let run = token.run
        if state.withLock({ $0.isDone }) { return nil }
        if run.refused() != nil { return done(.refused) }
        run.startObserved()
        if let download = run.download { return await next(of: download, run) }
        while true {
            let seen = run.signal.count
            guard let engine = run.state.withLock({ $0.current }) else {
                // An interceptor is running, or has returned its own response.
                if let answer = run.end(of: nil) { return done(answer) }
                if await run.signal.wait(after: seen) { continue }
                return nil
            }
            let last = state.withLock { $0.engine === engine ? $0.last : nil }
            if last?.isFinished != true {
                guard let counters = await engine.progress(after: last) else { return nil }
                let progress = recorded(counters, of: engine)
                if !counters.isFinished { return progress }
            }
            if let end = run.end(of: engine) { return done(end) }
            if run.state.withLock({ $0.current === engine }) {
                guard await run.signal.wait(after: seen) else { return nil }
            }
        }
    }

    private func next(of download: DownloadRun, _ run: TransferRun) async -> TransferProgress? {
        while true {
            let seen = run.signal.count
            if let answer = run.state.withLock({ $0.drive })?.answer {
                var last = run.progress(download.progress)
                if case .success = answer { last.isFinished = true }
                return done(last)
            }
            let (now, progress, transferred) = (Monotonic.now(), run.progress(download.progress), download.transferred)
            let interval = run.host.loop.configuration.progressInterval
            var wait: UInt64?
            let reported = state.withLock { state -> TransferProgress? in
                let isNew =
                    state.delivered?.received != progress.received
                    || state.delivered?.expectedToReceive != progress.expectedToReceive
                guard isNew else { return nil }
                let since = now &- state.deliveredAt
                guard since >= interval else {
                    // A timer makes sure that the last value is delivered even when no further change follows.
                    if !state.isTimed { wait = interval - since }
                    state.isTimed = true
                    return nil
                }
                (state.delivered, state.deliveredAt) = (progress, now)
                state.meter.record(now: now, totalBytes: transferred)
                var reported = progress
                reported.bytesPerSecond = state.meter.bytesPerSecond
                return reported
            }
            if let reported { return reported }
            if let wait { ring(run, after: wait) }
            guard await run.signal.wait(after: seen) else { return nil }
        }
    }

    private func ring(_ run: TransferRun, after wait: UInt64) {
        Task { [weak self, weak run] in
            try? await ContinuousClock().wait(for: .nanoseconds(Int64(clamping: wait)))
            self?.state.withLock { $0.isTimed = false }
            run?.notify()
        }
    }

    private func done(_ progress: TransferProgress) -> TransferProgress {
        state.withLock { state in
            state.isDone = true
            var progress = progress
            progress.bytesPerSecond = state.meter.bytesPerSecond
            return progress
        }
    }

    private func recorded(_ counters: Counters, of engine: EngineTransfer) -> TransferProgress {
        state.withLock { state in
            (state.engine, state.last) = (engine, counters)
            state.meter.record(now: counters.at, totalBytes: counters.sent + counters.received)
            return token.run.progress(counters, rate: state.meter.bytesPerSecond)
        }
    }
}

extension TransferRun {
    /// Returns the last progress if the transfer has ended with this attempt; nil while it continues.
    func end(of engine: EngineTransfer?) -> TransferProgress? {
        if isOverDirectly, let attempt = direct { return progress(attempt.engine.snapshot.counters, rate: 0) }
        switch state.withLock({ $0.drive })?.answer {
        case nil: return nil
        case .failure:
            return engine.map { failed($0) } ?? .refused
        case .success(let response):
            if let engine = response.body.carrier?.engine {
                return engine.outcome == nil ? nil : progress(engine.snapshot.counters, rate: 0)
            }
            if case .bytes(let data, _) = response.body.source { return answered(Int64(data.count)) }
            return answered(0)
        }
    }

    /// Returns a download's progress with the elapsed time.
    func progress(_ delivered: TransferProgress) -> TransferProgress {
        var progress = delivered
        progress.elapsed = elapsed
        return progress
    }

    func progress(_ counters: Counters, rate: Double) -> TransferProgress {
        var progress = TransferProgress(counters, rate: rate)
        let now = elapsed
        state.withLock { state in
            guard state.startedAt > 0 else { return }
            // An attempt that does not run yet has no time of its own; the reported time must never decrease.
            let isRunning = counters.at > state.startedAt
            let time = isRunning ? .nanoseconds(Int64(clamping: counters.at - state.startedAt)) : now
            state.reportedElapsed = max(state.reportedElapsed, time)
            progress.elapsed = state.reportedElapsed
        }
        return progress
    }

    private func failed(_ engine: EngineTransfer) -> TransferProgress {
        var progress = progress(engine.snapshot.counters, rate: 0)
        progress.isFinished = false
        return progress
    }

    private func answered(_ count: Int64) -> TransferProgress {
        TransferProgress(received: count, expectedToReceive: count, isFinished: true, elapsed: elapsed)
    }
}
