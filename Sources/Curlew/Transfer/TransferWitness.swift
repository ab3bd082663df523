// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine

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
    }

    private struct WeakBuffer { weak var buffer: EventBuffer<TransferEvent>? }

    private let state = Lock(State())

    /// - Parameter current: How the transfer stands, told first; nil before its start.
    func add(_ buffer: EventBuffer<TransferEvent>, current: TransferEvent?) {
        let isOver = state.withLock { state in
            if let current { buffer.append(current) }
            guard let end = state.end else {
                state.buffers = state.buffers.filter { $0.value.buffer != nil }
                state.buffers[ObjectIdentifier(buffer)] = WeakBuffer(buffer: buffer)
                return false
            }
            if let metrics = state.metrics { buffer.append(metrics) }
            buffer.append(end)
            return true
        }
        if isOver { buffer.finish() }
    }

    func witnessed(_ event: EngineEvent, of transfer: EngineTransfer, at nanoseconds: UInt64) {
        for event in TransferEvent.events(event, of: transfer, at: nanoseconds) { receive(event) }
    }

    /// Hands on an event; what comes after the last one is dropped.
    func receive(_ event: TransferEvent) {
        let buffers = state.withLock { state -> [EventBuffer<TransferEvent>] in
            if state.end != nil { return [] }
            if case .metrics = event.kind { state.metrics = event }
            if event.isLast { state.end = event }
            return state.buffers.values.compactMap(\.buffer)
        }
        for buffer in buffers {
            buffer.append(event)
            if event.isLast { buffer.finish() }
        }
    }
}

extension TransferEvent {
    /// An event of the engine's in public words: none, one, or at the end of an attempt up to two.
    static func events(_ event: EngineEvent, of transfer: EngineTransfer, at nanoseconds: UInt64) -> [TransferEvent] {
        let plan = transfer.plan
        let start = transfer.standing.startedAt
        let elapsed = start == 0 || nanoseconds < start ? 0 : nanoseconds - start
        return kinds(event, of: plan).map { kind in
            TransferEvent(
                transfer: plan.transfer, label: plan.label, method: Method(plan.method), url: plan.url,
                attempt: plan.ordinal, elapsed: .nanoseconds(Int64(clamping: plan.offset + elapsed)), kind: kind)
        }
    }

    private static func kinds(_ event: EngineEvent, of plan: TransferPlan) -> [Kind] {
        switch event {
        case .queued: [.queued]
        case .resolved: [.resolved]
        case .connected(let remote, let isReused): [.connected(remote: remote, isReused: isReused)]
        case .secured(let version, let cipher, let isResumed):
            [.secured(version: version, cipher: cipher, isResumed: isResumed)]
        case .sent(let count): [.sent(count)]
        case .informational(let raw): head(raw, plan).map { [.informational($0)] } ?? []
        case .head(let raw): head(raw, plan).map { [.head($0)] } ?? []
        case .received(let count): [.received(count)]
        case .paused: [.paused]
        case .resumed: [.resumed]
        case .restarted: [.restarted]
        case .ended(let outcome): ending(outcome, of: plan)
        }
    }

    private static func head(_ raw: RawHead, _ plan: TransferPlan) -> ResponseHead? {
        ResponseHead(rawBlock: raw.bytes, url: plan.url)
    }

    /// The metrics, and the end when the attempt is all there is to its transfer.
    private static func ending(_ outcome: EngineTransfer.Outcome, of plan: TransferPlan) -> [Kind] {
        let metrics = Kind.metrics(TransferMetrics(outcome.metrics))
        if plan.continues { return [metrics] }
        let isRedirect = outcome.head.map { RawHead.isRedirect($0.status, $0.bytes) } ?? false
        if plan.holdsRedirects, isRedirect, outcome.failure?.isOrdered != true { return [metrics] }
        guard let failure = outcome.failure else { return [metrics, .finished(nil)] }
        var request = Request(Method(plan.method), plan.url)
        request.options.label = plan.label
        let response = outcome.head.flatMap { head($0, plan) }
        return [metrics, .finished(NetworkError(failure, request: request, response: response))]
    }
}

extension TransferRun {
    /// A new observer's events, from now on.
    func observe() -> EventBuffer<TransferEvent> {
        let buffer = EventBuffer<TransferEvent> { [self] in event(.dropped($0)) }
        let (witness, isNew) = state.withLock { state -> (TransferWitness, Bool) in
            if let witness = state.witness { return (witness, false) }
            let witness = TransferWitness()
            state.witness = witness
            return (witness, true)
        }
        let now = standing
        witness.add(buffer, current: now == .idle ? nil : event(.state(Transfer<Void>.State(now))))
        guard isNew else { return buffer }
        if case .failure(let error) = first { witness.receive(event(.finished(error))) }
        state.withLock { $0.current }?.watch(witness)
        if let end = state.withLock({ $0.end }) { witness.receive(event(.finished(end.error))) }
        return buffer
    }

    func event(_ kind: TransferEvent.Kind, of request: Request? = nil) -> TransferEvent {
        let request = request ?? self.request
        return TransferEvent(
            transfer: id, label: self.request.options.label, method: request.method, url: request.urlText,
            attempt: attempts, elapsed: elapsed, kind: kind)
    }

    /// Tells whoever observes the transfer or its session; without anyone the event is not even made.
    func emit(_ kind: @autoclosure () -> TransferEvent.Kind, of request: Request? = nil) {
        let witness = state.withLock { $0.witness }
        let sink = host.sink
        guard witness != nil || sink != nil else { return }
        let event = event(kind(), of: request)
        witness?.receive(event)
        sink?.send(event)
    }

    /// Tells the end of a transfer that is more than one attempt, once.
    func finish(_ error: NetworkError?) {
        let isFirst = state.withLock { state in
            guard state.end == nil else { return false }
            state.end = End(error: error)
            return true
        }
        // What is over with its first attempt is told by the engine.
        if isFirst && !isOverDirectly { emit(.finished(error)) }
    }

    struct End { let error: NetworkError? }
}
