// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting
import FoundationEssentials
import Testing

/// One fault in the framing of a body for each test; the error has the bytes before the fault.
@Suite(.timeLimit(.minutes(5)))
struct WireBodyTests {
    private func chunks(_ text: String, end: SocketFault? = nil) -> MockResponse {
        let response = raw("Transfer-Encoding: chunked", text)
        return end.map { response.fault($0, at: .end) } ?? response
    }

    private func failure(
        of response: MockResponse, tls: Bool = false, _ location: SourceLocation = #_sourceLocation
    ) async throws -> NetworkError {
        try await WireBench(tls: tls) { _ in response }.failure("/", location)
    }

    private func expect(
        _ error: NetworkError, _ kind: NetworkError.Kind, body: String, _ location: SourceLocation = #_sourceLocation
    ) {
        #expect(error.kind == kind && error.phase == .receiving, "\(error)", sourceLocation: location)
        #expect(error.response?.status == .ok, "\(error)", sourceLocation: location)
        #expect(error.body == Array(body.utf8), "\(error)", sourceLocation: location)
    }

    // MARK: Chunks

    @Test(arguments: [
        "zz\r\n", "-5\r\nhello\r\n", "+5\r\nhello\r\n", "\r\n", ";x=y\r\n", "fffffffffffffffff\r\n",
        "8000000000000000\r\n",
        " 5\r\nhello\r\n", "0x5\r\nhello\r\n0\r\n\r\n",
    ])
    func malformedChunkSizesAreInvalid(_ size: String) async throws {
        let error = try await failure(of: chunks("3\r\nabc\r\n\(size)"))
        expect(error, .invalidResponse, body: "abc")
        #expect(error.message.contains("malformed"))
    }

    @Test(arguments: ["3\r\nabcd\r\n0\r\n\r\n", "3\r\nabc3\r\ndef\r\n0\r\n\r\n"])
    func chunksWithoutLineEndAreInvalid(_ text: String) async throws {
        expect(try await failure(of: chunks(text)), .invalidResponse, body: "abc")
    }

    @Test(
        arguments: ["3\r\nabc\r\n", "3\r\nabc", "3\r\nabc\r\n0", "3\r\nabc\r\n0\r\n", "3\r\nabc\r\n0\r\nX: y\r\n"], ends
    )
    func missingLastChunkIsConnectionLost(_ text: String, _ end: SocketFault) async throws {
        for tls in [false, true] {
            expect(try await failure(of: chunks(text, end: end), tls: tls), .connectionLost, body: "abc")
        }
    }

