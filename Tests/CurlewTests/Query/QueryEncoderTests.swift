// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing

@testable import Curlew

@Suite("Query encoding as in AFNetworking", .timeLimit(.minutes(5)))
struct QueryEncoderTests {
    /// A value and its encoding by the default styles.
    struct Row: Sendable, CustomTestStringConvertible {
        let row: String
        let value: Request.Query
        let expected: String

        init(_ row: String, _ value: Request.Query, _ expected: String) {
            (self.row, self.value, self.expected) = (row, value, expected)
        }

        var testDescription: String { "\(row): \(expected)" }
    }

    private enum Colour: String, Codable, Hashable, Sendable { case red, green }
    private enum Level: Int, Codable, Sendable { case high = 7 }

    static let rows: [Row] = [
        Row("RQ-04", [:], ""),
        Row("RQ-04", ["a": 1, "b": "two"], "a=1&b=two"),
        Row("RQ-05", ["a b": "c&d=e"], "a%20b=c%26d%3De"),
        Row("RQ-05", ["ключ": "значение"], "%D0%BA%D0%BB%D1%8E%D1%87=%D0%B7%D0%BD%D0%B0%D1%87%D0%B5%D0%BD%D0%B8%D0%B5"),
        Row("RQ-05", ["": "x", "b": ""], "=x&b="),
        Row("RQ-06", ["a": nil, "b": "1"], "a&b=1"),
        Row("RQ-06", ["d": ["a": nil, "b": 1] as [String: Int?]], "d%5Ba%5D&d%5Bb%5D=1"),
        Row("RQ-06", ["l": [nil, 1] as [Int?]], "l%5B%5D&l%5B%5D=1"),
        Row("RQ-07", ["b": 2, "a": 1, "B": 3, "10": 4, "9": 5], "10=4&9=5&B=3&a=1&b=2"),
        Row("RQ-07", ["d": [10: "x", 9: "y"]], "d%5B10%5D=x&d%5B9%5D=y"),
        Row("RQ-07", ["d": [Colour.red: 1, .green: 2]], "d%5Bgreen%5D=2&d%5Bred%5D=1"),
        Row("RQ-08", ["o": ["i": "v"]], "o%5Bi%5D=v"),
        Row("RQ-08", ["o": ["i": ["k": "v", "j": "u"]]], "o%5Bi%5D%5Bj%5D=u&o%5Bi%5D%5Bk%5D=v"),
        Row("RQ-08", ["o": ["a": 1, "b": "x"] as Request.Query], "o%5Ba%5D=1&o%5Bb%5D=x"),
        Row("RQ-09", ["k": ["b", "a", "c"]], "k%5B%5D=b&k%5B%5D=a&k%5B%5D=c"),
        Row("RQ-09", ["k": [[1, 2], [3]]], "k%5B%5D%5B%5D=1&k%5B%5D%5B%5D=2&k%5B%5D%5B%5D=3"),
        Row("RQ-10", ["k": Set([10, 9, 1])], "k=1&k=10&k=9"),
        Row("RQ-10", ["k": Set(["ä", "z", "~"])], "k=z&k=~&k=%C3%A4"),
        Row("RQ-10", ["k": Set([["a": 2], ["a": 1]])], "k%5Ba%5D=1&k%5Ba%5D=2"),
        Row("RQ-10", ["k": [Set([2, 1])]], "k%5B%5D=1&k%5B%5D=2"),
        Row("RQ-10", ["k": Set([1]) as Set<Int>?], "k=1"),
        Row("RQ-11", ["k": [["b": 2, "a": 1], ["a": 3]]], "k%5B%5D%5Ba%5D=1&k%5B%5D%5Bb%5D=2&k%5B%5D%5Ba%5D=3"),
        Row("RQ-13", ["t": true, "f": false], "f=0&t=1"),
        Row("RQ-13", ["i": Int8.min, "j": UInt64.max], "i=-128&j=18446744073709551615"),
        Row("RQ-13", ["i": Int128.min], "i=-170141183460469231731687303715884105728"),
        Row("RQ-13", ["d": 1.5, "e": -0.25 as Float], "d=1.5&e=-0.25"),
        Row("RQ-13", ["d": Date(timeIntervalSinceReferenceDate: 0.9)], "d=2001-01-01%2000%3A00%3A00%20%2B0000"),
        Row("RQ-13", ["c": Colour.red, "l": Level.high], "c=red&l=7"),
        Row("RQ-13", ["n": Decimal(string: "1234567890123456789012345.50")], "n=1234567890123456789012345.5"),
        Row("RQ-13", ["u": URL(string: "http://h/a?b")], "u=http%3A//h/a?b"),
        Row(
            "RQ-13", ["u": UUID(uuidString: "e621e1f8-c36c-495a-93fc-0c247a3e6e5f")],
            "u=E621E1F8-C36C-495A-93FC-0C247A3E6E5F"),
        Row("RQ-13", ["d": Data([0xFB, 0xFF, 0xFE, 0])], "d=%2B//%2BAA%3D%3D"),
        Row("RQ-14", ["a": [String: Int](), "b": [Int](), "c": Set<Int>(), "d": 1], "d=1"),
        Row("RQ-14", ["a": ["b": [Int]()], "c": [[Int]()]], ""),
    ]

