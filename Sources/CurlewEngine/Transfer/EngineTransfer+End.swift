// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewSupport

extension EngineTransfer {
    /// Ends the transfer once and resumes all callers that wait for it.
    ///
    /// Call it on the loop thread, or before the loop knows the transfer. The observers get the event first, then the
    /// sink; only after that the outcome is visible, so that other code cannot cause further events before.
    /// - Parameters:
    ///   - observer: The observer of all transfers.
    ///   - turn: The deliveries for a transfer that the transport was running: its last bytes are published with the
    ///     end, and callers are resumed at the end of the turn. Nil for other transfers, whose callers are resumed at
    ///     once.
    @discardableResult
    func complete(
        failure: EngineFailure?, metrics: RawMetrics? = nil,
        onlyIfIdle: Bool = false, observer: (any EngineObserver)?, in turn: Deliveries? = nil
    ) -> Bool {
        let now = loop.clock.now()
        var callers = Callers()
        // Without observers and a sink one critical section sets the end and publishes it.
        let ending = shared.withLock { shared -> Ending? in
            if onlyIfIdle && shared.lifecycle.state != .idle { return nil }
            guard shared.lifecycle.on(.finish) else { return nil }
            if turn != nil { moveReceived(to: &shared, at: now) }
            let end = Outcome(failure: failure, metrics: metrics, of: shared, plan.interest)
            shared.endsTransfer = end.endsTransfer
            if !end.isFinal, shared.isHeadFinal { shared.hold = loop.holdWhileClosing() }
            if observer == nil, shared.observer == nil, shared.sink == nil {
                shared.publish(end, at: now, &callers)
                return .published
            }
            return .reported(Report(end: end, own: shared.observer, sink: shared.sink))
        }
        guard let ending else { return false }
        // A transfer that the loop does not know has no observer state, so this writes nothing.
        if loopState.observerState != nil { loopState.observerState = nil }
        if case .reported(let report) = consume ending { deliver(report, observer, at: now, &callers) }
        closePipes()
        callers.hold = nil
        if let reader = callers.reader { reader.continuation.resume(returning: reader.step) }
        if let turn { turn.resume(callers.waiters) } else { callers.waiters.forEach { $0.resume() } }
        return true
    }

    /// Ends a transfer that a transport was running, on the loop thread.
    ///
    /// - Parameter isWhole: Whether the whole body has arrived, unless the transfer failed.
    func done(_ failure: EngineFailure?, _ metrics: RawMetrics?, isWhole: Bool, _ deliveries: Deliveries) {
        loopState.deliveries = nil
        // Callers that need only a head that is not final are notified before the end.
        if !loopState.isHeadFinal { publish(deliveries.now, isForReader: failure?.isCancellation != true) }
        if failure == nil, isWhole { send(.received(loopState.counters.received)) }
        complete(failure: failure, metrics: metrics, observer: deliveries.observer, in: deliveries)
        loopState.slab = nil
    }

    /// Copies the last bytes and counters of the loop into the locked half, and moves the collected body there.
    private func moveReceived(to shared: inout LockedState, at now: UInt64) {
        copyReceived(to: &shared, at: now)
        guard let body = loopState.collected else { return }
        shared.body = body
        loopState.collected = nil
    }

    /// Reports the end to the observers and the sink, and publishes it.
    @inline(never)
    private func deliver(_ report: Report, _ observer: (any EngineObserver)?, at now: UInt64, _ callers: inout Callers)
    {
        let (end, own) = (report.end, report.own)
        own?.didObserve(.ended(end), of: self, at: now)
        observer?.didObserve(.ended(end), of: self, at: now)
        let resumed = report.sink?.ended(self, end)
        let late: (any EngineObserver)? = shared.withLock { shared in
            defer { shared.observer = nil }
            shared.publish(end, at: now, &callers)
            return shared.observer
        }
        if let resumed { callers.waiters.append(contentsOf: resumed) }
        // This observer was set between the two critical sections.
        if let late, late !== own { late.didObserve(.ended(end), of: self, at: now) }
    }

    /// An end that observers or a sink must get before it is visible.
    private struct Report {
        let end: Outcome
        let own: (any EngineObserver)?
        let sink: (any TransferSink)?
    }

    private enum Ending {
        case published
        case reported(Report)
    }

    /// The callers to resume at the end.
    struct Callers {
        var waiters = SmallList<Waiter>()
        var reader: (continuation: UnsafeContinuation<Step, Never>, step: Step)?
        /// A hold that the transfer does not need, to release without a lock.
        var hold: LoopHold?
    }
}

extension EngineTransfer.Outcome {
    /// Creates the outcome of a run and decides whether its chain must see it.
    @inline(__always)
    fileprivate init(
        failure: EngineFailure?, metrics: RawMetrics?, of shared: borrowing EngineTransfer.LockedState,
        _ interest: ChainInterest
    ) {
        let isFinal: Bool
        if let failure {
            // The reader of a stream has received a part of the body, which no other attempt can replace.
            let isDelivered = shared.head != nil && !shared.collects
            isFinal = failure.isRequested || shared.isHeadFinal && (!interest.failures || isDelivered)
        } else {
            isFinal = shared.isHeadFinal
        }
        self.init(
            head: shared.head, metrics: metrics, failure: failure, trailers: shared.trailers, isFinal: isFinal,
            endsTransfer: isFinal && shared.sink == nil,
            excerpt: shared.body.prefix(EngineTransfer.Outcome.excerptLimit))
    }
}

extension EngineTransfer.LockedState {
    /// Publishes the end and removes the callers that wait for it.
    @inline(__always)
    fileprivate mutating func publish(
        _ end: consuming EngineTransfer.Outcome, at now: UInt64, _ callers: inout EngineTransfer.Callers
    ) {
        let (isFinal, failure) = (end.isFinal, end.failure)
        if failure?.isCancellation == true {
            chunks = []
            firstChunk = 0
            buffered = 0
        } else if !collects, let chunk = body.takeChunk() {
            chunks.append(chunk)
            buffered += chunk.count
        }
        counters.at = now
        counters.isFinished = true
        counters.hasFailed = failure != nil
        isProgressDue = true
        outcome = end
        sink = nil
        callers.waiters = endWaiters.removeAll()
        if let waiter = endOrHeadWaiter {
            callers.waiters.append(waiter)
            endOrHeadWaiter = nil
        }
        if let reader, let step = takeStep(withProgress: readerWantsProgress) {
            callers.reader = (reader, step)
            self.reader = nil
        }
        if isFinal, hold != nil { swap(&callers.hold, &hold) }
    }
}
