// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import CurlewTesting
import Glibc
import Testing

@testable import CurlewEngine

/// `EngineTransfer.headed()`, which waits for the response head.
@Suite("Waiting for the response head", .timeLimit(.minutes(5)))
struct WaitForHeadTests {
    private enum Found: Equatable { case head(Int), cancelled, failed, ended, superseded }

    private func found(_ headed: EngineTransfer.Headed) -> Found {
        switch headed {
        case .head(let head): .head(head.status)
        case .ended(let outcome): outcome.failure.map { $0.isCancellation ? .cancelled : .failed } ?? .ended
        case .superseded: .superseded
        }
    }

    private func stalling(at point: MockResponse.Point, _ gate: Gate, _ bench: EngineBench) -> EngineTransfer {
        bench.server.on("GET", "/", .text("hello").informational(103).fault(.stall(gate), at: point))
        return bench.transfer("/")
    }

    @Test func headIsReturnedBeforeTheBodyArrives() async throws {
        let bench = try EngineBench()
        let gate = Gate()
        let transfer = stalling(at: .body(2), gate, bench)
        async let early = transfer.headed()
        transfer.start()
        #expect(found(await early) == .head(200))
        #expect(!transfer.hasFinished)
        #expect(found(await transfer.headed()) == .head(200), "a second call returns at once")
        gate.open()
        #expect(await transfer.ended().body?.count == 5)
        #expect(transfer.hasFinished)
        #expect(found(await transfer.headed()) == .head(200), "a call after the end returns the head")
    }

    @Test func informationalHeadIsSkipped() async throws {
        let bench = try EngineBench()
        let gate = Gate()
        let transfer = stalling(at: .head(0), gate, bench)
        let diary = EventRecorder()
        transfer.watch(diary)
        let early = Task { [found] in found(await transfer.headed()) }
        transfer.start()
        await diary.wait(for: "informational 103")
        await bench.share.loop.round()
        gate.open()
        #expect(await early.value == .head(200))
    }

    @Test func waitingForTheHeadKeepsAllStepsForTheReader() async throws {
        let bench = try EngineBench()
        let gate = Gate()
        let transfer = stalling(at: .body(2), gate, bench)
        transfer.claimStream()
        let reader = Task {
            var steps: [String] = []
            while true {
                switch await transfer.next(withProgress: false) {
                case .informational: steps.append("informational")
                case .head: steps.append("head")
                case .bytes(let chunk): steps.append(contentsOf: [String](repeating: "byte", count: chunk.count))
                case .progress, .trailers: break
                case .end(let outcome): return steps + [outcome.failure == nil ? "end" : "failure"]
                }
            }
        }
        let waiters = (0..<20).map { _ in Task { [found] in found(await transfer.headed()) } }
        transfer.start()
        for waiter in waiters { #expect(await waiter.value == .head(200)) }
        gate.open()
        #expect(await reader.value == ["informational", "head", "byte", "byte", "byte", "byte", "byte", "end"])
    }

    @Test func transferWithoutAHeadReturnsItsFailure() async throws {
        let bench = try EngineBench()
        let port = try #require(ClosedPort())
        let dead = bench.transfer("/") { plan in
            plan.lead(to: "http://127.0.0.1:\(port.number)/", port: port.number)
        }
        async let early = dead.headed()
        dead.start()
        #expect(found(await early) == .failed)
        #expect(found(await dead.headed()) == .failed)
        bench.server.on("GET", "/cut", .raw("HTTP/1.1 200 OK\r\nX: ").fault(.close, at: .end))
        let cut = bench.transfer("/cut")
        cut.start()
        #expect(found(await cut.headed()) == .failed)
    }

    /// The loop is blocked until the whole response has arrived.
    @Test func headAndEndInOneLoopTurnReachAllWaiters() async throws {
        let bench = try EngineBench()
        for (answer, expected) in [
            (MockResponse.text("hello"), Found.head(200)),
            (.text("hello").fault(.close, at: .body(2)), .head(200)),
            (.raw("nonsense\r\n\r\n").fault(.close, at: .end), .failed),
        ] {
            // A first transfer measures how many bytes the server sends.
            let start = bench.server.bytesSent
            bench.server.on("GET", "/", answer)
            let sample = bench.transfer("/")
            sample.start()
            _ = await sample.ended()
            let all = bench.server.bytesSent - start
            let gate = Gate()
            bench.server.on("GET", "/", answer.fault(.stall(gate), at: .start))
            let transfer = bench.transfer("/")
            let waiters = (0..<5).map { _ in Task.immediate { [found] in found(await transfer.headed()) } }
            transfer.start()
            await gate.waitUntilReached()
            let before = bench.server.bytesSent
            bench.share.loop.call { _ in
                gate.open()
                while bench.server.bytesSent < before + all { sched_yield() }
            }
            for waiter in waiters { #expect(await waiter.value == expected) }
            #expect(found(await transfer.headed()) == expected)
        }
    }

    // MARK: Cancellation

    @Test func taskCancellationCancelsTheTransferAndAllWaiters() async throws {
        let bench = try EngineBench()
        let gate = Gate()
        let transfer = stalling(at: .head(0), gate, bench)
        transfer.start()
        await gate.waitUntilReached()
        let other = Task.immediate { [found] in found(await transfer.headed()) }
        let waiter = Task.immediate { [found] in found(await transfer.headed()) }
        waiter.cancel()
        #expect(await waiter.value == .cancelled)
        #expect(await other.value == .cancelled, "other waiters see the cancellation")
        #expect(transfer.failure?.isCancellation == true)
        gate.open()
    }

    @Test func alreadyCancelledTaskCancelsTheTransfer() async throws {
        let bench = try EngineBench()
        let gate = Gate()
        let transfer = stalling(at: .body(2), gate, bench)
        let idle = bench.transfer("/")
        transfer.start()
        #expect(found(await transfer.headed()) == .head(200))
        let late = Task { [found] in
            withUnsafeCurrentTask { $0?.cancel() }
            return [found(await transfer.headed()), found(await idle.headed())]
        }
        #expect(await late.value == [.cancelled, .cancelled], "cancelled even though the head has arrived")
        #expect(transfer.failure?.isCancellation == true)
        #expect(idle.failure?.phase == .preparing)
        gate.open()
        bench.server.on("GET", "/", .text("hello"))
        let done = bench.transfer("/")
        done.start()
        _ = await done.ended()
        let after = Task { [found] in
            withUnsafeCurrentTask { $0?.cancel() }
            return found(await done.headed())
        }
        #expect(await after.value == .head(200), "the transfer has ended, so cancellation has no effect")
    }

    @Test func concurrentCancellationResumesEveryWaiterOnce() async throws {
        let bench = try EngineBench()
        bench.server.on("GET", "/", .text("hello"))
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<200 {
                let transfer = bench.transfer("/")
                let tasks = (0..<3).map { _ in Task { [found] in found(await transfer.headed()) } }
                group.addTask {
                    transfer.start()
                    if number.isMultiple(of: 2) { transfer.cancel() } else { tasks[1].cancel() }
                    for task in tasks {
                        let found = await task.value
                        #expect(found == .head(200) || found == .cancelled)
                    }
                    let isCancelled = await transfer.ended().failure?.isCancellation
                    if isCancelled != true { #expect(await tasks[1].value == .head(200)) }
                }
            }
        }
    }
}
