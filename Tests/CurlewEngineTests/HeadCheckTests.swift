// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import CurlewEngine

@Suite("HeadCheck, RFC 9112 §4 to §6")
struct HeadCheckTests {
    typealias Verdict = HeadCheck.Verdict

    /// Returns the first verdict other than `.more` on the lines of a block.
    private func verdict(
        _ block: String, _ check: inout HeadCheck, trailers: Bool = false
    ) -> Verdict {
        verdict(Array(block.utf8), &check, trailers: trailers)
    }

    private func verdict(_ block: [UInt8], _ check: inout HeadCheck, trailers: Bool = false) -> Verdict {
        var start = 0
        while start < block.count {
            let end = (block[start...].firstIndex(of: 0x0A) ?? block.count - 1) + 1
            let line = Array(block[start..<end])
            let verdict = line.withUnsafeBytes { trailers ? check.takeTrailer($0) : check.take($0) }
            if verdict != .more { return verdict }
            start = end
        }
        return .more
    }

    private func verdict(_ block: String) -> Verdict {
        var check = HeadCheck()
        return verdict(block, &check)
    }

    private func reason(_ verdict: Verdict) -> String? {
        if case .refused(let why) = verdict { why } else { nil }
    }

    // MARK: Fields used after the head

    @Test(
        arguments: [
            ("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n", [.contentEncoding]),
            ("HTTP/1.1 200 OK\nA: b\nCONTENT-ENCODING: br\nlocation: /\n\n", [.contentEncoding, .location]),
            ("HTTP/1.1 302 Found\nLOCATION:/\n\n", [.location]),
            ("HTTP/1.1 200 OK\r\nContent-Encodin: b\r\nLocations: /\r\n\r\n", []),
            ("HTTP/1.1 200 OK\r\nALT-SVC: clear\r\nAlt-Svd: x\r\n\r\n", [.alternativeServices]),
            ("HTTP/1.1 200 OK\r\nAlt-Svd: Alt-Svc\r\nX-Alt-Svc: clear\r\n\r\n", []),
            ("HTTP/1.1 200 content-encoding\r\nX-Content-Encoding: br\r\nContent-Location: /\r\n\r\n", []),
        ] as [(String, HeadFields)])
    func knownFieldsAreNoted(block: String, fields: HeadFields) {
        var check = HeadCheck()
        #expect(verdict(block, &check) == .end)
        #expect(check.knownFields == fields)
        check.restart()
        #expect(check.knownFields == [])
    }

