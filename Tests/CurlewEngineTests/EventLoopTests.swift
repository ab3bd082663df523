// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import CurlewShims
import Glibc
import Testing

@testable import CurlewEngine

@Suite("EventLoop", .timeLimit(.minutes(5)))
struct EventLoopTests {
    private actor Resident {
        private let share: LoopShare
        private(set) var visits = 0

        init(_ share: LoopShare) { self.share = share }

        nonisolated var unownedExecutor: UnownedSerialExecutor { share.loop.asUnownedSerialExecutor() }

        /// Counts the visit and returns the number of the current thread.
        func visit() -> pid_t {
            visits += 1
            return threadNumber()
        }
    }

    private func thread(of loop: EventLoop) async throws -> pid_t {
        let thread = Latch<pid_t>()
        try #require(loop.call { _ in thread.set(threadNumber()) })
        return await thread.value
    }

    // MARK: Start

    @Test func threadStartsAtTheFirstRecord() async throws {
        let loop = EventLoop(configuration: EngineConfiguration())
        #expect(loop.hasThread)
        #expect(loop.startFailure == 0)
        #expect(!loop.isCurrentThread)
        #expect(loop.transport == nil)
        #expect(!loop.post(.stop), "no thread runs, so there is nothing to stop")
        await loop.waitUntilExited()
        let share = LoopShare(loop)
        #expect(try await thread(of: loop) != threadNumber())
        withExtendedLifetime(share) {}
    }

