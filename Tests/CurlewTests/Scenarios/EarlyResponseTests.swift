// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting
import FoundationEssentials
import Testing

/// A final response ends its upload even if most of the body is not sent yet.
@Suite(.timeLimit(.minutes(5)))
struct EarlyResponseTests {
    /// Returns a server that responds without reading the body and keeps the connection, so further sending hangs.
    private func server(_ answer: MockResponse) throws -> MockServer {
        var options = MockServer.Options()
        options.socketBufferSize = 32 << 10
        let server = try MockServer(options: options) { _ in .text("next") }
        let gate = Gate()
        server.on("POST", "/", answer.fault(.stall(gate), at: .end), reading: .none)
        return server
    }

    @Test(arguments: [200, 201, 302, 400, 413, 500], [false, true])
    func earlyResponseEndsTheUpload(_ status: Int, isChunked: Bool) async throws {
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

    @Test(arguments: [false, true]) func earlyResponseEndsThrottledUpload(_ isChunked: Bool) async throws {
        let script = MockResponse.text("enough", status: 413)
        let server = try server(isChunked ? script.chunked() : script)
        // At this rate the body would take an hour.
        let session = Session {
            $0.http.expectContinue = .never
            $0.limits.bandwidth = Request.BandwidthLimit(upload: .kibibytes(20))
        }
        let source = ChunkSource(body: PatternBody(seed: 1, length: 64 << 20))
        for body in [RequestBody.stream(source), .stream(source, length: 64 << 20)] {
            let (data, head) = try await session.data(for: Request(.post, server.url("/"), body: body))
            #expect(head.status == 413 && data == Data("enough".utf8))
        }
    }

    @Test(arguments: [false, true]) func earlyResponseEndsUploadWithWaitingSource(_ isChunked: Bool) async throws {
        let script = MockResponse.text("enough")
        let server = try server(isChunked ? script.chunked() : script)
        let session = Session { $0.http.expectContinue = .never }
        let (chunks, source) = AsyncStream<[UInt8]>.makeStream()
        source.yield([1, 2, 3])
        let (data, _) = try await session.data(for: Request(.post, server.url("/"), body: .stream(chunks)))
        #expect(data == Data("enough".utf8))
        source.finish()
    }

    @Test(arguments: [204, 304]) func earlyResponseWithoutBodyEndsTheUpload(_ status: Int) async throws {
        let server = try server(.status(status))
        let session = Session { $0.http.expectContinue = .never }
        let body = RequestBody.stream(ChunkSource(body: PatternBody(seed: 1, length: 64 << 20)))
        let transfer = session.transfer(Request(.post, server.url("/"), body: body))
        #expect(try await transfer.response().head.status.rawValue == status)
        #expect(try #require(transfer.metrics).requestBodyBytes < 64 << 20)
        #expect(!transfer.currentProgress.isFinished || transfer.currentProgress.sent < 64 << 20)
    }

    @Test func earlyResponseEndsUploadBufferedInLibcurl() async throws {
        let server = try server(.text("enough"))
        let session = Session { $0.http.expectContinue = .never }
        // More than the kernel buffers, and less than libcurl and the kernel buffer together.
        let body = RequestBody.bytes(PatternBody(seed: 1, length: 5 << 20).bytes)
        let (data, _) = try await session.data(for: Request(.post, server.url("/"), body: body))
        #expect(data == Data("enough".utf8))
    }

    @Test func incompleteResponseDoesNotEndTheUpload() async throws {
        let server = try MockServer()
        let gate = Gate()
        let pattern = PatternBody(seed: 1, length: 4 << 20)
        server.on("POST", "/", .text("hello").fault(.stall(gate), at: .body(2)), reading: .afterResponse)
        let session = Session { $0.http.expectContinue = .never }
        let transfer = session.transfer(Request(.post, server.url("/"), body: .bytes(pattern.bytes))).start()
        await gate.waitUntilReached()
        await session.waitUntil(transfer, has: 2, \.received)
        #expect(transfer.state == .running)
        gate.open()
        #expect(try await transfer.value == Data("hello".utf8))
    }

    /// A response that is cut while the body is being sent fails the transfer.
    @Test(arguments: [SocketFault.close, .cut], [(false, false), (false, true), (true, false), (true, true)])
    func truncatedEarlyResponseThrowsConnectionLost(_ fault: SocketFault, _ way: (isChunked: Bool, isSecure: Bool))
        async throws
    {
        var options = MockServer.Options()
        options.socketBufferSize = 32 << 10
        let authority = try TestAuthority()
        let server = try MockServer(tls: way.isSecure ? authority.issue() : nil, options: options)
        let script = MockResponse.pattern(PatternBody(seed: 1, length: 1000))
        server.on("POST", "/", (way.isChunked ? script.chunked() : script).fault(fault, at: .body(10)), reading: .none)
        let session = try Session(trust: CustomRoots(pem: authority.certificatePEM)) { $0.http.expectContinue = .never }
        let body = RequestBody.stream(ChunkSource(body: PatternBody(seed: 1, length: 16 << 20)))
        let error = try await networkError {
            try await session.data(for: Request(.post, server.url("/"), body: body))
        }
        #expect(error.kind == .connectionLost)
    }

    @Test func slowReaderGetsTheWholeEarlyResponse() async throws {
        let pattern = PatternBody(seed: 2, length: 6 << 20)
        let server = try MockServer()
        server.on("POST", "/", .pattern(pattern), reading: .afterResponse)
        let session = Session { $0.http.expectContinue = .never }
        let upload = PatternBody(seed: 1, length: 6 << 20)
        for body in [RequestBody.bytes(upload.bytes), .stream(ChunkSource(body: upload))] {
            let transfer = session.transfer(Request(.post, server.url("/"), body: body))
            var digest = SHA256Stream()
            var count = 0
            for try await chunk in transfer.bytes {
                digest.update(chunk)
                count += chunk.count
                await Task.yield()
            }
            #expect(count == pattern.length && digest.hex == pattern.sha256)
        }
    }
}
