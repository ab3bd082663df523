// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Testing

@testable import Curlew

/// Numbers, compared bit by bit with those of the C library and of the standard library.
@Suite("JSON: numbers", .timeLimit(.minutes(5)))
struct JSONNumberTests {
    private static let json = JSON()

    private static func list(_ texts: [String]) -> [UInt8] {
        Array("[\(texts.joined(separator: ","))]".utf8)
    }

    /// Checks that each text decodes to the result of `strtod`.
    private static func compare(_ texts: [String]) throws {
        // Numbers out of range throw, which another test checks.
        let pairs = texts.map { ($0, strtod($0, nil)) }.filter(\.1.isFinite)
        let values = try json.decode([Double].self, from: list(pairs.map(\.0)))
        guard values.count == pairs.count else {
            Issue.record("\(values.count) values of \(pairs.count)")
            return
        }
        for (value, (text, expected)) in zip(values, pairs) where value.bitPattern != expected.bitPattern {
            Issue.record("\(text): \(value) rather than \(expected)")
        }
    }

    /// Checks that each text decodes to the result of `strtof`.
    private static func compareFloats(_ texts: [String]) throws {
        let pairs = texts.map { ($0, strtof($0, nil)) }.filter(\.1.isFinite)
        let values = try json.decode([Float].self, from: list(pairs.map(\.0)))
        guard values.count == pairs.count else {
            Issue.record("\(values.count) values of \(pairs.count)")
            return
        }
        for (value, (text, expected)) in zip(values, pairs) where value.bitPattern != expected.bitPattern {
            Issue.record("\(text): \(value) rather than \(expected)")
        }
    }

    private static func finite(_ chance: inout SeededChance) -> Double {
        while true {
            let value = Double(bitPattern: chance.next())
            if value.isFinite { return value }
        }
    }

    /// Returns a random number of 1 to 25 digits, with or without a decimal point and an exponent.
    private static func decimal(_ chance: inout SeededChance) -> String {
        let count = Int(chance.next() % 25) + 1
        var digits = (0..<count).map { _ in UInt8(ascii: "0") + UInt8(chance.next() % 10) }
        if digits[0] == UInt8(ascii: "0") { digits[0] = UInt8(ascii: "1") + UInt8(chance.next() % 9) }
        var text = String(decoding: digits, as: UTF8.self)
        switch chance.next() % 4 {
        case 0 where count > 1:
            let place = Int(chance.next() % UInt64(count - 1)) + 1
            text = "\(text.prefix(place)).\(text.dropFirst(place))"
        case 1: text = "0.\(String(repeating: "0", count: Int(chance.next() % 8)))\(text)"
        default: break
        }
        if chance.next() % 4 > 0 {
            let exponent = Int(chance.next() % 641) - 330
            text += (chance.next() % 2 == 0 ? "e" : "E") + (exponent >= 0 && chance.next() % 2 == 0 ? "+" : "")
            text += "\(exponent)"
        }
        return chance.next() % 2 == 0 ? "-\(text)" : text
    }

    @Test("Random bit patterns, as written by the standard library", arguments: 0..<4 as Range<UInt64>)
    func randomBitPatternsAreReadExactly(seed: UInt64) throws {
        var chance = SeededChance(seed)
        try Self.compare((0..<20_000).map { _ in "\(Self.finite(&chance))" })
    }

    @Test("Random digits and exponents", arguments: 4..<8 as Range<UInt64>)
    func randomDecimalsAreReadExactly(seed: UInt64) throws {
        var chance = SeededChance(seed)
        try Self.compare((0..<20_000).map { _ in Self.decimal(&chance) })
    }

