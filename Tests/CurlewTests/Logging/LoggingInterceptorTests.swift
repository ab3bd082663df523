// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import CurlewEngine
import CurlewTesting
import FoundationEssentials
import Testing

@testable import Curlew

@Suite("Logging", .timeLimit(.minutes(5)))
struct LoggingInterceptorTests {
    private let log = Lock<[LoggingInterceptor.Entry]>([])

    private var entries: [LoggingInterceptor.Entry] { log.withLock { $0 } }

    private func session(
        _ level: LoggingInterceptor.Level, scope: Interception.Scope = .transfer, redacting: [HeaderName] = [],
        showing names: [String] = []
    ) -> Session {
        let log = log
        return Session(
            interceptors: [
                LoggingInterceptor(level, scope: scope, redacting: redacting, showingQueryOf: names) { entry in
                    log.withLock { $0.append(entry) }
                }
            ])
    }

    @Test func basicLevelLogsOneLinePerRequestAndResponse() async throws {
        let server = try MockServer { _ in .text("twelve bytes", status: 404) }
        let url = server.url("/a?page=2&key=SECRET")
        var request = Request(.post, url, fields: [.authorization: "SECRET"], body: .text("abc"))
        request.url = request.url.replacing("http://", with: "http://user:SECRET@")
        let (data, _) = try await session(.basic, showing: ["page"]).data(for: request)
        #expect(data == Data("twelve bytes".utf8))
        let entries = entries
        try #require(entries.map(\.event) == [.request, .response])
        let (id, shown) = (entries[0].transfer, server.url("/a?page=2&key=<redacted>"))
        let took = try #require(entries[1].duration)
        #expect("\(entries[0])" == "#\(id) → POST \(shown), 3 bytes")
        #expect("\(entries[1])" == "#\(id) ← 404 Not Found POST \(shown) in \(took.brief), 12 bytes")
        #expect(entries[1].status == .notFound && entries.allSatisfy { $0.fields == nil && $0.body == nil })
    }

