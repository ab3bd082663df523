// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewSupport

extension EngineTransfer {
    /// The first result of a run.
    package enum Headed: Sendable {
        case head(RawHead)
        case ended(Outcome)
        /// A reader takes the stream of steps instead.
        case superseded
    }

    // MARK: Waiting for the head

    /// Waits for the head of the final response or for the end, without waiting for the body; returns the head if both
    /// are there.
    ///
    /// The head of a collected response may be returned up to a millisecond late, because the end often arrives in that
    /// time.
    ///
    /// Any number of tasks may wait, and the reader of the stream still gets its head. A cancelled task cancels the
    /// transfer and gets its end.
    package func headed() async -> Headed {
        if Task.isCancelled { cancel() }
        let headed = await withTaskCancellationHandler {
            await withUnsafeContinuation { continuation in
                let answer = shared.withLock { shared -> Headed? in
                    if let outcome = shared.outcome { return outcome.headed }
                    if let head = shared.head { return .head(head) }
                    if shared.isHeadSuperseded { return .superseded }
                    shared.headWaiters.append(continuation)
                    return nil
                }
                if let answer { continuation.resume(returning: answer) }
            }
        } onCancel: {
            cancel()
        }
        defer { synchronizeWithLoop() }
        guard Task.isCancelled else { return headed }
        // The head arrived first, or the cancellation handler was already removed.
        cancel()
        return await ended().headed
    }

    /// Makes the callers that wait for the head, or for an end or a redirect, now or later, read the stream of steps
    /// instead.
    package func switchToSteps() {
        let (waiters, leaving) = shared.withLock { shared in
            shared.isHeadSuperseded = true
            defer { shared.headWaiters = [] }
            return (shared.headWaiters, shared.takeRedirectWaiters())
        }
        for waiter in waiters { waiter.resume(returning: .superseded) }
        leaving.forEach { $0.continuation.resume(returning: nil) }
    }

    // MARK: Waiting for the end

    /// Waits for the end without reading the body; returns nil if the waiting task was cancelled first.
    ///
    /// - Parameter orLed: Whether a redirect, or a reader of the steps, also ends the wait; the result is nil then,
    ///   too.
    package func finished(orLed leaves: Bool = false) async -> Outcome? {
        let ticket = EngineTransfer.nextID()
        defer { synchronizeWithLoop() }
        return await withTaskCancellationHandler {
            await withUnsafeContinuation { continuation in
                let answer = shared.withLock { shared -> Outcome?? in
                    if let outcome = shared.outcome { return outcome }
                    if Task.isCancelled || leaves && (shared.isRedirecting || shared.isHeadSuperseded) {
                        return .some(nil)
                    }
                    shared.endWaiters.append(EndWaiter(ticket: ticket, continuation: continuation, leaves: leaves))
                    return nil
                }
                if let answer { continuation.resume(returning: answer) }
            }
        } onCancel: {
            let withdrawn = shared.withLock { shared in shared.endWaiters.removeAll { $0.ticket == ticket } }
            withdrawn.forEach { $0.continuation.resume(returning: nil) }
        }
    }

    /// Waits for the end, even if the waiting task is cancelled.
    package func ended() async -> Outcome {
        let ticket = EngineTransfer.nextID()
        defer { synchronizeWithLoop() }
        let outcome = await withUnsafeContinuation { (continuation: UnsafeContinuation<Outcome?, Never>) in
            let outcome = shared.withLock { shared -> Outcome? in
                if shared.outcome == nil {
                    shared.endWaiters.append(EndWaiter(ticket: ticket, continuation: continuation, leaves: false))
                }
                return shared.outcome
            }
            if let outcome { continuation.resume(returning: outcome) }
        }
        return outcome ?? Outcome(metrics: RawMetrics(), failure: unreachable)
    }

    /// Takes the lock once after a wait.
    ///
    /// Values that the loop wrote before it resumed a continuation are visible to the resumed task. ThreadSanitizer
    /// does not see this if the resumption overtook the suspension, because Swift's runtime is not instrumented; it
    /// does see the lock.
    func synchronizeWithLoop() {
        #if DEBUG
        shared.withLock { _ in }
        #endif
    }

    /// Waits for counters other than the last ones seen; returns nil after the final ones, or if the task was
    /// cancelled.
    package func progress(after last: Counters?) async -> Counters? {
        let ticket = EngineTransfer.nextID()
        return await withTaskCancellationHandler {
            await withUnsafeContinuation { continuation in
                var isBehind = false
                let answer = shared.withLock { shared -> Counters?? in
                    if let last, last.isFinished || Task.isCancelled { return .some(nil) }
                    let age = last.map { shared.counters.at &- $0.at } ?? .max
                    if shared.counters.isFinished || age >= loop.configuration.progressInterval {
                        return shared.counters
                    }
                    isBehind = shared.counters != last
                    shared.progressWaiters.append((ticket, continuation))
                    return nil
                }
                if let answer { continuation.resume(returning: answer) } else if isBehind { loop.post(.adjust(self)) }
            }
        } onCancel: {
            let withdrawn = shared.withLock { shared in
                shared.progressWaiters.firstIndex { $0.ticket == ticket }
                    .map { shared.progressWaiters.remove(at: $0).continuation }
            }
            withdrawn?.resume(returning: nil)
        }
    }
}

extension EngineTransfer.Outcome {
    /// The result for callers that wait for the head when the run has ended.
    var headed: EngineTransfer.Headed {
        if let head, failure?.isCancellation != true { .head(head) } else { .ended(self) }
    }
}
