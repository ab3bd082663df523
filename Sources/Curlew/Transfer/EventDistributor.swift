// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import CurlewSupport

/// A distributor that passes the events of one transfer to its observers.
final class EventDistributor: EngineObserver {
    private struct State {
        var buffers: [ObjectIdentifier: WeakBuffer] = [:]
        /// The activity trackers that follow the transfer.
        var trackers: [ActivityTracker] = []
        /// The last events, kept for observers that subscribe after the end.
        var metrics: TransferEvent?
        var end: TransferEvent?
        /// The time of the last event.
        var elapsed = Duration.zero

        /// Returns the event with a time that is not before that of the last one.
        ///
        /// Threads read the clock before they take the lock, so their times may be out of order.
        mutating func inOrder(_ event: TransferEvent) -> TransferEvent {
            elapsed = max(elapsed, event.elapsed)
            return event.with(elapsed: elapsed)
        }

        /// Passes an event to all observers, and returns the tasks to resume without the lock.
        mutating func push(_ event: TransferEvent) -> [EventBuffer<TransferEvent>.Wake] {
            if end != nil { return [] }
            let event = inOrder(event)
            if case .metrics = event.kind { metrics = event }
            if event.isLast { end = event }
            return buffers.values.flatMap { $0.buffer?.push(event, isLast: event.isLast) ?? [] }
        }
    }

    private struct WeakBuffer { weak var buffer: EventBuffer<TransferEvent>? }

    private let state = Lock(State())

    /// Adds an observer's buffer.
    ///
    /// - Parameters:
    ///   - buffer: A new buffer without a reader.
    ///   - current: Returns the first event for the observer, with the state of the transfer; nil before its start. It
    ///     is called under the lock, so that no event can happen in between.
    func add(_ buffer: EventBuffer<TransferEvent>, current: () -> TransferEvent?) {
        state.withLock { state in
            if let current = current() { buffer.append(state.inOrder(current)) }
            guard let end = state.end else {
                state.buffers = state.buffers.filter { $0.value.buffer != nil }
                state.buffers[ObjectIdentifier(buffer)] = WeakBuffer(buffer: buffer)
                return
            }
            if let metrics = state.metrics { buffer.append(state.inOrder(metrics)) }
            buffer.append(state.inOrder(end), isLast: true)
        }
    }

    /// Adds an activity tracker, unless the transfer has finished or the tracker follows it already.
    func add(_ tracker: ActivityTracker, of run: TransferRun) {
        var ended: [ActivityTracker] = []
        updateActivity(of: run) { trackers in
            // Those of released monitors; they are released without the lock.
            let rest = trackers.partition { $0.hasEnded }
            ended = Array(trackers[rest...])
            trackers.removeSubrange(rest...)
            if !trackers.contains(where: { $0 === tracker }) { trackers.append(tracker) }
        }
        withExtendedLifetime(ended) {}
    }

    /// Reports to the activity trackers whether the transfer is active, after a change of its run.
    func updateActivity(of run: TransferRun, _ change: (inout [ActivityTracker]) -> Void = { _ in }) {
        let changed = state.withLock { state -> [ActivityTracker] in
            change(&state.trackers)
            if state.trackers.isEmpty { return [] }
            // Read the state of the run under the lock, so that the last of several concurrent calls reports the
            // current state.
            let activity = run.activity
            defer { if activity == .finished { state.trackers = [] } }
            return state.trackers.filter {
                $0.set(run.id, of: ActivityTracker.followed, isActive: activity == .active)
            }
        }
        for tracker in changed { tracker.flush() }
    }

    func didObserve(_ event: EngineEvent, of transfer: EngineTransfer, at nanoseconds: UInt64) {
        for event in TransferEvent.events(event, of: transfer, at: nanoseconds) { receive(event) }
    }

    /// Passes an event to all observers; events after the last one are dropped.
    func receive(_ event: TransferEvent) {
        for wake in state.withLock({ $0.push(event) }) { wake() }
    }

    /// Passes the end of the transfer to all observers.
    ///
    /// - Parameter metrics: Returns the last metrics, for a distributor that was added after the event with them; it is
    ///   called under the lock.
    func receiveEnd(_ event: TransferEvent, metrics: () -> TransferEvent?) {
        let wakes = state.withLock { state in
            let missed = state.end == nil && state.metrics == nil ? metrics() : nil
            return (missed.map { state.push($0) } ?? []) + state.push(event)
        }
        for wake in wakes { wake() }
    }
}

extension TransferEvent {
    /// Converts an event of the engine to public events: zero or one, or up to two at the start and end of an attempt.
    ///
    /// An attempt of a chain that was cancelled before it started produces no events.
    static func events(_ event: EngineEvent, of transfer: EngineTransfer, at nanoseconds: UInt64) -> [TransferEvent] {
        let start = transfer.standing.startedAt
        if transfer.plan.continues, event.isUnsent(since: start) { return [] }
        let elapsed = start == 0 || nanoseconds < start ? 0 : nanoseconds - start
        let time = Duration.nanoseconds(Int64(clamping: transfer.plan.offset + elapsed))
        return kinds(event, of: transfer.plan, at: time).map { kind in
            TransferEvent(
                transfer: transfer.plan.transfer, label: transfer.plan.label, method: Method(transfer.plan.method),
                url: transfer.plan.url, attempt: transfer.plan.ordinal, elapsed: time, kind: kind)
        }
    }

