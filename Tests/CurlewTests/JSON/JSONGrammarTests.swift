// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing

@testable import Curlew

/// A row of the table: a text and the expected verdict.
struct JSONGrammarRow: Sendable, CustomTestStringConvertible {
    enum Verdict: Sendable, Equatable {
        case accept
        case reject
        /// The RFC leaves the choice to the parser: nil rejects the text, otherwise the value has this description.
        case chosen(String?)
    }

    let bytes: [UInt8]
    let verdict: Verdict

    var testDescription: String { String(decoding: bytes, as: UTF8.self).debugDescription }

    static func rows(_ verdict: Verdict, _ texts: [String]) -> [JSONGrammarRow] {
        texts.map { JSONGrammarRow(bytes: Array($0.utf8), verdict: verdict) }
    }

    /// Rows of strings with any bytes, also invalid UTF-8.
    static func strings(_ verdict: Verdict, _ strings: [[UInt8]]) -> [JSONGrammarRow] {
        strings.map { JSONGrammarRow(bytes: [0x22] + $0 + [0x22], verdict: verdict) }
    }

    static func chosen(_ texts: [(String, String?)]) -> [JSONGrammarRow] {
        texts.map { JSONGrammarRow(bytes: Array($0.utf8), verdict: .chosen($1)) }
    }
}

/// RFC 8259 as a table: valid JSON, invalid JSON, and texts for which the RFC leaves the choice to the parser.
@Suite("JSON: the grammar of RFC 8259")
struct JSONGrammarTests {
    private static let values = JSONGrammarRow.rows(
        .accept,
        [
            "null", "true", "false", "0", "\"\"", "[]", "{}", " null", "null ", "\tnull\n", "\r\nnull\r\n", "[null]",
            "[true]", "[false]", "[null,true,false]", "[1,2,3]", "[ 1 , 2 , 3 ]", "[\n1\n,\n2\n]", "[\t1\t,\t2\t]",
            "[\r1\r,\r2\r]", "[[]]", "[[],[]]", "[[[[[[]]]]]]", "[{}]", "[{},{}]", "[ ]", "[\n]", "{ }", "{\t}",
            "{\r\n}", #"{"a":1}"#, #"{"a" : 1}"#, #"{ "a":1 }"#, "{\n\"a\"\n:\n1\n}", #"{"a":1,"b":2}"#,
            #"{"a":1 , "b":2}"#, #"{"":0}"#, #"{"a":null}"#, #"{"a":[]}"#, #"{"a":{}}"#, #"{"a":{"a":{"a":{}}}}"#,
            #"{"a":[1,{"b":[2,{"c":3}]}]}"#, #"[{"a":[{"b":[]}]}]"#, #"{"\u0061":1}"#, #"{"é":1}"#, #"{"😀":1}"#,
            #"{"a b":1}"#, #"{"\"":1}"#, #"{"\\":1}"#, #"{"\u0000":1}"#, #"{"null":null}"#, #"{"true":false}"#,
            #"{"1":1}"#, #"{"[]":[]}"#, #"{"a:b":1}"#, #"{"a,b":1}"#, #"{"{":"}"}"#, #"["[","]"]"#, #"["a",1]"#,
            #"[1,"a",null,true,{},[]]"#,
        ])

    private static let numbers = JSONGrammarRow.rows(
        .accept,
        [
            "-0", "1", "-1", "9", "10", "100", "1234567890", "0.0", "0.5", "-0.5", "-0.0", "1.0", "1.00", "1.25",
            "0.001", "0.10", "123.456", "-123.456", "0e0", "0E0", "0e+0", "0e-0", "0e1", "1e1", "1E1", "1e+1", "1E+1",
            "1e-1", "1E-1", "1e01", "1e00", "1e-00", "1.5e3", "-1.5E-3", "1.0e+10", "0.0e0", "123e5", "1e22", "1e23",
            "1e308", "1.7976931348623157e308", "2.2250738585072014e-308", "5e-324", "9223372036854775807",
            "-9223372036854775808", "9223372036854775808", "18446744073709551615", "18446744073709551616",
            "123456789012345678901234567890", "0.1234567890123456789012345678901234567890",
            "3.141592653589793238462643383279", "[0,-0]", "[1,-1]", "[1e5,1]", " 1", "1 ", "\n1\n",
        ])

