// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting
import FoundationEssentials
import Testing

/// Final answers that come before the end of the upload they answer (RFC 9113 §8.1).
@Suite(.timeLimit(.minutes(5)))
struct HTTP2EarlyAnswerTests {
    private static let body = PatternBody(seed: 1, length: 3 << 20)
    private static let length = [(name: "content-length", value: "3")]

    private func upload(_ scene: HTTP2Scene, _ method: Method = .post) -> Request {
        Request(method, scene.server.url("/"), body: .bytes(Self.body.bytes))
    }

    /// The answer is there, before any limit strikes, and the server was never told that the body is whole.
    private func expectAnswer(
        _ scene: HTTP2Scene, _ status: Int, _ location: SourceLocation = #_sourceLocation
    ) async throws {
        let (data, head) = try await scene.session.data(for: upload(scene))
        #expect(data == Data([1, 2, 3]) && head.status.code == status, sourceLocation: location)
        let request = try #require(scene.server.requests.first, sourceLocation: location)
        #expect(!request.isBodyComplete && scene.server.requests.count == 1, sourceLocation: location)
        #expect(scene.server.violations.isEmpty, sourceLocation: location)
    }

    @Test(arguments: [200, 413]) func theWindowIsClosed(_ status: Int) async throws {
        let scene = try HTTP2Scene { _ in
            .now.withholdingWindow().reading(bytes: 65_535).respond(status, Self.length, body: [1, 2, 3])
        }
        try await expectAnswer(scene, status)
        // The connection was the upload's alone and goes with it.
        #expect(await scene.server.waitUntil(openConnections: 0))
    }

    @Test(arguments: [200, 413]) func theWindowOfTheConnectionIsClosed(_ status: Int) async throws {
        let scene = try HTTP2Scene(connection: { _ in .now.withholdingWindow().settings() }) { _ in
            .now.reading(bytes: 65_535).respond(status, Self.length, body: [1, 2, 3])
        }
        try await expectAnswer(scene, status)
    }

    @Test(arguments: [200, 413]) func theBodyIsNotWantedAtAll(_ status: Int) async throws {
        let scene = try HTTP2Scene(connection: { _ in .now.settings([.initialWindowSize(0)]) }) { _ in
            .now.respond(status, Self.length, body: [1, 2, 3])
        }
        try await expectAnswer(scene, status)
    }

    /// libcurl ends the stream of an upload that fails where it stands, so the server may take it for whole; it knows
    /// better from the length that was announced.
    @Test(
        .differsWithNewerLibcurl("8.14 fails to send (55) when the server ends the stream."),
        arguments: [200, 413], [[], length])
    func theWindowIsOpen(_ status: Int, _ fields: [(name: String, value: String)]) async throws {
        let scene = try HTTP2Scene { _ in .now.reading(bytes: 65_535).respond(status, fields, body: [1, 2, 3]) }
        let (data, head) = try await scene.session.data(for: upload(scene))
        #expect(data == Data([1, 2, 3]) && head.status.code == status && scene.server.requests.count == 1)
    }

    /// Of a body without a length the end of the stream is all that tells that it is whole.
    @Test(arguments: [200, 413]) func aBodyWithoutALengthIsNeverCutUnnoticed(_ status: Int) async throws {
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

    /// The reset comes when the client has seen the head (RFC 9113 §8.1: such an answer must not be discarded).
    @Test(arguments: [200, 413], [[], length]) func aResetFollows(
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

    /// libcurl may lose an answer that comes in one piece with the reset.
    ///
    /// Nobody takes that for success, and a body that may be sent twice goes to the server once more, by HTTP/1.1, which
    /// this one does not speak.
    @Test(arguments: [Method.post, .put]) func aResetComesTogetherWithTheAnswer(_ method: Method) async throws {
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

    /// Over HTTP/2 libcurl does not tell that an answer has ended while the body is not sent: without a length, a closed
    /// window is silence.
    ///
    /// A newer one ends the upload with an answer that is an error.
    @Test(arguments: [200, 413]) func anAnswerWithoutALengthBeforeAClosedWindow(_ status: Int) async throws {
        // Long enough for the answer to come, also where everything takes ten times as long.
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
