// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Curlew

/// `No-Vary-Search` (draft-ietf-httpbis-no-vary-search), as tables.
struct NoVarySearchTests {
    /// A field, two queries, and whether it makes them equal.
    struct Row: Sendable, CustomTestStringConvertible {
        let name: String
        let field: String
        let first: String
        let second: String
        let isEqual: Bool

        init(_ name: String, _ field: String, _ first: String, _ second: String, _ isEqual: Bool) {
            (self.name, self.field, self.isEqual) = (name, field, isEqual)
            (self.first, self.second) = ("https://example.com/a?" + first, "https://example.com/a?" + second)
        }

        var testDescription: String { name }
    }

    @Test(arguments: rows) func queriesAreCompared(_ row: Row) throws {
        let rule = try #require(NoVarySearch(of: ["No-Vary-Search": row.field]))
        #expect(rule.equates(row.first, row.second) == row.isEqual)
        #expect(rule.equates(row.second, row.first) == row.isEqual)
    }

    /// With an invalid field, and with one that ignores nothing, every difference counts (§5).
    @Test(arguments: [
        "", "params=?0", "params=()", "key-order=?0", "params=?0, key-order=?0", "x", "params=1", "params=a",
        "params=\"a\"", "params=(a)", "params=(1)", "params=(\"a\" b)", "except=(\"a\")", "params=?0, except=(\"a\")",
        "params=(\"b\"), except=(\"a\")", "params, except", "params, except=\"a\"", "params, except=(a)",
        "params, key-order=1", "key-order=()", "key-order=\"a\"", "params=(\"a\"", "params,", "Params",
    ])
    func invalidFieldIsNoRule(_ field: String) { #expect(NoVarySearch(of: ["No-Vary-Search": field]) == nil) }

    @Test func responseWithoutTheFieldHasNoRule() { #expect(NoVarySearch(of: [.vary: "Accept"]) == nil) }

    @Test func severalFieldsFormOneRule() throws {
        let fields: HeaderFields = ["No-Vary-Search": "params", "No-Vary-Search": "except=(\"a\")"]
        let rule = try #require(NoVarySearch(of: fields))
        #expect(rule.equates("https://example.com/?a=1&b", "https://example.com/?a=1"))
        #expect(!rule.equates("https://example.com/?a=1&b", "https://example.com/?b"))
    }

    @Test func otherPartsOfTheURLCount() throws {
        let rule = try #require(NoVarySearch(of: ["No-Vary-Search": "params"]))
        #expect(rule.equates("https://example.com/a", "https://example.com/a?b=1"))
        #expect(!rule.equates("https://example.com/a?b=1", "https://example.com/b?b=1"))
        #expect(!rule.equates("https://example.com/a?b=1", "http://example.com/a?b=1"))
        #expect(!rule.equates("https://example.com/a?b=1", "https://example.org/a?b=1"))
    }

    static let rows: [Row] = [
        Row("§2 params ignores all parameters", "params", "a=1", "b=2&c", true),
        Row("§2 params ignores all parameters of no query", "params", "", "b=2", true),
        Row("§2 params true", "params=?1", "a=1", "a=2", true),
        Row("§2 params with names", "params=(\"a\")", "a=1&b=2", "b=2&a=3", true),
        Row("§2 a name that is missing", "params=(\"a\")", "b=2", "b=2&a=3", true),
        Row("§2 other names count", "params=(\"a\")", "a=1&b=2", "a=1&b=3", false),
        Row("§2 several names", "params=(\"a\" \"b\")", "a=1&b=2&c=3", "c=3", true),
        Row("§2 a repeated name", "params=(\"a\")", "a=1&a=2&b", "b", true),
        Row("§2 names match case", "params=(\"a\")", "A=1", "A=2", false),
        Row("§2 except", "params, except=(\"a\")", "a=1&b=2", "c=4&a=1", true),
        Row("§2 an excepted parameter differs", "params, except=(\"a\")", "a=1&b=2", "a=2&b=2", false),
        Row("§2 an excepted parameter is missing", "params, except=(\"a\")", "a=1&b=2", "b=2", false),
        Row("§2 excepted parameters in another order", "params, except=(\"a\" \"b\")", "a=1&b=2", "b=2&a=1", false),
        Row(
            "§2 excepted parameters in any order", "key-order, params, except=(\"a\" \"b\")", "a=1&b=2", "b=2&a=1", true
        ),
        Row("§2 key-order", "key-order", "a=1&b=2", "b=2&a=1", true),
        Row("§2 key-order true", "key-order=?1", "a=1&b=2", "b=2&a=1", true),
        Row("§2 key-order keeps the order of equal names", "key-order", "a=1&a=2", "a=2&a=1", false),
        Row("§2 key-order with equal names among others", "key-order", "a=1&b=3&a=2", "b=3&a=1&a=2", true),
        Row("§2 key-order keeps values", "key-order", "a=1&b=2", "a=2&b=1", false),
        Row("§2 key-order and params", "key-order, params=(\"c\")", "a=1&c=9&b=2", "b=2&a=1", true),
        Row("§2 the order counts otherwise", "params=(\"c\")", "a=1&b=2", "b=2&a=1", false),
        Row("§2 params false with key-order", "params=?0, key-order", "a=1&b=2", "b=2&a=1", true),
        Row("§2 key-order false with params", "params, key-order=?0", "a=1", "b=1", true),
        Row("§2 an empty list with key-order", "params=(), key-order", "a=1&b=2", "b=2&a=1", true),
        Row("§2 unknown keys are ignored", "params=(\"a\"), x=1", "a=1", "a=2", true),
        Row("§6 an equal query", "params=(\"c\")", "a=1&b=2", "a=1&b=2", true),
        Row("§6 a plus sign is a space", "params=(\"c\")", "a=x+y", "a=x%20y", true),
        Row("§6 escapes are decoded", "params=(\"c\")", "%61=%31", "a=1", true),
        Row("§6 escapes of any case", "params=(\"c\")", "a=%c3%bc", "a=%C3%BC", true),
        Row("§6 a percent sign alone stays", "params=(\"c\")", "a=%", "a=%25", true),
        Row("§6 an invalid escape stays", "params=(\"c\")", "a=%zz", "a=%25zz", true),
        Row("§6 names of the field are decoded", "params=(\"%61+b\")", "a+b=1", "a%20b=2", true),
        Row("§6 empty parameters do not count", "params=(\"c\")", "&&a=1&", "a=1", true),
        Row("§6 a value may be missing", "params=(\"c\")", "a", "a=", true),
        Row("§6 the first equals sign ends the name", "params=(\"c\")", "a=1=2", "a=1%3D2", true),
        Row("§6 a name may be empty", "params=(\"\")", "=1&b", "b", true),
        Row("§6 values match case", "params=(\"c\")", "a=x", "a=X", false),
        Row("§6 canonically equal values are different", "params=(\"c\")", "a=%C3%A9", "a=e%CC%81", false),
    ]
}
