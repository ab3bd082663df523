// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import CurlewEngine

@Suite("Lifecycle")
struct LifecycleTests {
    private static let events: [Lifecycle.Event] = [.start, .admit, .pause, .resume, .finish]

    /// A state of a lifecycle, the events that lead to it, and the result of each further event: the new state and
    /// `wantsPause`, or nil if the event is refused.
    struct Row: Sendable, CustomTestStringConvertible {
        let name: String
        let way: [Lifecycle.Event]
        let state: Lifecycle.State
        let wantsPause: Bool
        /// In the order start, admit, pause, resume, finish.
        let moves: [Move?]

        var testDescription: String { name }
    }

    struct Move: Sendable, Equatable {
        let state: Lifecycle.State
        let wantsPause: Bool

        init(_ state: Lifecycle.State, _ wantsPause: Bool = false) {
            self.state = state
            self.wantsPause = wantsPause
        }
    }

    static let rows = [
        Row(
            name: "idle", way: [], state: .idle, wantsPause: false,
            moves: [Move(.queued), nil, Move(.idle, true), nil, Move(.finished)]),
        Row(
            name: "idle, to be paused", way: [.pause], state: .idle, wantsPause: true,
            moves: [Move(.queued, true), nil, nil, Move(.idle), Move(.finished, true)]),
        Row(
            name: "queued", way: [.start], state: .queued, wantsPause: false,
            moves: [nil, Move(.running), Move(.queued, true), nil, Move(.finished)]),
        Row(
            name: "queued, to be paused", way: [.start, .pause], state: .queued, wantsPause: true,
            moves: [nil, nil, nil, Move(.queued), Move(.finished, true)]),
        Row(
            name: "running", way: [.start, .admit], state: .running, wantsPause: false,
            moves: [nil, nil, Move(.paused, true), nil, Move(.finished)]),
        Row(
            name: "paused", way: [.start, .admit, .pause], state: .paused, wantsPause: true,
            moves: [nil, nil, nil, Move(.running), Move(.finished, true)]),
        Row(
            name: "finished", way: [.finish], state: .finished, wantsPause: false,
            moves: [nil, nil, nil, nil, nil]),
        Row(
            name: "finished while paused", way: [.start, .admit, .pause, .finish], state: .finished, wantsPause: true,
            moves: [nil, nil, nil, nil, nil]),
    ]

    @Test(arguments: rows)
    func everyEventInEveryStateFollowsTheTable(row: Row) {
        var start = Lifecycle()
        for event in row.way { start.on(event) }
        #expect(start.state == row.state)
        #expect(start.wantsPause == row.wantsPause)
        for (event, move) in zip(Self.events, row.moves) {
            var lifecycle = start
            let isMoved = lifecycle.on(event)
            #expect(isMoved == (move != nil), "\(event)")
            #expect(Move(lifecycle.state, lifecycle.wantsPause) == move ?? Move(row.state, row.wantsPause), "\(event)")
        }
    }

    @Test func pauseBeforeTheStartLastsUntilResume() {
        var lifecycle = Lifecycle()
        let answers = [Lifecycle.Event.pause, .start, .admit, .resume, .admit].map { lifecycle.on($0) }
        #expect(answers == [true, true, false, true, true])
        #expect(lifecycle.state == .running)
        #expect(!lifecycle.wantsPause)
    }

    @Test func lifecycleIsAValueType() {
        var one = Lifecycle()
        let other = one
        one.on(.start)
        #expect(one != other)
        #expect(Set([one, other, Lifecycle()]).count == 2)
    }
}
