// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting
import FoundationEssentials
import Testing

/// Bodies of every kind arrive complete with the right framing and are counted.
@Suite(.timeLimit(.minutes(5)))
struct UploadTests {
    /// Sends a body and checks the received request, the progress and the metrics.
    private func send(
        _ body: RequestBody, expecting pattern: PatternBody, length: Int64?,
        _ location: SourceLocation = #_sourceLocation
    ) async throws {
        let server = try MockServer { _ in .text("thanks") }
        let transfer = Session().transfer(Request(.put, server.url("/u"), body: body))
        let response = try await transfer.response()
        #expect(response.value == Data("thanks".utf8), sourceLocation: location)
        let seen = try #require(server.requests.first, sourceLocation: location)
        #expect(seen.isBodyComplete && seen.bodyLength == pattern.length, sourceLocation: location)
        #expect(seen.bodySHA256 == pattern.sha256, sourceLocation: location)
        #expect(seen.field("Content-Length") == length.map(String.init), sourceLocation: location)
        #expect(seen.field("Transfer-Encoding") == (length == nil ? "chunked" : nil), sourceLocation: location)
        #expect(seen.field("Content-Type") == nil, sourceLocation: location)
        #expect(server.violations.isEmpty && server.requestCount == 1, sourceLocation: location)
        let progress = transfer.currentProgress
        #expect(progress.sent == Int64(pattern.length), sourceLocation: location)
        #expect(progress.expectedToSend == length, sourceLocation: location)
        #expect(progress.isFinished && progress.fraction == 1, sourceLocation: location)
        #expect(response.metrics.requestBodyBytes >= Int64(pattern.length), sourceLocation: location)
    }

    @Test(arguments: [0, 1, 1000, 65_535, 65_536, 65_537, 1 << 20, (1 << 20) + 1, 5 << 20])
    func bytesAreUploaded(_ length: Int) async throws {
        let pattern = PatternBody(seed: 11, length: length)
        let body = RequestBody.bytes(pattern.bytes)
        #expect(body.length == Int64(length) && body.canReplay && !body.isNone)
        try await send(body, expecting: pattern, length: Int64(length))
    }

    @Test(arguments: [0, 1, 65_536, 3_000_001]) func filesAreUploaded(_ length: Int) async throws {
        let pattern = PatternBody(seed: 12, length: length)
        let file = try ScratchFile(pattern.bytes)
        let body = RequestBody.file(file.path)
        #expect(body.canReplay && !body.isNone)
        try await send(body, expecting: pattern, length: Int64(length))
    }

    @Test(arguments: [0, 1, 65_536, 3_000_001], [false, true])
    func streamsAreUploaded(_ length: Int, _ isLengthKnown: Bool) async throws {
        let pattern = PatternBody(seed: 13, length: length)
        let known = isLengthKnown ? Int64(length) : nil
        let body = RequestBody.stream(ChunkSource(body: pattern, chunk: 50_021), length: known)
        #expect(body.length == known && !body.canReplay)
        try await send(body, expecting: pattern, length: known)
    }

    @Test func streamsWithEmptyChunksAreUploaded() async throws {
        let pattern = PatternBody(seed: 14, length: 100)
        let chunks = [Data(), pattern.data.prefix(1), Data(), pattern.data.dropFirst(1), Data()]
        let stream = AsyncStream<Data> { continuation in
            for chunk in chunks { continuation.yield(chunk) }
            continuation.finish()
        }
        try await send(.stream(stream), expecting: pattern, length: nil)
    }

    @Test func uploadsReuseTheConnection() async throws {
        let server = try MockServer { request in .text(request.bodySHA256) }
        let session = Session()
        let pattern = PatternBody(seed: 15, length: 200_000)
        let file = try ScratchFile(pattern.bytes)
        let bodies: [RequestBody] = [
            .bytes(pattern.bytes), .stream(ChunkSource(body: pattern)), .file(file.path), .none, .bytes(pattern.bytes),
            .stream(ChunkSource(body: pattern), length: 200_000),
        ]
        for body in bodies {
            let (data, _) = try await session.data(for: Request(.post, server.url("/"), body: body))
            let expected = body.isNone ? PatternBody(seed: 0, length: 0) : pattern
            #expect(data == Data(expected.sha256.utf8))
        }
        #expect(server.connectionCount == 1)
    }

    @Test func uploadProgressIsReported() async throws {
        var options = MockServer.Options()
        options.socketBufferSize = 64 << 10
        let server = try MockServer(options: options)
        let gate = Gate()
        server.on("POST", "/", .text("ok"), reading: .whole.stalling(at: gate, after: 100_000))
        let length = 30 << 20
        let body = RequestBody.stream(ChunkSource(body: PatternBody(seed: 1, length: length)), length: Int64(length))
        let transfer = Session().transfer(Request(.post, server.url("/"), body: body))
        var values: [TransferProgress] = []
        for await progress in transfer.progress {
            values.append(progress)
            if progress.sent > 0 { gate.open() }
        }
        #expect(values.map(\.sent) == values.map(\.sent).sorted())
        #expect(values.allSatisfy { $0.expectedToSend == Int64(length) })
        let middle = try #require(values.first { $0.sent > 0 })
        #expect(middle.fraction == Double(middle.sent) / Double(length))
        #expect(values.last?.sent == Int64(length) && values.last?.fraction == 1 && values.last?.isFinished == true)
        #expect(try await transfer.value == Data("ok".utf8))
    }

