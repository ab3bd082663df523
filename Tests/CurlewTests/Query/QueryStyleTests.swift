// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing

@testable import Curlew

@Suite("Query styles", .timeLimit(.minutes(5)))
struct QueryStyleTests {
    /// The styles, a value, and its encoding.
    struct Row: Sendable, CustomTestStringConvertible {
        let styles: Request.QueryEncoder
        let value: Request.Query
        let expected: String

        init(_ styles: Request.QueryEncoder, _ value: Request.Query, _ expected: String) {
            (self.styles, self.value, self.expected) = (styles, value, expected)
        }

        var testDescription: String { expected }
    }

    private static let date = Date(timeIntervalSince1970: 1_700_000_000.5)
    private static let nested: Request.Query = ["o": ["l": [["a": 1], ["a": 2]]]]
    private static let nils: Request.Query = ["a": nil, "l": [1, nil] as [Int?], "s": ["n": nil] as [String: Int?]]
    private static let empties: Request.Query = [
        "d": [String: Int](), "l": [Int](), "s": Set<Int>(), "n": ["l": [[Int]()]],
    ]
    private static let ordered: Request.Query = [
        "b": 1, "a": ["z": 2, "y": 3] as Request.Query, "B": 4, "d": ["q": 1, "p": 2],
    ]

    static let rows: [Row] = [
        Row(.init(arrays: .repeated), ["a": [1, 2]], "a=1&a=2"),
        Row(.init(arrays: .indexed), ["a": [1, 2], "s": Set([2, 1])], "a%5B0%5D=1&a%5B1%5D=2&s=1&s=2"),
        Row(.init(arrays: .commaJoined), ["a": ["1", "x,y"], "s": Set([2, 1])], "a=1,x%2Cy&s=1,2"),
        Row(.init(arrays: .commaJoined), ["a": [Int]()], ""),
        Row(.init(arrays: .repeated), nested, "o%5Bl%5D%5Ba%5D=1&o%5Bl%5D%5Ba%5D=2"),
        Row(.init(arrays: .indexed), nested, "o%5Bl%5D%5B0%5D%5Ba%5D=1&o%5Bl%5D%5B1%5D%5Ba%5D=2"),
        Row(.init(arrays: .indexed, nesting: .dots), nested, "o.l%5B0%5D.a=1&o.l%5B1%5D.a=2"),
        Row(.init(nesting: .dots), nested, "o.l%5B%5D.a=1&o.l%5B%5D.a=2"),
        Row(.init(bools: .literal), ["t": true, "l": [false]], "l%5B%5D=false&t=true"),
        Row(.init(dates: .description), ["d": date], "d=2023-11-14%2022%3A13%3A20%20%2B0000"),
        Row(.init(dates: .description), ["d": Date.distantPast], "d=0001-01-01%2000%3A00%3A00%20%2B0000"),
        Row(.init(dates: .iso8601), ["d": date], "d=2023-11-14T22%3A13%3A20Z"),
        Row(.init(dates: .secondsSince1970), ["d": date], "d=1700000000.5"),
        Row(.init(dates: .secondsSince1970), ["d": Date(timeIntervalSince1970: -1)], "d=-1"),
        Row(.init(dates: .millisecondsSince1970), ["d": date], "d=1700000000500"),
        Row(.init(dates: .millisecondsSince1970), ["d": Date(timeIntervalSince1970: 1.001)], "d=1001"),
        Row(.init(data: .base64URL), ["d": Data([0xFB, 0xFF, 0xFE, 0])], "d=-__-AA"),
        Row(.init(nils: .keyOnly), nils, "a&l%5B%5D=1&l%5B%5D&s%5Bn%5D"),
        Row(.init(nils: .omit), nils, "l%5B%5D=1"),
        Row(.init(nils: .empty), nils, "a=&l%5B%5D=1&l%5B%5D=&s%5Bn%5D="),
        Row(.init(nils: .literal("a b")), nils, "a=a%20b&l%5B%5D=1&l%5B%5D=a%20b&s%5Bn%5D=a%20b"),
        Row(.init(arrays: .commaJoined), nils, "a&l=1,&s%5Bn%5D"),
        Row(.init(arrays: .commaJoined, nils: .omit), nils, "l=1"),
        Row(.init(arrays: .commaJoined, nils: .omit), ["l": [nil] as [Int?]], ""),
        Row(.init(arrays: .commaJoined, nils: .literal("null")), nils, "a=null&l=1,null&s%5Bn%5D=null"),
        Row(.init(spaces: .plus), ["a b": "c d+e", "l": ["x y"]], "a+b=c+d%2Be&l%5B%5D=x+y"),
        Row(.init(arrays: .commaJoined, spaces: .plus), ["l": ["x y", "z"]], "l=x+y,z"),
        Row(.init(order: .sorted), ordered, "B=4&a%5By%5D=3&a%5Bz%5D=2&b=1&d%5Bp%5D=2&d%5Bq%5D=1"),
        Row(.init(order: .asGiven), ordered, "b=1&a%5Bz%5D=2&a%5By%5D=3&B=4&d%5Bp%5D=2&d%5Bq%5D=1"),
        Row(.init(empties: .omit), empties, ""),
        Row(.init(empties: .keyOnly), empties, "d&l&n%5Bl%5D%5B%5D&s"),
    ]

