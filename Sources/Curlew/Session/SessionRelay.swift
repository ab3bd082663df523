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

    /// What observers have heard of a transfer.
    private struct Course {
        /// Attempts that have not ended.
        var open: Set<Int> = []
        var isOver = false
        var elapsed = Duration.zero
    }

    private struct State {
        var observers: [ObjectIdentifier: Observer] = [:]
        /// Those that are not over, or were left by their transfers and are still to end.
        var transfers: [UInt64: Course] = [:]
        var isClosed = false
        weak var loop: EventLoop?

        /// Whether it is closed, and everyone has heard how every transfer ended.
        var isDone: Bool { isClosed && transfers.values.allSatisfy(\.isOver) }

        /// Takes note of an event; nil when its transfer is over.
        mutating func noted(_ event: TransferEvent) -> TransferEvent? {
            var course = transfers[event.transfer] ?? Course()
            let wasOver = course.isOver
            switch event.kind {
            case .metrics: course.open.remove(event.attempt)
            case .finished: course.isOver = true
            case .redirected, .waiting, .retried: break
            default: course.open.insert(event.attempt)
            }
            course.elapsed = max(course.elapsed, event.elapsed)
            transfers[event.transfer] = course.isOver && course.open.isEmpty ? nil : course
            return wasOver ? nil : event.with(elapsed: course.elapsed)
        }

        /// Tells those who are still to hear how transfers stand that this one is on its way, if its story has begun.
        mutating func introduce(_ event: TransferEvent) -> [Buffer.Wake] {
            var wakes: [Buffer.Wake] = []
            for key in observers.keys where observers[key]?.known?.insert(event.transfer).inserted == true {
                guard !event.isFirst else { continue }
                let isPaused = if case .resumed = event.kind { true } else { false }
                wakes +=
                    observers[key]?.buffer?.push(.transfer(event.with(.state(isPaused ? .paused : .running)))) ?? []
            }
            return wakes
        }

        func push(_ event: SessionEvent) -> [Buffer.Wake] {
            observers.values.flatMap { $0.buffer?.push(event) ?? [] }
        }

        /// Tells everyone the end, if it has come.
        mutating func pushEnd() -> [Buffer.Wake] {
            guard isDone else { return [] }
            defer { observers = [:] }
            return observers.values.flatMap { $0.buffer?.push(.closed, isLast: true) ?? [] }
        }

        /// Makes the loop tell of everything while somebody listens; under the lock, so that the last order holds.
        func watch(_ witness: SessionRelay) {
            loop?.watch(observers.isEmpty && witness.recorder == nil ? nil : witness)
        }
    }

    private let state = Lock(State())
    /// What tells the session's own observers of ends; nil when there are none.
    let recorder: EndRecorder?

    init(_ recorder: EndRecorder? = nil) { self.recorder = recorder }

    deinit {
        // Nobody is left who could tell of what is not over.
        state.withLock { $0.transfers = [:] }
        close()
    }

    func attach(_ loop: EventLoop) { state.withLock { $0.loop = loop } }

    /// Whether somebody listens.
    var isObserved: Bool { recorder != nil || state.withLock { !$0.observers.isEmpty } }

    // MARK: Observers

    /// A new observer's events, from now on; of transfers on their way first how they stand.
    func observe() -> Buffer {
        let buffer = Buffer { .dropped($0) }
        let loop = state.withLock { state -> EventLoop? in
            guard !state.isClosed, let loop = state.loop else { return nil }
            if state.observers.isEmpty, recorder == nil { state.transfers = [:] }
            state.observers[ObjectIdentifier(buffer)] = Observer(buffer: buffer, known: [])
            state.watch(self)
            return loop
        }
        guard let loop else {
            buffer.append(.closed, isLast: true)
            return buffer
        }
        let isAsked =
            loop.isRunning
            && loop.call { [weak self, weak buffer] transport in
                if let buffer { self?.tellStates(transport.snapshots, to: buffer) }
            }
        if !isAsked { state.withLock { $0.observers[ObjectIdentifier(buffer)]?.known = nil } }
        return buffer
    }

    /// Calls an observer for each event, in a task that ends with the session.
    func serve(_ observer: any SessionObserver) {
        let buffer = observe()
        Task { while let event = await buffer.next() { await observer.observe(event) } }
    }

    /// Stops sending to an observer that has gone.
    func forget(_ buffer: ObjectIdentifier) {
        state.withLock { state in
            state.observers[buffer] = nil
            if state.observers.isEmpty { state.watch(self) }
        }
    }

    private func tellStates(_ snapshots: [EngineTransfer.Snapshot], to buffer: Buffer) {
        let wakes = state.withLock { state -> [Buffer.Wake] in
            guard var known = state.observers[ObjectIdentifier(buffer)]?.known else { return [] }
            state.observers[ObjectIdentifier(buffer)]?.known = nil
            var wakes: [Buffer.Wake] = []
            for snapshot in snapshots where snapshot.run.plan.course?.isOver != true {
                // Two attempts of one transfer may be there.
                let isNew = known.insert(snapshot.id).inserted
                guard let event = state.noted(TransferEvent(snapshot)), isNew else { continue }
                wakes += buffer.push(.transfer(event))
            }
            return wakes
        }
        for wake in wakes { wake() }
    }

    // MARK: Events

    func witnessed(_ event: EngineEvent, of transfer: EngineTransfer, at nanoseconds: UInt64) {
        // What a transfer that is over left behind is not told, and one that was let go before its start is none.
        if transfer.plan.course?.isOver == true, !isHeard(transfer) { return }
        if event.isUnsent(since: transfer.standing.startedAt) { return }
        for event in TransferEvent.events(event, of: transfer, at: nanoseconds) { send(event) }
    }

    func send(_ event: TransferEvent) {
        let (wakes, mustServe) = state.withLock { state -> ([Buffer.Wake], Bool) in
            guard recorder != nil || !state.observers.isEmpty else { return ([], false) }
            let noted = state.noted(event)
            let mustServe = recorder?.take(noted ?? event, isLate: noted == nil) ?? false
            guard let noted else { return ([], mustServe) }
            return (state.introduce(noted) + state.push(.transfer(noted)) + state.pushEnd(), mustServe)
        }
        if mustServe { recorder?.serve() }
        for wake in wakes { wake() }
    }

    /// Whether the end of an attempt is waited for here.
    private func isHeard(_ transfer: EngineTransfer) -> Bool {
        state.withLock { $0.transfers[transfer.plan.transfer]?.open.contains(transfer.plan.ordinal) == true }
    }

    func send(_ event: SessionEvent) {
        for wake in state.withLock({ $0.push(event) }) { wake() }
    }

    /// Nothing new comes; observers are told so once they have heard how every transfer ended.
    func close() {
        let wakes = state.withLock { state -> [Buffer.Wake] in
            state.isClosed = true
            return state.pushEnd()
        }
        for wake in wakes { wake() }
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
    /// Whether a transfer can begin with it.
    fileprivate var isFirst: Bool {
        switch kind {
        case .queued: attempt == 1
        case .finished: attempt == 0
        default: false
        }
    }

    fileprivate init(_ snapshot: EngineTransfer.Snapshot) {
        self.init(
            transfer: snapshot.id, label: snapshot.label, method: Method(snapshot.run.plan.method),
            url: snapshot.run.plan.url,
            attempt: snapshot.run.plan.ordinal,
            elapsed: .nanoseconds(Int64(clamping: snapshot.run.plan.offset)) + snapshot.counters.duration,
            kind: .state(Transfer<Void>.State(snapshot.state)))
    }
}
