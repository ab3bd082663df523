// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import CurlewTesting
import Dispatch
import Testing

@testable import CurlewEngine

/// Observers of single transfers and of whole loops, and the events of pauses.
@Suite("Observers", .timeLimit(.minutes(5)))
struct ObserverTests {
    private let whole = ["queued", "resolved", "connected", "sent 0", "head 200", "received 5", "ended"]
    private let again = ["queued", "resolved", "connected again", "sent 0", "head 200", "received 5", "ended"]

    // MARK: Pauses

    @Test func eachPauseAndResumeIsReportedOnce() async throws {
        let bench = try EngineBench()
        let gate = Gate()
        bench.server.on("GET", "/", .text("hello").fault(.stall(gate), at: .body(2)))
        let diary = EventRecorder()
        let transfer = bench.transfer("/")
        transfer.watch(diary)
        transfer.start()
        await gate.waitUntilReached()
        await diary.wait(for: "head 200")
        for _ in 0..<2 {
            transfer.pause()
            transfer.pause()
            await diary.wait(for: "paused")
        }
        transfer.priority = 3
        await bench.share.loop.round()
        transfer.resume()
        transfer.resume()
        await diary.wait(for: "resumed")
        gate.open()
        _ = await transfer.waitForEndUncancelled()
        transfer.pause()
        transfer.resume()
        transfer.cancel()
        await bench.share.loop.round()
        #expect(
            diary.words == [
                "queued", "resolved", "connected", "sent 0", "head 200", "paused", "resumed", "received 5", "ended",
            ])
    }

    @Test func transferPausedBeforeItsStartReportsQueuedAndPaused() async throws {
        let bench = try EngineBench()
        bench.server.on("GET", "/", .text("hello"))
        let diary = EventRecorder()
        let transfer = bench.transfer("/")
        transfer.watch(diary)
        transfer.pause()
        await bench.share.loop.round()
        #expect(diary.words == [])
        transfer.start()
        await diary.wait(for: "paused")
        transfer.resume()
        _ = await transfer.waitForEndUncancelled()
        #expect(diary.words == ["queued", "paused", "resumed"] + whole.dropFirst())
        let cancelled = bench.transfer("/")
        let other = EventRecorder()
        cancelled.watch(other)
        cancelled.pause()
        cancelled.start()
        await bench.share.loop.round()
        cancelled.cancel()
        _ = await cancelled.waitForEndUncancelled()
        #expect(other.words == ["queued", "paused", "ended cancelled"])
    }

    @Test func transferPausedDuringItsLookUpResumes() async throws {
        let (door, asked) = (DispatchSemaphore(value: 0), Latch<Void>())
        var configuration = EngineConfiguration()
        configuration.resolver = Resolver { _ in
            asked.set(())
            door.wait()
            return .success(["127.0.0.1"])
        }
        let bench = try EngineBench(configuration)
        bench.server.on("GET", "/", .text("hello"))
        let diary = EventRecorder()
        let transfer = bench.transfer("/") { plan in
            plan.lead(to: "http://somewhere.test:\(bench.server.port)/", host: "somewhere.test")
        }
        transfer.watch(diary)
        transfer.start()
        await asked.value
        transfer.pause()
        await diary.wait(for: "paused")
        door.signal()
        await diary.wait(for: "resolved")
        transfer.resume()
        _ = await transfer.waitForEndUncancelled()
        #expect(diary.words.prefix(3) == ["queued", "paused", "resolved"])
        #expect(diary.words.filter { $0 != "paused" && $0 != "resumed" } == whole)
        #expect(diary.words.filter { $0 == "resumed" } == ["resumed"])
    }

    // MARK: Late observers

    @Test func lateObserverGetsTheRemainingEvents() async throws {
        let bench = try EngineBench()
        let gate = Gate()
        bench.server.on("GET", "/", .text("hello").fault(.stall(gate), at: .body(2)))
        let transfer = bench.transfer("/")
        let (first, second) = (EventRecorder(), EventRecorder())
        transfer.start()
        await gate.waitUntilReached()
        if case .ended = await SinkRecorder(transfer).headed() { Issue.record("the transfer ended before its head") }
        transfer.pause()
        transfer.watch(first)
        await bench.share.loop.round()
        #expect(first.words == [], "the pause happened before the observer subscribed")
        transfer.resume()
        await first.wait(for: "resumed")
        transfer.watch(second)
        await bench.share.loop.round()
        gate.open()
        _ = await transfer.waitForEndUncancelled()
        #expect(first.words == ["resumed"], "the second observer replaced the first")
        #expect(second.words == ["received 5", "ended"])
        let last = EventRecorder()
        transfer.watch(last)
        #expect(last.words == ["ended"], "an ended transfer notifies a new observer at once")
        await bench.share.loop.round()
        #expect(last.words == ["ended"])
    }

    @Test func everyObserverGetsExactlyOneEnd() async throws {
        let bench = try EngineBench()
        bench.server.on("GET", "/", .text("hello"))
        let diaries = (0..<200).map { _ in EventRecorder() }
        await withTaskGroup(of: Void.self) { group in
            for (number, diary) in diaries.enumerated() {
                let transfer = bench.transfer("/")
                transfer.start()
                group.addTask { transfer.watch(diary) }
                if number.isMultiple(of: 3) { group.addTask { transfer.cancel() } }
                group.addTask { _ = await transfer.waitForEndUncancelled() }
            }
        }
        await bench.share.loop.round()
        for diary in diaries {
            #expect(diary.words.filter { $0.hasPrefix("ended") }.count == 1)
            #expect(diary.words.last?.hasPrefix("ended") == true)
        }
    }

    // MARK: Observers of a loop

    @Test func loopObserverGetsTheEventsOfAllTransfers() async throws {
        let bench = try EngineBench()
        let loop = bench.share.loop
        bench.server.on("GET", "/", .text("hello"))
        let all = EventRecorder()
        loop.watch(all)
        #expect(!loop.isRunning, "an observer does not start the thread")
        let (first, second, third) = (bench.transfer("/"), bench.transfer("/"), bench.transfer("/"))
        first.start()
        _ = await first.waitForEndUncancelled()
        #expect(all.words(of: first) == whole)
        let own = EventRecorder()
        second.watch(own)
        second.start()
        _ = await second.waitForEndUncancelled()
        #expect(own.words == again)
        #expect(all.words(of: second) == again)
        loop.watch(nil)
        third.start()
        _ = await third.waitForEndUncancelled()
        #expect(all.words(of: third) == [])
        let other = EventRecorder()
        loop.watch(other)
        let fourth = bench.transfer("/")
        fourth.start()
        _ = await fourth.waitForEndUncancelled()
        #expect(other.words == again)
        #expect(all.words == whole + again)
    }

    @Test func loopObserverGetsEventsOfRunningTransfers() async throws {
        let bench = try EngineBench()
        let gate = Gate()
        bench.server.on("GET", "/", .text("hello").fault(.stall(gate), at: .body(2)))
        let transfer = bench.transfer("/")
        transfer.start()
        _ = await SinkRecorder(transfer).headed()
        let all = EventRecorder()
        bench.share.loop.watch(all)
        await bench.share.loop.round()
        gate.open()
        _ = await transfer.waitForEndUncancelled()
        #expect(all.words == ["received 5", "ended"])
    }

    @Test func transferObserverIsIndependentOfLoopObserver() async throws {
        let bench = try EngineBench()
        let gate = Gate()
        bench.server.on("GET", "/", .text("hello").fault(.stall(gate), at: .body(2)))
        let (all, own) = (EventRecorder(), EventRecorder())
        bench.share.loop.watch(all)
        let transfer = bench.transfer("/")
        transfer.start()
        _ = await SinkRecorder(transfer).headed()
        transfer.watch(own)
        bench.share.loop.watch(nil)
        await bench.share.loop.round()
        gate.open()
        _ = await transfer.waitForEndUncancelled()
        #expect(all.words == whole.dropLast(2))
        #expect(own.words == ["received 5", "ended"])
    }

    @Test func observerIsReleasedAtTheEnd() async throws {
        let bench = try EngineBench()
        bench.server.on("GET", "/", .text("hello"))
        let transfer = bench.transfer("/")
        weak var observer: EventRecorder?
        do {
            let diary = EventRecorder()
            observer = diary
            transfer.watch(diary)
            transfer.start()
            _ = await transfer.waitForEndUncancelled()
        }
        #expect(await eventually { observer == nil })
        withExtendedLifetime(transfer) {}
    }
}
