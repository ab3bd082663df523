// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting
import FoundationEssentials
import Testing

/// Retries of requests that the server has not processed, and of idempotent requests (RFC 9113 §8.7).
@Suite(.timeLimit(.minutes(5)))
struct HTTP2RetryTests {
    /// Returns a scene that responds with `fault` on the first `count` connections, and with "ok" afterwards.
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

    @Test(arguments: [Method.get, .post]) func refusedStreamIsRetried(_ method: Method) async throws {
        let scene = try scene(first: 1, .now.reset(.refusedStream))
        #expect(try await scene.session.data(for: scene.small(method)).0 == Data("ok".utf8))
        #expect(scene.server.requests.map(\.method) == [method.rawValue, method.rawValue])
        #expect(scene.server.violations.isEmpty)
    }

    @Test func refusedUploadIsRetriedFromItsStart() async throws {
        let body = PatternBody(seed: 3, length: 1 << 20)
        let scene = try scene(first: 1, .now.reading(bytes: 100_000).reset(.refusedStream))
        #expect(try await scene.session.data(for: scene.post(.bytes(body.bytes))).0 == Data("ok".utf8))
        #expect(scene.server.requests.last?.bodySHA256 == body.sha256 && scene.server.requests.count == 2)
    }

    @Test(
        .differsWithNewerLibcurl("8.14 sends each attempt five times, and may end a POST as not retriable."),
        arguments: [Method.get, .post]) func permanentlyRefusedStreamFailsAfterSevenAttempts(_ method: Method)
        async throws
    {
        let scene = try HTTP2Scene { _ in .now.reset(.refusedStream) }
        let error = try await scene.failure(scene.small(method))
        #expect(error.kind == .streamRefused && error.phase == .waiting && error.response == nil, "\(error)")
        #expect(error.retriability == .safe(after: nil))
        // Three attempts at once, then four after a delay.
        #expect(scene.server.requests.count == 7)
    }

    @Test(
        .differsWithNewerLibcurl("8.23 resets the stream with the code of the GOAWAY, which Curlew does not retry."),
        arguments: [HTTP2ErrorCode.noError, .enhanceYourCalm], [true, false])
    func requestExcludedByGoAwayIsRetried(_ code: HTTP2ErrorCode, _ closes: Bool) async throws {
        let away = HTTP2Script.now.goAway(upTo: 0, code)
        let scene = try scene(first: 1, closes ? away.fault(.close) : away)
        #expect(try await scene.session.data(for: scene.request()).0 == Data("ok".utf8))
        #expect(scene.server.requests.map(\.connection) == [1, 2])
    }

    @Test(arguments: [HTTP2ErrorCode.noError, .enhanceYourCalm], [true, false])
    func postExcludedByGoAwayIsRetried(_ code: HTTP2ErrorCode, _ closes: Bool) async throws {
        let away = HTTP2Script.now.goAway(upTo: 0, code)
        let scene = try scene(first: 1, closes ? away.fault(.close) : away)
        #expect(try await scene.session.data(for: scene.small(.post)).0 == Data("ok".utf8))
        #expect(scene.server.requests.map(\.connection) == [1, 2])
    }

    /// - Parameter last: The last stream that the server processes.
    @Test(
        .differsWithNewerLibcurl("8.14 does not report the GOAWAY that excludes the request's stream."),
        arguments: [1, 3]) func postOnLaterStreamIsRetriedOnlyIfExcludedByGoAway(_ last: Int) async throws
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

    /// The server announces that it processes the stream, and then violates the protocol or closes the connection.
    @Test(arguments: [
        HTTP2Script.now.goAway(upTo: 1).fault(.close), .now.goAway(upTo: 1).fields([("a", "b")]),
        .now.goAway(upTo: 1, .internalError).frame(.data(0, [1])), .now.goAway(upTo: 1).reset(.internalError),
        .now.frame(.data(0, [1])),
    ]) func postIncludedByGoAwayIsSentOnce(_ fault: HTTP2Script) async throws {
        let scene = try HTTP2Scene { _ in fault }
        let error = try await scene.failure(scene.small(.post))
        #expect(error.retriability == .ifIdempotent && scene.server.requests.count == 1, "\(error)")
    }

