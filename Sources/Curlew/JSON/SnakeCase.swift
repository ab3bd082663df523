// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Names in snake case and in camel case, by the rules of Foundation's coders.
enum SnakeCase {
    /// Converts `first_name` to `firstName`.
    ///
    /// Leading and trailing underscores stay; a name without inner underscores is unchanged.
    static func camel(_ name: String) -> String {
        guard let first = name.firstIndex(where: { $0 != "_" }), let last = name.lastIndex(where: { $0 != "_" }) else {
            return name
        }
        let parts = name[first...last].split(separator: "_")
        let core =
            parts.count == 1
            ? String(name[first...last])
            : parts[0].lowercased() + parts.dropFirst().map { $0.foundationCapitalized }.joined()
        return name[..<first] + core + name[name.index(after: last)...]
    }

    /// Converts `firstName` to `first_name`.
    ///
    /// A run of capitals is one word, except that its last letter begins the next word: `myURLParser` →
    /// `my_url_parser`.
    static func snake(_ name: String) -> String {
        guard let first = name.indices.first else { return name }
        var words: [Range<String.Index>] = []
        var start = first
        var search = name.index(after: first)..<name.endIndex
        while let upper = name[search].firstIndex(where: \.isUppercase) {
            words.append(start..<upper)
            let rest = upper..<search.upperBound
            guard let lower = name[rest].firstIndex(where: \.isLowercase) else {
                start = rest.lowerBound
                break
            }
            let next = name.index(after: upper)
            if lower == next {
                start = upper
            } else {
                let before = name.index(before: lower)
                words.append(upper..<before)
                start = before
            }
            search = lower..<search.upperBound
        }
        words.append(start..<search.upperBound)
        return words.map { name[$0].lowercased() }.joined(separator: "_")
    }
}

extension Substring {
    /// The first letter in upper case, the others in lower case, as Foundation's `capitalized` has it.
    fileprivate var foundationCapitalized: String { prefix(1).uppercased() + dropFirst().lowercased() }
}
