// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting
import FoundationEssentials
import Testing

/// One fault in a response head for each test; Curlew rejects faults even where curl accepts them.
@Suite(.timeLimit(.minutes(5)))
struct WireTests {
    private func failure(
        of response: MockResponse, tls: Bool = false, _ location: SourceLocation = #_sourceLocation
    ) async throws -> NetworkError {
        try await WireBench(tls: tls) { _ in response }.failure("/", location)
    }

    // MARK: Ends of the connection

    @Test(arguments: ends, [false, true])
    func connectionLostInsideTheHeadIsReported(_ end: SocketFault, _ tls: Bool) async throws {
        let statusLine = "HTTP/1.1 200 OK\r\n"
        let head = statusLine + "Content-Length: 5\r\nX-Y: z\r\n\r\n"
        let bench = try WireBench(tls: tls) { request in
            .raw(Array(head.utf8.prefix(Int(request.path.dropFirst()) ?? 0))).fault(end, at: .end)
        }
        for offset in 0..<head.utf8.count {
            let error = try await bench.failure("/\(offset)")
            #expect(error.kind == .connectionLost, "\(offset): \(error)")
            let phase: NetworkError.Phase = offset < statusLine.utf8.count ? .waiting : .receiving
            #expect(error.phase == phase, "\(offset): \(error)")
            #expect(error.response == nil && error.body.isEmpty, "\(offset): \(error)")
        }
        // A connection that is reset while libcurl still checks its connect may not have sent the request, so the
        // engine sends an idempotent request once more.
        var paths = bench.server.requests.map(\.path)
        if case .reset = end { paths = paths.reduce(into: []) { if $0.last != $1 { $0.append($1) } } }
        #expect(paths == (0..<head.utf8.count).map { "/\($0)" })
    }

    // MARK: Status lines

    @Test(arguments: [
        "HTTP/1.1 2000 OK", "HTTP/1.2 200 OK", "HTTP/3.0 200 OK", "HTTP/1.1 20 OK", "HTTP/1.1 OK", "ICY 200 OK",
        "HTTP/1.1200 OK", "HTTP/4 200 OK", " HTTP/1.1 200 OK", "HTTP/1.1 099 low",
    ])
    func statusLinesOfOtherProtocolsAreInvalid(_ line: String) async throws {
        let error = try await failure(of: .raw("\(line)\r\nContent-Length: 5\r\n\r\nhello"))
        expectInvalid(error, phase: .waiting)
    }

    @Test(arguments: [
        ("HTTP/2 200 OK", "it names HTTP/2 on an HTTP/1.1 connection"), ("http/1.1 200 OK", "status line"),
        ("HTTP/1.1 200 a\rb", "bare CR"),
        ("HTTP/1.1 101 Switching Protocols", "switches protocols"),
    ])
    func malformedStatusLinesAcceptedByLibcurlAreInvalid(_ line: String, _ message: String) async throws {
        for tls in [false, true] {
            let error = try await failure(of: .raw("\(line)\r\nContent-Length: 5\r\n\r\nhello"), tls: tls)
            expectInvalid(error, message)
            #expect(error.message.hasPrefix("The response head is malformed: "))
            #expect(error.hint != nil && error.exitCode == 76)
            #expect(error.code == "curlew.invalid_response.receiving")
        }
    }

    @Test func unknownStatusCodesAreReturned() async throws {
        let bench = try WireBench { request in .text("hello", status: Int(request.path.dropFirst()) ?? 0) }
        for code in [205, 299, 499, 599, 600, 999] {
            let (data, head) = try await bench.data("/\(code)")
            #expect(head.status.code == code && data == Data("hello".utf8))
        }
        #expect(bench.server.connectionCount == 1)
    }

    // MARK: Field lines

    @Test(arguments: [
        ("A : 1", "there is a blank between the field name “A” and its colon"),
        ("A\t: 1", "there is a blank between the field name “A” and its colon"),
        ("A(b): 1", "is not a token"), (": 1", "a field has no name"),
        ("A: b\rc", "the value of “A” contains a bare CR"), ("A: b\r", "the value of “A” contains a bare CR"),
        ("\rA: b", "is not a token"),
    ])
    func malformedFieldLinesAreInvalid(_ field: String, _ message: String) async throws {
        expectInvalid(try await failure(of: raw("\(field)\r\nContent-Length: 5", "hello")), message)
    }

    @Test(arguments: [" A: b", "no colon at all", "A: b\u{0}c"])
    func fieldLinesRefusedByLibcurlAreInvalid(_ field: String) async throws {
        expectInvalid(try await failure(of: raw("\(field)\r\nContent-Length: 5", "hello")))
    }

    /// libcurl 7.88 stops reading at a line that begins with NUL, so the idle timeout ends the transfer.
    @Test func fieldLineBeginningWithNULTimesOut() async throws {
        let error = try await WireBench(idle: .seconds(2)) { _ in
            raw("\u{0}: b\r\nContent-Length: 5", "hello")
        }.failure()
        #expect(error.kind == .timedOut && error.phase == .receiving && error.response == nil, "\(error)")
    }

    @Test func foldedFieldValuesAreUnfolded() async throws {
        let bench = try WireBench { _ in raw("A: one\r\n  two\r\n\tthree \r\nContent-Length: 5", "hello") }
        let (data, head) = try await bench.data()
        #expect(head["A"] == "one two three")
        #expect(head.fields["A"] == "one two three" && head.fields.count == 2)
        #expect(data == Data("hello".utf8))
    }

