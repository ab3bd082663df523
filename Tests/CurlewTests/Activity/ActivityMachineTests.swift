// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Curlew

/// The states of an activity monitor, and the set of activities, as values.
struct ActivityMachineTests {
    private typealias Machine = ActivityMachine

    /// The situations of a machine, with the inputs that lead to them.
    enum Situation: String, CaseIterable {
        case idle, off, offBusy, starting, startingIdle, active, ending

        fileprivate var inputs: [ActivityMachine.Input] {
            switch self {
            case .idle: []
            case .off: [.enable(false)]
            case .offBusy: [.enable(false), .busy(true)]
            case .starting: [.busy(true)]
            case .startingIdle: [.busy(true), .busy(false)]
            case .active: [.busy(true), .timer(1)]
            case .ending: [.busy(true), .timer(1), .busy(false)]
            }
        }
    }

    enum Outcome: Equatable {
        /// The input has no effect.
        case stays
        /// The machine moves to a state; it starts a timer with a delay in seconds, or cancels its timer.
        case moves(ActivityMonitor.State, timer: Int? = nil, cancels: Bool = false)
    }

    /// The outcome of each input in each situation; `current` is the timer that runs, `stale` an earlier one.
    private static let table: [(Situation, [(String, Outcome)])] = [
        (
            .idle,
            [
                ("busy", .moves(.delayingStart, timer: 1)), ("idle", .stays), ("current", .stays), ("stale", .stays),
                ("on", .stays), ("off", .stays),
            ]
        ),
        (
            .off,
            [
                ("busy", .stays), ("idle", .stays), ("current", .stays), ("stale", .stays), ("on", .stays),
                ("off", .stays),
            ]
        ),
        (
            .offBusy,
            [
                ("busy", .stays), ("idle", .stays), ("current", .stays), ("stale", .stays),
                ("on", .moves(.delayingStart, timer: 1)), ("off", .stays),
            ]
        ),
        (
            .starting,
            [
                ("busy", .stays), ("idle", .stays), ("current", .moves(.active)), ("stale", .stays), ("on", .stays),
                ("off", .moves(.notActive, cancels: true)),
            ]
        ),
        (
            .startingIdle,
            [
                ("busy", .stays), ("idle", .stays), ("current", .moves(.notActive)), ("stale", .stays), ("on", .stays),
                ("off", .moves(.notActive, cancels: true)),
            ]
        ),
        (
            .active,
            [
                ("busy", .stays), ("idle", .moves(.delayingEnd, timer: 2)), ("current", .stays), ("stale", .stays),
                ("on", .stays), ("off", .moves(.notActive)),
            ]
        ),
        (
            .ending,
            [
                ("busy", .moves(.active, cancels: true)), ("idle", .stays), ("current", .moves(.notActive)),
                ("stale", .stays), ("on", .stays), ("off", .moves(.notActive, cancels: true)),
            ]
        ),
    ]

    private static func machine(_ situation: Situation) -> ActivityMachine {
        var machine = ActivityMachine(activationDelay: .seconds(1), completionDelay: .seconds(2))
        for input in situation.inputs { _ = machine.on(input) }
        return machine
    }

    private static func input(_ name: String, _ machine: ActivityMachine) -> ActivityMachine.Input {
        switch name {
        case "busy": .busy(true)
        case "idle": .busy(false)
        case "current": .timer(machine.token ?? 0)
        case "stale": .timer((machine.token ?? 2) - 1)
        case "on": .enable(true)
        default: .enable(false)
        }
    }

    @Test func everyInputInEverySituation() {
        #expect(Set(Self.table.map(\.0)) == Set(Situation.allCases))
        for (situation, rows) in Self.table {
            #expect(rows.map(\.0) == ["busy", "idle", "current", "stale", "on", "off"])
            for (name, outcome) in rows {
                var machine = Self.machine(situation)
                let (before, token) = (machine.state, machine.token)
                let effects = machine.on(Self.input(name, machine))
                var found = Outcome.stays
                if machine.state != before || effects.timer != nil || effects.cancelsTimer {
                    let delay = effects.timer.map { Int($0.delay.components.seconds) }
                    found = .moves(machine.state, timer: delay, cancels: effects.cancelsTimer)
                }
                #expect(found == outcome, "\(situation) \(name)")
                #expect(effects.hasChanged == (machine.state != before), "\(situation) \(name)")
                #expect(effects.timer.map(\.token) == (effects.timer == nil ? nil : machine.token))
                // A timer runs exactly in the two states with a delay.
                let waits = machine.state == .delayingStart || machine.state == .delayingEnd
                #expect((machine.token != nil) == waits, "\(situation) \(name)")
                #expect(found != .stays || machine.token == token, "\(situation) \(name)")
            }
        }
    }

