// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Curlew

/// The states of `Circuit` at times that the test chooses.
@Suite struct CircuitTests {
    private let rule = Circuit.Rule(failures: 3, failureRate: nil, window: 20, cooldown: .seconds(30))

    private func run(_ circuit: inout Circuit, _ rule: Circuit.Rule, _ outcomes: String, at time: Duration = .zero) {
        for letter in outcomes {
            let admission = circuit.admit(now: time)
            circuit.record(
                admission, letter == "s" ? .success : letter == "f" ? .failure("f") : .unknown, rule, now: time)
        }
    }

    private func isOpen(_ circuit: Circuit, at time: Duration = .zero) -> Bool {
        var circuit = circuit
        if case .refused = circuit.admit(now: time) { return true } else { return false }
    }

    @Test(arguments: [
        ("fff", true), ("ff", false), ("ffsff", false), ("ffuf", true), ("uuuuuu", false), ("sssfff", true),
        ("ffsffsffs", false),
    ]) func consecutiveFailuresOpenTheCircuit(outcomes: String, opens: Bool) {
        var circuit = Circuit()
        run(&circuit, rule, outcomes)
        #expect(isOpen(circuit) == opens)
    }

    @Test(arguments: [
        ("sfsfsfsf", true), ("sfsfsff", false), ("sssfsfsf", false), ("ssssfsfsfsf", true), ("ffffssss", false),
        ("fufsufsusf", false), ("fufsffsusf", true),
    ]) func failureRateOpensTheCircuit(outcomes: String, opens: Bool) {
        var circuit = Circuit()
        run(&circuit, Circuit.Rule(failures: 100, failureRate: 0.5, window: 8, cooldown: .seconds(1)), outcomes)
        #expect(isOpen(circuit) == opens)
    }

    @Test func failureRateCoversTheWidestWindow() {
        let rule = Circuit.Rule(failures: 100, failureRate: 1, window: 64, cooldown: .seconds(1))
        var circuit = Circuit()
        run(&circuit, rule, "s" + String(repeating: "f", count: 63))
        #expect(!isOpen(circuit))
        run(&circuit, rule, "f")
        #expect(isOpen(circuit))
    }

    @Test func halfOpenCircuitAdmitsOneProbe() {
        var circuit = Circuit()
        run(&circuit, rule, "fff")
        #expect(circuit.admit(now: .seconds(10)) == .refused(cooldown: .seconds(20), after: "f"))
        #expect(!circuit.isInUse)
        let probe = circuit.admit(now: .seconds(30))
        #expect(probe == .probe(period: 1) && circuit.isInUse)
        #expect(circuit.admit(now: .seconds(31)) == .refused(cooldown: .zero, after: "f"))
        circuit.record(probe, .unknown, rule, now: .seconds(32))
        let second = circuit.admit(now: .seconds(32))
        #expect(second == .probe(period: 1), "a cancelled probe makes way for the next")
        circuit.record(second, .failure("g"), rule, now: .seconds(33))
        #expect(circuit.admit(now: .seconds(62)) == .refused(cooldown: .seconds(1), after: "g"))
        let third = circuit.admit(now: .seconds(63))
        circuit.record(third, .success, rule, now: .seconds(64))
        #expect(circuit.admit(now: .seconds(64)) == .pass(period: 3))
    }

    @Test func slowProbeIsReplacedAfterTheCooldown() {
        var circuit = Circuit()
        run(&circuit, rule, "fff")
        let slow = circuit.admit(now: .seconds(30))
        #expect(circuit.admit(now: .seconds(59)) == .refused(cooldown: .zero, after: "f"))
        let next = circuit.admit(now: .seconds(60))
        #expect(next == .probe(period: 2))
        circuit.record(slow, .failure("late"), rule, now: .seconds(61))
        #expect(circuit.admit(now: .seconds(61)) == .refused(cooldown: .zero, after: "f"), "the next probe still runs")
        circuit.record(next, .success, rule, now: .seconds(62))
        #expect(circuit.admit(now: .seconds(62)) == .pass(period: 3))
    }

