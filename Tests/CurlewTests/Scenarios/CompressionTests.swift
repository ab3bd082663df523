// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewTesting
import FoundationEssentials
import Glibc
import Testing

@testable import Curlew
@testable import CurlewEngine

/// Compressed request bodies: framing, exceptions, and checks of the declared length of the source.
@Suite(.timeLimit(.minutes(5)))
struct CompressionTests {
    private let lines = Array(String(repeating: "a line that compresses well\n", count: 20_000).utf8)

    private var session: Session { Session { $0.http.compression = .gzip() } }

    /// Sends a body and returns the request that the server received.
    private func sent(
        _ body: RequestBody, _ session: Session, fields: HeaderFields = [:]
    ) async throws -> RecordedRequest {
        let server = try MockServer { _ in .text("thanks") }
        let transfer = session.transfer(Request(.post, server.url("/"), fields: fields, body: body))
        #expect(try await transfer.value == Data("thanks".utf8))
        let request = try #require(server.requests.first)
        #expect(server.violations.isEmpty && request.isBodyComplete)
        let progress = transfer.currentProgress
        #expect(progress.sent == Int64(request.bodyLength) && progress.fraction == 1)
        #expect(progress.expectedToSend == request.field("Content-Length").flatMap { Int64($0) })
        return request
    }

    private func checkCompressed(_ request: RecordedRequest, isLengthKnown: Bool, _ plain: [UInt8]) throws {
        #expect(request.fields("Content-Encoding") == ["gzip"])
        #expect(request.field("Content-Length") == (isLengthKnown ? "\(request.bodyLength)" : nil))
        #expect(request.field("Transfer-Encoding") == (isLengthKnown ? nil : "chunked"))
        #expect(request.bodyLength < plain.count / 4)
        #expect(try Encoded.decode(request.body, "gzip").sha256 == plain.sha256)
    }

    @Test func compressedBytesHaveAContentLength() async throws {
        try checkCompressed(try await sent(.bytes(lines), session), isLengthKnown: true, lines)
        let text = String(repeating: "text ", count: 1000)
        try checkCompressed(try await sent(.text(text), session), isLengthKnown: true, Array(text.utf8))
    }

    @Test func compressedFilesDescriptorsAndStreamsAreChunked() async throws {
        let file = try ScratchFile(lines)
        try checkCompressed(try await sent(.file(file.path), session), isLengthKnown: false, lines)

        let descriptor = open(file.path, O_RDONLY | O_CLOEXEC)
        defer { close(descriptor) }
        try checkCompressed(try await sent(.descriptor(descriptor), session), isLengthKnown: false, lines)

        for length in [nil, Int64(lines.count)] {
            let stream = AsyncStream<ArraySlice<UInt8>> { continuation in
                for start in stride(from: 0, to: lines.count, by: 7001) {
                    continuation.yield(lines[start..<min(start + 7001, lines.count)])
                }
                continuation.finish()
            }
            let request = try await sent(.stream(stream, length: length), session)
            try checkCompressed(request, isLengthKnown: false, lines)
        }
    }

    @Test func smallIncompressibleOrEncodedBodiesAreNotCompressed() async throws {
        let random = PatternBody(seed: 3, length: 5000).bytes
        let file = try ScratchFile(lines.prefix(1024))
        let bodies: [(RequestBody, Session, HeaderFields)] = [
            (.bytes(lines), Session(), [:]),
            (.bytes(lines.prefix(1024)), session, [:]),
            (.file(file.path), session, [:]),
            (.bytes(random), session, [:]),
            (.bytes(lines), session, [.contentEncoding: "br"]),
            (.bytes(lines), Session { $0.http.compression = .gzip(above: .mebibytes(1)) }, [:]),
            (
                .bytes(lines),
                Session {
                    $0.http.compression = .gzip()
                    $0.fields[.contentEncoding] = "x"
                }, [:]
            ),
            (.none, session, [:]),
        ]
        for (index, (body, session, fields)) in bodies.enumerated() {
            let request = try await sent(body, session, fields: fields)
            let own = fields[.contentEncoding] ?? session.configuration.fields[.contentEncoding]
            #expect(request.field("Content-Encoding") == own, "body \(index)")
            #expect(request.field("Content-Length") == "\(request.bodyLength)", "body \(index)")
        }
        #expect(try await sent(.bytes(random), session).body.sha256 == random.sha256)
    }

