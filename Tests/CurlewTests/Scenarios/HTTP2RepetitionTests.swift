// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting
import FoundationEssentials
import Testing

/// What is sent again: what the server has certainly not acted on, and what may be repeated (RFC 9113 §8.7).
@Suite(.timeLimit(.minutes(5)))
struct HTTP2RepetitionTests {
    /// Answers the `count` first requests with `fault`, all others with "ok".
    private func scene(first count: Int, _ fault: HTTP2Script) throws -> HTTP2Scene {
        let faults = Gate()
        return try HTTP2Scene { request in
            if request.connection <= count, !faults.isOpen {
                if request.connection == count { faults.open() }
                return fault
            }
            return .respond(200, text: "ok")
        }
    }

    @Test(arguments: [Method.get, .post]) func aRefusedStreamIsSentAgain(_ method: Method) async throws {
        let scene = try scene(first: 1, .now.reset(.refusedStream))
        #expect(try await scene.session.data(for: scene.small(method)).0 == Data("ok".utf8))
        #expect(scene.server.requests.map(\.method) == [method.rawValue, method.rawValue])
        #expect(scene.server.violations.isEmpty)
    }

    @Test func aRefusedUploadIsSentAgainFromItsBeginning() async throws {
        let body = PatternBody(seed: 3, length: 1 << 20)
        let scene = try scene(first: 1, .now.reading(bytes: 100_000).reset(.refusedStream))
        #expect(try await scene.session.data(for: scene.post(.bytes(body.bytes))).0 == Data("ok".utf8))
        #expect(scene.server.requests.last?.bodySHA256 == body.sha256 && scene.server.requests.count == 2)
    }

    @Test(
        .differsWithNewerLibcurl("8.14 sends each attempt five times, and may end a POST as not repeated."),
        arguments: [Method.get, .post]) func aStreamThatIsAlwaysRefused(_ method: Method) async throws
    {
        let scene = try HTTP2Scene { _ in .now.reset(.refusedStream) }
        let error = try await scene.failure(scene.small(method))
        #expect(error.kind == .streamRefused && error.phase == .waiting && error.response == nil, "\(error)")
        #expect(error.retriability == .safe(after: nil))
        // Three times at once, then four times after a while.
        #expect(scene.server.requests.count == 7)
    }

    @Test(
        .differsWithNewerLibcurl("8.23 resets the stream with the code of the GOAWAY, which Curlew does not repeat."),
        arguments: [HTTP2ErrorCode.noError, .enhanceYourCalm], [true, false])
    func aRequestThatAGoAwayLeavesOutIsSentAgain(_ code: HTTP2ErrorCode, _ closes: Bool) async throws {
        let away = HTTP2Script.now.goAway(upTo: 0, code)
        let scene = try scene(first: 1, closes ? away.fault(.close) : away)
        #expect(try await scene.session.data(for: scene.request()).0 == Data("ok".utf8))
        #expect(scene.server.requests.map(\.connection) == [1, 2])
    }

    @Test(arguments: [HTTP2ErrorCode.noError, .enhanceYourCalm], [true, false])
    func aPostThatAGoAwayLeavesOutIsSentAgain(_ code: HTTP2ErrorCode, _ closes: Bool) async throws {
        let away = HTTP2Script.now.goAway(upTo: 0, code)
        let scene = try scene(first: 1, closes ? away.fault(.close) : away)
        #expect(try await scene.session.data(for: scene.small(.post)).0 == Data("ok".utf8))
        #expect(scene.server.requests.map(\.connection) == [1, 2])
    }

    /// - Parameter last: The last stream that the server acts on.
    @Test(
        .differsWithNewerLibcurl("8.14 says no word of the GOAWAY that the request's stream is left out of."),
        arguments: [1, 3]) func aPostOnTheSecondStreamIsSentAgainIfItIsLeftOut(_ last: Int) async throws
    {
        let scene = try HTTP2Scene { request in
            guard request.connection == 1, request.stream > 1 else { return .respond(200, text: "ok") }
            return .afterRequest.goAway(upTo: last).fault(.close)
        }
        _ = try await scene.session.data(for: scene.request())
        if last == 1 {
            #expect(try await scene.session.data(for: scene.small(.post)).0 == Data("ok".utf8))
            #expect(scene.server.requests.map(\.connection) == [1, 1, 2])
        } else {
            #expect(try await scene.failure(scene.small(.post)).retriability == .ifIdempotent)
            #expect(scene.server.requests.map(\.connection) == [1, 1])
        }
    }

    /// The server says that it acts on the stream, and breaks the rules or the connection then.
    @Test(arguments: [
        HTTP2Script.now.goAway(upTo: 1).fault(.close), .now.goAway(upTo: 1).fields([("a", "b")]),
        .now.goAway(upTo: 1, .internalError).frame(.data(0, [1])), .now.goAway(upTo: 1).reset(.internalError),
        .now.frame(.data(0, [1])),
    ]) func aPostThatAGoAwayIncludesIsSentOnce(_ fault: HTTP2Script) async throws {
        let scene = try HTTP2Scene { _ in fault }
        let error = try await scene.failure(scene.small(.post))
        #expect(error.retriability == .ifIdempotent && scene.server.requests.count == 1, "\(error)")
    }