    @Test func activityIsIgnoredUntilTheStartTimerEnds() {
        var machine = Self.machine(.starting)
        for isBusy in [false, true, false, true] {
            #expect(machine.on(.busy(isBusy)) == Machine.Effects())
            #expect(machine.state == .delayingStart)
        }
        #expect(machine.on(.timer(1)).hasChanged && machine.state == .active)
    }

    @Test func lateTimerOfAnEarlierStateIsIgnored() {
        var machine = Self.machine(.ending)
        #expect(machine.token == 2)
        #expect(machine.on(.busy(true)).cancelsTimer)
        #expect(machine.on(.busy(false)).timer?.token == 3)
        #expect(machine.on(.timer(2)) == Machine.Effects())
        #expect(machine.state == .delayingEnd)
        #expect(machine.on(.timer(3)).hasChanged && machine.state == .notActive)
    }

    @Test func zeroDelaysSkipTheirStates() {
        var machine = ActivityMachine(activationDelay: .zero, completionDelay: .seconds(-1))
        #expect(machine.on(.busy(true)) == Machine.Effects(hasChanged: true))
        #expect(machine.state == .active)
        #expect(machine.on(.busy(false)) == Machine.Effects(hasChanged: true))
        #expect(machine.state == .notActive && machine.token == nil)
    }

    @Test func visibleStatesAreActiveAndDelayingEnd() {
        #expect(ActivityMonitor.State.allCases.filter(\.isVisible) == [.active, .delayingEnd])
    }

    @Test func randomInputsKeepTheRules() {
        for seed in 0..<200 as Range<UInt64> {
            var chance = SeededChance(seed)
            var machine = ActivityMachine(activationDelay: .seconds(1), completionDelay: .seconds(2))
            var running: UInt64?
            for _ in 0..<100 {
                let before = machine.state
                let input: Machine.Input
                switch Int.random(in: 0..<5, using: &chance) {
                case 0, 1: input = .busy(.random(using: &chance))
                case 2: input = running.map { .timer($0) } ?? .busy(true)
                case 3: input = .timer(.random(in: 0..<4, using: &chance))
                default: input = .enable(.random(using: &chance))
                }
                let effects = machine.on(input)
                if case .timer(let token) = input, token == running { running = nil }
                if effects.cancelsTimer { running = nil }
                if let timer = effects.timer { running = timer.token }
                #expect(running == machine.token)
                // Only an enabled machine is visible, and only a busy one becomes active.
                #expect(machine.isEnabled || machine.state == .notActive)
                if machine.state == .active, before != .active { #expect(machine.isBusy) }
                if machine.state == .delayingEnd { #expect(!machine.isBusy) }
                if machine.state == .notActive, machine.isEnabled { #expect(!machine.isBusy) }
            }
        }
    }

    // MARK: The set of activities

    @Test func setCountsATransferOfSeveralSourcesOnce() {
        var activities = ActivitySet()
        activities.set(7, of: 0, isActive: true)
        activities.set(7, of: 1, isActive: true)
        activities.set(8, of: 1, isActive: true)
        activities.set(8, of: 1, isActive: true)
        #expect(activities.ids == [7, 8])
        activities.set(7, of: 1, isActive: false)
        activities.set(7, of: 1, isActive: false)
        #expect(activities.ids == [7, 8])
        activities.removeAll(of: 1)
        #expect(activities.ids == [7])
        activities.set(7, of: 0, isActive: false)
        #expect(activities.isEmpty)
    }

    @Test func setCountsScopes() {
        var activities = ActivitySet()
        activities.setScope(1, isActive: true)
        activities.setScope(2, isActive: true)
        activities.setScope(1, isActive: false)
        activities.setScope(1, isActive: false)
        #expect(!activities.isEmpty && activities.ids.isEmpty)
        activities.setScope(2, isActive: false)
        #expect(activities.isEmpty)
    }
}
