// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing

@testable import Curlew

/// The behaviour of Curlew's decoder, which is also that of Foundation's decoder unless a comment says otherwise.
@Suite("JSON: behaviour of the decoder")
struct JSONBehaviourTests {
    /// The options of both decoders.
    typealias Configure = (inout JSON.DecodingOptions, JSONDecoder) -> Void

    /// Returns the results of Curlew's and of Foundation's decoder.
    private static func both<T: Decodable>(
        _ type: T.Type, _ text: String, _ configure: Configure = { _, _ in }
    ) throws -> [T] {
        let decoder = JSONDecoder()
        let json = JSON { configure(&$1, decoder) }
        return [try json.decode(type, from: text.utf8), try decoder.decode(type, from: Data(text.utf8))]
    }

    /// Returns the case and the path of the error, or the decoded value.
    private static func failure<T: Decodable>(_ type: T.Type, _ decode: () throws -> T) -> String {
        func text(_ kind: String, _ context: DecodingError.Context) -> String {
            ([kind] + context.codingPath.map { $0.stringValue }).joined(separator: "/")
        }
        do {
            return "\(try decode())"
        } catch DecodingError.typeMismatch(_, let context) {
            return text("type", context)
        } catch DecodingError.valueNotFound(_, let context) {
            return text("null", context)
        } catch DecodingError.keyNotFound(let key, let context) {
            return text("absent \(key.stringValue)", context)
        } catch DecodingError.dataCorrupted(let context) {
            return text("corrupted", context)
        } catch {
            return "\(error)"
        }
    }

    private static func ours<T: Decodable>(_ type: T.Type, _ text: String, _ json: JSON = JSON()) -> String {
        failure(type) { try json.decode(type, from: text.utf8) }
    }

    private static func foundation<T: Decodable>(_ type: T.Type, _ text: String) -> String {
        failure(type) { try JSONDecoder().decode(type, from: Data(text.utf8)) }
    }

    struct Name: Codable, Equatable {
        var oneTwo: Int
    }

    enum Key: String, CodingKey {
        case a, b
    }

    // MARK: Names

    @Test func firstOfDuplicateNamesIsUsed() throws {
        for value in try Self.both([String: Int].self, #"{"a":1,"b":2,"a":3}"#) { #expect(value == ["a": 1, "b": 2]) }
        for value in try Self.both(Name.self, #"{"oneTwo":1,"oneTwo":2}"#) { #expect(value.oneTwo == 1) }
        for text in [#"{"one_two":1,"oneTwo":2}"#, #"{"oneTwo":1,"one_two":2}"#, #"{"x":0,"ONE_TWO":1,"one_two":2}"#] {
            let values = try Self.both(Name.self, text) {
                ($0.keyDecodingStrategy, $1.keyDecodingStrategy) = (.convertFromSnakeCase, .convertFromSnakeCase)
            }
            #expect(values.map(\.oneTwo) == [1, 1])
        }
    }

    /// Decodes two keys in turn, twice.
    struct AskingAgain: Decodable, Equatable {
        var values: [Int]

        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: Key.self)
            values = try [.a, .b, .a, .b].map { try container.decode(Int.self, forKey: $0) }
        }
    }

