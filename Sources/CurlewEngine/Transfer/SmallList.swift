// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// An ordered list that allocates nothing while it has at most one element.
///
/// Its methods are inlined into other modules, because calls of a generic type of another module are not always
/// specialised.
@usableFromInline
package struct SmallList<Element> {
    @usableFromInline var first: Element?
    @usableFromInline var others: [Element] = []

    @inlinable
    package init() {}

    @inlinable
    package var isEmpty: Bool { first == nil }

    @inlinable
    package mutating func append(_ element: Element) {
        if first == nil { first = element } else { others.append(element) }
    }

    @inlinable
    package mutating func append(contentsOf other: SmallList) { other.forEach { append($0) } }

    @inlinable
    package func forEach(_ body: (Element) -> Void) {
        guard let first else { return }
        body(first)
        for element in others { body(element) }
    }

    @inlinable
    package func contains(where matches: (Element) -> Bool) -> Bool {
        guard let first else { return false }
        return matches(first) || others.contains(where: matches)
    }

    /// Removes and returns the elements that match.
    @inlinable
    package mutating func removeAll(where matches: (Element) -> Bool) -> SmallList {
        var removed = SmallList()
        var kept = SmallList()
        forEach { element in if matches(element) { removed.append(element) } else { kept.append(element) } }
        if removed.first != nil { self = kept }
        return removed
    }

    /// Removes and returns every element.
    @inlinable
    package mutating func removeAll() -> SmallList {
        defer { self = SmallList() }
        return self
    }
}

extension SmallList: Sendable where Element: Sendable {}
