// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension Session {
    /// An event of a session or of one of its transfers.
    ///
    /// ```swift
    /// var active: Set<UInt64> = []
    /// for await case .transfer(let event) in session.events {
    ///     if event.isLast { active.remove(event.transfer) } else { active.insert(event.transfer) }
    /// }
    /// ```
    public enum Event: Sendable {
        /// An event of a transfer.
        case transfer(TransferEvent)
        /// A turn of the loop took longer than 100 ms, so every transfer waited: a trust evaluator or code that runs on
        /// `session.executor` is too slow, or the machine is overloaded.
        case slowTurn(Duration)
        /// A report-only evaluator would have refused a server; other evaluators may have refused it nevertheless.
        case trustReport(TrustFailure)
        /// The files of a client identity changed and cannot be used; their previous content is still in use.
        case identityNotReloaded(TrustFailure.InvalidPolicy)
        /// TLS secrets were not written to `tls.keyLogFile`: the file is not a regular file, belongs to another user,
        /// is readable or writable by others, or the system reported an error.
        ///
        /// The event is sent once, and again when the reason changes.
        case keyLogNotWritten(path: String, reason: String)
        /// The number of events before this one that were dropped, because the observer was too slow.
        case dropped(Int)
        /// The session was shut down or released, and its transfers have ended; this is the last event.
        case closed
    }
}

extension Session.Event: CustomStringConvertible {
    /// One line, redacted.
    public var description: String {
        switch self {
        case .transfer(let event): event.description
        case .slowTurn(let time): "a slow turn of \(time.brief)"
        case .trustReport(let failure): "would have refused \(failure.host): \(failure)"
        case .identityNotReloaded(let error): "a client identity was not reloaded: \(error)"
        case .keyLogNotWritten(let path, let reason): "the key log \(path.escapingControls) was not written: \(reason)"
        case .dropped(let count): "dropped \(count) events"
        case .closed: "closed"
        }
    }
}

extension Session {
    /// Receives all events of a session, from its first transfer to its end.
    ///
    /// ```swift
    /// struct Failures: Session.Observer {
    ///     func observe(_ event: Session.Event) async {
    ///         if case .transfer(let event) = event, case .finished(let error?) = event.kind { print(error) }
    ///     }
    /// }
    ///
    /// let session = Session(observers: [Failures()])
    /// ```
    ///
    /// An observer delays no transfer, and loses events when it is too slow. A ``Session/Recorder`` loses no events.
    public protocol Observer: Sendable {
        /// Handles an event.
        ///
        /// Events of one transfer arrive in the order that ``TransferEvent`` shows, and events of different transfers
        /// in the order in which they happened. The calls run one after the other in a task of the observer. While a
        /// call runs, up to 256 events are buffered; after that the oldest are dropped and counted in `.dropped`. The
        /// last event is `.closed`: the session was shut down or released, and every observed transfer has ended.
        func observe(_ event: Session.Event) async
    }
}

extension Session {
    /// An observer that receives the end of each attempt and each transfer without loss, to count and to measure.
    ///
    /// ```swift
    /// struct Accounts: Session.Recorder {
    ///     let write: @Sendable (String, TransferMetrics) -> Void
    ///
    ///     func record(_ end: TransferEvent) {
    ///         if case .metrics(let metrics) = end.kind { write(end.url, metrics) }
    ///     }
    /// }
    ///
    /// let session = Session(observers: [Accounts { url, metrics in print(url, metrics) }])
    /// ```
    public protocol Recorder: Session.Observer {
        /// Records the end of an attempt (``TransferEvent/Kind/metrics(_:)``) or of a transfer
        /// (``TransferEvent/Kind/finished(_:)``).
        ///
        /// Called exactly once for each attempt that was started and once for each transfer that was started or
        /// refused, even when many end at once. Calls are serial and run in a task of the session, never on the loop
        /// thread. The ends of a transfer's attempts precede the end of the transfer, in order; only an attempt that an
        /// interceptor abandoned may end later. An attempt that an interceptor sends after the end of its transfer is
        /// not recorded. Several recorders are called in the order of the session's observers.
        ///
        /// Tasks that wait for a transfer (`data(for:)`, calls of a client, `value`, `response()`, the end of a stream)
        /// and tasks in `idle()` or `shutdown` resume only after all earlier ends are recorded. A slow `record`
        /// therefore delays tasks that make requests, but not the loop or other transfers in progress. Ends of
        /// transfers that no task waits for are queued in memory without a limit. `record` must never wait for a
        /// transfer of the same session.
        ///
        /// - Parameter end: An event of kind `.metrics` or `.finished`.
        func record(_ end: TransferEvent)
    }
}

extension Session.Recorder {
    /// Does nothing.
    public func observe(_ event: Session.Event) async {}
}
