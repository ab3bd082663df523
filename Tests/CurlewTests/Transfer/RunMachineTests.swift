// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewEngine
import Testing

@testable import Curlew

@Suite(.timeLimit(.minutes(5)))
struct RunMachineTests {
    // MARK: Schedules

    /// Every sequence of four orders, for each kind of start, with random steps of the engine and the chain between
    /// them.
    @Test(arguments: RunSimulation.Kind.allCases, UInt64(0)..<4)
    func everyScheduleEndsOnce(_ kind: RunSimulation.Kind, seed: UInt64) {
        let orders = RunSimulation.Order.allCases
        var flaws: [String] = []
        for number in 0..<orders.count * orders.count * orders.count * orders.count {
            var simulation = RunSimulation(kind, seed: UInt64(number) << 2 | seed)
            var (rest, sequence) = (number, [RunSimulation.Order]())
            for _ in 0..<4 {
                let order = orders[rest % orders.count]
                rest /= orders.count
                sequence.append(order)
                simulation.order(order)
                simulation.pass()
            }
            simulation.check()
            for flaw in simulation.flaws where flaws.count < 10 { flaws.append("\(sequence), \(number): \(flaw)") }
        }
        #expect(flaws.isEmpty)
    }

    // MARK: All pairs

    /// A machine in a state, with one waiting task, one reader or one step of the chain where the state has them.
    private enum Scene: String, CaseIterable {
        case idle, idlePaused, besideChain, folded, foldedWithWaiter, foldedWithTwo, foldedDetached, foldedStream
        case foldedCancelled, chain, chainPaused, chainSending, chainAwaitingEnd, chainWithWaiter, chainCancelled,
            responded
        case respondedWithWaiter, respondedStream, finished, refused, chainWithTwoAttempts

        var machine: StubMachine {
            let first = StubAttempt(id: 1)
            if self == .refused {
                return StubMachine(refusedBy: NetworkError(.internal, phase: .preparing, "refused"), priority: 0)
            }
            let folds = ["idle", "beside", "folded", "finished"].contains { rawValue.hasPrefix($0) }
            var machine = StubMachine(folds ? first : nil, startsChain: self == .besideChain, priority: 0)
            if self == .idlePaused { _ = machine.on(.pause) }
            if rawValue.hasPrefix("idle") || self == .besideChain { return machine }
            if rawValue.hasSuffix("Stream") {
                _ = machine.claimStream()
                _ = machine.on(.read)
                _ = machine.on(.awaitResponse(StubWaiter(id: 9)))
            }
            _ = machine.on(.start(detaches: self == .foldedDetached))
            if rawValue.hasSuffix("WithWaiter") || self == .foldedWithTwo || self == .foldedDetached {
                _ = machine.claimValue()
                _ = machine.on(.awaitFinish(StubWaiter(id: 9)))
            }
            if self == .foldedWithTwo { _ = machine.on(.awaitFinish(StubWaiter(id: 6))) }
            if rawValue.hasPrefix("chain") || rawValue.hasPrefix("responded") { _ = machine.on(.sent(first)) }
            if self == .chainWithTwoAttempts { _ = machine.on(.sent(StubAttempt(id: 3))) }
            if self == .chainSending { _ = machine.on(.awaitHead(1, StubWaiter(id: 8))) }
            if self == .chainAwaitingEnd { _ = machine.on(.awaitEnd(1, StubWaiter(id: 8))) }
            if self == .chainPaused { _ = machine.on(.pause) }
            if rawValue.hasPrefix("responded") { _ = machine.on(.respond("r", first, hasEnded: false)) }
            if rawValue.hasSuffix("Cancelled") { _ = machine.on(.cancel) }
            if self == .finished { _ = machine.on(.end(1, isFinal: true)) }
            return machine
        }
    }

    private static let inputs: [(String, StubMachine.Input)] = [
        ("start", .start(detaches: false)), ("detach", .start(detaches: true)), ("pause", .pause), ("resume", .resume),
        ("prioritise", .prioritise(5)), ("cancel", .cancel), ("drop", .drop),
        ("awaitFinish", .awaitFinish(StubWaiter(id: 7))), ("leave", .leave(9)), ("read", .read),
        ("head final", .head(1, isFinal: true)),
        ("head not final", .head(1, isFinal: false)), ("end final", .end(1, isFinal: true)),
        ("end not final", .end(1, isFinal: false)), ("update", .update), ("sent", .sent(StubAttempt(id: 2))),
        ("respond running", .respond("r", StubAttempt(id: 1), hasEnded: false)),
        ("respond ended", .respond("r", StubAttempt(id: 1), hasEnded: true)),
        ("respond made", .respond("r", nil, hasEnded: true)),
        ("fail", .fail(NetworkError(.internal, phase: .preparing, "failed"))), ("expire", .expire),
    ]

