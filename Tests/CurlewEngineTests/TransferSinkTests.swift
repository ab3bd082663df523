// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import CurlewTesting
import Glibc
import Testing

@testable import CurlewEngine

/// The reports that a sink gets, and the waits for the head.
@Suite("Reports to the sink", .timeLimit(.minutes(5)))
struct TransferSinkTests {
    private enum Found: Equatable { case head(Int), cancelled, failed, ended }

    private func found(_ result: EngineTransfer.FirstResult) -> Found {
        switch result {
        case .head(let head): .head(head.status)
        case .ended(let outcome): outcome.failure.map { $0.isCancellation ? .cancelled : .failed } ?? .ended
        }
    }

    private func stalling(
        at point: MockResponse.Point, _ gate: Gate, _ bench: EngineBench, _ interest: ChainInterest = ChainInterest()
    ) -> EngineTransfer {
        bench.server.on("GET", "/", .text("hello").informational(103).fault(.stall(gate), at: point))
        return bench.transfer("/") { $0.interest = interest }
    }

    // MARK: The head

    @Test func headIsReturnedBeforeTheBodyArrives() async throws {
        let bench = try EngineBench()
        let gate = Gate()
        let transfer = stalling(at: .body(2), gate, bench)
        let sink = SinkRecorder(transfer)
        async let early = sink.headed()
        transfer.start()
        #expect(found(await early) == .head(200))
        #expect(!transfer.hasFinished)
        #expect(found(await sink.headed()) == .head(200), "a second call returns at once")
        gate.open()
        #expect(await transfer.waitForEndUncancelled().failure == nil && transfer.takeBodyChunk()?.count == 5)
        #expect(found(await sink.headed()) == .head(200), "a call after the end returns the head")
    }

    @Test func requestedHeadIsReportedOnceBeforeTheBodyArrives() async throws {
        let bench = try EngineBench()
        let gate = Gate()
        let transfer = stalling(at: .body(2), gate, bench)
        let sink = SinkRecorder(transfer)
        #expect(transfer.requestHead() == .isPending)
        #expect(transfer.firstResult == nil)
        transfer.start()
        await sink.wait(for: .head(isFinal: true))
        #expect(transfer.requestHead() == .isKnown)
        #expect(!transfer.hasFinished)
        gate.open()
        #expect(await transfer.waitForEndUncancelled().failure == nil && transfer.takeBodyChunk()?.count == 5)
        #expect(sink.reports == [.head(isFinal: true), .ended])
    }

    @Test func headThatIsNotFinalIsReportedWithoutARequest() async throws {
        let bench = try EngineBench()
        let gate = Gate()
        let transfer = stalling(at: .body(2), gate, bench, ChainInterest(statuses: [200]))
        let sink = SinkRecorder(transfer)
        transfer.start()
        await sink.wait(for: .head(isFinal: false))
        #expect(!transfer.hasFinished)
        gate.open()
        _ = await transfer.waitForEndUncancelled()
        #expect(sink.reports == [.head(isFinal: false), .ended])
        bench.server.on("GET", "/", .text("hello"))
        let short = bench.transfer("/") { $0.interest = ChainInterest(statuses: [200]) }
        let other = SinkRecorder(short)
        short.start()
        _ = await short.waitForEndUncancelled()
        #expect(other.reports == [.head(isFinal: false), .ended], "the head precedes an end in the same turn")
    }

    @Test func finalHeadOfACollectedResponseNeedsARequest() async throws {
        let bench = try EngineBench()
        let gate = Gate()
        let transfer = stalling(at: .body(2), gate, bench, ChainInterest(statuses: [503]))
        let sink = SinkRecorder(transfer)
        transfer.start()
        await gate.waitUntilReached()
        await bench.share.loop.round()
        gate.open()
        _ = await transfer.waitForEndUncancelled()
        #expect(sink.reports == [.ended])
    }

    @Test func streamReportsItsHeadWithoutARequest() async throws {
        let bench = try EngineBench()
        let gate = Gate()
        let transfer = stalling(at: .body(2), gate, bench)
        let sink = SinkRecorder(transfer)
        transfer.claimStream()
        transfer.start()
        await sink.wait(for: .head(isFinal: true))
        #expect(!transfer.hasFinished)
        gate.open()
        _ = await transfer.waitForEndUncancelled()
        #expect(sink.reports.filter { $0 != .update } == [.head(isFinal: true), .ended])
    }

    @Test func informationalHeadsOfAStreamAreReportedAsNews() async throws {
        let bench = try EngineBench()
        let gate = Gate()
        let transfer = stalling(at: .head(0), gate, bench)
        let sink = SinkRecorder(transfer)
        transfer.claimStream()
        transfer.start()
        await sink.wait(for: .update)
        #expect(sink.reports.allSatisfy { $0 == .update })
        #expect(transfer.takeInformational().map(\.status) == [103])
        #expect(transfer.takeInformational().isEmpty)
        gate.open()
        _ = await transfer.waitForEndUncancelled()
    }