    private static let strings = JSONGrammarRow.rows(
        .accept,
        [
            #""a""#, #""abc""#, #"" ""#, #""\"""#, #""\\""#, #""\/""#, #""/""#, #""\b""#, #""\f""#, #""\n""#,
            #""\r""#, #""\t""#, #""\u0000""#, #""\u001f""#, #""\u0020""#, #""\u0041""#, #""\u00e9""#, #""\u00E9""#,
            #""\uFFFF""#, #""\uffff""#, #""\uFFFE""#, #""\uFEFF""#, #""\u2028\u2029""#, #""\ud83d\ude00""#,
            #""\uD83D\uDE00""#, #""\uD800\uDC00""#, #""\uDBFF\uDFFF""#, #""\ud7ff""#, #""\ue000""#, "\"\u{7F}\"",
            "\"\u{80}\"", "\"\u{A0}\"", "\"\u{2028}\u{2029}\"", "\"\u{FEFF}\"", "\"\u{FFFF}\"", "\"\u{10FFFF}\"",
            "\"é\"", "\"e\u{301}\"", "\"日本語\"", "\"😀\"", "\"👨‍👩‍👧\"", #""\\u0041""#, #""\\\"""#, #""\\\\""#,
            #""a\nb""#, #""\u0061\u0062""#, #""'""#, #""// no comment""#, #""/* nor this */""#, #""1""#, #""null""#,
            #""0123456""#, #""01234567""#, #""012345678""#, #""0123456\n""#, #""01234567\n""#, #""0123456é""#,
            #""012345678901234567890123456789012345678901234567890123456789""#, #""\u0060\u002F""#, #""a\/b""#,
        ])

    private static let noValues = JSONGrammarRow.rows(
        .reject,
        [
            "", " ", "\n", "\t\r\n ", "nul", "nulll", "NULL", "Null", "n", "tru", "truee", "True", "TRUE", "fals",
            "False", "falsee", "undefined", "None", "nil", "yes", "NaN", "-NaN", "nan", "Infinity", "-Infinity", "inf",
            "a", "abc", "'a'", "`a`", "“a”", "a\"b\"", "null null", "null,", ",null", "1 2", "1,2", "1,", "[] []",
            "{} {}", "[]{}", "[],", "{},", "[]a", "{}a", "\"a\"b", "\"a\"\"b\"", "null\u{0}", "\u{0}", "//",
            "/**/", "// a\n1", "/* a */1", "1/* a */", "1// a", "# a\n1", "1#", "[1/**/,2]", "<html>", "a=1", "?", "*",
            "\\n", "\\u0031", "\u{B}1", "\u{C}1", "1\u{C}", "\u{A0}1", "1\u{A0}", "\u{2028}1", "\u{2060}1", "\u{85}1",
            "1\u{FEFF}", "\u{FEFF}\u{FEFF}1", "\u{1}", "\u{8}1", "[\u{0}]", "[\u{B}1]", "[1\u{A0}]", ")]}'\n[]", ";",
            "1;",
        ])

