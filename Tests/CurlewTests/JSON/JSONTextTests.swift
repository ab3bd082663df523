// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing

@testable import Curlew

@Suite("JSON: parsing of JSONValue", .timeLimit(.minutes(5)))
struct JSONTextTests {
    private static func read<T: Decodable>(_ type: T.Type, _ text: String, by json: JSON = JSON()) throws -> T {
        try json.decode(type, from: Data(text.utf8), of: ReadingScene.head(nil))
    }

    /// Returns the offset of the syntax error, or nil for valid JSON.
    private static func offset(_ text: some Collection<UInt8>) -> Int? {
        do {
            _ = try JSONValue(parsing: text)
            return nil
        } catch DecodingError.dataCorrupted(let context) {
            return (context.underlyingError as? JSON.Fault)?.offset
        } catch {
            return nil
        }
    }

    private static func nested(_ depth: Int, _ start: String, _ end: String, _ inmost: String = "") -> String {
        String(repeating: start, count: depth) + inmost + String(repeating: end, count: depth)
    }

    static let valid = [
        "null", "true", "false", "0", "-0", "1", "-1", "1.5", "1.0", "-1.0", "-0.0", "1e5", "1E+2", "1e-2", "0e0",
        "0.10e1", "1e18", "1e19", "1e-400", "5e-324", "9223372036854775807", "9223372036854775808",
        "-9223372036854775808", "-9223372036854775809", "18446744073709551615", "18446744073709551616",
        "1.7976931348623157e308", "123456789012345678901234567890", #""""#, #""\u0000""#, "\"\u{7F}\"", #""\uFFFF""#,
        #""\/\b\f\n\r\t\"\\""#, #""a\u00E9b\ud83d\uDE00c""#, #""é😀""#, #""\\""#, "[]", "{}", " [ ] ", "\t{ }\r\n",
        "[1 , 2]", #"{"a":1,"a":2}"#, #"{"":[{}]," b ":{"c":[null,true,[[]]]}}"#, #"{ "a" : 1 , "b" : [ 2 ] }"#,
    ]

    @Test("The parser agrees with Foundation's decoder", arguments: valid)
    func parserAgreesWithFoundation(text: String) throws {
        let value = try JSONValue(parsing: text.utf8)
        let decoded = try JSONDecoder().decode(JSONValue.self, from: Data(text.utf8))
        #expect(value == decoded)
    }

