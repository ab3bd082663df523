// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// A clock for tests that stands still until a test advances it.
///
/// A loop with this clock turns when the time advances, and every 5 ms of real time, which libcurl's timers keep.
package final class StubClock: Clock {
    package struct Instant: InstantProtocol {
        /// The time since the clock was created.
        package var offset: Duration

        package init(offset: Duration) { self.offset = offset }

        package func advanced(by duration: Duration) -> Instant { Instant(offset: offset + duration) }
        package func duration(to other: Instant) -> Duration { other.offset - offset }
        package static func < (lhs: Instant, rhs: Instant) -> Bool { lhs.offset < rhs.offset }
    }

    private struct State {
        var now = Duration.zero
        var sleepers: [UInt64: (deadline: Duration, continuation: UnsafeContinuation<Void, Never>)] = [:]
        /// The number of all sleeps so far.
        var sleeps: UInt64 = 0
        var listeners: [@Sendable () -> Void] = []
    }

    /// The nanoseconds at the creation of a clock, since 0 means "not yet" in many places.
    private static let start: UInt64 = 1_000_000_000_000

    private let state = Lock(State())
    private let signal = Signal()

    package init() {}

    package var now: Instant { Instant(offset: state.withLock { $0.now }) }
    package var minimumResolution: Duration { .nanoseconds(1) }
    /// The number of all sleeps so far.
    package var sleeps: UInt64 { state.withLock { $0.sleeps } }

    /// The time as loops read it.
    package var nanoseconds: UInt64 {
        let (seconds, attoseconds) = state.withLock { $0.now }.components
        return Self.start &+ UInt64(seconds) &* 1_000_000_000 &+ UInt64(attoseconds / 1_000_000_000)
    }

    package func sleep(until deadline: Instant, tolerance: Duration?) async throws {
        let number = state.withLock { state in
            state.sleeps += 1
            return state.sleeps
        }
        await withTaskCancellationHandler {
            await withUnsafeContinuation { continuation in
                let isOver = state.withLock { state in
                    if Task.isCancelled || deadline.offset <= state.now { return true }
                    state.sleepers[number] = (deadline.offset, continuation)
                    return false
                }
                if isOver { continuation.resume() }
                signal.send()
            }
        } onCancel: {
            state.withLock { $0.sleepers.removeValue(forKey: number) }?.continuation.resume()
        }
        try Task.checkCancellation()
    }

    /// Advances the time, makes the loops with this clock turn, and wakes due sleepers, the earliest first.
    package func advance(by duration: Duration) {
        let (due, listeners) = state.withLock { state in
            state.now += duration
            let now = state.now
            let due = state.sleepers.filter { $0.value.deadline <= now }
            for number in due.keys { state.sleepers[number] = nil }
            return (due.values.sorted { $0.deadline < $1.deadline }, state.listeners)
        }
        for listener in listeners { listener() }
        for sleeper in due { sleeper.continuation.resume() }
    }

    /// Calls a closure whenever the time has advanced.
    package func onAdvance(_ listener: @escaping @Sendable () -> Void) {
        state.withLock { $0.listeners.append(listener) }
    }

    /// Waits until at least so many tasks sleep.
    package func waitUntil(sleepers count: Int) async { await wait { $0.sleepers.count >= count } }

    /// Waits until a task sleeps until one of the deadlines.
    package func waitForSleeper(at deadlines: Duration...) async {
        await wait { $0.sleepers.values.contains { deadlines.contains($0.deadline) } }
    }

    private func wait(until condition: (State) -> Bool) async {
        while true {
            let seen = signal.count
            if state.withLock({ condition($0) }) { return }
            guard await signal.wait(after: seen) else { return }
        }
    }
}