    @Test func informationalHeadIsSkipped() async throws {
        let bench = try EngineBench()
        let gate = Gate()
        let transfer = stalling(at: .head(0), gate, bench)
        let diary = EventRecorder()
        transfer.watch(diary)
        let sink = SinkRecorder(transfer)
        let early = Task { [found] in found(await sink.headed()) }
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
        let sink = SinkRecorder(transfer)
        let waiters = (0..<20).map { _ in Task { [found] in found(await sink.headed()) } }
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
        let sink = SinkRecorder(dead)
        async let early = sink.headed()
        dead.start()
        #expect(found(await early) == .failed)
        #expect(found(await sink.headed()) == .failed)
        #expect(sink.reports == [.ended])
        bench.server.on("GET", "/cut", .raw("HTTP/1.1 200 OK\r\nX: ").fault(.close, at: .end))
        let cut = bench.transfer("/cut")
        cut.start()
        #expect(found(await SinkRecorder(cut).headed()) == .failed)
        withExtendedLifetime(port) {}
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
            _ = await sample.waitForEndUncancelled()
            let all = bench.server.bytesSent - start
            let gate = Gate()
            bench.server.on("GET", "/", answer.fault(.stall(gate), at: .start))
            let transfer = bench.transfer("/")
            let sink = SinkRecorder(transfer)
            let waiters = (0..<5).map { _ in Task.immediate { [found] in found(await sink.headed()) } }
            transfer.start()
            await gate.waitUntilReached()
            let before = bench.server.bytesSent
            bench.share.loop.call { _ in
                gate.open()
                while bench.server.bytesSent < before + all { sched_yield() }
            }
            for waiter in waiters { #expect(await waiter.value == expected) }
            #expect(found(await sink.headed()) == expected)
        }
    }

