// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import CurlewSupport

/// Calls the recorders of a session for the end of each attempt and each transfer, serially, in a separate task.
///
/// The loop only queues the ends. A task that waits for a transfer also waits until all ends queued before are
/// recorded, so the number of queued ends is bounded by the number of transfers that tasks wait for.
final class EndRecorder: Sendable {
    private struct State {
        /// The queue of ends; those from index `first` on are not recorded yet.
        var ends: [TransferEvent] = []
        var first = 0
        var isServing = false
        /// The number of ends queued so far, and the number of those recorded.
        var queued: UInt64 = 0
        var recorded: UInt64 = 0
        /// The waiting tasks in ascending order of the `recorded` count they wait for; those from index `firstWaiter`
        /// on.
        var waiters: [(count: UInt64, continuation: UnsafeContinuation<Void, Never>)] = []
        var firstWaiter = 0
    }

    private let recorders: [any Session.Recorder]
    private let state = Lock(State())

    /// Collects the recorders among a session's observers; nil when there is no recorder.
    init?(_ observers: [any Session.Observer]) {
        recorders = observers.compactMap { $0 as? any Session.Recorder }
        if recorders.isEmpty { return nil }
    }

    /// Queues an event if it is an end; callable from any thread.
    ///
    /// - Parameter isLate: Whether the transfer of the event has already ended.
    /// - Returns: Whether the caller must call `startRecording()` after releasing all locks.
    func enqueue(_ event: TransferEvent, isLate: Bool) -> Bool {
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

    /// Records the queued ends in a detached task.
    func startRecording() {
        Task.detached {
            while let end = self.next() {
                for recorder in self.recorders { recorder.record(end) }
                for waiter in self.countRecorded() { waiter.resume() }
            }
        }
    }

    /// Waits until all ends queued before are recorded.
    func waitUntilRecorded() async {
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
            // Recorded ends are removed before they outnumber the waiting ones.
            if state.first > 64, 2 * state.first > state.ends.count {
                state.ends.removeFirst(state.first - 1)
                state.first = 1
            }
            return state.ends[state.first - 1]
        }
    }

    private func countRecorded() -> [UnsafeContinuation<Void, Never>] {
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
