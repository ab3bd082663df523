// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewTesting
import Testing

@Suite(.timeLimit(.minutes(5)))
struct RequestTests {
    @Test func requestIsRecorded() throws {
        let server = try MockServer()
        let client = try WireClient(server)
        _ = try client.exchange("PATCH", "/a%20b?q=1?2", ["X-One: 1", "x-one:\t 2 ", "Empty:"], body: "abc")
        let request = try #require(server.requests.first)
        #expect(request.method == "PATCH" && request.target == "/a%20b?q=1?2")
        #expect(request.path == "/a%20b" && request.query == "q=1?2" && request.version == "HTTP/1.1")
        #expect(request.fields.map(\.name) == ["Host", "X-One", "x-one", "Empty", "Content-Length"])
        #expect(request.fields("X-ONE") == ["1", "2"] && request.field("empty") == "" && request.field("none") == nil)
        #expect(request.bodyText == "abc" && request.bodyLength == 3 && request.isBodyComplete)
        #expect(request.bodySHA256 == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
        #expect(request.connection == 1 && request.ordinal == 1 && request.tls == nil)
    }

    @Test(arguments: [
        ("http://example.test/p?q", "/p", "q"), ("http://example.test", "/", nil), ("http://example.test?q", "/", "q"),
        ("*", "*", nil), ("example.test:443", "example.test:443", nil), ("/?", "/", ""),
    ])
    func everyFormOfTargetIsParsed(target: String, path: String, query: String?) throws {
        let server = try MockServer()
        _ = try WireClient(server).exchange("OPTIONS", target)
        #expect(server.requests.map(\.path) == [path] && server.requests.map(\.query) == [query])
    }

    @Test func connectionsAndRequestsAreNumbered() throws {
        let server = try MockServer()
        let first = try WireClient(server)
        _ = try first.exchange("GET", "/1")
        _ = try first.exchange("GET", "/2")
        _ = try WireClient(server).exchange("GET", "/3")
        #expect(server.requests.map(\.connection) == [1, 1, 2])
        #expect(server.requests.map(\.ordinal) == [1, 2, 1])
    }

    @Test func pipelinedRequestsAreAnsweredInOrder() throws {
        let server = try MockServer { .text("\($0.path) \($0.bodyText)") }
        let client = try WireClient(server)
        try client.send(
            "POST /1 HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\none\r\n"
                + "POST /2 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\ntwo\r\n0\r\nT: 1\r\n\r\n"
                + "GET /3 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
        )
        #expect(try (0..<3).map { _ in try client.response().text } == ["/1 one", "/2 two", "/3 "])
        #expect(try client.rest() == ([], .fin))
        #expect(server.requests[1].trailers.map(\.value) == ["1"])
    }

    @Test func requestIsReadByteByByte() throws {
        let server = try MockServer { .text($0.bodyText) }
        let client = try WireClient(server)
        let text = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\na\r\n0123456789\r\n0\r\n\r\n"
        for byte in text.utf8 { try client.send([byte]) }
        #expect(try client.response().text == "0123456789")
    }

    @Test func recordedBodyIsLimitedAndItsLengthCounted() throws {
        var options = MockServer.Options()
        options.requestBodyLimit = 1000
        let server = try MockServer(options: options) { _ in .status(200) }
        let pattern = PatternBody(seed: 9, length: 3_000_000)
        let client = try WireClient(server)
        try client.send("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 3000000\r\n\r\n")
        try client.send(pattern.bytes)
        _ = try client.response()
        let request = try #require(server.requests.first)
        #expect(request.body == pattern.bytes(in: 0..<1000))
        #expect(request.bodyLength == 3_000_000 && request.bodySHA256 == pattern.sha256)
    }

    @Test func http10RequestGetsAnUnchunkedResponse() throws {
        let server = try MockServer { _ in .text("old").chunked() }
        let client = try WireClient(server)
        try client.send("GET / HTTP/1.0\r\n\r\n")
        let response = try client.response()
        #expect(response.text == "old" && response.field("Transfer-Encoding") == nil)
        #expect(server.requests.first?.version == "HTTP/1.0")
    }

    @Test(arguments: [
        ("GET /\r\n\r\n", 400), ("GET  / HTTP/1.1\r\nHost: a\r\n\r\n", 400), ("GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505),
        ("GET / HTTP/1.1\r\n\r\n", 400), ("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost : a\r\n\r\n", 400), ("GET / HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n", 400), ("GET / HTTP/1.1\r\nHost: a\u{0}\r\n\r\n", 400),
        ("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: +3\r\n\r\n", 400),
        ("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\n", 400),
        ("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
        ("PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 501),
        ("PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", 400),
        ("PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n0\r\n\r\n", 400),
    ])
    func malformedRequestsAreRejected(text: String, status: Int) throws {
        let server = try MockServer { _ in .text("accepted") }
        let client = try WireClient(server)
        try client.send(text)
        let response = try client.response()
        #expect(response.status == status && response.field("Connection") == "close")
        #expect(try client.rest() == ([], .fin))
        #expect(server.violations.count == 1)
    }

    @Test func headIsLimitedTo64KiB() throws {
        let server = try MockServer { _ in .text("accepted") }
        let line = "GET / HTTP/1.1\r\nHost: a\r\nX: "
        let fitting = String(repeating: "x", count: 64 * 1024 - line.utf8.count)
        let client = try WireClient(server)
        try client.send(line + fitting + "\r\n\r\n")
        #expect(try client.response().status == 200)
        try client.send(line + fitting + "x\r\n\r\n")
        #expect(try client.response().status == 431)
    }
}
