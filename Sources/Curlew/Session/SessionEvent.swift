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
        case .dropped(let count): "dropped \(count) events"
        case .closed: "closed"
        }
    }
}

/// Hears of everything that happens in a session, from its first transfer to its end.
///
/// Events of one transfer come in the order that ``TransferEvent`` draws, and between transfers in the order in which
/// they happened. `observe` is called for one event after the other, in a task of the observer's own; while it works,
/// up to 256 events wait for it, then the oldest are dropped and counted in `.dropped`. It holds nobody up. It is called
/// for `.closed` last, when the session was shut down or let go and every transfer it was told of has ended.
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
public protocol SessionObserver: Sendable {
    /// Takes note of an event.
    func observe(_ event: SessionEvent) async
}
