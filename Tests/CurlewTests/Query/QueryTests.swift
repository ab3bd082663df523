// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing

@testable import Curlew

@Suite("Queries", .timeLimit(.minutes(5)))
struct QueryTests {
    private struct Search: Encodable, Sendable { var text = "x y", page = 2 }

    private func text(_ query: Request.Query, _ order: Request.QueryEncoder.OrderStyle = .asGiven) throws -> String {
        try query.text(Request.QueryEncoder(order: order))
    }

    @Test func queryLiteralsAcceptVariablesOfAnyType() throws {
        let name = "tea"
        let page: Int? = 2
        let none: Int? = nil
        let query: Request.Query = ["q": name, "page": page, "none": none, "nil": nil, "tags": ["a"], "on": true]
        #expect(try text(query, .sorted) == "nil&none&on=1&page=2&q=tea&tags%5B%5D=a")
    }

    @Test func namesMayRepeatAndKeepTheirOrder() throws {
        var query: Request.Query = ["b": 2, "a": 2, "b": 1]
        query.append("a", 1)
        query.append("c", nil)
        #expect(try text(query) == "b=2&a=2&b=1&a=1&c")
        #expect(try text(query, .sorted) == "a=2&a=1&b=2&b=1&c")
    }

    @Test func structuresAndPairsAreSortedTogether() throws {
        let query = Request.Query.encoding(Search()).merging(["q": 1, "a": 0])
        #expect(try text(query, .sorted) == "a=0&page=2&q=1&text=x%20y")
        #expect(try text(query) == "text=x%20y&page=2&q=1&a=0")
        #expect(try text(.encoding(query).merging(["z": 1])) == "text=x%20y&page=2&q=1&a=0&z=1")
    }

    @Test(
        "RQ-16: percent-encoded queries",
        arguments: [
            ("a=1&b", "a=1&b"), ("a%2Fb=%zz", "a%2Fb=%zz"), ("a b#c", "a%20b%23c"), ("ä\r\n\u{7F}", "%C3%A4%0D%0A%7F"),
            ("!\"$&'()*+,-./:;<=>?@[\\]^_`{|}~", "!\"$&'()*+,-./:;<=>?@[\\]^_`{|}~"), ("", ""),
        ])
    func percentEncodedQueriesAreKept(_ given: String, _ expected: String) throws {
        #expect(try text(.percentEncoded(given)) == expected)
        #expect(try Request.QueryEncoder().encode(Request.Query.percentEncoded(given)) == expected)
        #expect(Request.Query.percentEncoded(given).isEmpty == expected.isEmpty)
    }

    @Test func percentEncodedTextsComeLast() throws {
        let query = Request.Query.percentEncoded("z=1").merging(["a": 1]).merging(.percentEncoded("y")).merging(["b": 2]
        )
        #expect(try text(query) == "a=1&b=2&z=1&y")
        #expect(try text(.encoding(query)) == "a=1&b=2&z=1&y")
    }

    @Test func mergedNamesReplaceEarlierOnes() throws {
        let first: Request.Query = ["a": 1, "b": 2, "a": 3, "c": 4]
        #expect(try text(first.merging(["a": 5, "d": 6, "a": 7])) == "b=2&c=4&a=5&d=6&a=7")
        #expect(try text(first.merging(["c": nil])) == "a=1&b=2&a=3&c")
        #expect(try text(first.merging([:])) == text(first))
        #expect(try text(Request.Query().merging(first)) == text(first))
        #expect(try text((["page": 1] as Request.Query).merging(.encoding(Search()))) == "page=1&text=x%20y&page=2")
    }

    @Test func emptyQueriesAreRecognised() throws {
        #expect(Request.Query().isEmpty && ([:] as Request.Query).isEmpty && Request.Query.percentEncoded("").isEmpty)
        #expect(!Request.Query.encoding([String: Int]()).isEmpty && !(["a": nil] as Request.Query).isEmpty)
        #expect(try text(.encoding([String: Int]())) == "" && text(Request.Query()) == "")
        #expect(try text(Request.Query.encoding([String: Int]()).merging(.percentEncoded("a"))) == "a")
    }

    @Test func queryIsEncodedAsAnObject() throws {
        let query: Request.Query = ["a": 1, "n": nil, "o": ["b": "x"] as Request.Query]
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        #expect(try String(decoding: encoder.encode(query), as: UTF8.self) == #"{"a":1,"n":null,"o":{"b":"x"}}"#)
        let both = Request.Query.encoding(Search()).merging(["z": true])
        #expect(try String(decoding: encoder.encode(both), as: UTF8.self) == #"{"page":2,"text":"x y","z":true}"#)
        let raw = Request.Query.percentEncoded("a=1")
        #expect(throws: EncodingError.self) { try encoder.encode(raw) }
        #expect(throws: EncodingError.self) { try Request.QueryEncoder().encode(["q": raw]) }
        #expect(throws: EncodingError.self) { try text(["q": raw]) }
    }

    @Test func descriptionsShowNoValues() {
        var query: Request.Query = ["user": "secret", "none": nil, "\u{1B}[0m": 1]
        query = query.merging(.encoding(Search(text: "secret"))).merging(.percentEncoded("token=secret&flag"))
        let shown = #"user=<redacted>&none&\u{1B}[0m=<redacted>&Search=<redacted>&token=<redacted>&<redacted>"#
        #expect("\(query)" == shown)
        #expect("\(Request.Query())" == "")
        var dumped = ""
        dump(query, to: &dumped)
        #expect(!dumped.contains("secret") && !String(reflecting: query).contains("secret"))
    }

    /// As JSON, a value alone may have any form; merged with pairs, it needs names.
    @Test func queriesAsJSONMergeOnlyNamedValues() throws {
        #expect(try String(decoding: JSONEncoder().encode(Request.Query.encoding([1])), as: UTF8.self) == "[1]")
        let mixed = Request.Query.encoding(["a": 1]).merging(["b": 2])
        let read = try JSONDecoder().decode([String: Int].self, from: JSONEncoder().encode(mixed))
        #expect(read == ["a": 1, "b": 2])
        #expect(throws: EncodingError.self) { try JSONEncoder().encode(Request.Query.encoding([1]).merging(["b": 2])) }
    }
}