    private static let noContainers = JSONGrammarRow.rows(
        .reject,
        [
            "[", "]", "{", "}", "[[", "]]", "[]]", "[[]", "[}", "{]", "[1", "[1,", "[1,]", "[,]", "[,1]", "[1,,2]",
            "[1 2]", "[1 true]", "[1;2]", "[1:2]", "[\"a\":1]", "[1,2", "[1,2]]", "[[1,2]", "[1}", "[1,[2,3]",
            "[[],", "[[],]", "[null,]", "[\"a\",]", "[\"a\"", "[\"a]", "[tru]", "[nul]", "[1,\n]", "[-]", "[+]", "[a]",
            "[''']", "[1,{]", "[{,}]", "[{]}", "[1]2", "(1)", "[1)", "{,}", "{:}", "{1}", "{1:1}", "{null:1}",
            "{true:1}", "{[]:1}", "{{}:1}", "{a:1}", "{'a':1}", #"{"a"}"#, #"{"a":}"#, #"{"a":1"#, #"{"a":1,"#,
            #"{"a":1,}"#, #"{"a":1,,"b":2}"#, #"{,"a":1}"#, #"{"a" 1}"#, #"{"a"=1}"#, #"{"a"=>1}"#, #"{"a"::1}"#,
            #"{"a":1:2}"#, #"{"a","b"}"#, #"{"a":1 "b":2}"#, #"{"a":1;"b":2}"#, #"{"a":1,"b"}"#, #"{"a":1,"b":}"#,
            #"{"a":1,2}"#, #"{"a":1]"#, #"{"a":1}}"#, #"{{"a":1}}"#, #"{"a":{"b":1}"#, #"{"a":[1}"#, #"{"a:1}"#,
            #"{a":1}"#, #"{"a":b}"#, #"{"a":'b'}"#, #"{"a":tru}"#, #"{"a":1}1"#, #"{"a":1}"a""#, #"{"a":/**/1}"#,
            "{\"a\":1,\n}", #"{"a":1,"b":2,}"#, #"[{"a":1,}]"#, #"{"a":[1,]}"#, #"{"a":}}"#, #""a":1"#, #"{"\q":1}"#,
            #"{"\ud800":1}"#, "{\"\t\":1}",
        ])

    private static let noNumbers = JSONGrammarRow.rows(
        .reject,
        [
            "-", "+", "+1", "+0", "--1", "-+1", "- 1", "01", "00", "-01", "-00", "007", "01.5", "0123", "1.", "-1.",
            "0.", ".5", "-.5", ".", "-.", "1..5", "1.5.5", "1.e5", "1.-5", "1.+5", "e5", "1e", "1E", "1e+", "1e-",
            "1e++5", "1e+-5", "1ee5", "1e5e5", "1e5.5", "1e.5", "1e 5", "1 e5", "1. 5", "1 .5", "1a", "0a", "-a",
            "0x10",
            "0X10", "0b1", "0o7", "1_000", "1,000.5", "1'000", "1f", "1d", "1L", "1n", "1%", "$1", "½", "①", "１", "٣",
            "1.٣", "∞", "-∞", "1/2", "1+1", "1-1", "0-", "0+", "0e", "0e+", "[01]", "[1.]", "[-]", "[.5]", "[+1]",
            "[1e]", "[0x1]", "[-Infinity]", "[NaN]", #"{"a":01}"#, #"{"a":1.}"#, #"{"a":-}"#, #"{"a":+1}"#,
        ])

    private static let noStrings = JSONGrammarRow.rows(
        .reject,
        [
            #"""#, #""a"#, #"a""#, #""\"#, #""\""#, #""a\""#, #""\\\""#, #""\a""#, #""\v""#, #""\0""#, #""\x41""#,
            #""\'""#, #""\ ""#, #""\N""#, #""\B""#, #""\é""#, #""\😀""#, #""\1""#, #""\e""#, #""\U0041""#, #""\u""#,
            #""\u0""#, #""\u00""#, #""\u004""#, #""\u004G""#, #""\uG041""#, #""\u 041""#, #""\u-041""#, #""\u+041""#,
            #""\u{41}""#, #""\u00４1""#, #""\u12"#, #""\u"#, "\"\n\"", "\"\r\"", "\"\t\"", "\"\u{0}\"", "\"\u{1}\"",
            "\"\u{8}\"", "\"\u{B}\"", "\"\u{C}\"", "\"\u{1B}\"", "\"\u{1F}\"", "\"a\nb\"", "\"\\\n\"", "\"0123456\n\"",
            "\"01234567\n\"", "\"012345678901234\u{1F}\"", "[\"a\nb\"]", "\"\"\"\"", "\"a\" \"b\"",
        ])

