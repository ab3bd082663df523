// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewEngine
import CurlewTesting
import FoundationEssentials
import Testing

/// Observers of one transfer that subscribe late, leave early or do not read, and the fields of events.
@Suite(.timeLimit(.minutes(5)))
struct EventOrderTests {
    /// Returns a server that stalls its response after two bytes of five.
    private static func held(_ gate: Gate) throws -> MockServer {
        try MockServer { _ in .text("hello").fault(.stall(gate), at: .body(2)) }
    }

    @Test func eventsHaveTransferLabelAttemptMethodAndURL() async throws {
        let server = try MockServer()
        server.on(nil, "/a", .redirect(to: "/b", status: 303))
        server.on("GET", "/b", .redirect(to: "/c"))
        server.on("GET", "/c", inOrder: [.text("busy", status: 503), .text("there")])
        let session = Session(interceptors: [
            .intercept(scope: .attempt) { request, context, next in
                let response = try await next(request)
                guard response.head.status == 503 else { return response }
                await response.discard()
                return try await next(request)
            }
        ])
        var request = Request(.post, server.url("/a"), body: .text("four"))
        request.options.label = "photo"
        let transfer = session.transfer(request)
        let events = await transfer.notes()
        #expect(events.allSatisfy { $0.transfer == transfer.id && $0.label == "photo" })
        let paths = ["/a", "/b", "/c", "/c"]
        for event in events {
            #expect(event.url == server.url(paths[event.attempt - 1]), "\(event)")
            #expect(event.method == (event.attempt == 1 ? .post : .get), "\(event)")
        }
        #expect(events.map(\.attempt) == events.map(\.attempt).sorted())
        #expect(events.map(\.elapsed) == events.map(\.elapsed).sorted())
        #expect(events.filter { $0.word == "metrics" }.map(\.attempt) == [1, 2, 3, 4])
        let turns = events.filter { $0.word.hasPrefix("re") && $0.word != "resolved" && $0.word != "reused" }
        #expect(
            turns.filter { $0.word != "received" }.map { "\($0.attempt) \($0.word)" } == [
                "1 redirected 303", "2 redirected 302", "3 retried",
            ])
        guard case .redirected(_, let target) = turns.first(where: { $0.word == "redirected 303" })?.kind else {
            return _ = Issue.record("no redirect")
        }
        #expect(target == server.url("/b"))
        #expect(events.last?.word == "finished")
    }

    /// HK-12: observers receive the end of a transfer once and last, with the error that the caller gets.
    @Test(arguments: ["/whole", "/reset", "/held"], [true, false])
    func finishedIsTheLastEventAndHasTheErrorOfTheCaller(_ path: String, _ isIntercepted: Bool) async throws {
        let gate = Gate()
        let server = try MockServer { request in
            switch request.path {
            case "/reset": .text("hello").fault(.reset, at: .body(2))
            case "/held": .text("hello").fault(.stall(gate), at: .body(2))
            default: .text("hello")
            }
        }
        let notes = SessionEventRecorder()
        let session = Session(interceptors: isIntercepted ? [.adapt { _ in }] : [], observers: [notes])
        let transfer = session.transfer(Request(server.url(path)))
        let own = await transfer.notes { transfer in
            let value = Task { try await transfer.value }
            if path == "/held" {
                await gate.waitUntilReached()
                transfer.cancel()
            }
            _ = await value.result
        }
        var failure: NetworkError?
        do throws(NetworkError) { _ = try await transfer.value } catch { failure = error }
        try await session.shutdown()
        await notes.waitUntilClosed()
        let kinds: [String: NetworkError.Kind] = ["/reset": .connectionLost, "/held": .cancelled]
        #expect(failure?.kind == kinds[path])
        for events in [own, notes.transferEvents] {
            #expect(events.allSatisfy { $0.transfer == transfer.id })
            #expect(events.count { $0.isLast } == 1)
            guard case .finished(let error) = events.last?.kind else { return _ = Issue.record("no end at last") }
            #expect(error?.kind == failure?.kind)
        }
    }

    @Test(arguments: [true, false])
    func eventsAloneRunTransferThroughRedirects(_ isIntercepted: Bool) async throws {
        let server = try MockServer()
        server.on("GET", "/a", .redirect(to: "/b"))
        server.on("GET", "/b", .text("there"))
        let session = Session(interceptors: isIntercepted ? [.adapt { _ in }] : [])
        let transfer = session.transfer(Request(server.url("/a")))
        var words: [String] = []
        for await event in transfer.events { words.append(event.word) }
        #expect(words.contains("redirected 302") && words.last == "finished")
        #expect(try await transfer.value == Data("there".utf8))
        #expect(server.requestCount == 2)
    }

    @Test(arguments: [true, false])
    func lateObserverStartsWithStateEvent(_ isIntercepted: Bool) async throws {
        let gate = Gate()
        let server = try Self.held(gate)
        let session = Session(interceptors: isIntercepted ? [.adapt { _ in }] : [])
        let transfer = session.transfer(Request(server.url("/")))
        var early = transfer.events.makeAsyncIterator()
        var second = transfer.events.makeAsyncIterator()
        let start = ["queued", "resolved", "connected", "sent", "head 200"]
        #expect(await words(&early, upTo: "head 200") == start)
        #expect(await words(&second, upTo: "head 200") == start)
        var late = transfer.events.makeAsyncIterator()
        #expect(await words(&late, upTo: "is running") == ["is running"])
        gate.open()
        let end = ["received", "metrics", "finished"]
        #expect(await words(&early, upTo: "") == end)
        #expect(await words(&second, upTo: "") == end)
        #expect(await words(&late, upTo: "") == end)
        for _ in 0..<2 {
            var tooLate = transfer.events.makeAsyncIterator()
            #expect(await words(&tooLate, upTo: "") == ["is finished", "metrics", "finished"])
        }
    }

    /// The first observer subscribes after the end of the transfer.
    @Test(arguments: [true, false])
    func observerAfterTheEndReceivesMetricsAndFinished(_ isIntercepted: Bool) async throws {
        let server = try MockServer { $0.path == "/a" ? .redirect(to: "/b") : .text("hello") }
        let session = Session(interceptors: isIntercepted ? [.adapt { _ in }] : [])
        for path in ["/a", "/b"] {
            let transfer = session.transfer(Request(server.url(path)))
            _ = try await transfer.value
            for _ in 0..<2 {
                var late = transfer.events.makeAsyncIterator()
                #expect(await words(&late, upTo: "") == ["is finished", "metrics", "finished"])
            }
        }
    }

    @Test func observerOfQueuedTransferStartsWithQueuedState() async throws {
        let gate = Gate()
        let server = try MockServer { _ in .text("hello").fault(.stall(gate), at: .start) }
        let session = Session { $0.limits.connectionsPerHost = 1 }
        let first = session.transfer(Request(server.url("/"))).start()
        await gate.waitUntilReached()
        let second = session.transfer(Request(server.url("/"))).start()
        var late = second.events.makeAsyncIterator()
        #expect(await words(&late, upTo: "is queued").last == "is queued")
        gate.open()
        let rest = await words(&late, upTo: "")
        #expect(rest.first != "is queued" && rest.suffix(3) == ["received", "metrics", "finished"], "\(rest)")
        _ = try await first.value
    }

    @Test func observerBetweenRedirectsStartsWithRunningState() async throws {
        let (here, on) = (Gate(), Gate())
        let server = try MockServer { $0.path == "/a" ? .redirect(to: "/b") : .text("hello") }
        let session = Session {
            $0.redirects = .custom { _ in
                here.open()
                await on.wait()
                return .follow
            }
        }
        let transfer = session.transfer(Request(server.url("/a"))).start()
        await here.wait()
        var late = transfer.events.makeAsyncIterator()
        #expect(await late.next()?.word == "is running")
        on.open()
        let rest = await words(&late, upTo: "")
        #expect(rest.suffix(8) == EventTests.reused, "\(rest)")
        #expect(rest.contains("redirected 302"))
        #expect(try await transfer.value == Data("hello".utf8))
    }

    @Test func leavingObserversDoNotAffectOthers() async throws {
        let gate = Gate()
        let server = try Self.held(gate)
        let session = Session()
        let transfer = session.transfer(Request(server.url("/")))
        async let all = withTaskGroup(of: [String].self) { group in
            for _ in 0..<50 {
                group.addTask {
                    var events = transfer.events.makeAsyncIterator()
                    return await words(&events, upTo: "")
                }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        var leaving: AsyncStream<TransferEvent>.Iterator? = transfer.events.makeAsyncIterator()
        if var iterator = leaving { _ = await words(&iterator, upTo: "head 200") }
        leaving = nil
        let cancelled = Task {
            var count = 0
            for await _ in transfer.events { count += 1 }
            return (count, Task.isCancelled)
        }
        await Task.yield()
        cancelled.cancel()
        #expect(await cancelled.value.1)
        #expect(transfer.state == .running)
        gate.open()
        #expect(try await transfer.value == Data("hello".utf8))
        for words in await all {
            #expect(words.suffix(3) == ["received", "metrics", "finished"] || words.first == "is finished", "\(words)")
        }
    }

    /// The events of forty redirects exceed the buffer of an observer that does not read.
    @Test func slowObserverReceivesCountOfDroppedEvents() async throws {
        let server = try MockServer { $0.ordinal > 40 ? .text("hello") : .redirect(to: "/\($0.ordinal)") }
        let transfer = Session { $0.redirects = .follow(max: 50) }.transfer(Request(server.url("/")))
        let events = transfer.events
        _ = try await transfer.value
        var iterator = events.makeAsyncIterator()
        let words = await words(&iterator, upTo: "")
        let everything = 8 * 41
        let dropped = try #require(words.first.flatMap { Int($0.dropFirst("dropped ".count)) })
        // The last events may arrive after the value is returned, while the first ones are read.
        #expect(dropped + words.count - 1 == everything && 256...258 ~= words.count - 1)
        #expect(words.suffix(4) == ["head 200", "received", "metrics", "finished"])
    }

    /// An observer alone keeps neither the transfer nor the session alive.
    @Test func eventsDoNotKeepReleasedSessionAlive() async throws {
        let gate = Gate()
        let server = try Self.held(gate)
        weak var core: AnyObject?
        let notes = SessionEventRecorder()
        do {
            let session = Session(observers: [notes])
            core = session
            let transfer = session.transfer(Request(server.url("/")))
            var events = transfer.events.makeAsyncIterator()
            _ = await words(&events, upTo: "head 200")
        }
        await notes.waitUntilClosed()
        #expect(core == nil)
        #expect(notes.words.map(\.last) == ["finished: cancelled"])
        gate.open()
    }
}