    /// libcurl writes one blank before each value of HTTP/2.
    @Test(
        arguments: [
            ("a: b", nil), ("a: ", nil), ("a: b c", nil), ("a:  b", "“a” begins or ends"),
            ("a: b\t", "“a” begins or ends"),
            ("content-length:  3", "“content-length” begins or ends"), ("a:  ", "“a” begins or ends"),
        ] as [(String, String?)])
    func http2ValuesWithSurroundingBlanksAreRejected(line: String, why: String?) {
        var check = HeadCheck()
        check.isMultiplexed = true
        let found = reason(verdict("HTTP/2 200 \r\n\(line)\r\n\r\n", &check))
        #expect((found != nil) == (why != nil))
        if let why { #expect(found?.contains(why) == true, "\(found ?? "")") }
        #expect(verdict("HTTP/1.1 200 OK\r\n\(line)\r\n\r\n") == .end)
    }

    // MARK: Status lines

    @Test(arguments: [
        ("HTTP/1.1 200 OK", 200), ("HTTP/1.0 404 Not Found", 404), ("HTTP/1.1 204", 204), ("HTTP/1.1 304 ", 304),
        ("HTTP/1.1 999 no such status", 999), ("HTTP/1.1 100 Continue", 100),
        ("HTTP/1.1 200 d\u{e9}j\u{e0} vu\t!", 200),
    ])
    func statusLinesAreParsed(line: String, status: Int) {
        for ending in ["\r\n", "\n"] {
            var check = HeadCheck()
            #expect(check.isAtStart)
            #expect(verdict(line + ending, &check) == .more)
            #expect(check.status == status)
            #expect(!check.isAtStart)
            #expect(verdict(ending, &check) == .end)
        }
    }

    @Test(arguments: [
        "", "HTTP/", "HTTP/1.1", "HTTP/1.1 ", "HTTP/1.1 20", "HTTP/1.1 2x0 OK", "HTTP/1.1 -20 no", "HTTP/1.1 2000",
        "HTTP/1.1 200OK", "http/1.1 200 OK", "ICY 200 OK music", "HTTP/1.1200 OK!", "HTTP/1.1  200 OK", " HTTP/1.1 200",
        "HTTP/1.2 200 OK", "HTTP/3 200 OK..", "HTTP/3.0 200 OK", "HTTP/1.1\t200 OK", "HTTP/0.9 200 OK",
        "Content-Length: 3", "HTTQ/1.1 200 OK", "HXTP/1.1 200 OK", "HTXP/1.1 200 OK", "HTTP 1.1 200 OK",
    ])
    func malformedStatusLinesAreRejected(line: String) {
        #expect(
            verdict(line + "\r\n")
                == .refused("its first line is not a status line of HTTP/1.0 or HTTP/1.1 (RFC 9112 §4)"))
    }

    @Test(arguments: [
        ("HTTP/1.1 099 low", "its status 99 is below 100 (RFC 9110 §15)"),
        ("HTTP/1.1 101 Switching Protocols", "it switches protocols, which was not requested (RFC 9110 §7.8)"),
        ("HTTP/2 200 OK", "it names HTTP/2 on an HTTP/1.1 connection"),
        ("HTTP/1.1 200 a\rb", "its status line contains a NUL or a bare CR (RFC 9112 §2.2)"),
        ("HTTP/1.1 200 a\u{0}b", "its status line contains a NUL or a bare CR (RFC 9112 §2.2)"),
        ("HTTP/1.1 200 OK\r", "its status line contains a NUL or a bare CR (RFC 9112 §2.2)"),
    ])
    func forbiddenStatusLinesAreRejected(line: String, why: String) {
        #expect(verdict(line + "\r\n") == .refused(why))
    }

    @Test func http2StatusLinesAreParsed() {
        var check = HeadCheck()
        check.isMultiplexed = true
        #expect(verdict("HTTP/2 301 \r\nlocation: /\r\n\r\n", &check) == .end)
        #expect(check.status == 301)
        #expect(!check.isDelimitedByClose)
        check.restart()
        #expect(reason(verdict("HTTP/2.0 200 OK\r\n", &check)) != nil)
    }

    // MARK: Fields

    @Test(arguments: [
        "A: 1", "!#$%&'*+-.^_`|~09azAZ: x", "A:", "A:1", "A: \t", "A: caf\u{e9}\u{7f}\u{1}", "A: :", "A: b\r\n c",
        "A: b\r\n\t\r\n  d", "Content-Lengthy: x", "Content-Lengtx: x", "Transfer-Encodinx: y", "content-type: z",
    ])
    func validFieldsAreAccepted(field: String) {
        #expect(verdict("HTTP/1.1 200 OK\r\n\(field)\r\n\r\n") == .end)
        #expect(verdict("HTTP/1.1 200 OK\n\(field)\n\n") == .end)
    }

