// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import CurlewTesting
import Testing

@testable import CurlewEngine

/// Holds, which keep a loop from being idle and from closing.
@Suite("Holds", .timeLimit(.minutes(5)))
struct HoldTests {
    private static let second: UInt64 = 1_000_000_000

    /// A flag that a test sets before the event that its waiting tasks must wait for.
    private final class Flag: Sendable {
        private let state = Lock(false)
        var isSet: Bool { state.withLock { $0 } }
        func set() { state.withLock { $0 = true } }
    }

    /// The executor of the waiting tasks.
    private let lane = Lane()

    /// Starts a task that waits for the loop to be idle and returns the result and whether the flag was set by then.
    private func idle(_ loop: EventLoop, after flag: Flag) async -> Task<[Bool], Never> {
        let task = Task(executorPreference: lane) { [await loop.idle(), flag.isSet] }
        await lane.drain()
        return task
    }

    private func closing(_ loop: EventLoop, within limit: UInt64?, after flag: Flag) async -> Task<Bool, Never> {
        let task = Task(executorPreference: lane) {
            await loop.shutDown(within: limit)
            return flag.isSet
        }
        await lane.drain()
        return task
    }

    private func isClosed(_ transfer: EngineTransfer) async -> Bool {
        transfer.start()
        if case .closed = await transfer.waitForEndUncancelled().failure?.reason { return true }
        return false
    }

    /// Returns when each waiting task that was resumed too early has read its flag and so fails its test.
    private func runPendingTasks(_ loop: EventLoop) async {
        // A task that hops to the loop's thread in between needs another round.
        for _ in 0..<3 {
            await loop.round()
            await lane.drain()
        }
    }

    // MARK: Idle

    @Test func loopWithoutAThreadIsIdle() async throws {
        let loop = EventLoop(configuration: EngineConfiguration())
        #expect(await loop.idle())
        var hold = loop.hold()
        #expect(hold != nil)
        hold = nil
        #expect(await loop.idle())
        #expect(!loop.isRunning)
        let bench = try EngineBench()
        bench.share.loop.call { _ in }
        #expect(await bench.share.loop.idle())
        let held = bench.share.loop.hold()
        #expect(held != nil)
        bench.share.loop.post(.stop)
        await bench.share.loop.waitUntilExited()
        #expect(await bench.share.loop.idle())
        withExtendedLifetime(held) {}
    }

    @Test func idleWaitsForRunningQueuedAndPausedTransfers() async throws {
        var configuration = EngineConfiguration()
        configuration.connectionsPerHost = 1
        let bench = try EngineBench(configuration)
        let gate = Gate()
        bench.server.on("GET", "/", .text("hello").fault(.stall(gate), at: .body(2)))
        let transfers = (0..<3).map { _ in bench.transfer("/") }
        transfers[2].pause()
        for transfer in transfers { transfer.start() }
        let flag = Flag()
        var waiters: [Task<[Bool], Never>] = []
        for _ in 0..<3 { waiters.append(await idle(bench.share.loop, after: flag)) }
        await gate.waitUntilReached()
        gate.open()
        _ = await transfers[1].waitForEndUncancelled()
        await runPendingTasks(bench.share.loop)
        flag.set()
        transfers[2].resume()
        for waiter in waiters { #expect(await waiter.value == [true, true]) }
        #expect(transfers.allSatisfy { $0.hasFinished })
        #expect(await bench.share.loop.idle())
    }

    @Test func idleWaitsForHolds() async throws {
        let share = LoopShare(EventLoop(configuration: EngineConfiguration()))
        for _ in 0..<3 {
            let flag = Flag()
            var (first, second) = (share.loop.hold(), share.loop.hold())
            #expect(first != nil && second != nil)
            let waiter = await idle(share.loop, after: flag)
            await runPendingTasks(share.loop)
            first = nil
            await runPendingTasks(share.loop)
            flag.set()
            second = nil
            #expect(await waiter.value == [true, true])
        }
    }

    @Test func cancellationEndsIdleAtOnce() async throws {
        let share = LoopShare(EventLoop(configuration: EngineConfiguration()))
        var hold = share.loop.hold()
        #expect(hold != nil)
        let flag = Flag()
        let (impatient, patient) = await (idle(share.loop, after: flag), idle(share.loop, after: flag))
        impatient.cancel()
        #expect(await impatient.value == [false, false])
        let late = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return await share.loop.idle()
        }
        #expect(await late.value == false)
        flag.set()
        hold = nil
        #expect(await patient.value == [true, true])
    }

