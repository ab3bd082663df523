// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// Activity reports whether transfers run, without flicker: short transfers are not shown, and short gaps do not end
// the display. A pure state machine decides; the relays of sessions and the runs of transfers report to a tracker.

/// The state of an activity monitor, as a pure value.
///
/// Its inputs are changes between busy and idle, the ends of timers, and changes of `isEnabled`. Each input returns
/// effects, which the owner carries out. The machine reads no clock.
struct ActivityMachine: Sendable {
    typealias State = ActivityMonitor.State

    enum Input: Sendable, Hashable {
        /// Whether at least one activity runs now.
        case busy(Bool)
        /// The timer with this token has ended.
        case timer(UInt64)
        case enable(Bool)
    }

    /// A timer that the owner starts; its end is an input with the token.
    struct Timer: Sendable, Hashable {
        let token: UInt64
        let delay: Duration
    }

    struct Effects: Sendable, Hashable {
        /// Whether the owner cancels the timer that was started last.
        var cancelsTimer = false
        var timer: Timer?
        /// Whether the state has changed.
        var hasChanged = false
    }

    private(set) var state = State.notActive
    private(set) var isBusy = false
    private(set) var isEnabled: Bool
    /// The token of the timer that is running; nil while no timer runs.
    private(set) var token: UInt64?
    private var lastToken: UInt64 = 0
    private let activationDelay: Duration
    private let completionDelay: Duration

    /// Creates an idle machine; a delay of zero or less skips the state with this delay.
    init(activationDelay: Duration, completionDelay: Duration, isEnabled: Bool = true) {
        self.activationDelay = activationDelay
        self.completionDelay = completionDelay
        self.isEnabled = isEnabled
    }

    mutating func on(_ input: Input) -> Effects {
        var effects = Effects()
        let before = state
        switch input {
        case .busy(let isBusy):
            self.isBusy = isBusy
            if isEnabled { busyChanged(&effects) }
        case .timer(let token):
            // An earlier timer may end before its cancellation takes effect.
            if token == self.token { timerEnded(&effects) }
        case .enable(true):
            isEnabled = true
            busyChanged(&effects)
        case .enable(false):
            isEnabled = false
            move(to: .notActive, &effects)
        }
        effects.hasChanged = state != before
        return effects
    }

    private mutating func busyChanged(_ effects: inout Effects) {
        switch (state, isBusy) {
        case (.notActive, true): wait(in: .delayingStart, for: activationDelay, orMoveTo: .active, &effects)
        case (.active, false): wait(in: .delayingEnd, for: completionDelay, orMoveTo: .notActive, &effects)
        case (.delayingEnd, true): move(to: .active, &effects)
        // While the start is delayed, only the end of the timer decides.
        case (.delayingStart, _), (.notActive, false), (.active, true), (.delayingEnd, false): break
        }
    }

    private mutating func timerEnded(_ effects: inout Effects) {
        token = nil
        state = state == .delayingStart && isBusy ? .active : .notActive
    }

    private mutating func wait(
        in delaying: State, for delay: Duration, orMoveTo next: State, _ effects: inout Effects
    ) {
        guard delay > .zero else { return move(to: next, &effects) }
        state = delaying
        lastToken += 1
        token = lastToken
        effects.timer = Timer(token: lastToken, delay: delay)
    }

    private mutating func move(to next: State, _ effects: inout Effects) {
        state = next
        if token != nil { effects.cancelsTimer = true }
        token = nil
    }
}

/// The activities that run: transfers by their ids, and scopes of code.
struct ActivitySet: Sendable {
    /// The active transfers of each source, which is a session or, as source 0, the followed transfers.
    private var transfers: [UInt64: Set<UInt64>] = [:]
    private var scopes: Set<UInt64> = []

    var isEmpty: Bool { transfers.isEmpty && scopes.isEmpty }

    /// The ids of the active transfers; a transfer of several sources is one transfer.
    var ids: Set<UInt64> { transfers.values.reduce(into: []) { $0.formUnion($1) } }

    /// Adds or removes a transfer; a repetition has no effect.
    mutating func set(_ transfer: UInt64, of source: UInt64, isActive: Bool) {
        if isActive {
            transfers[source, default: []].insert(transfer)
        } else if transfers[source]?.remove(transfer) != nil, transfers[source]?.isEmpty == true {
            transfers[source] = nil
        }
    }

    mutating func removeAll(of source: UInt64) { transfers[source] = nil }

    /// Adds or removes a scope.
    mutating func setScope(_ scope: UInt64, isActive: Bool) {
        if isActive { scopes.insert(scope) } else { scopes.remove(scope) }
    }
}
