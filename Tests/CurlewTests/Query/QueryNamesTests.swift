// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Curlew

@Suite("Names in encoded and structured queries", .timeLimit(.minutes(5)))
struct QueryNamesTests {
    private static let plain = Request.QueryEncoder(order: .asGiven)

    static let texts: [(String, String, String)] = [
        ("page=1", "page=2", "page=2"), ("a=1&page=1&b", "page=2", "a=1&b&page=2"), ("a=1&a=2", "a", "a"),
        ("a", "a=1", "a=1"), ("%61=1&b=1", "a=2", "b=1&a=2"), ("a=1", "%61=2", "%61=2"),
        ("a+b=1", "a%20b=2", "a%20b=2"),
        ("a%2Bb=1", "a+b=2", "a%2Bb=1&a+b=2"), ("%zz=1&%=1&%4=1", "%zz=2&%4=2", "%=1&%zz=2&%4=2"),
        ("%FF=1", "%FE=2", "%FF=1&%FE=2"), ("ä=1", "%c3%a4=2", "%c3%a4=2"), ("a=b=c", "b=1", "a=b=c&b=1"),
        ("tags%5B%5D=a&tags[]=b", "tags[]=c", "tags[]=c"), ("f[a]=1", "f[b]=2", "f[a]=1&f[b]=2"),
        ("a=1&&b=1&", "&b=2", "a=1&&&&b=2"), ("=1", "=2", "=2"), ("A=1", "a=2", "A=1&a=2"), ("", "a=1", "a=1"),
    ]

    @Test("Items of encoded texts are merged by name and otherwise kept", arguments: texts)
    func encodedTextsMergeByName(_ first: String, _ second: String, _ expected: String) throws {
        let merged = Request.Query.percentEncoded(first).merging(.percentEncoded(second))
        #expect(try merged.text(Self.plain) == expected)
    }

    static let pairs: [(String, [String], String, String)] = [
        // A text, names of a literal, the text merged with the literal, the literal merged with the text.
        ("page=1", ["page"], "page=0", "page=1"), ("z=1&page=1", ["page", "b"], "page=0&b=0&z=1", "b=0&z=1&page=1"),
        ("a%20b=1&c+d", ["a b", "c d"], "a%20b=0&c%20d=0", "a%20b=1&c+d"),
        ("t%5B%5D=1&t[]=2&n[a][b]=3", ["t", "n"], "t=0&n=0", "t%5B%5D=1&t[]=2&n[a][b]=3"),
        ("f[a]=1", ["f[b]", "f"], "f%5Bb%5D=0&f=0", "f%5Bb%5D=0&f[a]=1"),
        ("f[a]=1", ["f[a]"], "f%5Ba%5D=0", "f[a]=1"), ("f=1", ["f[a]"], "f%5Ba%5D=0&f=1", "f%5Ba%5D=0&f=1"),
        ("&", [""], "=0&&", "=0&&"), ("e%CC%81=1", ["é"], "%C3%A9=0&e%CC%81=1", "%C3%A9=0&e%CC%81=1"),
    ]

    @Test("Pairs and items of texts replace each other, lists and dictionaries as a whole", arguments: pairs)
    func pairsAndEncodedTextsReplaceEachOther(_ text: String, _ names: [String], _ after: String, _ before: String)
        throws
    {
        var literal = Request.Query()
        for name in names { literal.append(name, 0) }
        #expect(try Request.Query.percentEncoded(text).merging(literal).text(Self.plain) == after)
        #expect(try literal.merging(.percentEncoded(text)).text(Self.plain) == before)
    }

    static let written: [Request.Query] = [
        ["page": 2], ["tags": ["x"]], ["tags": ["x", "y"], "near": ["lat": 1]], ["a b": nil], ["other": 1], [:],
        ["page": 1, "page": 2, "é+&=[": 3],
    ]

    @Test("A query that was encoded and parsed merges like the original", arguments: written.indices, [true, false])
    func parsedQueryMergesLikeTheOriginal(_ index: Int, isForm: Bool) throws {
        let encoder = Request.QueryEncoder(spaces: isForm ? .plus : .percent)
        let literal: Request.Query = [
            "page": 1, "tags": ["a", "b"], "near": ["lat": 48.0, "lon": 16.0], "a b": 1, "é+&=[": 2,
        ]
        let read = Request.Query.percentEncoded(try literal.text(encoder))
        #expect(try read.text(encoder) == literal.text(encoder))
        let other = Self.written[index]
        func items(_ query: Request.Query) throws -> [Substring] {
            try query.text(encoder).split(separator: "&").sorted()
        }
        #expect(try items(read.merging(other)) == items(literal.merging(other)))
        let readOther = Request.Query.percentEncoded(try other.text(encoder))
        #expect(try items(literal.merging(readOther)) == items(literal.merging(other)))
    }

    static let removals: [(String, String)] = [
        ("", "page=1&tags%5B%5D=a&a%20b=1&z=1&page=3&&y%5B0%5D"), ("page=2", "tags%5B%5D=a&a%20b=1&z=1&&y%5B0%5D"),
        ("q&page", "tags%5B%5D=a&a%20b=1&z=1&&y%5B0%5D"), ("tags[]=b&a+b", "page=1&z=1&page=3&&y%5B0%5D"),
        ("&", "page=1&tags%5B%5D=a&a%20b=1&z=1&page=3&&y%5B0%5D"),
        ("y%5b0%5d=&z", "page=1&tags%5B%5D=a&a%20b=1&z=1&page=3&"),
    ]

    @Test("Names in the query of a path are removed, except those that structures encode", arguments: removals)
    func namesOfAPathAreRemoved(_ path: String, _ expected: String) throws {
        var query = Request.Query.percentEncoded("page=3&&y%5B0%5D")
        query.append("page", 1)
        query.append("tags", ["a"])
        query.append("a b", 1)
        query = query.merging(.encoding(["z": 1]))
        #expect(try query.removing(namesIn: path).text(Self.plain) == expected)
    }
}
