// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import Testing

@testable import CurlewMedia

@Suite struct PlayerRequestTests {
    private func request(_ head: String) throws(PlayerRequest.Flaw) -> PlayerRequest {
        try PlayerRequest(head: Array(head.utf8))
    }

    @Test func headIsParsed() throws {
        let request = try request(
            "GET /abc?x=1 HTTP/1.1\r\nHost: 127.0.0.1:80\r\nRANGE:bytes=0-1 \r\nA: 1\r\na:\t2\r\n\r\n")
        #expect(request.method == "GET" && request.path == "/abc" && request.host == "127.0.0.1:80")
        #expect(request["range"] == "bytes=0-1" && request["a"] == "1, 2" && request["b"] == nil)
        #expect(request.isCurrent && request.keepsAlive)
    }

    @Test func wholeUrlAsTargetNamesTheHost() throws {
        let request = try request("GET http://LOCAL:1/abc HTTP/1.1\r\nHost: other\r\n\r\n")
        #expect(request.host == "local:1" && request.path == "/abc")
    }

    @Test(arguments: [
        ("HTTP/1.1", "", true), ("HTTP/1.1", "Connection: close\r\n", false),
        ("HTTP/1.1", "Connection: foo, Close\r\n", false), ("HTTP/1.0", "", false),
        ("HTTP/1.0", "Connection: Keep-Alive\r\n", true),
    ])
    func connectionIsKept(_ version: String, _ field: String, _ isKept: Bool) throws {
        #expect(try request("GET / \(version)\r\nHost: a\r\n\(field)\r\n").keepsAlive == isKept)
    }

    @Test(arguments: [
        "\r\n", "GET / HTTP/1.1\r\n\r\n", "GET  / HTTP/1.1\r\nHost: a\r\n\r\n", "GET / HTTP/1.1\nHost: a\r\n\r\n",
        "GET / HTTP/1.1 \r\nHost: a\r\n\r\n", "G(T / HTTP/1.1\r\nHost: a\r\n\r\n", "GET x HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "GET / HTTP/1.1\r\nHost : a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\n b\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\nno colon\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\u{0}\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\rb\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n", "GET / HTTP/1.1\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", "GET / FTP/1.1\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 0, 0\r\n\r\n",
    ])
    func malformedHeadIsRefused(_ head: String) {
        #expect(throws: PlayerRequest.Flaw.malformed) { try request(head) }
    }

    @Test func otherVersionIsRefused() {
        #expect(throws: PlayerRequest.Flaw.version) { try request("GET / HTTP/2.0\r\nHost: a\r\n\r\n") }
    }

    @Test(
        arguments: [
            (nil, .whole), ("bytes=0-9", .part(0..<10)), ("bytes=0-", .part(0..<100)),
            ("bytes=90-200", .part(90..<100)),
            ("bytes=99-", .part(99..<100)), ("bytes=100-", .unsatisfiable), ("bytes=-10", .part(90..<100)),
            ("bytes=-500", .part(0..<100)), ("bytes=-0", .unsatisfiable), ("Bytes= 5-7", .part(5..<8)),
            ("bytes=9-5", .whole), ("bytes=0-1,4-5", .whole), ("bytes=", .whole), ("bytes=-", .whole),
            ("items=0-5", .whole), ("bytes=a-b", .whole), ("bytes=+1-5", .whole), ("bytes=1-5x", .whole),
            ("bytes=0-99999999999999999999", .part(0..<100)), ("bytes=99999999999999999999-", .unsatisfiable),
            ("bytes=-99999999999999999999", .part(0..<100)),
        ] as [(String?, PlayerRange)])
    func rangeIsInterpreted(_ field: String?, _ expected: PlayerRange) {
        #expect(PlayerRange(field, length: 100) == expected)
    }

    @Test func emptyFileHasNoRange() {
        #expect(PlayerRange("bytes=0-", length: 0) == .unsatisfiable)
        #expect(PlayerRange("bytes=-5", length: 0) == .unsatisfiable)
        #expect(PlayerRange(nil, length: 0) == .whole)
    }

    /// The status for the fields of a request and a file with the tag "a".
    @Test(arguments: [
        ("", 200), ("Range: bytes=0-4\r\n", 206), ("Range: bytes=500-\r\n", 416),
        ("Range: bytes=0-4\r\nIf-Range: \"a\"\r\n", 206), ("Range: bytes=0-4\r\nIf-Range: \"b\"\r\n", 200),
        ("Range: bytes=0-4\r\nIf-Range: W/\"a\"\r\n", 200), ("If-None-Match: \"a\"\r\n", 304),
        ("If-None-Match: W/\"a\"\r\n", 304), ("If-None-Match: \"x,y\", \"a\"\r\n", 304), ("If-None-Match: *\r\n", 304),
        ("If-None-Match: \"b\"\r\n", 200), ("If-Match: \"b\"\r\n", 412), ("If-Match: \"b\", \"a\"\r\n", 200),
        ("If-Match: W/\"a\"\r\n", 412), ("If-Match: *\r\n", 200),
        ("If-None-Match: \"b\"\r\nRange: bytes=0-4\r\n", 206),
    ])
    func conditionsDecideTheStatus(_ fields: String, _ status: Int) throws {
        let facts = MediaFacts(length: 100, contentType: "video/mp4", validator: .tag("\"a\""))
        let response = PlayerResponse(try request("GET / HTTP/1.1\r\nHost: a\r\n\(fields)\r\n"), facts)
        #expect(response.status == status)
        let head = String(decoding: response.head(keepsAlive: true), as: UTF8.self)
        #expect(head.contains("\r\nETag: \"a\"\r\n") && head.hasSuffix("\r\n\r\n"))
        #expect(head.contains("Content-Length:") == (status != 304))
    }

    @Test(arguments: [("Mon, 01 Dec 2025 00:00:00 GMT", 304), ("Sun, 30 Nov 2025 00:00:00 GMT", 200), ("x", 200)])
    func modificationDateIsCompared(_ since: String, _ status: Int) throws {
        let facts = MediaFacts(
            length: 100, contentType: nil, validator: .lastModified("Mon, 01 Dec 2025 00:00:00 GMT"))
        let head = "GET / HTTP/1.1\r\nHost: a\r\nIf-Modified-Since: \(since)\r\n\r\n"
        #expect(PlayerResponse(try request(head), facts).status == status)
    }

    @Test func mediaTypeCannotInjectFields() throws {
        let facts = MediaFacts(length: 1, contentType: "a\r\nSet-Cookie: x", validator: nil)
        let head = PlayerResponse(try request("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), facts).head(keepsAlive: false)
        #expect(!String(decoding: head, as: UTF8.self).contains("Cookie"))
    }
}
