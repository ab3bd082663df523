// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewSupport

extension EventSource {
    /// The rules by which an ``EventSource`` reconnects and gives up.
    ///
    /// The wait is the server's last `retry` value, or `delay` without one. From the second consecutive attempt without
    /// a byte of a stream, each attempt doubles the wait, as ``RetryPolicy/Backoff`` does, up to `longest`. The wait is
    /// never shorter than a `Retry-After` of the server. The retry policies of the session and the client do not apply;
    /// a policy in the options of the call does, to each attempt to connect.
    ///
    /// ```swift
    /// let patient = EventSource.Reconnection(delay: .seconds(1), longest: .seconds(60), attempts: 10)
    /// for try await event in api.eventSource("feed", reconnection: patient) { print(event.data) }
    /// ```
    public struct Reconnection: Sendable {
        /// The wait before the first attempt to reconnect, unless the server's `retry` sets another; 3 s by default.
        public var delay: Duration
        /// The longest wait that doubling produces; 30 s by default.
        ///
        /// A wait that the server requests may be longer.
        public var longest: Duration
        /// The number of consecutive attempts without a byte of a stream after which the source fails with the last
        /// attempt's error; nil, the default, for no limit.
        ///
        /// The first connection counts as an attempt. With 1, the source never retries an attempt without a byte.
        public var attempts: Int?
        private let clock: any Clock<Duration>
        private let jitter: @Sendable () -> Double

        /// The wait with which doubling starts if the server requests no wait.
        private static let doublingBase = Duration.milliseconds(100)
        /// The shortest wait that the server can request.
        private static let minimumRetry = Duration.milliseconds(10)
        /// The longest wait, which keeps the arithmetic from overflowing.
        private static let maximumWait = Duration.seconds(Int(Duration.maximumAccepted))

        /// Creates reconnection rules.
        ///
        /// - Parameters:
        ///   - delay: The wait before the first attempt to reconnect, unless the server sets another.
        ///   - longest: The longest wait that doubling produces.
        ///   - attempts: The maximum number of consecutive attempts without a byte of a stream; nil for no limit, and
        ///     less than 1 counts as 1.
        ///   - clock: The clock of the waits; pass another clock in tests.
        ///   - jitter: A factor for each wait, so that the clients of a restarted server do not all reconnect at once:
        ///     random in 1…1.5 by default. Less than 1 counts as 1, more than 100 as 100.
        public init(
            delay: Duration = .seconds(3), longest: Duration = .seconds(30), attempts: Int? = nil,
            clock: any Clock<Duration> = ContinuousClock(),
            jitter: @escaping @Sendable () -> Double = { .random(in: 1...1.5) }
        ) {
            self.delay = delay
            self.longest = longest
            self.attempts = attempts
            self.clock = clock
            self.jitter = jitter
        }

        /// The number of retries; the waits depend on the server too, so ``wait(after:retry:retryAfter:)`` returns
        /// them.
        var policy: RetryPolicy { RetryPolicy(limit: attempts.map { Swift.max($0, 1) - 1 } ?? .max, budget: nil) }

        /// Returns the wait before the next connection.
        ///
        /// - Parameters:
        ///   - failures: The number of consecutive attempts without a byte of a stream.
        ///   - retry: The reconnection time that the server set in the stream.
        ///   - retryAfter: The wait that the server requested in a refused response.
        func wait(after failures: Int, retry: Duration?, retryAfter: Duration?) -> Duration {
            // A `retry` of zero must not make the source reconnect without a pause.
            var wait = Swift.min(
                Swift.max(retry.map { Swift.max($0, Self.minimumRetry) } ?? delay, .zero), Self.maximumWait)
            if failures > 1 {
                let backoff = RetryPolicy.Backoff(
                    first: Swift.max(wait, Self.doublingBase), longest: Swift.min(longest, Self.maximumWait))
                wait = Swift.max(wait, backoff.ceiling(after: failures))
            }
            let factor = jitter()
            return Swift.max(factor > 1 ? wait * Swift.min(factor, 100) : wait, retryAfter ?? .zero)
        }

        /// Waits for a duration.
        /// - Throws: `CancellationError` when the task is cancelled.
        func pause(for wait: Duration) async throws { try await clock.wait(for: wait) }
    }
}
