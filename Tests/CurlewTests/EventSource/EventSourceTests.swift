// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting
import FoundationEssentials
import Testing

/// Reconnections and ends of event sources (HTML §9.2.1 to §9.2.3).
@Suite(.timeLimit(.minutes(5)))
struct EventSourceTests {
    private static let end = MockResponse.status(204)

    @Test func reconnectionSendsTheLastEventID() async throws {
        let scene = try EventSourceScene([
            .events("id:1\ndata:a\n\ndata:b\n\n"), .events("id:é漢\ndata:c\n\nid:lost\ndata:d\n"), .events("id\n\n"),
            .events("data:e\n\n"), Self.end,
        ])
        let (data, error) = await scene.read(scene.source())
        #expect(data == ["a", "b", "c", "e"] && error == nil)
        #expect(scene.lastEventIDs == [nil, "1", "é漢", nil, nil], "an empty ID sends no Last-Event-ID")
        #expect(await scene.clock.notes.all() == [.seconds(3), .seconds(3), .seconds(3), .seconds(3)])
        let first = try #require(scene.server.requests.first)
        #expect(first.field("Accept") == "text/event-stream" && first.field("Cache-Control") == "no-store")
        #expect(scene.server.violations.isEmpty)
    }

    @Test func lastEventIDOutlivesConnections() async throws {
        let scene = try EventSourceScene([.events("data:a\n\n"), .events("data:b\n\nid:9\n\n"), Self.end])
        var identifiers: [String] = []
        for try await event in scene.source(lastEventID: "7") { identifiers.append(event.id) }
        #expect(identifiers == ["7", "7"] && scene.lastEventIDs == ["7", "7", "9"])
    }

    /// An ID with a control character is not sent, because no field can contain it.
    @Test func lastEventIDWithControlCharactersIsNotSent() async throws {
        let scene = try EventSourceScene([.events("id:a\u{1}b\ndata:a\n\n"), Self.end])
        #expect(await scene.read(scene.source()).1 == nil)
        #expect(scene.lastEventIDs == [nil, nil])
    }

    @Test func callsCacheControlTakesPrecedence() async throws {
        let scene = try EventSourceScene([Self.end])
        #expect(await scene.read(scene.source(fields: [.cacheControl: "no-cache"])).0 == [])
        #expect(await scene.read(scene.source(fields: [.cacheControl: nil])).0 == [])
        #expect(scene.server.requests.map { $0.field("Cache-Control") } == ["no-cache", nil])
    }

    @Test func retryFieldSetsTheWait() async throws {
        let scene = try EventSourceScene([
            .events("retry:50\n\n"), .events(": nothing\n"), .events("retry:70\ndata:a\n\nretry:80\n"), Self.end,
        ])
        #expect(await scene.read(scene.source()).0 == ["a"])
        let waits: [Duration] = [.milliseconds(50), .milliseconds(50), .milliseconds(80)]
        #expect(await scene.clock.notes.all() == waits, "a retry line is valid without an event")
    }

    @Test func retryAfterSetsTheWaitForAnyMethod() async throws {
        let busy = MockResponse.text("busy", status: 503).field("Retry-After", "60")
        let scene = try EventSourceScene([busy, .events("retry:0\ndata:a\n\n"), .events("data:b\n\n"), Self.end])
        let (data, error) = await scene.read(scene.source(.post, .text("x"), attempts: 0))
        #expect(data == [] && error?.response?.status == 503, "attempts below one count as one")
        #expect(await scene.read(scene.source(.post, .text("x"))).0 == ["a", "b"])
        let again = try EventSourceScene([busy, .events("retry:0\ndata:a\n\n"), .events("data:b\n\n"), Self.end])
        #expect(await again.read(again.source(.post, .text("x"))).0 == ["a", "b"])
        // A `retry` of zero waits 10 ms.
        #expect(await again.clock.notes.all() == [.seconds(60), .milliseconds(10), .milliseconds(10)])
    }

    @Test func attemptsBelowOneAllowReconnectionsAfterEvents() async throws {
        let scene = try EventSourceScene([.events("data:a\n\n"), .events("data:b\n\n"), Self.end])
        let (data, error) = await scene.read(scene.source(attempts: 0))
        #expect(data == ["a", "b"] && error == nil)
    }

    @Test func valuesEndAtTheEndMarker() async throws {
        let text = "data:1\n\ndata:2\n\ndata:[DONE]\n\ndata:3\n\n"
        for size in [3, 1000] {
            let scene = try EventSourceScene([.events(text).chunked(size: size), .events(text)])
            var values: [Int] = []
            for try await value in scene.api.stream("events", using: .serverSentEvents(of: Int.self, until: "[DONE]")) {
                values.append(value)
            }
            #expect(values == [1, 2])
            let error = try await networkError {
                for try await _ in scene.api.stream("events", using: .serverSentEvents(of: Int.self)) {}
            }
            #expect(error.kind == .decodingFailed)
        }
    }

