// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewTesting
import Testing

@testable import CurlewEngine

/// `EngineTransfer.waitForEnd(orHead:)`, which waits for the end or for a head that is not final.
@Suite("Waiting for the end", .timeLimit(.minutes(5)))
struct AnswerTests {
    private enum Found: Equatable { case notFinal, cancelled, failed, ended }

    private func found(_ outcome: EngineTransfer.Outcome?) -> Found {
        guard let outcome else { return .notFinal }
        return outcome.failure.map { $0.isCancellation ? .cancelled : .failed } ?? .ended
    }

    private func stalling(
        at point: MockResponse.Point, _ gate: Gate, _ bench: EngineBench, _ interest: ChainInterest = ChainInterest()
    ) -> EngineTransfer {
        bench.server.on("GET", "/", .text("hello").informational(103).fault(.stall(gate), at: point))
        return bench.transfer("/") { $0.interest = interest }
    }

    @Test func waitEndsAtAHeadThatIsNotFinal() async throws {
        let bench = try EngineBench()
        let gate = Gate()
        let transfer = stalling(at: .body(2), gate, bench, ChainInterest(statuses: [200]))
        let early = Task.immediate { [found] in found(await transfer.waitForEnd(orHead: true)) }
        let patient = Task.immediate { [found] in found(await transfer.waitForEnd()) }
        transfer.start()
        #expect(await early.value == .notFinal)
        #expect(found(await transfer.waitForEnd(orHead: true)) == .notFinal, "a second call returns at once")
        #expect(!transfer.hasFinished)
        gate.open()
        #expect(await patient.value == .ended)
        #expect(transfer.takeBodyChunk()?.count == 5)
        #expect(found(await transfer.waitForEnd(orHead: true)) == .ended, "a call after the end returns the outcome")
    }

    @Test func waitDoesNotEndAtAFinalHead() async throws {
        let bench = try EngineBench()
        let gate = Gate()
        let transfer = stalling(at: .body(2), gate, bench, ChainInterest(statuses: [503]))
        let waiter = Task.immediate { [found] in found(await transfer.waitForEnd(orHead: true)) }
        let sink = SinkRecorder(transfer)
        transfer.start()
        if case .ended = await sink.headed() { Issue.record("there is no head") }
        gate.open()
        #expect(await waiter.value == .ended)
        #expect(transfer.takeBodyChunk()?.count == 5)
    }

    @Test func waitEndsWithATransferThatHasNoHead() async throws {
        let bench = try EngineBench()
        bench.server.on("GET", "/", .raw("HTTP/1.1 200 OK\r\nX: ").fault(.close, at: .end))
        let transfer = bench.transfer("/") { $0.interest = ChainInterest(statuses: [200], failures: true) }
        let waiter = Task.immediate { [found] in found(await transfer.waitForEnd(orHead: true)) }
        transfer.start()
        #expect(await waiter.value == .failed)
    }

    @Test(arguments: [false, true]) func cancelledTaskCancelsTheTransferAndGetsItsEnd(orHead: Bool) async throws {
        let bench = try EngineBench()
        let gate = Gate()
        let transfer = stalling(at: .head(0), gate, bench)
        transfer.start()
        await gate.waitUntilReached()
        let other = Task.immediate { [found] in found(await transfer.waitForEnd()) }
        let waiter = Task.immediate { [found] in found(await transfer.waitForEnd(orHead: orHead)) }
        waiter.cancel()
        #expect(await waiter.value == .cancelled)
        #expect(await other.value == .cancelled, "other waiters see the cancellation")
        #expect(transfer.failure?.isCancellation == true)
        gate.open()
    }

    @Test(arguments: [false, true], [[], [200]] as [[Int]])
    func alreadyCancelledTaskCancelsTheTransfer(orHead: Bool, statuses: [Int]) async throws {
        let bench = try EngineBench()
        let gate = Gate()
        let transfer = stalling(at: .body(2), gate, bench, ChainInterest(statuses: statuses))
        let idle = bench.transfer("/")
        let sink = SinkRecorder(transfer)
        transfer.start()
        if case .ended = await sink.headed() { Issue.record("there is no head") }
        let late = Task { [found] in
            withUnsafeCurrentTask { $0?.cancel() }
            return [found(await transfer.waitForEnd(orHead: orHead)), found(await idle.waitForEnd(orHead: orHead))]
        }
        #expect(await late.value == [.cancelled, .cancelled], "cancelled even though the head has arrived")
        #expect(transfer.failure?.isCancellation == true)
        #expect(idle.failure?.phase == .preparing)
        gate.open()
        bench.server.on("GET", "/", .text("hello"))
        let done = bench.transfer("/") { $0.interest = ChainInterest(statuses: statuses) }
        done.start()
        _ = await done.waitForEndUncancelled()
        let after = Task { [found] in
            withUnsafeCurrentTask { $0?.cancel() }
            return found(await done.waitForEnd(orHead: orHead))
        }
        #expect(await after.value == .ended, "the transfer has ended, so cancellation has no effect")
    }

    @Test func concurrentCancellationResumesEveryWaiterOnce() async throws {
        let bench = try EngineBench()
        bench.server.on("GET", "/", .text("hello"))
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<300 {
                let isOfInterest = number.isMultiple(of: 2)
                let transfer = bench.transfer("/") { $0.interest = ChainInterest(statuses: isOfInterest ? [200] : []) }
                let tasks = (0..<3).map { index in
                    Task { [found] in found(await transfer.waitForEnd(orHead: index == 0)) }
                }
                group.addTask {
                    transfer.start()
                    if number.isMultiple(of: 3) { transfer.cancel() } else { tasks[number % 3 - 1].cancel() }
                    var results: [Found] = []
                    for task in tasks { results.append(await task.value) }
                    let end: Found = await transfer.waitForEndUncancelled().failure == nil ? .ended : .cancelled
                    #expect(results[1...] == [end, end])
                    #expect(results[0] == end || isOfInterest && results[0] == .notFinal)
                    if transfer.failure != nil { #expect(transfer.failure?.isCancellation == true) }
                }
            }
        }
    }
}
