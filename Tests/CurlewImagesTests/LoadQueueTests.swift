// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import Testing

@testable import CurlewImages

/// The order and the sharing of a loader's jobs, as pure calls.
@Suite
struct LoadQueueTests {
    private func queue(_ maximum: Int, _ order: ImageLoader.Order = .fifo) -> LoadQueue<String> {
        LoadQueue(maximum: maximum, order: order)
    }

    /// Starts the queued jobs one after the other.
    private func drain(_ queue: inout LoadQueue<String>) -> [UInt64] {
        var order: [UInt64] = []
        while case .start(let job) = queue.next().first {
            order.append(job)
            _ = queue.end(job)
        }
        return order
    }

    @Test func jobsStartInTheirOrder() {
        for order in [ImageLoader.Order.fifo, .lifo] {
            var queue = queue(1, order)
            let jobs = (0..<5).map { queue.add("\($0)", .normal).job }
            #expect(drain(&queue) == (order == .fifo ? jobs : jobs.reversed()))
            #expect(queue.queued == 0 && queue.active == 0)
        }
    }

    @Test func higherPrioritiesStartFirst() {
        var queue = queue(1)
        let low = queue.add("low", .low), normal = queue.add("normal", .normal), high = queue.add("high", .high)
        let raised = queue.add("raised", .low)
        queue.change(raised.waiter, to: .high)
        queue.change(99, to: .high)
        #expect(drain(&queue) == [high.job, raised.job, normal.job, low.job])
    }

    @Test func slotsAreLimited() {
        var queue = queue(4)
        let jobs = (0..<6).map { queue.add("\($0)", .normal).job }
        #expect(queue.next() == jobs[..<4].map { .start($0) } && queue.active == 4 && queue.queued == 2)
        #expect(queue.next().isEmpty)
        #expect(queue.end(jobs[2]).count == 1)
        #expect(queue.next() == [.start(jobs[4])])
        #expect(queue.end(jobs[5]).isEmpty, "it has not started")
        #expect(self.queue(0).queued == 0)
        var one = self.queue(-3)
        _ = one.add("a", .normal)
        #expect(one.next().count == 1, "there is at least one slot")
    }

    @Test func equalKeysShareAJob() {
        var queue = queue(1)
        let first = queue.add("a", .low), second = queue.add("a", .high), other = queue.add("b", .normal)
        let alone = queue.add(nil, .low), alsoAlone = queue.add(nil, .low)
        #expect(first.isNew && !second.isNew && second.job == first.job && other.isNew)
        #expect(alone.isNew && alsoAlone.isNew && alone.job != alsoAlone.job)
        #expect(queue.job(of: second.waiter) == first.job && queue.contains(first.job))
        #expect(queue.next() == [.start(first.job)], "it has the priority of its second waiter")
        let third = queue.add("a", .normal)
        #expect(!third.isNew)
        #expect(queue.end(first.job) == [first.waiter, second.waiter, third.waiter])
        #expect(queue.add("a", .normal).isNew, "the job has ended")
    }

    @Test func jobEndsWithItsLastWaiter() {
        var queue = queue(1)
        let first = queue.add("a", .high), second = queue.add("a", .low), next = queue.add("b", .normal)
        #expect(queue.leave(first.waiter).isEmpty && queue.leave(first.waiter).isEmpty)
        #expect(queue.next() == [.start(next.job)], "the priority is that of the waiter that stayed")
        #expect(queue.leave(second.waiter).isEmpty && !queue.contains(second.job), "it was queued")
        #expect(queue.leave(next.waiter) == [.cancel(next.job)])
        // A cancelled job keeps its slot until it ends, and gets no new waiters (IM-16).
        let again = queue.add("b", .normal)
        #expect(again.isNew && queue.next().isEmpty && queue.active == 1)
        #expect(queue.end(next.job).isEmpty)
        #expect(queue.next() == [.start(again.job)])
        #expect(queue.end(again.job) == [again.waiter])
    }

