// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import CurlewSupport

/// The owner of a transfer, to which the engine reports.
///
/// The engine calls its sink outside all locks: on the loop, or on the thread that ends a transfer before its start. It
/// releases the sink after the end.
package protocol TransferSink: AnyObject, Sendable {
    /// Whether the work of the sink has ended, so that the transfer has no effect any more.
    var isFinished: Bool { get }

    /// Called at most once, before the end, when the head has arrived and one of these is true: the chain must see the
    /// head, the body is streamed, or ``EngineTransfer/requestHead()`` was called.
    ///
    /// - Parameter isFinal: Whether the chain need not see the response.
    func receivedHead(of transfer: EngineTransfer, isFinal: Bool)

    /// Called when informational heads arrive for a stream, or progress is due.
    func receivedUpdate(of transfer: EngineTransfer)

    /// Called once for the end, after the observers of events and before any caller can see the outcome.
    ///
    /// - Returns: The waiting tasks to resume when the outcome is visible.
    func ended(_ transfer: EngineTransfer, _ outcome: EngineTransfer.Outcome) -> SmallList<Waiter>
}

/// A task that waits for an end or another change.
package struct Waiter: Sendable, Identifiable {
    package let id: UInt64
    private let continuation: UnsafeContinuation<Bool, Never>
    /// The thread on which the task began to wait.
    ///
    /// A task that prefers the loop as its executor begins to wait on the loop's thread. Do not ask the runtime for the
    /// executor: that takes a lock that the runtime also holds while cancellation handlers run, and such a handler may
    /// wait for a lock of the caller.
    private let thread = pthread_self()

    package init(_ continuation: UnsafeContinuation<Bool, Never>, id: UInt64 = 0) {
        self.id = id
        self.continuation = continuation
    }

    /// Whether the task runs on the current thread when it is resumed.
    var isOfCurrentThread: Bool { pthread_equal(thread, pthread_self()) != 0 }

    /// Resumes the task.
    ///
    /// - Parameter isComplete: Whether the wait is over; false for a cancelled task that stops waiting.
    package func resume(_ isComplete: Bool = true) { continuation.resume(returning: isComplete) }
}

extension EngineTransfer {
    // MARK: The sink, from any thread

    /// Makes an object the sink of this transfer's reports.
    ///
    /// - Returns: False when the transfer has ended, and its observers got that end as the end of the whole transfer.
    @discardableResult
    package func attach(_ sink: any TransferSink) -> Bool {
        shared.withLock { shared in
            if shared.lifecycle.state == .finished { return !shared.endsTransfer }
            shared.sink = sink
            return true
        }
    }

    /// Whether the head or the end is known, or the sink gets it later.
    package enum ReportStatus: Sendable {
        /// The head has arrived, or the outcome is visible.
        case isKnown
        /// The transfer is about to end; `waitForEndUncancelled()` returns soon.
        case isEnding
        /// The sink gets the report later.
        case isPending
    }

    /// Requests a report of the head, also when it is final.
    package func requestHead() -> ReportStatus {
        shared.withLock { shared in
            if shared.head != nil { return .isKnown }
            shared.isHeadWanted = true
            return shared.end
        }
    }

    /// Whether the end is known, or the sink gets it later.
    package var endStatus: ReportStatus { shared.withLock { $0.end } }

    /// The first result of the transfer: its head, or the end of a transfer without a head or with a cancellation.
    package enum FirstResult: Sendable {
        case head(RawHead)
        case ended(Outcome)
    }

    /// The first result of the transfer; nil before it.
    package var firstResult: FirstResult? {
        shared.withLock { shared in
            guard let outcome = shared.outcome else { return shared.head.map { .head($0) } }
            if let head = outcome.head, outcome.failure?.isCancellation != true { return .head(head) }
            return .ended(outcome)
        }
    }

    /// Makes the sink get reports of the progress, at most one in each interval.
    package func reportProgress() {
        let isRunning = shared.withLock { shared in
            shared.isProgressWanted = true
            return shared.outcome == nil && shared.lifecycle.state != .idle
        }
        if isRunning { loop.post(.adjust(self)) }
    }

    /// Removes and returns the informational heads that have arrived.
    package func takeInformational() -> [RawHead] {
        shared.withLock { shared in
            defer { shared.informational = [] }
            return shared.informational
        }
    }

    /// Returns the progress if it is due and the head has not arrived.
    package func takeProgressBeforeHead() -> Counters? {
        shared.withLock { shared in
            guard shared.isProgressDue, shared.head == nil else { return nil }
            shared.isProgressDue = false
            return shared.counters
        }
    }

    /// Whether the body is delivered to a reader instead of being collected.
    package var isStreamed: Bool { shared.withLock { !$0.collects } }

    /// Whether the sink has ended its work without this transfer.
    package var isAbandoned: Bool { shared.withLock { $0.sink }?.isFinished == true }

    /// Removes and returns the hold that a head or an end for the chain has taken; nil for others.
    package func takeHold() -> LoopHold? {
        shared.withLock { shared in
            defer { shared.hold = nil }
            return shared.hold
        }
    }
}

extension EngineTransfer.LockedState {
    fileprivate var end: EngineTransfer.ReportStatus {
        if outcome != nil { return .isKnown }
        return lifecycle.state == .finished ? .isEnding : .isPending
    }
}