    @Test func requestCompressionOverridesSession() async throws {
        let server = try MockServer { _ in .status(204) }
        var request = Request(.post, server.url("/"), body: .bytes(lines))
        request.options.compression = .off
        _ = try await session.data(for: request)
        request.options.compression = .gzip(above: 0)
        _ = try await Session().data(for: request)
        #expect(server.requests.map { $0.field("Content-Encoding") } == [nil, "gzip"])
        request.options.compression = .gzip(above: -1)
        #expect(try await networkError { try await Session().data(for: request) }.kind == .invalidRequest)
    }

    @Test func declaredLengthIsCheckedAgainstUncompressedSource() async throws {
        let pattern = PatternBody(seed: 9, length: 300_000)
        for declared in [299_999, 300_001] as [Int64] {
            let server = try MockServer { _ in .text("never") }
            let body = RequestBody.stream(ChunkSource(body: pattern), length: declared)
            let error = try await networkError {
                try await session.data(for: Request(.post, server.url("/"), body: body))
            }
            #expect(error.kind == .bodyFailed)
            #expect(error.message.contains("\(declared)"))
            #expect(server.requests.allSatisfy { !$0.isBodyComplete })
        }
    }

    @Test func failingSourceOfCompressedBodyThrowsBodyFailed() async throws {
        let server = try MockServer { _ in .text("never") }
        var source = ChunkSource(body: PatternBody(seed: 9, length: 300_000))
        source.failsAt = 2
        let error = try await networkError {
            try await session.data(for: Request(.post, server.url("/"), body: .stream(source)))
        }
        #expect(error.kind == .bodyFailed && error.cause is ChunkSource.Broken)
        #expect(server.requests.allSatisfy { !$0.isBodyComplete })
    }

    @Test func chunksOfSlowSourceAreFlushed() async throws {
        let (arrived, more) = (Gate(), Gate())
        let server = try MockServer()
        server.on("POST", "/", .text("ok"), reading: .whole.stalling(at: arrived, after: 11))
        // The source yields the second chunk only after the server has received bytes beyond the header of gzip.
        let source = ChunkSource(body: PatternBody(seed: 4, length: 200), chunk: 100, hold: (1, more))
        let session = session
        let transfer = session.transfer(Request(.post, server.url("/"), body: .stream(source))).start()
        #expect(await arrived.waitUntilReached())
        more.open()
        arrived.open()
        _ = try await transfer.value
        let body = try #require(server.requests.first).body
        #expect(try Encoded.decode(body, "gzip") == PatternBody(seed: 4, length: 200).bytes)
    }

    @Test func compressedBodiesAreResentAfterStaleConnection() async throws {
        let file = try ScratchFile(lines)
        let stream = ChunkSource(body: PatternBody(seed: 1, length: 200_000))
        for body in [.bytes(lines), .file(file.path), .stream(stream, canReplay: true)] as [RequestBody] {
            let server = try MockServer { _ in .text("again") }
            server.on("GET", "/", .text("x").fault(.close, at: .end))
            let session = session
            _ = try await session.data(for: Request(server.url("/")))
            await server.waitUntil(openConnections: 0)
            _ = try await session.data(for: Request(.put, server.url("/p"), body: body))
            let last = try #require(server.requests.last)
            #expect(last.isBodyComplete && last.field("Content-Encoding") == "gzip")
            #expect(try !Encoded.decode(last.body, "gzip").isEmpty)
        }
    }

