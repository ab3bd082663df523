// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewSupport

/// The shutdown of a loop, and the callers that wait for it or for an idle loop; used on the loop's thread.
struct Shutdown {
    enum Phase {
        /// The loop accepts transfers.
        case open
        /// The loop accepts only transfers that continue held work.
        case closing
        /// The loop accepts no transfers at all: its time limit has passed, or all transfers have ended.
        case over
    }

    private(set) var phase = Phase.open
    /// The time at which all transfers end; `Monotonic.never` without a limit.
    private(set) var closeAt = Monotonic.never
    /// Whether a caller of `EventLoop.idle()` waits until no work is left.
    var awaitsIdle = false
    private var closers: [UnsafeContinuation<Void, Never>] = []

    /// Whether a caller waits until no work is left.
    var isAwaited: Bool { awaitsIdle || !closers.isEmpty }

    /// Whether the loop accepts a transfer.
    ///
    /// - Parameter continues: Whether the transfer continues work that holds the loop.
    func accepts(continues: Bool) -> Bool {
        switch phase {
        case .open: true
        case .closing: continues
        case .over: false
        }
    }

    /// Begins to close, or closes earlier than before; `closer` is resumed after the end of the last transfer.
    mutating func close(within limit: UInt64?, now: UInt64, _ closer: UnsafeContinuation<Void, Never>) {
        if phase == .open { phase = .closing }
        closers.append(closer)
        if let limit { closeAt = min(closeAt, now &+ limit) }
    }

    /// Refuses all transfers from now on.
    mutating func end() {
        phase = .over
        closeAt = Monotonic.never
    }

    /// Removes and returns the callers that wait for the end.
    mutating func takeClosers() -> [UnsafeContinuation<Void, Never>] {
        defer { closers = [] }
        return closers
    }
}
