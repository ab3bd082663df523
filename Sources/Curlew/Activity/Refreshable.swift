// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewSupport

/// Content that can be refreshed, once at a time, and whether that happens now: the state of a refresh indicator.
///
/// ```swift
/// let list = Refreshable()
/// try await list.refresh {
///     photos = try await client.get("photos")
/// }
/// ```
///
/// It is a sequence of ``isRefreshing``, without delays: the present value first, then each change. A slow reader gets
/// the newest value, and never the same value twice in a row. The cancellation of the reader's task ends the sequence.
/// Copies share their state.
public struct Refreshable: AsyncSequence, Sendable {
    /// The type of the elements: whether a refresh runs.
    public typealias Element = Bool
    /// The type of the errors: the sequence never fails.
    public typealias Failure = Never

    /// The closures of `refresh`, one at a time, and the signal for the callers that wait for the end of one.
    private final class Turns: Sendable {
        private let state = Lock((number: UInt64(0), isRunning: false))
        private let ended = Signal()
        /// Sent for each call that waits for another one.
        let waited = Signal()

        /// Begins a turn.
        ///
        /// - Returns: The number of the turn that runs already; nil when a new one begins.
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

    /// Waits until so many calls have found another refresh; tests use it.
    func waitUntilCallersWait(_ count: UInt64) async { _ = await turns.waited.wait(after: count - 1) }

    /// Creates a value that does not refresh.
    public init() {}

    /// Whether a refresh or a followed transfer runs now.
    public var isRefreshing: Bool { monitor.isActive }

    /// Shows a transfer as a refresh, from its start until it has ended; it can be one of several.
    ///
    /// - Parameter transfer: The transfer, which is neither started nor kept.
    public func follow<Output: Sendable>(_ transfer: Transfer<Output>) { monitor.follow(transfer) }

    /// Runs a closure, unless a closure of this value runs already; then waits for its end instead.
    ///
    /// A cancelled task stops waiting, and does not affect the closure of the other call. A closure must not refresh the
    /// same value, since it would wait for its own end.
    ///
    /// - Parameter body: Refreshes the content, in the caller's isolation.
    /// - Returns: Whether the closure ran.
    /// - Throws: The error of the closure.
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
