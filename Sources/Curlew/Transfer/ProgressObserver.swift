// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import CurlewSupport

/// An observer of a transfer's progress, which delivers at most one value in each interval of the session.
final class ProgressObserver: Sendable {
    private struct State {
        var isDone = false
        var meter = RateMeter()
        /// The last progress that was delivered, its attempt with its counters, and its time.
        var delivered: TransferProgress?
        var attempt: UInt64?
        var counters: Counters?
        var deliveredAt: UInt64 = 0
        /// Whether a timer is running that wakes the observer for the next progress of a download.
        var isTimed = false

        mutating func deliver(_ progress: TransferProgress, of attempt: UInt64?, at time: UInt64) -> Step {
            var progress = progress
            progress.bytesPerSecond = meter.bytesPerSecond
            (delivered, self.attempt, deliveredAt) = (progress, attempt, time)
            return .deliver(progress)
        }
    }

    private enum Step {
        case deliver(TransferProgress)
        case wait
        /// A timer wakes the observer, because possibly no further change follows.
        case waitWithTimer(UInt64)
    }

    private let lifetime: TransferLifetime
    private let state = Lock(State())

    init(_ lifetime: TransferLifetime) { self.lifetime = lifetime }

    func next() async -> TransferProgress? {
        let run = lifetime.run
        if state.withLock({ $0.isDone }) { return nil }
        run.reportProgress()
        run.start()
        while true {
            let seen = run.signal.count
            let snapshot = run.snapshot
            if snapshot.finish != nil { return done(run.progress(of: snapshot)) }
            switch step(run, snapshot) {
            case .deliver(let progress): return progress
            case .wait: break
            case .waitWithTimer(let wait): ring(run, after: wait)
            }
            guard await run.signal.wait(after: seen) else { return nil }
        }
    }

    private func step(_ run: TransferRun, _ snapshot: TransferRun.Snapshot) -> Step {
        // Attempts report their progress once in an interval at most.
        if let download = run.download { return step(of: download, run, snapshot) }
        guard let latest = snapshot.latest, let counters = snapshot.counters else { return .wait }
        let progress = run.progress(of: snapshot)
        return state.withLock { state in
            guard state.attempt != latest.id || state.counters != counters else { return .wait }
            state.counters = counters
            state.meter.record(now: counters.at, totalBytes: counters.sent + counters.received)
            return state.deliver(progress, of: latest.id, at: counters.at)
        }
    }

    private func step(
        of download: DownloadRun, _ run: TransferRun, _ snapshot: TransferRun.Snapshot
    ) -> Step {
        let interval = run.session.loop.configuration.progressInterval
        let now = run.session.loop.clock.now()
        let (progress, transferred) = (run.progress(of: snapshot), download.transferred)
        return state.withLock { state in
            let isNew =
                state.delivered?.received != progress.received
                || state.delivered?.expectedToReceive != progress.expectedToReceive
            guard isNew else { return .wait }
            let since = now &- state.deliveredAt
            guard since >= interval else {
                defer { state.isTimed = true }
                return state.isTimed ? .wait : .waitWithTimer(interval - since)
            }
            state.meter.record(now: now, totalBytes: transferred)
            return state.deliver(progress, of: nil, at: now)
        }
    }

    private func ring(_ run: TransferRun, after wait: UInt64) {
        let clock = run.session.clock
        Task { [weak self, weak run] in
            try? await clock.wait(for: .nanoseconds(Int64(clamping: wait)))
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
}
