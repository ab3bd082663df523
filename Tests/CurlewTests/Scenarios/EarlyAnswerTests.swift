// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting
import FoundationEssentials
import Testing

/// A final answer ends the upload it answers, however much of the body is left.
@Suite(.timeLimit(.minutes(1)))
struct EarlyAnswerTests {
    /// The server reads nothing of the body, answers and keeps the connection: who goes on sending, hangs.
    private func server(_ answer: MockResponse) throws -> MockServer {
        var options = MockServer.Options()
        options.socketBufferSize = 32 << 10
        let server = try MockServer(options: options) { _ in .text("next") }
        let gate = Gate()
        server.on("POST", "/", answer.fault(.stall(gate), at: .end), reading: .none)
        return server
    }

    @Test(arguments: [200, 201, 302, 400, 413, 500], [false, true])
    func theAnswerEndsTheUpload(_ status: Int, isChunked: Bool) async throws {
        let script = MockResponse.text("enough", status: status)
        let server = try server(isChunked ? script.chunked() : script)
        let session = Session { $0.http.expectContinue = .never }
        let source = ChunkSource(body: PatternBody(seed: 1, length: 64 << 20))
        for body in [RequestBody.stream(source), .stream(source, length: 64 << 20)] {
            let (data, head) = try await session.data(for: Request(.post, server.url("/"), body: body))
            #expect(head.status.rawValue == status && data == Data("enough".utf8))
        }
        #expect(await source.meter.pulls < 1024)
        #expect(try await session.data(for: Request(server.url("/next"))).0 == Data("next".utf8))
    }

    @Test(arguments: [204, 304]) func anAnswerWithoutABodyEndsIt(_ status: Int) async throws {
        let server = try server(.status(status))
        let session = Session { $0.http.expectContinue = .never }
        let body = RequestBody.stream(ChunkSource(body: PatternBody(seed: 1, length: 64 << 20)))
        let transfer = session.transfer(Request(.post, server.url("/"), body: body))
        #expect(try await transfer.response().head.status.rawValue == status)
        #expect(try #require(transfer.metrics).requestBodyBytes < 64 << 20)
        #expect(!transfer.currentProgress.isFinished || transfer.currentProgress.sent < 64 << 20)
    }

    @Test func aBodyThatIsAllHandedOverButNotSentEndsToo() async throws {
        let server = try server(.text("enough"))
        let session = Session { $0.http.expectContinue = .never }
        // More than the kernel takes, less than libcurl and the kernel take together.
        let body = RequestBody.bytes(PatternBody(seed: 1, length: 5 << 20).bytes)
        let (data, _) = try await session.data(for: Request(.post, server.url("/"), body: body))
        #expect(data == Data("enough".utf8))
    }

    @Test func anAnswerThatIsNotWholeEndsNothing() async throws {
        let server = try MockServer()
        let gate = Gate()
        let pattern = PatternBody(seed: 1, length: 4 << 20)
        server.on("POST", "/", .text("hello").fault(.stall(gate), at: .body(2)), reading: .afterAnswer)
        let session = Session { $0.http.expectContinue = .never }
        let transfer = session.transfer(Request(.post, server.url("/"), body: .bytes(pattern.bytes))).start()
        await gate.waitUntilReached()
        await session.waitUntil(transfer, has: 2, \.received)
        #expect(transfer.state == .running)
        gate.open()
        #expect(try await transfer.value == Data("hello".utf8))
    }
}
