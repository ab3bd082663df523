// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine

/// Calls the recorders of a session for the end of each attempt and each transfer, one call after the other, in a task of
/// its own.
///
/// The loop only queues. A task that waits for a transfer waits for what was queued until then, so that as many ends wait
/// as there are transfers that tasks wait for.
final class EndRecorder: Sendable {
    private struct State {
        /// Those from `first` on wait.
        var ends: [TransferEvent] = []
        var first = 0
        var isServing = false
        /// How many were ever queued, and how many of these were recorded.
        var queued: UInt64 = 0
        var recorded: UInt64 = 0
        /// Tasks that wait until so many were recorded, in this order; those from `firstWaiter` on.
        var waiters: [(count: UInt64, continuation: UnsafeContinuation<Void, Never>)] = []
        var firstWaiter = 0
    }

    private let recorders: [any SessionRecorder]
    private let state = Lock(State())

    /// The recorders among a session's observers; nil when there is none.
    init?(_ observers: [any SessionObserver]) {
        recorders = observers.compactMap { $0 as? any SessionRecorder }
        if recorders.isEmpty { return nil }
    }

    /// Takes an event if it is an end; any thread.
    ///
    /// - Parameter isLate: Whether its transfer is over already.
    /// - Returns: Whether `serve()` is to be called, once no lock is held.
    func take(_ event: TransferEvent, isLate: Bool) -> Bool {
        switch event.kind {
        case .metrics: break
        case .finished where !isLate: break
        default: return false
        }
        return state.withLock { state in
            state.ends.append(event)
            state.queued += 1
            defer { state.isServing = true }
            return !state.isServing
        }
    }

    /// Has what is queued recorded, away from the calling thread.
    func serve() {
        Task.detached {
            while let end = self.next() {
                for recorder in self.recorders { recorder.record(end) }
                for waiter in self.noteRecorded() { waiter.resume() }
            }
        }
    }

    /// Waits until everything that was queued before is recorded.
    func settled() async {
        if state.withLock({ $0.recorded == $0.queued }) { return }
        await withUnsafeContinuation { continuation in
            let isDone = state.withLock { state in
                if state.recorded == state.queued { return true }
                state.waiters.append((state.queued, continuation))
                return false
            }
            if isDone { continuation.resume() }
        }
    }

    private func next() -> TransferEvent? {
        state.withLock { state in
            guard state.first < state.ends.count else {
                state.ends.removeAll(keepingCapacity: state.ends.capacity <= 1024)
                state.first = 0
                state.isServing = false
                return nil
            }
            state.first += 1
            // What was recorded goes before it is as much as what waits.
            if state.first > 64, 2 * state.first > state.ends.count {
                state.ends.removeFirst(state.first - 1)
                state.first = 1
            }
            return state.ends[state.first - 1]
        }
    }

    private func noteRecorded() -> [UnsafeContinuation<Void, Never>] {
        state.withLock { state in
            state.recorded += 1
            let ready = state.waiters[state.firstWaiter...].prefix { $0.count <= state.recorded }.map(\.continuation)
            state.firstWaiter += ready.count
            if state.firstWaiter > 64, 2 * state.firstWaiter > state.waiters.count {
                state.waiters.removeFirst(state.firstWaiter)
                state.firstWaiter = 0
            }
            return ready
        }
    }
}
