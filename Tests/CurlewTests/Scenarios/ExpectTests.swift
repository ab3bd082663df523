// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting
import FoundationEssentials
import Testing

/// `Expect: 100-continue`: the bodies that use it, its timeout, and refusals before the body is sent.
@Suite(.timeLimit(.minutes(5)))
struct ExpectTests {
    static let cases: [(policy: Request.ExpectContinue?, length: Int, asks: Bool)] = [
        (nil, 100, false), (nil, 1 << 20, true), (nil, (1 << 20) - 1, false), (.never, 2 << 20, false),
        (.always, 1, true), (.always, 70_000, true), (.always, 0, false), (.above(.kibibytes(4)), 4095, false),
        (.above(.kibibytes(4)), 4096, true),
    ]

    @Test(arguments: cases)
    func expectContinuePolicyDependsOnBodyLength(_ policy: Request.ExpectContinue?, _ length: Int, _ asks: Bool)
        async throws
    {
        let server = try MockServer { _ in .text("thanks") }
        let pattern = PatternBody(seed: 1, length: length)
        let options = Request.Options(expectContinue: policy)
        let request = Request(.post, server.url("/"), body: .bytes(pattern.bytes), options: options)
        #expect(try await Session().data(for: request).0 == Data("thanks".utf8))
        let seen = try #require(server.requests.first)
        #expect(seen.expectsContinue == asks)
        #expect(seen.bodySHA256 == pattern.sha256)
        var configuration = Session.Configuration()
        configuration.http.expectContinue = policy ?? configuration.http.expectContinue
        _ = try await Session(configuration).data(for: Request(.put, server.url("/"), body: .bytes(pattern.bytes)))
        #expect(server.requests.last?.expectsContinue == asks)
    }

    @Test func bodiesOfUnknownLengthExpectContinue() async throws {
        let server = try MockServer { _ in .text("thanks") }
        for (policy, asks) in [(nil, true), (.never, false)] as [(Request.ExpectContinue?, Bool)] {
            let source = ChunkSource(body: PatternBody(seed: 1, length: 1000))
            let options = Request.Options(expectContinue: policy)
            _ = try await Session().data(for: Request(.post, server.url("/"), body: .stream(source), options: options))
            #expect(server.requests.last?.expectsContinue == asks)
        }
    }

    @Test(arguments: [false, true]) func refusedExpectContinueSendsNoBody(_ byField: Bool) async throws {
        let server = try MockServer()
        server.on("PUT", "/", .text("no", status: 413), reading: .none)
        let body = RequestBody.bytes(PatternBody(seed: 1, length: 9000).bytes)
        var request = Request(.put, server.url("/"), body: body)
        if byField { request.fields[.expect] = "100-continue" } else { request.options.expectContinue = .always }
        let transfer = Session().transfer(request)
        let response = try await transfer.response()
        #expect(response.head.status == 413 && response.value == Data("no".utf8))
        #expect(response.metrics.requestBodyBytes == 0)
        #expect(transfer.currentProgress.sent == 0)
    }

    @Test func bodyIsSentAfterExpectContinueTimeout() async throws {
        let server = try MockServer()
        server.on("POST", "/", .text("thanks"), reading: .whole.withoutContinue())
        let session = Session {
            $0.http.expectContinue = .always
            $0.http.expectContinueTimeout = .milliseconds(200)
        }
        let clock = ContinuousClock.now
        #expect(
            try await session.data(for: Request(.post, server.url("/"), body: .text("x"))).0 == Data("thanks".utf8))
        #expect(clock.duration(to: .now) >= .milliseconds(150))
        #expect(server.requests.first?.bodyText == "x")
    }

    @Test(arguments: [false, true], [false, true])
    func expectationFailedIsRetriedWithoutExpect(_ closes: Bool, _ byField: Bool) async throws {
        let server = try MockServer()
        let refusal = MockResponse.text("what?", status: 417)
        server.on("POST", "/", reading: .none) { request in
            request.expectsContinue ? (closes ? refusal.closing() : refusal) : .text("not read")
        }
        let pattern = PatternBody(seed: 1, length: 2 << 20)
        var request = Request(.post, server.url("/"), body: .bytes(pattern.bytes))
        if byField { request.fields[.expect] = "100-continue" }
        let transfer = Session().transfer(request)
        var record = StreamRecord()
        for try await element in transfer.stream { record.take(element) }
        #expect(record.order.count { $0 == "head" } == 1, "the refusal is not shown")
        #expect(record.body == Data("not read".utf8))
        #expect(server.requests.map(\.expectsContinue) == [true, false])
    }

    @Test func expectFieldAppliesToCompressedBody() async throws {
        let server = try MockServer()
        server.on("PUT", "/", .text("no", status: 413), reading: .none)
        let text = String(repeating: "a line that compresses well\n", count: 2000)
        var request = Request(.put, server.url("/"), body: .text(text))
        request.fields[.expect] = "100-continue"
        let transfer = Session { $0.http.compression = .gzip() }.transfer(request)
        #expect(try await transfer.response().head.status == 413)
        #expect(try #require(transfer.metrics).requestBodyBytes == 0)
    }

    @Test func expectationFailedThenUnsupportedMediaTypeAreRetried() async throws {
        let server = try MockServer()
        server.on("POST", "/", reading: .none) { request in
            if request.expectsContinue { return .text("what?", status: 417) }
            return request.field("Content-Encoding") == nil ? .text("at last") : .text("what?", status: 415)
        }
        let session = Session {
            $0.http.compression = .gzip()
            $0.http.expectContinue = .always
        }
        let text = String(repeating: "a line that compresses well\n", count: 20_000)
        let (data, _) = try await session.data(for: Request(.post, server.url("/"), body: .text(text)))
        #expect(data == Data("at last".utf8))
        let seen = server.requests.map { ($0.expectsContinue, $0.field("Content-Encoding")) }
        #expect(seen.map(\.0) == [true, false, false])
        #expect(seen.map(\.1) == ["gzip", "gzip", nil])
    }
}
