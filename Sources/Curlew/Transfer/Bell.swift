// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine

/// Wakes tasks that wait for something to change; what has changed, they look up themselves.
final class Bell: Sendable {
    private struct State {
        var rings: UInt64 = 0
        var waiters: [(ticket: UInt64, continuation: UnsafeContinuation<Bool, Never>)] = []
        var lastTicket: UInt64 = 0
    }

    private let state = Lock(State())

    /// How often it has rung; to be asked before looking.
    var rings: UInt64 { state.withLock { $0.rings } }

    func ring() {
        let waiters = state.withLock { state in
            state.rings += 1
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.continuation.resume(returning: true) }
    }

    /// Waits until it has rung more often than `rings`; false when the waiting task was cancelled first.
    func wait(after rings: UInt64) async -> Bool {
        let ticket = state.withLock { state in
            state.lastTicket += 1
            return state.lastTicket
        }
        return await withTaskCancellationHandler {
            await withUnsafeContinuation { continuation in
                let answer = state.withLock { state -> Bool? in
                    if state.rings > rings { return true }
                    if Task.isCancelled { return false }
                    state.waiters.append((ticket, continuation))
                    return nil
                }
                if let answer { continuation.resume(returning: answer) }
            }
        } onCancel: {
            let withdrawn = state.withLock { state in
                state.waiters.firstIndex { $0.ticket == ticket }.map { state.waiters.remove(at: $0).continuation }
            }
            withdrawn?.resume(returning: false)
        }
    }

    /// Waits until it has rung more often than `rings`, whatever happens to the waiting task.
    func waitRegardless(after rings: UInt64) async {
        _ = await withUnsafeContinuation { (continuation: UnsafeContinuation<Bool, Never>) in
            let isOver = state.withLock { state in
                if state.rings > rings { return true }
                state.waiters.append((0, continuation))
                return false
            }
            if isOver { continuation.resume(returning: true) }
        }
    }
}