    @Test func lateOutcomesDoNotAffectTheNewState() {
        var circuit = Circuit()
        let old = circuit.admit(now: .zero)
        run(&circuit, rule, "fff")
        circuit.record(old, .success, rule, now: .seconds(1))
        #expect(isOpen(circuit, at: .seconds(1)))
        let probe = circuit.admit(now: .seconds(30))
        circuit.record(probe, .success, rule, now: .seconds(30))
        for _ in 0..<9 { circuit.record(old, .failure("old"), rule, now: .seconds(31)) }
        #expect(!isOpen(circuit, at: .seconds(31)))
    }

    /// Compares a circuit with a simple model while requests begin and end in random order.
    @Test(arguments: 0..<60) func circuitEqualsASimpleModel(seed: UInt64) {
        var chance = SeededChance(seed)
        let rule = Circuit.Rule(
            failures: Int.random(in: 1...4, using: &chance), failureRate: Bool.random(using: &chance) ? 0.5 : nil,
            window: Int.random(in: 2...6, using: &chance), cooldown: .seconds(10))
        var (circuit, now, model) = (Circuit(), Duration.zero, Model(rule: rule))
        var underWay: [(admission: Circuit.Admission, period: Int)] = []
        var opened = 0
        for _ in 0..<1500 {
            switch Int.random(in: 0..<8, using: &chance) {
            case 0..<4:
                let admission = circuit.admit(now: now)
                let expected = model.admit(now)
                switch admission {
                case .pass: #expect(expected == "pass")
                case .probe: #expect(expected == "probe")
                case .refused: #expect(expected == "refused")
                }
                if expected != "refused" { underWay.append((admission, model.period)) }
            case 4..<7 where !underWay.isEmpty:
                let (admission, period) = underWay.remove(at: Int.random(in: 0..<underWay.count, using: &chance))
                let outcome: Circuit.Outcome = [.success, .failure(""), .failure(""), .unknown].randomElement(
                    using: &chance)!
                circuit.record(admission, outcome, rule, now: now)
                let before = model.openUntil
                model.record(period, outcome, now)
                if before == nil, model.openUntil != nil { opened += 1 }
            default: now += .seconds(Int.random(in: 0...4, using: &chance))
            }
        }
        #expect(opened > 5)
    }

    /// A simple model of the rules.
    private struct Model {
        let rule: Circuit.Rule
        var period = 0
        var openUntil: Duration?
        var probedUntil: Duration?
        var outcomes: [Bool] = []

        mutating func admit(_ now: Duration) -> String {
            guard let openUntil else { return "pass" }
            if now < max(openUntil, probedUntil ?? .zero) { return "refused" }
            if probedUntil != nil { period += 1 }
            probedUntil = now + rule.cooldown
            return "probe"
        }

        mutating func record(_ period: Int, _ outcome: Circuit.Outcome, _ now: Duration) {
            guard period == self.period else { return }
            if openUntil != nil {
                probedUntil = nil
                if outcome == .unknown { return }
                change(openUntil: outcome == .success ? nil : now + rule.cooldown)
            } else if outcome != .unknown {
                outcomes.append(outcome == .success)
                guard outcome != .success else { return }
                let row = outcomes.suffix(rule.failures)
                let latest = outcomes.suffix(rule.window)
                let isInARow = row.count == rule.failures && !row.contains(true)
                let share = Double(latest.filter { !$0 }.count) / Double(rule.window)
                let isTooOften = rule.failureRate.map { latest.count == rule.window && share >= $0 } ?? false
                if isInARow || isTooOften { change(openUntil: now + rule.cooldown) }
            }
        }

        private mutating func change(openUntil: Duration?) {
            period += 1
            self.openUntil = openUntil
            outcomes = []
        }
    }
}
