// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting
import FoundationEssentials
import Testing

/// Informational responses, which precede the head, and trailers, which follow the body.
@Suite(.timeLimit(.minutes(5)))
struct WireInformationTests {
    private let hints: [(name: String, value: String)] = [("Link", "</style.css>; rel=preload"), ("link", "</a.js>")]

    // MARK: Informational responses

    @Test(arguments: [false, true]) func earlyHintsArriveBeforeTheHead(_ tls: Bool) async throws {
        let gate = Gate()
        let bench = try WireBench(tls: tls) { [hints] _ in
            .text("hello").informational(100).informational(103, hints).informational(102).fault(
                .stall(gate), at: .head(0))
        }
        var record = StreamRecord()
        for try await element in bench.session.transfer(Request(bench.server.url("/"))).stream {
            record.take(element)
            // The server sends the head only after both hints were read.
            if record.informational.count == 2 { gate.open() }
        }
        #expect(record.order.filter { $0 != "progress" } == ["informational", "informational", "head", "bytes"])
        #expect(record.informational.map(\.status) == [103, 102])
        #expect(record.informational[0].fields.values(for: "Link") == ["</style.css>; rel=preload", "</a.js>"])
        #expect(record.informational[0].version == .http1_1)
        #expect(record.head?.status == .ok && record.head?["Link"] == nil)
        #expect(record.body == Data("hello".utf8))
    }

    @Test func dataAndBytesIgnoreInformationalResponsesAndTrailers() async throws {
        let bench = try WireBench { [hints] _ in .text("hello").informational(103, hints).trailer("X-Sum", "1") }
        #expect(try await bench.data().0 == Data("hello".utf8))
        var body = Data()
        let transfer = bench.session.transfer(Request(bench.server.url("/")))
        for try await chunk in transfer.bytes { body.append(contentsOf: chunk) }
        #expect(body == Data("hello".utf8))
    }

    @Test func sixteenInformationalResponsesAreBuffered() async throws {
        let bench = try WireBench { _ in
            (0..<32).reduce(MockResponse.text("hello")) { $0.informational(103, [("X-Number", "\($1)")]) }
        }
        let transfer = bench.session.transfer(Request(bench.server.url("/")))
        // The stream is read only after the transfer has finished.
        transfer.start()
        await transfer.waitUntilFinished()
        let record = try await StreamRecord(transfer)
        #expect(record.informational.map { $0["X-Number"] } == (0..<16).map(String.init))
        #expect(record.head?.status == .ok && record.body == Data("hello".utf8))
    }

    @Test(arguments: [102, 103, 199, 100]) func moreThan32InformationalResponsesAreInvalid(_ code: Int) async throws {
        let bench = try WireBench { _ in
            (0..<33).reduce(MockResponse.text("hello")) { script, _ in script.informational(code) }
        }
        expectInvalid(try await bench.failure(), "more than 32 informational responses arrived before it")
        let endless = String(repeating: "HTTP/1.1 \(code) Wait\r\n\r\n", count: 100_000)
        let error = try await WireBench { _ in .raw(endless) }.failure()
        expectInvalid(error, "more than 32 informational responses")
    }

    @Test func informationalResponsesCountTowardsHeadLimits() async throws {
        let long = String(repeating: "a", count: 3000)
        let server = try MockServer { request in
            request.path == "/bytes"
                ? .text("x").informational(103, [("A", long)]).informational(103, [("A", long)])
                : .text("x").informational(103, [("A", "1"), ("B", "2")]).informational(103, [("C", "3"), ("D", "4")])
        }
        let session = Session {
            $0.limits.responseHead = .kibibytes(4)
            $0.limits.responseFields = 5
        }
        let bytes = try await networkError { try await session.data(for: Request(server.url("/bytes"))) }
        expectInvalid(bytes, "4 KiB")
        let fields = try await networkError { try await session.data(for: Request(server.url("/fields"))) }
        expectInvalid(fields, "more than 5 fields")
    }

