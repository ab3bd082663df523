// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewSupport

extension EngineTransfer {
    /// Ends the transfer once and resumes all callers that wait for it.
    ///
    /// Call it on the loop thread, or before the loop knows the transfer.
    /// - Parameters:
    ///   - witness: The observer of all transfers.
    ///   - turn: The transport of a transfer that libcurl was running: its last bytes are published with the end, and
    ///     callers are resumed at the end of the turn. Nil for other transfers, whose callers are resumed at once.
    @discardableResult
    func complete(
        failure: EngineFailure?, body: CollectedBody? = nil, metrics: RawMetrics? = nil,
        onlyIfIdle: Bool = false, witness: (any EngineWitness)?, in turn: CurlTransport? = nil
    ) -> Bool {
        let now = Monotonic.now()
        // Without an observer, which is the usual case, one critical section sets the end and publishes it.
        let claim = shared.withLock { shared -> Claim in
            if onlyIfIdle && shared.lifecycle.state != .idle { return .refused }
            guard shared.lifecycle.on(.finish) else { return .refused }
            if turn != nil { hand(to: &shared, at: now) }
            let end = Outcome(head: shared.head, metrics: metrics, failure: failure, trailers: shared.trailers)
            if let own = shared.witness { return .watched(end, own) }
            return witness == nil ? .told(shared.publish(end, body: body, at: now)) : .watched(end, nil)
        }
        // A transfer that the loop does not know has no watch, so this writes nothing.
        let told: Told
        if case .refused = claim { return false }
        if wire.watch != nil { wire.watch = nil }
        switch claim {
        case .refused: return false
        case .told(let all): told = all
        case .watched(let end, let own):
            // Observers get the event before other code can see the outcome and cause further events.
            own?.witnessed(.ended(end), of: self, at: now)
            witness?.witnessed(.ended(end), of: self, at: now)
            told = shared.withLock { $0.publish(end, body: body, at: now) }
            // This observer was set between the two critical sections.
            if let late = told.others?.witness, late !== own { late.witnessed(.ended(end), of: self, at: now) }
        }
        closePipes()
        if let turn { turn.tell(told) } else { told.resumeAll() }
        return true
    }

    private enum Claim {
        case refused
        case told(Told)
        case watched(Outcome, (any EngineWitness)?)
    }

    /// The callers to resume at the end.
    struct Told: Sendable {
        /// The waiting callers that are rarely present.
        final class Others: Sendable {
            let counters: Counters
            let reader: UnsafeContinuation<Step, Never>?
            let step: Step?
            let watchers: [(ticket: UInt64, continuation: UnsafeContinuation<Counters?, Never>)]
            let heads: [UnsafeContinuation<Headed, Never>]
            let witness: (any EngineWitness)?

            init(taking shared: inout Shared) {
                counters = shared.counters
                reader = shared.reader
                step = reader == nil ? nil : shared.takeStep(withProgress: shared.readerWantsProgress)
                watchers = shared.progressWaiters
                heads = shared.headWaiters
                witness = shared.witness
                shared.reader = nil
                shared.progressWaiters = []
                shared.headWaiters = []
                shared.witness = nil
            }
        }

        let outcome: Outcome
        let ends: SmallList<EndWaiter>
        let others: Others?

        var isEmpty: Bool { others == nil && ends.isEmpty }

        /// Whether all callers continue in the runtime's own thread pool, so that another task may resume them.
        var areInPool: Bool { others == nil && ends.allSatisfy { !$0.hasExecutor } }

        init(taking shared: inout Shared, outcome: Outcome) {
            self.outcome = outcome
            ends = shared.endWaiters.removeAll()
            let isAlone =
                shared.reader == nil && shared.progressWaiters.isEmpty && shared.headWaiters.isEmpty
                && shared.witness == nil
            others = isAlone ? nil : Others(taking: &shared)
        }

        func resumeAll() {
            if let others { others.reader?.resume(returning: others.step ?? .end(outcome)) }
            ends.forEach { $0.continuation.resume(returning: outcome) }
            guard let others else { return }
            for waiter in others.watchers { waiter.continuation.resume(returning: others.counters) }
            for waiter in others.heads { waiter.resume(returning: outcome.headed) }
        }
    }
}

extension EngineTransfer.Shared {
    /// Publishes the end and removes the callers that wait for it.
    fileprivate mutating func publish(
        _ end: EngineTransfer.Outcome, body collected: CollectedBody?, at now: UInt64
    ) -> EngineTransfer.Told {
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
        return EngineTransfer.Told(taking: &self, outcome: end)
    }
}