    @Test("RQ-06, RQ-09 to RQ-14, RQ-20", arguments: rows) func stylesOfTheTableAreEncoded(_ row: Row) throws {
        #expect(try row.styles.encode(row.value) == row.expected)
    }

    @Test(
        "RQ-13: names",
        arguments: [
            ("userName", "user_name", "user-name", "userName"),
            ("UserName", "user_name", "user-name", "UserName"),
            ("myURLPath", "my_url_path", "my-url-path", "myURLPath"),
            ("URL", "url", "url", "URL"),
            ("a1B", "a1_b", "a1-b", "a1B"),
            ("user_name", "user_name", "user_name", "userName"),
            ("user-first_NAME", "user-first_name", "user-first_name", "userFirstName"),
            ("_id", "_id", "_id", "_id"),
            ("__user_id", "__user_id", "__user_id", "__userId"),
            ("äÖ", "ä_ö", "ä-ö", "äÖ"),
            ("", "", "", ""), ("_", "_", "_", "_"),
        ])
    func keyStylesConvertNames(_ name: String, _ snake: String, _ kebab: String, _ camel: String) {
        #expect(Request.QueryEncoder.KeyStyle.snakeCase.name(name) == snake)
        #expect(Request.QueryEncoder.KeyStyle.kebabCase.name(name) == kebab)
        #expect(Request.QueryEncoder.KeyStyle.camelCase.name(name) == camel)
        #expect(Request.QueryEncoder.KeyStyle.asIs.name(name) == name)
        #expect(Request.QueryEncoder.KeyStyle.lowercase.name(name) == name.lowercased())
        #expect(Request.QueryEncoder.KeyStyle.uppercase.name(name) == name.uppercased())
    }

    /// The encoder sorts by the changed names.
    @Test func keyStyleAppliesAtEachLevelBeforeSorting() throws {
        let value: Request.Query = ["zA": 1, "z_": 2, "outerOne": ["innerOne": 3]]
        #expect(
            try Request.QueryEncoder(nesting: .dots, keys: .snakeCase).encode(value)
                == "outer_one.inner_one=3&z_=2&z_a=1")
    }

    @Test func stylesAreCodable() throws {
        let all = Request.QueryEncoder(
            arrays: .indexed, nesting: .dots, bools: .literal, dates: .iso8601, data: .base64URL, nils: .literal("-"),
            keys: .kebabCase, spaces: .plus, order: .asGiven, empties: .keyOnly)
        for nils: Request.QueryEncoder.NilStyle in [.keyOnly, .omit, .empty, .literal("null")] {
            var encoder = all
            encoder.nils = nils
            let data = try JSONEncoder().encode(encoder)
            #expect(try JSONDecoder().decode(Request.QueryEncoder.self, from: data) == encoder)
        }
        #expect(try JSONDecoder().decode(Request.QueryEncoder.self, from: Data("{}".utf8)) == Request.QueryEncoder())
        for wrong in [#"{"arrays": "piled"}"#, #"{"nils": {"style": "literal"}}"#, #"{"nils": {"style": "x"}}"#] {
            #expect(throws: DecodingError.self) {
                try JSONDecoder().decode(Request.QueryEncoder.self, from: Data(wrong.utf8))
            }
        }
    }
}
