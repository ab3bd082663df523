// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import CurlewTesting
import Dispatch
import FoundationEssentials
import Glibc
import Testing

@testable import Curlew
@testable import CurlewEngine

extension Session {
    /// The loop thread.
    var thread: UInt { UInt(pthread_self()) }
}

/// Recorders receive the end of every transfer once, and never on the loop.
@Suite(.timeLimit(.minutes(5)))
struct SessionRecorderTests {
    /// Keeps the recorded ends and the threads of the calls.
    private final class Records: Session.Recorder {
        private struct State {
            var ends: [TransferEvent] = []
            var threads: Set<UInt> = []
            var isInside = false
            var overlaps = 0
        }

        private let state = Lock(State())
        private let first: @Sendable (TransferEvent) -> Void

        init(_ first: @escaping @Sendable (TransferEvent) -> Void = { _ in }) { self.first = first }

        func record(_ end: TransferEvent) {
            state.withLock { state in
                if state.isInside { state.overlaps += 1 }
                state.isInside = true
            }
            first(end)
            state.withLock { state in
                state.ends.append(end)
                state.threads.insert(UInt(pthread_self()))
                state.isInside = false
            }
        }

        var ends: [TransferEvent] { state.withLock { $0.ends } }
        var threads: Set<UInt> { state.withLock { $0.threads } }
        var overlaps: Int { state.withLock { $0.overlaps } }

        /// The words of each transfer's ends, ordered by the transfer's ID.
        var words: [[String]] {
            Dictionary(grouping: ends, by: \.transfer).sorted { $0.key < $1.key }.map { $0.value.map(\.word) }
        }
    }

    @Test func recorderReceivesEveryEndUnderLoad() async throws {
        let server = try MockServer { _ in .text("hello") }
        let records = Records()
        let session = Session(observers: [records])
        try await (0..<3000).forEachConcurrent(limit: 512) { _ in
            _ = try await session.data(for: Request(server.url("/")))
        }
        // Each call returns after its end was recorded.
        #expect(records.ends.count == 6000 && records.overlaps == 0)
        let words = records.words
        #expect(words.count == 3000 && words.allSatisfy { $0 == ["metrics", "finished"] })
        let loop = await session.thread
        #expect(!records.threads.contains(loop))
    }

    /// Recorders do not run on the loop even if the waiting tasks do.
    @Test func recorderNeverRunsOnTheLoop() async throws {
        let server = try MockServer { _ in .text("hello") }
        let records = Records()
        let session = Session(observers: [records])
        await withTaskExecutorPreference(session.executor) {
            for _ in 0..<20 { _ = try? await session.data(for: Request(server.url("/"))) }
        }
        let loop = await session.thread
        #expect(records.ends.count == 40 && !records.threads.contains(loop))
    }

    private struct EndSignal: @unchecked Sendable {
        // Safe because a semaphore is made for several threads.
        let semaphore = DispatchSemaphore(value: 0)
    }

    private final class EndObserver: EngineObserver {
        private let signal: EndSignal

        init(_ signal: EndSignal) { self.signal = signal }

        func didObserve(_ event: EngineEvent, of transfer: EngineTransfer, at nanoseconds: UInt64) {
            if case .ended = event { signal.semaphore.signal() }
        }
    }

