// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewImages
import CurlewSupport
import CurlewTesting
import Testing

/// A gate that counts the tasks that have reached it.
private final class Door: Sendable {
    private let gate = Gate()
    private let arrivals = Lock(0)
    private let arrived = Signal()

    func open() { gate.open() }

    func wait() async {
        arrivals.withLock { $0 += 1 }
        arrived.send()
        await gate.wait()
    }

    func waitUntilReached(times: Int = 1) async {
        while true {
            let seen = arrived.count
            if arrivals.withLock({ $0 >= times }) { return }
            _ = await arrived.wait(after: seen)
        }
    }
}

/// The newest operation of a place.
@Suite(.timeLimit(.minutes(5)))
struct LatestOnlyTests {
    private struct Failure: Error {}

    @Test func newestOperationWins() async throws {
        let (slot, gate) = (LatestOnly(), Door())
        async let first = slot.run("a") {
            await gate.wait()
            return 1
        }
        await gate.waitUntilReached()
        #expect(await slot.isRunning)
        let second = try await slot.run("b") { 2 }
        // The first operation has been cancelled, which also ends its wait.
        #expect(try await first == nil && second == 2)
        #expect(await !slot.isRunning)
    }

    @Test func sameOperationRunsOnce() async throws {
        let (slot, gate) = (LatestOnly(), Door())
        async let first = slot.run("a") {
            await gate.wait()
            return 1
        }
        await gate.waitUntilReached()
        #expect(try await slot.run("a") { 2 } == nil)
        gate.open()
        #expect(try await first == 1)
        #expect(try await slot.run("a") { 3 } == 3, "it has ended")
    }

    @Test func cancelledOperationReturnsNothing() async throws {
        let (slot, gate) = (LatestOnly(), Door())
        async let first = slot.run("a") {
            await gate.wait()
            return Task.isCancelled
        }
        await gate.waitUntilReached()
        await slot.cancel()
        #expect(try await first == nil)
        #expect(await !slot.isRunning)
        await slot.cancel()
    }

    @Test func errorsOfTheNewestOperationAreThrown() async {
        await #expect(throws: Failure.self) { try await LatestOnly().run("a") { throw Failure() } as Int? }
    }

    @Test func cancelledCallerCancelsItsOperation() async throws {
        let (slot, gate) = (LatestOnly(), Door())
        let caller = Task {
            try await slot.run("a") {
                await gate.wait()
                return 1
            }
        }
        await gate.waitUntilReached()
        caller.cancel()
        await #expect(throws: CancellationError.self) { try await caller.value }
        #expect(await !slot.isRunning)
        let late = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return try await slot.run("b") { 1 }
        }
        await #expect(throws: CancellationError.self) { try await late.value }
    }

    /// As for a cell of a list that disappears and appears again, while its first operation has not ended.
    @Test func operationOfACancelledCallerIsReplaced() async throws {
        let (slot, door, end) = (LatestOnly(), Door(), Signal())
        let caller = Task {
            try await slot.run("a") {
                await door.wait()
                await end.waitUncancelled(after: 0)
                return 1
            }
        }
        await door.waitUntilReached()
        caller.cancel()
        #expect(try await slot.run("a") { 2 } == 2)
        end.send()
        #expect(try await caller.value == nil)
    }

    /// As for a button, whose states have images of their own.
    @Test func keysHaveOperationsOfTheirOwn() async throws {
        let (places, gate) = (LatestOnly.Keyed<String>(), Door())
        async let normal = places.run("normal", 1) {
            await gate.wait()
            return 1
        }
        async let pressed = places.run("pressed", 1) {
            await gate.wait()
            return 2
        }
        await gate.waitUntilReached(times: 2)
        #expect(await places.isRunning("normal"))
        #expect(await !places.isRunning("other"))
        await places.cancel("normal")
        gate.open()
        #expect(try await normal == nil)
        #expect(try await pressed == 2)
        let again = Door()
        async let third = places.run("normal", 1) {
            await again.wait()
            return 3
        }
        await again.waitUntilReached()
        await places.cancelAll()
        #expect(try await third == nil)
    }
}
