// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewSupport

/// Reports whether transfers run, for a display that does not flicker: short transfers are not shown, and short gaps
/// do not end the display.
///
/// ```swift
/// let monitor = ActivityMonitor(for: session)
/// monitor.perform(.spinner(label: "loading"))
/// ```
///
/// A monitor counts transfers from their first attempt, also while they are queued or wait for a retry, until they have
/// ended; a paused transfer does not count. While at least one transfer or closure counts, the monitor is *busy*. It
/// becomes active if it is busy at the end of the activation delay, and it stays active for the completion delay after
/// it was last busy. The default delays are those of AFNetworking's `AFNetworkActivityIndicatorManager`. The monitor
/// keeps the set of running transfers, so it does not miscount, and includes transfers that started before the monitor.
/// There is no shared monitor: without a monitor, transfers have no additional cost.
///
/// The monitor is a sequence of ``isActive``: the present value first, then each change. A slow reader receives the
/// newest value, and never the same value twice in a row. The cancellation of the reader's task ends the sequence. The
/// monitor does not keep sessions or transfers alive. It works until it is released; an iterator of the sequence keeps
/// it, and so does the task of ``perform(_:)`` until that task is cancelled. All members can be used from any thread.
public final class ActivityMonitor: AsyncSequence, Sendable {
    /// The type of the elements: whether the monitor is active.
    public typealias Element = Bool
    /// The type of the errors: the sequence never fails.
    public typealias Failure = Never

    /// The state of a monitor.
    public enum State: String, Sendable, Hashable, CaseIterable {
        /// The monitor is idle, or switched off.
        case notActive
        /// A transfer has started; the monitor becomes active if it is busy at the end of the activation delay.
        case delayingStart
        /// The monitor is busy, and the activation delay is over.
        case active
        /// The last transfer has ended; a display shows the activity until the end of the completion delay.
        case delayingEnd

        /// Whether a display shows the activity: in the states `active` and `delayingEnd`.
        public var isVisible: Bool { self == .active || self == .delayingEnd }
    }

    let tracker: ActivityTracker

    /// Creates a monitor, which is switched on.
    ///
    /// The monitor also counts transfers that run already, as soon as the loop of their session has reported them.
    ///
    /// - Parameters:
    ///   - sessions: The sessions whose transfers count, empty by default; ``watch(_:)`` adds more.
    ///   - activationDelay: The time from the start of the first transfer until the monitor becomes active; 1 s by
    ///     default. Zero or less skips the state ``State/delayingStart``.
    ///   - completionDelay: The time for which the monitor stays active after it was last busy; 170 ms by default. Zero
    ///     or less skips the state ``State/delayingEnd``.
    ///   - clock: Measures the delays; the system's clock by default.
    public init(
        for sessions: [Session] = [], activationDelay: Duration = .seconds(1),
        completionDelay: Duration = .milliseconds(170), clock: any Clock<Duration> = ContinuousClock()
    ) {
        let machine = ActivityMachine(activationDelay: activationDelay, completionDelay: completionDelay)
        tracker = ActivityTracker(machine, clock: clock)
        for session in sessions { watch(session) }
    }

    /// Creates a monitor of one or several sessions, which is switched on.
    ///
    /// - Parameters:
    ///   - session: A session whose transfers count.
    ///   - others: Further sessions; empty by default.
    ///   - activationDelay: The time from the start of the first transfer until the monitor becomes active; 1 s by
    ///     default.
    ///   - completionDelay: The time for which the monitor stays active after it was last busy; 170 ms by default.
    ///   - clock: Measures the delays; the system's clock by default.
    public convenience init(
        for session: Session, _ others: Session..., activationDelay: Duration = .seconds(1),
        completionDelay: Duration = .milliseconds(170), clock: any Clock<Duration> = ContinuousClock()
    ) {
        self.init(
            for: [session] + others, activationDelay: activationDelay, completionDelay: completionDelay, clock: clock)
    }

    deinit { tracker.end() }

    // MARK: The state

    /// Whether the monitor is switched on; true at first.
    ///
    /// A monitor that is switched off is not active. A monitor that is switched on again also counts the transfers and
    /// closures that run at that time, and waits for the activation delay.
    public var isEnabled: Bool {
        get { tracker.isEnabled }
        set { tracker.isEnabled = newValue }
    }

    /// The current state.
    public var state: State { tracker.current }

    /// Whether a display shows the activity now.
    public var isActive: Bool { state.isVisible }

    // MARK: Sessions, transfers and scopes

    /// Counts the transfers of a session until it closes.
    ///
    /// A transfer counts from its first attempt: the time before it, in interceptors of the request, does not count. A
    /// transfer that runs already counts as soon as the session's loop has listed its attempt. A transfer that waits
    /// for a retry counts at once. A second call for a watched session has no effect.
    ///
    /// - Parameter session: The session; the monitor does not keep it.
    public func watch(_ session: Session) { tracker.watch(session.core.relay) }

    /// Stops counting the transfers of a session, also of those that run.
    ///
    /// - Parameter session: The session; a session that is not watched is ignored.
    public func unwatch(_ session: Session) { tracker.unwatch(session.core.relay) }

    /// Counts a transfer from its start until it has ended; a transfer of a watched session is not counted twice.
    ///
    /// - Parameter transfer: The transfer; the monitor neither starts nor keeps it.
    public func follow<Output: Sendable>(_ transfer: Transfer<Output>) { transfer.run.follow(tracker) }

    /// Runs a closure, and counts it as an activity until it returns or throws.
    ///
    /// - Parameter body: The closure, which runs in the caller's isolation.
    /// - Returns: The result of the closure.
    /// - Throws: The error of the closure.
    @discardableResult
    public nonisolated(nonsending) func withActivity<Result, Thrown: Error>(
        _ body: nonisolated(nonsending) () async throws(Thrown) -> Result
    ) async throws(Thrown) -> Result {
        let scope = tracker.beginScope()
        defer { tracker.endScope(scope) }
        return try await body()
    }

    // MARK: The sequence

    /// Returns an iterator, which keeps the monitor.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(self) }

    /// The iterator over the values of ``ActivityMonitor/isActive``.
    public struct AsyncIterator: AsyncIteratorProtocol {
        private let monitor: ActivityMonitor
        private var last: Bool?

        fileprivate init(_ monitor: ActivityMonitor) { self.monitor = monitor }

        /// Waits for a value that differs from the last one; returns nil when the task is cancelled.
        public mutating func next() async -> Bool? { await next(isolation: nil) }

        /// Waits in the caller's isolation for a value that differs from the last one; returns nil when the task is
        /// cancelled.
        public mutating func next(isolation actor: isolated (any Actor)?) async -> Bool? {
            guard let isActive = await monitor.tracker.next(after: last) else { return nil }
            last = isActive
            return isActive
        }
    }
}

extension ActivityMonitor: CustomStringConvertible, CustomReflectable {
    /// The state in words, such as "ActivityMonitor(active)".
    public var description: String { "ActivityMonitor(\(state.rawValue))" }

    /// A mirror whose only child is `description`.
    public var customMirror: Mirror { Mirror(self, children: ["description": description]) }
}
