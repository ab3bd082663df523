// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting
import FoundationEssentials
import Testing

/// The requests that `data(for:)` sends, and the responses that it returns.
@Suite(.timeLimit(.minutes(5)))
struct DataTests {
    @Test func getSendsTheExactRequest() async throws {
        let server = try MockServer()
        server.on("GET", "/a", .text("hello").field("X-Tag", "7"))
        let (data, head) = try await Session().data(for: Request(server.url("/a?x=1&y=%20z")))
        #expect(data == Data("hello".utf8))
        #expect(head.status == .ok)
        #expect(head.reason == "OK")
        #expect(head.version == .http1_1)
        #expect(head.contentLength == 5)
        #expect(head["x-tag"] == "7" && head["X-TAG"] == "7")
        #expect(head.fields["CONTENT-type"] == "text/plain; charset=utf-8")

        let request = try #require(server.requests.first)
        #expect(request.method == "GET")
        #expect(request.target == "/a?x=1&y=%20z")
        #expect(request.version == "HTTP/1.1")
        #expect(request.fields.map(\.name) == ["Host", "Accept", "User-Agent", "Accept-Encoding"])
        #expect(request.field("Host") == "127.0.0.1:\(server.port)")
        #expect(request.field("User-Agent") == Session.Configuration().fields[.userAgent])
        #expect(request.field("Accept") == "*/*")
        #expect(server.violations.isEmpty)
    }

