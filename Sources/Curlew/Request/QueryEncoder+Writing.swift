// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension QueryEncoder {
    /// The names and values of a value that has names; none for nil.
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

    /// Names and values as they are sent.
    /// - Throws: See ``encode(_:)``.
    func text(of entries: [QueryTree.Entry]) throws -> String {
        var items: [String] = []
        for (name, tree) in ordered(entries) { try write(tree, name, to: &items) }
        return items.joined(separator: "&")
    }

    private func ordered(_ entries: [QueryTree.Entry]) -> [QueryTree.Entry] {
        guard order == .sorted else { return entries }
        // Equal names keep their order, which the library's sorting does not promise.
        return entries.enumerated().sorted { left, right in
            let (first, second) = (left.element.name.utf8, right.element.name.utf8)
            return first.lexicographicallyPrecedes(second)
                || (left.offset < right.offset && first.elementsEqual(second))
        }.map(\.element)
    }

    private func write(_ tree: QueryTree, _ name: String, to items: inout [String]) throws {
        switch tree.kind {
        case .mixed: throw Self.mixed(tree)
        case .text: items.append(escaped(name) + "=" + escaped(tree.text))
        case .null: writeNil(name, to: &items)
        case .nothing, .keyed, .list, .set:
            if tree.entries.isEmpty {
                if empties == .keyOnly { items.append(escaped(name)) }
            } else if tree.kind == .keyed {
                for (inner, tree) in ordered(tree.entries) { try write(tree, nested(inner, in: name), to: &items) }
            } else if arrays == .commaJoined {
                try writeJoined(tree, name, to: &items)
            } else if tree.kind == .set {
                try writeSet(tree, name, to: &items)
            } else {
                for (index, entry) in tree.entries.enumerated() {
                    try write(entry.tree, element(index, of: name), to: &items)
                }
            }
        }
    }

    private func writeNil(_ name: String, to items: inout [String]) {
        switch nils {
        case .keyOnly: items.append(escaped(name))
        case .omit: break
        case .empty: items.append(escaped(name) + "=")
        case .literal(let text): items.append(escaped(name) + "=" + escaped(text))
        }
    }

    private func writeSet(_ tree: QueryTree, _ name: String, to items: inout [String]) throws {
        let elements = try tree.entries.map { entry in
            var own: [String] = []
            try write(entry.tree, name, to: &own)
            return (text: entry.tree.text, items: own)
        }
        // By the plain text, which percent-encoding would bring out of order; elements with names inside by the items.
        let sorted = elements.sorted { left, right in
            left.text == right.text
                ? left.items.lexicographicallyPrecedes(right.items)
                : left.text.utf8.lexicographicallyPrecedes(right.text.utf8)
        }
        for element in sorted { items += element.items }
    }

    private func writeJoined(_ tree: QueryTree, _ name: String, to items: inout [String]) throws {
        var texts: [String] = []
        for (_, element) in tree.entries {
            switch (element.kind, nils) {
            case (.text, _): texts.append(element.text)
            case (.null, .omit): break
            case (.null, .literal(let text)): texts.append(text)
            case (.null, _): texts.append("")
            default:
                throw EncodingError.inQuery(
                    QueryEncoder.self, at: element.path, "Arrays that are joined by commas hold plain values only.")
            }
        }
        if tree.kind == .set { texts.sort { $0.utf8.lexicographicallyPrecedes($1.utf8) } }
        if texts.isEmpty { return }
        items.append(escaped(name) + "=" + texts.map(escaped).joined(separator: ","))
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
        .inQuery(QueryEncoder.self, at: tree.path, "A value encoded itself in two ways at once.")
    }
}