    @Test(arguments: [
        ("A : 1", "there is a blank between the field name “A” and its colon (RFC 9112 §5.1)"),
        ("A\t: 1", "there is a blank between the field name “A” and its colon (RFC 9112 §5.1)"),
        ("no-colon", "the line “no-colon” has no colon (RFC 9112 §5)"),
        (": no name", "a field has no name (RFC 9112 §5)"),
        ("A(b): 1", "a field name that begins “A(” is not a token (RFC 9110 §5.1)"),
        ("\u{1}: 1", "a field name that begins “?” is not a token (RFC 9110 §5.1)"),
        ("\u{e9}: 1", "a field name that begins “?” is not a token (RFC 9110 §5.1)"),
        ("A: b\u{0}c", "the value of “A” contains a NUL (RFC 9110 §5.5)"),
        ("A: b\rc", "the value of “A” contains a bare CR (RFC 9110 §5.5)"),
        ("A: b\r", "the value of “A” contains a bare CR (RFC 9110 §5.5)"),
        ("\rA: b", "a field name that begins “?” is not a token (RFC 9110 §5.1)"),
        (" A: b", "there is a blank before its first field (RFC 9112 §2.2)"),
        ("A: b\r\n c\u{0}d", "a folded value contains a NUL or a bare CR (RFC 9110 §5.5)"),
        ("Content-Length: 1\r\n 2", "the field that sets the length of the body continues in a second line"),
        ("Transfer-Encoding: chunked\r\n\tx", "the field that sets the length of the body continues in a second line"),
        (
            String(repeating: "n", count: 60),
            "the line “\(String(repeating: "n", count: 40))…” has no colon (RFC 9112 §5)"
        ),
    ])
    func malformedFieldsAreRejected(field: String, why: String) {
        #expect(verdict("HTTP/1.1 200 OK\r\n\(field)\r\n\r\n") == .refused(why))
    }

    @Test func fieldsAreCountedAcrossHeadsAndTrailers() {
        var check = HeadCheck()
        check.fieldLimit = 3
        #expect(verdict("HTTP/1.1 103 Early Hints\r\nA: 1\r\n\r\n", &check) == .end)
        check.restart()
        #expect(verdict("HTTP/1.1 200 OK\r\nB: 1\r\n 2\r\n\r\n", &check) == .end)
        check.beginTrailers()
        #expect(verdict("C: 1\r\n", &check, trailers: true) == .more)
        #expect(verdict("D: 1\r\n", &check, trailers: true) == .refused("it has more than 3 fields"))
    }

    // MARK: Framing

    @Test(arguments: [
        ("Content-Length: 5", 5), ("content-LENGTH:5", 5), ("Content-Length: 5, 5,\t5 ", 5), ("Content-Length: 0", 0),
        ("Content-Length: 5\r\nContent-Length: 05", 5), ("Content-Length: 9223372036854775807", Int64.max),
    ])
    func contentLengthsAreParsed(field: String, length: Int64) {
        var check = HeadCheck()
        #expect(verdict("HTTP/1.1 200 OK\r\n\(field)\r\n\r\n", &check) == .end)
        #expect(check.length == length)
        #expect(!check.isDelimitedByClose && !check.isChunked)
        check.restart()
        #expect(check.length == nil && check.status == 0 && check.isDelimitedByClose)
    }