    @Test func replayableBodiesHaveUncompressedAlternative() throws {
        let core = session.core
        func hasAlternative(_ body: RequestBody) throws -> Bool {
            try core.plan(for: Request(.post, "http://localhost/", body: body)).alternative != nil
        }
        let source = ChunkSource(body: PatternBody(seed: 1, length: 10))
        #expect(try hasAlternative(.bytes(lines)))
        let file = try ScratchFile(lines)
        #expect(try hasAlternative(.file(file.path)))
        #expect(try hasAlternative(.stream(source, canReplay: true)))
        #expect(try !hasAlternative(.stream(source)))
        #expect(try !hasAlternative(.bytes([1, 2, 3])))
    }

    @Test func unsupportedMediaTypeIsRetriedUncompressedOnce() async throws {
        let server = try MockServer { request in
            request.field("Content-Encoding") == nil ? .text("taken") : .text("no gzip", status: 415)
        }
        let file = try ScratchFile(lines)
        let stream = ChunkSource(body: PatternBody(seed: 1, length: 300_000))
        let bodies: [(RequestBody, String)] = [
            (.bytes(lines), SHA256Stream.hex(of: lines)), (.file(file.path), SHA256Stream.hex(of: lines)),
            (.stream(stream, canReplay: true), stream.body.sha256),
        ]
        for (body, digest) in bodies {
            let before = server.requestCount
            let transfer = session.transfer(Request(.post, server.url("/"), body: body))
            var record = StreamRecord()
            for try await element in transfer.stream { record.take(element) }
            #expect(record.order.count { $0 == "head" } == 1, "the refusal is not shown")
            #expect(record.head?.status == 200 && record.body == Data("taken".utf8))
            #expect(server.requestCount == before + 2)
            #expect(server.requests.last?.bodySHA256 == digest)
            #expect(transfer.currentProgress.sent == server.requests.last.map { Int64($0.bodyLength) })
        }
    }

    @Test func repeatedUnsupportedMediaTypeIsReturned() async throws {
        let server = try MockServer { _ in .text("never", status: 415) }
        let (data, head) = try await session.data(for: Request(.post, server.url("/"), body: .bytes(lines)))
        #expect(head.status == 415 && data == Data("never".utf8))
        #expect(server.requestCount == 2)
        let once = ChunkSource(body: PatternBody(seed: 1, length: 300_000))
        let request = Request(.post, server.url("/"), body: .stream(once))
        #expect(try await session.data(for: request).1.status == 415)
        #expect(server.requestCount == 3, "a one-shot body is not resent")
    }

    @Test func compressionSettingsRoundTripThroughJSON() throws {
        let configuration = Session.Configuration {
            $0.http.compression = .gzip(above: .kibibytes(2))
            $0.http.decompression = .off
            $0.limits.decompressionRatio = 200
        }
        let data = try JSONEncoder().encode(configuration)
        #expect(try JSONDecoder().decode(Session.Configuration.self, from: data) == configuration)
        let read = try JSONDecoder().decode(
            Session.Configuration.self, from: Data(#"{"http":{"compression":{"gzipAbove":7}}}"#.utf8))
        #expect(read.http.compression == .gzip(above: 7) && read.http.decompression == .automatic)
        for json in [#"{"http":{"compression":{"gzipAbove":-1}}}"#, #"{"http":{"decompression":"on"}}"#] {
            #expect(throws: DecodingError.self) {
                try JSONDecoder().decode(Session.Configuration.self, from: Data(json.utf8))
            }
        }
        for change in [{ $0.limits.decompressionRatio = 0 }, { $0.http.compression = .gzip(above: -1) }]
            as [@Sendable (inout Session.Configuration) -> Void]
        {
            #expect(throws: NetworkError.self) { try Session.Configuration(change).validate() }
        }
    }
}
