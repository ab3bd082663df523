// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting
import FoundationEssentials
import Testing

/// Final responses that arrive before the end of the upload (RFC 9113 §8.1).
@Suite(.timeLimit(.minutes(5)))
struct HTTP2EarlyResponseTests {
    private static let body = PatternBody(seed: 1, length: 3 << 20)
    private static let length = [(name: "content-length", value: "3")]

    private func upload(_ scene: HTTP2Scene, _ method: Method = .post) -> Request {
        Request(method, scene.server.url("/"), body: .bytes(Self.body.bytes))
    }

    /// Expects the response before any timeout, and that the server never received the end of the body.
    private func expectAnswer(
        _ scene: HTTP2Scene, _ status: Int, _ location: SourceLocation = #_sourceLocation
    ) async throws {
        let (data, head) = try await scene.session.data(for: upload(scene))
        #expect(data == Data([1, 2, 3]) && head.status.code == status, sourceLocation: location)
        let request = try #require(scene.server.requests.first, sourceLocation: location)
        #expect(!request.isBodyComplete && scene.server.requests.count == 1, sourceLocation: location)
        #expect(scene.server.violations.isEmpty, sourceLocation: location)
    }

    @Test(arguments: [200, 413]) func responseIsReturnedWhileStreamWindowIsClosed(_ status: Int) async throws {
        let scene = try HTTP2Scene { _ in
            .now.withholdingWindow().reading(bytes: 65_535).respond(status, Self.length, body: [1, 2, 3])
        }
        try await expectAnswer(scene, status)
        // The upload was the only stream of the connection, so the connection closes with it.
        #expect(await scene.server.waitUntil(openConnections: 0))
    }

    @Test(arguments: [200, 413]) func responseIsReturnedWhileConnectionWindowIsClosed(_ status: Int) async throws {
        let scene = try HTTP2Scene(connection: { _ in .now.withholdingWindow().settings() }) { _ in
            .now.reading(bytes: 65_535).respond(status, Self.length, body: [1, 2, 3])
        }
        try await expectAnswer(scene, status)
    }

    @Test(arguments: [200, 413]) func responseIsReturnedWhileInitialWindowIsZero(_ status: Int) async throws {
        let scene = try HTTP2Scene(connection: { _ in .now.settings([.initialWindowSize(0)]) }) { _ in
            .now.respond(status, Self.length, body: [1, 2, 3])
        }
        try await expectAnswer(scene, status)
    }

    /// libcurl ends the stream of a failed upload at its current offset, so the server may take the body for complete.
    ///
    /// With a declared length, the server can detect that the body is incomplete.
    @Test(
        .differsWithNewerLibcurl("8.14 fails to send (55) when the server ends the stream."),
        arguments: [200, 413], [[], length])
    func responseIsReturnedWhileWindowIsOpen(_ status: Int, _ fields: [(name: String, value: String)]) async throws {
        let scene = try HTTP2Scene { _ in .now.reading(bytes: 65_535).respond(status, fields, body: [1, 2, 3]) }
        let (data, head) = try await scene.session.data(for: upload(scene))
        #expect(data == Data([1, 2, 3]) && head.status.code == status && scene.server.requests.count == 1)
    }

    /// Without a declared length, only the end of the stream marks the body as complete.
    @Test(arguments: [200, 413]) func uploadWithoutLengthIsNotMarkedComplete(_ status: Int) async throws {
        let scene = try HTTP2Scene { _ in .now.reading(bytes: 65_535).respond(status, Self.length, body: [1, 2, 3]) }
        let chunks = AsyncStream<[UInt8]> { feed in
            for start in stride(from: 0, to: Self.body.length, by: 64 << 10) {
                feed.yield(Self.body.bytes(in: start..<start + 64 << 10))
            }
            feed.finish()
        }
        let (data, head) = try await scene.session.data(for: scene.post(.stream(chunks)))
        #expect(data == Data([1, 2, 3]) && head.status.code == status)
        await scene.server.waitUntil(openConnections: 0)
        let request = try #require(scene.server.requests.first)
        #expect(!request.isBodyComplete && request.bodyLength < Self.body.length)
    }

    /// The reset arrives after the client has read the head (RFC 9113 §8.1: such a response must not be discarded).
    @Test(arguments: [200, 413], [[], length]) func responseIsReturnedWhenAResetFollows(
        _ status: Int, _ fields: [(name: String, value: String)]
    ) async throws {
        let gate = Gate()
        let scene = try HTTP2Scene { _ in
            .now.withholdingWindow().reading(bytes: 65_535).respond(status, fields, body: [1, 2, 3])
                .fault(.stall(gate)).reset(.noError)
        }
        let transfer = scene.session.transfer(upload(scene))
        var record = StreamRecord()
        for try await element in transfer.stream {
            record.take(element)
            if record.head != nil { gate.open() }
        }
        #expect(record.body == Data([1, 2, 3]) && record.head?.status.code == status)
        #expect(scene.server.requests.count == 1)
    }

    /// libcurl may lose a response that arrives together with the reset.
    ///
    /// The transfer does not succeed then. A request that may be resent is retried over HTTP/1.1, which this server
    /// does not support.
    @Test(arguments: [Method.post, .put]) func resetTogetherWithResponseReturnsItOrFails(_ method: Method) async throws
    {
        let scene = try HTTP2Scene { _ in
            .now.withholdingWindow().reading(bytes: 65_535).respond(413, body: [1, 2, 3]).reset(.noError)
        }
        do {
            let (data, head) = try await scene.session.data(for: upload(scene, method))
            #expect(data == Data([1, 2, 3]) && head.status == .contentTooLarge)
        } catch {
            #expect(error.phase == .sending && error.response == nil)
            #expect(error.kind == .connectionLost)
            #expect(scene.server.connectionCount == (method == .post ? 1 : 2))
        }
    }

    /// Over HTTP/2, libcurl does not report the end of a response before the request body is sent.
    ///
    /// Without a declared length, a closed window then ends in the idle timeout. Newer versions of libcurl end the
    /// upload when the response has an error status.
    @Test(arguments: [200, 413]) func responseWithoutLengthTimesOutBehindClosedWindow(_ status: Int) async throws {
        // Long enough for the response to arrive even if everything takes ten times as long.
        let scene = try HTTP2Scene(idle: .seconds(4)) { _ in
            .now.withholdingWindow().reading(bytes: 65_535).respond(status, body: [1, 2, 3])
        }
        if LibcurlInUse.isNewer, status >= 400 {
            let (data, head) = try await scene.session.data(for: upload(scene))
            #expect(data == Data([1, 2, 3]) && head.status.code == status)
            return
        }
        let error = try await scene.failure(upload(scene))
        #expect(error.kind == .timedOut && error.phase == .receiving && error.response?.status.code == status)
    }
}
