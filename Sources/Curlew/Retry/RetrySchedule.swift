// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The retries of one operation, as a pure value: it counts failures and decides what follows each of them.
///
/// The retry interceptor, downloads and their range fetchers share these rules. Event sources use only the count, since
/// they reconnect with any method, and also when the server ends a stream.
struct RetrySchedule: Sendable {
    enum Step: Hashable, Sendable {
        /// Another attempt, after this wait.
        case retry(after: Duration)
        /// No other attempt; the reason, unless it is obvious.
        case stop(String?)
    }

    /// The time at a failure.
    struct Time: Sendable {
        /// The time since the start of the transfer.
        var elapsed: Duration
        /// The remaining part of `timeouts.total`; nil without that limit.
        var remaining: Duration?
    }

    /// Measures the time of a transfer by a clock, which a test can inject.
    struct Stopwatch: Sendable {
        private let elapsed: @Sendable () -> Duration
        private let total: Duration?

        /// Starts to measure.
        ///
        /// - Parameters:
        ///   - clock: The clock that measures the time from now on.
        ///   - start: The time of the transfer until now.
        init(_ clock: any Clock<Duration>, from start: Time) {
            let stopwatch = clock.stopwatch()
            elapsed = { start.elapsed + stopwatch() }
            total = start.remaining.map { $0 + start.elapsed }
        }

        var now: Time {
            let elapsed = elapsed()
            return Time(elapsed: elapsed, remaining: total.map { max($0 - elapsed, .zero) })
        }
    }

    let policy: RetryPolicy
    /// The number of failures since the start, or since the last progress.
    private(set) var failures = 0

    init(_ policy: RetryPolicy) { self.policy = policy }

    /// Starts the count of failures again, because the operation has made progress since the last failure.
    mutating func recordProgress() { failures = 0 }

    /// Counts a failure of any kind.
    ///
    /// - Returns: Whether the policy allows another attempt.
    mutating func recordFailure() -> Bool {
        failures += 1
        return failures <= policy.limit
    }

    /// Counts a failed attempt and returns the next step, without regard to the budget.
    ///
    /// - Parameters:
    ///   - error: The error of the attempt.
    ///   - request: The request of the attempt.
    ///   - time: The time at the failure.
    ///   - chance: A random number from 0 to 1.
    mutating func step(
        after error: NetworkError, of request: Request, at time: Time, chance: @autoclosure () -> Double
    ) -> Step {
        // A status in `policy.statuses` is retried even if its repetition is `.never`. An open circuit must fail at
        // once.
        guard recordFailure(), error.repetition != .never || names(error), error.kind != .circuitOpen else {
            return .stop(nil)
        }
        guard isHarmless(request, after: error) else {
            return .stop(
                "It was not sent again, since the server may have acted on it; an `Idempotency-Key` would allow it.")
        }
        if request.body.isConsumed { return .stop("It was not sent again: its body can be read only once.") }
        let asked = error.retryAfter ?? .zero
        guard asked <= policy.longestWait else {
            let (asked, longest) = (asked.inSeconds, policy.longestWait.inSeconds)
            return .stop("It was not sent again: the requested wait is \(asked) s, and `longestWait` is \(longest) s.")
        }
        let backoff = policy.backoff.wait(after: failures, chance: chance())
        let (least, most) = (max(backoff, asked), backoff + asked)
        if let left = time.remaining, least >= left {
            return .stop("It was not sent again: `timeouts.total` leaves no time for a wait of \(least.inSeconds) s.")
        }
        if let deadline = policy.deadline, time.elapsed + least > deadline {
            return .stop("It was not sent again: the policy's `deadline` leaves no time for it.")
        }
        // Clients with the same requested wait would all return at once, so add the back-off if time allows.
        return .retry(after: left(with: most, at: time) == .zero ? least : most)
    }

    /// Returns the time left beyond a wait, by `deadline` and `timeouts.total`; nil for no limit.
    func left(with wait: Duration, at time: Time) -> Duration? {
        let left = [policy.deadline.map { $0 - time.elapsed }, time.remaining].compactMap { $0 }.min()
        return left.map { max($0 - wait, .zero) }
    }

    /// Returns the error for a response that calls for a retry, or nil for a response to keep.
    ///
    /// - Parameters:
    ///   - head: The head of the response.
    ///   - request: The request of the response.
    ///   - duration: The time since the start of the transfer.
    func refusal(by head: ResponseHead, of request: Request, after duration: Duration?) -> NetworkError? {
        guard policy.statuses.contains(head.status) else { return nil }
        return NetworkError(
            .unacceptableStatus, phase: .validating, "The server responded with \(head.status).", request: request,
            response: head, duration: duration)
    }

    /// Whether sending the request again is harmless.
    private func isHarmless(_ request: Request, after error: NetworkError) -> Bool {
        error.repetition == .safe || isIdempotent(request)
    }

    private func names(_ error: NetworkError) -> Bool {
        error.kind == .unacceptableStatus && error.response.map { policy.statuses.contains($0.status) } == true
    }

    private func isIdempotent(_ request: Request) -> Bool {
        policy.methods.contains(request.method) || request.fields.contains(.idempotencyKey)
    }
}
