// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Curlew

@Suite("ResponseHead, RFC 9112 §4")
struct ResponseHeadTests {
    static let heads: [(String, ResponseHead.HTTPVersion, Status, String?)] = [
        ("HTTP/1.1 200 OK\r\nA: 1\r\n\r\n", ResponseHead.HTTPVersion.http1_1, Status.ok, "OK"),
        ("HTTP/2 204 \r\nA: 1\r\n", .http2, 204, nil),
        ("HTTP/3 404\r\nA: 1\r\n", .http3, 404, nil),
        ("HTTP/1.0 999 Not  Known \nA: 1\n", .http1_0, 999, "Not  Known"),
        ("HTTP/2.0 200\r\nA: 1", .http2, 200, nil),
    ]

    @Test(arguments: heads)
    func headsAreParsed(block: String, version: ResponseHead.HTTPVersion, status: Status, reason: String?) throws {
        let head = try #require(ResponseHead(rawBlock: Array(block.utf8), url: "http://h/"))
        #expect(head.version == version)
        #expect(head.status == status)
        #expect(head.reason == reason)
        #expect(head.url == "http://h/")
        #expect(head["a"] == "1")
        #expect(head.fields == ["A": "1"])
        #expect(head["a"] == "1")
    }

    @Test(arguments: [
        "", "\r\n", "HTTP/1.1", "HTTP/1.1 \r\n", "HTTP/1.1 20\r\n", "HTTP/1.1 2000\r\n", "HTTP/1.1 2x0 OK\r\n",
        "HTTP/1.1 099 X\r\n", "HTTP/1.1  200 OK\r\n", "HTTP/x 200 OK\r\n", "HTTP/11 200 OK\r\n", "HTTP/1.x 200 OK\r\n",
        "HTTP/1,1 200 OK\r\n", "HTTP/ 200 OK\r\n", "ICY 200 OK\r\n", "http/1.1 200 OK\r\n", "HTTP/1.1 200OK\r\n",
        "HTTP/x.1 200 OK\r\n", "HTTP/1.1\t200 OK\r\n",
    ])
    func malformedStatusLinesAreRefused(block: String) {
        #expect(ResponseHead(rawBlock: Array(block.utf8)) == nil)
    }

    @Test func headWithoutFieldsIsParsed() throws {
        let head = try #require(ResponseHead(rawBlock: Array("HTTP/1.1 200".utf8)))
        #expect(head.fields.isEmpty)
        #expect(head[.accept] == nil)
        #expect(head.reason == nil)
    }

    static let lengths: [(String?, Int64?)] = [
        (nil, nil), ("12", 12), ("0", 0), ("12, 12", 12), ("12,\t12", 12), ("12, 13", nil), ("", nil),
        ("-1", nil), ("+1", nil), ("1a", nil), ("12,", nil), (",", nil), ("99999999999999999999", nil),
    ]

    @Test(arguments: lengths)
    func contentLengthIsParsed(text: String?, length: Int64?) {
        var fields = HeaderFields()
        fields[.contentLength] = text
        #expect(ResponseHead(status: .ok, fields: fields).contentLength == length)
    }

    @Test func headCreatedByHandHasDefaults() {
        let head = ResponseHead(status: .ok, fields: ["Content-Type": "text/plain", "Set-Cookie": "secret"])
        #expect(head.contentType == "text/plain")
        #expect(head.version == .http1_1 && head.url.isEmpty && head.reason == nil)
        #expect(head.description == "HTTP/1.1 200 OK\nContent-Type: text/plain\nSet-Cookie: <redacted>")
        let other = head.with(fields: ["A": "1"])
        #expect(other.fields == ["A": "1"] && other.status == .ok)
        #expect(other != head)
    }

    @Test func headsAreEqualByContent() throws {
        let raw = try #require(ResponseHead(rawBlock: Array("HTTP/1.1 200 Fine\r\nA: 1\r\n".utf8)))
        let made = ResponseHead(status: .ok, fields: ["a": "1"])
        #expect(raw == made)
        #expect(Set([raw, made]).count == 1)
    }

    @Test func concurrentReadersGetTheSameFields() async throws {
        let block = "HTTP/1.1 200 OK\r\n" + (0..<200).map { "X-\($0): \($0)\r\n" }.joined()
        let head = try #require(ResponseHead(rawBlock: Array(block.utf8)))
        await withTaskGroup(of: Bool.self) { group in
            for number in 0..<64 {
                group.addTask { head.fields.count == 200 && head[HeaderName("x-\(number)")] == "\(number)" }
            }
            for await isRight in group { #expect(isRight) }
        }
    }
}

@Suite("Response")
struct ResponseTests {
    @Test func mapTransformsTheValue() {
        let response = Response(head: ResponseHead(status: .created), value: 7)
        #expect(response.status == .created)
        let text = response.map(String.init)
        #expect(text.value == "7")
        #expect(text.head == response.head && text.metrics == TransferMetrics())
        #expect(Set([response, response]).count == 1)
        var measured = response
        measured.metrics = TransferMetrics(total: .seconds(1))
        #expect(measured.metrics.total == .seconds(1) && measured != response)
    }
}
