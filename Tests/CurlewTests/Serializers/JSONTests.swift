// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing

@testable import Curlew

@Suite("JSON format (RFC 8259)")
struct JSONTests {
    private typealias User = ReadingScene.User

    private static let text = #"{"name":"é😀"}"#

    private static func units(_ bytes: Int, bigEndian: Bool, mark: Bool) -> [UInt8] {
        let all: [UInt32] =
            (mark ? [0xFEFF] : []) + (bytes == 2 ? text.utf16.map { UInt32($0) } : text.unicodeScalars.map(\.value))
        return all.flatMap { unit in
            let little = (0..<bytes).map { UInt8(truncatingIfNeeded: unit >> (8 * $0)) }
            return bigEndian ? little.reversed() : little
        }
    }

    /// RS-13: bodies in all encodings, with a byte order mark and without.
    static let bodies: [(name: String, body: [UInt8], type: String)] = {
        let (start, end) = (Array(#"{"name":""#.utf8), Array(#""}"#.utf8))
        let utf8 = Array(text.utf8)
        var rows: [(name: String, body: [UInt8], type: String)] = [
            ("UTF-8", utf8, "application/json"), ("UTF-8 marked", [0xEF, 0xBB, 0xBF] + utf8, "application/json"),
            ("UTF-8 that is called otherwise", utf8, "application/json; charset=iso-8859-1"),
            ("UTF-8 marked that is called otherwise", [0xEF, 0xBB, 0xBF] + utf8, "a/b; charset=iso-8859-1"),
            ("UTF-8 of an unknown name", utf8, "application/json; charset=no-such"),
        ]
        // Encoded by Python 3.11.
        let characters: [UInt8] = [0xA8, 0xA6, 0x94, 0x39, 0xFC, 0x36]
        rows.append(("GB 18030", start + characters + end, "a/b; charset=gb18030"))
        for bytes in [2, 4] {
            for (isBig, isMarked) in [(false, false), (false, true), (true, false), (true, true)] {
                for charset in ["", "; charset=utf-16", "; charset=utf-16le", "; charset=utf-8"] {
                    let name = "UTF-\(8 * bytes), big-endian: \(isBig), marked: \(isMarked)\(charset)"
                    let body = units(bytes, bigEndian: isBig, mark: isMarked)
                    rows.append((name, body, "application/json" + charset))
                }
            }
        }
        return rows
    }()

    @Test(arguments: bodies)
    func bodiesAreReadInEveryUnicodeEncoding(name: String, body: [UInt8], type: String) throws {
        #expect(try JSON().decode(User.self, from: Data(body), of: ReadingScene.head(type)).name == "é😀")
    }

    @Test func declaredLegacyCharsetsAreDecoded() throws {
        let body = Data(#"{"name":""#.utf8) + [0xE9] + Data(#""}"#.utf8)
        #expect(try JSON().decode(User.self, from: body, of: ReadingScene.head("a/b; charset=latin1")).name == "é")
        #expect(throws: (any Error).self) { try JSON().decode(User.self, from: body, of: ReadingScene.head("a/b")) }
        // The bytes are invalid in the declared encoding.
        let bad = Data([0x22, 0x81, 0x22])
        let error = #expect(throws: NetworkError.self) {
            try JSON().decode(String.self, from: bad, of: ReadingScene.head("a/b; charset=shift_jis"))
        }
        #expect(error?.kind == .decodingFailed)
    }

    // B-94.
    static let prefixes: [(String, [String], String?)] = [
        (")]}',\n[1]", JSON.guardPrefixes, "[1]"), (")]}'\n[1]", JSON.guardPrefixes, "[1]"),
        ("for(;;);[1]", JSON.guardPrefixes, "[1]"), ("while(1);[1]", JSON.guardPrefixes, "[1]"),
        (" \n{}&&[1]", JSON.guardPrefixes, "[1]"), ("[1]", JSON.guardPrefixes, "[1]"),
        ("\u{FEFF})]}'[1]", JSON.guardPrefixes, "[1]"), ("\u{FEFF}[1]", JSON.guardPrefixes, "[1]"),
        ("ab[1]", ["a", "ab"], "[1]"), ("ab[1]", ["ab", "a"], "[1]"),
        (")]}'[1]", [], nil), ("abab[1]", ["ab"], nil), (")]}'", JSON.guardPrefixes, nil),
    ]

    @Test(arguments: prefixes)
    func guardPrefixesAreStripped(body: String, prefixes: [String], json: String?) {
        let format = JSON(stripping: prefixes)
        let value = try? format.decode(JSONValue.self, from: Data(body.utf8), of: ReadingScene.head("application/json"))
        #expect(value?.description == json)
    }

    @Test func guardPrefixesAreStrippedBeforeNull() {
        let format = JSON.json(decoder: JSONDecoder(), stripping: JSON.guardPrefixes)
        #expect(format.isNull(Data(")]}'\n null ".utf8), of: ReadingScene.head(nil)))
        #expect(!format.isNull(Data(")]}' nullable".utf8), of: ReadingScene.head(nil)))
        #expect(!format.isNull(Data([0x22, 0x81, 0x22]), of: ReadingScene.head("a/b; charset=shift_jis")))
    }

    @Test("RQ-13, RS-13: encoder and decoder can be configured")
    func encoderAndDecoderAreConfigurable() throws {
        let json = JSON { encoder, decoder in
            encoder.keyEncodingStrategy = .convertToSnakeCase
            decoder.keyDecodingStrategy = .convertFromSnakeCase
        }
        struct Row: Codable, Equatable {
            var firstName: String
        }
        let data = try json.encode(Row(firstName: "A"))
        #expect(String(decoding: data, as: UTF8.self) == #"{"first_name":"A"}"#)
        #expect(try json.decode(Row.self, from: data, of: ReadingScene.head(nil)) == Row(firstName: "A"))
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        #expect(try JSON.json(encoder: encoder).encode(["b": 1, "a": 2]) == Data(#"{"a":2,"b":1}"#.utf8))
        struct Refusal: Error {}
        #expect(throws: Refusal.self) { try JSON { _, _ in throw Refusal() } }
    }

    @Test("RS-12: content types")
    func contentTypesAreListed() {
        func request(_ format: some RequestFormat) -> String { format.contentType.description }
        func response(_ format: some ResponseFormat) -> [String] { format.accepts.map(\.description) }
        #expect(request(.json) == "application/json")
        #expect(
            response(.json)
                == ["application/json", "application/*+json", "text/json; q=0.5", "text/javascript; q=0.1"])
    }

    static let failures: [(String, String, String?)] = [
        ("[1", "column 3: expected “,” or “]”", nil), ("hello", "column 1: expected a value", nil),
        (" <html>", "column 2: expected a value", "It begins with “<”"),
    ]

    @Test("RS-16: syntax errors have a reason and a hint", arguments: failures)
    func syntaxErrorsHaveAReasonAndAHint(body: String, reason: String, hint: String?) throws {
        let error = try #require(
            #expect(throws: NetworkError.self) {
                try JSON().decode([Int].self, from: Data(body.utf8), of: ReadingScene.head(nil))
            })
        #expect(error.message == "Decoding Array<Int> failed: the body is not valid JSON (\(reason)).")
        #expect(error.kind == .decodingFailed && error.phase == .decoding && error.cause is DecodingError)
        #expect(hint.map { error.hint?.hasPrefix($0) == true } ?? (error.hint == nil))
    }

    private enum Color: String, Decodable { case red }

    @Test func validJSONOfAWrongTypeIsNoSyntaxError() throws {
        for json in [JSON(), JSON(decoder: JSONDecoder())] {
            #expect(throws: DecodingError.self) {
                try json.decode(Color.self, from: Data(#""blue""#.utf8), of: ReadingScene.head(nil))
            }
        }
        // Foundation's decoder provides neither the path nor the location.
        #expect(throws: DecodingError.self) {
            try JSON(decoder: JSONDecoder()).decode([Int].self, from: Data("[1.5]".utf8), of: ReadingScene.head(nil))
        }
        let error = #expect(throws: NetworkError.self) {
            try JSON(decoder: JSONDecoder()).decode([Int].self, from: Data("[1".utf8), of: ReadingScene.head(nil))
        }
        #expect(error?.message == "Decoding Array<Int> failed: the body is not valid JSON.")
    }

    @Test func invalidJSONInLegacyCharsetsFails() throws {
        let body = Data(#"{"name":""#.utf8) + [0xE9]
        let error = #expect(throws: NetworkError.self) {
            try JSON().decode(User.self, from: body, of: ReadingScene.head("a/b; charset=latin1"))
        }
        #expect(error?.message.contains("the string does not end") == true)
    }

    @Test func json5IsDecodedByFoundationWithAllOptions() throws {
        let key = try #require(CodingUserInfoKey(rawValue: "k"))
        let json = JSON { _, decoder in
            decoder.allowsJSON5 = true
            decoder.keyDecodingStrategy = .convertFromSnakeCase
            decoder.dateDecodingStrategy = .secondsSince1970
            decoder.userInfo = [key: 7]
        }
        struct Row: Decodable {
            var firstName: Date
            var info: Int?

            enum Key: String, CodingKey { case firstName }

            init(from decoder: any Decoder) throws {
                firstName = try decoder.container(keyedBy: Key.self).decode(Date.self, forKey: .firstName)
                info = CodingUserInfoKey(rawValue: "k").flatMap { decoder.userInfo[$0] } as? Int
            }
        }
        let row = try json.decode(Row.self, from: Array("{first_name: 1,}".utf8))
        #expect(row.firstName.timeIntervalSince1970 == 1 && row.info == 7)
    }
}
