// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewEngine
import CurlewTesting
import Testing

@testable import Curlew

/// The buffer of events that one observer has not read yet.
@Suite(.timeLimit(.minutes(5)))
struct EventBufferTests {
    /// Returns a buffer of numbers; a negative number is the count of dropped ones.
    private func buffer(_ capacity: Int) -> EventBuffer<Int> { EventBuffer(capacity: capacity) { -$0 } }

    private func rest(_ buffer: EventBuffer<Int>) async -> [Int] {
        var numbers: [Int] = []
        while let number = await buffer.next() { numbers.append(number) }
        return numbers
    }

    @Test func fullBufferKeepsNewestEventsAndCountsDropped() async {
        let buffer = buffer(4)
        for number in 1...10 { buffer.append(number) }
        buffer.finish()
        #expect(await rest(buffer) == [-6, 7, 8, 9, 10])
        #expect(await buffer.next() == nil)
    }

    @Test func ringBufferWrapsAround() async {
        let buffer = buffer(3)
        var expected = 1
        var number = 0
        for round in 1...40 {
            let added = round % 4
            for _ in 0..<added {
                number += 1
                buffer.append(number)
            }
            for _ in 0..<added {
                #expect(await buffer.next() == expected)
                expected += 1
            }
        }
        for _ in 0..<5 {
            number += 1
            buffer.append(number)
        }
        buffer.append(number + 1, isLast: true)
        #expect(await rest(buffer) == [-3, number - 1, number, number + 1])
    }

    @Test func droppedCountRestartsAfterItWasRead() async {
        let buffer = buffer(2)
        for number in 1...3 { buffer.append(number) }
        #expect(await buffer.next() == -1)
        for number in 4...5 { buffer.append(number) }
        #expect(await buffer.next() == -2)
        #expect(await buffer.next() == 4)
        buffer.finish()
        #expect(await rest(buffer) == [5])
    }

    @Test func eventsAfterTheLastAreIgnored() async {
        let buffer = buffer(4)
        buffer.append(1, isLast: true)
        buffer.append(2)
        buffer.append(3, isLast: true)
        #expect(await rest(buffer) == [1])
    }

    /// A reader that is resumed late still gets its event before later events are read.
    @Test func orderIsKeptWhenReadersResumeLate() async {
        let buffer = buffer(4)
        async let first = buffer.next()
        await waitForReaders(of: buffer, 1)
        let wakes = buffer.push(1)
        #expect(wakes.count == 1)
        #expect(buffer.push(2).isEmpty)
        for wake in wakes { wake() }
        #expect(await first == 1)
        #expect(await buffer.next() == 2)
    }

    @Test func concurrentReadersShareEvents() async {
        let buffer = buffer(4)
        let numbers = await withTaskGroup(of: Int?.self) { group in
            for _ in 0..<3 { group.addTask { await buffer.next() } }
            await waitForReaders(of: buffer, 3)
            buffer.append(1)
            buffer.append(2, isLast: true)
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(numbers.compactMap { $0 }.sorted() == [1, 2] && numbers.count == 3)
    }

    @Test func cancelledReaderConsumesNoEvents() async {
        let buffer = buffer(4)
        let leaving = Task { await buffer.next() }
        await waitForReaders(of: buffer, 1)
        let staying = Task { await buffer.next() }
        await waitForReaders(of: buffer, 2)
        leaving.cancel()
        #expect(await leaving.value == nil)
        buffer.append(1)
        #expect(await staying.value == 1)
        let late = Task { () -> Int? in
            withUnsafeCurrentTask { $0?.cancel() }
            return await buffer.next()
        }
        #expect(await late.value == nil)
        buffer.append(2)
        #expect(await buffer.next() == 2)
    }

    /// Four tasks write concurrently; the numbers of each task arrive in order and once.
    @Test func concurrentWritersKeepTheirOrder() async {
        let buffer = EventBuffer<Int>(capacity: 100_000) { -$0 }
        await withTaskGroup(of: Void.self) { group in
            for writer in 0..<4 { group.addTask { for step in 0..<2000 { buffer.append(writer * 10_000 + step) } } }
            group.addTask {
                var last = [Int](repeating: -1, count: 4)
                for _ in 0..<8000 {
                    guard let number = await buffer.next() else { return _ = Issue.record("no event") }
                    #expect(number % 10_000 == last[number / 10_000] + 1)
                    last[number / 10_000] = number % 10_000
                }
            }
        }
        buffer.finish()
        #expect(await rest(buffer).isEmpty)
    }

    private func waitForReaders(of buffer: EventBuffer<Int>, _ count: Int) async {
        while buffer.waitingReaders < count, !Task.isCancelled { await Task.yield() }
    }
}
