// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting
import FoundationEssentials
import Testing

/// Invalid requests are refused before a connection opens, and response bodies over the limit end the transfer.
@Suite(.timeLimit(.minutes(5)))
struct RefusalTests {
    private func expectRefusal(_ request: Request, by session: Session = Session()) async throws {
        let error = try await networkError { try await session.data(for: request) }
        #expect(error.kind == .invalidRequest)
        #expect(error.phase == .preparing)
        #expect(error.code == "curlew.invalid_request.preparing")
        #expect(error.exitCode == 64)
        #expect(error.request?.url == request.url)
        #expect(error.response == nil && error.engineCode == nil)

        let transfer = session.transfer(request)
        #expect(transfer.id > 0 && transfer.state == .finished && transfer.metrics == nil)
        transfer.start()
        transfer.pause()
        transfer.resume()
        transfer.cancel()
        #expect(try await networkError { try await transfer.value }.kind == .invalidRequest)
        #expect(try await networkError { try await transfer.response() }.kind == .invalidRequest)
        #expect(try await networkError { for try await _ in transfer.stream {} }.kind == .invalidRequest)
        #expect(try await networkError { for try await _ in transfer.bytes {} }.kind == .invalidRequest)
        var values = 0
        for await progress in transfer.progress {
            values += 1
            #expect(!progress.isFinished)
        }
        #expect(values == 1)
    }

    @Test(arguments: [
        "", "/relative", "not a url", "http://", "http:///path", "ftp://127.0.0.1/", "file:///etc/passwd",
        "http://ho st/", "http://ho%00st/", "http://ho\u{0}st/", "http://host:99999/", "http://host:x/",
        "http://host/\r\nX: y", "http://[::1/", "javascript:alert(1)",
    ])
    func invalidURLsAreRefused(_ url: String) async throws { try await expectRefusal(Request(url)) }

    @Test(arguments: ["", "GE T", "GET\r\nX:", "GET\u{0}", "GÉT", "GET:", "(GET)"])
    func invalidMethodsAreRefused(_ method: String) async throws {
        let server = try MockServer()
        try await expectRefusal(Request(Method(method), server.url("/")))
        #expect(server.connectionCount == 0)
    }

    @Test func connectMethodIsRefused() async throws {
        let server = try MockServer()
        try await expectRefusal(Request(.connect, server.url("/")))
        #expect(server.connectionCount == 0)
    }

    @Test(arguments: [
        ("X-A", "a\r\nX-B: b"), ("X-A", "a\nb"), ("X-A", "a\rb"), ("X-A", "a\u{0}b"), ("X-A", "a\u{7F}"),
        ("X A", "a"), ("X-A:", "a"), ("", "a"), ("X-A\r\nX-B", "a"), ("Ü", "a"),
    ])
    func invalidFieldsAreRefused(_ name: String, _ value: String) async throws {
        let server = try MockServer()
        try await expectRefusal(Request(server.url("/"), fields: [HeaderName(name): value]))
        #expect(server.connectionCount == 0)
    }

    @Test(arguments: ["Host", "content-length", "Transfer-Encoding"])
    func framingFieldsAreRefused(_ name: String) async throws {
        let server = try MockServer()
        try await expectRefusal(Request(.post, server.url("/"), fields: [HeaderName(name): "1"], body: .text("x")))
        #expect(server.connectionCount == 0)
    }

    @Test func invalidOptionsAreRefused() async throws {
        let server = try MockServer()
        for timeouts in [Timeouts(connect: .zero), Timeouts(idle: .seconds(-1)), Timeouts(total: .zero)] {
            try await expectRefusal(Request(server.url("/"), options: Request.Options(timeouts: timeouts)))
        }
        try await expectRefusal(Request(server.url("/"), options: Request.Options(responseLimit: .bytes(-1))))
        #expect(server.connectionCount == 0)
    }

    @Test func invalidConfigurationsAreRefused() async throws {
        let server = try MockServer { _ in .text("x") }
        let changes: [@Sendable (inout Session.Configuration) -> Void] = [
            { $0.limits.connections = 0 }, { $0.timeouts.connect = .zero }, { $0.fields = ["X": "a\r\nb"] },
            { $0.buffers.lowWater = .gibibytes(1) },
            { $0.tls = Session.Configuration.TLS(minimumVersion: .v1_3, maximumVersion: .v1_2) },
        ]
        for change in changes {
            try await expectRefusal(Request(server.url("/")), by: Session(Session.Configuration(change)))
        }
        #expect(server.connectionCount == 0)
    }

    @Test(arguments: [false, true]) func bodiesOverTheLimitThrowBodyTooLarge(_ isChunked: Bool) async throws {
        let body = PatternBody(seed: 1, length: 10_000)
        let script = MockResponse.pattern(body)
        let server = try MockServer { _ in isChunked ? script.chunked(size: 700) : script }
        let session = Session()
        var request = Request(server.url("/"))
        request.options.responseLimit = .bytes(10_000)
        #expect(try await session.data(for: request).0.sha256 == body.sha256)

        request.options.responseLimit = .bytes(9_999)
        let error = try await networkError { try await session.data(for: request) }
        #expect(error.kind == .bodyTooLarge)
        #expect(error.phase == .receiving)
        #expect(error.response?.status == .ok)
        #expect(error.body.count <= 4096)
        #expect(error.body == Array(body.bytes.prefix(error.body.count)))
        #expect(error.exitCode == 65)
        #expect(error.retriability == .never)
    }

    @Test func declaredLengthOverTheLimitFailsAtOnce() async throws {
        let gate = Gate()
        let server = try MockServer { _ in
            .bytes([UInt8](repeating: 1, count: 5000)).fault(.stall(gate), at: .body(1))
        }
        var request = Request(server.url("/"))
        request.options.responseLimit = .bytes(1000)
        let error = try await networkError { try await Session().data(for: request) }
        #expect(error.kind == .bodyTooLarge && error.phase == .receiving)
        #expect(!gate.isOpen)
    }

    @Test func responseBodyLimitOfSessionApplies() async throws {
        let server = try MockServer { _ in .pattern(PatternBody(seed: 1, length: 64 << 20)) }
        let session = Session { $0.limits.responseBody = .mebibytes(1) }
        let error = try await networkError { try await session.data(for: Request(server.url("/"))) }
        #expect(error.kind == .bodyTooLarge)
        #expect(server.bytesSent < 64 << 20)
        await server.waitUntil(openConnections: 0)
    }

    @Test func streamsHaveNoBodyLimit() async throws {
        let body = PatternBody(seed: 1, length: 300_000)
        let server = try MockServer { _ in .pattern(body) }
        let session = Session { $0.limits.responseBody = .bytes(10) }
        #expect(try await StreamRecord(session.transfer(Request(server.url("/")))).body.sha256 == body.sha256)
    }
}
