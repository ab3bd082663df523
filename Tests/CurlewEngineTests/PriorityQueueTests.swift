// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import CurlewEngine

@Suite("PriorityQueue")
struct PriorityQueueTests {
    private func drain(_ line: inout PriorityQueue<String>) -> [String] {
        var drained: [String] = []
        while let next = line.next() { drained.append(next.element) }
        return drained
    }

    @Test func emptyQueueHasNoElements() {
        var line = PriorityQueue<String>()
        #expect(line.isEmpty)
        #expect(line.count == 0)
        #expect(drain(&line) == [])
    }

    @Test func equalPrioritiesKeepTheirOrder() {
        var line = PriorityQueue<String>()
        for (ticket, name) in ["a", "b", "c", "d", "e"].enumerated() {
            line.join(name, priority: 0, sequenceNumber: UInt64(ticket))
        }
        #expect(line.count == 5)
        #expect(drain(&line) == ["a", "b", "c", "d", "e"])
        #expect(line.isEmpty)
    }

    @Test func higherPrioritiesGoFirst() {
        var line = PriorityQueue<String>()
        line.join("low", priority: -100, sequenceNumber: 1)
        line.join("first", priority: 0, sequenceNumber: 2)
        line.join("high", priority: 100, sequenceNumber: 3)
        line.join("second", priority: 0, sequenceNumber: 4)
        line.join("extreme", priority: .max, sequenceNumber: 5)
        line.join("last", priority: .min, sequenceNumber: 0)
        #expect(drain(&line) == ["extreme", "high", "first", "second", "low", "last"])
    }

    @Test func elementAddedAgainWithItsOldTicketIsFirst() {
        var line = PriorityQueue<String>()
        line.join("a", priority: 0, sequenceNumber: 1)
        line.join("b", priority: 0, sequenceNumber: 2)
        let first = line.next()
        #expect(first?.element == "a")
        #expect(first?.priority == 0)
        line.join("a", priority: 0, sequenceNumber: 1)
        #expect(drain(&line) == ["a", "b"])
    }

    @Test(arguments: UInt64(1)...20)
    func priorityQueueAgreesWithASortedReference(seed: UInt64) {
        var random = SeededGenerator(seed)
        var line = PriorityQueue<UInt64>()
        var reference: [(priority: Int, ticket: UInt64)] = []
        for ticket in 0..<UInt64(600) {
            let priority = Int(random.below(7)) - 3
            line.join(ticket, priority: priority, sequenceNumber: ticket)
            reference.append((priority, ticket))
            if random.below(3) == 0 {
                reference.sort { $0.priority != $1.priority ? $0.priority > $1.priority : $0.ticket < $1.ticket }
                let (next, expected) = (line.next(), reference.removeFirst())
                #expect(next?.element == expected.ticket)
                #expect(next?.priority == expected.priority)
            }
        }
        reference.sort { $0.priority != $1.priority ? $0.priority > $1.priority : $0.ticket < $1.ticket }
        #expect(line.count == reference.count)
        var drained: [UInt64] = []
        while let next = line.next() { drained.append(next.element) }
        #expect(drained == reference.map(\.ticket))
    }
}