    @Test(arguments: [Method.get, .head, .post, .put, .patch, .delete, .options, .trace, "PURGE", "M-SEARCH"])
    func methodsAreSentWithoutBody(_ method: Method) async throws {
        let server = try MockServer { _ in .text("hello") }
        let (data, head) = try await Session().data(for: Request(method, server.url("/x")))
        #expect(data == Data((method == .head ? "" : "hello").utf8))
        #expect(head.contentLength == 5)
        let request = try #require(server.requests.first)
        #expect(request.method == method.rawValue)
        let owesLength = [.post, .put, .patch].contains(method)
        #expect(request.fields("Content-Length") == (owesLength ? ["0"] : []))
        for name in ["Content-Type", "Expect", "Transfer-Encoding"] { #expect(request.field(name) == nil) }
        #expect(request.fields("Accept") == ["*/*"])
        #expect(request.fields("User-Agent").count == 1)
        #expect(server.violations.isEmpty)
    }

    @Test(arguments: [Method.get, .post, .put, .patch, .delete, "REPORT"])
    func methodsAreSentWithBody(_ method: Method) async throws {
        let server = try MockServer { _ in .text("done") }
        let request = Request(method, server.url("/x"), body: .text("äbc"))
        let (data, _) = try await Session().data(for: request)
        #expect(data == Data("done".utf8))
        let seen = try #require(server.requests.first)
        #expect(seen.method == method.rawValue)
        #expect(seen.bodyText == "äbc")
        #expect(seen.fields("Content-Length") == ["4"])
        for name in ["Content-Type", "Expect", "Transfer-Encoding"] { #expect(seen.field(name) == nil) }
    }

    @Test func reusedHandleServesAllMethodsAndBodies() async throws {
        let server = try MockServer { request in .text("\(request.method) \(request.bodyText)") }
        let session = Session { $0.limits.transfersPerHost = 1 }
        let url = server.url("/")
        let turns: [(Request, String)] = [
            (Request(.post, url, body: .text("a")), "POST a"), (Request(.get, url), "GET "),
            (Request(.head, url), ""), (Request(.get, url), "GET "),
            (Request("PURGE", url), "PURGE "), (Request(.put, url, body: .bytes([])), "PUT "),
            (Request(.delete, url, body: .text("b")), "DELETE b"), (Request(.delete, url), "DELETE "),
            (Request(.head, url), ""), (Request(.post, url), "POST "),
        ]
        for (request, expected) in turns {
            #expect(String(decoding: try await session.data(for: request).0, as: UTF8.self) == expected)
        }
        #expect(server.requests.map(\.method) == turns.map(\.0.method.rawValue))
        #expect(server.connectionCount == 1)
    }

    @Test func requestFieldsReplaceSessionFields() async throws {
        let server = try MockServer { _ in .status(204) }
        let session = Session {
            $0.fields = [.userAgent: "Test/1", .accept: "a/b", "X-One": "session", "X-Kept": "kept"]
            $0.http.decompression = .off
        }
        var fields: HeaderFields = [.accept: "c/d", "x-one": "mine", "X-Empty": ""]
        fields.append("X-Two", "a")
        fields.append("X-Two", "b; q=\"x\"")
        _ = try await session.data(for: Request(server.url("/"), fields: fields))
        let lines = try #require(server.requests.first).fields.dropFirst().map { "\($0.name): \($0.value)" }
        #expect(
            lines == [
                "User-Agent: Test/1", "X-Kept: kept", "Accept: c/d", "x-one: mine", "X-Empty: ", "X-Two: a",
                "X-Two: b; q=\"x\"",
            ])
        #expect(server.violations.isEmpty)
    }

    @Test func defaultFieldsCanBeRemoved() async throws {
        let server = try MockServer { _ in .status(204) }
        let session = Session {
            $0.fields = [:]
            $0.http.decompression = .off
        }
        _ = try await session.data(for: Request(.post, server.url("/"), body: .text("x")))
        #expect(try #require(server.requests.first).fields.map(\.name) == ["Host", "Content-Length"])
    }

    @Test func nonASCIIFieldValuesAreSentAsUTF8() async throws {
        let server = try MockServer { _ in .status(204) }
        _ = try await Session().data(for: Request(server.url("/"), fields: ["X-Name": "Jörg \t 日本"]))
        #expect(server.requests.first?.field("X-Name") == "Jörg \t 日本")
    }

    @Test(arguments: [204, 304]) func statusesWithoutBodyReturnNoData(_ code: Int) async throws {
        let server = try MockServer { _ in .status(code, [("Content-Length", "99")], body: [1]) }
        let session = Session()
        for _ in 0..<2 {
            let (data, head) = try await session.data(for: Request(server.url("/")))
            #expect(data.isEmpty)
            #expect(head.status.code == code)
        }
        #expect(server.connectionCount == 1)
    }

    @Test func emptyBodiesAreReceived() async throws {
        let server = try MockServer { _ in .bytes([]) }
        server.on("GET", "/chunked", .bytes([]).chunked())
        server.on("GET", "/close", .bytes([]).untilClose())
        for path in ["/", "/chunked", "/close"] {
            let (data, head) = try await Session().data(for: Request(server.url(path)))
            #expect(data.isEmpty && head.status == .ok)
        }
    }

    @Test(arguments: [200, 201, 299, 302, 400, 404, 418, 429, 500, 503, 599, 999])
    func anyStatusIsReturnedWithoutError(_ code: Int) async throws {
        let server = try MockServer { _ in .text("body of \(code)", status: code) }
        let (data, head) = try await Session().data(for: Request(server.url("/")))
        #expect(head.status.code == code)
        #expect(String(decoding: data, as: UTF8.self) == "body of \(code)")
    }

    @Test func informationalResponsesAreSkipped() async throws {
        let script = MockResponse.text("late").informational(103, [("Link", "</a>")]).informational(102)
        let server = try MockServer { _ in script }
        let (data, head) = try await Session().data(for: Request(server.url("/")))
        #expect(head.status == .ok && head["Link"] == nil)
        #expect(data == Data("late".utf8))
    }

    @Test func repeatedResponseFieldsStaySeparate() async throws {
        let script = MockResponse.text("x").field("Set-Cookie", "a=1").field("Vary", "A").field("Set-Cookie", "b=2")
            .field("vary", "B")
        let server = try MockServer { _ in script }
        let (_, head) = try await Session().data(for: Request(server.url("/")))
        #expect(head.fields.values(for: "set-cookie") == ["a=1", "b=2"])
        #expect(head["VARY"] == "A, B")
    }

    @Test(arguments: [1, 4095, 65536, 1 << 20, 20 << 20]) func bodiesOfAnySizeAreReceived(_ length: Int) async throws {
        let body = PatternBody(seed: 3, length: length)
        let expected = body.sha256
        let server = try MockServer { _ in .pattern(body) }
        server.on("GET", "/chunked", .pattern(body).chunked(size: 10_007))
        server.on("GET", "/close", .pattern(body).untilClose())
        let session = Session()
        for path in ["/length", "/chunked", "/close"] {
            let (data, head) = try await session.data(for: Request(server.url(path)))
            #expect(data.count == length && data.sha256 == expected, "\(path)")
            #expect(head.contentLength == (path == "/length" ? Int64(length) : nil))
        }
    }

    @Test func connectionsAreReused() async throws {
        let server = try MockServer { _ in .text("x") }
        let session = Session()
        var reused: [Bool] = []
        for _ in 0..<3 {
            let response = try await session.transfer(Request(server.url("/"))).response()
            reused.append(response.metrics.isConnectionReused)
        }
        #expect(reused == [false, true, true])
        #expect(server.connectionCount == 1)
        #expect(server.requests.map(\.ordinal) == [1, 2, 3])
    }

    @Test func connectionCloseIsRespected() async throws {
        let server = try MockServer { _ in .text("x").closing() }
        let session = Session()
        for _ in 0..<3 { _ = try await session.data(for: Request(server.url("/"))) }
        #expect(server.connectionCount == 3)
    }

    /// Signed URLs, and resources whose names have dot segments, are requested under exactly that name.
    @Test func dotSegmentsAreSentUnchanged() async throws {
        let server = try MockServer { .text($0.target) }
        let (data, _) = try await Session().data(for: Request(server.url("/a/../b/./c?d=/../e")))
        #expect(String(decoding: data, as: UTF8.self) == "/a/../b/./c?d=/../e")
    }

    @Test func sessionsDoNotShareConnections() async throws {
        let server = try MockServer { _ in .text("x") }
        let first = Session()
        let second = Session()
        for session in [first, second] { _ = try await session.data(for: Request(server.url("/"))) }
        #expect(server.connectionCount == 2)
    }

    @Test func ipv6AddressesAreSupported() async throws {
        let server = try MockServer(address: .v6) { _ in .text("six") }
        let response = try await Session().transfer(Request(server.url("/"))).response()
        #expect(response.value == Data("six".utf8))
        #expect(response.metrics.remoteAddress == "[::1]:\(server.port)")
        #expect(server.requests.first?.field("Host") == "[::1]:\(server.port)")
    }

    @Test func foundationURLIsSentUnchanged() async throws {
        let server = try MockServer { _ in .text("x") }
        let url = try #require(URL(string: server.url("/a%20b?c=d")))
        _ = try await Session.shared.data(for: Request(url))
        #expect(server.requests.first?.target == "/a%20b?c=d")
    }

    @Test func fragmentIsNotSent() async throws {
        let server = try MockServer { _ in .text("x") }
        _ = try? await Session().data(for: Request("http://127.0.0.1:\(server.port)/p?q=1#part"))
        #expect(server.requests.map(\.target) == ["/p?q=1"])
    }
}
