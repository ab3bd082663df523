// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// An object that runs the transfers of a loop: ``CurlTransport``, or a stub in tests.
///
/// The loop calls its transport on its own thread, a few times a turn and once for each command. Header lines and bytes
/// do not pass this protocol: a transport calls the methods of `EngineTransfer` directly.
package protocol Transport: AnyObject {
    /// Begins a turn; `now` is the time of the whole turn.
    func beginTurn(now: UInt64)
    /// Handles an event of a socket.
    ///
    /// - Parameters:
    ///   - token: The data of the descriptor in epoll.
    ///   - mask: The events.
    func socketIsReady(token: UInt64, mask: UInt32)
    /// Handles all that is due, and flushes the deliveries.
    func advance(now: UInt64)
    /// Accepts a transfer, which ends at once if it cannot start.
    func start(_ transfer: EngineTransfer)
    /// Applies a change that another thread has made: a pause, a priority, a claim of the stream, a reader that has
    /// taken bytes, a demand for progress, or new bytes of the request body.
    func adjust(_ transfer: EngineTransfer)
    /// Ends a transfer in any state.
    func remove(_ transfer: EngineTransfer, _ reason: EngineFailure.Reason)
    /// The latest time at which the next turn begins even without an event; 0 for pending work, `Monotonic.never` for
    /// no limit.
    var deadline: UInt64 { get }
    /// Whether no transfer is queued, running or paused.
    var isIdle: Bool { get }
    /// The transfers that have not ended: those with a slot first, then the waiting ones.
    var allTransfers: [EngineTransfer] { get }
    /// Closes idle connections and forgets TLS sessions; running transfers keep their connections until they end.
    func resetConnections()
}
