// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewSupport

/// Prevents concurrent refreshes of content, and reports whether a refresh runs: the state of a refresh indicator.
///
/// ```swift
/// let list = Refreshable()
/// try await list.refresh {
///     photos = try await client.get("photos")
/// }
/// ```
///
/// It is a sequence of ``isRefreshing``, without delays: the present value first, then each change. A slow reader
/// receives the newest value, and never the same value twice in a row. The cancellation of the reader's task ends the
/// sequence. Copies share their state.
public struct Refreshable: AsyncSequence, Sendable {
    /// The type of the elements: whether a refresh runs.
    public typealias Element = Bool
    /// The type of the errors: the sequence never fails.
    public typealias Failure = Never

    /// The closures of `refresh`, one at a time, and the signal for the callers that wait for the end of a closure.
    private final class Turns: Sendable {
        private let state = Lock((number: UInt64(0), isRunning: false))
        private let ended = Signal()
        /// Sent for each call that waits for the closure of another call.
        let waited = Signal()

        /// Begins a turn.
        ///
        /// - Returns: The number of the turn that runs already; nil if a new turn begins.
        func begin() -> UInt64? {
            state.withLock { state in
                if state.isRunning { return state.number }
                state = (state.number + 1, true)
                return nil
            }
        }

        func end() {
            state.withLock { $0.isRunning = false }
            ended.send()
        }

        /// Waits until a turn has ended, or until the task is cancelled.
        func waitForEnd(of number: UInt64) async {
            waited.send()
            while true {
                let seen = ended.count
                guard state.withLock({ $0.isRunning && $0.number == number }) else { return }
                guard await ended.wait(after: seen) else { return }
            }
        }
    }

    private let monitor = ActivityMonitor(activationDelay: .zero, completionDelay: .zero)
    private let turns = Turns()

    /// Waits until a number of calls have found a running refresh, for tests.
    func waitUntilCallersWait(_ count: UInt64) async { _ = await turns.waited.wait(after: count - 1) }

    /// Creates a value without a running refresh.
    public init() {}

    /// Whether a refresh or a followed transfer runs now.
    public var isRefreshing: Bool { monitor.isActive }

    /// Reports a transfer as a refresh, from its start until it has ended; several transfers can be followed at once.
    ///
    /// - Parameter transfer: The transfer; this method neither starts nor keeps it.
    public func follow<Output: Sendable>(_ transfer: Transfer<Output>) { monitor.follow(transfer) }

    /// Runs a closure; if the closure of another call runs already, waits for the end of that closure instead.
    ///
    /// A call whose task is cancelled stops waiting, which does not affect the closure of the other call. A closure
    /// must not refresh the same value, since it would wait for its own end. An error of the closure is thrown to its
    /// own caller only.
    ///
    /// - Parameter body: Refreshes the content; runs in the caller's isolation.
    /// - Returns: Whether `body` ran; false also when the task was cancelled while it waited.
    /// - Throws: The error of `body`.
    @discardableResult
    public nonisolated(nonsending) func refresh<Thrown: Error>(
        _ body: nonisolated(nonsending) () async throws(Thrown) -> Void
    ) async throws(Thrown) -> Bool {
        if let running = turns.begin() {
            await turns.waitForEnd(of: running)
            return false
        }
        defer { turns.end() }
        try await monitor.withActivity(body)
        return true
    }

    /// Returns an iterator over the values of ``isRefreshing``.
    public func makeAsyncIterator() -> ActivityMonitor.AsyncIterator { monitor.makeAsyncIterator() }
}