    // RFC 3629 §4, Unicode table 3-7: the first and last of each well-formed row, and the neighbours outside.
    private static let characters =
        JSONGrammarRow.strings(
            .accept,
            [
                [0xC2, 0x80], [0xDF, 0xBF], [0xE0, 0xA0, 0x80], [0xE0, 0xBF, 0xBF], [0xE1, 0x80, 0x80],
                [0xEC, 0xBF, 0xBF], [0xED, 0x80, 0x80], [0xED, 0x9F, 0xBF], [0xEE, 0x80, 0x80], [0xEF, 0xBF, 0xBF],
                [0xF0, 0x90, 0x80, 0x80], [0xF0, 0xBF, 0xBF, 0xBF], [0xF1, 0x80, 0x80, 0x80], [0xF3, 0xBF, 0xBF, 0xBF],
                [0xF4, 0x80, 0x80, 0x80], [0xF4, 0x8F, 0xBF, 0xBF],
            ])
        + JSONGrammarRow.strings(
            .reject,
            [
                [0x80], [0xBF], [0xC0], [0xC1], [0xC0, 0x80], [0xC0, 0xAF], [0xC1, 0xBF], [0xC2], [0xC2, 0x7F],
                [0xC2, 0xC0], [0xC2, 0x80, 0x80], [0xDF], [0xDF, 0x7F], [0xE0], [0xE0, 0xA0], [0xE0, 0x80, 0x80],
                [0xE0, 0x9F, 0xBF], [0xE0, 0xA0, 0x7F], [0xE0, 0xA0, 0xC0], [0xE1, 0x80], [0xE1, 0x7F, 0x80],
                [0xE1, 0xC0, 0x80], [0xED, 0xA0, 0x80], [0xED, 0xAF, 0xBF], [0xED, 0xB0, 0x80], [0xED, 0xBF, 0xBF],
                [0xED, 0xA0, 0xBD, 0xED, 0xB8, 0x80], [0xEF, 0xBF], [0xEF, 0xBF, 0xC0], [0xF0], [0xF0, 0x90],
                [0xF0, 0x90, 0x80], [0xF0, 0x80, 0x80, 0x80], [0xF0, 0x8F, 0xBF, 0xBF], [0xF0, 0x90, 0x80, 0x7F],
                [0xF1, 0x80, 0x80], [0xF3, 0xBF, 0xBF, 0xC0], [0xF4, 0x90, 0x80, 0x80], [0xF4, 0x8F, 0xBF],
                [0xF5, 0x80, 0x80, 0x80], [0xF7, 0xBF, 0xBF, 0xBF], [0xF8, 0x88, 0x80, 0x80, 0x80],
                [0xFC, 0x84, 0x80, 0x80, 0x80, 0x80], [0xFE], [0xFF], [0xFF, 0xFF], [0x61, 0x80, 0x62], [0xC3, 0x28],
                [0xE9], [0x61, 0xE9, 0x61], Array("01234567".utf8) + [0xFF], Array("0123456789é".utf8) + [0x80],
            ])

    private static func nested(_ depth: Int, _ start: String, _ end: String, _ inmost: String = "") -> String {
        String(repeating: start, count: depth) + inmost + String(repeating: end, count: depth)
    }

