// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import CurlewEngine

/// The order of jobs in `DiskQueue`, called without threads.
@Suite("DiskQueue")
struct DiskQueueTests {
    private var queue = DiskQueue<Int>(maximum: 2)

    private mutating func next(after key: String? = nil) -> Int? { queue.next(after: key)?.job }

    @Test mutating func jobsOfAPathRunOneAfterTheOther() {
        #expect(queue.add(1, at: "a") == .thread)
        #expect(queue.add(2, at: "a") == .nothing)
        #expect(next() == 1)
        #expect(queue.add(3, at: "a") == .nothing)
        #expect(next(after: "a") == 2)
        #expect(next(after: "a") == 3)
        #expect(next(after: "a") == nil)
        #expect(queue.threads == 1 && queue.sleeping == 1)
    }

    @Test mutating func pathsRunConcurrently() {
        #expect(queue.add(1, at: "hung") == .thread)
        #expect(next() == 1)
        #expect(queue.add(2, at: "hung") == .nothing)
        #expect(queue.add(3, at: "b") == .thread)
        #expect(next() == 3)
        #expect(next(after: "b") == nil, "the job for the hung path stays queued")
        #expect(queue.add(4, at: "c") == .waking)
        #expect(next() == 4)
    }

    @Test mutating func pathsAreServedInRoundRobin() {
        queue = DiskQueue(maximum: 1)
        for job in 1...3 { _ = queue.add(job, at: "a") }
        for job in 4...5 { _ = queue.add(job, at: "b") }
        var (order, key) = ([Int](), String?.none)
        while let (job, at) = queue.next(after: key) {
            order.append(job)
            key = at
        }
        #expect(order == [1, 4, 2, 5, 3])
    }

    @Test mutating func threadsAreLimited() {
        #expect(queue.add(1, at: "a") == .thread)
        #expect(queue.add(2, at: "b") == .thread)
        #expect(queue.add(3, at: "c") == .nothing)
        #expect(next() == 1 && next() == 2)
        #expect(next(after: "b") == 3)
    }

    @Test mutating func sleepingThreadsAreWokenOrRemoved() {
        #expect(queue.removeSleeper() == false)
        #expect(queue.add(1, at: "a") == .thread)
        #expect(next() == 1)
        #expect(next(after: "a") == nil)
        #expect(queue.add(2, at: "a") == .waking)
        #expect(queue.removeSleeper() == false, "the thread was woken")
        #expect(next() == 2)
        #expect(next(after: "a") == nil)
        #expect(queue.removeSleeper() == true)
        #expect(queue.threads == 0 && queue.sleeping == 0)
        #expect(queue.add(3, at: "a") == .thread)
    }

    @Test mutating func jobWithoutAThreadWaitsForARunningThread() {
        #expect(queue.add(1, at: "a") == .thread)
        #expect(queue.threadFailed(for: "a") == false)
        #expect(queue.add(2, at: "a") == .thread)
        #expect(next() == 2, "the job without a thread is gone")
        #expect(queue.add(3, at: "b") == .thread)
        #expect(queue.threadFailed(for: "b") == true)
        #expect(next(after: "a") == 3)
        #expect(next(after: "b") == nil)
        #expect(queue.threads == 1)
    }
}
