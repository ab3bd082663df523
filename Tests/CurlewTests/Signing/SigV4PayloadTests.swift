// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewTesting
import FoundationEssentials
import Testing

@testable import Curlew
@testable import CurlewAuth

/// Payload hashes and signed chunks of AWS Signature Version 4.
@Suite(.timeLimit(.minutes(5)))
struct SigV4PayloadTests {
    private let pattern = PatternBody(seed: 5, length: 200_000)

    private func signature(_ service: String, _ payload: SigV4Signature.Payload = .automatic) -> SigV4Signature {
        SigV4Signature(
            region: "r", service: service, payload: payload, now: { Date(timeIntervalSince1970: 1_440_938_160) },
            credentials: { AWSCredentials(accessKeyID: "AKID", secretAccessKey: "SECRET") })
    }

    private func hash(_ body: RequestBody, _ signature: SigV4Signature, _ scheme: String = "https") async throws
        -> String?
    {
        let request = Request(.put, "\(scheme)://host/key", body: body)
        return try await signature.signed(request).fields["X-Amz-Content-SHA256"]
    }

    private func stream(_ pattern: PatternBody, canReplay: Bool = false) -> RequestBody {
        .stream(ChunkSource(body: pattern), length: Int64(pattern.length), canReplay: canReplay)
    }

    @Test func payloadHashesCoverEveryBody() async throws {
        let file = try ScratchFile(pattern.bytes)
        let half = pattern.length / 2
        let joined = RequestBody(
            source: JoinedBody([
                .init(body: .bytes(pattern.bytes(in: 0..<half)), label: nil),
                .init(body: stream(pattern[half..<pattern.length], canReplay: true), label: nil),
            ]))
        for body in [.bytes(pattern.bytes), .file(file.path), stream(pattern, canReplay: true), joined] {
            for payload in [SigV4Signature.Payload.automatic, .signed] {
                #expect(try await hash(body, signature("s3", payload)) == pattern.sha256)
            }
            #expect(try await hash(body, signature("s3", .unsigned)) == "UNSIGNED-PAYLOAD")
            // Signing does not consume the body.
            #expect(!body.isConsumed)
        }
        #expect(try await hash(.none, signature("s3")) == SigV4Scope.emptyHash)
        #expect(try await hash(.bytes([]), signature("s3", .chunked())) == SigV4Scope.emptyHash)
        #expect(try await hash(.bytes([1]), signature("dynamodb")) == nil)
        #expect(try await hash(.bytes([1]), signature("lambda", .unsigned)) == "UNSIGNED-PAYLOAD")
    }

    @Test func nonReplayableBodiesAreUnsignedOrFail() async throws {
        #expect(try await hash(stream(pattern), signature("s3")) == "UNSIGNED-PAYLOAD")
        for (signature, scheme) in [
            (signature("s3"), "http"), (signature("s3", .signed), "https"), (signature("lambda"), "https"),
        ] {
            let body = stream(pattern)
            let error = try await networkError { try await hash(body, signature, scheme) }
            #expect(error.kind == .invalidRequest && error.hint != nil)
            #expect(!body.isConsumed)
        }
    }

    @Test func unreadableBodiesFail() async throws {
        let missing = try await networkError { try await hash(.file("/nonexistent/file"), signature("s3")) }
        #expect(missing.kind == .invalidRequest)
        var source = ChunkSource(body: pattern)
        source.failsAt = 2
        let broken = RequestBody.stream(source, length: Int64(pattern.length), canReplay: true)
        let error = try await networkError { try await hash(broken, signature("s3")) }
        #expect(error.kind == .bodyFailed && error.cause is ChunkSource.Broken)
    }

    /// Cancellation of the task ends the wait for a source that produces no chunk.
    @Test func cancellationEndsTheDigestOfAStream() async throws {
        let (asked, ended) = (Gate(), Gate())
        let body = RequestBody.stream(Stuck(asked: asked, ended: ended), canReplay: true)
        let task = Task { try await SignableBody(body).digest() }
        await asked.wait()
        task.cancel()
        let error = try await networkError { try await task.value }
        #expect(error.kind == .cancelled)
        // The source is cancelled, too.
        await ended.wait()
    }

    /// A source that produces no chunk and ends when its task is cancelled.
    private struct Stuck: AsyncSequence, AsyncIteratorProtocol, Sendable {
        let asked: Gate
        let ended: Gate

