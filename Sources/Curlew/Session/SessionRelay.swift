// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import CurlewSupport

/// Passes a session's events to any number of observers, each with its own bounded buffer.
final class SessionRelay: EngineObserver {
    typealias Buffer = EventBuffer<Session.Event>

    fileprivate struct Observer {
        weak var buffer: Buffer?
        /// The transfers with events so far; nil after the observer received the current state of all running
        /// transfers.
        var known: Set<UInt64>?
    }

    /// The state of a transfer according to the events sent so far.
    fileprivate struct TransferState {
        /// Attempts that have not ended.
        var open: Set<Int> = []
        var isOver = false
        var isPaused: Bool
        var elapsed = Duration.zero

        /// Whether activity trackers count the transfer.
        var isActive: Bool { !isOver && !isPaused }
    }

    fileprivate struct Sink {
        let tracker: ActivityTracker
        let source: UInt64
    }

    fileprivate struct State {
        var observers: [ObjectIdentifier: Observer] = [:]
        /// The activity trackers.
        ///
        /// The relay reports each change of a transfer to them under the lock, so that their sets are exact.
        var sinks: [Sink] = []
        /// The trackers to flush after the lock is released.
        var changedTrackers: [ActivityTracker] = []
        /// The transfers that have waited for a retry and have not finished.
        ///
        /// The loop does not list them, because a transfer has no attempt while it waits.
        var retrying: [UInt64: TransferRun] = [:]
        /// The transfers that have not ended, or whose abandoned attempts have not ended.
        var transfers: [UInt64: TransferState] = [:]
        var isClosed = false
        /// The owner of the session's loop.
        ///
        /// The relay holds no weak reference to the loop itself, because that would slow down every retain and release
        /// of the loop.
        weak var share: LoopShare?

        /// Whether the relay is closed, and the end of every transfer was sent.
        var isDone: Bool { isClosed && transfers.values.allSatisfy(\.isOver) }

        /// Whether the end of the event's attempt is still expected.
        func isEndPending(_ event: TransferEvent) -> Bool {
            transfers[event.transfer]?.open.contains(event.attempt) == true
        }

        /// Whether events have receivers besides a recorder.
        var isObserved: Bool { !observers.isEmpty || !sinks.isEmpty }

        /// Reports to all trackers whether a transfer is active.
        mutating func report(_ id: UInt64, isActive: Bool) {
            for sink in sinks where sink.tracker.set(id, of: sink.source, isActive: isActive) {
                changedTrackers.append(sink.tracker)
            }
        }

        /// Adds a transfer that the relay does not know, and reports it to all trackers.
        mutating func add(_ id: UInt64, isPaused: Bool) {
            transfers[id] = TransferState(isPaused: isPaused)
            if !isPaused { report(id, isActive: true) }
        }

        /// Records an event and returns it with a monotonic `elapsed`; nil when its transfer has ended.
        ///
        /// - Parameter isPaused: Whether the transfer is paused, for a transfer that the relay does not know.
        mutating func record(_ event: TransferEvent, isPaused: () -> Bool) -> TransferEvent? {
            let known = transfers[event.transfer]
            var transfer = known ?? TransferState(isPaused: isPaused())
            let wasOver = transfer.isOver
            defer {
                let wasActive = known?.isActive == true
                if transfer.isActive != wasActive { report(event.transfer, isActive: !wasActive) }
            }
            switch event.kind {
            case .metrics: transfer.open.remove(event.attempt)
            case .finished: transfer.isOver = true
            case .redirected, .waiting, .retried: break
            default: transfer.open.insert(event.attempt)
            }
            transfer.elapsed = max(transfer.elapsed, event.elapsed)
            transfers[event.transfer] = transfer.isOver && transfer.open.isEmpty ? nil : transfer
            return wasOver ? nil : event.with(elapsed: transfer.elapsed)
        }

        /// Sends a synthetic `running` or `paused` event to observers that subscribed after the transfer started.
        mutating func sendCurrentState(_ event: TransferEvent) -> [Buffer.Wake] {
            var wakes: [Buffer.Wake] = []
            for key in observers.keys where observers[key]?.known?.insert(event.transfer).inserted == true {
                guard !event.isFirst else { continue }
                let isPaused = if case .resumed = event.kind { true } else { false }
                wakes +=
                    observers[key]?.buffer?.push(.transfer(event.with(.state(isPaused ? .paused : .running)))) ?? []
            }
            return wakes
        }

        func push(_ event: Session.Event) -> [Buffer.Wake] {
            observers.values.flatMap { $0.buffer?.push(event) ?? [] }
        }

        /// Sends the last event and removes all observers and trackers, if the relay is done.
        mutating func pushEnd() -> [Buffer.Wake] {
            guard isDone else { return [] }
            for sink in sinks where sink.tracker.close(sink.source) { changedTrackers.append(sink.tracker) }
            defer { (observers, sinks) = ([:], []) }
            return observers.values.flatMap { $0.buffer?.push(.closed, isLast: true) ?? [] }
        }

        /// Subscribes to the loop's events, or unsubscribes without observers; called under the lock, so that the last
        /// call takes effect.
        func watch(_ relay: SessionRelay) {
            share?.loop.watch(isObserved || relay.recorder != nil ? relay : nil)
        }
    }

