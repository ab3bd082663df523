// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// An ordered list that allocates nothing while it has at most one element.
///
/// The type belongs to the module that uses it, because calls of a generic type of another module are not always
/// specialised.
struct SmallList<Element> {
    private var first: Element?
    private var others: [Element] = []

    init() {}

    var isEmpty: Bool { first == nil }

    mutating func append(_ element: Element) {
        if first == nil { first = element } else { others.append(element) }
    }

    func forEach(_ body: (Element) -> Void) {
        guard let first else { return }
        body(first)
        for element in others { body(element) }
    }

    func allSatisfy(_ matches: (Element) -> Bool) -> Bool {
        guard let first else { return true }
        return matches(first) && others.allSatisfy(matches)
    }

    /// Removes and returns the elements that match.
    mutating func removeAll(where matches: (Element) -> Bool) -> SmallList {
        var removed = SmallList()
        var kept = SmallList()
        forEach { element in if matches(element) { removed.append(element) } else { kept.append(element) } }
        if removed.first != nil { self = kept }
        return removed
    }

    /// Removes and returns every element.
    mutating func removeAll() -> SmallList {
        defer { self = SmallList() }
        return self
    }
}

extension SmallList: Sendable where Element: Sendable {}
