// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import CurlewSupport

/// Somebody who hears of the events of all transfers; must only queue.
protocol TransferEventSink: AnyObject, Sendable {
    func send(_ event: TransferEvent)
}

/// Hands the events of one transfer to those who observe it.
final class TransferWitness: EngineWitness {
    private struct State {
        var buffers: [ObjectIdentifier: WeakBuffer] = [:]
        /// Told to those who come too late.
        var metrics: TransferEvent?
        var end: TransferEvent?
        /// What the last event said.
        var elapsed = Duration.zero

        /// With a time that is not before the last one: threads read the clock before they come here.
        mutating func inOrder(_ event: TransferEvent) -> TransferEvent {
            elapsed = max(elapsed, event.elapsed)
            return event.with(elapsed: elapsed)
        }
    }

    private struct WeakBuffer { weak var buffer: EventBuffer<TransferEvent>? }

    private let state = Lock(State())

    /// - Parameters:
    ///   - buffer: A new one, which nobody reads yet.
    ///   - current: How the transfer stands, told first; nil before its start. Asked while nothing can happen in between,
    ///     and told whether its end was told, which is before others can see it.
    func add(_ buffer: EventBuffer<TransferEvent>, current: (_ hasEnded: Bool) -> TransferEvent?) {
        state.withLock { state in
            if let current = current(state.end != nil) { buffer.append(state.inOrder(current)) }
            guard let end = state.end else {
                state.buffers = state.buffers.filter { $0.value.buffer != nil }
                state.buffers[ObjectIdentifier(buffer)] = WeakBuffer(buffer: buffer)
                return
            }
            if let metrics = state.metrics { buffer.append(state.inOrder(metrics)) }
            buffer.append(state.inOrder(end), isLast: true)
        }
    }

    func witnessed(_ event: EngineEvent, of transfer: EngineTransfer, at nanoseconds: UInt64) {
        for event in TransferEvent.events(event, of: transfer, at: nanoseconds) { receive(event) }
    }

    /// Hands on an event; what comes after the last one is dropped.
    func receive(_ event: TransferEvent) {
        let wakes = state.withLock { state -> [EventBuffer<TransferEvent>.Wake] in
            if state.end != nil { return [] }
            let event = state.inOrder(event)
            if case .metrics = event.kind { state.metrics = event }
            if event.isLast { state.end = event }
            return state.buffers.values.flatMap { $0.buffer?.push(event, isLast: event.isLast) ?? [] }
        }
        for wake in wakes { wake() }
    }
}

extension TransferEvent {
    /// An event of the engine's in public words: none, one, or at the end of an attempt up to two.
    ///
    /// Of a further attempt that was let go before its start nothing: it is none.
    static func events(_ event: EngineEvent, of transfer: EngineTransfer, at nanoseconds: UInt64) -> [TransferEvent] {
        let start = transfer.standing.startedAt
        if transfer.plan.continues, event.isUnsent(since: start) { return [] }
        let elapsed = start == 0 || nanoseconds < start ? 0 : nanoseconds - start
        return kinds(event, of: transfer.plan).map { kind in
            TransferEvent(
                transfer: transfer.plan.transfer, label: transfer.plan.label, method: Method(transfer.plan.method),
                url: transfer.plan.url,
                attempt: transfer.plan.ordinal, elapsed: .nanoseconds(Int64(clamping: transfer.plan.offset + elapsed)),
                kind: kind)
        }
    }

    private static func kinds(_ event: EngineEvent, of plan: borrowing TransferPlan) -> [Kind] {
        switch event {
        case .queued: [.queued]
        case .resolved: [.resolved]
        case .connected(let remote, let isReused): [.connected(remote: remote, isReused: isReused)]
        case .secured(let version, let cipher, let isResumed):
            [.secured(version: version, cipher: cipher, isResumed: isResumed)]
        case .sent(let count): [.sent(count)]
        case .informational(let raw): [.informational(ResponseHead(raw, url: plan.url))]
        case .head(let raw): [.head(ResponseHead(raw, url: plan.url))]
        case .received(let count): [.received(count)]
        case .paused: [.paused]
        case .resumed: [.resumed]
        case .restarted: [.restarted]
        case .ended(let outcome): ending(outcome, of: plan)
        }
    }

