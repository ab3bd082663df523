// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// A value of a query, for tests that create random values and decode them again.
enum QueryValue: Encodable, Hashable, Sendable {
    case null
    case text(String)
    case list([QueryValue])
    case keyed([String: QueryValue])

    func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch self {
        case .null: try container.encodeNil()
        case .text(let text): try container.encode(text)
        case .list(let elements): try container.encode(elements)
        case .keyed(let members): try container.encode(members)
        }
    }

    /// Returns a random keyed value, at most `depth` levels deep.
    ///
    /// Names begin with a letter and have no brackets, since a reader could not tell them from the brackets of nesting.
    static func random(_ chance: inout SeededChance, depth: Int, listsOfTextsOnly: Bool) -> QueryValue {
        var members: [String: QueryValue] = [:]
        for _ in 0..<Int.random(in: 1...3, using: &chance) {
            let name = "k" + text(&chance, from: alphabet.filter { $0 != "[" && $0 != "]" })
            members[name] = element(&chance, depth: depth - 1, listsOfTextsOnly)
        }
        return .keyed(members)
    }

    private static func element(_ chance: inout SeededChance, depth: Int, _ listsOfTextsOnly: Bool) -> QueryValue {
        switch Int.random(in: 0..<(depth > 0 ? 5 : 3), using: &chance) {
        case 0: .null
        case 1, 2: .text(text(&chance, from: alphabet))
        case 3: random(&chance, depth: depth, listsOfTextsOnly: listsOfTextsOnly)
        default:
            .list(
                (0..<Int.random(in: 1...4, using: &chance)).map { _ in
                    element(&chance, depth: listsOfTextsOnly ? 0 : depth - 1, listsOfTextsOnly)
                })
        }
    }

    private static func text(_ chance: inout SeededChance, from alphabet: [Character]) -> String {
        String((0..<Int.random(in: 0...6, using: &chance)).map { _ in alphabet.randomElement(using: &chance) ?? "a" })
    }

    private static let alphabet = Array("abZ09-._~/?:#[]@!$&'()*+,;=%\" \n\u{0}\\é漢👴🏻e\u{301}")
}
