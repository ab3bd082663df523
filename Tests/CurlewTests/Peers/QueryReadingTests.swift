// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import FoundationEssentials
import Testing

/// Queries from a table and random queries, with their expected names and values.
private enum QueryScene {
    typealias Pairs = [[String]]

    /// Random queries, including null values, with their expected names and values.
    static func atRandom(_ encoder: Request.QueryEncoder) throws -> (queries: [String], expected: [Pairs]) {
        var chance = SeededChance(20)
        var (queries, expected): ([String], [Pairs]) = ([], [])
        for _ in 0..<500 {
            let value = QueryValue.random(&chance, depth: 4, listsOfTextsOnly: false)
            queries.append(try encoder.encode(value))
            expected.append(value.pairs(named: nil))
        }
        return (queries, expected)
    }

    /// Queries and their expected pairs in order.
    static let table: [(Request.Query, Pairs)] = [
        ([:], []),
        (["a": 1, "b": "x y+z"], [["a", "1"], ["b", "x y+z"]]),
        (["a": nil, "b": ""], [["a", ""], ["b", ""]]),
        (["a&b=c": "d&e=f;g", "#?/": "%41"], [["#?/", "%41"], ["a&b=c", "d&e=f;g"]]),
        (["ключ": "👴🏻\r\n\t\u{0}"], [["ключ", "👴🏻\r\n\t\u{0}"]]),
        (["a": [true, false], "s": Set(["y", "x"])], [["a[]", "1"], ["a[]", "0"], ["s", "x"], ["s", "y"]]),
        (["o": ["l": [["k": 1.5]]]], [["o[l][][k]", "1.5"]]),
        (["d": Data([0xFB, 0xEF, 0xBE])], [["d", "++++"]]),
    ]

    static func ofTable(_ encoder: Request.QueryEncoder) throws -> (queries: [String], expected: [Pairs]) {
        (try table.map { try $0.0.text(encoder) }, table.map(\.1))
    }

    static let encoders = [Request.QueryEncoder(), Request.QueryEncoder(spaces: .plus)]
}

extension QueryValue {
    /// Returns the pairs of the value in bracket notation, sorted by the bytes of the names.
    func pairs(named name: String?) -> [[String]] {
        switch self {
        case .null: [[name ?? "", ""]]
        case .text(let text): [[name ?? "", text]]
        case .list(let elements): elements.flatMap { $0.pairs(named: (name ?? "") + "[]") }
        case .keyed(let members):
            members.sorted { Array($0.key.utf8).lexicographicallyPrecedes(Array($1.key.utf8)) }
                .flatMap { inner, value in value.pairs(named: name.map { "\($0)[\(inner)]" } ?? inner) }
        }
    }
}

@Suite(.enabledIfInstalled(.python3), .peer(.python3), .timeLimit(.minutes(5)))
struct PythonQueryTests {
    @Test func queriesOfTheTableAreReadEqually() async throws {
        for encoder in QueryScene.encoders {
            let (queries, expected) = try QueryScene.ofTable(encoder)
            #expect(try await QueryReading.byPython(queries) == expected)
        }
    }

    @Test func randomQueriesAreReadEqually() async throws {
        for encoder in QueryScene.encoders {
            let (queries, expected) = try QueryScene.atRandom(encoder)
            #expect(try await QueryReading.byPython(queries) == expected)
        }
    }
}

@Suite(.enabledIfInstalled(.werkzeug), .peer(.werkzeug), .timeLimit(.minutes(5)))
struct WerkzeugQueryTests {
    /// Groups the pairs by name, as Werkzeug does.
    static func grouped(_ pairs: [[String]]) -> [[String]] {
        var names: [String] = []
        for pair in pairs where !names.contains(where: { $0.utf8.elementsEqual(pair[0].utf8) }) {
            names.append(pair[0])
        }
        return names.flatMap { name in pairs.filter { $0[0].utf8.elementsEqual(name.utf8) } }
    }

    @Test func queriesAndFormsOfTheTableAreReadEqually() async throws {
        for encoder in QueryScene.encoders {
            let (queries, expected) = try QueryScene.ofTable(encoder)
            #expect(try await QueryReading.byWerkzeug(queries) == expected.map(Self.grouped))
        }
    }

    @Test func randomQueriesAndFormsAreReadEqually() async throws {
        for encoder in QueryScene.encoders {
            let (queries, expected) = try QueryScene.atRandom(encoder)
            #expect(try await QueryReading.byWerkzeug(queries) == expected.map(Self.grouped))
        }
    }
}
