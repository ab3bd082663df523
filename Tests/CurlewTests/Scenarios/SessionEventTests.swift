// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewTesting
import FoundationEssentials
import Testing

@testable import Curlew
@testable import CurlewEngine

/// The events of a session: those of all its transfers, and the end of the session.
@Suite(.timeLimit(.minutes(5)))
struct SessionEventTests {
    private final class Alive: Sendable {}

    /// An observer with a reference to an object, whose release shows the release of the observer.
    private struct RetainingObserver: Session.Observer {
        let alive: Alive
        let notes: SessionEventRecorder
        func observe(_ event: Session.Event) async { await notes.observe(event) }
    }

    @Test func concurrentTransfersEmitEventsInOrder() async throws {
        let server = try MockServer { $0.path == "/a" ? .redirect(to: "/b") : .text("hello") }
        let notes = SessionEventRecorder()
        let session = Session(observers: [notes]) { $0.limits.connectionsPerHost = 4 }
        try await (0..<100).forEachConcurrent(limit: 10) { index in
            _ = try await session.data(for: Request(server.url(index % 2 == 0 ? "/a" : "/b")))
        }
        try await session.shutdown()
        await notes.waitUntilClosed()
        #expect(notes.isClosed)
        #expect(Set(notes.transferEvents.map(\.transfer)).count == 100)
        for words in notes.words {
            let flaw = EventGrammar.flaw(in: words)
            #expect(flaw == nil, "\(flaw ?? "") in \(words)")
        }
        let elapsed = Dictionary(grouping: notes.transferEvents, by: \.transfer).values.map { $0.map(\.elapsed) }
        #expect(elapsed.allSatisfy { $0 == $0.sorted() })
    }

    /// Counts active transfers, the use case of AFNetworking's notifications.
    @Test func activeTransfersCanBeCountedFromEvents() async throws {
        let gate = Gate()
        let server = try MockServer { _ in .text("hello").fault(.stall(gate), at: .body(1)) }
        let session = Session { $0.limits.connectionsPerHost = 2 }
        let events = session.events
        let counts = Task {
            var active: Set<UInt64> = []
            var counts: [Int] = []
            for await case .transfer(let event) in events {
                if event.isLast { active.remove(event.transfer) } else { active.insert(event.transfer) }
                if counts.last != active.count { counts.append(active.count) }
                if active.count == 3 { gate.open() }
            }
            return counts
        }
        async let first = session.data(for: Request(server.url("/")))
        async let second = session.data(for: Request(server.url("/")))
        async let third = session.data(for: Request(server.url("/")))
        _ = try await (first, second, third)
        try await session.shutdown()
        #expect(await counts.value == [1, 2, 3, 2, 1, 0])
    }

    @Test func lateObserverReceivesStatesOfTransfers() async throws {
        let gate = Gate()
        let server = try MockServer { _ in .text("hello").fault(.stall(gate), at: .body(2)) }
        let session = Session { $0.limits.connectionsPerHost = 2 }
        var transfers: [Transfer<Data>] = []
        for _ in 0..<2 { transfers.append(session.transfer(Request(server.url("/"))).start()) }
        await gate.waitUntilReached(times: 2)
        transfers.append(session.transfer(Request(server.url("/"))).start())
        let ended = Task { () -> [TransferEvent] in
            var all: [TransferEvent] = []
            for await case .transfer(let event) in session.events {
                all.append(event)
                if all.count(where: { $0.word.hasPrefix("is ") }) == 3 { gate.open() }
                if all.count(where: \.isLast) == 3 { break }
            }
            return all
        }
        for transfer in transfers { _ = try await transfer.value }
        let all = await ended.value
        for (index, transfer) in transfers.enumerated() {
            let words = all.filter { $0.transfer == transfer.id }.map(\.word)
            #expect(words.first == (index < 2 ? "is running" : "is queued") && words.last == "finished", "\(words)")
            #expect(words.count { $0.hasPrefix("is ") } == 1)
        }
    }

