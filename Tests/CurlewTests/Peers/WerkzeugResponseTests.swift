// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewTesting
import FoundationEssentials
import Testing

@testable import Curlew

/// Responses written by Python and read by a client, and property lists in both directions.
@Suite(.enabledIfInstalled(.werkzeug), .peer(.werkzeug), .timeLimit(.minutes(5)))
struct WerkzeugResponseTests {
    private struct Sample: Codable, Equatable, Sendable {
        var name = "é漢👴🏻 <&>"
        var numbers = [0, -1, Int.max]
        var ratio = -2.5
        var isGood = true
        var bytes = Data([0, 0xFF, 0x80])
        var date = Date(timeIntervalSinceReferenceDate: 7)
        var nested = ["": "empty", "a b": ""]
    }

    private struct Refused: Endpoint {
        let problem: ProblemDetails
        let method = Method.post
        let path: Path = "problem"
        let query: Request.Query = ["status": 422]
        var body: Body? { .json(problem) }
    }

    private static let unicode = ["utf-8", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"]

    private let api: JSONClient

    init() throws { api = try WerkzeugServer.shared().client() }

    private func query(_ codec: String, _ charset: String?, mark: Bool, _ type: MediaType) -> Request.Query {
        ["codec": codec, "charset": charset ?? "", "mark": mark ? 1 : 0, "type": type.description]
    }

    /// JSON with and without a byte order mark and with correct, wrong and missing charsets (RFC 8259 §8.1).
    @Test(arguments: unicode, [false, true])
    func jsonIsReadInUnicodeEncodings(_ codec: String, _ mark: Bool) async throws {
        for charset in [nil, "utf-8", codec] {
            for seed in 0..<4 as Range<UInt64> {
                var chance = SeededChance(seed)
                let value = JSONValue.randomObject(&chance, depth: 4)
                let query = query(codec, charset, mark: mark, .json)
                let read: JSONValue = try await api.post("text", .json(value), query: query)
                #expect(read == value, "\(charset ?? "none"), seed \(seed)")
            }
        }
    }

    @Test(arguments: [
        ("latin-1", "ISO-8859-1", "¿Grüße, señor?"), ("shift_jis", "Shift_JIS", "日本語テキスト"),
        ("koi8-r", "KOI8-R", "Кроншнеп"), ("cp1252", "windows-1252", "„Brachvögel“ – 3 €"),
    ])
    func jsonIsReadInOtherCharsets(_ codec: String, _ charset: String, _ text: String) async throws {
        let query = query(codec, charset, mark: false, "application/vnd.test+json")
        let read: [String: String] = try await api.post("text", .json(["a": text]), query: query)
        #expect(read == ["a": text])
    }

    private static let table: [(codec: String, charset: String?, text: String)] = [
        ("utf-8", nil, "é漢👴🏻"), ("utf-8", "utf-8", "é漢👴🏻"), ("latin-1", "ISO-8859-1", "¿Grüße, señor?"),
        ("latin-1", "latin1", "é"), ("iso8859-15", "ISO-8859-15", "3 €"), ("cp1252", "windows-1252", "„3 €“"),
        ("shift_jis", "Shift_JIS", "日本語テキスト"), ("euc-jp", "EUC-JP", "日本語テキスト"), ("gb18030", "GB18030", "中文👴🏻"),
        ("euc-kr", "EUC-KR", "한국어"), ("big5", "Big5", "中文"), ("koi8-r", "KOI8-R", "Кроншнеп"),
        ("utf-16", "UTF-16", "é漢👴🏻"), ("utf-16-le", "utf-16le", "é漢👴🏻"), ("utf-16-be", "utf-16be", "é漢👴🏻"),
        ("utf-16-le", "UTF-16", "é漢👴🏻"), ("utf-16", nil, "é漢👴🏻"),
    ]

    @Test(arguments: table)
    func textsAreReadInEveryCharset(_ codec: String, _ charset: String?, _ text: String) async throws {
        let query = query(codec, charset, mark: false, "text/plain")
        #expect(try await api.post("text", .text(text), query: query, using: .text) == text)
    }

    /// A byte order mark overrides the charset that the server declares, and is not part of the text.
    @Test(arguments: ["utf-8", "utf-16-le", "utf-16-be"])
    func textsWithByteOrderMarksOverrideTheCharset(_ codec: String) async throws {
        for charset in [nil, "ISO-8859-1", "utf-16be"] {
            let query = query(codec, charset, mark: true, "text/plain")
            let text = try await api.post("text", .text("é漢👴🏻"), query: query, using: .text)
            #expect(text.unicodeScalars.elementsEqual("é漢👴🏻".unicodeScalars), "\(charset ?? "none")")
        }
    }

    @Test(arguments: PropertyList.Layout.allCases)
    func propertyListsAreExchanged(_ layout: PropertyList.Layout) async throws {
        let body = Body.plist(Sample(), by: PropertyList(layout))
        let read: WerkzeugReading = try await api.post("x", body)
        let expected: JSONValue = [
            "name": "é漢👴🏻 <&>", "numbers": [0, -1, .integer(.max)], "ratio": -2.5, "isGood": true, "bytes": "AP+A",
            "date": "2001-01-01T00:00:07", "nested": ["": "empty", "a b": ""],
        ]
        #expect(read.plist == expected && read.type == "application/x-plist")
        #expect(read.body.starts(with: (layout == .xml ? "<?xml" : "bplist00").utf8))
        for written in ["xml", "binary"] {
            let sample = try await api.post("plist", body, query: ["layout": written], using: .plist(Sample.self))
            #expect(sample == Sample(), "\(written)")
        }
    }

    /// Problem details (RFC 9457) as the problem type of an endpoint and decoded from the error.
    @Test func problemDetailsAreDecoded() async throws {
        let problem = ProblemDetails(
            type: "https://e.test/full", title: "Voll: é漢", status: 422, detail: "\"<&>\"", instance: "/x",
            extensions: ["disk": ["free": 0, "names": ["a", nil]]])
        let error = await #expect(throws: APIError<ProblemDetails>.self) {
            try await api.send(Refused(problem: problem))
        }
        #expect(error?.problem == problem && error?.network.response?.status == .unprocessableContent)
        #expect(error?.network.response?.contentType == "application/problem+json")
        #expect(error?.network.decode(ProblemDetails.self) == problem)
    }
}
