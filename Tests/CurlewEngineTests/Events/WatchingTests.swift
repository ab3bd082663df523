// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import CurlewTesting
import Dispatch
import Testing

@testable import CurlewEngine

/// Who is told, from when on, and what pausing is to those who watch.
@Suite("Watching", .timeLimit(.minutes(5)))
struct WatchingTests {
    private let whole = ["queued", "resolved", "connected", "sent 0", "head 200", "received 5", "ended"]
    private let again = ["queued", "resolved", "connected again", "sent 0", "head 200", "received 5", "ended"]

    // MARK: Pauses

    @Test func pausesAreToldOnceEach() async throws {
        let bench = try EngineBench()
        let gate = Gate()
        bench.server.on("GET", "/", .text("hello").fault(.stall(gate), at: .body(2)))
        let diary = Diary()
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
        _ = await transfer.ended()
        transfer.pause()
        transfer.resume()
        transfer.cancel()
        await bench.share.loop.round()
        #expect(
            diary.words == [
                "queued", "resolved", "connected", "sent 0", "head 200", "paused", "resumed", "received 5", "ended",
            ])
    }

    @Test func oneThatIsPausedBeforeItsStartIsQueuedAndPaused() async throws {
        let bench = try EngineBench()
        bench.server.on("GET", "/", .text("hello"))
        let diary = Diary()
        let transfer = bench.transfer("/")
        transfer.watch(diary)
        transfer.pause()
        await bench.share.loop.round()
        #expect(diary.words == [])
        transfer.start()
        await diary.wait(for: "paused")
        transfer.resume()
        _ = await transfer.ended()
        #expect(diary.words == ["queued", "paused", "resumed"] + whole.dropFirst())
        let cancelled = bench.transfer("/")
        let other = Diary()
        cancelled.watch(other)
        cancelled.pause()
        cancelled.start()
        await bench.share.loop.round()
        cancelled.cancel()
        _ = await cancelled.ended()
        #expect(other.words == ["queued", "paused", "ended cancelled"])
    }

    @Test func oneThatIsPausedWhileItsNameIsLookedUp() async throws {
        let (door, asked) = (DispatchSemaphore(value: 0), Latch<Void>())
        var configuration = EngineConfiguration()
        configuration.resolver = Resolver { _ in
            asked.set(())
            door.wait()
            return .success(["127.0.0.1"])
        }
        let bench = try EngineBench(configuration)
        bench.server.on("GET", "/", .text("hello"))
        let diary = Diary()
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
        _ = await transfer.ended()
        #expect(diary.words.prefix(3) == ["queued", "paused", "resolved"])
        #expect(diary.words.filter { $0 != "paused" && $0 != "resumed" } == whole)
        #expect(diary.words.filter { $0 == "resumed" } == ["resumed"])
    }

    // MARK: Late

    @Test func whoComesLateHearsTheRest() async throws {
        let bench = try EngineBench()
        let gate = Gate()
        bench.server.on("GET", "/", .text("hello").fault(.stall(gate), at: .body(2)))
        let transfer = bench.transfer("/")
        let (first, second) = (Diary(), Diary())
        transfer.start()
        await gate.waitUntilReached()
        if case .ended = await transfer.headed() { Issue.record("it has a head") }
        transfer.pause()
        transfer.watch(first)
        await bench.share.loop.round()
        #expect(first.words == [], "it was paused before")
        transfer.resume()
        await first.wait(for: "resumed")
        transfer.watch(second)
        await bench.share.loop.round()
        gate.open()
        _ = await transfer.ended()
        #expect(first.words == ["resumed"], "another one took its place")
        #expect(second.words == ["received 5", "ended"])
        let last = Diary()
        transfer.watch(last)
        #expect(last.words == ["ended"], "at once")
        await bench.share.loop.round()
        #expect(last.words == ["ended"])
    }

    @Test func everyWitnessHearsOfExactlyOneEnd() async throws {
        let bench = try EngineBench()
        bench.server.on("GET", "/", .text("hello"))
        let diaries = (0..<200).map { _ in Diary() }
        await withTaskGroup(of: Void.self) { group in
            for (number, diary) in diaries.enumerated() {
                let transfer = bench.transfer("/")
                transfer.start()
                group.addTask { transfer.watch(diary) }
                if number.isMultiple(of: 3) { group.addTask { transfer.cancel() } }
                group.addTask { _ = await transfer.ended() }
            }
        }
        await bench.share.loop.round()
        for diary in diaries {
            #expect(diary.words.filter { $0.hasPrefix("ended") }.count == 1)
            #expect(diary.words.last?.hasPrefix("ended") == true)
        }
    }

    // MARK: All of a loop

    @Test func allTransfersOfALoopAreWatchedFromOneMomentOn() async throws {
        let bench = try EngineBench()
        let loop = bench.share.loop
        bench.server.on("GET", "/", .text("hello"))
        let all = Diary()
        loop.watch(all)
        #expect(!loop.isRunning, "no thread is started for a witness")
        let (first, second, third) = (bench.transfer("/"), bench.transfer("/"), bench.transfer("/"))
        first.start()
        _ = await first.ended()
        #expect(all.words(of: first) == whole)
        let own = Diary()
        second.watch(own)
        second.start()
        _ = await second.ended()
        #expect(own.words == again)
        #expect(all.words(of: second) == again)
        loop.watch(nil)
        third.start()
        _ = await third.ended()
        #expect(all.words(of: third) == [])
        let other = Diary()
        loop.watch(other)
        let fourth = bench.transfer("/")
        fourth.start()
        _ = await fourth.ended()
        #expect(other.words == again)
        #expect(all.words == whole + again)
    }

    @Test func runningTransfersAreWatchedToo() async throws {
        let bench = try EngineBench()
        let gate = Gate()
        bench.server.on("GET", "/", .text("hello").fault(.stall(gate), at: .body(2)))
        let transfer = bench.transfer("/")
        transfer.start()
        _ = await transfer.headed()
        let all = Diary()
        bench.share.loop.watch(all)
        await bench.share.loop.round()
        gate.open()
        _ = await transfer.ended()
        #expect(all.words == ["received 5", "ended"])
    }

    @Test func aWitnessOfOneLeavesTheWitnessOfAllAlone() async throws {
        let bench = try EngineBench()
        let gate = Gate()
        bench.server.on("GET", "/", .text("hello").fault(.stall(gate), at: .body(2)))
        let (all, own) = (Diary(), Diary())
        bench.share.loop.watch(all)
        let transfer = bench.transfer("/")
        transfer.start()
        _ = await transfer.headed()
        transfer.watch(own)
        bench.share.loop.watch(nil)
        await bench.share.loop.round()
        gate.open()
        _ = await transfer.ended()
        #expect(all.words == whole.dropLast(2))
        #expect(own.words == ["received 5", "ended"])
    }

    @Test func aWitnessIsLetGoWithTheRun() async throws {
        let bench = try EngineBench()
        bench.server.on("GET", "/", .text("hello"))
        let transfer = bench.transfer("/")
        weak var witness: Diary?
        do {
            let diary = Diary()
            witness = diary
            transfer.watch(diary)
            transfer.start()
            _ = await transfer.ended()
        }
        #expect(await eventually { witness == nil })
        withExtendedLifetime(transfer) {}
    }
}