    /// Observers may subscribe at any time; they receive no state twice or after the end, and receive every end.
    @Test(arguments: 0..<8)
    func observersMaySubscribeAtAnyTime(_ round: Int) async throws {
        let server = try MockServer { $0.path == "/a" ? .redirect(to: "/b") : .text("hello") }
        let session = Session { $0.limits.connectionsPerHost = 4 }
        let all = await withTaskGroup(of: [TransferEvent].self) { group in
            for index in 0..<15 {
                let request = Request(server.url(index % 2 == 0 ? "/a" : "/b"))
                let transfer = session.transfer(request).start()
                if index % 3 == 0 { for _ in 0..<round { await Task.yield() } }
                let events = session.events
                group.addTask {
                    var heard: [TransferEvent] = []
                    for await case .transfer(let event) in events { heard.append(event) }
                    return heard
                }
                if round % 2 == 0 { _ = try? await transfer.value }
            }
            try? await session.shutdown()
            return await group.reduce(into: []) { $0.append($1) }
        }
        for heard in all {
            for events in Dictionary(grouping: heard, by: \.transfer).values {
                let words = events.map(\.word)
                let flaw = EventGrammar.flaw(in: words, isWhole: false)
                #expect(flaw == nil && words.last == "finished", "\(flaw ?? "") in \(words)")
            }
        }
    }

    @Test func observersReceiveEventsInOrderAndClosed() async throws {
        let server = try MockServer { _ in .text("hello") }
        let notes = [SessionEventRecorder(), SessionEventRecorder()]
        let session = Session(observers: notes)
        _ = try await session.data(for: Request(server.url("/")))
        try await session.shutdown()
        for notes in notes {
            await notes.waitUntilClosed()
            #expect(notes.words == [EventTests.fresh])
        }
        var after = session.events.makeAsyncIterator()
        guard case .closed = await after.next() else { return _ = Issue.record("not closed") }
        #expect(await after.next() == nil)
    }

    /// The end of a transfer precedes the end of the session even if an interceptor handles the error slowly.
    @Test func transferEventsPrecedeClosedEvent() async throws {
        let gate = Gate()
        let server = try MockServer { _ in .silence }
        let notes = SessionEventRecorder()
        let slow = ClosureInterceptor { request, _, next in
            do {
                return try await next(request)
            } catch {
                _ = await Task { await gate.wait() }.value
                throw error
            }
        }
        let session = Session(interceptors: [slow], observers: [notes])
        let task = Task { try await session.data(for: Request(server.url("/"))) }
        await notes.wait { $0.words.last == "sent" }
        try await session.shutdown(.immediate)
        await notes.wait { $0.words.last == "metrics" }
        #expect(!notes.isClosed)
        gate.open()
        await notes.waitUntilClosed()
        #expect(notes.words.map(\.last) == ["finished: session_closed"])
        _ = await task.result
    }

    @Test(arguments: [true, false])
    func releasedSessionEmitsClosedAndReleasesObservers(_ isUsed: Bool) async throws {
        let server = try MockServer { _ in .text("hello") }
        let notes = SessionEventRecorder()
        weak var alive: Alive?
        weak var weakSession: Session?
        do {
            let kept = Alive()
            alive = kept
            let session = Session(observers: [RetainingObserver(alive: kept, notes: notes)])
            weakSession = session
            let unread = session.events
            if isUsed { _ = try await session.data(for: Request(server.url("/"))) }
            _ = unread
        }
        await notes.waitUntilClosed()
        #expect(weakSession == nil)
        #expect(notes.words == (isUsed ? [EventTests.fresh] : []))
        // The observer's task ends right after the `closed` event.
        while alive != nil, !Task.isCancelled { await Task.yield() }
    }

    /// An observer that iterates on the session's thread does not block the transfer.
    @Test func observerOnSessionThreadReceivesEvents() async throws {
        let server = try MockServer { _ in .text("hello") }
        let count = Task {
            let session = Session()
            let events = session.events
            let counting = Task(executorPreference: session.executor) {
                var words: [String] = []
                for await event in events {
                    if case .transfer(let event) = event { words.append(event.word) }
                    if words.last == "finished" { break }
                }
                return words
            }
            _ = try await session.data(for: Request(server.url("/")))
            return await counting.value
        }
        #expect(try await count.value == EventTests.fresh)
    }

    /// Neither the loop nor the session creates events without observers.
    @Test func sessionWithoutObserversCreatesNoEvents() async throws {
        let server = try MockServer { _ in .text("hello") }
        let session = Session()
        #expect(session.core.observedRelay == nil && session.core.loop.observerOfAll == nil)
        _ = try await session.data(for: Request(server.url("/")))
        var events: AsyncStream<Session.Event>? = session.events
        #expect(session.core.observedRelay != nil && session.core.loop.observerOfAll === session.core.relay)
        withExtendedLifetime(events) {}
        events = nil
        #expect(session.core.observedRelay == nil && session.core.loop.observerOfAll == nil)
        _ = try await session.data(for: Request(server.url("/")))
        #expect(await session.hasObserver == false)
    }
}

extension Session {
    /// Whether the loop's transport has an observer.
    fileprivate var hasObserver: Bool { core.loop.deliveries.observer != nil }
}
