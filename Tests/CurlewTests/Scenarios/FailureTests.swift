// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting
import FoundationEssentials
import Testing

/// Network failures, with the kind, the phase and the response received so far.
@Suite(.timeLimit(.minutes(5)))
struct FailureTests {
    private func failure(
        of response: MockResponse, _ location: SourceLocation = #_sourceLocation
    ) async throws -> NetworkError {
        let server = try MockServer { _ in response }
        return try await networkError(location) { try await Session().data(for: Request(server.url("/p?q=1"))) }
    }

    @Test func refusedConnectionIsCannotConnect() async throws {
        let port = try #require(ClosedPort())
        let error = try await networkError {
            try await Session().data(for: Request("http://127.0.0.1:\(port.number)/"))
        }
        #expect(error.kind == .cannotConnect)
        #expect(error.phase == .connecting)
        #expect(error.engineCode == 7)
        #expect(error.code == "curlew.cannot_connect.connecting")
        #expect(error.exitCode == 69)
        #expect(error.retriability == .safe(after: nil))
        #expect(error.hint != nil && error.attempts == 1)
        #expect(try #require(error.duration) > .zero)
    }

    @Test func unknownHostIsCannotResolve() async throws {
        let error = try await networkError { try await Session().data(for: "http://nonexistent.invalid/") }
        #expect(error.kind == .cannotResolve)
        #expect(error.phase == .resolving)
        #expect(error.code == "curlew.cannot_resolve.resolving")
        #expect(error.exitCode == 68)
        #expect(error.retriability == .safe(after: nil))
    }

    @Test(arguments: [SocketFault.reset, .close])
    func connectionLostBeforeTheHeadIsReported(_ fault: SocketFault) async throws {
        let error = try await failure(of: .text("x").fault(fault, at: .start))
        #expect(error.kind == .connectionLost)
        #expect(error.phase == .waiting)
        #expect(error.response == nil && error.body.isEmpty)
        #expect(error.exitCode == 74)
        #expect(error.code == "curlew.connection_lost.waiting")
        #expect(error.retriability == .safe(after: nil))
    }

    @Test(arguments: [SocketFault.reset, .close], [1, 12, 17, 30])
    func connectionLostInsideTheHeadIsReported(_ fault: SocketFault, _ offset: Int) async throws {
        let error = try await failure(of: .text("hello").fault(fault, at: .head(offset)))
        #expect(error.kind == .connectionLost)
        #expect(error.response == nil && error.body.isEmpty)
    }

    @Test func failedPostIsRetriableOnlyIfIdempotent() async throws {
        let server = try MockServer { _ in .text("x").fault(.reset, at: .start) }
        let request = Request(.post, server.url("/"), body: .text("order"))
        let error = try await networkError { try await Session().data(for: request) }
        #expect(error.kind == .connectionLost && error.phase == .waiting)
        #expect(error.retriability == .ifIdempotent)
    }

    @Test(arguments: [SocketFault.reset, .close, .cut], [0, 100, 70_000])
    func connectionLostInsideTheBodyIsReported(_ fault: SocketFault, _ offset: Int) async throws {
        let body = PatternBody(seed: 1, length: 100_000)
        for script in [MockResponse.pattern(body), .pattern(body).chunked()] {
            let error = try await failure(of: script.fault(fault, at: .body(offset)))
            #expect(error.kind == .connectionLost)
            #expect(error.phase == .receiving)
            #expect(error.response?.status == .ok)
            #expect(error.response?.contentType == "application/octet-stream")
            #expect(error.body == body.bytes(in: 0..<min(offset, 4096)))
            #expect(error.code == "curlew.connection_lost.receiving")
        }
    }

    @Test func invalidChunkSizeFailsWhileReceiving() async throws {
        let error = try await failure(of: .text("hello").chunked().fault(.send(Array("zz\r\n".utf8)), at: .body(0)))
        #expect(error.kind == .connectionLost || error.kind == .invalidResponse)
        #expect(error.phase == .receiving)
        #expect(error.response?.status == .ok)
    }

    @Test(arguments: ["garbage\r\n\r\n", "HTTQ/1.1 200 OK\r\n\r\n", "\u{0}\u{1}\u{2}", "SSH-2.0-OpenSSH\r\n"])
    func responsesThatAreNotHTTPAreInvalid(_ text: String) async throws {
        let error = try await failure(of: .raw(text).fault(.close, at: .end))
        #expect(error.kind == .invalidResponse)
        #expect(error.phase == .waiting)
        #expect(error.response == nil)
        #expect(error.exitCode == 76)
    }

    @Test func http09ResponsesAreInvalid() async throws {
        let error = try await failure(of: .raw("<html>hello</html>").fault(.close, at: .end))
        #expect(error.kind == .invalidResponse)
    }

    @Test func responseHeadLimitIsEnforced() async throws {
        let server = try MockServer { _ in .text("x").field("X-Long", String(repeating: "a", count: 5000)) }
        server.on("GET", "/many", { (0..<400).reduce(MockResponse.text("x")) { $0.field("X-\($1)", "abcdefgh") } }())
        let session = Session { $0.limits.responseHead = .kibibytes(4) }
        for path in ["/", "/many"] {
            let error = try await networkError { try await session.data(for: Request(server.url(path))) }
            #expect(error.kind == .invalidResponse)
            #expect(error.response == nil)
            #expect(error.message.contains("4 KiB"))
        }
        let roomy = Session { $0.limits.responseHead = .kibibytes(64) }
        #expect(try await roomy.data(for: Request(server.url("/many"))).1.fields.count == 402)
    }

    @Test func endlessHeadsAreInvalid() async throws {
        let line = "X-Fill: \(String(repeating: "a", count: 900))\r\n"
        let text = "HTTP/1.1 200 OK\r\n" + String(repeating: line, count: 2000)
        let error = try await failure(of: .raw(text))
        #expect(error.kind == .invalidResponse)
    }

    @Test func errorDescriptionsHideSecrets() async throws {
        let server = try MockServer { _ in
            .text("private body").status(200).field("Set-Cookie", "sid=hush").fault(.reset, at: .body(7))
        }
        var request = Request("http://user:hunter2@127.0.0.1:\(server.port)/path?token=sesame#part")
        request.fields = ["Authorization": "Bearer hush", "Cookie": "a=hush", "X-Plain": "shown"]
        let error = try await networkError { try await Session().data(for: request) }
        #expect(error.kind == .connectionLost)
        let shown = error.description + "\n" + error.detailedDescription
        for secret in ["hunter2", "sesame", "hush", "private"] { #expect(!shown.contains(secret), "\(shown)") }
        for fact in ["/path", "token", "X-Plain", "shown", "200"] { #expect(shown.contains(fact), "\(shown)") }
        #expect(!error.description.contains("\n"))
        #expect(error.detailedDescription.hasPrefix("curlew.connection_lost.receiving\n"))
    }
}