    @Test func chunkExtensionsAreIgnored() async throws {
        let bench = try WireBench { _ in chunks("1;a=b\r\na\r\n000001 ; c\r\nb\r\n1;\"x;y\"\r\nc\r\n00;z\r\n\r\n") }
        for _ in 0..<2 { #expect(try await bench.data().0 == Data("abc".utf8)) }
        #expect(bench.server.connectionCount == 1)
    }

    @Test func endlessChunkExtensionTimesOut() async throws {
        let bench = try WireBench(idle: .seconds(2)) { _ in
            chunks("3\r\nabc\r\n3;" + String(repeating: "x", count: 300_000))
        }
        let error = try await bench.failure()
        expect(error, .timedOut, body: "abc")
        #expect(error.message.contains("timeouts.idle"))
    }

    // MARK: Trailers

    @Test func endlessTrailersExceedTheHeadLimit() async throws {
        let fields = String(repeating: "X-Fill: \(String(repeating: "a", count: 1000))\r\n", count: 400)
        let error = try await failure(of: chunks("3\r\nabc\r\n0\r\n\(fields)"))
        expect(error, .invalidResponse, body: "abc")
        #expect(error.message.contains("256 KiB"))
    }

    @Test func trailerFieldLimitIsEnforced() async throws {
        let error = try await failure(of: chunks("3\r\nabc\r\n0\r\n" + String(repeating: "A: b\r\n", count: 2000)))
        expect(error, .invalidResponse, body: "abc")
        #expect(error.message.contains("trailer") && error.message.contains("1000 fields"))
    }

    @Test func overlongTrailerLineIsInvalid() async throws {
        let error = try await failure(of: chunks("3\r\nabc\r\n0\r\nX: " + String(repeating: "a", count: 100_000)))
        expect(error, .invalidResponse, body: "abc")
    }

    @Test(arguments: ["no colon", "A : b", " A: b", "A: b\u{0}c", "A(: b", ": b"])
    func malformedTrailersAreInvalid(_ line: String) async throws {
        let error = try await failure(of: chunks("3\r\nabc\r\n0\r\n\(line)\r\n\r\n"))
        expect(error, .invalidResponse, body: "abc")
        #expect(error.message.contains("malformed"))
    }

    // MARK: Bodies that end with the connection

    @Test(arguments: [MockServer.TLSOptions.Version.v1_2, .v1_3])
    func bodyUntilCloseRequiresCloseNotify(_ version: MockServer.TLSOptions.Version) async throws {
        var options = MockServer.Options()
        options.tls.maximumVersion = version
        let body = PatternBody(seed: 1, length: 300_000)
        let bench = try WireBench(tls: true, options: options) { request in
            let script = MockResponse.pattern(body).untilClose()
            return request.path == "/cut" ? script.fault(.cut, at: .body(200_000)) : script
        }
        let error = try await bench.failure("/cut")
        #expect(error.kind == .connectionLost && error.phase == .receiving, "\(error)")
        #expect(error.message.contains("did not announce"), "\(error)")
        #expect(error.response?.status == .ok && error.body == body.bytes(in: 0..<4096))
        let (data, head) = try await bench.data("/whole")
        #expect(data.sha256 == body.sha256 && head.contentLength == nil)

        var received = 0
        let transfer = bench.session.transfer(Request(bench.server.url("/cut")))
        let streamed = try await networkError { for try await chunk in transfer.bytes { received += chunk.count } }
        #expect(streamed.kind == .connectionLost && received == 200_000)
    }

    /// Without close_notify, only a body that ends with the connection is incomplete.
    @Test func bodyWithKnownLengthNeedsNoCloseNotify() async throws {
        let bench = try WireBench(tls: true) { request in
            let script = request.path == "/chunks" ? MockResponse.text("hello").chunked() : .text("hello")
            return (request.path == "/none" ? .status(204) : script).fault(.cut, at: .end)
        }
        for (path, body) in [("/length", "hello"), ("/chunks", "hello"), ("/none", "")] {
            #expect(try await bench.data(path).0 == Data(body.utf8))
        }
        let (data, head) = try await bench.data("/head", .head)
        #expect(data.isEmpty && head.contentLength == 5)
    }

    @Test func bodyUntilCloseWithoutTLSIsComplete() async throws {
        let bench = try WireBench { _ in .text("hello").untilClose() }
        #expect(try await bench.data().0 == Data("hello".utf8))
        expect(
            try await failure(of: .text("hello").untilClose().fault(.reset, at: .body(3))), .connectionLost, body: "hel"
        )
    }

    // MARK: Surplus bytes

    private static let intruder = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"

    /// Responses without a body, or of a declared length, that are followed by surplus bytes in the same write.
    static let surplus: [(Curlew.Method, String, String)] = [
        (.get, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "hello"),
        (.get, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", "hello"),
        (.get, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", ""),
        (.head, "HTTP/1.1 200 OK\r\nContent-Length: 41\r\n\r\n", ""),
        (.get, "HTTP/1.1 204 No Content\r\n\r\n", ""),
        (.get, "HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n", ""),
        (.get, "HTTP/1.1 304 Not Modified\r\nContent-Length: 41\r\n\r\n", ""),
        (.get, "HTTP/1.1 205 Reset Content\r\nContent-Length: 0\r\n\r\n", ""),
    ]

    @Test(arguments: surplus, [false, true])
    func surplusBytesAreNeverTheNextResponse(_ script: (Curlew.Method, String, String), _ tls: Bool) async throws {
        let (method, text, body) = script
        let bench = try WireBench(tls: tls) { request in
            request.path == "/next" ? .text("mine") : .raw(text + Self.intruder)
        }
        for _ in 0..<3 {
            #expect(try await bench.data("/", method).0 == Data(body.utf8))
            #expect(try await bench.data("/next").0 == Data("mine".utf8))
        }
    }

    @Test func bodyOf205IsReturned() async throws {
        let bench = try WireBench { _ in .text("hello", status: 205) }
        let (data, head) = try await bench.data()
        #expect(head.status == 205 && data == Data("hello".utf8))
    }
}
