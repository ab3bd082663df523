// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

@testable import Curlew
import CurlewSupport
import CurlewEngine

/// A clock that stands still until a test advances it.
final class ManualClock: Clock {
    typealias Instant = RecordingClock.Instant

    private struct State {
        var now = Duration.zero
        var sleepers: [UInt64: (deadline: Duration, continuation: UnsafeContinuation<Void, Never>)] = [:]
        /// The number of all sleeps so far.
        var sleeps: UInt64 = 0
    }

    private let state = Lock(State())
    private let signal = Signal()

    var now: Instant { Instant(offset: state.withLock { $0.now }) }
    var minimumResolution: Duration { .nanoseconds(1) }
    var sleeps: UInt64 { state.withLock { $0.sleeps } }

    func sleep(until deadline: Instant, tolerance: Duration?) async throws {
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

    /// Advances the time and wakes the sleepers that are due, the earliest first.
    func advance(by duration: Duration) {
        let due = state.withLock { state in
            state.now += duration
            let now = state.now
            let due = state.sleepers.filter { $0.value.deadline <= now }
            for number in due.keys { state.sleepers[number] = nil }
            return due.values.sorted { $0.deadline < $1.deadline }
        }
        for sleeper in due { sleeper.continuation.resume() }
    }

    /// Waits until at least so many tasks sleep.
    func waitUntil(sleepers count: Int) async { await wait { $0.sleepers.count >= count } }

    /// Waits until a task sleeps until one of the deadlines.
    func waitForSleeper(at deadlines: Duration...) async {
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