    /// A value that is not UTF-8 is decoded as ISO-8859-1, one scalar for each byte, so the bytes can be recovered.
    @Test func nonUTF8FieldValuesAreReadAsLatin1() async throws {
        let value: [UInt8] = [0x63, 0x61, 0x66, 0xE9, 0x20, 0xFF, 0x80, 0xC3]
        let head = Array("HTTP/1.1 200 OK\r\nA: ".utf8) + value + Array("\r\nB: é\r\nContent-Length: 0\r\n\r\n".utf8)
        let (_, received) = try await WireBench { _ in .raw(head) }.data()
        #expect(received["A"]?.unicodeScalars.map { UInt8($0.value) } == value)
        #expect(received.fields["A"]?.unicodeScalars.map { UInt8($0.value) } == value)
        #expect(received["B"] == "é")
    }

    @Test func headLinesMayEndInLFAlone() async throws {
        let bench = try WireBench { _ in .raw("HTTP/1.1 200 OK\nContent-Length: 5\nA: b\n\nhello") }
        let (data, head) = try await bench.data()
        #expect(data == Data("hello".utf8) && head["A"] == "b")
    }

    // MARK: Floods

    @Test func responseFieldLimitIsEnforced() async throws {
        let server = try MockServer { request in
            let count = Int(request.path.dropFirst()) ?? 0
            return raw((0..<count).map { "X-\($0): y" }.joined(separator: "\r\n") + "\r\nContent-Length: 0")
        }
        let session = Session()
        #expect(try await session.data(for: Request(server.url("/999"))).1.fields.count == 1000)
        let error = try await networkError { try await session.data(for: Request(server.url("/1000"))) }
        expectInvalid(error, "it has more than 1000 fields")
        let strict = Session { $0.limits.responseFields = 10 }
        #expect(try await strict.data(for: Request(server.url("/9"))).1.fields.count == 10)
        let other = try await networkError { try await strict.data(for: Request(server.url("/10"))) }
        expectInvalid(other, "it has more than 10 fields")
    }

    @Test func endlessFieldsExceedTheHeadLimit() async throws {
        let line = Array("X-Fill: \(String(repeating: "a", count: 1000))\r\n".utf8)
        let response = MockResponse.raw(
            Array("HTTP/1.1 200 OK\r\n".utf8) + [[UInt8]](repeating: line, count: 500).joined())
        expectInvalid(try await failure(of: response), "more than 256 KiB")
    }

    /// libcurl has its own limit of 300 KiB, which the message has to name instead of the session's limit.
    @Test func endlessFieldsExceedLibcurlsHeadLimit() async throws {
        let line = Array("X-Fill: \(String(repeating: "a", count: 2000))\r\n".utf8)
        let bytes = Array("HTTP/1.1 200 OK\r\n".utf8) + [[UInt8]](repeating: line, count: 300).joined()
        let server = try MockServer { _ in .raw(bytes) }
        let session = Session { $0.limits.responseHead = .gibibytes(1) }
        let error = try await networkError { try await session.data(for: Request(server.url("/"))) }
        expectInvalid(error, "300 KiB")
    }

    @Test(arguments: [false, true]) func overlongFieldLineIsInvalid(_ tls: Bool) async throws {
        let value = String(repeating: "a", count: 1 << 20)
        let error = try await failure(of: raw("X-Long: \(value)\r\nContent-Length: 0"), tls: tls)
        expectInvalid(error, "100 KiB")
    }

    @Test func overlongStatusLineIsInvalid() async throws {
        let error = try await failure(of: .raw("HTTP/1.1 200 " + String(repeating: "a", count: 1 << 20)))
        expectInvalid(error, "100 KiB", phase: .waiting)
    }

    // MARK: Content-Length and Transfer-Encoding

    @Test(arguments: [
        ("5, 6", "says both 5 and 6"), ("5\r\nContent-Length: 6", "says both 5 and 6"),
        ("+5", "“+5”, which is not a number"),
        ("5.0", "“5.0”, which is not a number"), ("5,", "“5,”"), ("99999999999999999999", "too large for any body"),
        ("5\r\n 6", "continues in a second line"), ("5\r\nTransfer-Encoding: chunked", "ambiguous"),
        ("0x5", "“0x5”, which is not a number"),
    ])
    func malformedContentLengthsAcceptedByLibcurlAreInvalid(_ value: String, _ message: String) async throws {
        expectInvalid(try await failure(of: raw("Content-Length: \(value)", "hello")), message)
    }

    @Test(arguments: ["-5", "", "five", ",5"]) func contentLengthsRefusedByLibcurlAreInvalid(_ value: String)
        async throws
    {
        expectInvalid(try await failure(of: raw("Content-Length: \(value)", "hello")))
    }

    @Test(arguments: ["5, 5", "5\r\nContent-Length: 5", "005"]) func equalRepeatedContentLengthsAreAccepted(
        _ value: String
    ) async throws {
        let bench = try WireBench { _ in raw("Content-Length: \(value)", "hello") }
        for _ in 0..<2 { #expect(try await bench.data().0 == Data("hello".utf8)) }
        #expect(bench.server.connectionCount == 1)
    }

    @Test(arguments: [
        ("Transfer-Encoding: gzip", "“gzip”, and only “chunked” is accepted"),
        ("Transfer-Encoding: gzip, chunked", "“gzip, chunked”"), ("Transfer-Encoding: identity", "“identity”"),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", "given twice"),
        ("Transfer-Encoding: chunked\r\nContent-Length: 5", "ambiguous"),
    ])
    func unsupportedTransferEncodingsAreInvalid(_ fields: String, _ message: String) async throws {
        expectInvalid(try await failure(of: raw(fields, "5\r\nhello\r\n0\r\n\r\n")), message)
    }

    @Test func transferEncodingInHTTP10IsInvalid() async throws {
        let response = MockResponse.raw("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n")
        expectInvalid(try await failure(of: response), "an HTTP/1.0 response contains")
    }
}
