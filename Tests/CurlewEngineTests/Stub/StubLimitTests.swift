// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import Testing

@testable import CurlewEngine

/// The time limits of transfers over a stub, in the time of a stub.
@Suite("Limits over a stub", .timeLimit(.minutes(5)))
struct StubLimitTests {
    private static let second: UInt64 = 1_000_000_000
    private static let long = TransferPlan.Upload.bytes([UInt8](repeating: 1, count: 100_000))

    typealias Limit = DeadlineTests.Limit

    struct Case: Sendable, CustomStringConvertible {
        var limit: Limit
        var steps: [StubTransport.Step]
        var phase: EngineFailure.Phase
        var sends = false
        var isQueued = false
        var description: String { "\(limit) while \(phase)" }
    }

    private static let received: [StubTransport.Step] = [.connect, .head(200), .body(10), .stall]

    static let cases = [
        Case(limit: .connect, steps: [.stall], phase: .connecting),
        Case(limit: .head, steps: [.connect, .stall], phase: .waiting),
        Case(limit: .head, steps: [.connect, .informational(103), .stall], phase: .waiting),
        Case(limit: .head, steps: [.connect, .take(.max), .stall], phase: .waiting, sends: true),
        Case(limit: .idle, steps: [.connect, .stall], phase: .waiting),
        Case(limit: .idle, steps: received, phase: .receiving),
        Case(limit: .idle, steps: [.connect, .take(1000), .stall], phase: .sending, sends: true),
        Case(limit: .total, steps: [.stall], phase: .connecting),
        Case(limit: .total, steps: [.connect, .take(1000), .stall], phase: .sending, sends: true),
        Case(limit: .total, steps: received, phase: .receiving),
        Case(limit: .total, steps: [], phase: .queued, isQueued: true),
        Case(limit: .queue, steps: [], phase: .queued, isQueued: true),
    ]

    private func limit(of failure: EngineFailure?) -> Limit? {
        switch failure?.reason {
        case .timedOut(.connect, _): .connect
        case .timedOut(.head, _): .head
        case .timedOut(.idle, _): .idle
        case .timedOut(.total, _): .total
        case .queueTimedOut: .queue
        default: nil
        }
    }

    @Test(arguments: cases) func limitEndsATransferAtItsTime(_ expected: Case) async throws {
        let bench = StubBench(slots: 1)
        let first = expected.isQueued ? bench.transfer([.stall]) : nil
        first?.start()
        let transfer = bench.transfer(
            expected.steps, upload: expected.sends ? Self.long : .none,
            limits: DeadlineTests.limits(expected.limit, of: 60 * Self.second))
        transfer.start()
        await bench.settle()
        // A connecting transfer has a little longer, so that libcurl finds the timeout first.
        let length = 60 * Self.second + (expected.limit == .connect ? Deadlines.grace : 0)
        await bench.advance(by: length - 1)
        #expect(!transfer.hasFinished)
        await bench.advance(by: 1)
        let failure = await transfer.waitForEndUncancelled().failure
        #expect(limit(of: failure) == expected.limit && failure?.phase == expected.phase, "\(failure as Any)")
        first?.cancel()
    }

    /// Only the total limit counts while the user pauses the transfer.
    @Test(arguments: [Limit.head, .idle, .total]) func pausedTransferHasOnlyItsTotalLimit(_ limit: Limit) async throws {
        let bench = StubBench()
        let transfer = bench.transfer(
            [.connect, .stall, .head(200), .body(5), .end], limits: DeadlineTests.limits(limit, of: 60 * Self.second))
        transfer.start()
        await bench.settle()
        transfer.pause()
        await bench.settle()
        await bench.advance(by: 3600 * Self.second)
        guard limit != .total else {
            #expect(self.limit(of: await transfer.waitForEndUncancelled().failure) == .total)
            return
        }
        #expect(!transfer.hasFinished)
        transfer.resume()
        await bench.settle()
        await bench.advance(by: 59 * Self.second)
        #expect(!transfer.hasFinished, "the limit starts again")
        await bench.proceed(transfer)
        _ = await transfer.waitForEndUncancelled()
        #expect(transfer.takeBodyChunk()?.count == 5)
    }

    /// A loop ends although the report of a progress is not due when its last transfer ends.
    @Test func deferredProgressDoesNotKeepTheLoop() async {
        weak var loop: EventLoop?
        do {
            let bench = StubBench()
            loop = bench.loop
            let transfer = bench.transfer([.connect, .head(200), .body(5), .stall, .body(5), .end])
            transfer.reportProgress()
            transfer.start()
            await bench.settle()
            await bench.proceed(transfer)
            #expect(await transfer.waitForEndUncancelled().failure == nil)
        }
        while loop != nil { await Task.yield() }
    }

    @Test func slowReaderCausesNoIdleTimeout() async throws {
        var configuration = EngineConfiguration()
        configuration.highWater = 1000
        configuration.lowWater = 500
        let bench = StubBench(configuration)
        let transfer = bench.transfer(
            [.connect, .head(200), .body(2000), .body(2000), .end], limits: DeadlineTests.limits(.idle, of: Self.second)
        )
        transfer.claimStream()
        transfer.start()
        await bench.settle()
        await bench.advance(by: 3600 * Self.second)
        #expect(!transfer.hasFinished)
        var count = 0
        while true {
            let step = await transfer.next(withProgress: false)
            if case .bytes(let chunk) = step { count += chunk.count }
            if case .end(let outcome) = step {
                #expect(outcome.failure == nil)
                break
            }
        }
        #expect(count == 4000)
    }

    @Test func arrivingBytesRestartTheIdleLimit() async throws {
        let bench = StubBench()
        let drip: [StubTransport.Step] = [.body(1), .stall]
        let transfer = bench.transfer(
            [.connect, .head(200)] + drip + drip + drip + drip + drip + [.end],
            limits: DeadlineTests.limits(.idle, of: 60 * Self.second))
        transfer.start()
        await bench.settle()
        for _ in 0..<5 {
            await bench.advance(by: 59 * Self.second)
            #expect(!transfer.hasFinished)
            await bench.proceed(transfer)
        }
        _ = await transfer.waitForEndUncancelled()
        #expect(transfer.takeBodyChunk()?.count == 5)
    }

    @Test func connectAndHeadLimitsExcludeTheQueue() async throws {
        let bench = StubBench(slots: 1)
        let first = bench.transfer([.stall, .connect, .head(200), .end])
        var limits = DeadlineTests.limits(.connect, of: 60 * Self.second)
        limits.head = 60 * Self.second
        let queued = bench.transfer([.connect, .head(200), .body(5), .end], limits: limits)
        first.start()
        queued.start()
        await bench.settle()
        await bench.advance(by: 3600 * Self.second)
        #expect(queued.snapshot.state == .queued)
        await bench.proceed(first)
        #expect(await queued.waitForEndUncancelled().failure == nil)
    }
}
