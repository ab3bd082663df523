// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Delays requests to an origin for the time that its server requests, and limits their rate; shared by all tasks.
///
/// After a response with 429, 503 or 403 (which some servers use instead of 429) and a `Retry-After`, or with a used-up
/// quota (`RateLimit`, `RateLimit-Remaining`, `X-RateLimit-Remaining`), requests to that origin wait until the time has
/// passed, at most an hour. Then they start one after the other, in the order of their arrival, about 10 ms apart, or
/// at the given rate. Requests already sent are not affected, and the response itself is passed on: a ``RetryPolicy``
/// is responsible for retries.
///
/// A request that would have to wait longer than `longestWait`, or than its `timeouts.total` allows, fails at once with
/// ``NetworkError/Kind/timedOut`` in phase `queued`; ``NetworkError/retryAfter`` is the wait it would have needed.
/// Cancelling the request ends its wait, and so does closing the session.
///
/// The interceptor surrounds each attempt, so redirects and retries wait, too. Copies share their queues: give sessions
/// that must keep a common rate the same interceptor.
///
/// ```swift
/// let session = Session(interceptors: [.rateLimit(requests: 10, per: .seconds(1), burst: 5)])
/// ```
public struct RateLimitInterceptor: Interceptor {
    private let limiters: RateLimiters
    private let longestWait: Duration
    private let clock: any Clock<Duration>
    private let brokenRule: String?

    /// `.attempt`: redirects and retries wait, too.
    public var scope: Interception.Scope { .attempt }

    /// Creates an interceptor that follows the servers' limits, and has no rate of its own.
    ///
    /// - Parameters:
    ///   - longestWait: How long a request may be delayed; 60 s unless given.
    ///   - clock: The clock that measures waits.
    ///   - chance: Returns random numbers from 0 to 1, for the spacing of requests that waited for the same moment.
    public init(
        longestWait: Duration = .seconds(60), clock: any Clock<Duration> = ContinuousClock(),
        chance: @escaping @Sendable () -> Double = { .random(in: 0...1) }
    ) {
        self.init(RateLimiter.Rule(), longestWait, clock, chance, brokenRule: nil)
    }

    /// Creates an interceptor that follows the servers' limits, and a rate of its own, as a token bucket for each
    /// origin.
    ///
    /// With an invalid rate (no requests, no time, no burst), each request fails with `.invalidRequest`.
    /// - Parameters:
    ///   - requests: How many requests may start in `period`, on average; at least 1.
    ///   - period: The time for `requests`; above zero.
    ///   - burst: How many may start at once after a pause; 1 unless given, which spaces them evenly.
    ///   - longestWait: How long a request may be delayed; 60 s unless given.
    ///   - clock: The clock that measures waits.
    ///   - chance: Returns random numbers from 0 to 1, for the spacing of requests.
    public init(
        requests: Int, per period: Duration, burst: Int = 1, longestWait: Duration = .seconds(60),
        clock: any Clock<Duration> = ContinuousClock(),
        chance: @escaping @Sendable () -> Double = { .random(in: 0...1) }
    ) {
        var brokenRule: String?
        if requests < 1 || burst < 1 { brokenRule = "requests and burst must be at least 1" }
        if !(period > .zero && period <= .seconds(Duration.maximumAccepted)) {
            brokenRule = "the period must be above zero, and less than 31 years"
        }
        let pace = RateLimiter.Pace(interval: period / max(requests, 1), burst: max(burst, 1))
        self.init(
            RateLimiter.Rule(pace: brokenRule == nil ? pace : nil), longestWait, clock, chance, brokenRule: brokenRule)
    }

    private init(
        _ rule: RateLimiter.Rule, _ longestWait: Duration, _ clock: any Clock<Duration>,
        _ chance: @escaping @Sendable () -> Double, brokenRule: String?
    ) {
        limiters = RateLimiters(rule, time: clock.stopwatch(), chance: chance)
        self.longestWait = max(longestWait, .zero)
        self.clock = clock
        self.brokenRule = brokenRule
    }