    /// A random sequence of operations, compared with a simple list of jobs.
    @Test(arguments: [1, 2, 3, 4])
    func randomOperationsFollowTheModel(_ seed: UInt64) {
        struct Model {
            struct Job {
                let id: UInt64
                let key: String
                var waiters: [(id: UInt64, priority: Request.Priority)]
                var isRunning = false
                var isCancelled = false
                var priority: Request.Priority { waiters.map(\.priority).max() ?? .low }
            }
            var jobs: [Job] = []
        }
        var chance = SplitMix(seed)
        let order: ImageLoader.Order = seed % 2 == 0 ? .fifo : .lifo
        var queue = queue(4, order)
        var model = Model()
        var waiters: [UInt64] = []
        let priorities: [Request.Priority] = [.low, .normal, .high]
        for _ in 0..<10_000 {
            switch Int.random(in: 0..<10, using: &chance) {
            case 0..<4:
                let key = "\(Int.random(in: 0..<40, using: &chance))"
                let priority = priorities[Int.random(in: 0..<3, using: &chance)]
                let added = queue.add(key, priority)
                waiters.append(added.waiter)
                if let position = model.jobs.firstIndex(where: { $0.key == key && !$0.isCancelled }) {
                    #expect(!added.isNew && added.job == model.jobs[position].id)
                    model.jobs[position].waiters.append((added.waiter, priority))
                } else {
                    #expect(added.isNew)
                    model.jobs.append(.init(id: added.job, key: key, waiters: [(added.waiter, priority)]))
                }
            case 4..<6:
                guard let waiter = waiters.randomElement(using: &chance) else { continue }
                let actions = queue.leave(waiter)
                guard let position = model.jobs.firstIndex(where: { $0.waiters.contains { $0.id == waiter } }) else {
                    #expect(actions.isEmpty)
                    continue
                }
                model.jobs[position].waiters.removeAll { $0.id == waiter }
                guard model.jobs[position].waiters.isEmpty else {
                    #expect(actions.isEmpty)
                    continue
                }
                if model.jobs[position].isRunning {
                    #expect(actions == [.cancel(model.jobs[position].id)])
                    model.jobs[position].isCancelled = true
                } else {
                    #expect(actions.isEmpty)
                    model.jobs.remove(at: position)
                }
            case 6:
                guard let waiter = waiters.randomElement(using: &chance) else { continue }
                let priority = priorities[Int.random(in: 0..<3, using: &chance)]
                queue.change(waiter, to: priority)
                for job in model.jobs.indices {
                    for index in model.jobs[job].waiters.indices where model.jobs[job].waiters[index].id == waiter {
                        model.jobs[job].waiters[index].priority = priority
                    }
                }
            case 7:
                guard let job = model.jobs.filter(\.isRunning).randomElement(using: &chance) else { continue }
                #expect(queue.end(job.id) == job.waiters.map(\.id))
                model.jobs.removeAll { $0.id == job.id }
            default:
                var expected: [LoadQueue<String>.Action] = []
                while model.jobs.filter(\.isRunning).count < 4 {
                    let queued = model.jobs.filter { !$0.isRunning }
                    guard let highest = queued.map(\.priority).max() else { break }
                    let ids = queued.filter { $0.priority == highest }.map(\.id)
                    guard let next = order == .fifo ? ids.min() : ids.max() else { break }
                    expected.append(.start(next))
                    for index in model.jobs.indices where model.jobs[index].id == next {
                        model.jobs[index].isRunning = true
                    }
                }
                #expect(queue.next() == expected)
            }
            #expect(queue.active == model.jobs.filter(\.isRunning).count)
            #expect(queue.queued == model.jobs.filter { !$0.isRunning }.count)
        }
    }
}

/// A generator of random numbers with a seed (SplitMix64).
struct SplitMix: RandomNumberGenerator {
    private var state: UInt64

    init(_ seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}
