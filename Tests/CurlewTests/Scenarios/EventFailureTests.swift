// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting
import FoundationEssentials
import Testing

/// The events of transfers that fail: the failure is the last event and occurs once.
@Suite(.timeLimit(.minutes(5)))
struct EventFailureTests {
    private struct Odd: Error {}

    private func heard(
        _ request: Request, _ style: CallStyle, _ interceptors: [any Interceptor] = [],
        configure: (inout Session.Configuration) -> Void = { _ in }
    ) async throws -> [String] {
        let configuration = Session.Configuration(configure)
        let words = try await wordsHeard(of: [request], style) {
            Session(configuration, interceptors: interceptors, observers: [$0])
        }
        #expect(words.count == 1)
        return words.first ?? []
    }

    @Test(arguments: CallStyle.allCases)
    func refusedConnectionEndsWithCannotConnect(_ style: CallStyle) async throws {
        let port = try #require(ClosedPort())
        let words = try await heard(Request("http://127.0.0.1:\(port.number)/"), style)
        #expect(words == ["queued", "resolved", "metrics", "finished: cannot_connect"])
    }

    @Test(arguments: CallStyle.allCases)
    func resetConnectionEndsWithConnectionLost(_ style: CallStyle) async throws {
        let server = try MockServer { _ in .text("hello").fault(.reset, at: .body(2)) }
        let words = try await heard(Request(server.url("/")), style)
        let end = ["metrics", "finished: connection_lost"]
        #expect(words == ["queued", "resolved", "connected", "sent", "head 200"] + end)
    }

    @Test func errorOfACollectedBodyHasItsStartAndTheDuration() async throws {
        let server = try MockServer { _ in .text("hello").fault(.close, at: .body(3)) }
        let session = Session()
        let events = session.events
        _ = try? await session.data(for: Request(server.url("/")))
        for await case .transfer(let event) in events {
            guard case .finished(let error) = event.kind else { continue }
            #expect(error?.kind == .connectionLost && error?.body == Array("hel".utf8))
            #expect(error?.duration ?? .zero > .zero)
            break
        }
    }

    @Test(arguments: CallStyle.allCases)
    func silentServerEndsWithTimedOut(_ style: CallStyle) async throws {
        let server = try MockServer { _ in .silence }
        let words = try await heard(Request(server.url("/")), style) { $0.timeouts.idle = .seconds(2) }
        #expect(words == ["queued", "resolved", "connected", "sent", "metrics", "finished: timed_out"])
    }

    @Test(arguments: CallStyle.allCases)
    func tooLargeBodyEndsWithBodyTooLarge(_ style: CallStyle) async throws {
        let server = try MockServer { _ in .bytes([UInt8](repeating: 1, count: 100)).chunked(size: 10) }
        let isStreamed = style == .stream || style == .bytes
        let words = try await heard(Request(server.url("/")), style) { $0.limits.responseBody = .bytes(50) }
        let start = ["queued", "resolved", "connected", "sent", "head 200"]
        let refused = ["metrics", "finished: body_too_large"]
        #expect(words == start + (isStreamed ? ["received", "metrics", "finished"] : refused))
    }

    @Test(arguments: CallStyle.allCases, [true, false])
    func invalidRequestEmitsOnlyFinished(_ style: CallStyle, _ isIntercepted: Bool) async throws {
        let words = try await heard("ftp://example.com/", style, isIntercepted ? [.adapt { _ in }] : [])
        #expect(words == ["finished: invalid_request"])
    }

    @Test(arguments: CallStyle.allCases)
    func interceptorErrorEndsWithInterceptorFailed(_ style: CallStyle) async throws {
        let before: [any Interceptor] = [.adapt { _ in throw Odd() }]
        #expect(try await heard("http://127.0.0.1:1/", style, before) == ["finished: interceptor_failed"])
        let server = try MockServer { _ in .text("hello") }
        let after = ClosureInterceptor { request, _, next in
            await (try next(request)).discard()
            throw Odd()
        }
        let words = try await heard(Request(server.url("/")), style, [after])
        #expect(words == EventTests.fresh.dropLast() + ["finished: interceptor_failed"])
    }