    @Test(arguments: ends) func connectionLostAfterInformationalResponseIsReported(_ end: SocketFault) async throws {
        let bench = try WireBench { _ in .text("x").informational(103).fault(end, at: .head(0)) }
        let error = try await bench.failure()
        #expect(error.kind == .connectionLost && error.response == nil, "\(error)")
        #expect(bench.server.requestCount == 1)
    }

    @Test func malformedInformationalResponseIsInvalid() async throws {
        let bench = try WireBench { _ in .raw("HTTP/1.1 103 Early Hints\r\nA : b\r\n\r\n") }
        expectInvalid(try await bench.failure(), "there is a blank between")
    }

    // MARK: Trailers

    @Test(arguments: [false, true]) func trailersArriveAfterTheBytes(_ tls: Bool) async throws {
        let body = PatternBody(seed: 1, length: 200_000)
        let bench = try WireBench(tls: tls) { _ in
            .pattern(body).chunked(size: 9000).trailer("Server-Timing", "db;dur=53").trailer("X-Sum", "a").trailer(
                "x-sum", "b")
        }
        let expected: HeaderFields = ["Server-Timing": "db;dur=53", "X-Sum": "a", "x-sum": "b"]
        let response = try await bench.session.transfer(Request(bench.server.url("/"))).response()
        #expect(response.value.sha256 == body.sha256)
        #expect(response.trailers == expected)
        #expect(response.head["X-Sum"] == nil && response.head["Trailer"] == "Server-Timing, X-Sum, x-sum")
        #expect(response.map(\.count).trailers == expected)

        let record = try await StreamRecord(bench.session.transfer(Request(bench.server.url("/"))))
        #expect(record.trailers == expected && record.body.sha256 == body.sha256)
        let order = record.order.filter { $0 != "progress" }
        #expect(order.last == "trailers" && order.count { $0 == "trailers" } == 1)
        #expect(record.order.last == "progress" && record.progress.last?.isFinished == true)
        #expect(bench.server.connectionCount == 1)
    }

    @Test func responseWithoutTrailersHasEmptyTrailers() async throws {
        let bench = try WireBench { _ in .text("hello").chunked() }
        #expect(try await bench.session.transfer(Request(bench.server.url("/"))).response().trailers.isEmpty)
        #expect(try await StreamRecord(bench.session.transfer(Request(bench.server.url("/")))).trailers == nil)
    }

    @Test func forbiddenTrailerFieldsAreDropped() async throws {
        let names = [
            "Content-Length", "transfer-encoding", "Host", "Set-Cookie", "Authorization", "Content-Type",
            "Content-Encoding", "Trailer", "TE", "Location", "Cache-Control",
        ]
        let bench = try WireBench { _ in
            names.reduce(MockResponse.text("hello")) { $0.trailer($1, "1") }.trailer("ETag", "\"x\"")
        }
        for _ in 0..<2 {
            let response = try await bench.session.transfer(Request(bench.server.url("/"))).response()
            #expect(response.value == Data("hello".utf8))
            #expect(response.trailers == ["ETag": "\"x\""])
            #expect(response.head.contentType == "text/plain; charset=utf-8" && response.head.contentLength == nil)
        }
        #expect(bench.server.connectionCount == 1)
    }

    @Test func foldedTrailersAreJoined() async throws {
        let bench = try WireBench { _ in
            raw("Transfer-Encoding: chunked", "5\r\nhello\r\n0\r\nA: one\r\n  two\r\nB: c\r\n\r\n")
        }
        let response = try await bench.session.transfer(Request(bench.server.url("/"))).response()
        #expect(response.trailers == ["A": "one two", "B": "c"])
    }

    @Test func truncatedTransferHasNoTrailers() async throws {
        let bench = try WireBench { _ in
            raw("Transfer-Encoding: chunked", "5\r\nhello\r\n0\r\nA: one\r\n").fault(.close, at: .end)
        }
        var record = StreamRecord()
        let error = try await networkError {
            for try await element in bench.session.transfer(Request(bench.server.url("/"))).stream {
                record.take(element)
            }
        }
        #expect(error.kind == .connectionLost)
        #expect(record.trailers == nil && record.body == Data("hello".utf8))
    }
}
