// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// When an ``EventSource`` connects again, and when it gives up.
///
/// The wait is what the server's last `retry` says, else `delay`. Each attempt in a row that brings no byte of a stream
/// doubles it, as a ``BackOff`` does, up to `longest`; a `Retry-After` of the server is waited for in any case.
///
/// ```swift
/// let patient = Reconnection(delay: .seconds(1), longest: .seconds(60), attempts: 10)
/// for try await event in api.eventSource("feed", reconnection: patient) { print(event.data) }
/// ```
public struct Reconnection: Sendable {
    /// The wait before the first attempt, unless the server's `retry` says another; 3 s unless set.
    public var delay: Duration
    /// The longest wait that doubling leads to; 30 s unless set.
    ///
    /// What the server asks for may be longer.
    public var longest: Duration
    /// How many attempts in a row may bring nothing before the source gives up with the last one's error; nil, the
    /// default, for any number.
    ///
    /// The first connection counts as an attempt; 1 never tries again without having got something.
    public var attempts: Int?
    private let clock: any Clock<Duration>
    private let jitter: @Sendable () -> Double

    /// What doubling begins with where the server asks for no wait at all.
    private static let least = Duration.milliseconds(100)
    /// The shortest wait that a server can ask for.
    private static let shortest = Duration.milliseconds(10)
    /// What arithmetic does not overflow with.
    private static let most = Duration.seconds(Int(Duration.longestAccepted))

    /// A way to reconnect.
    ///
    /// - Parameters:
    ///   - delay: The wait before the first attempt, unless the server says another.
    ///   - longest: The longest wait that doubling leads to.
    ///   - attempts: How many attempts in a row may bring nothing; nil for any number, and less than 1 counts as 1.
    ///   - clock: What the waits are measured by; another one is for tests.
    ///   - jitter: A number that each wait is multiplied by, so that clients of a server that was away do not all come
    ///     back at once: 1…1.5 at random unless given. Less than 1 counts as 1, more than 100 as 100.
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

    /// How long to wait.
    ///
    /// - Parameters:
    ///   - failures: How many attempts in a row have brought nothing.
    ///   - retry: What the server asked for in the stream.
    ///   - retryAfter: What it asked for when it refused.
    func wait(after failures: Int, retry: Duration?, retryAfter: Duration?) -> Duration {
        // What the server says is no reason to ask it without a pause.
        var wait = min(max(retry.map { max($0, Self.shortest) } ?? delay, .zero), Self.most)
        if failures > 1 {
            let backOff = BackOff(first: max(wait, Self.least), longest: min(longest, Self.most))
            wait = max(wait, backOff.ceiling(after: failures))
        }
        let factor = jitter()
        return max(factor > 1 ? wait * min(factor, 100) : wait, retryAfter ?? .zero)
    }

    /// Waits.
    /// - Throws: `CancellationError` when the task is cancelled.
    func pause(for wait: Duration) async throws { try await clock.wait(for: wait) }
}
