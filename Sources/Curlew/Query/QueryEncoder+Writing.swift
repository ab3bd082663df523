// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension Request.QueryEncoder {
    /// Returns the names and values of a keyed value; an empty list for nil.
    /// - Throws: See ``encode(_:)``.
    func entries<T: Encodable>(of value: T) throws -> [QueryTree.Entry] {
        let root = QueryTree(path: [])
        try QueryValueEncoder(tree: root, styles: self).put(value)
        switch root.kind {
        case .keyed, .nothing, .null: return root.entries
        case .mixed: throw Self.mixed(root)
        case .text, .list, .set:
            throw EncodingError.inQuery(
                T.self, at: [],
                "A query has names: encode a structure or a dictionary, and put lists and texts into one.")
        }
    }

    /// Returns the names and values as they are sent.
    /// - Throws: See ``encode(_:)``.
    func text(of entries: [QueryTree.Entry]) throws -> String {
        try pairs(of: entries).map(text).joined(separator: "&")
    }

    /// Returns the names and values before they are percent-encoded, for other formats that follow the rules of
    /// queries.
    /// - Throws: See ``encode(_:)``.
    func pairs(of value: some Encodable) throws -> [Pair] {
        if let query = value as? Request.Query { return try query.pairs(self) }
        return try pairs(of: entries(of: value))
    }

    /// Returns the names and values before they are percent-encoded.
    /// - Throws: See ``encode(_:)``.
    func pairs(of entries: [QueryTree.Entry]) throws -> [Pair] {
        var pairs: [Pair] = []
        for (name, tree) in ordered(entries) { try write(tree, name, to: &pairs) }
        return pairs
    }

    /// A name and its value.
    struct Pair {
        var name: String
        /// The texts to join by commas, usually one; nil for a name alone.
        var values: [String]?
        /// The bytes of the value, when the value is `Data`.
        var bytes: [UInt8]?
    }

    private func text(_ pair: Pair) -> String {
        guard let values = pair.values else { return escaped(pair.name) }
        return escaped(pair.name) + "=" + values.map(escaped).joined(separator: ",")
    }

    private func ordered(_ entries: [QueryTree.Entry]) -> [QueryTree.Entry] {
        guard order == .sorted else { return entries }
        // Equal names keep their order; the standard library does not document its sort as stable.
        return entries.enumerated().sorted { left, right in
            let (first, second) = (left.element.name.utf8, right.element.name.utf8)
            return first.lexicographicallyPrecedes(second)
                || (left.offset < right.offset && first.elementsEqual(second))
        }.map(\.element)
    }

    private func write(_ tree: QueryTree, _ name: String, to pairs: inout [Pair]) throws {
        switch tree.kind {
        case .mixed: throw Self.mixed(tree)
        case .text: pairs.append(Pair(name: name, values: [tree.text], bytes: tree.bytes))
        case .null: writeNil(name, to: &pairs)
        case .nothing, .keyed, .list, .set:
            if tree.entries.isEmpty {
                if empties == .keyOnly { pairs.append(Pair(name: name)) }
            } else if tree.kind == .keyed {
                for (inner, tree) in ordered(tree.entries) { try write(tree, nested(inner, in: name), to: &pairs) }
            } else if arrays == .commaJoined {
                try writeJoined(tree, name, to: &pairs)
            } else if tree.kind == .set {
                try writeSet(tree, name, to: &pairs)
            } else {
                for (index, entry) in tree.entries.enumerated() {
                    try write(entry.tree, element(index, of: name), to: &pairs)
                }
            }
        }
    }

    private func writeNil(_ name: String, to pairs: inout [Pair]) {
        switch nils {
        case .keyOnly: pairs.append(Pair(name: name))
        case .omit: break
        case .empty: pairs.append(Pair(name: name, values: [""]))
        case .literal(let text): pairs.append(Pair(name: name, values: [text]))
        }
    }

    private func writeSet(_ tree: QueryTree, _ name: String, to pairs: inout [Pair]) throws {
        let elements = try tree.entries.map { entry in
            var own: [Pair] = []
            try write(entry.tree, name, to: &own)
            return (text: entry.tree.text, pairs: own, items: own.map(text))
        }
        // Sort by the plain text, since percent-encoding changes the order; sort elements with names inside by the
        // items.
        let sorted = elements.sorted { left, right in
            left.text == right.text
                ? left.items.lexicographicallyPrecedes(right.items)
                : left.text.utf8.lexicographicallyPrecedes(right.text.utf8)
        }
        for element in sorted { pairs += element.pairs }
    }

    private func writeJoined(_ tree: QueryTree, _ name: String, to pairs: inout [Pair]) throws {
        var texts: [String] = []
        for (_, element) in tree.entries {
            switch (element.kind, nils) {
            case (.text, _): texts.append(element.text)
            case (.null, .omit): break
            case (.null, .literal(let text)): texts.append(text)
            case (.null, _): texts.append("")
            default:
                throw EncodingError.inQuery(
                    Request.QueryEncoder.self, at: element.path,
                    "Arrays that are joined by commas hold plain values only.")
            }
        }
        if tree.kind == .set { texts.sort { $0.utf8.lexicographicallyPrecedes($1.utf8) } }
        if texts.isEmpty { return }
        pairs.append(Pair(name: name, values: texts))
    }

    private func nested(_ inner: String, in outer: String) -> String {
        switch nesting {
        case .brackets: "\(outer)[\(inner)]"
        case .dots: "\(outer).\(inner)"
        }
    }

    private func element(_ index: Int, of name: String) -> String {
        switch arrays {
        case .brackets: "\(name)[]"
        case .indexed: "\(name)[\(index)]"
        case .repeated, .commaJoined: name
        }
    }

    private func escaped(_ text: String) -> String { Self.escape(text, spaces: spaces) }

    private static func mixed(_ tree: QueryTree) -> EncodingError {
        .inQuery(Request.QueryEncoder.self, at: tree.path, "A value encoded itself in two ways at once.")
    }
}
