// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Curlew

/// The step for each input in each state of a check.
@Suite struct CheckMachineTests {
    enum Input: Sendable, CaseIterable { case changed, changedWithoutNeed, succeeded, failed, waited }

    struct Row: Sendable {
        let state: String
        let inputs: [Input]
        /// The step for each input of `Input.allCases`.
        let steps: [CheckMachine.Step?]
    }

    static let rows: [Row] = [
        Row(state: "idle", inputs: [], steps: [.check, nil, nil, nil, nil]),
        Row(state: "checking", inputs: [.changed], steps: [nil, nil, nil, .wait(.seconds(1)), nil]),
        Row(state: "checking after a change", inputs: [.changed, .changed], steps: [nil, nil, .check, .check, nil]),
        Row(
            state: "checking without need", inputs: [.changed, .changedWithoutNeed], steps: [nil, nil, nil, nil, nil]),
        Row(state: "waiting", inputs: [.changed, .failed], steps: [.check, .stopWaiting, nil, nil, .check]),
        Row(
            state: "checking again", inputs: [.changed, .failed, .waited],
            steps: [nil, nil, nil, .wait(.seconds(2)), nil]),
        Row(state: "checked", inputs: [.changed, .succeeded], steps: [.check, nil, nil, nil, nil]),
        Row(
            state: "needed again", inputs: [.changed, .changedWithoutNeed, .changed],
            steps: [nil, nil, .check, .check, nil]),
    ]

    private func send(_ input: Input, to machine: inout CheckMachine) -> CheckMachine.Step? {
        switch input {
        case .changed: machine.changed(needsCheck: true)
        case .changedWithoutNeed: machine.changed(needsCheck: false)
        case .succeeded: machine.checkEnded(isSuccess: true)
        case .failed: machine.checkEnded(isSuccess: false)
        case .waited: machine.waitEnded()
        }
    }

    @Test(arguments: CheckMachineTests.rows.indices) func eachStateHandlesEachInput(_ index: Int) {
        let row = CheckMachineTests.rows[index]
        for (input, step) in zip(Input.allCases, row.steps) {
            var machine = CheckMachine()
            for earlier in row.inputs { _ = send(earlier, to: &machine) }
            #expect(send(input, to: &machine) == step, "\(input) when \(row.state)")
        }
    }

    @Test func waitsGrowToAMinuteAndStartAgainAfterAChange() {
        var machine = CheckMachine()
        #expect(machine.changed(needsCheck: true) == .check)
        var waits: [Duration] = []
        for _ in 1...70 {
            if case .wait(let time)? = machine.checkEnded(isSuccess: false) { waits.append(time) }
            #expect(machine.waitEnded() == .check)
        }
        let expected: [Duration] = [1, 2, 4, 8, 16, 32, 60, 60].map { .seconds($0) }
        #expect(Array(waits.prefix(8)) == expected)
        #expect(waits.count == 70 && waits.last == .seconds(60))
        _ = machine.checkEnded(isSuccess: false)
        #expect(machine.changed(needsCheck: true) == .check)
        #expect(machine.checkEnded(isSuccess: false) == .wait(.seconds(1)))
    }
}
