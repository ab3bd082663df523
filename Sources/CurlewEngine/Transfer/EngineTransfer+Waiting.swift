// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewSupport

extension EngineTransfer {
    // MARK: Waiting for the end

    /// Waits for the end without reading the body; a cancelled task cancels the transfer and gets its end.
    ///
    /// - Parameter orHead: Whether a head that the chain must see also ends the wait, with the result nil; only one
    ///   task may wait in this way.
    package nonisolated(nonsending) func waitForEnd(orHead: Bool = false) async -> Outcome? {
        await withTaskCancellationHandler {
            _ = await withUnsafeContinuation { resumeAtEnd($0, orHead: orHead) }
        } onCancel: {
            cancel()
        }
        if let outcome { return outcome }
        // The head arrived first, or the cancellation handler was already removed.
        if Task.isCancelled {
            cancel()
            return await waitForEndUncancelled()
        }
        return nil
    }

    /// Resumes a task at the end, or with `orHead` also at a head that the chain must see; at once if that is over.
    ///
    /// The task itself has to cancel the transfer when it is cancelled.
    package func resumeAtEnd(_ continuation: UnsafeContinuation<Bool, Never>, orHead: Bool) {
        let waiter = Waiter(continuation)
        let isWaiting = shared.withLock { shared in
            if shared.outcome != nil || orHead && !shared.isHeadFinal { return false }
            if orHead { shared.endOrHeadWaiter = waiter } else { shared.endWaiters.append(waiter) }
            return true
        }
        if !isWaiting { continuation.resume(returning: true) }
    }

    /// Waits for the end, even if the waiting task is cancelled.
    package nonisolated(nonsending) func waitForEndUncancelled() async -> Outcome {
        _ = await withUnsafeContinuation { continuation in
            let waiter = Waiter(continuation)
            let isWaiting = shared.withLock { shared in
                if shared.outcome == nil { shared.endWaiters.append(waiter) }
                return shared.outcome == nil
            }
            if !isWaiting { continuation.resume(returning: true) }
        }
        // ThreadSanitizer needs this lock, which is taken after the wait: values that the loop wrote before it resumed
        // the continuation are visible, but Swift's runtime is not instrumented.
        return outcome ?? Outcome(metrics: RawMetrics(), failure: unreachable)
    }

    /// Waits for the end of a transfer that another owner may still need; a cancelled task only stops waiting.
    ///
    /// - Returns: The outcome; nil when the task was cancelled first.
    package func waitForSharedEnd() async -> Outcome? {
        let id = Self.nextID()
        _ = await withTaskCancellationHandler {
            await withUnsafeContinuation { continuation in
                let waiter = Waiter(continuation, id: id)
                let isWaiting = shared.withLock { shared in
                    if shared.outcome != nil || Task.isCancelled { return false }
                    shared.endWaiters.append(waiter)
                    return true
                }
                if !isWaiting { continuation.resume(returning: true) }
            }
        } onCancel: {
            shared.withLock { $0.endWaiters.removeAll { $0.id == id } }.forEach { $0.resume(false) }
        }
        return outcome
    }

    /// Takes the lock once after a wait, for ThreadSanitizer.
    func synchronizeWithLoop() {
        #if DEBUG
        shared.withLock { _ in }
        #endif
    }
}
