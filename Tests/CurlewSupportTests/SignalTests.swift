// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import Testing

@Suite("Signal", .timeLimit(.minutes(5)))
struct SignalTests {
    @Test func sentSignalEndsEveryWait() async {
        let signal = Signal()
        let seen = signal.count
        let waits = (0..<10).map { _ in Task { await signal.wait(after: seen) } }
        signal.send()
        for wait in waits { #expect(await wait.value) }
        #expect(signal.count == seen + 1)
    }

    @Test func signalSentBeforeTheWaitEndsItAtOnce() async {
        let signal = Signal()
        let seen = signal.count
        signal.send()
        #expect(await signal.wait(after: seen))
        await signal.waitUncancelled(after: seen)
    }

    @Test func cancellationEndsOnlyTheWaitOfItsTask() async {
        let signal = Signal()
        let (cancelled, other) = (Task { await signal.wait(after: 0) }, Task { await signal.wait(after: 0) })
        cancelled.cancel()
        #expect(await cancelled.value == false)
        signal.send()
        #expect(await other.value)
    }

    @Test func uncancelledWaitOutlastsCancellation() async {
        let signal = Signal()
        let wait = Task { await signal.waitUncancelled(after: 0) }
        wait.cancel()
        signal.send()
        await wait.value
    }

    @Test func onceKeepsTheFirstValue() {
        let once = OnceBox<Int>()
        #expect(once.current == nil)
        #expect(once.value(or: { 1 }) == 1 && once.value(or: { 2 }) == 1 && once.current == 1)
    }
}