    @Test(arguments: [
        ("+5", "“+5”"), ("-5", "“-5”"), ("5.0", "“5.0”"), ("", "“”"), ("5,", "“5,”"), (",5", "“,5”"), ("5 6", "“5 6”"),
        ("0x5", "“0x5”"), ("five", "“five”"), ("5;", "“5;”"),
    ])
    func invalidContentLengthsAreRejected(value: String, shown: String) {
        #expect(
            verdict("HTTP/1.1 200 OK\r\nContent-Length: \(value)\r\n\r\n")
                == .refused("“Content-Length” is \(shown), which is not a number (RFC 9112 §6.3)"))
    }

    @Test(arguments: ["9223372036854775808", "92233720368547758070", "00000000000000000000009999999999999999999999"])
    func overflowingContentLengthsAreRejected(value: String) {
        #expect(
            verdict("HTTP/1.1 200 OK\r\nContent-Length: \(value)\r\n\r\n")
                == .refused("“Content-Length” is too large for any body"))
    }

    @Test(arguments: ["5, 6", "5\r\nContent-Length: 6", "5\r\nA: b\r\ncontent-length: 6"])
    func contradictoryContentLengthsAreRejected(value: String) {
        #expect(
            verdict("HTTP/1.1 200 OK\r\nContent-Length: \(value)\r\n\r\n")
                == .refused("“Content-Length” says both 5 and 6 (RFC 9112 §6.3)"))
    }

    @Test(arguments: ["chunked", "CHUNKED", " \tChunked\t "]) func chunkedTransferEncodingIsRecognised(value: String) {
        var check = HeadCheck()
        #expect(verdict("HTTP/1.1 200 OK\r\ntransfer-encoding:\(value)\r\n\r\n", &check) == .end)
        #expect(check.isChunked && !check.isDelimitedByClose)
        check.restart()
        #expect(!check.isChunked)
    }

    @Test(arguments: [
        ("gzip", "“gzip”"), ("gzip, chunked", "“gzip, chunked”"), ("identity", "“identity”"), ("", "“”"),
        ("chunkex", "“chunkex”"), ("chunked\r\nTransfer-Encoding: chunked", "given twice"), ("chunked,", "“chunked,”"),
    ])
    func otherTransferEncodingsAreRejected(value: String, shown: String) {
        #expect(
            verdict("HTTP/1.1 200 OK\r\nTransfer-Encoding: \(value)\r\n\r\n")
                == .refused("“Transfer-Encoding” is \(shown), and only “chunked” is accepted (RFC 9112 §6.1)"))
    }

    @Test func transferEncodingInHTTP10IsRejected() {
        #expect(
            verdict("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
                == .refused("an HTTP/1.0 response contains “Transfer-Encoding” (RFC 9112 §6.1)"))
    }

    @Test(arguments: [
        "Content-Length: 5\r\nTransfer-Encoding: chunked", "Transfer-Encoding: chunked\r\nA: b\r\nContent-Length: 5",
    ])
    func contentLengthWithTransferEncodingIsRejected(fields: String) {
        #expect(
            verdict("HTTP/1.1 200 OK\r\n\(fields)\r\n\r\n")
                == .refused(
                    "it has both “Content-Length” and “Transfer-Encoding”, so its end is ambiguous (RFC 9112 §6.3)"))
    }

    @Test func bodyWithoutFramingIsDelimitedByClose() {
        var check = HeadCheck()
        #expect(verdict("HTTP/1.1 200 OK\r\n\r\n", &check) == .end)
        #expect(check.isDelimitedByClose)
    }

    // MARK: Several heads, trailers

    @Test func informationalHeadsAreLimited() {
        var check = HeadCheck()
        for _ in 0..<HeadCheck.informationalLimit {
            #expect(verdict("HTTP/1.1 102 Processing\r\n\r\n", &check) == .end)
            check.restart()
        }
        #expect(
            verdict("HTTP/1.1 102 Processing\r\n", &check)
                == .refused("more than 32 informational responses arrived before it"))
        check = HeadCheck()
        for _ in 0..<HeadCheck.informationalLimit {
            #expect(verdict("HTTP/1.1 102 Processing\r\n\r\n", &check) == .end)
            check.restart()
        }
        #expect(verdict("HTTP/1.1 200 OK\r\n\r\n", &check) == .end)
    }

    @Test func trailersDoNotSetTheBodyLength() {
        var check = HeadCheck()
        #expect(verdict("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", &check) == .end)
        check.beginTrailers()
        #expect(verdict("Content-Length: 5\r\n 6\r\nContent-Length: x\r\n\r\n", &check, trailers: true) == .end)
        #expect(verdict("A : b\r\n", &check, trailers: true) != .more)
        check.beginTrailers()
        #expect(verdict(" fold\r\n", &check, trailers: true) != .more)
    }
}