    private static func kinds(
        _ event: EngineEvent, of plan: borrowing TransferPlan, at time: Duration
    ) -> [Kind] {
        switch event {
        case .queued: (plan.target.proxyChoice.map { [.routed($0)] } ?? []) + [.queued]
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
        case .ended(let outcome): ending(outcome, of: plan, at: time)
        }
    }

    /// Returns the metrics event, and the end event unless a `TransferRun` sends it.
    private static func ending(
        _ outcome: EngineTransfer.Outcome, of plan: borrowing TransferPlan, at time: Duration
    ) -> [Kind] {
        let metrics = Kind.metrics(TransferMetrics(outcome.metrics))
        if !outcome.endsTransfer { return [metrics] }
        guard let failure = outcome.failure, !failure.isConnectedOnly else { return [metrics, .finished(nil)] }
        var request = Request(Method(plan.method), plan.url)
        request.options.label = plan.label
        let response = outcome.head.map { ResponseHead($0, url: plan.url) }
        let error = NetworkError(
            failure, request: request, response: response, body: outcome.excerpt, duration: time,
            proxy: plan.target.proxyChoice)
        return [metrics, .finished(error)]
    }
}

extension EngineEvent {
    /// Returns whether the event is the end of an attempt that was cancelled before it started.
    func isUnsent(since start: UInt64) -> Bool {
        guard case .ended(let outcome) = self, start == 0 else { return false }
        return outcome.failure?.isCancellation == true
    }
}

extension TransferRun {
    /// Adds an observer, and returns the buffer with its events from now on.
    func observe() -> EventBuffer<TransferEvent> {
        let buffer = EventBuffer<TransferEvent> { [self] in event(.dropped($0)) }
        withDistributor { $0.add(buffer, current: currentState) }
        return buffer
    }

    /// Reports the transfer to an activity tracker until it has finished.
    func follow(_ tracker: ActivityTracker) { withDistributor { $0.add(tracker, of: self) } }

    /// The state of a run for activity trackers.
    enum Activity { case idle, active, finished }

    var activity: Activity {
        state.withLock { state in
            let machine = state.machine
            return machine.isFinished ? .finished : machine.hasStarted && !machine.isPaused ? .active : .idle
        }
    }

    /// Calls a closure that adds an observer to the distributor of the transfer; creates the distributor first if
    /// necessary.
    private func withDistributor(_ add: (EventDistributor) -> Void) {
        // Set the distributor and read the attempt in one step, so that each attempt gets it here or at its start.
        let (distributor, isNew, running) = state.withLock { state -> (EventDistributor, Bool, [EngineTransfer]) in
            if let distributor = state.distributor { return (distributor, false, []) }
            let distributor = EventDistributor()
            state.distributor = distributor
            return (distributor, true, state.machine.hasStarted ? state.engines : [])
        }
        add(distributor)
        guard isNew else { return }
        for engine in running { engine.watch(distributor) }
        let now = snapshot
        if now.finish != nil { receiveEnd(now, by: distributor) }
    }

    private func receiveEnd(_ snapshot: Snapshot, by distributor: EventDistributor) {
        distributor.receiveEnd(event(.finished(snapshot.error))) { metrics(in: snapshot).map { event(.metrics($0)) } }
    }

    /// The metrics of the last attempt, unless it never started or belongs to another transfer.
    private func metrics(in snapshot: Snapshot) -> TransferMetrics? {
        guard let latest = snapshot.latest, latest.standing.startedAt != 0 else { return nil }
        if case .made(let response)? = snapshot.finish, response.value.attempt.map(owns) != true { return nil }
        return snapshot.metrics
    }

    /// Returns an event with the current state; nil before the start.
    private func currentState() -> TransferEvent? {
        // The distributor calls this function under its lock. Take no snapshot: its release may run code of the user.
        let now = visibleState
        return now == .idle ? nil : event(.state(Transfer<Void>.State(sameAs: now)))
    }

    /// Creates an event of the latest attempt.
    func event(_ kind: TransferEvent.Kind) -> TransferEvent {
        let (attempt, latest) = state.withLock { ($0.machine.attempts, $0.latestRequest) }
        return event(kind, of: latest ?? request, attempt)
    }

    private func event(_ kind: TransferEvent.Kind, of request: Request, _ attempt: Int) -> TransferEvent {
        TransferEvent(
            transfer: id, label: self.request.options.label, method: request.method, url: request.url,
            attempt: attempt, elapsed: elapsed, kind: kind)
    }

    /// Sends an event to the observers of the transfer and its session; without observers no event is created.
    func emit(_ kind: @autoclosure () -> TransferEvent.Kind) { send { event(kind()) } }

    /// Sends an event about the given attempt, which may not be the latest one.
    func emit(_ kind: @autoclosure () -> TransferEvent.Kind, of request: Request, attempt: Int) {
        send { event(kind(), of: request, attempt) }
    }

    /// Sends the end of the transfer to its observers and, if `reachesSession` is true, to those of its session.
    func emitEnd(toSession reachesSession: Bool) {
        if let distributor = state.withLock({ $0.distributor }) { receiveEnd(snapshot, by: distributor) }
        if reachesSession, let relay = session.observedRelay { relay.send(event(.finished(snapshot.error))) }
    }

    private func send(_ event: () -> TransferEvent) {
        let distributor = state.withLock { $0.distributor }
        let relay = session.observedRelay
        guard distributor != nil || relay != nil else { return }
        let event = event()
        distributor?.receive(event)
        // An interceptor may continue after the end of the transfer; drop its events, because the end is the last
        // event.
        relay?.send(event, isPaused: { self.isPaused }, isLate: { self.isFinished })
    }
}