    @Test(arguments: [Method.put, .post]) func anUploadThatAGoAwayLeavesOutIsSentAgain(_ method: Method) async throws {
        let body = PatternBody(seed: 4, length: 1 << 20)
        let scene = try scene(first: 1, .now.reading(bytes: 100_000).goAway(upTo: 0))
        let request = Request(method, scene.server.url("/"), body: .bytes(body.bytes))
        #expect(try await scene.session.data(for: request).0 == Data("ok".utf8))
        #expect(scene.server.requests.map(\.connection) == [1, 2])
        #expect(scene.server.requests.last?.bodySHA256 == body.sha256)
    }

    @Test(
        .differsWithNewerLibcurl("8.14 knows that the stream was left out, and sends the request again by itself."),
        arguments: [Method.get, .post]) func aServerThatAlwaysGoesAway(_ method: Method) async throws
    {
        let scene = try HTTP2Scene { _ in .now.goAway(upTo: 0) }
        let error = try await scene.failure(scene.small(method))
        #expect([.connectionLost, .streamRefused].contains(error.kind) && error.phase == .waiting)
        #expect(error.retriability == .safe(after: nil))
        #expect(scene.server.requests.count == 2)
    }

    /// Only what may be repeated is, and only where the connection may have been stale (RFC 9110 §9.2.2).
    @Test(arguments: [Method.get, .post], [SocketFault.close, .cut])
    func aConnectionThatServedBeforeAndEnds(_ method: Method, _ end: SocketFault) async throws {
        let scene = try HTTP2Scene { request in
            request.connection == 1 && request.stream > 1 ? .afterRequest.fault(end) : .respond(200, text: "ok")
        }
        _ = try await scene.session.data(for: scene.request())
        if method == .get {
            #expect(try await scene.session.data(for: scene.small(.get)).0 == Data("ok".utf8))
            #expect(scene.server.requests.map(\.connection) == [1, 1, 2])
        } else {
            let error = try await scene.failure(scene.small(.post))
            #expect(error.kind == .connectionLost && error.retriability == .ifIdempotent, "\(error)")
            #expect(scene.server.requests.map(\.connection) == [1, 1])
        }
    }

    @Test(
        .differsWithNewerLibcurl("8.14 ends with an error of the HTTP/2 framing layer where 7.88 tells of the end."),
        arguments: [SocketFault.close, .cut])
    func aPostIsSentAgainWhereThatIsAskedFor(_ end: SocketFault) async throws {
        let scene = try HTTP2Scene { request in
            request.connection == 1 && request.stream > 1 ? .afterRequest.fault(end) : .respond(200, text: "ok")
        }
        _ = try await scene.session.data(for: scene.request())
        var request = scene.small(.post)
        request.options.connection = .resending
        #expect(try await scene.session.data(for: request).0 == Data("ok".utf8))
        #expect(scene.server.requests.map(\.connection) == [1, 1, 2])
    }

    /// The stream was acted on, or may have been.
    @Test(
        .differsWithNewerLibcurl("It repeats a GET that a GOAWAY takes in when the connection closes."),
        arguments: [
            HTTP2Script.now.goAway(upTo: 1).fault(.close), .now.reset(.internalError), .now.reset(.cancel),
            .respond(200, [("content-length", "4")], text: "abc"), .now.head(200).body("abc").reset(.cancel),
        ]) func whatMayHaveBeenActedOnIsSentOnce(_ fault: HTTP2Script) async throws
    {
        let scene = try HTTP2Scene { _ in fault }
        _ = try await scene.failure()
        #expect(scene.server.requests.count == 1)
    }

    /// To libcurl 7.88 a stream that was reset on a connection that then ended looks as if it had been refused.
    @Test(
        .differsWithNewerLibcurl("With 8.23 the POST on a later connection ends as not repeated before it is sent."),
        arguments: [HTTP2ErrorCode.internalError, .cancel, .noError], [SocketFault.close, .cut])
    func aPostThatWasResetIsSentOnce(_ code: HTTP2ErrorCode, _ end: SocketFault) async throws {
        let scene = try HTTP2Scene { request in
            request.method == "POST" ? .afterRequest.reset(code).fault(end) : .respond(200, text: "ok")
        }
        for _ in 0..<5 {
            // The connection has served before.
            _ = try await scene.session.data(for: scene.request())
            let error = try await scene.failure(scene.small(.post))
            #expect(error.kind == .connectionLost && error.retriability != .safe(after: nil), "\(error)")
        }
        #expect(scene.server.requests.filter { $0.method == "POST" }.count == 5)
    }
}

extension HTTP2Scene {
    /// A request with a body of some bytes, or with none where the method has none.
    func small(_ method: Method) -> Request { method == .post ? post(.text("order")) : request() }
}
