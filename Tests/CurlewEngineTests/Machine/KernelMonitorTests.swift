// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewShims
import CurlewSupport
import Glibc
import Testing

@testable import CurlewEngine

@Suite(.timeLimit(.minutes(5)))
struct KernelMonitorTests {
    /// A part of the kernel that a test changes.
    private final class Machine: Sendable {
        /// The descriptor that is readable after a change.
        let descriptor = curlew_eventfd_create()
        let value = Lock(0)
        let reads = Lock(0)
        let isPermitted = Lock(true)
        let openSources = Lock(0)

        deinit { close(descriptor) }

        func set(_ new: Int) {
            value.withLock { $0 = new }
            report()
        }

        func report() { eventfd_write(descriptor, 1) }

        func monitor(spacing: UInt64 = 0) -> KernelMonitor<Int> {
            KernelMonitor("curlew-test", spacing: spacing, unknown: -1) { [self] in
                isPermitted.withLock { $0 } ? Source(self) : nil
            }
        }
    }

    private final class Source: KernelSource {
        private let machine: Machine
        private(set) var deadline = Monotonic.never

        init(_ machine: Machine) {
            self.machine = machine
            machine.openSources.withLock { $0 += 1 }
        }

        deinit { machine.openSources.withLock { $0 -= 1 } }

        var waits: [KernelWait] { [KernelWait(machine.descriptor, POLLIN)] }

        func handle(_ ready: [KernelWait], now: UInt64) -> Bool {
            var value = eventfd_t()
            return eventfd_read(machine.descriptor, &value) == 0
        }

        func read(now: UInt64) -> Int {
            machine.reads.withLock { $0 += 1 }
            let value = machine.value.withLock { $0 }
            // A state above 100 ends after 10 ms.
            if value > 100, deadline == Monotonic.never {
                deadline = now + 10_000_000
            } else if now >= deadline {
                deadline = Monotonic.never
                machine.value.withLock { $0 = 0 }
                return 0
            }
            return value
        }
    }

    private func states(of monitor: KernelMonitor<Int>) -> (AsyncStream<Int>.Iterator, UInt64) {
        let (states, continuation) = AsyncStream<Int>.makeStream()
        let number = monitor.observe { continuation.yield($0) }
        return (states.makeAsyncIterator(), number)
    }

    @Test func observersGetTheStateAtOnceAndEachChangeOnce() async {
        let machine = Machine()
        let monitor = machine.monitor()
        #expect(!monitor.isWatching)
        var (changes, number) = states(of: monitor)
        #expect(await changes.next() == 0)
        #expect(monitor.isWatching)
        machine.report()
        machine.set(7)
        #expect(await changes.next() == 7)

        var (others, second) = states(of: monitor)
        #expect(await others.next() == 7)
        machine.set(8)
        #expect(await changes.next() == 8)
        #expect(await others.next() == 8)
        monitor.end(second)
        #expect(monitor.isWatching)
        monitor.end(number)
        #expect(!monitor.isWatching)
        monitor.end(number)
        var (again, third) = states(of: monitor)
        #expect(await again.next() == 8)
        monitor.end(third)
    }

    @Test func sourceIsClosedAfterTheLastObserver() async {
        let machine = Machine()
        let monitor = machine.monitor()
        var (changes, number) = states(of: monitor)
        _ = await changes.next()
        #expect(machine.openSources.withLock { $0 } == 1)
        monitor.end(number)
        while machine.openSources.withLock({ $0 }) > 0 { await Task.yield() }
    }

    @Test func refusedSourceGivesTheUnknownStateUntilItIsPermitted() async {
        let machine = Machine()
        machine.isPermitted.withLock { $0 = false }
        let monitor = machine.monitor()
        var (changes, number) = states(of: monitor)
        #expect(await changes.next() == -1)
        machine.isPermitted.withLock { $0 = true }
        var (others, second) = states(of: monitor)
        #expect(await others.next() == 0)
        #expect(await changes.next() == 0)
        monitor.end(number)
        monitor.end(second)
    }

    @Test func manyChangesLeadToFewReads() async {
        let machine = Machine()
        // The spacing is longer than the test, so that a second read would be a fault.
        let monitor = machine.monitor(spacing: 600_000_000_000)
        var (changes, number) = states(of: monitor)
        #expect(await changes.next() == 0)
        for change in 1...200 { machine.set(change) }
        // A new observer does not wait for the spacing.
        var (others, second) = states(of: monitor)
        #expect(await others.next() == 200)
        #expect(await changes.next() == 200)
        #expect(machine.reads.withLock { $0 } <= 3)
        monitor.end(number)
        monitor.end(second)
    }

    @Test func deadlineOfASourceEndsItsState() async {
        let machine = Machine()
        let monitor = machine.monitor()
        var (changes, number) = states(of: monitor)
        #expect(await changes.next() == 0)
        machine.set(101)
        #expect(await changes.next() == 101)
        #expect(await changes.next() == 0)
        monitor.end(number)
    }

    @Test func idleMonitorDoesNotWakeUp() async {
        let (machine, other) = (Machine(), Machine())
        let monitor = machine.monitor()
        var (changes, number) = states(of: monitor)
        _ = await changes.next()
        // The signal of the observer may be read after the first state.
        let busy = other.monitor()
        var (work, second) = states(of: busy)
        _ = await work.next()
        var wakeUps = monitor.wakeUps
        for change in 1...500 {
            other.set(change)
            _ = await work.next()
            if change == 100 { wakeUps = monitor.wakeUps }
        }
        #expect(monitor.wakeUps == wakeUps && busy.wakeUps >= 500)
        monitor.end(number)
        busy.end(second)
    }
}
