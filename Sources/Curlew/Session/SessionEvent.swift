// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Something that happened to a session, or to one of its transfers.
///
/// ```swift
/// var active: Set<UInt64> = []
/// for await case .transfer(let event) in session.events {
///     if event.isLast { active.remove(event.transfer) } else { active.insert(event.transfer) }
/// }
/// ```
public enum SessionEvent: Sendable {
    /// Something happened to a transfer.
    case transfer(TransferEvent)
    /// A turn of the loop took longer than 100 ms, so every transfer waited: a trust evaluator or code that runs on
    /// `session.executor` is too slow, or the machine is overloaded.
    case slowTurn(Duration)
    /// An evaluator that only reports would have refused a server; others may have refused it all the same.
    case trustReport(TrustFailure)
    /// The files of a client identity changed and cannot be used; what they held before is still shown.
    case identityNotReloaded(InvalidTrust)
    /// Secrets of TLS connections were not written to the file of `tls.keyLogFile`: it is no regular file, belongs to
    /// another user, can be read or written by others, or the system says why.
    ///
    /// It is told once, and again when the reason changes.
    case keyLogNotWritten(path: String, reason: String)
    /// So many events before this one were dropped, because the observer was too slow.
    case dropped(Int)
    /// The session was shut down or let go, and its transfers have ended; nothing more comes.
    case closed
}

extension SessionEvent: CustomStringConvertible {
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

/// Hears of everything that happens in a session, from its first transfer to its end.
///
/// ```swift
/// struct Failures: SessionObserver {
///     func observe(_ event: SessionEvent) async {
///         if case .transfer(let event) = event, case .finished(let error?) = event.kind { print(error) }
///     }
/// }
///
/// let session = Session(observers: [Failures()])
/// ```
///
/// An observer holds no transfer up, and loses events when it is too slow. A ``SessionRecorder`` loses none.
public protocol SessionObserver: Sendable {
    /// Takes note of an event.
    ///
    /// Events of one transfer come in the order that ``TransferEvent`` draws, and between transfers in the order in which
    /// they happened. Called for one event after the other, in a task of the observer's own; while it works, up to 256
    /// events wait for it, then the oldest are dropped and counted in `.dropped`. Called for `.closed` last, when the
    /// session was shut down or let go and every transfer it was told of has ended.
    func observe(_ event: SessionEvent) async
}

/// An observer that is told the end of each attempt and each transfer without loss: to count and to measure.
///
/// ```swift
/// struct Accounts: SessionRecorder {
///     let write: @Sendable (String, TransferMetrics) -> Void
///
///     func record(_ end: TransferEvent) {
///         if case .metrics(let metrics) = end.kind { write(end.url, metrics) }
///     }
/// }
///
/// let session = Session(observers: [Accounts { url, metrics in print(url, metrics) }])
/// ```
public protocol SessionRecorder: SessionObserver {
    /// Takes note of an end: of an attempt (``TransferEvent/Kind/metrics(_:)``) or of a transfer
    /// (``TransferEvent/Kind/finished(_:)``).
    ///
    /// Called exactly once for each attempt that was started and once for each transfer that was started or refused,
    /// however many end at once. The calls come one after the other, in a task that the session makes for them: on a thread
    /// of Swift's pool, never on the loop thread. The ends of a transfer's attempts come before its own, in their order; only
    /// an attempt that an interceptor has abandoned may end later. Several recorders are called in their order.
    ///
    /// Tasks that wait for a transfer (`data(for:)`, calls of a client, `value`, `response()`, the end of a stream), and those
    /// in `idle()` and `shutdown`, go on when everything that had ended before was recorded. So a slow `record` slows down
    /// the tasks that make requests, and neither the loop nor other transfers on the wire. Ends of transfers that no task
    /// waits for wait in memory. `record` must never wait for a transfer of the same session.
    ///
    /// - Parameter end: An event of kind `.metrics` or `.finished`.
    func record(_ end: TransferEvent)
}

extension SessionRecorder {
    /// Does nothing.
    public func observe(_ event: SessionEvent) async {}
}
