// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewSupport

extension EngineTransfer {
    /// Ends the transfer once and resumes all callers that wait for it.
    ///
    /// Call it on the loop thread, or before the loop knows the transfer.
    /// - Parameters:
    ///   - observer: The observer of all transfers.
    ///   - turn: The transport of a transfer that libcurl was running: its last bytes are published with the end, and
    ///     callers are resumed at the end of the turn. Nil for other transfers, whose callers are resumed at once.
    @discardableResult
    func complete(
        failure: EngineFailure?, body: CollectedBody? = nil, metrics: RawMetrics? = nil,
        onlyIfIdle: Bool = false, observer: (any EngineObserver)?, in turn: CurlTransport? = nil
    ) -> Bool {
        let now = Monotonic.now()
        // Without an observer, which is the usual case, one critical section sets the end and publishes it.
        let claim = shared.withLock { shared -> Claim in
            if onlyIfIdle && shared.lifecycle.state != .idle { return .refused }
            guard shared.lifecycle.on(.finish) else { return .refused }
            if turn != nil { hand(to: &shared, at: now) }
            let end = Outcome(head: shared.head, metrics: metrics, failure: failure, trailers: shared.trailers)
            if let own = shared.observer { return .observed(end, own) }
            return observer == nil ? .completed(shared.publish(end, body: body, at: now)) : .observed(end, nil)
        }
        // A transfer that the loop does not know has no watch, so this writes nothing.
        let completion: Completion
        if case .refused = claim { return false }
        if loopState.observerState != nil { loopState.observerState = nil }
        switch claim {
        case .refused: return false
        case .completed(let all): completion = all
        case .observed(let end, let own):
            // Observers get the event before other code can see the outcome and cause further events.
            own?.didObserve(.ended(end), of: self, at: now)
            observer?.didObserve(.ended(end), of: self, at: now)
            completion = shared.withLock { $0.publish(end, body: body, at: now) }
            // This observer was set between the two critical sections.
            if let late = completion.rareWaiters?.observer, late !== own {
                late.didObserve(.ended(end), of: self, at: now)
            }
        }
        closePipes()
        if let turn { turn.resumeWaiters(of: completion) } else { completion.resumeAll() }
        return true
    }

    private enum Claim {
        case refused
        case completed(Completion)
        case observed(Outcome, (any EngineObserver)?)
    }

    /// The callers to resume at the end.
    struct Completion: Sendable {
        /// The waiting callers that are rarely present.
        final class RareWaiters: Sendable {
            let counters: Counters
            let reader: UnsafeContinuation<Step, Never>?
            let step: Step?
            let watchers: [(ticket: UInt64, continuation: UnsafeContinuation<Counters?, Never>)]
            let heads: [UnsafeContinuation<Headed, Never>]
            let observer: (any EngineObserver)?

            init(taking shared: inout LockedState) {
                counters = shared.counters
                reader = shared.reader
                step = reader == nil ? nil : shared.takeStep(withProgress: shared.readerWantsProgress)
                watchers = shared.progressWaiters
                heads = shared.headWaiters
                observer = shared.observer
                shared.reader = nil
                shared.progressWaiters = []
                shared.headWaiters = []
                shared.observer = nil
            }
        }

        let outcome: Outcome
        let ends: SmallList<EndWaiter>
        let rareWaiters: RareWaiters?

        var isEmpty: Bool { rareWaiters == nil && ends.isEmpty }

        /// Whether all callers continue in the runtime's own thread pool, so that another task may resume them.
        var useThreadPool: Bool { rareWaiters == nil && ends.allSatisfy { !$0.hasExecutor } }

        init(taking shared: inout LockedState, outcome: Outcome) {
            self.outcome = outcome
            ends = shared.endWaiters.removeAll()
            let hasNoRareWaiters =
                shared.reader == nil && shared.progressWaiters.isEmpty && shared.headWaiters.isEmpty
                && shared.observer == nil
            rareWaiters = hasNoRareWaiters ? nil : RareWaiters(taking: &shared)
        }

        func resumeAll() {
            if let rareWaiters { rareWaiters.reader?.resume(returning: rareWaiters.step ?? .end(outcome)) }
            ends.forEach { $0.continuation.resume(returning: outcome) }
            guard let rareWaiters else { return }
            for waiter in rareWaiters.watchers { waiter.continuation.resume(returning: rareWaiters.counters) }
            for waiter in rareWaiters.heads { waiter.resume(returning: outcome.headed) }
        }
    }
}

extension EngineTransfer.LockedState {
    /// Publishes the end and removes the callers that wait for it.
    fileprivate mutating func publish(
        _ end: EngineTransfer.Outcome, body collected: CollectedBody?, at now: UInt64
    ) -> EngineTransfer.Completion {
        var body = collected
        let failure = end.failure
        if failure?.isCancellation == true {
            chunks = []
            firstChunk = 0
            buffered = 0
        } else if !collects, let chunk = body?.takeChunk() {
            chunks.append(chunk)
            buffered += chunk.count
            body = nil
        }
        counters.at = now
        counters.isFinished = true
        counters.hasFailed = failure != nil
        isProgressDue = true
        var end = end
        end.body = body
        outcome = end
        return EngineTransfer.Completion(taking: &self, outcome: end)
    }
}