    /// While an end is recorded, the loop serves other transfers, and the call of the ended transfer waits.
    @Test func slowRecorderBlocksOnlyItsOwnCall() async throws {
        let gate = Gate()
        let server = try MockServer { request in
            request.path == "/held" ? .text("hello").fault(.stall(gate), at: .body(1)) : .text("x")
        }
        let ended = EndSignal()
        let isInTime = Lock(false)
        let records = Records { end in
            guard end.isLast, end.url.hasSuffix("/quick") else { return }
            gate.open()
            let endedInTime = ended.semaphore.wait(timeout: .now() + 120) == .success
            isInTime.withLock { $0 = endedInTime }
        }
        let session = Session(observers: [records])
        let held = session.transfer(Request(server.url("/held"))).start()
        await gate.waitUntilReached()
        let attempt = try #require(held.run.snapshot.latest)
        attempt.watch(EndObserver(ended))
        _ = try await session.data(for: Request(server.url("/quick")))
        #expect(isInTime.withLock { $0 }, "the recorder blocked the loop")
        #expect(records.ends.contains { $0.isLast && $0.url.hasSuffix("/quick") })
        #expect(try await held.value.count == 5)
        #expect(records.words == [["metrics", "finished"], ["metrics", "finished"]])
    }

    /// For every API, recorders receive the same ends as observers.
    @Test(arguments: CallStyle.allCases, [false, true])
    func everyAPIIsRecorded(_ style: CallStyle, isIntercepted: Bool) async throws {
        let server = try MockServer { $0.path == "/a" ? .redirect(to: "/b") : .text("hello") }
        let records = Records()
        let notes = SessionEventRecorder()
        let passing = ClosureInterceptor.intercept { request, _, next in try await next(request) }
        let session = Session(interceptors: isIntercepted ? [passing] : [], observers: [records, notes])
        let urls = [server.url("/a"), server.url("/b"), "http://127.0.0.1:1/", "http://"]
        for url in urls { _ = await style.run(Request(url), on: session) }
        try await session.shutdown()
        await notes.waitUntilClosed()
        let observed = notes.words.map { words in words.filter { $0 == "metrics" || $0.hasPrefix("finished") } }
        #expect(records.words == observed && records.overlaps == 0)
        #expect(records.words.prefix(2) == [["metrics", "metrics", "finished"], ["metrics", "finished"]])
        #expect(records.words.dropFirst(2).map(\.last) == ["finished: cannot_connect", "finished: invalid_request"])
    }

    @Test func cancelledAndClosedTransfersAreRecorded() async throws {
        let gate = Gate()
        let server = try MockServer { _ in .text("hello").fault(.stall(gate), at: .body(1)) }
        let records = Records()
        let session = Session(observers: [records])
        let task = Task { try await session.data(for: Request(server.url("/"))) }
        await gate.waitUntilReached()
        task.cancel()
        _ = await task.result
        #expect(records.words == [["metrics", "finished: cancelled"]])
        session.transfer(Request(server.url("/"))).start()
        await gate.waitUntilReached(times: 2)
        try await session.shutdown(.immediate)
        #expect(records.words.last == ["metrics", "finished: session_closed"])
        // Transfers that a closed session refuses are recorded, too.
        _ = try await networkError { try await session.data(for: Request(server.url("/"))) }
        #expect(records.words.count == 3 && records.words.last?.last == "finished: session_closed")
    }

    /// A late reader of a session's events receives the number of dropped events and all others.
    @Test func slowEventReaderReceivesCountOfDroppedEvents() async throws {
        let server = try MockServer { _ in .text("hello") }
        let session = Session()
        let late = session.events
        let prompt = session.events
        let promptCount = Task { await eventCounts(of: prompt) }
        for _ in 0..<100 { _ = try await session.data(for: Request(server.url("/"))) }
        try await session.shutdown()
        let (received, dropped) = await eventCounts(of: late)
        // Eight events for each transfer, and the end of the session. A busy machine adds slow turns.
        let (all, missing) = await promptCount.value
        #expect(received == 256 && received + dropped == all + missing)
        #expect(received + dropped >= 801)
    }

    /// The number of events that a reader receives until the session closes, and of those that it does not.
    private func eventCounts(of events: AsyncStream<Session.Event>) async -> (received: Int, dropped: Int) {
        var counts = (received: 0, dropped: 0)
        for await event in events {
            if case .dropped(let count) = event { counts.dropped += count } else { counts.received += 1 }
        }
        return counts
    }
}
