// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting
import FoundationEssentials
import Testing

/// Errors of HTTP/2 streams and connections, with their kind and phase (RFC 9113 §5.4).
@Suite(.timeLimit(.minutes(5)))
struct HTTP2FaultTests {
    @Test(arguments: [HTTP2ErrorCode.internalError, .cancel, .enhanceYourCalm])
    func streamResetBeforeTheHeadIsReported(_ code: HTTP2ErrorCode) async throws {
        let scene = try HTTP2Scene { _ in .afterRequest.reset(code) }
        let error = try await scene.failure()
        #expect(error.kind == .connectionLost && error.phase == .waiting && error.response == nil)
        #expect(error.retriability == .safe(after: nil))
        #expect(try await scene.failure(scene.post(.text("order"))).retriability == .ifIdempotent)
    }

    @Test(arguments: [HTTP2ErrorCode.internalError, .cancel, .protocolError])
    func streamResetInsideTheBodyIsReported(_ code: HTTP2ErrorCode) async throws {
        let gate = Gate()
        let scene = try HTTP2Scene { _ in .now.head(200).body("abc").fault(.stall(gate)).reset(code) }
        let error = try await scene.failureAfterHead(opening: gate)
        // nghttp2 reports a protocol violation by the server with the same code.
        #expect(error.kind == (code == .protocolError ? .invalidResponse : .connectionLost))
        #expect(error.phase == .receiving && error.response?.status == .ok)
    }

    @Test(arguments: [HTTP2ErrorCode.noError, .internalError, .refusedStream])
    func streamResetAfterTheEndIsIgnored(_ code: HTTP2ErrorCode) async throws {
        let scene = try HTTP2Scene { _ in .respond(200, text: "whole").reset(code) }
        #expect(try await scene.session.data(for: scene.request()).0 == Data("whole".utf8))
    }

    @Test func streamResetInsideAnUploadIsReported() async throws {
        let scene = try HTTP2Scene { _ in .now.reading(bytes: 100_000).reset(.internalError) }
        let body = PatternBody(seed: 1, length: 3 << 20)
        let error = try await scene.failure(scene.post(.bytes(body.bytes)))
        #expect(error.kind == .connectionLost && error.phase == .sending && error.retriability == .ifIdempotent)
    }

    @Test(arguments: [SocketFault.close, .cut, .reset])
    func connectionLostBeforeTheHeadIsReported(_ fault: SocketFault) async throws {
        let scene = try HTTP2Scene { _ in .afterRequest.fault(fault) }
        let error = try await scene.failure(scene.post(.text("order")))
        #expect(error.kind == .connectionLost && error.phase == .waiting && error.response == nil)
        #expect(error.retriability == .ifIdempotent && scene.server.requests.count == 1)
    }

    @Test(arguments: [SocketFault.close, .cut, .reset], [[], [(name: "content-length", value: "10")]])
    func connectionLostInsideTheBodyIsReported(
        _ fault: SocketFault, _ fields: [(name: String, value: String)]
    ) async throws {
        let gate = Gate()
        let scene = try HTTP2Scene { _ in .now.head(200, fields).body("abc").fault(.stall(gate)).fault(fault) }
        let error = try await scene.failureAfterHead(opening: gate)
        #expect(error.kind == .connectionLost && error.phase == .receiving && error.response?.status == .ok)
    }

    @Test(arguments: [
        (HTTP2Script.now, NetworkError.Phase.waiting), (.now.head(103), .waiting), (.now.head(200), .receiving),
        (.now.head(200).body("abc"), .receiving),
    ]) func silentServerTimesOut(_ script: HTTP2Script, _ phase: NetworkError.Phase) async throws {
        let scene = try HTTP2Scene(idle: .seconds(2)) { _ in script }
        let error = try await scene.failure()
        #expect(error.kind == .timedOut && error.phase == phase)
    }

    @Test func pingsDoNotExtendTheIdleTimeout() async throws {
        let scene = try HTTP2Scene(idle: .milliseconds(700)) { _ in
            (0..<200).reduce(.now) { script, _ in script.frame(.ping()).fault(.pause(.milliseconds(50))) }
        }
        let error = try await scene.failure()
        #expect(error.kind == .timedOut && error.phase == .waiting)
    }

    @Test(arguments: [HTTP2Frame.ping(), .settings([.maxConcurrentStreams(10)])])
    func frameFloodsEndTheTransfer(_ frame: HTTP2Frame) async throws {
        let scene = try HTTP2Scene(idle: .seconds(5)) { _ in .now.flood(frame) }
        let error = try await scene.failure()
        // Depending on timing, nghttp2, the full connection or the idle timeout ends the transfer first.
        #expect([.connectionLost, .invalidResponse, .timedOut].contains(error.kind), "\(error)")
        #expect(error.phase == .waiting)
    }
}

/// Unusual but valid HTTP/2 responses.
@Suite(.timeLimit(.minutes(5)))
struct HTTP2ResponseTests {
    @Test func informationalHeadsAndTrailersAreAccepted() async throws {
        let scene = try HTTP2Scene { _ in
            .now.head(103, [("link", "</a>")]).head(103).head(200, [("a", "b")]).body("abc").trailers([("x-sum", "1")])
        }
        let response = try await scene.session.transfer(scene.request()).response()
        #expect(response.status == .ok && response.head["a"] == "b" && response.value == Data("abc".utf8))
        #expect(response.head.version == .http2 && scene.server.violations.isEmpty)
    }

    @Test func responsesWithoutBodiesReturnNoData() async throws {
        let scene = try HTTP2Scene { request in
            switch request.path {
            case "/204": .respond(204)
            case "/304": .respond(304, [("content-length", "10")])
            default: .respond(200, [("content-length", "10")])
            }
        }
        for (method, path, status) in [(Method.head, "/", 200), (.get, "/204", 204), (.get, "/304", 304)] {
            let (data, head) = try await scene.session.data(for: Request(method, scene.server.url(path)))
            #expect(data.isEmpty && head.status.code == status)
        }
        #expect(scene.server.connectionCount == 1)
    }

    @Test func longHeadWithinTheLimitsIsReturned() async throws {
        let value = String(repeating: "v", count: 40_000)
        let scene = try HTTP2Scene { _ in .respond(200, [("x-long", value)]) }
        let (_, head) = try await scene.session.data(for: scene.request())
        #expect(head["x-long"] == value)
    }

    @Test func bodyLargerThanTheWindowsIsComplete() async throws {
        let body = PatternBody(seed: 5, length: 4 << 20)
        let scene = try HTTP2Scene { _ in .respond(200, pattern: body) }
        let (data, _) = try await scene.session.data(for: scene.request())
        #expect(SHA256Stream.hex(of: data) == body.sha256 && scene.server.violations.isEmpty)
    }

    @Test(.differsWithNewerLibcurl("8.14 fails to send (55) when the server ends the stream."))
    func uploadWaitsForItsWindow() async throws {
        let gate = Gate()
        let scene = try HTTP2Scene { _ in
            .now.withholdingWindow().reading(bytes: 65_535).fault(.stall(gate)).replenishingWindow().respond(201)
        }
        let body = PatternBody(seed: 6, length: 1 << 20)
        let transfer = scene.session.transfer(scene.post(.bytes(body.bytes)))
        transfer.start()
        await gate.waitUntilReached()
        #expect(scene.server.requests.map(\.bodyLength) == [65_535])
        gate.open()
        #expect(try await transfer.response().status == .created)
    }
}