    @Test func fieldsAreRedacted() async throws {
        let server = try MockServer { _ in
            .text("x").field("Set-Cookie", "SECRET").field("X-Mine", "SECRET").field("X-Other", "shown")
        }
        let request = Request(
            server.url("/"), fields: [.cookie: "SECRET", "x-mine": "SECRET", "Referer": "http://h/?q=SECRET", "A": "b"])
        _ = try await session(.fields, redacting: ["X-Mine"]).data(for: request)
        let lines = entries.map(\.description)
        try #require(lines.count == 2)
        #expect(
            lines[0].hasSuffix(
                "{Cookie: <redacted>; x-mine: <redacted>; Referer: http://h/?q=<redacted>; A: b}"))
        #expect(lines[1].contains("X-Other: shown") && lines[1].contains("X-Mine: <redacted>"))
        #expect(!lines.joined().contains("SECRET"))
        #expect(entries[1].fields?["Set-Cookie"] == "<redacted>")
    }

    @Test func attemptScopeLogsEachRedirect() async throws {
        let server = try MockServer { _ in .text("fine") }
        server.on("GET", "/old", .redirect(to: "/new"))
        _ = try await session(.basic).data(for: Request(server.url("/old")))
        #expect(entries.map(\.url) == [server.url("/old"), server.url("/new")])
        #expect(entries.last?.status == .ok)
        _ = try await session(.basic, scope: .attempt).data(for: Request(server.url("/old")))
        #expect(entries.dropFirst(2).map(\.status) == [nil, .found, nil, .ok])
    }

    @Test func failureIsLogged() async throws {
        let server = try MockServer { _ in .text("never").fault(.close, at: .start) }
        await #expect(throws: NetworkError.self) {
            try await session(.basic).data(for: Request(.post, server.url("/?a=SECRET"), body: .text("x")))
        }
        #expect(entries.map(\.event) == [.request, .failure])
        #expect(entries[1].error?.kind == .connectionLost)
        #expect("\(entries[1])".contains("× POST \(server.url("/?a=<redacted>")) in "))
        #expect("\(entries[1])".contains(", connection lost while "))
    }

    @Test func bodiesAreSampledWhileStreaming() async throws {
        let body = PatternBody(seed: 3, length: 3 << 20)
        let server = try MockServer { .bytes($0.path == "/text" ? Array("line\r\n#1 ← 200".utf8) : body.bytes) }
        let session = session(.bodies(upTo: 40))
        let request = Request(.post, server.url("/text"), body: .text("it is a text, and cut in the middle of ü"))
        #expect(try await session.data(for: request).0 == Data("line\r\n#1 ← 200".utf8))
        #expect(entries.map(\.event) == [.request, .requestBody, .response, .responseBody])
        #expect(entries[1].body == "it is a text, and cut in the middle of …")
        #expect(entries[1].bodyBytes == 41)
        #expect(entries[3].body == #"line\r\n#1 ← 200"#)
        #expect(entries[3].status == .ok && entries[3].bodyBytes == 16)

        var digest = SHA256Stream()
        for try await chunk in session.transfer(Request(server.url("/"))).bytes { digest.update(Data(chunk)) }
        #expect(digest.hex == body.sha256)
        let last = try #require(entries.last)
        #expect(last.event == .responseBody && last.bodyBytes == 3 << 20)
        #expect(last.body?.hasPrefix("hex ") == true && last.body?.hasSuffix(" …") == true)
    }

    @Test func interruptedAndAbandonedBodiesAreLogged() async throws {
        let server = try MockServer { _ in .bytes([UInt8](repeating: 0x61, count: 9)).fault(.close, at: .body(4)) }
        let error = await #expect(throws: NetworkError.self) {
            try await session(.bodies(upTo: 100)).data(for: Request(server.url("/")))
        }
        #expect(error?.kind == .connectionLost)
        let broken = try #require(entries.last)
        #expect(broken.event == .responseBody && broken.error?.kind == .connectionLost)

        let whole = try MockServer { _ in .bytes(PatternBody(seed: 1, length: 1 << 20).bytes) }
        let count = entries.count
        for try await _ in session(.bodies(upTo: 4)).transfer(Request(whole.url("/"))).bytes { break }
        // Three entries: request, response, body. A reader that breaks out does not wait for the last one.
        while entries.count < count + 3, !Task.isCancelled { await Task.yield() }
        let left = try #require(entries.last)
        #expect(left.event == .responseBody && left.error == nil)
        #expect(left.bodyBytes ?? 0 < 1 << 20)
    }

    @Test func logEntryDescriptionEscapesLineBreaks() {
        var entry = LoggingInterceptor.Entry(event: .response, transfer: 1, method: "G\nT", url: "http://h/\u{1B}[2J")
        entry.fields = ["A\n#2 ← 200 OK": "b\r\n\u{2028}"]
        #expect(!"\(entry)".unicodeScalars.contains(where: String.needsEscape))
        #expect("\(entry)".hasPrefix(#"#1 ← G\nT http://h/\u{1B}[2J {A\n#2"#))
    }

    @Test(
        arguments: [
            ([], 4, ""), (Array("abcd".utf8), 4, "abcd"), (Array("abcde".utf8), 4, "abcd…"),
            (Array("abc€".utf8), 4, "abc…"),
            (Array("a😀".utf8), 4, "a…"), (Array("€uro".utf8), 3, "€…"), ([0xFF, 0x00], 4, "hex ff 00"),
            ([0xFF, 1, 2], 2, "hex ff 01 …"),
            ([0x61, 0xE2, 0x82], 4, "hex 61 e2 82"), ([1], 0, "…"), ([0x0A, 0x61], 9, #"\na"#),
        ] as [([UInt8], Int64, String)])
    func bodySampleTextIsCutAtTheLimit(_ bytes: [UInt8], _ limit: Int64, _ text: String) {
        var sample = BodySample(limit: ByteCount(limit))
        for byte in bytes { sample.take([byte]) }
        #expect(sample.text == text)
        #expect(sample.count == Int64(bytes.count))
    }

    @Test func redactedURLShowsChosenQueryValues() {
        let url = "http://h/?a=1&b=2&a&aa=3&=4#f"
        #expect(
            redactedURL(url, showingQueryOf: ["a"])
                == "http://h/?a=1&b=<redacted>&a&aa=<redacted>&=<redacted>#<redacted>")
    }
}
