// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Names of a query, to find what else has one of them.
///
/// Names are equal when their bytes are. Items of texts are read as forms are: percent-decoded, and "+" as a space. What
/// is in brackets there names a place inside a value (`tags[]`, `near[lat]`), and so the pair of that value (`tags`).
struct QueryNames {
    private var names: Set<[UInt8]> = []
    /// Of items: the names before their brackets.
    private var outer: Set<[UInt8]> = []
    private var pairs: Set<[UInt8]> = []

    /// Adds the name of a pair, which is not escaped.
    mutating func insert(pair name: String) {
        names.insert(Array(name.utf8))
        pairs.insert(Array(name.utf8))
    }

    /// Adds the name of an item: what stands between two "&" of a query as it is sent.
    ///
    /// An empty item has no name.
    mutating func insert(item: String) {
        guard let name = Self.name(of: item) else { return }
        names.insert(name)
        outer.insert(Self.beforeBrackets(name))
    }

    /// Whether something has the name of this pair.
    func contains(pair name: String) -> Bool {
        let name = Array(name.utf8)
        return names.contains(name) || outer.contains(name)
    }

    /// Whether something has the name of this item.
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