    @Test(arguments: [Method.put, .post]) func uploadExcludedByGoAwayIsRetried(_ method: Method) async throws {
        let body = PatternBody(seed: 4, length: 1 << 20)
        let scene = try scene(first: 1, .now.reading(bytes: 100_000).goAway(upTo: 0))
        let request = Request(method, scene.server.url("/"), body: .bytes(body.bytes))
        #expect(try await scene.session.data(for: request).0 == Data("ok".utf8))
        #expect(scene.server.requests.map(\.connection) == [1, 2])
        #expect(scene.server.requests.last?.bodySHA256 == body.sha256)
    }

    @Test(
        .differsWithNewerLibcurl("8.14 knows that the stream was excluded, and resends the request by itself."),
        arguments: [Method.get, .post]) func permanentGoAwayFailsAfterTwoAttempts(_ method: Method) async throws
    {
        let scene = try HTTP2Scene { _ in .now.goAway(upTo: 0) }
        let error = try await scene.failure(scene.small(method))
        #expect([.connectionLost, .streamRefused].contains(error.kind) && error.phase == .waiting)
        #expect(error.retriability == .safe(after: nil))
        #expect(scene.server.requests.count == 2)
    }

    /// Only an idempotent request is retried, and only if the connection may have been stale (RFC 9110 §9.2.2).
    @Test(arguments: [Method.get, .post], [SocketFault.close, .cut])
    func onlyIdempotentRequestIsRetriedOnReusedConnection(_ method: Method, _ end: SocketFault) async throws {
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
        .differsWithNewerLibcurl("8.14 ends with an error of the HTTP/2 framing layer where 7.88 reports the end."),
        arguments: [SocketFault.close, .cut])
    func postIsResentWithResendingOption(_ end: SocketFault) async throws {
        let scene = try HTTP2Scene { request in
            request.connection == 1 && request.stream > 1 ? .afterRequest.fault(end) : .respond(200, text: "ok")
        }
        _ = try await scene.session.data(for: scene.request())
        var request = scene.small(.post)
        request.options.connection = .resending
        #expect(try await scene.session.data(for: request).0 == Data("ok".utf8))
        #expect(scene.server.requests.map(\.connection) == [1, 1, 2])
    }

    /// The server processed the stream, or may have processed it.
    @Test(
        .differsWithNewerLibcurl("It retries a GET that a GOAWAY includes when the connection closes."),
        arguments: [
            HTTP2Script.now.goAway(upTo: 1).fault(.close), .now.reset(.internalError), .now.reset(.cancel),
            .respond(200, [("content-length", "4")], text: "abc"), .now.head(200).body("abc").reset(.cancel),
        ]) func possiblyProcessedRequestIsSentOnce(_ fault: HTTP2Script) async throws
    {
        let scene = try HTTP2Scene { _ in fault }
        _ = try await scene.failure()
        #expect(scene.server.requests.count == 1)
    }

    /// libcurl 7.88 reports a stream that was reset as refused if the connection then ends.
    @Test(
        .differsWithNewerLibcurl("With 8.23 the POST on a later connection ends as not retriable before it is sent."),
        arguments: [HTTP2ErrorCode.internalError, .cancel, .noError], [SocketFault.close, .cut])
    func resetPostIsSentOnce(_ code: HTTP2ErrorCode, _ end: SocketFault) async throws {
        let scene = try HTTP2Scene { request in
            request.method == "POST" ? .afterRequest.reset(code).fault(end) : .respond(200, text: "ok")
        }
        for _ in 0..<5 {
            // The connection has served a request before.
            _ = try await scene.session.data(for: scene.request())
            let error = try await scene.failure(scene.small(.post))
            #expect(error.kind == .connectionLost && error.retriability != .safe(after: nil), "\(error)")
        }
        #expect(scene.server.requests.filter { $0.method == "POST" }.count == 5)
    }
}

extension HTTP2Scene {
    /// Returns a POST with a small body, or a GET.
    func small(_ method: Method) -> Request { method == .post ? post(.text("order")) : request() }
}
