// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension EngineTransfer {
    /// Ends the transfer once: everyone who waits is told.
    ///
    /// On the loop thread, or before the loop knows the transfer.
    /// - Parameters:
    ///   - witness: Who watches all transfers.
    ///   - turn: Of a transfer that was on the wire: what arrived is made visible with the end, and who waits is told when
    ///     the turn ends. Nil for others, whose waiters are told at once.
    @discardableResult
    func complete(
        failure: EngineFailure?, body: CollectedBody? = nil, metrics: RawMetrics? = nil,
        onlyIfIdle: Bool = false, witness: (any EngineWitness)?, in turn: CurlTransport? = nil
    ) -> Bool {
        let now = Monotonic.now()
        // Where nobody watches, which is mostly, the end is told and published in one go.
        let claim = shared.withLock { shared -> Claim in
            if onlyIfIdle && shared.lifecycle.state != .idle { return .refused }
            guard shared.lifecycle.on(.finish) else { return .refused }
            if turn != nil { hand(to: &shared, at: now) }
            let end = Outcome(head: shared.head, metrics: metrics, failure: failure, trailers: shared.trailers)
            if let own = shared.witness { return .watched(end, own) }
            return witness == nil ? .told(shared.publish(end, body: body, at: now)) : .watched(end, nil)
        }
        // Where the loop does not know the transfer, there is none, and nothing is written.
        let told: Told
        if case .refused = claim { return false }
        if wire.watch != nil { wire.watch = nil }
        switch claim {
        case .refused: return false
        case .told(let all): told = all
        case .watched(let end, let own):
            // Before anyone can see the outcome, and tell of what follows from it.
            own?.witnessed(.ended(end), of: self, at: now)
            witness?.witnessed(.ended(end), of: self, at: now)
            told = shared.withLock { $0.publish(end, body: body, at: now) }
            // It has come in between.
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

    /// Those who are told of the end.
    struct Told: Sendable {
        /// Those who are there seldom.
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
        let ends: Few<EndWaiter>
        let others: Others?

        var isEmpty: Bool { others == nil && ends.isEmpty }

        /// Whether all of them go on in the runtime's own pool of threads, where another task may resume them.
        var areInPool: Bool { others == nil && ends.allSatisfy { !$0.hasExecutor } }

        init(taking shared: inout Shared, outcome: Outcome) {
            self.outcome = outcome
            ends = shared.endWaiters.takeAll()
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
    /// Makes the end visible and takes out everybody who waits for it.
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
