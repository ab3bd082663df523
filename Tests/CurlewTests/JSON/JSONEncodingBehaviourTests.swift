// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing

@testable import Curlew

/// The behaviour of Curlew's encoder, which is also that of Foundation's encoder unless a comment says otherwise.
@Suite("JSON: behaviour of the encoder")
struct JSONEncodingBehaviourTests {
    /// The options of both encoders.
    typealias Configure = (inout JSON.EncodingOptions, JSONEncoder) -> Void

    enum Key: String, CodingKey {
        case a, b, c
    }

    /// A value that a closure encodes.
    struct Sample: Encodable {
        let body: (any Encoder) throws -> Void

        init(_ body: @escaping (any Encoder) throws -> Void) { self.body = body }

        func encode(to encoder: any Encoder) throws { try body(encoder) }
    }

    /// Returns the texts of Curlew's and of Foundation's encoder, with sorted keys by default.
    private static func both(_ value: some Encodable, _ configure: Configure = { _, _ in }) throws -> [String] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        let json = JSON { options, _ in
            options.outputFormatting = .sortedKeys
            configure(&options, encoder)
        }
        return [try json.encode(value), try encoder.encode(value)].map { String(decoding: $0, as: UTF8.self) }
    }

    private static func format(_ formatting: JSONEncoder.OutputFormatting) -> Configure {
        { ($0.outputFormatting, $1.outputFormatting) = (formatting, formatting) }
    }

    /// Returns the paths of the `EncodingError`s of both encoders.
    private static func paths(_ value: some Encodable) throws -> [[String]] {
        try [{ try JSON().encode(value) }, { try JSONEncoder().encode(value) }].map { (encode: () throws -> Data) in
            let error = try #require(#expect(throws: EncodingError.self) { try encode() })
            guard case .invalidValue(_, let context) = error else { throw error }
            return context.codingPath.map(\.stringValue)
        }
    }

    @Test func numbersAreEncodedLikeFoundation() throws {
        let values: [(Double, String)] = [
            (1, "1"), (-0.0, "-0"), (0, "0"), (1e15, "1000000000000000"), (1e16, "1e+16"), (1e-5, "1e-05"),
            (0.1, "0.1"),
            (-2.5, "-2.5"), (1e300, "1e+300"), (.leastNonzeroMagnitude, "5e-324"), (0.0001, "0.0001"),
        ]
        for (value, text) in values { #expect(try Self.both([value]) == ["[\(text)]", "[\(text)]"]) }
        #expect(try Self.both([Float(0.1), 3]) == ["[0.1,3]", "[0.1,3]"])
        #expect(try Self.both([Int128.min]) == ["[\(Int128.min)]", "[\(Int128.min)]"])
        #expect(try Self.both([UInt128.max]) == ["[\(UInt128.max)]", "[\(UInt128.max)]"])
        #expect(
            try Self.both([Decimal(string: "12345678901234567890.5")]) == [
                "[12345678901234567890.5]", "[12345678901234567890.5]",
            ])
    }

    @Test func nonConformingFloats() throws {
        for value in [Double.nan, .infinity, -.infinity] {
            for path in try Self.paths(["a": [1, value]]) { #expect(path == ["a", "Index 1"]) }
            for path in try Self.paths([["a": Float(value)]]) { #expect(path == ["Index 0", "a"]) }
        }
        let texts = try Self.both([Double.nan, .infinity, -.infinity]) {
            let strategy = JSONEncoder.NonConformingFloatEncodingStrategy.convertToString(
                positiveInfinity: "inf", negativeInfinity: "-inf", nan: "nan")
            ($0.nonConformingFloatEncodingStrategy, $1.nonConformingFloatEncodingStrategy) = (strategy, strategy)
        }
        for text in texts { #expect(text == #"["nan","inf","-inf"]"#) }
    }

    @Test func stringsAreEscapedLikeFoundation() throws {
        let value = ["a/b", "\"\\", "\u{8}\u{C}\n\r\t", "\u{0}\u{1F}\u{7F}", "\u{2028}é😀", "e\u{301}"]
        let rest = #","\"\\","\b\f\n\r\t","\u0000\u001f"# + "\u{7F}\",\"\u{2028}é😀\",\"e\u{301}\"]"
        for text in try Self.both(value) { #expect(text.utf8.elementsEqual((#"["a\/b""# + rest).utf8)) }
        for text in try Self.both(value, Self.format([.withoutEscapingSlashes])) {
            #expect(text.utf8.elementsEqual((#"["a/b""# + rest).utf8))
        }
        for text in try Self.both(["a/\n": "/"]) { #expect(text == #"{"a\/\n":"\/"}"#) }
    }

    @Test func prettyPrintingMatchesFoundation() throws {
        let value: [String: [[String: [Int]]]] = ["b": [], "a": [["x": [1, 2], "w": []], [:]]]
        let expected = """
            {
              "a" : [
                {
                  "w" : [

                  ],
                  "x" : [
                    1,
                    2
                  ]
                },
                {

                }
              ],
              "b" : [

              ]
            }
            """
        for text in try Self.both(value, Self.format([.prettyPrinted, .sortedKeys])) { #expect(text == expected) }
        for text in try Self.both([Int](), Self.format([.prettyPrinted])) { #expect(text == "[\n\n]") }
        for text in try Self.both("x", Self.format([.prettyPrinted])) { #expect(text == #""x""#) }
    }

    @Test func sortedKeysFollowTheirBytes() throws {
        let value = Dictionary(uniqueKeysWithValues: ["é", "z", "b", "a9", "a10", "a", "B", ""].map { ($0, 0) })
        for text in try Self.both(value) { #expect(text == #"{"":0,"B":0,"a":0,"a10":0,"a9":0,"b":0,"z":0,"é":0}"#) }
    }

    @Test("Members keep the order in which they are encoded (only Curlew)")
    func membersKeepTheirOrder() throws {
        let value = Sample { encoder in
            var container = encoder.container(keyedBy: Key.self)
            for key in [Key.c, .a, .b] { try container.encode(1, forKey: key) }
        }
        #expect(String(decoding: try JSON().encode(value), as: UTF8.self) == #"{"c":1,"a":1,"b":1}"#)
    }

    @Test func lastOfDuplicateNamesIsEncoded() throws {
        let value = Sample { encoder in
            var container = encoder.container(keyedBy: Key.self)
            try container.encode([1, 2], forKey: .a)
            try container.encode("b", forKey: .b)
            try container.encode("last", forKey: .a)
        }
        for text in try Self.both([value]) { #expect(text == #"[{"a":"last","b":"b"}]"#) }
        #expect(String(decoding: try JSON().encode(value), as: UTF8.self) == #"{"a":"last","b":"b"}"#)
        let same = Sample { encoder in
            enum Snake: String, CodingKey { case oneTwo, one_two }
            var container = encoder.container(keyedBy: Snake.self)
            try container.encode(1, forKey: .oneTwo)
            try container.encode(2, forKey: .one_two)
        }
        let texts = try Self.both(same) {
            ($0.keyEncodingStrategy, $1.keyEncodingStrategy) = (.convertToSnakeCase, .convertToSnakeCase)
        }
        for text in texts { #expect(text == #"{"one_two":2}"#) }
    }

    @Test func valuesThatEncodeNothingBecomeEmptyObjects() throws {
        let nothing = Sample { _ in }
        for path in try Self.paths(nothing) { #expect(path.isEmpty) }
        for text in try Self.both([nothing]) { #expect(text == "[{}]") }
        for text in try Self.both(["a": nothing]) { #expect(text == #"{"a":{}}"#) }
        for text in try Self.both(Sample { _ = $0.unkeyedContainer() }) { #expect(text == "[]") }
        for text in try Self.both(Sample { _ = $0.container(keyedBy: Key.self) }) { #expect(text == "{}") }
        for text in try Self.both(Int?.none) { #expect(text == "null") }
    }

    @Test func interleavedNestedContainersAreEncoded() throws {
        let value = Sample { encoder in
            var container = encoder.container(keyedBy: Key.self)
            var object = container.nestedContainer(keyedBy: Key.self, forKey: .a)
            var list = container.nestedUnkeyedContainer(forKey: .b)
            try container.encode(1, forKey: .c)
            try list.encode("x")
            try object.encode(2, forKey: .c)
            var inner = list.nestedUnkeyedContainer()
            var member = list.nestedContainer(keyedBy: Key.self)
            try list.encode(3)
            try member.encode([4], forKey: .a)
            try inner.encode(5)
            try object.encode([6: "six"], forKey: .a)
            #expect(list.count == 4 && inner.count == 1)
        }
        let expected = #"{"a":{"a":{"6":"six"},"c":2},"b":["x",[5],{"a":[4]},3],"c":1}"#
        for text in try Self.both(value) { #expect(text == expected) }
        for text in try Self.both([[value]]) { #expect(text == "[[\(expected)]]") }
    }

    class Ancestor: Encodable {
        var a = 1
    }

    final class Derived: Ancestor {
        override func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: Key.self)
            try container.encode(2, forKey: .b)
            try super.encode(to: container.superEncoder())
        }
    }

    final class Flat: Ancestor {
        override func encode(to encoder: any Encoder) throws {
            try super.encode(to: encoder)
            var container = encoder.container(keyedBy: Key.self)
            try container.encode(2, forKey: .b)
        }
    }

    @Test func superEncodersAndInheritanceAreEncoded() throws {
        for text in try Self.both([Derived()]) { #expect(text == #"[{"b":2,"super":{"a":1}}]"#) }
        for text in try Self.both([Flat()]) { #expect(text == #"[{"a":1,"b":2}]"#) }
        let value = Sample { encoder in
            var list = encoder.unkeyedContainer()
            let (one, two) = (list.superEncoder(), list.superEncoder())
            try "two".encode(to: two)
            try [1].encode(to: one)
            try list.encode(3)
        }
        for text in try Self.both(value) { #expect(text == #"[[1],"two",3]"#) }
    }

    static let snakes = [
        ("myURL", "my_url"), ("URLSession", "u_rl_session"), ("oneTWOThree", "one_two_three"), ("one2", "one2"),
        ("iPhone15Pro", "i_phone15_pro"), ("_oneTwo", "_one_two"), ("oneTwo", "one_two"), ("one", "one"), ("", ""),
        ("oneTwoThree", "one_two_three"), ("aB", "a_b"), ("one_two", "one_two"), ("myURLParser", "my_url_parser"),
    ]

    @Test(arguments: snakes)
    func namesAreConvertedToSnakeCase(property: String, name: String) throws {
        let value = Sample { encoder in
            var container = encoder.container(keyedBy: JSONBehaviourTests.AnyKey.self)
            try container.encode([property: 1], forKey: .init(stringValue: property))
        }
        let texts = try Self.both(value) {
            ($0.keyEncodingStrategy, $1.keyEncodingStrategy) = (.convertToSnakeCase, .convertToSnakeCase)
        }
        // Keys of dictionaries are not converted.
        for text in texts { #expect(text == #"{"\#(name)":{"\#(property)":1}}"#) }
    }

    @Test func customKeyEncodingStrategyGetsThePath() throws {
        let value = [
            Sample { encoder in
                var container = encoder.container(keyedBy: Key.self)
                try container.encode(1, forKey: .a)
                var nested = container.nestedContainer(keyedBy: Key.self, forKey: .b)
                try nested.encode(2, forKey: .c)
            }
        ]
        let texts = try Self.both(value) { options, encoder in
            let strategy = JSONEncoder.KeyEncodingStrategy.custom { path in
                JSONBehaviourTests.AnyKey(
                    stringValue: path.map { $0.intValue.map { "\($0)" } ?? $0.stringValue }.joined())
            }
            (options.keyEncodingStrategy, encoder.keyEncodingStrategy) = (strategy, strategy)
        }
        #expect(texts == [#"[{"0a":1,"0b":{"0bc":2}}]"#, #"[{"0a":1,"0b":{"0bc":2}}]"#])
    }

    @Test func dictionariesAreEncodedLikeFoundation() throws {
        for text in try Self.both([1: "a", -2: "b"]) { #expect(text == #"{"-2":"b","1":"a"}"#) }
        for text in try Self.both([JSONBehaviourTests.Color.red: 1]) { #expect(text == #"{"red":1}"#) }
        for text in try Self.both([JSONBehaviourTests.Plain.red: 1]) { #expect(text == #"["red",1]"#) }
        for text in try Self.both([UInt8(1): true]) { #expect(text == "[1,true]") }
    }

    static let dates: [(JSONEncoder.DateEncodingStrategy, Double, String)] = [
        (.deferredToDate, 978_307_201.5, "1.5"), (.secondsSince1970, 1.5, "1.5"), (.millisecondsSince1970, 1.5, "1500"),
        (.iso8601, 1_795_545_000, #""2026-11-24T18:30:00Z""#), (.iso8601, 1_795_545_000.75, #""2026-11-24T18:30:00Z""#),
        (.iso8601, -0.5, #""1969-12-31T23:59:59Z""#), (.iso8601, 253_402_300_800, #""10000-01-01T00:00:00Z""#),
        (.custom { try Int($0.timeIntervalSince1970).encode(to: $1) }, 8, "8"), (.custom { _, _ in }, 8, "{}"),
    ]

    @Test(arguments: dates)
    func dateEncodingStrategiesAreApplied(strategy: JSONEncoder.DateEncodingStrategy, seconds: Double, expected: String)
        throws
    {
        let texts = try Self.both([Date(timeIntervalSince1970: seconds)]) {
            ($0.dateEncodingStrategy, $1.dateEncodingStrategy) = (strategy, strategy)
        }
        #expect(texts == ["[\(expected)]", "[\(expected)]"])
    }

    @Test func dataAndURLsAreEncodedLikeFoundation() throws {
        for text in try Self.both([Data([1, 2]), Data()]) { #expect(text == #"["AQI=",""]"#) }
        let deferred = try Self.both([Data([1, 2])]) {
            ($0.dataEncodingStrategy, $1.dataEncodingStrategy) = (.deferredToData, .deferredToData)
        }
        for text in deferred { #expect(text == "[[1,2]]") }
        let custom = try Self.both([Data([1, 2])]) {
            let strategy = JSONEncoder.DataEncodingStrategy.custom { try $0.count.encode(to: $1) }
            ($0.dataEncodingStrategy, $1.dataEncodingStrategy) = (strategy, strategy)
        }
        for text in custom { #expect(text == "[2]") }
        for text in try Self.both([URL(string: "https://a.b/c?d=1")]) { #expect(text == #"["https:\/\/a.b\/c?d=1"]"#) }
    }

    @Test func userInfoAndPathsReachTheEncoder() throws {
        let key = try #require(CodingUserInfoKey(rawValue: "k"))
        let value = Sample { encoder in
            var container = encoder.container(keyedBy: Key.self)
            try container.encode(
                [
                    Sample { inner in
                        let path = inner.codingPath.map { $0.intValue.map { "\($0)" } ?? $0.stringValue }
                        try "\(inner.userInfo[key] ?? "") \(path.joined(separator: "."))".encode(to: inner)
                    }
                ], forKey: .b)
        }
        let texts = try Self.both(["x": value]) {
            $0.userInfo[key] = "info"
            $1.userInfo[key] = "info"
        }
        for text in texts { #expect(text == #"{"x":{"b":["info x.b.0"]}}"#) }
    }

    /// Nested arrays.
    struct Tower: Encodable {
        let levels: Int

        func encode(to encoder: any Encoder) throws {
            var container = encoder.unkeyedContainer()
            if levels > 1 { try container.encode(Tower(levels: levels - 1)) }
        }
    }

    @Test("512 levels are encoded, 513 are an error (only Curlew)")
    func nestingIsLimited() throws {
        let data = try JSON().encode(Tower(levels: 512))
        #expect(data.count == 1024)
        #expect(throws: Never.self) { try JSONValue(parsing: data) }
        #expect(throws: EncodingError.self) { try JSON().encode(Tower(levels: 513)) }
    }
}