        func makeAsyncIterator() -> Stuck { self }

        func next() async -> [UInt8]? {
            asked.open()
            await Gate().wait()
            ended.open()
            return nil
        }
    }

    // MARK: Chunks

    /// Checks the signature of each chunk as a server does, and returns the joined bytes.
    private func unwrapped(_ body: [UInt8], scope: SigV4Scope, key: [UInt8], seed: String) throws -> [UInt8] {
        var (rest, previous, result) = (body[...], seed, [UInt8]())
        while true {
            let end = try #require(rest.firstIndex(of: 0x0D))
            let head = String(decoding: rest[..<end], as: UTF8.self).split(separator: ";")
            let count = try #require(head.first.flatMap { Int($0, radix: 16) })
            let chunk = Array(rest[(end + 2)...].prefix(count))
            previous = try scope.signature(of: chunk, after: previous, key: key)
            #expect(head.last == "chunk-signature=\(previous)")
            result += chunk
            rest = rest[(end + 2)...].dropFirst(count)
            #expect(rest.prefix(2) == [0x0D, 0x0A])
            rest = rest.dropFirst(2)
            if count == 0 { break }
        }
        #expect(rest.isEmpty)
        return result
    }

    @Test(arguments: [8192, 65_536, 200_000, 1 << 20])
    func serverVerifiesSignedChunks(size: Int64) async throws {
        let server = try MockServer { _ in .text("fine") }
        let file = try ScratchFile(pattern.bytes)
        let scope = SigV4Scope(HTTPDate(seconds: 1_440_938_160), region: "r", service: "s3")
        for body in [stream(pattern), .file(file.path), .bytes(pattern.bytes)] {
            var request = Request(.put, server.url("/key"), fields: [.contentEncoding: "br"], body: body)
            request.interceptors = [signature("s3", .chunked(ByteCount(size)))]
            // Signed bodies are not compressed.
            let session = Session { $0.http.compression = .gzip(above: 0) }
            #expect(try await session.data(for: request).1.status == .ok)
            let sent = try #require(server.requests.last)
            #expect(sent.field("X-Amz-Content-SHA256") == "STREAMING-AWS4-HMAC-SHA256-PAYLOAD")
            #expect(sent.field("X-Amz-Decoded-Content-Length") == "\(pattern.length)")
            #expect(sent.field("Content-Encoding") == "aws-chunked,br")
            #expect(sent.field("Content-Length") == "\(sent.body.count)")
            let seed = try #require(sent.field("Authorization")?.split(separator: "=").last)
            let bytes = try unwrapped(sent.body, scope: scope, key: try scope.key("SECRET"), seed: String(seed))
            #expect(bytes == pattern.bytes)
        }
    }

    @Test func invalidChunkSizesAndUnknownLengthsFail() async throws {
        for size in [ByteCount(8191), .mebibytes(17), -1] {
            let error = try await networkError { try await hash(.bytes([1]), signature("s3", .chunked(size))) }
            #expect(error.kind == .invalidRequest)
        }
        let endless = RequestBody.stream(ChunkSource(body: pattern))
        let error = try await networkError { try await hash(endless, signature("s3", .chunked())) }
        #expect(error.kind == .invalidRequest && error.message.contains("length"))
    }

    /// A source that is shorter than its declared length fails the request instead of sending a short body.
    @Test func signedChunksFailWhenTheSourceEndsEarly() async throws {
        let server = try MockServer { _ in .text("fine") }
        let body = RequestBody.stream(ChunkSource(body: pattern), length: Int64(pattern.length) + 1)
        var request = Request(.put, server.url("/key"), body: body)
        request.interceptors = [signature("s3", .chunked())]
        let error = try await networkError { try await Session().data(for: request) }
        #expect(error.kind == .bodyFailed)
    }

    @Test func signedBodiesAreNotCompressed() async throws {
        let server = try MockServer { _ in .text("fine") }
        var request = Request(.put, server.url("/"), body: .bytes([UInt8](repeating: 7, count: 5000)))
        request.interceptors = [signature("lambda")]
        _ = try await Session { $0.http.compression = .gzip(above: 0) }.data(for: request)
        #expect(server.requests[0].body == [UInt8](repeating: 7, count: 5000))
    }
}