    @Test func slowServerHoldsBackTheBodySource() async throws {
        var options = MockServer.Options()
        options.socketBufferSize = 64 << 10
        let server = try MockServer(options: options)
        let gate = Gate()
        server.on("POST", "/slow", .text("ok"), reading: .whole.stalling(at: gate, after: 100_000))
        server.on("POST", "/quick", .text("ok"))
        let session = Session()
        let pattern = PatternBody(seed: 2, length: 30 << 20)
        let slow = ChunkSource(body: pattern)
        let held = session.transfer(Request(.post, server.url("/slow"), body: .stream(slow))).start()
        await gate.waitUntilReached()
        // Meanwhile a complete body of the same size is sent on the same loop.
        let quick = ChunkSource(body: pattern)
        _ = try await session.data(for: Request(.post, server.url("/quick"), body: .stream(quick)))
        #expect(await quick.meter.pulls == 480)
        #expect(await slow.meter.pulls < 160)
        gate.open()
        _ = try await held.value
        #expect(await slow.meter.pulls == 480)
        #expect(Set(server.digests) == [pattern.sha256])
    }

    @Test func waitingBodySourceDoesNotBlockOtherTransfers() async throws {
        let server = try MockServer { request in .text("\(request.bodyLength)") }
        let session = Session()
        let gate = Gate()
        let source = ChunkSource(body: PatternBody(seed: 1, length: 300_000), hold: (2, gate))
        let held = session.transfer(Request(.post, server.url("/"), body: .stream(source))).start()
        _ = await server.nextRequest()
        for _ in 0..<3 { _ = try await session.data(for: Request(server.url("/"))) }
        #expect(held.state == .running)
        gate.open()
        #expect(try await held.value == Data("300000".utf8))
    }

    @Test(arguments: [200, 413]) func earlyResponseEndsTheUpload(_ status: Int) async throws {
        let server = try MockServer()
        server.on("POST", "/", .text("enough", status: status), reading: .none)
        let source = ChunkSource(body: PatternBody(seed: 1, length: 100 << 20))
        let request = Request(.post, server.url("/"), body: .stream(source, length: 100 << 20))
        let (data, head) = try await Session().data(for: request)
        #expect(head.status.code == status)
        #expect(data == Data("enough".utf8))
        if status == 413 { #expect(await source.meter.pulls < 1600) }
    }

    @Test func staleConnectionIsReplacedForUploads() async throws {
        let pattern = PatternBody(seed: 1, length: 200_000)
        let file = try ScratchFile(pattern.bytes)
        let bodies: [RequestBody] = [
            .bytes(pattern.bytes), .file(file.path), .stream(ChunkSource(body: pattern)), .text("small"), .none,
        ]
        for body in bodies {
            let server = try MockServer { request in .text(request.bodySHA256) }
            server.on("GET", "/", .text("x").fault(.close, at: .end))
            let session = Session()
            _ = try await session.data(for: Request(server.url("/")))
            await server.waitUntil(openConnections: 0)
            let (data, head) = try await session.data(for: Request(.post, server.url("/p"), body: body))
            #expect(head.status == .ok && server.connectionCount == 2)
            #expect(server.digests.last.map { Data($0.utf8) } == data)
        }
    }

    @Test func retriedBodyIsSentFromItsStart() async throws {
        let pattern = PatternBody(seed: 1, length: 200_000)
        let file = try ScratchFile(pattern.bytes)
        for body in [RequestBody.bytes(pattern.bytes), .file(file.path)] {
            let server = try MockServer { _ in .text("x") }
            server.on("PUT", "/", inOrder: [.status(200).fault(.close, at: .start), .text("done")])
            let session = Session()
            _ = try await session.data(for: Request(server.url("/")))
            let (data, _) = try await session.data(for: Request(.put, server.url("/"), body: body))
            #expect(data == Data("done".utf8) && server.connectionCount == 2)
            #expect(server.digests.suffix(2) == [pattern.sha256, pattern.sha256])
        }
    }

    @Test func bodiesOfEqualLengthAreNotMixedUp() async throws {
        let server = try MockServer { request in .bytes(request.body) }
        let session = Session()
        for text in ["first", "other", "third"] {
            let (data, _) = try await session.data(for: Request(.post, server.url("/"), body: .text(text)))
            #expect(data == Data(text.utf8))
        }
        #expect(server.connectionCount == 1)
    }

    @Test(arguments: [false, true]) func largeBodiesExpectContinueUnlessDisabled(_ asks: Bool) async throws {
        let server = try MockServer { _ in .status(204) }
        let session = Session { if !asks { $0.http.expectContinue = .never } }
        let body = RequestBody.bytes([UInt8](repeating: 1, count: 2 << 20))
        _ = try await session.data(for: Request(.put, server.url("/"), body: body))
        #expect(server.requests.map(\.expectsContinue) == [asks])
    }

    /// libcurl never reads an empty body, which must not look like a response that arrived before the body was sent.
    @Test func emptyBodyKeepsTheConnection() async throws {
        let server = try MockServer { _ in .text("thanks") }
        let file = try ScratchFile([])
        let stream = ChunkSource(body: PatternBody(seed: 1, length: 0))
        let session = Session()
        for body in [RequestBody.bytes([]), .file(file.path), .stream(stream), .stream(stream, length: 0)] {
            #expect(try await session.data(for: Request(.post, server.url("/"), body: body)).1.status == .ok)
        }
        #expect(server.requestCount == 4 && server.connectionCount == 1)
    }
}