    @Test("Repeated decoding of a key returns its first value")
    func repeatedDecodingReturnsTheFirstDuplicate() throws {
        for text in [#"{"a":1,"b":2,"a":3}"#, #"{"a":1,"b":2,"a":3,"b":4}"#, #"{"b":2,"a":1,"b":3}"#] {
            for value in try Self.both(AskingAgain.self, text) { #expect(value.values == [1, 2, 1, 2], "\(text)") }
        }
    }

    @Test func namesAreEqualByCanonicalEquivalence() throws {
        struct Accent: Decodable {
            var é: Int
        }
        for text in ["{\"e\u{301}\":1}", "{\"é\":1}", #"{"e\u0301":1}"#, #"{"\u00e9":1}"#] {
            for value in try Self.both(Accent.self, text) { #expect(value.é == 1) }
        }
        for value in try Self.both(Name.self, #"{"\u006fneTw\u006f":1}"#) { #expect(value.oneTwo == 1) }
    }

    static let snakes = [
        ("_one_two", "_oneTwo"), ("__one__two__", "__oneTwo__"), ("one__two", "oneTwo"), ("ONE_TWO", "oneTwo"),
        ("one_2", "one2"), ("url_id", "urlId"), ("_", "_"), ("__", "__"), ("oneTwo", "oneTwo"), ("one", "one"),
        ("ONE", "ONE"), ("one_two_three", "oneTwoThree"), ("one_two_", "oneTwo_"), ("one_TWO", "oneTwo"), ("", ""),
    ]

    /// A key with any name.
    struct AnyKey: CodingKey {
        var stringValue: String
        var intValue: Int? { nil }

        init(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }
    }

    /// Decodes all names of an object, in order.
    struct Names: Decodable {
        var names: [String]
        var path: [String]

        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: AnyKey.self)
            names = container.allKeys.map(\.stringValue)
            path = container.codingPath.map(\.stringValue)
            for name in names where !(try container.decodeNil(forKey: AnyKey(stringValue: name))) { names = [] }
        }
    }

    @Test(arguments: snakes)
    func snakeCaseNamesAreConverted(name: String, property: String) throws {
        let values = try Self.both([Names].self, #"[{"\#(name)":null}]"#) {
            ($0.keyDecodingStrategy, $1.keyDecodingStrategy) = (.convertFromSnakeCase, .convertFromSnakeCase)
        }
        for value in values { #expect(value[0].names == [property] && value[0].path == ["Index 0"]) }
        let dictionaries = try Self.both([String: [String: Int]].self, #"{"\#(name)":{"\#(name)":1}}"#) {
            ($0.keyDecodingStrategy, $1.keyDecodingStrategy) = (.convertFromSnakeCase, .convertFromSnakeCase)
        }
        for value in dictionaries { #expect(value == [name: [name: 1]]) }
    }

    @Test func customKeyDecodingStrategyGetsThePath() throws {
        let values = try Self.both([Name].self, #"[{"ONETWO":1},{"oneTwo":2}]"#) { options, decoder in
            let strategy = JSONDecoder.KeyDecodingStrategy.custom { path in
                path.last?.stringValue == "ONETWO" && path.first?.intValue == 0
                    ? AnyKey(stringValue: "oneTwo") : path.last ?? AnyKey(stringValue: "")
            }
            (options.keyDecodingStrategy, decoder.keyDecodingStrategy) = (strategy, strategy)
        }
        for value in values { #expect(value.map(\.oneTwo) == [1, 2]) }
    }

    @Test("allKeys: in the order of the text, without duplicates (Foundation: in any order)")
    func allKeysFollowTheOrderOfTheText() throws {
        let values = try Self.both(Names.self, #"{"z":null,"a":null,"m":null,"a":null,"b":null}"#)
        #expect(values[0].names == ["z", "a", "m", "b"] && Set(values[1].names) == ["z", "a", "m", "b"])
    }

    // MARK: Errors

    static let failures: [(String, String)] = [
        ("null", "null"), ("[]", "type"), (#"{"name":null}"#, "null/name"), ("{}", "absent name"),
        (#"{"name":1}"#, "type/name"), (#"{"name":"x","list":null}"#, "null/list"),
        (#"{"name":"x","list":{}}"#, "type/list"), (#"{"name":"x","list":[1,"2"]}"#, "type/list/Index 1"),
        (#"{"name":"x","list":[1,null]}"#, "null/list/Index 1"), (#"{"name":"x","list":[true]}"#, "type/list/Index 0"),
        (#"{"name":"x","list":[],"on":1}"#, "type/on"), (#"{"name":"x","list":[],"map":{"k":"v"}}"#, "type/map/k"),
        (#"{"name":"x","list":[],"next":{"oneTwo":"x"}}"#, "type/next/oneTwo"),
        (#"{"name":"x","list":[],"next":{}}"#, "absent oneTwo/next"),
        (#"{"name":"x","list":[],"url":""}"#, "corrupted/url"),
        (#"{"name":"x","list":[],"data":"*"}"#, "corrupted/data"),
        (#"{"name":"x","list":[],"data":[1]}"#, "type/data"), (#"{"name":"x","list":[],"price":"1"}"#, "type/price"),
    ]

    struct Sample: Decodable {
        var name: String
        var list: [Int]
        var on: Bool?
        var map: [String: Int]?
        var next: Name?
        var url: URL?
        var data: Data?
        var price: Decimal?
    }

    @Test(arguments: failures)
    func decodingErrorsHaveCaseAndPath(text: String, expected: String) {
        #expect(Self.ours(Sample.self, text) == expected)
        #expect(Self.foundation(Sample.self, text) == expected)
        // In nested containers, the path is longer.
        let inner = expected.split(separator: "/", maxSplits: 1).map(String.init)
        let path = ([inner[0], "x", "Index 1"] + inner.dropFirst()).joined(separator: "/")
        let whole = #"{"x":[{"name":"","list":[]},\#(text)]}"#
        #expect(Self.ours([String: [Sample]].self, whole) == path)
        #expect(Self.foundation([String: [Sample]].self, whole) == path)
    }

    @Test("Intended differences from Foundation's decoder")
    func decoderDiffersFromFoundationAsIntended() throws {
        // Trailing commas are rejected, and values that are not decoded are validated.
        for text in [
            #"{"oneTwo":1,}"#, #"{"oneTwo":1,"x":01}"#, #"{"oneTwo":1,"x":"\q"}"#, #"{"oneTwo":1,"x":"\ud800"}"#,
        ] {
            #expect(Self.ours(Name.self, text) == "corrupted")
            #expect(throws: Never.self) { try JSONDecoder().decode(Name.self, from: Data(text.utf8)) }
        }
        // Numbers out of range have a path.
        for text in ["1.5", "256", "-1", "9223372036854775808", "1e400"] {
            #expect(Self.ours([UInt8].self, "[0,\(text)]") == "corrupted/Index 1")
            #expect(Self.foundation([UInt8].self, "[0,\(text)]") == "corrupted")
        }
        // A number below the smallest `Double` is zero; Foundation throws.
        #expect(try JSON().decode([Double].self, from: "[1e-400]".utf8) == [0])
        // A null in an array of `Bool` throws `valueNotFound`.
        #expect(Self.ours([Bool].self, "[null]") == "null/Index 0")
        // UTF-32 with a byte order mark is decoded.
        let wide: [UInt8] = [0xFF, 0xFE, 0, 0, 0x37, 0, 0, 0]
        #expect(try JSON().decode(Int.self, from: wide) == 7)
        // Text after the time zone of a date is rejected, and the error has the path of the field.
        let json = JSON { $1.dateDecodingStrategy = .iso8601 }
        #expect(Self.ours([Date].self, #"["2026-11-24T18:30:00Zx"]"#, json) == "corrupted/Index 0")
        #expect(Self.ours([Date].self, #"["2026-11-24 18:30:00Z"]"#, json) == "corrupted/Index 0")
    }

    // MARK: Dictionaries

    enum Color: String, Codable, CodingKeyRepresentable {
        case red, green
    }

    enum Plain: String, Codable {
        case red, green
    }

    @Test func dictionariesAreDecodedLikeFoundation() throws {
        for value in try Self.both([Int: String].self, #"{"1":"a","-2":"b"}"#) { #expect(value == [1: "a", -2: "b"]) }
        for value in try Self.both([Color: Int].self, #"{"red":1}"#) { #expect(value == [.red: 1]) }
        for value in try Self.both([Plain: Int].self, #"["red",1,"green",2]"#) {
            #expect(value == [.red: 1, .green: 2])
        }
        for value in try Self.both([UInt8: Bool].self, "[1,true,2,false]") { #expect(value == [1: true, 2: false]) }
        for (ours, expected) in [
            (Self.ours([Int: Int].self, #"{"x":1}"#), "type/x"),
            (Self.ours([Color: Int].self, #"{"blue":1}"#), "corrupted/blue"),
            (Self.foundation([Int: Int].self, #"{"x":1}"#), "type/x"),
            (Self.foundation([Color: Int].self, #"{"blue":1}"#), "corrupted/blue"),
            (Self.ours([UInt8: Int].self, "[1]"), Self.foundation([UInt8: Int].self, "[1]")),
            (Self.ours([Plain: Int].self, "{}"), Self.foundation([Plain: Int].self, "{}")),
        ] {
            #expect(ours == expected)
        }
    }

    // MARK: Containers

    /// Calls all methods of an unkeyed container.
    struct Steps: Decodable {
        init(from decoder: any Decoder) throws {
            var list = try decoder.unkeyedContainer()
            #expect(list.count == 5 && list.currentIndex == 0 && !list.isAtEnd)
            // A failed decode does not advance.
            #expect(throws: DecodingError.self) { try list.decode(String.self) }
            #expect(try list.currentIndex == 0 && !list.decodeNil() && list.currentIndex == 0)
            #expect(try list.decode(Int.self) == 1 && list.currentIndex == 1)
            #expect(try list.decodeNil() && list.currentIndex == 2)
            #expect(throws: DecodingError.self) { try list.nestedUnkeyedContainer() }
            #expect(list.currentIndex == 2)
            let nested = try list.nestedContainer(keyedBy: Key.self)
            #expect(try nested.decode(Int.self, forKey: .a) == 2 && nested.codingPath.map(\.intValue) == [2])
            var inner = try list.nestedUnkeyedContainer()
            #expect(try inner.decode(Int.self) == 3 && inner.isAtEnd)
            let last = try list.superDecoder()
            #expect(try String(from: last) == "z" && last.codingPath.map(\.intValue) == [4] && list.isAtEnd)
            let error = #expect(throws: DecodingError.self) { try list.decode(Int.self) }
            guard case .valueNotFound(_, let context)? = error else { throw try #require(error) }
            #expect(context.codingPath.map(\.stringValue) == ["Index 5"] && list.currentIndex == 5)
            #expect(throws: DecodingError.self) { try list.decodeNil() }
        }
    }

    @Test func unkeyedContainersAreDecodedLikeFoundation() throws {
        _ = try Self.both(Steps.self, #"[1,null,{"a":2},[3],"z"]"#)
    }

    class Ancestor: Decodable {
        let a: Int

        init(a: Int) { self.a = a }
        private enum Keys: CodingKey { case a }
        required init(from decoder: any Decoder) throws {
            a = try decoder.container(keyedBy: Keys.self).decode(Int.self, forKey: .a)
        }
    }

    final class Derived: Ancestor {
        let b: Int

        required init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: Key.self)
            b = try container.decode(Int.self, forKey: .b)
            try super.init(from: container.superDecoder())
        }
    }

    @Test func superDecodersReadTheSuperMember() throws {
        for value in try Self.both(Derived.self, #"{"b":1,"super":{"a":2}}"#) { #expect(value.a == 2 && value.b == 1) }
        #expect(Self.ours(Derived.self, #"{"b":1}"#) == "null/super")
        #expect(Self.foundation(Derived.self, #"{"b":1}"#) == "null/super")
    }

    // MARK: Scalars

    @Test func numbersAreDecodedLikeFoundation() throws {
        for value in try Self.both([Int].self, "[1.0,1e2,-0,9007199254740993.0]") {
            #expect(value == [1, 100, 0, 9_007_199_254_740_993])
        }
        for value in try Self.both([Double].self, "[-0,-0.0]") {
            #expect(value.allSatisfy { $0 == 0 && $0.sign == .minus })
        }
        for value in try Self.both([Int128].self, "[\(Int128.min),\(Int128.max)]") { #expect(value == [.min, .max]) }
        for value in try Self.both([UInt128].self, "[\(UInt128.max)]") { #expect(value == [.max]) }
        for value in try Self.both([Decimal].self, "[0.1,12345678901234567890.5]") {
            #expect(value.map(\.description) == ["0.1", "12345678901234567890.5"])
        }
        #expect(Self.ours([Decimal].self, "[1e200]") == "corrupted/Index 0")
        #expect(Self.foundation([Decimal].self, "[1e200]") == "corrupted")
        for value in try Self.both([Int?].self, "[null,1]") { #expect(value == [nil, 1]) }
        for value in try Self.both(Int?.self, "null") { #expect(value == nil) }
    }

    @Test func nonConformingFloats() throws {
        let values = try Self.both([Double].self, #"["inf","-inf","nan",1]"#) {
            let strategy = JSONDecoder.NonConformingFloatDecodingStrategy.convertFromString(
                positiveInfinity: "inf", negativeInfinity: "-inf", nan: "nan")
            ($0.nonConformingFloatDecodingStrategy, $1.nonConformingFloatDecodingStrategy) = (strategy, strategy)
        }
        for value in values {
            #expect(value[0] == .infinity && value[1] == -.infinity && value[2].isNaN && value[3] == 1)
        }
        #expect(Self.ours([Double].self, #"["inf"]"#) == "type/Index 0")
    }

    @Test func urlsAndDataAreDecodedLikeFoundation() throws {
        for value in try Self.both([URL].self, #"["https://a.b/c d","x"]"#) {
            #expect(value.map(\.absoluteString) == ["https://a.b/c%20d", "x"])
        }
        for value in try Self.both([Data].self, #"["AQI=",""]"#) { #expect(value == [Data([1, 2]), Data()]) }
        #expect(Self.ours([Data].self, #"["AQ\nI="]"#) == "corrupted/Index 0")
        let deferred = try Self.both([Data].self, "[[1,2],[]]") {
            ($0.dataDecodingStrategy, $1.dataDecodingStrategy) = (.deferredToData, .deferredToData)
        }
        for value in deferred { #expect(value == [Data([1, 2]), Data()]) }
    }

    @Test func userInfoReachesTheDecoder() throws {
        struct Reading: Decodable {
            var info: String?

            init(from decoder: any Decoder) throws {
                info = CodingUserInfoKey(rawValue: "k").flatMap { decoder.userInfo[$0] as? String }
            }
        }
        let key = try #require(CodingUserInfoKey(rawValue: "k"))
        for value in try Self.both([Reading].self, "[{}]", { ($0.userInfo[key], $1.userInfo[key]) = ("info", "info") })
        {
            #expect(value[0].info == "info")
        }
    }

    static let dates: [(JSONDecoder.DateDecodingStrategy, String, Double)] = [
        (.deferredToDate, "1.5", 978_307_201.5), (.secondsSince1970, "1.5", 1.5), (.millisecondsSince1970, "1500", 1.5),
        (.iso8601, #""2026-11-24T18:30:00Z""#, 1_795_545_000),
        (.iso8601, #""2026-11-24T18:30:00.25Z""#, 1_795_545_000.25),
        (.iso8601, #""2026-11-24T19:30:00+01:00""#, 1_795_545_000),
        (.iso8601, #""2026-11-24T19:30:00+0100""#, 1_795_545_000),
        (.iso8601, #""2026-11-23T24:00:00Z""#, 1_795_478_400), (.iso8601, #""2026-11-24T18:29:60Z""#, 1_795_545_000),
        (.custom { try Date(timeIntervalSince1970: Double(from: $0) * 2) }, "4", 8),
    ]

    @Test(arguments: dates)
    func dateDecodingStrategiesAreApplied(strategy: JSONDecoder.DateDecodingStrategy, text: String, seconds: Double)
        throws
    {
        let values = try Self.both([Date].self, "[\(text)]") {
            ($0.dateDecodingStrategy, $1.dateDecodingStrategy) = (strategy, strategy)
        }
        for value in values { #expect(value == [Date(timeIntervalSince1970: seconds)]) }
    }
}
