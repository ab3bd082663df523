// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import CurlewEngine

@Suite("SmallList")
struct SmallListTests {
    private func elements(_ few: SmallList<Int>) -> [Int] {
        var elements: [Int] = []
        few.forEach { elements.append($0) }
        return elements
    }

    private func few(_ elements: [Int]) -> SmallList<Int> {
        var few = SmallList<Int>()
        for element in elements { few.append(element) }
        return few
    }

    @Test(arguments: [[], [1], [1, 2], [3, 2, 1, 0]])
    func elementsKeepTheirOrder(elements: [Int]) {
        var few = few(elements)
        #expect(self.elements(few) == elements)
        #expect(self.elements(few.removeAll()) == elements)
        #expect(self.elements(few) == [])
    }

    @Test(arguments: [[], [1], [2], [1, 2, 3, 4, 6], [2, 4], [1, 3, 5]])
    func matchingElementsAreRemoved(elements: [Int]) {
        var few = few(elements)
        let removed = few.removeAll { $0.isMultiple(of: 2) }
        #expect(self.elements(removed) == elements.filter { $0.isMultiple(of: 2) })
        #expect(self.elements(few) == elements.filter { !$0.isMultiple(of: 2) })
        few.append(7)
        #expect(self.elements(few) == elements.filter { !$0.isMultiple(of: 2) } + [7])
    }
}
