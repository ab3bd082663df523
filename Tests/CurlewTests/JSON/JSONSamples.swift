// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import FoundationEssentials

/// A type with random values, for the comparison of two coders.
protocol JSONSample: Codable, Equatable, Sendable {
    static func random(_ chance: inout SeededChance) -> Self
}

extension SeededChance {
    mutating func number(_ range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &self) }
    mutating func isOne(in count: Int) -> Bool { number(1...count) == 1 }
    mutating func one<T>(of values: [T]) -> T { values[number(0...values.count - 1)] }
    mutating func maybe<T>(_ make: (inout SeededChance) -> T) -> T? { isOne(in: 3) ? nil : make(&self) }
    mutating func some<T>(_ make: (inout SeededChance) -> T) -> [T] { (0..<number(0...3)).map { _ in make(&self) } }
}

extension Bool: JSONSample {
    static func random(_ chance: inout SeededChance) -> Bool { chance.isOne(in: 2) }
}

extension JSONSample where Self: FixedWidthInteger {
    static func random(_ chance: inout SeededChance) -> Self {
        switch chance.number(0...4) {
        case 0: .max
        case 1: .min
        case 2: Self(truncatingIfNeeded: chance.next())
        default: Self(clamping: chance.number(0...999))
        }
    }
}

extension Int: JSONSample {}
extension Int8: JSONSample {}
extension Int16: JSONSample {}
extension Int32: JSONSample {}
extension Int64: JSONSample {}
extension UInt: JSONSample {}
extension UInt8: JSONSample {}
extension UInt16: JSONSample {}
extension UInt32: JSONSample {}
extension UInt64: JSONSample {}
extension Int128: JSONSample {}
extension UInt128: JSONSample {}

extension Double: JSONSample {
    static func random(_ chance: inout SeededChance) -> Double {
        switch chance.number(0...5) {
        case 0: return Double(chance.number(-1000...1000))
        case 1: return Double(chance.number(-100_000...100_000)) / 100
        case 2: return Double.random(in: -1...1, using: &chance)
        case 3:
            return chance.one(of: [
                0, -0.0, 1e15, 1e16, 1e-5, 1e-4, 0.1, Double.leastNonzeroMagnitude, Double.greatestFiniteMagnitude,
                9_007_199_254_740_992,
            ])
        default:
            let value = Double(bitPattern: chance.next())
            return value.isFinite ? value : 1.5
        }
    }
}

extension Float: JSONSample {
    static func random(_ chance: inout SeededChance) -> Float {
        let value =
            chance.isOne(in: 2)
            ? Float(bitPattern: UInt32(truncatingIfNeeded: chance.next())) : Float(chance.number(-99...99)) / 8
        return value.isFinite ? value : 0.5
    }
}

extension String: JSONSample {
    static func random(_ chance: inout SeededChance) -> String {
        let words = [
            "", "a", "name", "first_name", "https://example.com/x", "\"", "\\", "\u{1}\u{1F}\u{7F}", "é", "e\u{301}",
            "😀", "日本語の文字列", "\n\r\t\u{8}\u{C}", "1",
            "long text without anything that would need an escape", "\u{2028}", "\u{0}", "a/b", "K", "\u{212A}",
        ]
        return (0..<chance.number(0...2)).map { _ in chance.one(of: words) }.joined()
    }
}

extension Decimal: JSONSample {
    static func random(_ chance: inout SeededChance) -> Decimal {
        Decimal(string: "\(chance.number(-99_999...99_999)).\(chance.number(0...99_999))") ?? 0
    }
}

extension Date: JSONSample {
    static func random(_ chance: inout SeededChance) -> Date {
        Date(timeIntervalSince1970: Double(chance.number(-20_000_000_000...50_000_000_000)))
    }
}

extension Data: JSONSample {
    static func random(_ chance: inout SeededChance) -> Data {
        Data((0..<chance.number(0...20)).map { _ in UInt8(truncatingIfNeeded: chance.next()) })
    }
}

extension URL: JSONSample {
    static func random(_ chance: inout SeededChance) -> URL {
        URL(string: chance.one(of: ["https://example.com/a?b=c#d", "/path", "mailto:a@b", "https://h/%20"]))
            ?? URL(filePath: "/")
    }
}

extension UUID: JSONSample {
    static func random(_ chance: inout SeededChance) -> UUID {
        UUID(
            uuidString: chance.one(of: ["E621E1F8-C36C-495A-93FC-0C247A3E6E5F", "00000000-0000-0000-0000-000000000000"])
        ) ?? UUID()
    }
}

extension JSONValue: JSONSample {
    static func random(_ chance: inout SeededChance) -> JSONValue { random(&chance, depth: 3) }
}

extension Optional: JSONSample where Wrapped: JSONSample {
    static func random(_ chance: inout SeededChance) -> Wrapped? { chance.maybe { Wrapped.random(&$0) } }
}

extension Array: JSONSample where Element: JSONSample {
    static func random(_ chance: inout SeededChance) -> [Element] { chance.some { Element.random(&$0) } }
}

extension Dictionary: JSONSample where Key: JSONSample, Value: JSONSample {
    static func random(_ chance: inout SeededChance) -> [Key: Value] {
        Dictionary(chance.some { (Key.random(&$0), Value.random(&$0)) }) { first, _ in first }
    }
}

// MARK: - Types like those of users