    @Test(arguments: CallStyle.allCases)
    func redirectLimitEndsWithTooManyRedirects(_ style: CallStyle) async throws {
        let server = try MockServer { _ in .redirect(to: "/again?") }
        var request = Request(server.url("/"))
        request.options.redirects = .follow(max: 1)
        let words = try await heard(request, style)
        let hop = ["sent", "head 302", "received", "metrics"]
        #expect(
            words == ["queued", "resolved", "connected"] + hop + ["redirected 302", "queued", "resolved", "reused"]
                + hop
                + ["finished: too_many_redirects"])
    }

    @Test(arguments: [CallStyle.data, .value, .stream, .bytes], [true, false])
    func cancellationWhileReceivingEndsWithCancelled(_ style: CallStyle, _ isIntercepted: Bool) async throws {
        let gate = Gate()
        let server = try MockServer { _ in .text("hello").fault(.stall(gate), at: .body(2)) }
        let notes = SessionEventRecorder()
        let session = Session(interceptors: isIntercepted ? [.adapt { _ in }] : [], observers: [notes])
        let request = Request(server.url("/"))
        let task = Task { await style.run(request, on: session) }
        await notes.wait { $0.words.last == "head 200" }
        task.cancel()
        _ = await task.value
        try await session.shutdown()
        await notes.waitUntilClosed()
        let end = ["metrics", "finished: cancelled"]
        #expect(notes.words == [["queued", "resolved", "connected", "sent", "head 200"] + end])
        gate.open()
    }

    @Test(arguments: [true, false])
    func cancellationWhileQueuedEndsWithCancelled(_ isIntercepted: Bool) async throws {
        let gate = Gate()
        let server = try MockServer { _ in .text("hello").fault(.stall(gate), at: .start) }
        let session = Session(interceptors: isIntercepted ? [.adapt { _ in }] : []) { $0.limits.connectionsPerHost = 1 }
        let first = session.transfer(Request(server.url("/"))).start()
        await gate.waitUntilReached()
        let second = session.transfer(Request(server.url("/")))
        var events = second.events.makeAsyncIterator()
        #expect(await words(&events, upTo: "queued") == ["queued"])
        second.cancel()
        #expect(await words(&events, upTo: "") == ["metrics", "finished: cancelled"])
        gate.open()
        #expect(try await first.value == Data("hello".utf8))
    }

    /// The transfer was never started, so the session's observers receive at most its last event.
    @Test(arguments: [true, false])
    func cancellationBeforeStartEndsWithCancelled(_ isIntercepted: Bool) async throws {
        let notes = SessionEventRecorder()
        let session = Session(interceptors: isIntercepted ? [.adapt { _ in }] : [], observers: [notes])
        let transfer = session.transfer("http://127.0.0.1:1/")
        let events = await transfer.notes { $0.cancel() }
        #expect(events.last?.word == "finished: cancelled")
        #expect(events.allSatisfy { $0.attempt <= 1 && $0.elapsed == .zero })
        let error = try await networkError { try await transfer.value }
        #expect(error.kind == .cancelled && error.phase == .preparing)
        try await session.shutdown()
        await notes.waitUntilClosed()
        #expect(notes.transferEvents.allSatisfy { $0.isLast })
    }

    @Test(arguments: [true, false])
    func pauseAndResumeAreEvents(_ isIntercepted: Bool) async throws {
        let gate = Gate()
        let server = try MockServer { _ in .text("hello").fault(.stall(gate), at: .body(2)) }
        let session = Session(interceptors: isIntercepted ? [.adapt { _ in }] : [])
        let transfer = session.transfer(Request(server.url("/")))
        var events = transfer.events.makeAsyncIterator()
        _ = await words(&events, upTo: "head 200")
        transfer.pause()
        #expect(await words(&events, upTo: "paused") == ["paused"])
        transfer.resume()
        #expect(await words(&events, upTo: "resumed") == ["resumed"])
        gate.open()
        #expect(await words(&events, upTo: "") == ["received", "metrics", "finished"])
    }
}
