// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Work above the loop that goes on although nothing of it may be on the loop, and who waits until there is none.
struct Holds {
    var count = 0
    /// The loop closes: what is not held yet is too late.
    var isClosing = false
    /// The loop wants to hear when the last hold goes.
    var isAwaited = false
    var waiters: [(ticket: UInt64, continuation: UnsafeContinuation<Bool, Never>)] = []
    var lastTicket: UInt64 = 0
}

extension EventLoop {
    // MARK: Holds, from any thread

    /// Keeps the loop from being idle until `release()`: between two runs that belong together nothing else does.
    ///
    /// False when the loop is closing, and nothing is held.
    package func hold() -> Bool {
        // In a child of fork() another thread's lock may be held for ever.
        guard hasThread else { return true }
        return holds.withLock { holds in
            if !holds.isClosing { holds.count += 1 }
            return !holds.isClosing
        }
    }

    /// Takes back one `hold()`; whatever it was for was posted before.
    package func release() {
        guard hasThread else { return }
        let isAwaited = holds.withLock { holds in
            assert(holds.count > 0, "released more often than held")
            holds.count -= 1
            guard holds.count == 0 && holds.isAwaited else { return false }
            holds.isAwaited = false
            return true
        }
        // A turn is all it needs.
        if isAwaited { call { _ in } }
    }

    /// Returns true once no transfer is queued, running or paused and nothing is held: at once when the loop has no thread,
    /// or has ended; false when the waiting task was cancelled first.
    ///
    /// Nobody is kept from starting something right after.
    package func idle() async -> Bool {
        guard hasThread else { return true }
        let isHeld = holds.withLock { $0.count > 0 }
        // Only after that: what a hold was for was posted before it went.
        guard isHeld || isRunning else { return true }
        let ticket = holds.withLock { holds in
            holds.lastTicket += 1
            return holds.lastTicket
        }
        // As EngineTransfer.meetLoop() does, for ThreadSanitizer.
        defer { holds.withLock { _ in } }
        return await withTaskCancellationHandler {
            await withUnsafeContinuation { continuation in
                let isWaiting = holds.withLock { holds in
                    guard !Task.isCancelled else { return false }
                    holds.waiters.append((ticket, continuation))
                    return true
                }
                guard isWaiting else { return continuation.resume(returning: false) }
                if !call({ $0.awaitsIdle = true }) { tellIdle() }
            }
        } onCancel: {
            let withdrawn = holds.withLock { holds in
                holds.waiters.firstIndex { $0.ticket == ticket }.map { holds.waiters.remove(at: $0).continuation }
            }
            withdrawn?.resume(returning: false)
        }
    }

    // MARK: On the loop

    /// Whether nothing is held and nothing was posted that is not carried out; if not, another turn will come.
    var isQuiet: Bool {
        let isHeld = holds.withLock { holds in
            holds.isAwaited = holds.count > 0
            return holds.isAwaited
        }
        // In this order: what a hold was for was posted before it went.
        return !isHeld && !hasRecords
    }

    /// Resumes everyone who waits for the loop to be idle.
    func tellIdle() {
        let waiters = holds.withLock { holds in
            defer { holds.waiters = [] }
            return holds.waiters
        }
        for waiter in waiters { waiter.continuation.resume(returning: true) }
    }
}

extension EngineTransfer {
    // MARK: The hold of a redirect

    /// Hands over the hold that the engine took when the run ended with a redirect, to whoever asks first, who has to
    /// release it.
    ///
    /// One that nobody took goes with the run.
    package func takeHold() -> Bool {
        shared.withLock { shared in
            defer { shared.hasHold = false }
            return shared.hasHold
        }
    }

    /// Takes a hold, on the loop and before anyone hears of the end, when the answer may lead to another run.
    func holdRedirect() {
        guard wire.leadsElsewhere else { return }
        loop.holds.withLock { $0.count += 1 }
        shared.withLock { $0.hasHold = true }
    }
}
