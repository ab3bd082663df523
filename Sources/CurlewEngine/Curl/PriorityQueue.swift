// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// A queue of waiting elements: the highest priority first and, within a priority, first come, first served.
///
/// The queue is a binary heap. An element cannot leave early; the owner skips elements that no longer wait.
struct PriorityQueue<Element> {
    struct Entry {
        var priority: Int
        var sequenceNumber: UInt64
        var element: Element

        func isBefore(priority: Int, sequenceNumber: UInt64) -> Bool {
            self.priority != priority ? self.priority > priority : self.sequenceNumber < sequenceNumber
        }

        fileprivate func isBefore(_ other: Entry) -> Bool {
            isBefore(priority: other.priority, sequenceNumber: other.sequenceNumber)
        }
    }

    private var heap: [Entry] = []

    var isEmpty: Bool { heap.isEmpty }
    var count: Int { heap.count }
    var first: Entry? { heap.first }

    mutating func join(_ element: Element, priority: Int, sequenceNumber: UInt64) {
        heap.append(Entry(priority: priority, sequenceNumber: sequenceNumber, element: element))
        var child = heap.count - 1
        while child > 0 {
            let parent = (child - 1) / 2
            guard heap[child].isBefore(heap[parent]) else { break }
            heap.swapAt(child, parent)
            child = parent
        }
    }

    /// Removes all elements that match.
    mutating func removeAll(where matches: (_ element: Element, _ priority: Int) -> Bool) {
        let kept = heap.filter { !matches($0.element, $0.priority) }
        heap.removeAll(keepingCapacity: true)
        for entry in kept { join(entry.element, priority: entry.priority, sequenceNumber: entry.sequenceNumber) }
    }

    /// Removes and returns the first element.
    @discardableResult
    mutating func next() -> Entry? {
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

    /// Returns the first child of a heap position if it comes before its parent.
    private func childBefore(_ parent: Int) -> Int? {
        let left = 2 * parent + 1
        guard left < heap.count else { return nil }
        let right = left + 1
        let first = right < heap.count && heap[right].isBefore(heap[left]) ? right : left
        return heap[first].isBefore(heap[parent]) ? first : nil
    }
}