    @Test("Random numbers with few digits, like prices and coordinates", arguments: 8..<10 as Range<UInt64>)
    func numbersWithFewDigitsAreReadExactly(seed: UInt64) throws {
        var chance = SeededChance(seed)
        let texts = (0..<10_000).map { _ in
            let (whole, digits) = (chance.next() % 100_000, String(chance.next() % 1_000_000_000))
            return "\(whole).\(digits.prefix(Int(chance.next() % 9) + 1))"
        }
        try Self.compare(texts)
        try Self.compareFloats(texts)
        // The number is the end of the text, or is followed by other text.
        for text in texts.prefix(500) {
            #expect(try Self.json.decode(Double.self, from: text.utf8) == strtod(text, nil))
            #expect(
                try Self.json.decode([String: Double].self, from: "{\"a\":\(text)}".utf8) == ["a": strtod(text, nil)])
        }
    }

    /// Returns the exact digits of the midpoint between a number and the next one, followed by `more`.
    private static func middle(_ value: Double, _ more: String) -> String? {
        let next = value.nextUp
        guard value.isFinite, next.isFinite, value > 1e-5, value < 1e18 else { return nil }
        // A midpoint has one bit more than a `Double`: it is an integer of 128 bits over a power of two.
        let exponent = Int(value.exponent) - 53
        let size = UInt128(value.significandBitPattern | 1 << 52) * 2 + 1
        if exponent >= 0 { return "\(size << UInt128(exponent))" + (more.isEmpty ? "" : ".\(more)") }
        // Divided by two, digit by digit.
        var digits = Array("\(size)".utf8).map { $0 - 0x30 }
        var point = digits.count
        for _ in 0..<(-exponent) {
            var rest: UInt8 = 0
            for place in digits.indices {
                let digit = rest * 10 + digits[place]
                digits[place] = digit / 2
                rest = digit % 2
            }
            if rest > 0 { digits.append(5) }
        }
        if digits.count < point { point = digits.count }
        let text = String(decoding: digits.map { $0 + 0x30 }, as: UTF8.self)
        let whole = text.prefix(point).drop { $0 == "0" }
        let fraction = text.dropFirst(point)
        return "\(whole.isEmpty ? "0" : whole).\(fraction.isEmpty ? "0" : fraction)\(more)"
    }

    @Test("Midpoints between two numbers, and their neighbours", arguments: 10..<14 as Range<UInt64>)
    func midpointsAreRoundedCorrectly(seed: UInt64) throws {
        var chance = SeededChance(seed)
        var texts: [String] = []
        for _ in 0..<1500 {
            let bits = chance.next() & (1 << 52 - 1)
            let exponent = 1023 - 15 + chance.next() % 74
            let value = Double(bitPattern: exponent << 52 | bits)
            guard let exact = Self.middle(value, ""), let above = Self.middle(value, "1") else { continue }
            texts += [exact, above, "\(exact)e0", "-\(exact)"]
            // The last digit is lowered by one: all fractions end with 5, and all integers are even.
            if exact.hasSuffix("5") { texts.append("\(exact.dropLast())4999999") }
            if !exact.contains(".") { texts += ["\(exact)00e-2", "\(exact).000", "\(exact.dropLast(2)).99e2"] }
        }
        #expect(texts.count > 6000)
        try Self.compare(texts)
    }

    @Test("Neighbours of random numbers, with up to seventeen digits", arguments: 14..<16 as Range<UInt64>)
    func neighboursOfRandomNumbersAreReadExactly(seed: UInt64) throws {
        var chance = SeededChance(seed)
        var texts: [String] = []
        for _ in 0..<3000 {
            let value = Self.finite(&chance).magnitude
            for neighbour in [value.nextDown, value, value.nextUp] where neighbour.isFinite {
                texts += ["\(neighbour)", "-\(neighbour)"]
            }
        }
        try Self.compare(texts)
    }

    static let places = [
        "0", "-0", "0.0", "-0.0", "0e5", "-0e-5", "0.000e999", "5e-324", "4.9e-324", "2.5e-324",
        "2.4703282292062327e-324",
        "2.4703282292062328e-324", "3e-324", "7.4e-324", "2.2250738585072014e-308", "2.2250738585072011e-308",
        "2.22507385850720113605740979670913197593481954635164564802342610972482222202107"
            + "694551652952390813508791414915891303962110687008643869459464552765720740782"
            + "062174337998814106326732925355"
            + "e-308", "1.7976931348623157e308", "1.7976931348623158e308", "179769313486231570000e288",
        "9007199254740992",
        "9007199254740993", "9007199254740994", "9007199254740993.0", "9007199254740993.00000000000000000000000000001",
        "4503599627370496.5", "4503599627370497.5", "1e22", "1e23", "8.5e22", "123456789012345678",
        "1234567890123456789",
        "9999999999999999999", "18446744073709551615", "18446744073709551616", "99999999999999999999", "0.1", "0.2",
        "0.3",
        "0.30000000000000004", "1e-5", "1e15", "1e16", "1e21", "6.02214076e23", "1e-400", "1e-99999999999999999999",
        "0.00000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000001",
        "100000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000",
        "100000000000000000000000000000000000000000000000000e-50", "0.0000000000000000000000000000000000000001e40",
        "1.00000000000000000000000000000000000000", "12345678.12345678", "1234567.1234567", "0.12345678",
        "0.1234567890123456",
    ]

    @Test func numbersOfTheListAreReadExactly() throws {
        try Self.compare(Self.places)
        try Self.compareFloats(Self.places)
        for text in Self.places {
            // Alone, without text behind the number.
            #expect(
                try Self.json.decode(Double.self, from: text.utf8).bitPattern == strtod(text, nil).bitPattern, "\(text)"
            )
        }
    }

    @Test(arguments: ["1e309", "1.7976931348623159e308", "-1e309", "1e99999999999999999999", "0.1e310", "1000e306"])
    func numbersBeyondDoubleFail(text: String) throws {
        let error = try #require(
            #expect(throws: DecodingError.self) { try Self.json.decode([Double].self, from: "[0,\(text)]".utf8) })
        guard case .dataCorrupted(let context) = error else { throw error }
        #expect(context.codingPath.map(\.intValue) == [1])
        #expect((context.underlyingError as? JSON.Fault)?.offset == 3)
        // The same error is thrown outside of an array, for `JSONValue` and for `Float`.
        #expect(throws: DecodingError.self) { try Self.json.decode(Double.self, from: text.utf8) }
        #expect(throws: DecodingError.self) { try Self.json.decode(JSONValue.self, from: text.utf8) }
        #expect(throws: DecodingError.self) { try Self.json.decode(Float.self, from: text.utf8) }
    }

    /// Returns the expected text of a number from its description.
    private static func written(_ text: String) -> String { text.hasSuffix(".0") ? String(text.dropLast(2)) : text }

    private static func wholes(_ chance: inout SeededChance) -> [Double] {
        let whole = Double(Int64(bitPattern: chance.next()) >> Int64(chance.next() % 64))
        return [whole, whole / 8, whole / 100, whole / 1e6, whole * 1e-9, whole / 3]
    }

    @Test("Encoded numbers equal the standard library's, and round-trip", arguments: 16..<20 as Range<UInt64>)
    func encodedDoublesEqualTheStandardLibrarys(seed: UInt64) throws {
        var chance = SeededChance(seed)
        var values = (0..<4000).map { _ in Self.finite(&chance) }
        for _ in 0..<800 { values += Self.wholes(&chance) }
        values += [0, -0.0, 1, 0.1, 1e15, 1e16, 1e-4, 1e-5, 999_999_999_999_999, 1e15 - 0.5, 0.000_1, 0.001, 123.456]
        values += [.greatestFiniteMagnitude, .leastNonzeroMagnitude, .leastNormalMagnitude, .pi, .ulpOfOne]
        let data = try Self.json.encode(values)
        let texts = String(decoding: data.dropFirst().dropLast(), as: UTF8.self).split(separator: ",")
        guard texts.count == values.count else {
            Issue.record("\(texts.count) texts of \(values.count) values")
            return
        }
        for (text, value) in zip(texts, values) where text != Self.written("\(value)") {
            Issue.record("\(text) for \(value)")
        }
        #expect(try Self.json.decode([Double].self, from: data).map(\.bitPattern) == values.map(\.bitPattern))
    }

    @Test("Encoding and decoding of Float", arguments: 20..<22 as Range<UInt64>)
    func encodedFloatsEqualTheStandardLibrarys(seed: UInt64) throws {
        var chance = SeededChance(seed)
        var values: [Float] = [
            0, -0.0, 1, 0.1, 16_777_216, 1e16, .greatestFiniteMagnitude, .leastNonzeroMagnitude, .pi,
        ]
        for _ in 0..<5000 {
            let value = Float(bitPattern: UInt32(truncatingIfNeeded: chance.next()))
            if value.isFinite { values += [value, Float(Int32(truncatingIfNeeded: chance.next()) % 10_000) / 8] }
        }
        let data = try Self.json.encode(values)
        let texts = String(decoding: data.dropFirst().dropLast(), as: UTF8.self).split(separator: ",")
        #expect(texts.map { String($0) } == values.map { Self.written("\($0)") })
        #expect(try Self.json.decode([Float].self, from: data).map(\.bitPattern) == values.map(\.bitPattern))
        try Self.compareFloats((0..<5000).map { _ in Self.decimal(&chance) })
        // Near the midpoint of two floats: rounding to Double first would return a wrong Float.
        try Self.compareFloats([
            "1.00000005960464477539", "1.000000059604644775390625", "1.00000005960464477539062500001",
        ])
        for text in ["3.4028236e38", "1e39", "-1e39", "3.5e38"] {
            #expect(throws: DecodingError.self) { try Self.json.decode(Float.self, from: text.utf8) }
        }
    }

    private static func limits<T: FixedWidthInteger & Codable & Sendable>(_ type: T.Type) throws {
        for value in [type.min, type.max, 0, 1] {
            for text in ["\(value)", "\(value).0", "\(value).000", "\(value)e0", "\(value)0e-1", "\(value)00.0E-2"]
            where value != 0 || !text.hasPrefix("00") {
                #expect(try json.decode(type, from: text.utf8) == value, "\(text) as \(type)")
                #expect(try json.decode([T].self, from: "[\(text)]".utf8) == [value], "\(text) as \(type)")
            }
            #expect(try json.encode([value]) == Data("[\(value)]".utf8))
        }
        let beyond = [increased("\(type.max)"), type.min < 0 ? "-\(increased("\(type.min.magnitude)"))" : "-1"]
        for text in beyond + ["\(type.max)0", "1e40", "0.5", "1e-1", "\(type.max).5", "1e999999999999", "1e-400"] {
            let error = #expect(throws: DecodingError.self, "\(text) as \(type)") {
                try json.decode([T].self, from: "[\(text)]".utf8)
            }
            guard case .dataCorrupted(let context)? = error else {
                Issue.record("\(text) as \(type): \(String(describing: error))")
                continue
            }
            #expect(context.codingPath.map(\.intValue) == [0])
        }
    }

    /// Returns the digits of the next integer.
    private static func increased(_ digits: String) -> String {
        guard let last = digits.last?.wholeNumberValue else { return "1" }
        return last < 9 ? "\(digits.dropLast())\(last + 1)" : "\(increased(String(digits.dropLast())))0"
    }

    @Test func integerLimitsAreEnforced() throws {
        try Self.limits(Int.self)
        try Self.limits(Int8.self)
        try Self.limits(Int16.self)
        try Self.limits(Int32.self)
        try Self.limits(Int64.self)
        try Self.limits(Int128.self)
        try Self.limits(UInt.self)
        try Self.limits(UInt8.self)
        try Self.limits(UInt16.self)
        try Self.limits(UInt32.self)
        try Self.limits(UInt64.self)
        try Self.limits(UInt128.self)
    }

    @Test("Random integers are decoded and encoded", arguments: 22..<24 as Range<UInt64>)
    func randomIntegersRoundTrip(seed: UInt64) throws {
        var chance = SeededChance(seed)
        let signed = (0..<5000).map { _ in Int64(bitPattern: chance.next()) >> Int64(chance.next() % 64) }
        let unsigned = (0..<5000).map { _ in chance.next() >> (chance.next() % 64) }
        let wide = (0..<1000).map { _ in UInt128(chance.next()) << 64 | UInt128(chance.next()) }
        let wideSigned = wide.map { Int128(truncatingIfNeeded: $0) }
        #expect(try Self.json.decode([Int64].self, from: Self.list(signed.map { "\($0)" })) == signed)
        #expect(try Self.json.decode([UInt64].self, from: Self.list(unsigned.map { "\($0)" })) == unsigned)
        #expect(try Self.json.decode([UInt128].self, from: Self.list(wide.map { "\($0)" })) == wide)
        #expect(try Self.json.decode([Int128].self, from: Self.list(wideSigned.map { "\($0)" })) == wideSigned)
        #expect(try Self.json.encode(signed) == Data(Self.list(signed.map { "\($0)" })))
        #expect(try Self.json.encode(unsigned) == Data(Self.list(unsigned.map { "\($0)" })))
        #expect(try Self.json.encode(wide) == Data(Self.list(wide.map { "\($0)" })))
        #expect(try Self.json.encode(wideSigned) == Data(Self.list(wideSigned.map { "\($0)" })))
    }
}
