// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewTesting
import Testing

@testable import CurlewEngine

@Suite("EngineTransfer", .timeLimit(.minutes(5)))
struct EngineTransferTests {
    @Test func countersNeverPrecedeTheStartTime() async throws {
        let bench = try EngineBench()
        let gate = Gate()
        bench.server.on("GET", "/", .text("hello").fault(.stall(gate), at: .body(2)))
        let transfer = bench.transfer("/")
        transfer.start()
        await gate.waitUntilReached()
        let counters = Latch<Counters>()
        bench.share.loop.call { _ in
            // A turn that began before the transfer started publishes an earlier time.
            transfer.publish(transfer.startedAt - 5)
            counters.set(transfer.snapshot.counters)
        }
        let seen = await counters.value
        #expect(seen.startedAt > 0)
        #expect(seen.at >= seen.startedAt)
        gate.open()
        #expect(await transfer.waitForEndUncancelled().failure == nil)
    }

    /// glibc keeps freed blocks of at most this size in a cache of each thread, where they cost a fraction of others.
    @Test func bothHalvesFitTheAllocatorsCache() { #expect(EngineTransfer.blockSize <= 1032) }

    @Test func transferIDsIncrease() async throws {
        let bench = try EngineBench()
        let (first, second) = (bench.transfer("/"), bench.transfer("/"))
        #expect(second.id > first.id)
    }

    @Test func invalidURLFailsBeforeConnecting() async throws {
        let bench = try EngineBench()
        var plan = bench.plan("/")
        plan.lead(to: "http://a b/")
        let transfer = EngineTransfer(plan, on: bench.share.loop)
        transfer.start()
        let failure = await transfer.waitForEndUncancelled().failure
        guard case .curl(let code, _) = failure?.reason else {
            Issue.record("ended with \(String(describing: failure))")
            return
        }
        #expect(code == 3)
        #expect(failure?.phase == .preparing)
        #expect(bench.server.connectionCount == 0)
    }

    @Test func refuseHasNoEffectAfterTheStart() async throws {
        let bench = try EngineBench()
        bench.server.on("GET", "/", .text("hello"))
        let refused = bench.transfer("/")
        refused.refuse(EngineFailure(.noRoots(places: []), phase: .securing))
        refused.start()
        #expect(refused.outcome?.failure?.phase == .securing)
        let started = bench.transfer("/")
        started.start()
        started.refuse(EngineFailure(.closed, phase: .securing))
        #expect(await started.waitForEndUncancelled().failure == nil)
        started.refuse(EngineFailure(.closed, phase: .securing))
        #expect(started.outcome?.failure == nil)
    }

    @Test func stoppedLoopRefusesTransfers() async throws {
        let bench = try EngineBench()
        bench.share.loop.call { _ in }
        bench.share.loop.post(.stop)
        await bench.share.loop.waitUntilExited()
        let transfer = bench.transfer("/")
        transfer.start()
        guard case .closed = transfer.outcome?.failure?.reason else {
            Issue.record("ended with \(String(describing: transfer.outcome))")
            return
        }
    }

    @Test func endResumesAllWaiters() async throws {
        let bench = try EngineBench()
        let gate = Gate()
        bench.server.on("GET", "/", .text("hello").fault(.stall(gate), at: .body(2)))
        let transfer = bench.transfer("/")
        transfer.start()
        await gate.waitUntilReached()
        let ended = await withTaskGroup(of: Bool.self) { group in
            for _ in 0..<20 {
                group.addTask {
                    guard let outcome = await transfer.waitForEnd() else { return false }
                    return outcome.failure == nil
                }
                group.addTask {
                    let outcome = await transfer.waitForEndUncancelled()
                    let counters = transfer.snapshot.counters
                    return outcome.failure == nil && counters.isFinished && counters.received == 5
                }
            }
            gate.open()
            return await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
        }
        #expect(ended == 40)
    }

    @Test func cancelledWaitForTheEndKeepsTheTransferRunning() async throws {
        let bench = try EngineBench()
        let gate = Gate()
        bench.server.on("GET", "/", .text("hello").fault(.stall(gate), at: .body(2)))
        let transfer = bench.transfer("/")
        transfer.start()
        await gate.waitUntilReached()
        let impatient = Task.immediate { await transfer.waitForEndUncancelled().failure == nil }
        let patient = Task.immediate { await transfer.waitForEnd()?.failure == nil }
        impatient.cancel()
        await bench.share.loop.round()
        #expect(!transfer.hasFinished)
        gate.open()
        #expect(await impatient.value)
        #expect(await patient.value)
        #expect(transfer.takeBodyChunk()?.count == 5)
        #expect(transfer.takeBodyChunk() == nil)
    }

    /// Progress within the report interval is reported when the interval ends, even if no more bytes arrive.
    @Test func lastProgressIsReportedToAReaderThatWasBusy() async throws {
        var configuration = EngineConfiguration()
        configuration.progressInterval = 300_000_000
        let bench = try EngineBench(configuration)
        let (start, rest) = (Gate(), Gate())
        let response = MockResponse.text("hello world").fault(.stall(start), at: .body(0)).fault(
            .stall(rest), at: .body(5))
        bench.server.on("GET", "/", response)
        let transfer = bench.transfer("/")
        transfer.claimStream()
        transfer.start()
        guard case .head = await transfer.next(withProgress: true) else { return _ = Issue.record("no head") }
        guard case .progress = await transfer.next(withProgress: true) else { return _ = Issue.record("no progress") }
        // The reader is busy from here on.
        start.open()
        while transfer.snapshot.counters.received < 5 { await bench.share.loop.round() }
        var reported: Int64 = 0
        while reported < 5 {
            if case .progress(let counters) = await transfer.next(withProgress: true) { reported = counters.received }
        }
        #expect(!transfer.hasFinished)
        rest.open()
        #expect(await transfer.waitForEndUncancelled().failure == nil)
    }

    /// The loop interrupts a transfer that receives many bytes after each turn, and no byte is lost.
    @Test(arguments: [1, 16 << 10, 100_000, 1 << 20]) func turnLimitsOfEverySizeLoseNoBytes(turn: Int) async throws {
        var configuration = EngineConfiguration()
        configuration.turn = turn
        let bench = try EngineBench(configuration)
        let body = PatternBody(seed: 7, length: 6 << 20)
        bench.server.on("GET", "/", .pattern(body))
        let transfer = bench.transfer("/")
        transfer.claimStream()
        transfer.start()
        var digest = SHA256Stream()
        reading: while true {
            switch await transfer.next(withProgress: false) {
            case .bytes(let chunk): digest.update(chunk)
            case .end(let outcome):
                #expect(outcome.failure == nil)
                break reading
            default: break
            }
        }
        #expect(digest.hex == body.sha256)
    }
}
