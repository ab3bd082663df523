// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewSupport

/// The holds on a loop: work that continues while no part of it is on the loop, and the callers that wait for its end.
struct Holds {
    var count = 0
    /// The loop is closing and accepts no more holds.
    var isClosing = false
    /// The loop has to be called when the last hold is released.
    var isAwaited = false
    var waiters: [(ticket: UInt64, continuation: UnsafeContinuation<Bool, Never>)] = []
    var lastTicket: UInt64 = 0
}

extension EventLoop {
    // MARK: Holds, from any thread

    /// Keeps the loop from being idle, for example between two attempts of one transfer; nil if the loop is closing.
    package func hold() -> LoopHold? {
        // In a child of fork(), another thread may have locked the mutex forever.
        guard hasThread else { return LoopHold(self) }
        let isClosing = holds.withLock { holds in
            if !holds.isClosing { holds.count += 1 }
            return holds.isClosing
        }
        return isClosing ? nil : LoopHold(self)
    }

    /// Keeps the loop from being idle, also if it is closing, for work that continues a transfer of the loop.
    func holdWhileClosing() -> LoopHold {
        if hasThread { holds.withLock { $0.count += 1 } }
        return LoopHold(self)
    }

    /// Ends one hold, whose work was posted before.
    fileprivate func release() {
        guard hasThread else { return }
        let isAwaited = holds.withLock { holds in
            assert(holds.count > 0, "released more often than held")
            holds.count -= 1
            guard holds.count == 0 && holds.isAwaited else { return false }
            holds.isAwaited = false
            return true
        }
        // One turn is enough for the loop to check whether it is idle.
        if isAwaited { call { _ in } }
    }

    /// Returns true once no transfer is queued, running or paused and there is no hold, at once if the loop has no
    /// thread or has ended; returns false if the waiting task was cancelled first.
    ///
    /// Other code may start a transfer right after the return.
    package func idle() async -> Bool {
        guard hasThread else { return true }
        let isHeld = holds.withLock { $0.count > 0 }
        // The order matters: the work of a hold is posted before the hold is released.
        guard isHeld || isRunning else { return true }
        let ticket = holds.withLock { holds in
            holds.lastTicket += 1
            return holds.lastTicket
        }
        // ThreadSanitizer needs this lock, as in `EngineTransfer.synchronizeWithLoop()`.
        defer { holds.withLock { _ in } }
        return await withTaskCancellationHandler {
            await withUnsafeContinuation { continuation in
                let isWaiting = holds.withLock { holds in
                    guard !Task.isCancelled else { return false }
                    holds.waiters.append((ticket, continuation))
                    return true
                }
                guard isWaiting else { return continuation.resume(returning: false) }
                if !post(.awaitIdle) { resumeIdleWaiters() }
            }
        } onCancel: {
            let withdrawn = holds.withLock { holds in
                holds.waiters.firstIndex { $0.ticket == ticket }.map { holds.waiters.remove(at: $0).continuation }
            }
            withdrawn?.resume(returning: false)
        }
    }

    // MARK: On the loop

    /// Whether there is no hold and no unread record; if false, another turn follows.
    var isQuiet: Bool {
        let isHeld = holds.withLock { holds in
            holds.isAwaited = holds.count > 0
            return holds.isAwaited
        }
        // The order matters: the work of a hold is posted before the hold is released.
        return !isHeld && !hasRecords
    }

    /// Resumes all callers that wait for the loop to be idle.
    func resumeIdleWaiters() {
        let waiters = holds.withLock { holds in
            defer { holds.waiters = [] }
            return holds.waiters
        }
        for waiter in waiters { waiter.continuation.resume(returning: true) }
    }
}

/// Keeps a loop from being idle and from closing gracefully, until the object is released.
package final class LoopHold: Sendable {
    private let loop: EventLoop

    fileprivate init(_ loop: EventLoop) { self.loop = loop }

    deinit { loop.release() }
}