    /// The metrics, and the end when the attempt is all there is to its transfer.
    private static func ending(_ outcome: EngineTransfer.Outcome, of plan: borrowing TransferPlan) -> [Kind] {
        let metrics = Kind.metrics(TransferMetrics(outcome.metrics))
        if plan.continues { return [metrics] }
        let isRedirect = outcome.head?.isRedirect ?? false
        if plan.holdsRedirects, isRedirect, outcome.failure?.isOrdered != true { return [metrics] }
        guard let failure = outcome.failure else { return [metrics, .finished(nil)] }
        var request = Request(Method(plan.method), plan.url)
        request.options.label = plan.label
        let response = outcome.head.map { ResponseHead($0, url: plan.url) }
        return [metrics, .finished(NetworkError(failure, request: request, response: response))]
    }
}

extension EngineEvent {
    /// Whether it is the end of a run that was cancelled before it was started.
    func isUnsent(since start: UInt64) -> Bool {
        guard case .ended(let outcome) = self, start == 0 else { return false }
        return outcome.failure?.isCancellation == true
    }
}

extension TransferRun {
    /// A new observer's events, from now on.
    func observe() -> EventBuffer<TransferEvent> {
        let buffer = EventBuffer<TransferEvent> { [self] in event(.dropped($0)) }
        // At once, so that each attempt gets the witness either here or from whoever starts it.
        let (witness, isNew, current) = state.withLock { state -> (TransferWitness, Bool, EngineTransfer?) in
            if let witness = state.witness { return (witness, false, nil) }
            let witness = TransferWitness()
            state.witness = witness
            return (witness, true, state.current)
        }
        witness.add(buffer) { hasEnded in
            let now = hasEnded ? .finished : standing
            return now == .idle ? nil : event(.state(Transfer<Void>.State(now)))
        }
        guard isNew else { return buffer }
        if case .failure(let error) = first { witness.receive(event(.finished(error))) }
        current?.watch(witness)
        if let end = state.withLock({ $0.end }) { witness.receive(event(.finished(end.error))) }
        return buffer
    }

    /// An event of the latest attempt.
    func event(_ kind: TransferEvent.Kind) -> TransferEvent {
        let (attempt, latest) = state.withLock { ($0.attempts, $0.latest) }
        return event(kind, of: latest ?? request, attempt)
    }

    private func event(_ kind: TransferEvent.Kind, of request: Request, _ attempt: Int) -> TransferEvent {
        TransferEvent(
            transfer: id, label: self.request.options.label, method: request.method, url: request.urlText,
            attempt: attempt, elapsed: elapsed, kind: kind)
    }

    /// Tells whoever observes the transfer or its session; without anyone the event is not even made.
    func emit(_ kind: @autoclosure () -> TransferEvent.Kind) {
        tell { event(kind()) }
    }

    /// Tells that another attempt follows this one.
    func emit(_ kind: @autoclosure () -> TransferEvent.Kind, of request: Request, attempt: Int) {
        tell { event(kind(), of: request, attempt) }
    }

    private func tell(_ event: () -> TransferEvent) {
        let witness = state.withLock { $0.witness }
        let sink = host.sink
        guard witness != nil || sink != nil else { return }
        let event = event()
        witness?.receive(event)
        sink?.send(event)
    }

    /// Tells the end of a transfer that is more than one attempt, or none, once.
    func finish(_ error: NetworkError?) {
        let (isFirst, course) = state.withLock { state in
            guard state.end == nil else { return (false, state.course) }
            state.end = End(error: error)
            return (true, state.course)
        }
        guard isFirst else { return }
        course?.end()
        // What is over with its first attempt is told by the engine.
        if !isOverDirectly { emit(.finished(error)) }
    }

    /// Tells the end of a transfer that was let go, when it has come to a redirect that nobody will follow.
    func giveUp() {
        let mayBeLed = state.withLock { $0.drive == nil && $0.startedAt > 0 && $0.end == nil }
        guard mayBeLed, direct != nil, !isOverDirectly, host.followsRedirects(of: request) else { return }
        // What is on the wire ends before that.
        if !host.loop.call({ [self] _ in endUnfollowed() }) { endUnfollowed() }
    }

    private func endUnfollowed() {
        guard direct?.engine.outcome != nil, !isOverDirectly, state.withLock({ $0.drive == nil }) else { return }
        if let attempt = direct { forgo(attempt.engine) }
        finish(.cancelled(.validating, request))
    }

    struct End { let error: NetworkError? }
}