    // Texts for which the RFC leaves the choice to the parser (§4, §6, §8.1, §8.2, §9), or to the version of Unicode.
    private static let open = JSONGrammarRow.chosen(
        [
            // §8.1: a byte order mark is ignored.
            ("\u{FEFF}[1]", "[1]"), ("\u{FEFF}\"a\"", #""a""#), ("\u{FEFF}", nil), ("\u{FEFF} 1", "1"),
            // §8.2: unpaired surrogates are rejected.
            (#""\ud800""#, nil), (#""\udc00""#, nil), (#""\udbff""#, nil), (#""\udfff""#, nil),
            (#""\udc00\ud800""#, nil),
            (#""\ud800\ud800""#, nil), (#""\ud800a""#, nil), (#""\ud800\n""#, nil), (#""\ud800\u0041""#, nil),
            (#""a\udc00""#, nil), (#""\ud83d\ude00\ude00""#, nil), (#""\ud800é""#, nil), (#""\ud800\\dc00""#, nil),
            // §6: numbers above the range of Double are rejected, numbers below its smallest value are zero.
            ("1e309", nil), ("-1e309", nil), ("1e400", nil), ("1e999999999999", nil), ("[1e400]", nil),
            (#"{"a":-1e400}"#, nil), ("1.8e308", nil), ("1e-400", "0"), ("-1e-400", "0"), ("1e-999999999999", "0"),
            ("2e-324", "0"), ("0e999999999999", "0"), ("1.7976931348623158e308", "1.7976931348623157e+308"),
            ("0.1000000000000000055511151231257827", "0.1"), ("9007199254740993", "9007199254740993"),
            ("18446744073709551616", "1.8446744073709552e+19"), ("1.0", "1"), ("100e-2", "1"), ("-0", "0"),
            (String(repeating: "9", count: 400), nil), ("0." + String(repeating: "0", count: 400) + "1", "0"),
            ("1" + String(repeating: "0", count: 308), "1e+308"), ("1" + String(repeating: "0", count: 309), nil),
            // §4: the first of two equal names is used.
            (#"{"a":1,"a":2}"#, #"{"a":1}"#), (#"{"a":1,"\u0061":2}"#, #"{"a":1}"#), (#"{"":1,"":2}"#, #"{"":1}"#),
            (#"{"a":{"b":1},"a":{"c":2}}"#, #"{"a":{"b":1}}"#), (#"{"a":1,"b":2,"a":3}"#, #"{"a":1,"b":2}"#),
            ("{\"é\":1,\"e\u{301}\":2}", #"{"é":1}"#),
            // A NUL as the second byte means UTF-16.
            ("1\u{0}", "1"), ("12\u{0}", nil),
            // Unusual but valid characters.
            (#""\u0000""#, #""\u0000""#), (#""\uFFFF""#, "\"\u{FFFF}\""),
            (#""\/""#, #""/""#), (#""\ud83d\ude00""#, #""😀""#), (#""\uFEFF""#, "\"\u{FEFF}\""),
            // §9: up to 512 levels are parsed.
            (nested(512, "[", "]"), nested(512, "[", "]")), (nested(513, "[", "]"), nil),
            (nested(512, #"{"a":"#, "}", "1"), nested(512, #"{"a":"#, "}", "1")),
            (nested(513, #"{"a":"#, "}", "1"), nil),
            (nested(256, #"[{"a":"#, "}]", "1"), nested(256, #"[{"a":"#, "}]", "1")),
            (nested(256, #"[{"a":"#, "}]", "[]"), nil), (String(repeating: "[", count: 100_000), nil),
            (String(repeating: #"{"a":"#, count: 100_000), nil),
        ] as [(String, String?)])

    private static let wide: [JSONGrammarRow] = [
        wide("[1]", "[1]"), wide(#"{"a":"é😀"}"#, #"{"a":"é😀"}"#), wide("[1,]", nil), wide("7", "7"),
    ].flatMap { $0 }

    /// Rows of a text in UTF-16 and UTF-32, with and without byte order marks.
    private static func wide(_ text: String, _ value: String?) -> [JSONGrammarRow] {
        let encodings: [(String.Encoding, mark: [UInt8])] = [
            (.utf16LittleEndian, [0xFF, 0xFE]), (.utf16BigEndian, [0xFE, 0xFF]),
            (.utf32LittleEndian, [0xFF, 0xFE, 0, 0]), (.utf32BigEndian, [0, 0, 0xFE, 0xFF]),
        ]
        return encodings.flatMap { encoding, mark in
            let bytes = text.data(using: encoding).map { [UInt8]($0) } ?? []
            return [bytes, mark + bytes].map { JSONGrammarRow(bytes: $0, verdict: .chosen(value)) }
        }
    }

    static let rows: [JSONGrammarRow] = [
        values, numbers, strings, noValues, noContainers, noNumbers, noStrings, characters, open, wide,
    ].flatMap { $0 }

    @Test func tableHasManyRows() {
        #expect(Self.rows.count >= 250)
        #expect(
            Set(Self.rows.filter { if case .chosen = $0.verdict { false } else { true } }.map(\.bytes)).count >= 250)
    }

    /// Returns the value of a text, or nil for `dataCorrupted`.
    private static func read(_ read: () throws -> JSONValue) throws -> JSONValue? {
        do {
            return try read()
        } catch DecodingError.dataCorrupted(let context) {
            #expect(context.underlyingError is JSON.Fault)
            return nil
        }
    }

    @Test(arguments: rows)
    func parserAgreesWithTheTable(row: JSONGrammarRow) throws {
        let value = try Self.read { try JSONValue(parsing: row.bytes) }
        switch row.verdict {
        case .accept: #expect(value != nil)
        case .reject: #expect(value == nil)
        case .chosen(let description): #expect(value?.description == description)
        }
        if case .chosen = row.verdict { return }
        #expect(JSONGrammar.accepts(row.bytes) == (row.verdict == .accept))
        // The value is the same as an element, as a member, and from bytes that are not contiguous.
        for (start, end) in [("[", "]"), (#"{"a":"#, "}"), ("[0,", " ,\"b\"]")] where row.verdict == .accept {
            let text = Array(start.utf8) + row.bytes + Array(end.utf8)
            let whole = try JSON().decode(JSONValue.self, from: text)
            #expect((whole["a"] ?? whole[1] ?? whole[0]) == value)
        }
        #expect(try Self.read { try JSON().decode(from: row.bytes.lazy.map { $0 }) } == value)
    }

    @Test("Invalid JSON is rejected by types that decode nothing", arguments: rows.filter { $0.verdict == .reject })
    func invalidJSONIsRejectedByTypesThatDecodeNothing(row: JSONGrammarRow) {
        struct Blank: Decodable {}
        let text = Array(#"{"a":"#.utf8) + row.bytes
        for text in [text, text + Array("}".utf8)] where !JSONGrammar.accepts(text) {
            #expect(throws: DecodingError.self) { try JSON().decode(Blank.self, from: text) }
        }
    }

    static let sample = #"""
        {"é": [1, -2.5e+3, true, false, null, "a\n\u00e9\ud83d\ude00/😀"], "b": {"c": [], "d": {}, "e": [[0.1]]}}
        """#

    @Test func everyTruncationIsRejected() throws {
        let bytes = Array(Self.sample.utf8)
        #expect(throws: Never.self) { try JSONValue(parsing: bytes) }
        for count in 0..<bytes.count {
            let error = #expect(throws: DecodingError.self) { try JSONValue(parsing: bytes[..<count]) }
            guard case .dataCorrupted(let context)? = error, let fault = context.underlyingError as? JSON.Fault else {
                Issue.record("\(count) bytes: \(String(describing: error))")
                continue
            }
            #expect(fault.offset <= count && context.codingPath.isEmpty)
        }
    }

    @Test func singleByteChangesAgreeWithTheReferenceGrammar() {
        let bytes = Array(#"{"a\n":[-1.5e2,true,"é"]}"#.utf8)
        for place in bytes.indices {
            for byte in Array("\0\t \"+,-.0:[\\]e{}u".utf8) + [0x80, 0xC3, 0xED, 0xFF] {
                var text = bytes
                text[place] = byte
                #expect(((try? JSONValue(parsing: text)) != nil) == JSONGrammar.accepts(text), "\(text)")
            }
        }
    }

    @Test func controlCharactersAreRejected() {
        for byte in 0..<0x20 as Range<UInt8> {
            let isBlank = [0x09, 0x0A, 0x0D].contains(byte)
            #expect(((try? JSONValue(parsing: [0x20, byte, 0x31])) != nil) == isBlank)
            #expect(((try? JSONValue(parsing: [0x5B, 0x31, byte, 0x5D])) != nil) == isBlank)
            for plain in 0...16 {
                let text = [0x22] + [UInt8](repeating: 0x61, count: plain) + [byte, 0x22]
                #expect((try? JSONValue(parsing: text)) == nil)
            }
        }
    }
}