    @Test("RQ-04 to RQ-14", arguments: rows) func rowsOfTheTableAreEncoded(_ row: Row) throws {
        #expect(try Request.QueryEncoder().encode(row.value) == row.expected)
        #expect(try row.value.text(Request.QueryEncoder()) == row.expected)
        // The value as the only member of another value, which uses another container.
        let entries = row.expected.isEmpty ? [] : row.expected.split(separator: "&", omittingEmptySubsequences: false)
        #expect(try Request.QueryEncoder().encode(["q": row.value]).split(separator: "&").count == entries.count)
    }

    @Test("RQ-02: unescaped and escaped characters, byte by byte") func charactersAreEscapedByteByByte() {
        let kept = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/?"
        #expect(Request.QueryEncoder.escape(kept) == kept)
        for byte in UInt8(0)..<128 {
            let character = String(Unicode.Scalar(byte))
            let hex = String(byte, radix: 16, uppercase: true)
            let escape = "%" + (hex.count == 1 ? "0" : "") + hex
            #expect(Request.QueryEncoder.escape(character) == (kept.contains(character) ? character : escape))
        }
        #expect(Request.QueryEncoder.escape("") == "")
        #expect(Request.QueryEncoder.escape("a b+c", spaces: .plus) == "a+b%2Bc")
    }

    @Test("RQ-03: long texts and composed characters stay whole", arguments: 48...52) func longTextsAreEscapedWhole(
        _ length: Int
    ) {
        let text = String(repeating: "a", count: length) + "👴🏻"
        #expect(
            Request.QueryEncoder.escape(text) == String(repeating: "a", count: length) + "%F0%9F%91%B4%F0%9F%8F%BB")
    }

    @Test(
        "RQ-13: numbers have no exponent, and whole ones no fraction",
        arguments: [
            (1.0, "1"), (48.0, "48"), (1e15, "1000000000000000"), (1e16, "10000000000000000"),
            (1e20, "100000000000000000000"), (-1.2345678901234567e19, "-12345678901234567000"), (0.1, "0.1"),
            (1e-5, "0.00001"),
            (-1.5e-7, "-0.00000015"), (.infinity, "inf"), (-.infinity, "-inf"), (.nan, "nan"), (-0.0, "-0"),
            (123e-10, "0.0000000123"), (10.05, "10.05"), (0, "0"),
        ])
    func numbersHaveNoExponent(_ number: Double, _ expected: String) throws {
        let text = try Request.QueryEncoder().encode(["n": number])
        #expect(text == "n=" + expected)
        guard number.isFinite else { return }
        #expect(Double(text.dropFirst(2)) == number)
    }

    @Test func randomNumbersKeepTheirValue() throws {
        var chance = SeededChance(7)
        for _ in 0..<2000 {
            let number = Double(bitPattern: chance.next())
            guard number.isFinite else { continue }
            let text = try Request.QueryEncoder().encode(["n": number]).dropFirst(2)
            #expect(Double(text) == number && !text.contains("e") && !text.hasSuffix(".0"), "\(number)")
        }
    }

    @Test("RQ-13: the other widths of floating-point numbers, and decimals")
    func floatingPointWidthsAndDecimalsAreEncoded() throws {
        struct Numbers: Encodable {
            var a: Float = 48, b: Float = 1e10, c: Float = 0.1, d: Float = 16_777_216, e = Decimal(48), f = [1.0, 2.5]
        }
        #expect(
            try Request.QueryEncoder(arrays: .repeated).encode(Numbers())
                == "a=48&b=10000000000&c=0.1&d=16777216&e=48&f=1&f=2.5")
    }

    @Test("RQ-13: every width of integer") func integersOfEveryWidthAreEncoded() throws {
        struct Integers: Encodable {
            var a = Int8.max, b = Int16.max, c = Int32.max, d = Int64.max, e = Int.min
            var f = UInt8.max, g = UInt16.max, h = UInt32.max, i = UInt64.max, j = UInt.max, k = UInt128.max
        }
        #expect(
            try Request.QueryEncoder().encode(Integers())
                == "a=127&b=32767&c=2147483647&d=9223372036854775807&e=-9223372036854775808&f=255&g=65535&h=4294967295"
                + "&i=18446744073709551615&j=18446744073709551615&k=340282366920938463463374607431768211455")
        #expect(
            try Request.QueryEncoder().encode(["l": [UInt128.max], "m": [1]])
                == "l%5B%5D=340282366920938463463374607431768211455&m%5B%5D=1")
        #expect(try Request.QueryEncoder(arrays: .repeated).encode(["l": [Int128.max]]).hasSuffix("=\(Int128.max)"))
    }

    @Test("Random values with brackets are decoded again", arguments: 0..<200 as Range<UInt64>)
    func randomValuesAreDecodedAgain(_ seed: UInt64) throws {
        var chance = SeededChance(seed)
        let flat = QueryValue.random(&chance, depth: 4, listsOfTextsOnly: true)
        #expect(QueryReader.value(of: try Request.QueryEncoder().encode(flat)) == flat)
        let deep = QueryValue.random(&chance, depth: 5, listsOfTextsOnly: false)
        #expect(QueryReader.value(of: try Request.QueryEncoder(arrays: .indexed).encode(deep)) == deep)
    }
}