    @Test func cancellationEndsTheWaitForTheHead() async throws {
        let bench = try EngineBench()
        let gate = Gate()
        let transfer = stalling(at: .head(0), gate, bench)
        let idle = bench.transfer("/")
        let sinks = [SinkRecorder(transfer), SinkRecorder(idle)]
        transfer.start()
        await gate.waitUntilReached()
        let waiters = (sinks + sinks).map { sink in Task.immediate { [found] in found(await sink.headed()) } }
        transfer.cancel()
        idle.cancel()
        for waiter in waiters { #expect(await waiter.value == .cancelled) }
        #expect(transfer.failure?.isCancellation == true)
        #expect(idle.failure?.phase == .preparing)
        for sink in sinks { #expect(sink.reports == [.ended]) }
        gate.open()
    }

    // MARK: Progress

    @Test func progressIsNotReportedWithoutARequest() async throws {
        var configuration = EngineConfiguration()
        configuration.progressInterval = 0
        let bench = try EngineBench(configuration)
        let gate = Gate()
        let transfer = stalling(at: .body(2), gate, bench)
        let sink = SinkRecorder(transfer)
        transfer.start()
        #expect(await eventually { transfer.snapshot.counters.received == 2 })
        gate.open()
        #expect(await transfer.waitForEndUncancelled().failure == nil)
        #expect(sink.reports == [.ended])
    }

    /// Progress within the report interval is reported when the interval ends, even if no more bytes arrive.
    @Test func progressWithinTheIntervalIsReportedAtItsEnd() async throws {
        var configuration = EngineConfiguration()
        configuration.progressInterval = 300_000_000
        let bench = try EngineBench(configuration)
        let (start, rest) = (Gate(), Gate())
        let response = MockResponse.text("hello world").fault(.stall(start), at: .body(0)).fault(
            .stall(rest), at: .body(5))
        bench.server.on("GET", "/", response)
        let transfer = bench.transfer("/")
        let sink = SinkRecorder(transfer)
        transfer.reportProgress()
        transfer.start()
        await sink.wait(for: .update)
        #expect(sink.counters.first?.received == 0)
        start.open()
        await sink.wait { _ in sink.counters.last?.received == 5 }
        #expect(!transfer.hasFinished)
        let times = sink.counters.map(\.at)
        for (early, late) in zip(times, times.dropFirst()) { #expect(late - early >= configuration.progressInterval) }
        rest.open()
        #expect(await transfer.waitForEndUncancelled().failure == nil)
        #expect(transfer.snapshot.counters.received == 11)
        #expect(transfer.snapshot.counters.isFinished)
    }

    @Test func runningTransferReportsItsProgressOnRequest() async throws {
        let bench = try EngineBench()
        let gate = Gate()
        let transfer = stalling(at: .body(2), gate, bench)
        transfer.start()
        await gate.waitUntilReached()
        #expect(await eventually { transfer.snapshot.counters.received == 2 })
        let sink = SinkRecorder(transfer)
        await bench.share.loop.round()
        #expect(sink.reports == [])
        transfer.reportProgress()
        await sink.wait(for: .update)
        #expect(sink.counters.first?.received == 2)
        #expect(!transfer.hasFinished)
        gate.open()
        #expect(await transfer.waitForEndUncancelled().failure == nil)
    }

    // MARK: The end

    /// A way in which a transfer ends: on the loop, or before its start on the thread of the caller.
    enum End: CaseIterable, Sendable { case success, failure, cancellation, refusal }

    @Test(arguments: End.allCases) func observersGetTheEndFirstAndThenTheSink(end: End) async throws {
        let bench = try EngineBench()
        let loop = bench.share.loop
        bench.server.on("GET", "/", .text("hello").fault(.close, at: end == .failure ? .body(2) : .end))
        let transfer = bench.transfer("/")
        let order = Lock<[String]>([])
        let note: @Sendable (String) -> Void = { caller in
            let words = "\(caller): \(transfer.endStatus), \(transfer.outcome == nil ? "no outcome" : "outcome")"
            order.withLock { $0.append(words) }
        }
        transfer.watch(Listener { event in if case .ended = event { note("own observer") } })
        loop.watch(Listener { event in if case .ended = event { note("loop observer") } })
        let sink = SinkRecorder(transfer) { note("sink") }
        let waiter = Task.immediate {
            let outcome = await transfer.waitForEndUncancelled()
            note("waiter")
            return outcome.failure == nil
        }
        switch end {
        case .success, .failure: transfer.start()
        case .cancellation: transfer.cancel()
        case .refusal: transfer.refuse(EngineFailure(.noRoots(places: []), phase: .securing))
        }
        #expect(await waiter.value == (end == .success))
        #expect(
            order.withLock { $0 } == [
                "own observer: isEnding, no outcome", "loop observer: isEnding, no outcome",
                "sink: isEnding, no outcome", "waiter: isKnown, outcome",
            ])
        #expect(sink.reports == [.ended])
        loop.watch(nil)
    }

    /// A sink with tasks that wait for the end.
    private final class WaitingSink: TransferSink {
        private let waiters = Lock(SmallList<Waiter>())

        var isFinished: Bool { false }

        func wait() async {
            _ = await withUnsafeContinuation { (continuation: UnsafeContinuation<Bool, Never>) in
                waiters.withLock { $0.append(Waiter(continuation)) }
            }
        }

        func receivedHead(of transfer: EngineTransfer, isFinal: Bool) {}
        func receivedUpdate(of transfer: EngineTransfer) {}

        func ended(_ transfer: EngineTransfer, _ outcome: EngineTransfer.Outcome) -> SmallList<Waiter> {
            waiters.withLock { $0.removeAll() }
        }
    }

    @Test(arguments: [false, true]) func waitersOfTheSinkSeeTheOutcome(isStarted: Bool) async throws {
        let bench = try EngineBench()
        bench.server.on("GET", "/", .text("hello"))
        for _ in 0..<20 {
            let transfer = bench.transfer("/")
            let sink = WaitingSink()
            transfer.attach(sink)
            let waiters = (0..<5).map { _ in
                Task.immediate {
                    await sink.wait()
                    return transfer.hasFinished
                }
            }
            if isStarted { transfer.start() } else { transfer.cancel() }
            for waiter in waiters { #expect(await waiter.value) }
        }
    }

    @Test(arguments: [false, true], [false, true])
    func lateSinkLearnsWhetherTheEndIsTheEndOfEverything(hasSink: Bool, isFinal: Bool) async throws {
        let bench = try EngineBench()
        bench.server.on("GET", "/", .text("later", status: 503))
        let transfer = bench.transfer("/") { $0.interest = ChainInterest(statuses: isFinal ? [] : [503]) }
        if hasSink { _ = SinkRecorder(transfer) }
        transfer.start()
        let outcome = await transfer.waitForEndUncancelled()
        #expect(outcome.isFinal == isFinal)
        #expect(outcome.endsTransfer == (isFinal && !hasSink))
        let late = SinkRecorder(transfer)
        #expect(transfer.attach(late) == !outcome.endsTransfer)
        #expect(late.reports == [], "the transfer has ended")
        #expect(found(await late.headed()) == .head(503))
    }

    @Test func sinkIsReleasedAtTheEnd() async throws {
        let bench = try EngineBench()
        bench.server.on("GET", "/", .text("hello"))
        let transfer = bench.transfer("/")
        weak var released: SinkRecorder?
        do {
            let sink = SinkRecorder(transfer)
            released = sink
            transfer.start()
            _ = await transfer.waitForEndUncancelled()
            #expect(sink.reports == [.ended])
        }
        #expect(await eventually { released == nil })
        withExtendedLifetime(transfer) {}
    }
}