    private let state = Lock(State())
    /// The queue of ends for the session's recorders; nil when there is no recorder.
    let recorder: EndRecorder?

    init(_ recorder: EndRecorder? = nil) { self.recorder = recorder }

    deinit {
        // No sender of events remains, so transfers that have not ended never will.
        state.withLock { $0.transfers = [:] }
        close()
    }

    /// Runs a closure under the lock, and then flushes the trackers that it has changed.
    private func withState<Result>(_ body: (inout State) -> Result) -> Result {
        let (result, changed) = state.withLock { state in
            let result = body(&state)
            defer { if !state.changedTrackers.isEmpty { state.changedTrackers = [] } }
            return (result, state.changedTrackers)
        }
        for tracker in changed { tracker.flush() }
        return result
    }

    func attach(_ share: LoopShare) { state.withLock { $0.share = share } }

    /// Whether the relay has an observer, a tracker or a recorder.
    var isObserved: Bool { recorder != nil || state.withLock { $0.isObserved } }

    // MARK: Observers

    /// Returns the buffer of a new observer, which first receives the current state of running transfers.
    func observe() -> Buffer {
        let buffer = Buffer { .dropped($0) }
        let loop = state.withLock { state -> EventLoop? in
            guard !state.isClosed, let loop = state.share?.loop else { return nil }
            if !state.isObserved, recorder == nil { state.transfers = [:] }
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
                if let buffer { self?.sendStates(transport.snapshots, to: buffer) }
            }
        if !isAsked { state.withLock { $0.observers[ObjectIdentifier(buffer)]?.known = nil } }
        return buffer
    }

    /// Calls an observer for each event, in a task that ends with the session.
    func serve(_ observer: any Session.Observer) {
        let buffer = observe()
        Task { while let event = await buffer.next() { await observer.observe(event) } }
    }

    /// Removes an observer that was released.
    func remove(observer buffer: ObjectIdentifier) {
        state.withLock { state in
            state.observers[buffer] = nil
            if !state.isObserved { state.watch(self) }
        }
    }

    private func sendStates(_ snapshots: [EngineTransfer.Snapshot], to buffer: Buffer) {
        let wakes = withState { state -> [Buffer.Wake] in
            guard var known = state.observers[ObjectIdentifier(buffer)]?.known else { return [] }
            state.observers[ObjectIdentifier(buffer)]?.known = nil
            var wakes: [Buffer.Wake] = []
            for snapshot in snapshots where !snapshot.run.isAbandoned {
                // The snapshots may contain two attempts of one transfer.
                let isNew = known.insert(snapshot.id).inserted
                guard let event = state.record(snapshot), isNew else { continue }
                wakes += buffer.push(.transfer(event))
            }
            return wakes
        }
        for wake in wakes { wake() }
    }

    // MARK: Activity trackers

    /// Adds a tracker; it receives the transfers that run already as soon as the loop has listed them.
    ///
    /// - Parameter source: The number of this relay for the tracker.
    /// - Returns: False when the session has closed.
    func add(_ tracker: ActivityTracker, as source: UInt64) -> Bool {
        let loop = withState { state -> EventLoop? in
            guard !state.isClosed, let loop = state.share?.loop else { return nil }
            if !state.isObserved, recorder == nil { state.transfers = [:] }
            for (id, transfer) in state.transfers where transfer.isActive {
                if tracker.set(id, of: source, isActive: true) { state.changedTrackers.append(tracker) }
            }
            state.sinks.append(Sink(tracker: tracker, source: source))
            for run in state.retrying.values where state.transfers[run.id] == nil && !run.isFinished {
                state.add(run.id, isPaused: run.isPaused)
            }
            state.watch(self)
            return loop
        }
        guard let loop else { return false }
        if loop.isRunning { _ = loop.call { [weak self] transport in self?.recordRunning(transport.snapshots) } }
        return true
    }

