// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// A list that mostly has one element, for which nothing is allocated; in the order of appending.
struct Few<Element> {
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

    func allSatisfy(_ fits: (Element) -> Bool) -> Bool {
        guard let first else { return true }
        return fits(first) && others.allSatisfy(fits)
    }

    /// Takes out those that fit.
    mutating func take(where fits: (Element) -> Bool) -> Few {
        var taken = Few()
        var kept = Few()
        forEach { element in if fits(element) { taken.append(element) } else { kept.append(element) } }
        if taken.first != nil { self = kept }
        return taken
    }

    /// Takes out everybody.
    mutating func takeAll() -> Few {
        defer { self = Few() }
        return self
    }
}

extension Few: Sendable where Element: Sendable {}
