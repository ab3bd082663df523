// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import Testing

@testable import CurlewEngine

@Suite("HeapTrimmer", .timeLimit(.minutes(5)))
struct HeapTrimmerTests {
    private let patience = LoopActivity.patience

    @Test func loopActivityEndsAfterThePatience() {
        var activity = LoopActivity()
        #expect(activity.update(isIdle: true, now: 0) == nil)
        #expect(activity.quietAt == Monotonic.never)
        #expect(activity.update(isIdle: false, now: 1) == .began)
        #expect(activity.update(isIdle: false, now: 2) == nil)
        #expect(activity.quietAt == Monotonic.never)
        #expect(activity.update(isIdle: true, now: 10) == nil)
        #expect(activity.quietAt == 10 + patience)
        #expect(activity.update(isIdle: false, now: 11) == nil, "the loop works again")
        #expect(activity.update(isIdle: true, now: 12) == nil)
        #expect(activity.update(isIdle: true, now: 11 + patience) == nil)
        #expect(activity.update(isIdle: true, now: 12 + patience) == .ended)
        #expect(!activity.isActive && activity.quietAt == Monotonic.never)
        #expect(activity.update(isIdle: true, now: 13 + 2 * patience) == nil, "the end is reported once")
        #expect(activity.update(isIdle: false, now: 14 + 2 * patience) == .began)
    }

    @Test func memoryIsTrimmedOnceAfterTheLastLoop() async {
        let trims = Lock(0)
        let trimmed = Latch<Bool>()
        let trimmer = HeapTrimmer(patience: 1_000_000, resident: { HeapTrimmer.growth }) {
            trims.withLock { $0 += 1 }
            trimmed.set(true)
        }
        trimmer.began()
        trimmer.began()
        trimmer.ended()
        #expect(trims.withLock { $0 } == 0, "another loop still works")
        trimmer.ended()
        _ = await trimmed.value
        #expect(trims.withLock { $0 } == 1)
    }

    @Test func newWorkPostponesTheTrim() async {
        let trims = Lock(0)
        let trimmed = Latch<Bool>()
        let trimmer = HeapTrimmer(patience: 1_000_000, resident: { HeapTrimmer.growth }) {
            trims.withLock { $0 += 1 }
            trimmed.set(true)
        }
        // Regardless of how these calls interleave with the single waiting thread, it trims after the last one.
        for _ in 0..<1000 {
            trimmer.began()
            trimmer.ended()
        }
        _ = await trimmed.value
        #expect(trims.withLock { $0 } < 1000)
    }

    /// Trimming walks through all memory of the program, so it must pay off.
    @Test func memoryIsTrimmedOnlyAfterGrowth() async {
        let growth = HeapTrimmer.growth
        let sizes = [growth, 3, growth + 2, 1, growth, growth + 1, 9]
        let (asked, trims, looks) = (Lock(0), Lock<[Int]>([]), Signals())
        let trimmer = HeapTrimmer(patience: 1_000_000) {
            let number = asked.withLock { number in
                defer { number += 1 }
                return number
            }
            looks.send(number)
            return sizes[min(number, sizes.count - 1)]
        } trim: {
            let number = asked.withLock { $0 }
            trims.withLock { $0.append(number) }
        }
        // Memory grows from 0 to `growth`: trim, 3 left. `growth` + 2 is too little growth, then memory falls to 1.
        // `growth` is too little again, and `growth` + 1 suffices.
        for last in [1, 2, 3, 4, 6] {
            trimmer.began()
            trimmer.ended()
            await looks.wait(for: last)
        }
        #expect(trims.withLock { $0 } == [1, 6])
    }

    /// Caches request a trim when memory is short.
    @Test func requestedTrimNeedsNoGrowth() async {
        let trims = Lock(0)
        let trimmed = Signals()
        let trimmer = HeapTrimmer(patience: 1_000_000, resident: { 0 }) {
            let number = trims.withLock { count in
                count += 1
                return count
            }
            trimmed.send(number)
        }
        trimmer.request()
        await trimmed.wait(for: 1)
        // A request after the start of a trim is not lost.
        trimmer.request()
        await trimmed.wait(for: 2)
        for _ in 0..<1000 { trimmer.request() }
        await trimmed.wait(for: 3)
        #expect(trims.withLock { $0 } <= 1002)
    }
}

/// A stream of increasing numbers that a test waits for.
private final class Signals: Sendable {
    private let stream = AsyncStream<Int>.makeStream()

    func send(_ number: Int) { stream.continuation.yield(number) }

    func wait(for number: Int) async { for await next in stream.stream where next >= number { return } }
}
