// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Wakes tasks that wait for a change; a task that wakes looks up itself what has changed.
package final class Signal: Sendable {
    private struct State {
        var count: UInt64 = 0
        var waiters: [(id: UInt64, continuation: UnsafeContinuation<Bool, Never>)] = []
        var lastID: UInt64 = 0
    }

    private let state = Lock(State())

    package init() {}

    /// The number of times that the signal was sent.
    ///
    /// Read it before you check the state that the signal reports.
    package var count: UInt64 { state.withLock { $0.count } }

    /// Wakes every waiting task.
    package func send() {
        let waiters = state.withLock { state in
            state.count += 1
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.continuation.resume(returning: true) }
    }

    /// Waits until the signal was sent more than `count` times.
    ///
    /// - Returns: False when the waiting task is cancelled first.
    package func wait(after count: UInt64) async -> Bool {
        let id = state.withLock { state in
            state.lastID += 1
            return state.lastID
        }
        return await withTaskCancellationHandler {
            await withUnsafeContinuation { continuation in
                let result = state.withLock { state -> Bool? in
                    if state.count > count { return true }
                    if Task.isCancelled { return false }
                    state.waiters.append((id, continuation))
                    return nil
                }
                if let result { continuation.resume(returning: result) }
            }
        } onCancel: {
            let withdrawn = state.withLock { state in
                state.waiters.firstIndex { $0.id == id }.map { state.waiters.remove(at: $0).continuation }
            }
            withdrawn?.resume(returning: false)
        }
    }

    /// Waits until the signal was sent more than `count` times, even if the waiting task is cancelled.
    package func waitUncancelled(after count: UInt64) async {
        _ = await withUnsafeContinuation { (continuation: UnsafeContinuation<Bool, Never>) in
            let isSent = state.withLock { state in
                if state.count > count { return true }
                state.waiters.append((0, continuation))
                return false
            }
            if isSent { continuation.resume(returning: true) }
        }
    }
}