    /// Removes a tracker; the tracker itself removes the transfers of this relay from its set.
    func remove(_ tracker: ActivityTracker, _ source: UInt64) {
        state.withLock { state in
            let count = state.sinks.count
            state.sinks.removeAll { $0.tracker === tracker && $0.source == source }
            if state.sinks.count < count, !state.isObserved { state.watch(self) }
        }
    }

    /// Records the transfers that ran before the relay was observed.
    private func recordRunning(_ snapshots: [EngineTransfer.Snapshot]) {
        withState { state in
            guard !state.sinks.isEmpty else { return }
            for snapshot in snapshots where !snapshot.run.isAbandoned { _ = state.record(snapshot) }
        }
    }

    /// Records that a transfer was paused or resumed; between two attempts, no event reports that.
    func pauseChanged(of run: TransferRun) {
        withState { state in
            guard let transfer = state.transfers[run.id] else { return }
            // Read the pause state under the lock, so that the last of several concurrent calls acts on the current
            // state.
            var changed = transfer
            changed.isPaused = run.isPaused
            state.transfers[run.id] = changed
            if changed.isActive != transfer.isActive { state.report(run.id, isActive: changed.isActive) }
        }
    }

    /// Keeps a transfer that waits for a retry, until `forget(retrying:)`; does nothing for a finished transfer.
    func keep(retrying run: TransferRun) {
        state.withLock { if !run.isFinished { $0.retrying[run.id] = run } }
    }

    func forget(retrying run: TransferRun) { state.withLock { $0.retrying[run.id] = nil } }

    // MARK: Events

    func didObserve(_ event: EngineEvent, of transfer: EngineTransfer, at nanoseconds: UInt64) {
        // An attempt cancelled before it started produces no events.
        if event.isUnsent(since: transfer.standing.startedAt) { return }
        for event in TransferEvent.events(event, of: transfer, at: nanoseconds) {
            send(event, isPaused: { transfer.snapshot.state == .paused }, isLate: { transfer.isAbandoned })
        }
    }

    /// Records an event and sends it to the observers.
    ///
    /// - Parameters:
    ///   - isPaused: Whether the transfer of the event is paused; the function is called under the lock, for the first
    ///     event of a transfer.
    ///   - isLate: Whether the transfer of the event has finished; the function is called under the lock.
    func send(_ event: TransferEvent, isPaused: () -> Bool = { false }, isLate: () -> Bool = { false }) {
        let (wakes, mustServe) = withState { state -> ([Buffer.Wake], Bool) in
            guard recorder != nil || state.isObserved else { return ([], false) }
            // Of a transfer that has finished, only the ends of its open attempts are expected. The check is under the
            // lock, so that no other event follows the end of the transfer.
            if isLate(), !state.isEndPending(event) { return ([], false) }
            let recorded = state.record(event, isPaused: isPaused)
            let mustServe = recorder?.enqueue(recorded ?? event, isLate: recorded == nil) ?? false
            guard let recorded else { return ([], mustServe) }
            return (state.sendCurrentState(recorded) + state.push(.transfer(recorded)) + state.pushEnd(), mustServe)
        }
        if mustServe { recorder?.startRecording() }
        for wake in wakes { wake() }
    }

    func send(_ event: Session.Event) {
        for wake in state.withLock({ $0.push(event) }) { wake() }
    }

    /// Closes the relay; observers receive the last event after every transfer has ended.
    func close() {
        let wakes = withState { state -> [Buffer.Wake] in
            state.isClosed = true
            return state.pushEnd()
        }
        for wake in wakes { wake() }
    }
}

/// An observer's reference to its buffer; its release ends the subscription.
final class SessionEventReader: Sendable {
    private let relay: SessionRelay
    private let buffer: SessionRelay.Buffer

    init(_ relay: SessionRelay) {
        self.relay = relay
        buffer = relay.observe()
    }

    deinit { relay.remove(observer: ObjectIdentifier(buffer)) }

    func next() async -> Session.Event? { await buffer.next() }
}

extension SessionRelay.State {
    /// Records the state of a transfer that the loop has listed.
    fileprivate mutating func record(_ snapshot: EngineTransfer.Snapshot) -> TransferEvent? {
        // The transfer may have been paused or resumed since the snapshot.
        record(TransferEvent(snapshot)) { snapshot.run.snapshot.state == .paused }
    }
}

extension TransferEvent {
    /// Whether the event can be the first one of a transfer.
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
            kind: .state(Transfer<Void>.State(sameAs: snapshot.state)))
    }
}
