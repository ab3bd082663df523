// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing

@testable import Curlew

@Suite("JSON: locations and excerpts in decoding errors")
struct JSONFaultTests {
    private struct User: Codable {
        var name: String
        var age: Int?
    }

    private static func fault<T: Decodable>(
        _ type: T.Type, _ text: String, by json: JSON = JSON()
    ) throws -> (fault: JSON.Fault, path: [String]) {
        func all(_ context: DecodingError.Context) throws -> (JSON.Fault, [String]) {
            (try #require(context.underlyingError as? JSON.Fault), context.codingPath.map(\.stringValue))
        }
        let error = #expect(throws: DecodingError.self) { try json.decode(type, from: Array(text.utf8)) }
        switch try #require(error) {
        case .typeMismatch(_, let context), .valueNotFound(_, let context), .keyNotFound(_, let context),
            .dataCorrupted(let context):
            return try all(context)
        @unknown default: throw try #require(error)
        }
    }

    static let faults: [(text: String, path: [String], offset: Int, line: Int, column: Int)] = [
        ("[\n {\"name\": 1}]", ["Index 0", "name"], 12, 2, 11),
        ("[\n{\"name\":\"é\", \"age\":\"x\"}]", ["Index 0", "age"], 22, 2, 20),
        ("[{\"name\":\"a\"},\n\n  {}]", ["Index 1"], 18, 3, 3), ("[{\"name\":\"a\"}", [], 13, 1, 14),
        ("[{\"name\":\"a\"},{\"name\":null}]", ["Index 1", "name"], 22, 1, 23), ("{}", [], 0, 1, 1),
        ("\u{FEFF}[{\"name\":2}]", ["Index 0", "name"], 9, 1, 10),
        ("[{\"name\":\"a\",\"age\":1.5}]", ["Index 0", "age"], 19, 1, 20),
        ("", [], 0, 1, 1), ("\n\n", [], 2, 3, 1),
    ]

    @Test("RS-16: byte offset, line and column", arguments: faults)
    func faultsHaveOffsetLineAndColumn(text: String, path: [String], offset: Int, line: Int, column: Int) throws {
        let found = try Self.fault([User].self, text)
        #expect(found.path == path)
        #expect(found.fault.offset == offset && found.fault.line == line && found.fault.column == column)
    }