    /// Passes the request on when its turn arrives, and reads the limits for later requests from the response.
    ///
    /// - Throws: `NetworkError`: `.timedOut` in phase `queued` when the wait is too long, `.invalidRequest` for an
    ///   invalid rate, and the errors of `next`.
    public func intercept(_ request: Request, context: Interception.Context, next: Interception.Next) async throws
        -> IncomingResponse
    {
        if let brokenRule {
            throw NetworkError(
                invalid: .configuration, "The rate limit is not valid: \(brokenRule).", request: request)
        }
        // A later step refuses the invalid URL.
        guard let origin = request.origin else { return try await next(request) }
        do {
            try await pass(origin, context)
        } catch let error as RateLimiters.TooLong {
            throw tooLong(error.wait, origin, request, context)
        }
        let response = try await next(request)
        if let wait = response.head.requestedPause { limiters.hold(origin, for: wait) }
        return response
    }

    /// Returns how many requests to the request's origin wait for their turn now.
    func waiting(for request: Request) -> Int { request.origin.map { limiters.count(at: $0) } ?? 0 }

    private func pass(_ origin: String, _ context: Interception.Context) async throws {
        let limit = min(longestWait, context.remaining ?? longestWait)
        let deadline = limiters.now + limit
        switch limiters.enter(origin, limit: limit) {
        case .go: return
        case .tooLong(let wait): throw RateLimiters.TooLong(wait: wait)
        case .wait(let ticket):
            var hasStarted = false
            defer { if !hasStarted { limiters.leave(ticket, at: origin) } }
            let limiters = limiters
            guard
                try await context.wait(
                    atMost: limit, by: clock, until: { await limiters.turn(of: ticket, at: origin) })
            else { throw RateLimiters.TooLong(wait: limit) }
            // A closed session sends nothing any more; the attempt itself reports the error.
            while !context.isClosed {
                guard let delay = try limiters.nextStep(ticket, at: origin, deadline: deadline) else {
                    hasStarted = true
                    return
                }
                try await context.pause(for: delay, by: clock)
            }
        }
    }

    private func tooLong(
        _ wait: Duration, _ origin: String, _ request: Request, _ context: Interception.Context
    ) -> NetworkError {
        let total = context.remaining.map { $0 < longestWait } == true
        return NetworkError(
            .timedOut, phase: .queued,
            "The request would have waited \(wait.brief) for its turn at \(origin), which is longer than "
                + (total
                    ? "the time left of \(NetworkError.limit(.total, context.total, of: request))."
                    : "the \(longestWait.brief) of the rate limit."),
            hint: total ? "Send less, or retry later." : "Send less, retry later, or raise longestWait.",
            request: request, duration: context.elapsed, retryAfter: wait)
    }
}

extension Interceptor where Self == RateLimitInterceptor {
    /// Delays requests for the time that servers request.
    ///
    /// - Parameter longestWait: How long a request may be delayed; 60 s unless given. Requests that would wait longer
    ///   fail at once.
    public static func rateLimit(longestWait: Duration = .seconds(60)) -> RateLimitInterceptor {
        RateLimitInterceptor(longestWait: longestWait)
    }

    /// Limits the rate of requests to each origin, and delays them for the time that servers request.
    ///
    /// - Parameters:
    ///   - requests: How many requests may start in `period`, on average.
    ///   - period: The time for `requests`.
    ///   - burst: How many may start at once after a pause; 1 unless given, which spaces them evenly.
    ///   - longestWait: How long a request may be delayed; 60 s unless given. Requests that would wait longer fail at
    ///     once.
    public static func rateLimit(
        requests: Int, per period: Duration, burst: Int = 1, longestWait: Duration = .seconds(60)
    ) -> RateLimitInterceptor {
        RateLimitInterceptor(requests: requests, per: period, burst: burst, longestWait: longestWait)
    }
}

extension ResponseHead {
    /// How long the server accepts no more requests.
    fileprivate var requestedPause: Duration? {
        let advice = WaitAdvice(self)
        switch status {
        // Some servers use 403 instead of 429.
        case .tooManyRequests, .serviceUnavailable, .forbidden: return advice.wait
        // The quota of one of several resources says nothing about the others while requests succeed.
        default: return fields.contains("X-RateLimit-Resource") ? nil : advice.exhaustedQuota
        }
    }
}
