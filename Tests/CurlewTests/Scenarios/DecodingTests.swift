// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewTesting
import FoundationEssentials
import Testing

@testable import Curlew

/// Compressed responses: offered codings, decoding, byte counts, and responses that stay encoded.
@Suite(.timeLimit(.minutes(5)))
struct DecodingTests {
    private func encoded(_ bytes: [UInt8], _ encoding: String = "gzip", status: Int = 200) -> MockResponse {
        .bytes(bytes, status: status).field("Content-Encoding", encoding).field("ETag", "\"7\"")
    }

    @Test(arguments: ContentDecoderTests.samples)
    func compressedBodiesAreDecodedAndCounted(_ sample: ContentDecoderTests.Sample) async throws {
        let server = try MockServer { _ in encoded(sample.wire, sample.encoding) }
        let session = Session()
        let transfer = session.transfer(Request(server.url("/")))
        let response = try await transfer.response()
        #expect(response.value.sha256 == sample.plain.sha256)
        #expect(try await transfer.value.sha256 == sample.plain.sha256)
        #expect(response.head.fields.map(\.name) == ["Content-Type", "ETag"])
        #expect(response.head.contentLength == nil && response.head.reason == "OK")
        #expect(response.metrics.responseBodyBytes == Int64(sample.wire.count))
        #expect(response.metrics.decodedBodyBytes == Int64(sample.plain.count))
        #expect(response.metrics.contentEncoding == ContentCodings.names(in: sample.encoding).joined(separator: ", "))
        #expect(transfer.metrics == response.metrics)
        #expect(transfer.currentProgress.received == Int64(sample.wire.count))
        #expect(server.requests.first?.field("Accept-Encoding") == "gzip, deflate, br, zstd")

        let streamed = session.transfer(Request(server.url("/")))
        let record = try await StreamRecord(streamed)
        #expect(record.body.sha256 == sample.plain.sha256)
        #expect(record.head == response.head)
        #expect(record.order.first == "head" && record.order.last == "progress")
        #expect(record.progress.last?.received == Int64(sample.wire.count))
        #expect(streamed.metrics?.decodedBodyBytes == Int64(sample.plain.count))
        #expect(streamed.metrics?.contentEncoding == response.metrics.contentEncoding)
    }

    @Test func identityCodingCountsBytesAndHasNoContentEncoding() async throws {
        let server = try MockServer { _ in .text("plain").field("Content-Encoding", "identity") }
        let response = try await Session().transfer(Request(server.url("/"))).response()
        #expect(response.value == Data("plain".utf8) && response.head.contentLength == 5)
        #expect(response.metrics.decodedBodyBytes == 5 && response.metrics.contentEncoding == nil)
    }

    @Test func acceptEncodingFollowsFieldsAndOptions() async throws {
        let server = try MockServer { _ in .status(204) }
        let session = Session()
        let url = server.url("/")
        var off = Request(url)
        off.options.decompression = .off
        let requests = [
            Request(url, fields: [.acceptEncoding: "br;q=0.5"]), Request(url, fields: ["Range": "bytes=0-9"]),
            Request(url, fields: [.range: "bytes=0-9", .acceptEncoding: "gzip"]), off, Request(.head, url),
            Request(url, fields: ["X": "1"]), Request(.post, url, body: .text("x")),
        ]
        for request in requests { _ = try await session.data(for: request) }
        let all = "gzip, deflate, br, zstd"
        #expect(
            server.requests.map { $0.fields("Accept-Encoding") } == [
                ["br;q=0.5"], ["identity"], ["gzip"], [], [all], [all], [all],
            ])

        var codings = ContentCodings.system
        codings.brotli = nil
        let lacking = Session(core: SessionCore(Session.Configuration(), trust: SystemTrust(), codings: codings))
        _ = try await lacking.data(for: Request(url))
        #expect(server.requests.last?.field("Accept-Encoding") == "gzip, deflate, zstd")

