// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The names of a query, to find other pairs and items with the same names.
///
/// Names are equal when their bytes are equal. The names of items in percent-encoded texts are decoded as form data:
/// percent-decoded, and "+" is a space. Brackets in such a name select an element of a value (`tags[]`, `near[lat]`),
/// so the item also has the name of the pair with that value (`tags`, `near`).
struct QueryNames {
    private var names: Set<[UInt8]> = []
    /// The names of items, up to their brackets.
    private var outer: Set<[UInt8]> = []
    private var pairs: Set<[UInt8]> = []

    /// Adds the name of a pair, which is not escaped.
    mutating func insert(pair name: String) {
        names.insert(Array(name.utf8))
        pairs.insert(Array(name.utf8))
    }

    /// Adds the name of an item, the text between two "&" of a query as it is sent.
    ///
    /// An empty item has no name.
    mutating func insert(item: String) {
        guard let name = Self.name(of: item) else { return }
        names.insert(name)
        outer.insert(Self.beforeBrackets(name))
    }

    /// Whether an added pair or item has the name of this pair.
    func contains(pair name: String) -> Bool {
        let name = Array(name.utf8)
        return names.contains(name) || outer.contains(name)
    }

    /// Whether an added pair or item has the name of this item.
    func contains(item: String) -> Bool {
        guard let name = Self.name(of: item) else { return false }
        return names.contains(name) || pairs.contains(Self.beforeBrackets(name))
    }

    private static func name(of item: String) -> [UInt8]? {
        item.isEmpty ? nil : item.utf8.prefix { $0 != UInt8(ascii: "=") }.formDecoded
    }

    private static func beforeBrackets(_ name: [UInt8]) -> [UInt8] {
        Array(name.prefix { $0 != UInt8(ascii: "[") })
    }
}