    static let excerpts: [(text: String, excerpt: String)] = [
        (#"[{"name":7}]"#, #"[{"name":7}]"#), ("[{\"name\":\n7}]", #"[{"name":\n7}]"#),
        (#"[{"password":"s3cret","name":7}]"#, #"[{"password":<redacted>,"name":7}]"#),
        (#"[{"accessToken": "s3cret", "name": 7}]"#, #"…accessToken": <redacted>, "name": 7}]"#),
        (#"[{"API-Key":{"a":["s3cret"],"b":1},"name":7}]"#, #"…":<redacted>,"name":7}]"#),
        (#"[{"secrets":[1,2,[3]],"name":7}]"#, #"[{"secrets":<redacted>,"name":7}]"#),
        (#"[{"name":7,"client_secret":"s3cret"}]"#, #"[{"name":7,"client_secret":<redacted>}]"#),
        (#"[{"name":7},{"note":"secret"}]"#, #"[{"name":7},{"note":"secret"}]"#),
        (#"[{"token":"s3cret}]"#, #"[{"token":<redacted>"#), (#"{password: "s3cret"}"#, #"{password: <redacted>}"#),
        (#"{'password': 's3cret'}"#, #"{'password': <redacted>}"#), ("password=s3cret&x=1", "<redacted>"),
        (#"{"password": s3cret more s3cret}"#, #"{"password": <redacted> <redacted> <redacted>}"#),
        (#"{"pass\u0077ord":"s3cret", x}"#, #"{"pass\u0077ord":<redacted>, x}"#),
    ]

    @Test(arguments: excerpts)
    func excerptsHideSecrets(text: String, excerpt: String) throws {
        let fault = try Self.fault([User].self, text).fault
        #expect(fault.excerpt == excerpt)
        #expect(!"\(fault)".contains("s3cret"))
    }

    @Test func excerptsAreShortAndEscaped() throws {
        let many = (0..<100).map { "{\"name\":\"\($0)\"}" }.joined(separator: ",")
        let fault = try Self.fault([User].self, "[\(many),{\"name\":[]},\(many)]").fault
        #expect(fault.excerpt.hasPrefix("…") && fault.excerpt.hasSuffix("…") && fault.excerpt.contains(#"{"name":[]}"#))
        #expect(fault.excerpt.utf8.count < 80 && fault.description.hasPrefix("column "))
        let controls = try Self.fault([User].self, "[\"\u{1B}[31m\"]").fault
        #expect(!controls.excerpt.contains("\u{1B}"))
    }

    private enum Kind: String, Decodable { case small }

    private struct Short: Decodable {
        init(from decoder: any Decoder) throws {
            var container = try decoder.unkeyedContainer()
            while true { _ = try container.decode(Int.self) }
        }
    }

    @Test func errorsThrownByTypesGetALocation() throws {
        let found = try Self.fault([String: [Kind]].self, #"{"a": ["small"], "b": ["small", "s3cret"]}"#)
        #expect(found.path == ["b", "Index 1"] && found.fault.column == 33)
        #expect(found.fault.reason == "the value is malformed or out of range")
        let end = try Self.fault([Short].self, "[[1,2]]")
        #expect(end.path == ["Index 0", "Index 2"] && end.fault.reason == "the array has no more elements")
        let error = #expect(throws: DecodingError.self) { try JSON().decode([Short].self, from: Array("[[1,2]]".utf8)) }
        let failure = NetworkError.decoding(try #require(error), as: [Short].self)
        #expect(failure.message.hasSuffix("expected Int, found the end of the array.") && failure.hint == nil)
    }

    @Test func codingKeysNameMembersAndIndexes() {
        #expect(JSONKey(intValue: 3).stringValue == "3" && JSONKey(intValue: 3).intValue == 3)
        #expect(JSONKey(index: 3).stringValue == "Index 3" && JSONKey(stringValue: "3").intValue == nil)
    }

    @Test func guardPrefixesAreStripped() throws {
        let json = JSON(stripping: JSON.guardPrefixes)
        #expect(try json.decode([Int].self, from: Array(")]}',\n[1]".utf8)) == [1])
        #expect(try json.decode([Int].self, from: Array("[1]".utf8)) == [1])
    }

    @Test func infinitelyNestedValueFails() {
        final class Endless: Encodable {
            func encode(to encoder: any Encoder) throws {
                var container = encoder.unkeyedContainer()
                try container.encode(self)
            }
        }
        #expect(throws: EncodingError.self) { try JSON().encode(Endless()) }
        var value = JSONValue.array([])
        for _ in 0..<2000 { value = .array([value]) }
        #expect(throws: EncodingError.self) { try JSON().encode(value) }
    }

    private struct Event: Codable, Equatable {
        var eventId: Int
        var createdAt: Date
        var endsAt: Date?
    }

    @Test("JSON.web: snake case, and dates with or without fractions")
    func webFormatConvertsNamesAndDates() throws {
        let text = #"{"created_at":"2026-11-24T18:30:00.25Z","ends_at":"2026-11-24T19:30:00+01:00","event_id":7}"#
        let event = try JSON.web.decode(Event.self, from: text.utf8)
        let start = Date(timeIntervalSince1970: 1_795_545_000)
        #expect(event == Event(eventId: 7, createdAt: start + 0.25, endsAt: start))
        let written = String(decoding: try JSON.web.encode(event), as: UTF8.self)
        #expect(written == #"{"event_id":7,"created_at":"2026-11-24T18:30:00.250Z","ends_at":"2026-11-24T18:30:00Z"}"#)
        #expect(try JSON.web.decode(Event.self, from: written.utf8) == event)
    }

    @Test("Encoded dates equal Foundation's", arguments: 0..<40 as Range<UInt64>)
    func iso8601DatesEqualFoundations(seed: UInt64) throws {
        var chance = SeededChance(seed)
        for _ in 0..<200 {
            let date = Date(timeIntervalSince1970: Double.random(in: -30_000_000_000...400_000_000_000, using: &chance))
            #expect(ISODate.text(date) == date.formatted(.iso8601))
            // Dates of distant centuries are compared only without fractions.
            guard abs(date.timeIntervalSince1970) < 12_000_000_000 else { continue }
            let text = ISODate.text(date, withMilliseconds: true)
            let read = try #require(ISODate.date(text))
            #expect(abs(read.timeIntervalSince(date)) < 0.001_1, "\(text)")
        }
        #expect(ISODate.text(Date(timeIntervalSince1970: -0.25), withMilliseconds: true) == "1969-12-31T23:59:59.750Z")
    }

    static let noDates = [
        "", "2026-11-24", "2026-11-24T18:30:00", "2026-11-24 18:30:00Z", " 2026-11-24T18:30:00Z",
        "2026-11-24T18:30:00Zx",
        "2026-13-24T18:30:00Z", "2026-11-00T18:30:00Z", "2026-11-24T18:30:00.Z", "20261124T183000Z", "tomorrow",
        "2026-11-24T18:30:00Z ", "2026-11-24T18:30:00+25:00", "2026-11-24T18:30:00.123456789012Z",
    ]

    @Test(arguments: noDates)
    func invalidISO8601DatesAreRejected(text: String) {
        #expect(ISODate.date(text) == nil)
    }

    static let rareDates: [(text: String, seconds: Double)] = [
        ("2026-11-24T18:30:00+0100", 1_795_541_400), ("2026-02-30T00:00:00Z", 1_772_409_600),
        ("2026-11-24T24:00:00Z", 1_795_564_800),
        ("2026-11-24T18:30:60Z", 1_795_545_060), ("2026-11-24T18:30:00-01:30", 1_795_550_400),
        ("1500-01-01T00:00:00Z", -14_830_992_000),
        ("2024-02-29T00:00:00Z", 1_709_164_800), ("2026-11-24T18:30:00.5z", 1_795_545_000.5),
    ]

    @Test(arguments: rareDates)
    func unusualISO8601DatesAreParsed(text: String, seconds: Double) {
        #expect(ISODate.date(text)?.timeIntervalSince1970 == seconds)
    }
}