enum SampleColor: String, JSONSample, CodingKeyRepresentable, CaseIterable {
    case red, darkGreen, blue

    static func random(_ chance: inout SeededChance) -> SampleColor { chance.one(of: allCases) }
}

enum SampleShape: JSONSample {
    case point
    case circle(radius: Double)
    case line(Int, to: Int?)

    static func random(_ chance: inout SeededChance) -> SampleShape {
        switch chance.number(0...2) {
        case 0: .point
        case 1: .circle(radius: .random(&chance))
        default: .line(.random(&chance), to: .random(&chance))
        }
    }
}

struct SampleScalars: JSONSample {
    var isOn: Bool
    var small: Int8
    var count: Int
    var large: UInt64
    var huge: Int128
    var ratio: Double
    var single: Float
    var text: String
    var maybeText: String?
    var maybeCount: Int?
    var maybeRatio: Double?
    var maybeOn: Bool?

    static func random(_ chance: inout SeededChance) -> SampleScalars {
        SampleScalars(
            isOn: .random(&chance), small: .random(&chance), count: .random(&chance), large: .random(&chance),
            huge: .random(&chance), ratio: .random(&chance), single: .random(&chance), text: .random(&chance),
            maybeText: .random(&chance), maybeCount: .random(&chance), maybeRatio: .random(&chance),
            maybeOn: .random(&chance))
    }
}

struct SampleOrder: JSONSample {
    struct Line: JSONSample {
        var articleName: String
        var unitPrice: Decimal
        var tags: [String]
        var color: SampleColor?

        static func random(_ chance: inout SeededChance) -> Line {
            Line(
                articleName: .random(&chance), unitPrice: .random(&chance), tags: .random(&chance),
                color: .random(&chance))
        }
    }

    var orderId: Int
    var myURL: URL?
    var createdAt: Date
    var payload: Data
    var lines: [Line]
    var shape: SampleShape
    var byName: [String: Line]
    var byNumber: [Int: Double]
    var byColor: [SampleColor: Int]
    var anything: JSONValue
    var größe: Int?

    static func random(_ chance: inout SeededChance) -> SampleOrder {
        SampleOrder(
            orderId: .random(&chance), myURL: .random(&chance), createdAt: .random(&chance), payload: .random(&chance),
            lines: .random(&chance), shape: .random(&chance), byName: .random(&chance), byNumber: .random(&chance),
            byColor: .random(&chance), anything: .random(&chance), größe: .random(&chance))
    }
}

final class SampleTree: JSONSample {
    let value: Int
    let left: SampleTree?
    let right: SampleTree?

    init(_ value: Int, _ left: SampleTree?, _ right: SampleTree?) {
        self.value = value
        self.left = left
        self.right = right
    }

    static func == (one: SampleTree, other: SampleTree) -> Bool {
        one.value == other.value && one.left == other.left && one.right == other.right
    }

    static func random(_ chance: inout SeededChance) -> SampleTree {
        SampleTree(
            .random(&chance), chance.isOne(in: 3) ? random(&chance) : nil, chance.isOne(in: 3) ? random(&chance) : nil)
    }
}

/// Uses the rarer features of containers: nested ones, `super`, `contains`, `allKeys`, arrays of mixed types.
struct SampleManual: JSONSample {
    enum Key: String, CodingKey { case first, nested, list, rest, flag }

    var first: Int
    var inner: String
    var list: [Int]
    var flag: Bool?
    var rest: [String]
    var superValue: Double?

    static func random(_ chance: inout SeededChance) -> SampleManual {
        SampleManual(
            first: .random(&chance), inner: .random(&chance), list: .random(&chance), flag: .random(&chance), rest: [],
            superValue: .random(&chance))
    }

    init(first: Int, inner: String, list: [Int], flag: Bool?, rest: [String], superValue: Double?) {
        (self.first, self.inner, self.list, self.flag, self.rest, self.superValue) =
            (first, inner, list, flag, rest, superValue)
    }

    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Key.self)
        let again = try decoder.container(keyedBy: Key.self)
        first = try container.decode(Int.self, forKey: .first)
        let nested = try container.nestedContainer(keyedBy: Key.self, forKey: .nested)
        inner = try nested.decode(String.self, forKey: .first)
        var unkeyed = try again.nestedUnkeyedContainer(forKey: .list)
        list = []
        while !unkeyed.isAtEnd {
            if try unkeyed.decodeNil() { continue }
            // A failed decode does not advance to the next element.
            if (try? unkeyed.decode(Bool.self)) != nil {
                list.append(unkeyed.currentIndex)
            } else {
                list.append(try unkeyed.decode(Int.self))
            }
        }
        flag = nil
        if container.contains(.flag), try !container.decodeNil(forKey: .flag) {
            flag = try container.decode(Bool.self, forKey: .flag)
        }
        rest = again.allKeys.map(\.rawValue).sorted()
        superValue = try Double?(from: container.superDecoder())
        rest = []
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Key.self)
        var nested = container.nestedContainer(keyedBy: Key.self, forKey: .nested)
        var unkeyed = container.nestedUnkeyedContainer(forKey: .list)
        let parent = container.superEncoder()
        try container.encode(first, forKey: .first)
        for value in list { try unkeyed.encode(value) }
        try nested.encode(inner, forKey: .first)
        var again = encoder.container(keyedBy: Key.self)
        try again.encodeIfPresent(flag, forKey: .flag)
        try superValue.encode(to: parent)
    }
}
