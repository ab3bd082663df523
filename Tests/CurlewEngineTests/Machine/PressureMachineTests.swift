// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import Testing

@testable import CurlewEngine

@Suite(.timeLimit(.minutes(5)))
struct PressureMachineTests {
    private static let hold = PressureMachine.hold
    /// The time of the first report.
    private static let start: UInt64 = 1_000

    struct Row: Sendable {
        /// Earlier inputs with their times after the start.
        var state: [(PressureMachine.Input, UInt64)]
        var input: PressureMachine.Input
        var time: UInt64
        var level: MemoryLevel
        /// The deadline after the start; nil for no deadline.
        var deadline: UInt64?
    }

    /// Every state, every input, and times before and at the end of a report.
    static let rows: [Row] = {
        let normal: [(PressureMachine.Input, UInt64)] = []
        let warning: [(PressureMachine.Input, UInt64)] = [(.report(.warning), 0)]
        let critical: [(PressureMachine.Input, UInt64)] = [(.report(.critical), 0)]
        let both: [(PressureMachine.Input, UInt64)] = [(.report(.critical), 0), (.report(.warning), 5)]
        let ended: [(PressureMachine.Input, UInt64)] = [(.report(.warning), 0), (.time, hold)]
        return [
            Row(state: normal, input: .time, time: 1, level: .normal, deadline: nil),
            Row(state: normal, input: .report(.normal), time: 1, level: .normal, deadline: nil),
            Row(state: normal, input: .report(.warning), time: 1, level: .warning, deadline: hold + 1),
            Row(state: normal, input: .report(.critical), time: 1, level: .critical, deadline: hold + 1),

            Row(state: warning, input: .time, time: hold - 1, level: .warning, deadline: hold),
            Row(state: warning, input: .time, time: hold, level: .normal, deadline: nil),
            Row(state: warning, input: .report(.normal), time: 7, level: .warning, deadline: hold),
            Row(state: warning, input: .report(.normal), time: hold, level: .normal, deadline: nil),
            Row(state: warning, input: .report(.warning), time: 7, level: .warning, deadline: hold + 7),
            Row(state: warning, input: .report(.warning), time: hold, level: .warning, deadline: 2 * hold),
            Row(state: warning, input: .report(.critical), time: 7, level: .critical, deadline: hold + 7),
            Row(state: warning, input: .report(.critical), time: hold, level: .critical, deadline: 2 * hold),

            Row(state: critical, input: .time, time: hold - 1, level: .critical, deadline: hold),
            Row(state: critical, input: .time, time: hold, level: .normal, deadline: nil),
            Row(state: critical, input: .report(.normal), time: 7, level: .critical, deadline: hold),
            Row(state: critical, input: .report(.normal), time: hold, level: .normal, deadline: nil),
            Row(state: critical, input: .report(.warning), time: 7, level: .critical, deadline: hold),
            Row(state: critical, input: .report(.warning), time: hold, level: .warning, deadline: 2 * hold),
            Row(state: critical, input: .report(.critical), time: 7, level: .critical, deadline: hold + 7),
            Row(state: critical, input: .report(.critical), time: hold, level: .critical, deadline: 2 * hold),

            Row(state: both, input: .time, time: hold - 1, level: .critical, deadline: hold),
            Row(state: both, input: .time, time: hold, level: .warning, deadline: hold + 5),
            Row(state: both, input: .time, time: hold + 5, level: .normal, deadline: nil),
            Row(state: both, input: .report(.normal), time: hold, level: .warning, deadline: hold + 5),
            Row(state: both, input: .report(.warning), time: 7, level: .critical, deadline: hold),
            Row(state: both, input: .report(.warning), time: hold, level: .warning, deadline: 2 * hold),
            Row(state: both, input: .report(.critical), time: 7, level: .critical, deadline: hold + 7),
            Row(state: both, input: .report(.critical), time: hold + 5, level: .critical, deadline: 2 * hold + 5),

            Row(state: ended, input: .time, time: hold + 1, level: .normal, deadline: nil),
            Row(state: ended, input: .report(.warning), time: hold + 1, level: .warning, deadline: 2 * hold + 1),
        ]
    }()

    @Test(arguments: PressureMachineTests.rows.indices)
    func levelFollowsTheReports(_ index: Int) {
        let row = Self.rows[index]
        var machine = PressureMachine()
        for (input, time) in row.state { _ = machine.handle(input, at: Self.start + time) }
        let before = machine.level
        let change = machine.handle(row.input, at: Self.start + row.time)
        #expect(machine.level == row.level)
        #expect(change == (row.level == before ? nil : row.level))
        #expect(machine.deadline == row.deadline.map { Self.start + $0 } ?? Monotonic.never)
    }

    @Test func levelsAreOrdered() {
        #expect(MemoryLevel.allCases.sorted() == [.normal, .warning, .critical])
    }
}
