// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing

@testable import Curlew

@Suite("JSONValue")
struct JSONValueTests {
    private static func decoded(_ text: String) throws -> JSONValue {
        try JSONDecoder().decode(JSONValue.self, from: Data(text.utf8))
    }

    static let texts: [(String, JSONValue)] = [
        ("null", nil), ("true", true), ("false", false), ("0", 0), ("-0", 0), ("17", 17), ("1.5", 1.5), ("1.0", 1),
        ("9223372036854775807", .integer(.max)), ("-9223372036854775808", .integer(.min)),
        ("9223372036854775808", .unsigned(1 << 63)), ("18446744073709551615", .unsigned(.max)),
        ("18446744073709551616", .number(18_446_744_073_709_551_616)), ("1e300", 1e300), ("-2.5e-3", -0.0025),
        ("\"\"", ""), (#""\u00e9\ud83d\ude00\n\/""#, "é😀\n/"), ("[]", []), ("{}", [:]),
        (#"[1,[null],{"a":[{}]}]"#, [1, [nil], ["a": [[:]]]]),
        (#"{"snake_case":{"a_b":1}}"#, ["snake_case": ["a_b": 1]]),
    ]

    @Test(arguments: texts)
    func valuesAreDecoded(text: String, value: JSONValue) throws {
        #expect(try Self.decoded(text) == value)
    }

    @Test func keyStrategiesDoNotChangeNames() throws {
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        let value = try decoder.decode([String: JSONValue].self, from: Data(#"{"a_b":{"c_d":[{"e_f":1}]}}"#.utf8))
        #expect(value == ["a_b": ["c_d": [["e_f": 1]]]])
        let encoder = JSONEncoder()
        encoder.keyEncodingStrategy = .convertToSnakeCase
        #expect(try encoder.encode(JSONValue.object(["aB": ["cD": 1]])) == Data(#"{"aB":{"cD":1}}"#.utf8))
    }

    @Test func valuesWithoutJSONFailWithTheirPath() throws {
        let data = try PropertyListEncoder().encode(["a": [Date(timeIntervalSince1970: 0)]])
        let error = #expect(throws: DecodingError.self) { try PropertyListDecoder().decode(JSONValue.self, from: data) }
        guard case .dataCorrupted(let context)? = error else { throw try #require(error) }
        #expect(context.codingPath.map(\.stringValue).first == "a" && context.codingPath.last?.intValue == 0)
        #expect(throws: DecodingError.self) { try Self.decoded("[1e400]") }
        #expect(throws: EncodingError.self) { try JSONEncoder().encode([JSONValue.number(.infinity)]) }
    }

    static let numbers: [(JSONValue, JSONValue, Bool)] = [
        (.integer(1), .number(1), true), (.integer(1), .unsigned(1), true), (.unsigned(7), .number(7), true),
        (.number(-0.0), .integer(0), true), (.unsigned(1 << 63), .number(9_223_372_036_854_775_808), true),
        (.integer(.max), .number(9_223_372_036_854_775_808), false), (.integer(-1), .unsigned(.max), false),
        (.integer(9_007_199_254_740_993), .number(9_007_199_254_740_992), false), (.number(1.5), .integer(1), false),
        (.number(.nan), .number(.nan), false), (.number(.infinity), .number(.infinity), true),
        (.integer(1), .bool(true), false), (.integer(1), .string("1"), false), (.null, .integer(0), false),
        (.null, .bool(false), false), (.string(""), .null, false), (.array([1]), .array([.number(1)]), true),
        (.object(["a": 1]), .object(["a": .unsigned(1)]), true), (.array([]), .object([:]), false),
    ]

    @Test(arguments: numbers)
    func equalityComparesNumbersByValue(one: JSONValue, other: JSONValue, areEqual: Bool) {
        #expect((one == other) == areEqual && (other == one) == areEqual)
        if areEqual { #expect(one.hashValue == other.hashValue) }
    }

    @Test func differentValuesHashDifferently() {
        let values: [JSONValue] = [nil, true, 1, 1.5, "1", [1], ["a": 1], .unsigned(.max)]
        #expect(Set(values.map(\.hashValue)).count == values.count)
    }

    @Test func accessorsReturnMatchingValues() {
        let value: JSONValue = ["users": [["name": "Ann", "age": 41, "size": 1.7, "ok": true]], "next": nil]
        let user = value["users"]?[0]
        #expect(user?["name"]?.asString == "Ann" && user?["age"]?.asInt == 41 && user?["ok"]?.asBool == true)
        #expect(user?["size"]?.asDouble == 1.7 && user?["age"]?.asDouble == 41)
        #expect(value["users"]?.asArray?.count == 1 && user?.asObject?.count == 4)
        #expect(value["next"]?.isNull == true && value["users"]?.isNull == false && value["none"] == nil)
        #expect(
            value["users"]?[1] == nil && value["users"]?[-1] == nil && value[0] == nil && user?["name"]?["x"] == nil)
        let none: JSONValue = nil
        #expect(none.asBool == nil && none.asInt == nil && none.asDouble == nil && none.asString == nil)
        #expect(none.asArray == nil && none.asObject == nil)
        #expect(JSONValue.number(2).asInt == 2 && JSONValue.number(2.5).asInt == nil)
        #expect(JSONValue.unsigned(.max).asInt == nil && JSONValue.unsigned(5).asInt == 5)
        #expect(JSONValue.unsigned(.max).asDouble == 18_446_744_073_709_551_616)
    }

    // RS-17…RS-19.
    static let nulls: [(JSONValue, JSONValue, JSONValue)] = [
        (["a": nil, "b": 1], ["b": 1], ["b": 1]), ([1, nil, 2], [1, nil, 2], [1, 2]),
        (["a": ["b": nil, "c": [nil, ["d": nil]]]], ["a": ["c": [nil, [:]]]], ["a": ["c": [[:]]]]),
        ([nil, [nil]], [nil, [nil]], [[]]), (nil, nil, nil), ("x", "x", "x"),
        (["a": ["b": nil]], ["a": [:]], ["a": [:]]),
    ]

    @Test(arguments: nulls)
    func nullsAreRemoved(value: JSONValue, fromObjects: JSONValue, fromBoth: JSONValue) {
        #expect(value.removingNulls() == fromObjects)
        #expect(value.removingNulls(from: .objectsAndArrays) == fromBoth)
    }

    static let descriptions: [(JSONValue, String)] = [
        (["b": [1, nil, true], "a": ["x": 1.5], "": false], #"{"":false,"a":{"x":1.5},"b":[1,null,true]}"#),
        ("\"\\\n\r\t\u{1}\u{1F}é/", #""\"\\\n\r\t\u0001\u001fé/""#), (.number(.nan), "null"),
        (.unsigned(.max), "18446744073709551615"),
        (.number(1e300), "1e+300"), ([], "[]"), ([:], "{}"),
    ]

    @Test(arguments: descriptions)
    func descriptionIsSortedJSON(value: JSONValue, text: String) {
        #expect(value.description == text)
    }

    @Test func lastOfDuplicateLiteralKeysIsUsed() {
        #expect(["a": 1, "a": 2] as JSONValue == ["a": 2])
    }

    @Test("Random values survive JSON and their description", arguments: 0..<200 as Range<UInt64>)
    func randomValuesRoundTrip(seed: UInt64) throws {
        var chance = SeededChance(seed)
        let value = JSONValue.random(&chance, depth: 4)
        #expect(try JSONDecoder().decode(JSONValue.self, from: JSONEncoder().encode(value)) == value)
        #expect(try Self.decoded(value.description) == value)
        // The value is in an array, because property lists have no scalars at the top level.
        let list = try PropertyListEncoder().encode(
            [value.removingNulls(from: .objectsAndArrays)].filter { !$0.isNull })
        #expect(throws: Never.self) { try PropertyListDecoder().decode([JSONValue].self, from: list) }
    }
}