    @Test func endOfTheThreadResumesAllWaiters() async throws {
        let loop = EventLoop(configuration: EngineConfiguration())
        var hold = loop.hold()
        #expect(hold != nil)
        let flag = Flag()
        let waiters = await [idle(loop, after: flag), idle(loop, after: flag)]
        let closer = await closing(loop, within: nil, after: flag)
        await runPendingTasks(loop)
        flag.set()
        loop.post(.stop)
        for waiter in waiters { #expect(await waiter.value == [true, true]) }
        #expect(await closer.value)
        await loop.waitUntilExited()
        hold = nil
    }

    @Test func loopIsNotIdleBetweenTransfersOfAHold() async throws {
        let bench = try EngineBench()
        let loop = bench.share.loop
        bench.server.on("GET", "/", .text("hello"))
        loop.call { _ in }
        for _ in 0..<100 {
            let hold = Lock(loop.hold())
            #expect(hold.withLock { $0 != nil })
            let transfers = (0..<3).map { _ in bench.transfer("/") }
            let waiter = Task.immediate { await loop.idle() && transfers.allSatisfy(\.hasFinished) }
            let worker = Task {
                for transfer in transfers.dropLast() {
                    transfer.start()
                    _ = await transfer.waitForEndUncancelled()
                }
                // A transfer started before the hold is released keeps the loop busy.
                transfers[2].start()
                hold.withLock { $0 = nil }
            }
            #expect(await waiter.value)
            await worker.value
        }
    }

    // MARK: Redirects

    @Test(arguments: [301, 302, 303, 307, 308])
    func redirectHoldsTheLoopOnce(status: Int) async throws {
        let bench = try EngineBench()
        let loop = bench.share.loop
        bench.server.on("GET", "/", .redirect(to: "/next", status: status))
        let flag = Flag()
        let transfer = bench.transfer("/") { $0.interest = .anyRedirect }
        transfer.start()
        _ = await transfer.waitForEndUncancelled()
        let waiter = await idle(loop, after: flag)
        await runPendingTasks(loop)
        var taken: [LoopHold] = await withTaskGroup(of: LoopHold?.self) { group in
            for _ in 0..<10 { group.addTask { transfer.takeHold() } }
            var taken: [LoopHold] = []
            for await hold in group { if let hold { taken.append(hold) } }
            return taken
        }
        #expect(taken.count == 1)
        #expect(transfer.takeHold() == nil)
        await runPendingTasks(loop)
        flag.set()
        taken = []
        #expect(await waiter.value == [true, true])
        #expect(loop.holds.withLock { $0.count } == 0)
    }

    @Test func holdIsReleasedWithItsTransfer() async throws {
        let bench = try EngineBench()
        bench.server.on("GET", "/", .redirect(to: "/next"))
        let flag = Flag()
        var transfer: EngineTransfer? = bench.transfer("/") { $0.interest = .anyRedirect }
        transfer?.start()
        _ = await transfer?.waitForEndUncancelled()
        let waiter = await idle(bench.share.loop, after: flag)
        await runPendingTasks(bench.share.loop)
        flag.set()
        transfer = nil
        #expect(await waiter.value == [true, true])
        #expect(bench.share.loop.holds.withLock { $0.count } == 0)
    }

    @Test func redirectWithInterruptedBodyHoldsTheLoop() async throws {
        let bench = try EngineBench()
        let place = [(name: "Location", value: "/next")]
        bench.server.on("GET", "/", .status(302, place, body: [1, 2, 3]).fault(.close, at: .body(1)))
        let transfer = bench.transfer("/") { $0.interest = .anyRedirect }
        transfer.start()
        #expect(await transfer.waitForEndUncancelled().failure != nil)
        #expect(transfer.takeHold() != nil)
    }

    /// A caller that waits for the end or a redirect returns at the head of a redirect and may discard the body.
    @Test(arguments: [false, true]) func waitForTheEndReturnsAtTheHeadOfARedirect(_ waitsBefore: Bool) async throws {
        let bench = try EngineBench()
        let gate = Gate()
        let body = [UInt8](repeating: 1, count: 1000)
        bench.server.on(
            "GET", "/", .status(302, [("Location", "/next")], body: body).fault(.stall(gate), at: .body(10)))
        let transfer = bench.transfer("/") { $0.interest = .anyRedirect }
        let early = Task.immediate { waitsBefore ? await transfer.waitForEnd(orHead: true) == nil : true }
        transfer.start()
        if case .ended = await SinkRecorder(transfer).headed() { Issue.record("there is no head") }
        #expect(await transfer.waitForEnd(orHead: true) == nil)
        #expect(!transfer.hasFinished)
        #expect(await early.value)
        transfer.discardBody()
        let outcome = await transfer.waitForEndUncancelled()
        #expect(outcome.failure == nil && outcome.head?.status == 302 && outcome.metrics.responseHeadBytes > 0)
        #expect(transfer.takeHold() != nil)
        await bench.server.waitUntil(openConnections: 0)
    }

    @Test func discardBodyCancelsATransferWithoutAHead() async throws {
        let bench = try EngineBench()
        let gate = Gate()
        bench.server.on("GET", "/", .redirect(to: "/next").fault(.stall(gate), at: .start))
        let transfer = bench.transfer("/") { $0.interest = .anyRedirect }
        transfer.start()
        await gate.waitUntilReached()
        transfer.discardBody()
        #expect(await transfer.waitForEndUncancelled().failure?.isCancellation == true)
        #expect(transfer.takeHold() == nil)
    }

    @Test func otherResponsesHoldNothing() async throws {
        let bench = try EngineBench()
        let place = [(name: "Location", value: "/next")]
        bench.server.on("GET", "/created", .status(201, place))
        bench.server.on("GET", "/choices", .status(300, place))
        bench.server.on("GET", "/same", .status(304, place))
        bench.server.on("GET", "/placeless", .status(302, [(name: "X-Location", value: "/next")]))
        bench.server.on("GET", "/early", .status(302, [(name: "X-Y", value: "Location: /next")]))
        for path in ["/created", "/choices", "/same", "/placeless", "/early"] {
            let transfer = bench.transfer(path) { $0.interest = .anyRedirect }
            transfer.start()
            _ = await transfer.waitForEndUncancelled()
            #expect(transfer.takeHold() == nil, "\(path)")
        }
        bench.server.on("GET", "/", .status(302, place))
        let plain = bench.transfer("/")
        plain.start()
        _ = await plain.waitForEndUncancelled()
        #expect(plain.takeHold() == nil, "the plan has no interest in redirects")
        #expect(bench.share.loop.holds.withLock { $0.count } == 0)
    }

    // MARK: Closing

    @Test(arguments: [nil, 600 * second])
    func gracefulCloseWaitsForHoldsAndAcceptsTheirTransfers(limit: UInt64?) async throws {
        let bench = try EngineBench()
        let loop = bench.share.loop
        bench.server.on("GET", "/", .text("hello"))
        var hold = loop.hold()
        #expect(hold != nil)
        let flag = Flag()
        let waiter = await closing(loop, within: limit, after: flag)
        await runPendingTasks(loop)
        #expect(await isClosed(bench.transfer("/")), "a new transfer is rejected")
        #expect(loop.hold() == nil, "a new hold is rejected")
        for _ in 0..<2 {
            #expect(await !isClosed(bench.transfer("/") { $0.continues = true }))
            await runPendingTasks(loop)
        }
        flag.set()
        hold = nil
        #expect(await waiter.value)
        #expect(await isClosed(bench.transfer("/") { $0.continues = true }), "the loop is closed")
        await loop.shutDown(within: limit)
    }

    @Test func openLoopAcceptsContinuingTransfers() async throws {
        let bench = try EngineBench()
        bench.server.on("GET", "/", .text("hello"))
        #expect(await !isClosed(bench.transfer("/") { $0.continues = true }))
    }

    @Test func immediateCloseDoesNotWaitForHolds() async throws {
        let bench = try EngineBench()
        let gate = Gate()
        bench.server.on("GET", "/", .text("hello").fault(.stall(gate), at: .body(2)))
        let transfer = bench.transfer("/")
        transfer.start()
        await gate.waitUntilReached()
        var hold = bench.share.loop.hold()
        #expect(hold != nil)
        await bench.share.loop.shutDown(within: 0)
        #expect(transfer.hasFinished)
        #expect(await isClosed(bench.transfer("/") { $0.continues = true }))
        let flag = Flag()
        let waiter = await idle(bench.share.loop, after: flag)
        await runPendingTasks(bench.share.loop)
        flag.set()
        hold = nil
        #expect(await waiter.value == [true, true], "idle() still waits for holds")
        gate.open()
    }

    @Test func immediateCloseEndsAGracefulClose() async throws {
        let bench = try EngineBench()
        let hold = bench.share.loop.hold()
        #expect(hold != nil)
        let flag = Flag()
        let patient = await closing(bench.share.loop, within: nil, after: flag)
        await runPendingTasks(bench.share.loop)
        flag.set()
        await bench.share.loop.shutDown(within: 0)
        #expect(await patient.value)
        withExtendedLifetime(hold) {}
    }

    @Test func closeStopsWaitingForHoldsAtItsTimeLimit() async throws {
        let bench = StubBench()
        let hold = bench.loop.hold()
        #expect(hold != nil)
        let running = bench.transfer([.connect, .stall, .head(200), .end]) { $0.continues = true }
        let closer = await closing(bench.loop, within: 5 * HoldTests.second, after: Flag())
        running.start()
        await bench.settle()
        await bench.advance(by: 5 * HoldTests.second - 1)
        #expect(!running.hasFinished)
        await bench.advance(by: 1)
        #expect(await closer.value == false)
        if case .closed = await running.waitForEndUncancelled().failure?.reason {
        } else {
            Issue.record("the transfer was not ended")
        }
        let late = bench.transfer([.connect, .head(200), .end]) { $0.continues = true }
        #expect(await isClosed(late))
        withExtendedLifetime(hold) {}
    }

    @Test func redirectKeepsAClosingLoopOpenForTheNextTransfer() async throws {
        try await expectOpenLoop(after: .redirect(to: "/next"), .anyRedirect)
    }

    @Test func failureOfInterestKeepsAClosingLoopOpenForTheNextTransfer() async throws {
        let response = MockResponse.text("hello").fault(.close, at: .body(2))
        try await expectOpenLoop(after: response, ChainInterest(failures: true))
    }

    /// Checks that a loop that is closing accepts the transfer that follows an end that is not final.
    private func expectOpenLoop(after response: MockResponse, _ interest: ChainInterest) async throws {
        let bench = try EngineBench()
        let loop = bench.share.loop
        let gate = Gate()
        bench.server.on("GET", "/", response.fault(.stall(gate), at: .start))
        bench.server.on("GET", "/next", .text("hello"))
        let first = bench.transfer("/") { $0.interest = interest }
        first.start()
        await gate.waitUntilReached()
        let flag = Flag()
        let closer = await closing(loop, within: nil, after: flag)
        await loop.round()
        gate.open()
        _ = await first.waitForEndUncancelled()
        await runPendingTasks(loop)
        var hold = first.takeHold()
        #expect(hold != nil)
        let next = bench.transfer("/next") { $0.continues = true }
        next.start()
        flag.set()
        hold = nil
        #expect(await next.waitForEndUncancelled().failure == nil)
        #expect(await closer.value)
    }
}