        let silent = Session { $0.http.decompression = .off }
        _ = try await silent.data(for: Request(url))
        #expect(server.requests.last?.field("Accept-Encoding") == nil)
        var on = Request(url)
        on.options.decompression = .automatic
        _ = try await silent.data(for: on)
        #expect(server.requests.last?.field("Accept-Encoding") == all)
    }

    @Test func decompressionOffReturnsEncodedBytes() async throws {
        let wire = try Encoded.gzip("as it came")
        let server = try MockServer { _ in encoded(wire) }
        let session = Session { $0.http.decompression = .off }
        let response = try await session.transfer(Request(server.url("/"))).response()
        #expect(response.value == Data(wire))
        #expect(response.head[.contentEncoding] == "gzip" && response.head.contentLength == Int64(wire.count))
        #expect(response.metrics.decodedBodyBytes == Int64(wire.count) && response.metrics.contentEncoding == nil)
        let record = try await StreamRecord(session.transfer(Request(server.url("/"))))
        #expect(record.body == Data(wire) && record.head == response.head)
    }

    @Test func partialAndBodilessResponsesAreNotDecoded() async throws {
        let wire = try Encoded.gzip("whole")
        let server = try MockServer { request in
            switch request.path {
            case "/part": encoded(Array(wire.prefix(9)), status: 206)
            case "/same": .status(304, [("Content-Encoding", "gzip")])
            default: encoded(wire)
            }
        }
        let session = Session()
        let (part, head) = try await session.data(for: Request(server.url("/part")))
        #expect(part == Data(wire.prefix(9)) && head[.contentEncoding] == "gzip" && head.contentLength == 9)
        #expect(try await StreamRecord(session.transfer(Request(server.url("/part")))).body == part)
        let (none, same) = try await session.data(for: Request(server.url("/same")))
        #expect(none.isEmpty && same[.contentEncoding] == "gzip")
        let (nothing, asked) = try await session.data(for: Request(.head, server.url("/")))
        #expect(nothing.isEmpty && asked[.contentEncoding] == "gzip" && asked.contentLength == Int64(wire.count))
    }

    @Test(arguments: ["gzip", "br", "deflate, zstd", "compress"]) func emptyEncodedBodyIsAnEmptyBody(_ encoding: String)
        async throws
    {
        let server = try MockServer { _ in encoded([], encoding) }
        let session = Session()
        #expect(try await session.data(for: Request(server.url("/"))).0.isEmpty)
        #expect(try await StreamRecord(session.transfer(Request(server.url("/")))).body.isEmpty)
    }

    @Test(arguments: [false, true]) func unsupportedContentCodingThrows(_ isStreamed: Bool) async throws {
        let server = try MockServer { encoded([1, 2, 3], $0.path == "/br" ? "br" : "frobnicate") }
        var codings = ContentCodings.system
        codings.brotli = nil
        let session = Session(core: SessionCore(Session.Configuration(), trust: SystemTrust(), codings: codings))
        let cases: [(String, NetworkError.Kind, String)] = [
            ("/br", .unsupported, "libbrotlidec.so.1 is not installed"),
            ("/other", .invalidResponse, "The server used the content coding “frobnicate”"),
        ]
        for (path, kind, text) in cases {
            let transfer = session.transfer(Request(server.url(path)))
            for _ in 0..<2 {
                let error = try await networkError {
                    if isStreamed { for try await _ in transfer.bytes {} } else { _ = try await transfer.value }
                }
                if isStreamed && error.kind == .invalidRequest { break }
                #expect(error.kind == kind && error.phase == .decoding)
                #expect(error.message.contains(text))
                #expect(error.response?[.contentEncoding] != nil && error.request?.url == server.url(path))
                if !isStreamed { #expect(error.body == [1, 2, 3]) }
            }
        }
    }

    @Test(arguments: ContentDecoderTests.samples, [false, true])
    func truncatedAndCorruptEncodingsThrow(_ sample: ContentDecoderTests.Sample, isStreamed: Bool) async throws {
        let server = try MockServer {
            let wire = $0.path == "/cut" ? Array(sample.wire.dropLast(3)) : sample.wire + Array("more".utf8)
            return encoded(wire, sample.encoding).chunked()
        }
        let session = Session()
        for (path, kind) in [("/cut", NetworkError.Kind.truncatedEncoding), ("/more", .corruptEncoding)] {
            let transfer = session.transfer(Request(server.url(path)))
            var received = Data()
            let error = try await networkError {
                guard isStreamed else { return _ = try await transfer.value }
                for try await chunk in transfer.bytes { received.append(contentsOf: chunk) }
            }
            #expect(error.kind == kind && error.phase == .decoding)
            #expect(error.response?.status == .ok && error.response?[.contentEncoding] == sample.encoding)
            #expect(error.retriability == .safe(after: nil))
            #expect(Data(sample.plain).starts(with: received))
            if !isStreamed {
                #expect(try await networkError { try await transfer.value }.kind == kind)
                #expect(error.body.starts(with: sample.wire.dropLast(3)))
            }
        }
    }

    @Test func lostConnectionIsNotReportedAsDecodingError() async throws {
        let wire = try Encoded.deflated(PatternBody(seed: 1, length: 300_000).bytes)
        let server = try MockServer { _ in encoded(wire).fault(.cut, at: .body(100_000)) }
        let session = Session()
        let error = try await networkError { try await session.data(for: Request(server.url("/"))) }
        #expect(error.kind == .connectionLost && error.phase == .receiving)
        var received = Data()
        let streamed = try await networkError {
            for try await chunk in session.transfer(Request(server.url("/"))).bytes {
                received.append(contentsOf: chunk)
            }
        }
        #expect(streamed.kind == .connectionLost && received.count > 50_000)
    }

    @Test func slowReaderOfCompressedBodyHoldsBackTheServer() async throws {
        let large = PatternBody(seed: 6, length: 20 << 20)
        let wire = try Encoded.deflated(large.bytes)
        #expect(try await digestOfASlowReader(of: encoded(wire), wireBytes: wire.count) == large.sha256)
    }
}
