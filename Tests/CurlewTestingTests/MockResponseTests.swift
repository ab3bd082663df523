// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewTesting
import Testing

@Suite(.timeLimit(.minutes(5)))
struct MockResponseTests {
    @Test func textResponseHasAContentLength() throws {
        let server = try MockServer()
        server.on("GET", "/", .text("hello"))
        let response = try WireClient(server).exchange("GET", "/")
        #expect(response.status == 200)
        #expect(response.reason == "OK")
        #expect(response.text == "hello")
        #expect(response.field("Content-Type") == "text/plain; charset=utf-8")
        #expect(response.fields.map(\.name) == ["Content-Type", "Content-Length"])
    }

    @Test func jsonBytesAndRedirectResponsesAreSent() throws {
        let server = try MockServer()
        server.on("GET", "/json", .json("[1]", status: 201))
        server.on("GET", "/bytes", .bytes([0, 255, 10]))
        server.on("GET", "/moved", .redirect(to: "/bytes", status: 307))
        let client = try WireClient(server)
        let json = try client.exchange("GET", "/json")
        #expect(json.status == 201 && json.text == "[1]" && json.field("Content-Type") == "application/json")
        #expect(try client.exchange("GET", "/bytes").body == [0, 255, 10])
        let moved = try client.exchange("GET", "/moved")
        #expect(moved.status == 307 && moved.field("Location") == "/bytes" && moved.field("Content-Length") == "0")
        #expect(server.connectionCount == 1)
    }

    @Test func unmatchedRequestsGetNotFoundOrTheFallback() throws {
        let server = try MockServer()
        let response = try WireClient(server).exchange("PUT", "/nowhere")
        #expect(response.status == 404)
        #expect(response.text == "No route for PUT /nowhere\n")
        let other = try MockServer { request in .text(request.path, status: 418) }
        #expect(try WireClient(other).exchange("GET", "/teapot").text == "/teapot")
    }

    @Test func latestMatchingRouteIsUsed() throws {
        let server = try MockServer()
        server.on(nil, "/files/*", .text("any"))
        server.on("GET", "/files/a", .text("old"))
        server.on("GET", "/files/a", .text("new"))
        let client = try WireClient(server)
        #expect(try client.exchange("GET", "/files/a").text == "new")
        #expect(try client.exchange("DELETE", "/files/a").text == "any")
        #expect(try client.exchange("GET", "/files/b?x=/files/a").text == "any")
        #expect(try client.exchange("GET", "/file").status == 404)
    }

    @Test func orderedResponsesRepeatTheLast() throws {
        let server = try MockServer()
        server.on("GET", "/", inOrder: [.status(503), .status(429), .text("fine")])
        let client = try WireClient(server)
        #expect(try (0..<4).map { _ in try client.exchange("GET", "/").status } == [503, 429, 200, 200])
    }

    @Test func customFieldsAndReasonReplaceDefaults() throws {
        let server = try MockServer()
        let lie = MockResponse.status(200, [("content-length", "2"), ("X", "1"), ("X", "2")], body: [65, 66, 67])
        server.on("GET", "/", lie.status(299, reason: "Odd Enough").closing())
        let client = try WireClient(server)
        try client.request("GET", "/")
        let (bytes, ending) = try client.rest()
        let expected = "HTTP/1.1 299 Odd Enough\r\ncontent-length: 2\r\nX: 1\r\nX: 2\r\nConnection: close\r\n\r\nABC"
        #expect(String(decoding: bytes, as: UTF8.self) == expected)
        #expect(ending == .fin)
    }

    @Test func headNoContentAndNotModifiedHaveNoBody() throws {
        let server = try MockServer()
        server.on("HEAD", "/", .text("hello"))
        server.on("GET", "/204", .text("no", status: 204))
        server.on("GET", "/304", .text("no", status: 304))
        let client = try WireClient(server)
        #expect(try client.exchange("HEAD", "/").field("Content-Length") == "5")
        for status in [204, 304] {
            let response = try client.exchange("GET", "/\(status)")
            #expect(response.status == status && response.field("Content-Length") == nil)
        }
        #expect(try client.exchange("GET", "/404").status == 404)
    }

    @Test func chunkedResponseEndsWithTrailers() throws {
        let server = try MockServer()
        server.on("GET", "/", .text("0123456789").chunked(size: 4).trailer("X-Sum", "45").trailer("X-End", "yes"))
        let client = try WireClient(server)
        try client.request("GET", "/")
        let head = try client.head()
        #expect(head.field("Transfer-Encoding") == "chunked" && head.field("Content-Length") == nil)
        #expect(head.field("Trailer") == "X-Sum, X-End")
        #expect(try [client.chunk(), client.chunk(), client.chunk()].map { $0?.count } == [4, 4, 2])
        #expect(try client.chunk() == nil)
        let end = Array("X-Sum: 45\r\nX-End: yes\r\n\r\n".utf8)
        #expect(try client.take(end.count) == end)
        #expect(try client.exchange("GET", "/").text == "0123456789")
    }

    @Test func informationalResponsesAreSentFirst() throws {
        let server = try MockServer()
        server.on("GET", "/", .text("x").informational(102).informational(103, [("Link", "</a.css>")]))
        let client = try WireClient(server)
        try client.request("GET", "/")
        #expect(try client.response().status == 102)
        #expect(try client.response().field("Link") == "</a.css>")
        #expect(try client.response().text == "x")
    }

    @Test func bodyDelimitedByCloseIsSent() throws {
        let server = try MockServer()
        server.on("GET", "/", .text("all of it").untilClose())
        let response = try WireClient(server).exchange("GET", "/")
        #expect(response.field("Content-Length") == nil && response.field("Connection") == "close")
        #expect(response.text == "all of it")
    }

    @Test func rawResponseIsSentUnchanged() throws {
        let server = try MockServer()
        server.on("GET", "/", .raw("HTTP/1.1 abc\r\nnonsense").closing())
        let client = try WireClient(server)
        try client.request("GET", "/")
        #expect(try client.rest() == (Array("HTTP/1.1 abc\r\nnonsense".utf8), .fin))
    }

    @Test(arguments: [false, true])
    func longPatternBodyIsStreamed(chunked: Bool) throws {
        let pattern = PatternBody(seed: 3, length: 20_000_003)
        let server = try MockServer()
        server.on("GET", "/", chunked ? .pattern(pattern).chunked(size: 100_000) : .pattern(pattern))
        let client = try WireClient(server)
        try client.request("GET", "/")
        let head = try client.head()
        #expect(head.field("Content-Length") == (chunked ? nil : "20000003"))
        var digest = SHA256Stream()
        if chunked {
            while let chunk = try client.chunk() { digest.update(chunk) }
        } else {
            for size in Array(repeating: 1_000_000, count: 20) + [3] { digest.update(try client.take(size)) }
        }
        #expect(digest.hex == pattern.sha256)
    }
}
