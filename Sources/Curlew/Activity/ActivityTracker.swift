// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewSupport

/// The part of an activity monitor that sessions and transfers report to.
///
/// Locks are taken in this order: that of a session's relay or of a transfer's distributor, then that of the tracker.
/// A reporter changes the set of activities under its own lock, so that changes keep their order, and calls `flush()`
/// without a lock; only `flush()` starts tasks and wakes readers.
final class ActivityTracker: Sendable {
    /// The source of followed transfers; sessions have sources from 1.
    static let followed: UInt64 = 0

    /// An effect that waits for `flush()`.
    private enum Effect {
        case start(ActivityMachine.Timer)
        case cancel(Task<Void, Never>)
        case notify
    }

    private struct WeakRelay {
        /// The identity of `relay`, for comparisons under the lock.
        ///
        /// A strong reference to `relay` could be the last one there, and the release of a relay calls `close(_:)`. No
        /// other object has the identity, since a relay is removed before its end.
        let identity: ObjectIdentifier
        weak var relay: SessionRelay?

        init(_ relay: SessionRelay) {
            identity = ObjectIdentifier(relay)
            self.relay = relay
        }
    }

    private struct State {
        var machine: ActivityMachine
        var activities = ActivitySet()
        var relays: [UInt64: WeakRelay] = [:]
        var lastNumber: UInt64 = 0
        /// The task of the machine's timer; nil without a timer, and until `flush()` has started the task.
        var timer: Task<Void, Never>?
        var effects: [Effect] = []
        var isEnded = false

        mutating func nextNumber() -> UInt64 {
            lastNumber += 1
            return lastNumber
        }

        /// Returns the number of a session; nil for one that is not watched.
        func source(of relay: SessionRelay) -> UInt64? {
            let identity = ObjectIdentifier(relay)
            return relays.first { $0.value.identity == identity }?.key
        }

        mutating func on(_ input: ActivityMachine.Input) {
            let result = machine.on(input)
            if result.cancelsTimer, let task = timer {
                timer = nil
                effects.append(.cancel(task))
            }
            if let timer = result.timer { effects.append(.start(timer)) }
            if result.hasChanged { effects.append(.notify) }
        }

        /// Changes the set of activities, and informs the machine if the set becomes empty or is no longer empty.
        mutating func change(_ body: (inout ActivitySet) -> Void) {
            if isEnded { return }
            body(&activities)
            if activities.isEmpty == machine.isBusy { on(.busy(!activities.isEmpty)) }
        }
    }

    private let state: Lock<State>
    private let clock: any Clock<Duration>
    /// Sent after each change of the state.
    let signal = Signal()

    init(_ machine: ActivityMachine, clock: any Clock<Duration>) {
        state = Lock(State(machine: machine))
        self.clock = clock
    }

    /// Whether the monitor was released.
    var hasEnded: Bool { state.withLock { $0.isEnded } }

    // MARK: Reports, under the lock of the reporter

    /// Adds or removes a transfer of a source.
    ///
    /// - Returns: Whether the reporter calls `flush()` after releasing its lock.
    func set(_ transfer: UInt64, of source: UInt64, isActive: Bool) -> Bool {
        state.withLock { state in
            guard source == Self.followed || state.relays[source] != nil else { return false }
            state.change { $0.set(transfer, of: source, isActive: isActive) }
            return !state.effects.isEmpty
        }
    }

    /// Removes all transfers of a session, which has closed.
    ///
    /// - Returns: Whether the reporter calls `flush()` after releasing its lock.
    func close(_ source: UInt64) -> Bool {
        state.withLock { state in
            state.relays[source] = nil
            state.change { $0.removeAll(of: source) }
            return !state.effects.isEmpty
        }
    }

    // MARK: Effects, without a lock

    /// Carries out the effects of earlier reports.
    func flush() {
        let effects = state.withLock { state in
            defer { state.effects = [] }
            return state.effects
        }
        for effect in effects {
            switch effect {
            case .start(let timer): start(timer)
            case .cancel(let task): task.cancel()
            case .notify: signal.send()
            }
        }
    }

    private func start(_ timer: ActivityMachine.Timer) {
        let task = Task.detached { [weak self, clock] in
            // The end of a cancelled timer has no effect, because its token is not the current one.
            try? await clock.wait(for: timer.delay)
            self?.timerEnded(timer.token)
        }
        // Another thread may have cancelled the timer before its task was known.
        let isCurrent = state.withLock { state in
            if state.machine.token == timer.token { state.timer = task }
            return state.machine.token == timer.token
        }
        if !isCurrent { task.cancel() }
    }

    private func timerEnded(_ token: UInt64) {
        state.withLock { state in
            if state.machine.token == token { state.timer = nil }
            state.on(.timer(token))
        }
        flush()
    }

    // MARK: The monitor

    var current: ActivityMonitor.State { state.withLock { $0.machine.state } }

    /// The ids of the active transfers.
    var transfers: Set<UInt64> { state.withLock { $0.activities.ids } }

    var isEnabled: Bool {
        get { state.withLock { $0.machine.isEnabled } }
        set {
            state.withLock { state in
                if !state.isEnded, state.machine.isEnabled != newValue { state.on(.enable(newValue)) }
            }
            flush()
        }
    }

    /// Follows the transfers of a session, unless it does so already.
    func watch(_ relay: SessionRelay) {
        let source = state.withLock { state -> UInt64? in
            if state.isEnded || state.source(of: relay) != nil { return nil }
            let source = state.nextNumber()
            state.relays[source] = WeakRelay(relay)
            return source
        }
        guard let source else { return }
        let isAdded = relay.add(self, as: source)
        // Another thread may have called `unwatch` before the relay knew this tracker.
        let isWanted = state.withLock { state in
            if !isAdded { state.relays[source] = nil }
            return state.relays[source] != nil
        }
        if !isWanted { relay.remove(self, source) }
    }

    func unwatch(_ relay: SessionRelay) {
        let source = state.withLock { state -> UInt64? in
            guard let source = state.source(of: relay) else { return nil }
            state.relays[source] = nil
            state.change { $0.removeAll(of: source) }
            return source
        }
        if let source { relay.remove(self, source) }
        flush()
    }

    /// Adds a scope, and returns its number for `endScope`.
    func beginScope() -> UInt64 {
        let scope = state.withLock { state in
            let scope = state.nextNumber()
            state.change { $0.setScope(scope, isActive: true) }
            return scope
        }
        flush()
        return scope
    }

    func endScope(_ scope: UInt64) {
        state.withLock { state in state.change { $0.setScope(scope, isActive: false) } }
        flush()
    }

    /// Ends all readers and the timer, and stops watching the sessions; called when the monitor is released.
    func end() {
        let relays = state.withLock { state in
            if !state.isEnded { state.on(.enable(false)) }
            state.isEnded = true
            state.activities = ActivitySet()
            defer { state.relays = [:] }
            return state.relays
        }
        for (source, relay) in relays { relay.relay?.remove(self, source) }
        flush()
        signal.send()
    }

    /// Waits until the visibility of the activity differs from `last`.
    ///
    /// - Returns: The visibility; nil when the task is cancelled, and when the monitor was released.
    func next(after last: Bool?) async -> Bool? {
        while true {
            let seen = signal.count
            let (isVisible, isEnded) = state.withLock { ($0.machine.state.isVisible, $0.isEnded) }
            if isEnded || Task.isCancelled { return nil }
            if isVisible != last { return isVisible }
            guard await signal.wait(after: seen) else { return nil }
        }
    }
}