    /// Returns the effects and the new phase in words.
    private func words(_ machine: StubMachine, _ effects: StubMachine.Effects) -> String {
        var effects = effects
        var words: [String] = []
        if let (attempt, changes) = effects.changes {
            let names = [
                (StubMachine.Changes.pause, "pause"), (.resume, "resume"), (.prioritise, "prioritise"),
                (.stream, "stream"),
            ]
            for attempt in [attempt] + effects.others {
                words += names.filter { changes.contains($0.0) }.map { "\($0.1) \(attempt.id)" }
            }
        }
        if let attempt = effects.start { words.append("start \(attempt.id)") }
        if let attempt = effects.cancel { words += ([attempt] + effects.others).map { "cancel \($0.id)" } }
        if effects.runsChain { words.append("run chain") }
        if effects.cancelsChain { words.append("cancel chain") }
        if effects.finishes { words.append("report end") }
        effects.resumed.removeAll().forEach { words.append("resume \($0.id)") }
        if let waiter = effects.withdrawn { words.append("withdraw \(waiter.id)") }
        let phase =
            switch machine.phase {
            case .idle: "idle"
            case .folded: "folded"
            case .runningChain: "chain"
            case .responded: "responded"
            case .finished(.attempt): "finished with attempt"
            case .finished(.made): "finished with made"
            case .finished(.failed): "failed"
            case .finished(.cancelled): "cancelled"
            }
        return (words + ["→ \(phase)"]).joined(separator: ", ")
    }

    @Test func cancelledFileReaderDoesNotResumeTheOthers() {
        var machine = StubMachine(nil, startsChain: false, priority: 0)
        machine.claimFile()
        _ = machine.on(.start(detaches: false))
        for id: UInt64 in [7, 8, 9] { _ = machine.on(.awaitResponse(StubWaiter(id: id))) }
        #expect(words(machine, machine.on(.leave(8))) == "withdraw 8, → chain")
        #expect(words(machine, machine.on(.leave(8))) == "→ chain")
        #expect(words(machine, machine.on(.update)) == "resume 7, resume 9, → chain")
        #expect(!machine.isCancelled)
    }

    @Test func cancelledWaitKeepsATransferWithFileReaders() {
        var machine = StubMachine(nil, startsChain: false, priority: 0)
        machine.claimFile()
        machine.addFileReader()
        _ = machine.on(.start(detaches: false))
        _ = machine.on(.awaitFinish(StubWaiter(id: 7)))
        #expect(words(machine, machine.on(.leave(7))) == "withdraw 7, → chain")
        machine.removeFileReader()
        _ = machine.on(.awaitFinish(StubWaiter(id: 8)))
        #expect(words(machine, machine.on(.leave(8))) == "cancel chain, → chain")
    }

    @Test func commandsReachEveryAttemptThatHasNotEnded() {
        var machine = Scene.chainWithTwoAttempts.machine
        _ = machine.on(.respond("r", StubAttempt(id: 1), hasEnded: false))
        #expect(words(machine, machine.on(.pause)) == "pause 1, pause 3, → responded")
        _ = machine.on(.end(3, isFinal: true))
        #expect(words(machine, machine.on(.resume)) == "resume 1, → responded")
        machine = Scene.chainWithTwoAttempts.machine
        _ = machine.on(.end(1, isFinal: true))
        #expect(words(machine, machine.on(.pause)) == "pause 3, → chain")
        _ = machine.on(.end(3, isFinal: true))
        _ = machine.on(.sent(StubAttempt(id: 4)))
        #expect(words(machine, machine.on(.cancel)) == "cancel 4, cancel chain, → chain")
        machine = Scene.responded.machine
        #expect(words(machine, machine.on(.sent(StubAttempt(id: 5)))) == "start 5, → responded")
        #expect(words(machine, machine.on(.pause)) == "pause 1, pause 5, → responded")
        var attempts: [UInt64] = []
        machine.forEachAttempt { attempts.append($0.id) }
        #expect(attempts == [1, 5])
        _ = machine.on(.cancel)
        #expect(words(machine, machine.on(.sent(StubAttempt(id: 6)))) == "pause 6, start 6, cancel 6, → responded")
    }

    @Test func simultaneousAttemptsHaveDifferentNumbers() {
        var machine = StubMachine(nil, startsChain: false, priority: 0)
        _ = machine.on(.start(detaches: false))
        #expect([machine.reserveOrdinal(), machine.reserveOrdinal()] == [1, 2])
        machine.releaseOrdinal(1)
        #expect(machine.reserveOrdinal() == 3)
        machine.releaseOrdinal(3)
        _ = machine.on(.sent(StubAttempt(id: 1)))
        #expect(machine.reserveOrdinal() == 3)
    }

    /// Every input in every state; rows of the table that are missing have no effect and keep the phase.
    @Test func everyStateHandlesEveryInput() {
        var rows: [String] = []
        for scene in Scene.allCases {
            for (name, input) in RunMachineTests.inputs {
                var machine = scene.machine
                let before = words(machine, StubMachine.Effects())
                let effects = machine.on(input)
                let after = words(machine, effects)
                if after != before { rows.append("\(scene.rawValue) · \(name): \(after)") }
            }
        }
        let expected = RunTable.rows.split(separator: "\n").map(String.init)
        #expect(rows.filter { !expected.contains($0) } == [], "rows that the table does not have")
        #expect(expected.filter { !rows.contains($0) } == [], "rows that only the table has")
    }
}