    /// The wait grows with each temporary failure, and the first byte of a stream resets it.
    @Test func waitsGrowWithTemporaryFailures() async throws {
        let busy = MockResponse.text("busy", status: 503)
        let scene = try EventSourceScene([
            .text("", status: 500), busy, busy.field("Retry-After", "60"), .text("", status: 429), .events(":\n"),
            busy.closing(),
            .status(200).fault(.reset, at: .start), .events("data:cut\n\ndata:").fault(.close, at: .body(12)), Self.end,
        ])
        let (data, error) = await scene.read(scene.source())
        #expect(data == ["cut"] && error == nil)
        let waits: [Int] = [3, 6, 60, 24, 3, 3, 6, 3]
        #expect(await scene.clock.notes.all() == waits.map { .seconds($0) })
    }

    @Test func stateChangesAreReported() async throws {
        let scene = try EventSourceScene([.events("data:a\n\n"), .text("", status: 500), Self.end])
        #expect(await scene.read(scene.source()).0 == ["a"])
        #expect(
            await scene.states.all() == [
                "connecting", "open 200", "waiting 3.0 seconds after the end", "connecting",
                "waiting 3.0 seconds after unacceptable status", "connecting", "closed by the server",
            ])
    }

    @Test(arguments: [400, 401, 404, 410, 501, 505]) func permanentStatusCodesEndTheSource(_ status: Int) async throws {
        let scene = try EventSourceScene([.events("data:a\n\n"), .text("no", status: status)])
        let (data, error) = await scene.read(scene.source())
        #expect(data == ["a"] && error?.kind == .unacceptableStatus && error?.body == Array("no".utf8))
        #expect(await scene.states.all().last == "closed by unacceptable status")
        #expect(scene.server.requests.count == 2)
    }

    @Test func otherContentTypesEndTheSource() async throws {
        let answers: [MockResponse] = [.text("data:a\n\n"), .json("{}"), .status(200), .text("")]
        for answer in answers {
            let scene = try EventSourceScene([answer])
            let (data, error) = await scene.read(scene.source())
            #expect(data == [] && error?.kind == .unacceptableContentType)
            #expect(scene.server.requests.count == 1)
        }
        let scene = try EventSourceScene([
            .status(200, [("Content-Type", "Text/Event-Stream; charset=latin1")], body: Array("data:é\n\n".utf8)),
            Self.end,
        ])
        #expect(await scene.read(scene.source()).0 == ["é"], "always UTF-8 (§9.2.6)")
    }

    @Test func attemptsAreLimited() async throws {
        let scene = try EventSourceScene([.events("data:a\n\n"), .text("", status: 500)])
        let (data, error) = await scene.read(scene.source(attempts: 3))
        #expect(data == ["a"] && error?.kind == .unacceptableStatus && error?.attempts == 3)
        #expect(scene.server.requests.count == 4)
        let empty = try EventSourceScene([.events("")])
        let silence = await empty.read(empty.source(attempts: 2)).1
        #expect(silence?.kind == .connectionLost && silence?.attempts == 2 && empty.server.requests.count == 2)
        let unreachable = Client("http://127.0.0.1:1", session: Session())
        let once = unreachable.eventSource("x", reconnection: scene.reconnection(attempts: 1))
        #expect(await scene.read(once).1?.kind == .cannotConnect)
    }

    /// The session would send each of the two attempts three times.
    @Test func retriesOfTheSessionDoNotMultiplyWithReconnections() async throws {
        let scene = try EventSourceScene([.text("", status: 503)])
        let policy = RetryPolicy(limit: 2, backoff: .none, budget: nil)
        let api = Client(try BaseURL(scene.server.url("/")), session: Session { $0.retry = policy })
        let source = api.eventSource("events", reconnection: scene.reconnection(attempts: 2))
        #expect(await scene.read(source).1?.attempts == 2 && scene.server.requestCount == 2)
        let patient = api.eventSource(
            "events", options: .retry(policy), reconnection: scene.reconnection(attempts: 1))
        #expect(await scene.read(patient).1?.kind == .unacceptableStatus && scene.server.requestCount == 5)
    }

    @Test func bodiesAreResentOnReconnection() async throws {
        let scene = try EventSourceScene([.events("id:1\ndata:a\n\n"), .events("data:b\n\n"), Self.end])
        #expect(await scene.read(scene.source(.post, .json(["q": "snow"]))).0 == ["a", "b"])
        #expect(scene.server.requests.map(\.bodyText) == Array(repeating: #"{"q":"snow"}"#, count: 3))
        #expect(scene.lastEventIDs == [nil, "1", "1"])
    }

    /// A body that cannot be replayed prevents reconnections; the cause is the error that ended the connection.
    @Test func nonReplayableBodiesPreventReconnection() async throws {
        let scene = try EventSourceScene([.events("data:a\n\n")])
        let body = AsyncStream<[UInt8]> { $0.finish() }
        let (data, error) = await scene.read(scene.source(.post, .stream(body)))
        #expect(data == ["a"] && error?.kind == .bodyNotReplayable && error?.cause == nil)
        let lost = try EventSourceScene([.events("data:a\n\ndata").fault(.close, at: .body(10))])
        let cause = await lost.read(lost.source(.post, .stream(AsyncStream<[UInt8]> { $0.finish() }))).1
        #expect(cause?.kind == .bodyNotReplayable && (cause?.cause as? NetworkError)?.kind == .connectionLost)
        #expect(lost.server.requests.count == 1)
    }

    @Test func redirectsAreFollowed() async throws {
        let scene = try EventSourceScene([.redirect(to: "/other"), Self.end])
        scene.server.on("GET", "/other", .events("id:1\ndata:a\n\n"))
        #expect(await scene.read(scene.source()).0 == ["a"])
        #expect(scene.server.requests.map(\.path) == ["/events", "/other", "/events"])
        #expect(scene.lastEventIDs == [nil, nil, "1"])
    }

    /// The idle timeout counts bytes: comments keep a connection alive without events, silence ends it.
    @Test func idleTimeoutEndsASilentConnection() async throws {
        let scene = try EventSourceScene([.events(":\ndata:x").fault(.stall(Gate()), at: .body(2)), Self.end])
        let options: Request.Options = .timeouts(Timeouts(idle: .milliseconds(50)))
        let source = scene.api.eventSource("events", options: options, reconnection: scene.reconnection())
        #expect(await scene.read(source).1 == nil)
        // The last response may exceed the timeout, too.
        #expect(scene.server.requests.count >= 2)
    }

    // MARK: Ends

    @Test func leavingTheLoopClosesTheConnection() async throws {
        let gate = Gate()
        let scene = try EventSourceScene([.events("data:a\n\ndata:b\n\n").fault(.stall(gate), at: .body(8))])
        for try await event in scene.source() {
            #expect(event.data == "a")
            break
        }
        await scene.server.waitUntil(openConnections: 0)
        #expect(!gate.isOpen && scene.server.requests.count == 1)
    }

    /// Cancellation ends the wait for a reconnection, and no further request is sent.
    @Test func cancellationEndsTheWait() async throws {
        let scene = try EventSourceScene(isEndless: true, [.events("data:a\n\n")])
        let task = Task { await scene.read(scene.source()) }
        _ = await scene.clock.notes.next()
        task.cancel()
        let (data, error) = await task.value
        #expect(data == ["a"] && error?.isCancellation == true)
        #expect(scene.server.requests.count == 1)
        #expect(await scene.states.all().last == "closed by cancelled")
    }

    @Test func cancellationEndsTheConnection() async throws {
        let gate = Gate()
        let scene = try EventSourceScene([.events("data:a\n\ndata:b\n\n").fault(.stall(gate), at: .body(8))])
        let task = Task { await scene.read(scene.source()) }
        await gate.waitUntilReached()
        task.cancel()
        #expect(await task.value.1?.isCancellation == true && scene.server.requests.count == 1)
    }

    @Test func nextAfterTheEndSendsNoRequest() async throws {
        let scene = try EventSourceScene([Self.end])
        var iterator = scene.source().makeAsyncIterator()
        #expect(try await iterator.next() == nil)
        #expect(try await iterator.next() == nil && scene.server.requests.count == 1)
        let refused = try EventSourceScene([.status(404)])
        var other = refused.source().makeAsyncIterator()
        for _ in 0..<2 { #expect(try await networkError { try await other.next() }.kind == .unacceptableStatus) }
        #expect(refused.server.requests.count == 1)
    }

    /// Each iterator of a source has its own connection.
    @Test func iteratorsHaveSeparateConnections() async throws {
        let scene = try EventSourceScene([.events("id:1\ndata:a\n\n"), Self.end, .events("data:b\n\n"), Self.end])
        let source = scene.source()
        let (first, second) = (await scene.read(source).0, await scene.read(source).0)
        #expect(first == ["a"] && second == ["b"] && scene.lastEventIDs == [nil, "1", nil, nil])
    }
}
