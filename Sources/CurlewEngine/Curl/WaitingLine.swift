// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Who waits for a place, the highest priority first and, within one, first come first served.
///
/// A binary heap; leaving early is done by the owner, who skips elements that no longer want their place.
struct WaitingLine<Element> {
    struct Place {
        var priority: Int
        var ticket: UInt64
        var element: Element

        func isBefore(priority: Int, ticket: UInt64) -> Bool {
            self.priority != priority ? self.priority > priority : self.ticket < ticket
        }

        fileprivate func isBefore(_ other: Place) -> Bool { isBefore(priority: other.priority, ticket: other.ticket) }
    }

    private var heap: [Place] = []

    var isEmpty: Bool { heap.isEmpty }
    var count: Int { heap.count }
    var first: Place? { heap.first }

    mutating func join(_ element: Element, priority: Int, ticket: UInt64) {
        heap.append(Place(priority: priority, ticket: ticket, element: element))
        var child = heap.count - 1
        while child > 0 {
            let parent = (child - 1) / 2
            guard heap[child].isBefore(heap[parent]) else { break }
            heap.swapAt(child, parent)
            child = parent
        }
    }

    /// Takes out all that match.
    mutating func removeAll(where matches: (_ element: Element, _ priority: Int) -> Bool) {
        let kept = heap.filter { !matches($0.element, $0.priority) }
        heap.removeAll(keepingCapacity: true)
        for place in kept { join(place.element, priority: place.priority, ticket: place.ticket) }
    }

    /// Takes out who is first.
    @discardableResult
    mutating func next() -> Place? {
        guard let first = heap.first else { return nil }
        let last = heap.removeLast()
        if !heap.isEmpty {
            heap[0] = last
            sink()
        }
        return first
    }

    private mutating func sink() {
        var parent = 0
        while let child = childBefore(parent) {
            heap.swapAt(parent, child)
            parent = child
        }
    }

    /// The first of a place's children, when it comes before its parent.
    private func childBefore(_ parent: Int) -> Int? {
        let left = 2 * parent + 1
        guard left < heap.count else { return nil }
        let right = left + 1
        let first = right < heap.count && heap[right].isBefore(heap[left]) ? right : left
        return heap[first].isBefore(heap[parent]) ? first : nil
    }
}