    @Test func threadHasANameAndBlocksAllSignals() async throws {
        let share = LoopShare(EventLoop(configuration: EngineConfiguration()))
        let status = Latch<[String]>()
        try #require(
            share.loop.call { _ in
                status.set((try? lines(of: "/proc/self/task/\(threadNumber())/status")) ?? [])
            })
        let fields = await status.value
        #expect(fields.contains("Name:\tcurlew-loop"))
        let text = try #require(fields.first { $0.hasPrefix("SigBlk:") }?.split(separator: "\t").last)
        let blocked = try #require(UInt64(text, radix: 16))
        // 9 and 19 cannot be blocked; 32 and 33 belong to the C library.
        let open = (1...64).filter { blocked & 1 << UInt64($0 - 1) == 0 }
        #expect(open == [9, 19, 32, 33])
    }

    // MARK: Running

    @Test func recordsRunInOrder() async throws {
        let share = LoopShare(EventLoop(configuration: EngineConfiguration()))
        let seen = Lock<[Int]>([])
        let isDone = Latch<Bool>()
        for number in 0..<2000 { share.loop.call { _ in seen.withLock { $0.append(number) } } }
        share.loop.call { _ in isDone.set(true) }
        _ = await isDone.value
        #expect(seen.withLock { $0 } == Array(0..<2000))
    }

    @Test func recordsOfManyThreadsKeepTheOrderOfEachThread() async throws {
        let share = LoopShare(EventLoop(configuration: EngineConfiguration()))
        let loop = share.loop
        let seen = Lock<[[Int]]>([[], [], [], []])
        let threads = try (0..<4).map { thread in
            try TestThread {
                for number in 0..<500 { loop.call { _ in seen.withLock { $0[thread].append(number) } } }
            }
        }
        for thread in threads { thread.join() }
        let isDone = Latch<Bool>()
        loop.call { _ in isDone.set(true) }
        _ = await isDone.value
        #expect(seen.withLock { $0 } == [[Int]](repeating: Array(0..<500), count: 4))
    }

    @Test func transportIsReachableOnlyOnTheLoop() async throws {
        let share = LoopShare(EventLoop(configuration: EngineConfiguration()))
        let loop = share.loop
        let isThere = Latch<Bool>()
        loop.call { transport in
            let isIsolated = loop.isCurrentThread && loop.isIsolatingCurrentContext() == true
            isThere.set(loop.transport === transport && isIsolated)
        }
        #expect(await isThere.value)
        #expect(loop.transport == nil)
        #expect(!loop.isCurrentThread)
        #expect(loop.isIsolatingCurrentContext() == false)
    }

    @Test func actorJobsRunOnTheLoopThread() async throws {
        let share = LoopShare(EventLoop(configuration: EngineConfiguration()))
        let resident = Resident(share)
        let thread = try await thread(of: share.loop)
        await withTaskGroup(of: pid_t.self) { group in
            for _ in 0..<100 { group.addTask { await resident.visit() } }
            for await visited in group { #expect(visited == thread) }
        }
        #expect(await resident.visits == 100)
    }

    @Test func taskExecutorRunsTasksOnTheLoopThread() async throws {
        let share = LoopShare(EventLoop(configuration: EngineConfiguration()))
        let thread = try await thread(of: share.loop)
        let task = Task(executorPreference: LoopTaskExecutor(share)) {
            let before = threadNumber()
            await Task.yield()
            return [before, threadNumber()]
        }
        #expect(await task.value == [thread, thread])
    }

    // MARK: Slow turns

    @Test func slowTurnIsReported() async throws {
        var configuration = EngineConfiguration()
        configuration.slowTurn = 2_000_000
        let reported = Latch<UInt64>()
        // A busy machine makes other turns slow too, but not as slow as this one.
        let share = LoopShare(EventLoop(configuration: configuration) { if $0 >= 200_000_000 { reported.set($0) } })
        _ = try await thread(of: share.loop)
        #expect(reported.current == nil)
        share.loop.call { _ in
            let end = Monotonic.now() + 200_000_000
            while Monotonic.now() < end {}
        }
        #expect(await reported.value < 30_000_000_000)
    }

    // MARK: The end

    @Test func threadRunsUntilTheLastShareIsReleased() async throws {
        let loop = EventLoop(configuration: EngineConfiguration())
        var share: LoopShare? = LoopShare(loop)
        var other = share
        let name = "/proc/self/task/\(try await thread(of: loop))/comm"
        withExtendedLifetime(share) {}
        share = nil
        _ = try await thread(of: loop)
        #expect(try lines(of: name) == ["curlew-loop"], "the other share keeps the thread")
        withExtendedLifetime(other) {}
        other = nil
        await loop.waitUntilExited()
        #expect(!loop.call { _ in Issue.record("an ended loop ran a record") })
        // The kernel removes the thread after the thread's last code has run.
        #expect(await eventually { (try? lines(of: name)) == nil })
    }

    @Test func stoppedLoopRejectsRecordsAndStillRunsJobs() async throws {
        let loop = EventLoop(configuration: EngineConfiguration())
        let share = LoopShare(loop)
        let resident = Resident(share)
        let thread = await resident.visit()
        loop.post(.stop)
        await loop.waitUntilExited()
        await loop.waitUntilExited()
        #expect(!loop.call { _ in Issue.record("a stopped loop ran a record") })
        #expect(loop.transport == nil)
        // The actor's job runs on the thread of the caller, so the caller does not wait forever.
        #expect(await resident.visit() != thread)
        #expect(await resident.visits == 2)
        let task = Task(executorPreference: LoopTaskExecutor(share)) { 42 }
        #expect(await task.value == 42)
        await loop.shutDown(within: nil)
    }

    @Test func recordsPostedBeforeStopAreExecuted() async throws {
        let loop = EventLoop(configuration: EngineConfiguration())
        let count = Lock(0)
        for _ in 0..<100 { loop.call { _ in count.withLock { $0 += 1 } } }
        loop.post(.stop)
        for _ in 0..<100 where loop.call({ _ in count.withLock { $0 += 1 } }) {}
        await loop.waitUntilExited()
        #expect(count.withLock { $0 } >= 100)
    }

    @Test func loopIsFreedWithItsThread() async throws {
        weak var loop: EventLoop?
        do {
            let made = EventLoop(configuration: EngineConfiguration())
            loop = made
            let share = LoopShare(made)
            _ = try await thread(of: made)
            withExtendedLifetime(share) {}
        }
        #expect(await eventually { loop == nil })
    }

    @Test func shuttingDownAnIdleLoopReturns() async throws {
        for limit in [UInt64?.none, 0, 1_000_000_000] {
            let share = LoopShare(EventLoop(configuration: EngineConfiguration()))
            await share.loop.shutDown(within: limit)
            await share.loop.shutDown(within: limit)
        }
    }
}
