// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine

/// Hands a session's events to any number of observers, each with its own bounded buffer.
final class SessionRelay: TransferEventSink, EngineWitness {
    typealias Buffer = EventBuffer<SessionEvent>

    private struct Observer {
        weak var buffer: Buffer?
        /// Transfers it has heard of, until it was told how the others stand.
        var known: Set<UInt64>?
    }

    private struct State {
        var observers: [ObjectIdentifier: Observer] = [:]
        var isClosed = false
        weak var loop: EventLoop?
    }

    private let state = Lock(State())

    deinit { close() }

    func attach(_ loop: EventLoop) { state.withLock { $0.loop = loop } }

    /// Whether somebody listens.
    var isObserved: Bool { state.withLock { !$0.observers.isEmpty } }

    // MARK: Observers

    /// A new observer's events, from now on; of transfers on their way first how they stand.
    func observe() -> Buffer {
        let buffer = Buffer { .dropped($0) }
        let (isClosed, loop) = state.withLock { state in
            if !state.isClosed { state.observers[ObjectIdentifier(buffer)] = Observer(buffer: buffer, known: []) }
            return (state.isClosed, state.loop)
        }
        guard !isClosed, let loop else {
            buffer.append(.closed)
            buffer.finish()
            return buffer
        }
        loop.watch(self)
        if loop.isRunning {
            loop.call { [weak self, weak buffer] transport in
                if let buffer { self?.tellStates(transport.snapshots, to: buffer) }
            }
        } else {
            state.withLock { $0.observers[ObjectIdentifier(buffer)]?.known = nil }
        }
        return buffer
    }

    /// Calls an observer for each event, in a task that ends with the session.
    func serve(_ observer: any SessionObserver) {
        let buffer = observe()
        Task { while let event = await buffer.next() { await observer.observe(event) } }
    }

    /// Stops sending to an observer that has gone.
    func forget(_ buffer: ObjectIdentifier) {
        let idle = state.withLock { state -> EventLoop? in
            state.observers[buffer] = nil
            return state.observers.isEmpty ? state.loop : nil
        }
        idle?.watch(nil)
        // Somebody may have come meanwhile.
        if let idle, isObserved { idle.watch(self) }
    }

    private func tellStates(_ snapshots: [EngineTransfer.Snapshot], to buffer: Buffer) {
        let known = state.withLock { state -> Set<UInt64> in
            defer { state.observers[ObjectIdentifier(buffer)]?.known = nil }
            return state.observers[ObjectIdentifier(buffer)]?.known ?? []
        }
        for snapshot in snapshots where !known.contains(snapshot.id) {
            buffer.append(.transfer(TransferEvent(snapshot)))
        }
    }

    // MARK: Events

    func witnessed(_ event: EngineEvent, of transfer: EngineTransfer, at nanoseconds: UInt64) {
        // A transfer that was let go before it was started is none.
        guard transfer.standing.startedAt > 0 else { return }
        for event in TransferEvent.events(event, of: transfer, at: nanoseconds) { send(event) }
    }

    func send(_ event: TransferEvent) {
        let buffers = state.withLock { state -> [Buffer] in
            for key in state.observers.keys { state.observers[key]?.known?.insert(event.transfer) }
            return state.observers.values.compactMap(\.buffer)
        }
        for buffer in buffers { buffer.append(.transfer(event)) }
    }

    func send(_ event: SessionEvent) {
        for buffer in state.withLock({ $0.observers.values.compactMap(\.buffer) }) { buffer.append(event) }
    }

    func close() {
        let buffers = state.withLock { state -> [Buffer] in
            if state.isClosed { return [] }
            state.isClosed = true
            defer { state.observers = [:] }
            return state.observers.values.compactMap(\.buffer)
        }
        for buffer in buffers {
            buffer.append(.closed)
            buffer.finish()
        }
    }
}

/// An observer's hold on its buffer: when it goes, nothing is sent any more.
final class SessionEventReader: Sendable {
    private let relay: SessionRelay
    private let buffer: SessionRelay.Buffer

    init(_ relay: SessionRelay) {
        self.relay = relay
        buffer = relay.observe()
    }

    deinit { relay.forget(ObjectIdentifier(buffer)) }

    func next() async -> SessionEvent? { await buffer.next() }
}

extension TransferEvent {
    fileprivate init(_ snapshot: EngineTransfer.Snapshot) {
        let plan = snapshot.run.plan
        self.init(
            transfer: snapshot.id, label: snapshot.label, method: Method(plan.method), url: plan.url,
            attempt: plan.ordinal,
            elapsed: .nanoseconds(Int64(clamping: plan.offset)) + snapshot.counters.duration,
            kind: .state(Transfer<Void>.State(snapshot.state)))
    }
}
