// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewSupport

/// State that tasks can wait on: one lock, and waiters that check the state after each change.
final class Monitor<State: Sendable>: Sendable {
    private struct Waiter: Sendable {
        let id: UInt64
        /// Checks the state and, if it is satisfied, returns the closure that resumes the waiting task.
        let attempt: @Sendable (inout State) -> (@Sendable () -> Void)?
        let cancel: @Sendable () -> Void
    }

    private struct Guarded: Sendable {
        var state: State
        var waiters: [Waiter] = []
        var nextID: UInt64 = 0
    }

    private let guarded: Lock<Guarded>

    init(_ state: State) {
        guarded = Lock(Guarded(state: state))
    }

    /// Reads the state.
    func read<Value>(_ body: (State) -> Value) -> Value {
        guarded.withLock { body($0.state) }
    }

    /// Changes the state and resumes the waiters that are satisfied now, in the order in which they began to wait.
    @discardableResult
    func update<Value>(_ body: (inout State) -> Value) -> Value {
        let (value, resumptions) = guarded.withLock { guarded -> (Value, [@Sendable () -> Void]) in
            let value = body(&guarded.state)
            var resumptions: [@Sendable () -> Void] = []
            var left: [Waiter] = []
            for waiter in guarded.waiters {
                if let resume = waiter.attempt(&guarded.state) {
                    resumptions.append(resume)
                } else {
                    left.append(waiter)
                }
            }
            guarded.waiters = left
            return (value, resumptions)
        }
        for resume in resumptions { resume() }
        return value
    }

    /// Waits until `take` returns a value, and returns it; nil if the task is cancelled.
    func wait<Value: Sendable>(_ take: @escaping @Sendable (inout State) -> Value?) async -> Value? {
        let id = guarded.withLock { guarded -> UInt64 in
            guarded.nextID += 1
            return guarded.nextID
        }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                enqueue(id: id, continuation: continuation, take: take)
            }
        } onCancel: {
            cancel(id: id)
        }
    }

    private func enqueue<Value: Sendable>(
        id: UInt64,
        continuation: CheckedContinuation<Value?, Never>,
        take: @escaping @Sendable (inout State) -> Value?
    ) {
        let waiter = Waiter(
            id: id,
            attempt: { state in
                guard let value = take(&state) else { return nil }
                return { continuation.resume(returning: value) }
            },
            cancel: { continuation.resume(returning: nil) }
        )
        let resume = guarded.withLock { guarded -> (@Sendable () -> Void)? in
            if let resume = waiter.attempt(&guarded.state) { return resume }
            // Either the cancellation handler has already run and the flag is set, or it will find the waiter.
            if Task.isCancelled { return waiter.cancel }
            guarded.waiters.append(waiter)
            return nil
        }
        resume?()
    }

    private func cancel(id: UInt64) {
        let waiter = guarded.withLock { guarded -> Waiter? in
            guarded.waiters.firstIndex { $0.id == id }.map { guarded.waiters.remove(at: $0) }
        }
        waiter?.cancel()
    }
}