    static let invalid: [(text: String, offset: Int)] = [
        ("", 0), (" ", 1), ("1 2", 2), ("tru", 0), ("nul", 0), ("nullx", 4), ("falsE", 0), ("NaN", 0), ("Infinity", 0),
        ("01", 1), ("-", 1), ("1.", 2), (".5", 0), ("+1", 0), ("1e", 2), ("1e+", 3), ("0x10", 1), ("-a", 1), ("[", 1),
        ("[1", 2), ("[1,]", 3), ("[,1]", 1), ("[1 2]", 3), ("[1]]", 3), ("]", 0), ("{", 1), ("{,}", 1), ("{1:2}", 1),
        (#"{"a"}"#, 4), (#"{"a" 1}"#, 5), (#"{"a":}"#, 5), (#"{"a":1"#, 6), (#"{"a":1,}"#, 7), (#"{"a":1]"#, 6),
        ("'a'", 0), (#"""#, 0), (#""a"#, 0), (#""\"#, 1), (#""\x""#, 1), (#""\u12G4""#, 1), (#""\u12"#, 1),
        (#""\ud800""#, 1), (#""\ud800\n""#, 1), (#""\ud800\u0041""#, 1), (#""\udc00""#, 1), (#""\ud800\ud800""#, 1),
        ("\"a\tb\"", 2), ("\"ab\u{0}\"", 3), ("\u{A0}1", 0), ("\u{B}1", 0), ("12\u{0}", 2), ("/**/1", 0),
    ]

    @Test(arguments: invalid)
    func invalidJSONIsRejectedAtItsOffset(text: String, offset: Int) {
        #expect(Self.offset(text.utf8) == offset)
    }

    // RFC 3629 §3, §4: a lone continuation byte, a truncated character, a surrogate, an overlong form, above U+10FFFF.
    static let noText: [[UInt8]] = [
        [0x80], [0xC3], [0xED, 0xA0, 0x80], [0xC0, 0x80], [0xF4, 0x90, 0x80, 0x80], Array(#"\n"#.utf8) + [0xC3],
        [0xC3] + Array(#"\u00e9"#.utf8), [0xC3] + Array(#"\n"#.utf8) + [0xA9],
    ]

    @Test(arguments: noText)
    func invalidUTF8IsRejected(bytes: [UInt8]) {
        #expect((Self.offset([0x5B, 0x22] + bytes + [0x22, 0x5D]) ?? -1) >= 2)
    }

    @Test(arguments: [("1e400", 0), ("-1e400", 0), ("[1,2e999]", 3)])
    func numbersBeyondDoubleAreRejected(text: String, offset: Int) throws {
        #expect(Self.offset(text.utf8) == offset)
        let error = try #require(#expect(throws: DecodingError.self) { try Self.read(JSONValue.self, text) })
        let failure = NetworkError.decoding(error, as: JSONValue.self)
        #expect(failure.message.hasSuffix(": the number does not fit into Double."))
        #expect(failure.hint?.hasPrefix("Numbers may have fractions") == true)
    }

    @Test("The parser agrees with Foundation's decoder for random values", arguments: 0..<200 as Range<UInt64>)
    func parserAgreesWithFoundationForRandomValues(seed: UInt64) throws {
        var chance = SeededChance(seed)
        let value = JSONValue.random(&chance, depth: 4)
        for data in [try JSONEncoder().encode(value), Data(value.description.utf8)] {
            let read = try JSONValue(parsing: data)
            let decoded = try JSONDecoder().decode(JSONValue.self, from: data)
            #expect(read == value && read.description == decoded.description)
        }
    }

    @Test func numbersChooseTheCaseOfJSONValue() throws {
        guard case .integer(.max) = try JSONValue(parsing: "9223372036854775807".utf8),
            case .unsigned(1 << 63) = try JSONValue(parsing: "9223372036854775808".utf8),
            case .integer(1) = try JSONValue(parsing: "1.0".utf8),
            case .number(1e19) = try JSONValue(parsing: "1e19".utf8),
            case .number(1.5) = try JSONValue(parsing: "1.5".utf8)
        else {
            Issue.record("a number has another case")
            return
        }
    }

    @Test("Limit of nested arrays and objects")
    func nestingIsLimited() throws {
        for (start, end, inmost) in [("[", "]", ""), (#"{"a":"#, "}", "1"), (#"[{"a":"#, "}]", "1")] {
            let limit = 512 / start.count(where: "[{".contains)
            let text = Self.nested(limit, start, end, inmost)
            #expect(try JSONValue(parsing: text.utf8).description == text)
            for depth in [limit + 1, 100_000] {
                #expect(Self.offset(Self.nested(depth, start, end, inmost).utf8) == limit * start.utf8.count)
            }
            // Unclosed arrays and objects fail, too.
            #expect(throws: (any Error).self) {
                try JSONValue(parsing: String(repeating: start, count: 100_000).utf8)
            }
        }
        // Siblings do not add to the depth.
        let pair = "[\(Self.nested(511, "[", "]")),\(Self.nested(511, #"{"a":"#, "}", "1"))]"
        #expect(try JSONValue(parsing: pair.utf8).asArray?.count == 2)
    }

    @Test("64 KiB of deeply nested values are decoded by every type")
    func deeplyNestedValuesAreDecoded() throws {
        let arrays = "[" + Array(repeating: Self.nested(500, "[", "]"), count: 65).joined(separator: ",") + "]"
        let objects = Array(repeating: Self.nested(500, #"{"a":"#, "}", "1"), count: 10).joined(separator: ",")
        #expect(try Self.read(JSONValue.self, arrays).asArray?.count == 65)
        #expect(try Self.read([JSONValue].self, "[\(objects)]").count == 10)
        #expect(try Self.read([String: JSONValue].self, #"{"type":\#(arrays)}"#).count == 1)
        let half = "[" + Array(repeating: Self.nested(500, "[", "]"), count: 30).joined(separator: ",") + "]"
        let problem = NetworkError(
            .unacceptableStatus, phase: .validating, "x", response: ReadingScene.head("application/problem+json", 403),
            body: Array(#"{"title":"T","x":\#(half),"y":[\#(objects)]}"#.utf8)
        ).decode(ProblemDetails.self)
        #expect(problem?.title == "T" && problem?.extensions.count == 2)
    }

    @Test func syntaxErrorsOfJSONValueNameThePlace() throws {
        let reasons = [
            ("[1", "column 3: expected “,” or “]”"), ("\n<html>", "line 2, column 1: expected a value"),
            (Self.nested(100_000, "[", "]"), "column 513: arrays and objects are nested more than 512 levels deep"),
        ]
        for (text, reason) in reasons {
            let error = try #require(#expect(throws: NetworkError.self) { try Self.read([JSONValue].self, text) })
            let what = reason.contains("nested") ? "the body is JSON beyond a limit" : "the body is not valid JSON"
            #expect(error.message == "Decoding Array<JSONValue> failed: \(what) (\(reason)).")
            #expect(error.kind == .decodingFailed && error.phase == .decoding && error.cause is DecodingError)
            #expect((error.hint != nil) == text.contains("<"))
        }
        // Valid JSON of another type.
        #expect(throws: DecodingError.self) { try Self.read([JSONValue].self, "{}") }
        #expect(throws: DecodingError.self) { try Self.read([String: JSONValue].self, "[]") }
        #expect(throws: DecodingError.self) { try Self.read(ProblemDetails.self, "[]") }
    }

    @Test func json5IsDecodedByFoundation() throws {
        let json = JSON { $1.allowsJSON5 = true }
        #expect(try Self.read(JSONValue.self, "{a:[1,],/**/}", by: json) == ["a": [1]])
        let members = JSON { $1.assumesTopLevelDictionary = true }
        #expect(try Self.read([String: JSONValue].self, #""a":1"#, by: members) == ["a": 1])
    }

    // RS-13.
    @Test(arguments: [#"["é😀"]"#, "7", "[]", #"{"a":"é"}"#])
    func utf16AndUTF32AreDecoded(text: String) throws {
        let value = try JSONValue(parsing: text.utf8)
        for width in [2, 4] {
            for (isBig, isMarked) in [(false, false), (false, true), (true, false), (true, true)] {
                let units = width == 2 ? text.utf16.map { UInt32($0) } : text.unicodeScalars.map(\.value)
                let bytes = ((isMarked ? [0xFEFF] : []) + units).flatMap { unit in
                    let little = (0..<width).map { UInt8(truncatingIfNeeded: unit >> (8 * $0)) }
                    return isBig ? little.reversed() : little
                }
                #expect(try JSON().decode(JSONValue.self, from: Data(bytes), of: ReadingScene.head(nil)) == value)
            }
        }
        // An unpaired surrogate is rejected.
        #expect(throws: NetworkError.self) {
            try JSON().decode(JSONValue.self, from: Data([0x22, 0, 0, 0xD8, 0x22, 0]), of: ReadingScene.head(nil))
        }
    }

    @Test("With Foundation's decoder, the limit is 64 levels")
    func nestingIsLimitedWithFoundationsDecoder() throws {
        let json = JSON(decoder: JSONDecoder())
        struct Row: Decodable {
            var value: JSONValue
        }
        for (start, end) in [("[", "]"), (#"{"a":"#, "}")] {
            let text = Self.nested(63, start, end, "1")
            #expect(try Self.read(Row.self, #"{"value":\#(text)}"#, by: json).value.description == text)
            let error = #expect(throws: DecodingError.self) {
                try Self.read(Row.self, #"{"value":\#(Self.nested(64, start, end, "1"))}"#, by: json)
            }
            guard case .dataCorrupted(let context)? = error else { throw try #require(error) }
            #expect(context.codingPath.count == 64 && context.debugDescription == "more than 64 levels of JSON")
        }
    }
}
