// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Holds requests back as a server asks for, and keeps to a rate of one's own: for each origin, and for all tasks alike.
///
/// After a response with 429, 503 or 403 (by which some mean 429) and a `Retry-After`, or with a quota that is used up (`RateLimit`,
/// `RateLimit-Remaining`, `X-RateLimit-Remaining`), requests to that origin wait until the time has passed, at most an
/// hour. Then they go one after the other, in the order in which they came, about 10 ms apart, or at the rate given.
/// What is on the wire already is left alone, and the response itself is passed on: repeating it is for a
/// ``RetryPolicy``.
///
/// A request that would have to wait longer than `longestWait` fails at once with ``NetworkError/Kind/timedOut`` in phase
/// `queued`, and ``NetworkError/retryAfter`` says how long it would have been; the same is true of what is left of its
/// `timeouts.total`. Cancelling ends a wait, and so does the end of the session.
///
/// It surrounds each attempt, so that redirects and repetitions wait, too. Copies share their lines: sessions that are to
/// keep a rate together get the same one.
///
/// ```swift
/// let session = Session(interceptors: [.rateLimit(requests: 10, per: .seconds(1), burst: 5)])
/// ```
public struct RateLimitInterceptor: Interceptor {
    private let lines: RequestLines
    private let longestWait: Duration
    private let clock: any Clock<Duration>
    private let brokenRule: String?

    /// `.attempt`: redirects and repetitions wait, too.
    public var scope: InterceptorScope { .attempt }

    /// Keeps to what servers say, and to no rate of one's own.
    ///
    /// - Parameters:
    ///   - longestWait: How long a request may be held back; 60 s unless given.
    ///   - clock: What waits are measured by.
    ///   - chance: Numbers from 0 to 1 drawn at random, for what is between those who waited for the same moment.
    public init(
        longestWait: Duration = .seconds(60), clock: any Clock<Duration> = ContinuousClock(),
        chance: @escaping @Sendable () -> Double = { .random(in: 0...1) }
    ) {
        self.init(RequestLine.Rule(), longestWait, clock, chance, brokenRule: nil)
    }

    /// Keeps to what servers say, and to a rate of one's own, as a token bucket for each origin.
    ///
    /// What makes no sense (no requests, no time, no burst) is told by each request, as `.invalidRequest`.
    /// - Parameters:
    ///   - requests: How many requests may go in `period`, on average; at least 1.
    ///   - period: In which time; above zero.
    ///   - burst: How many may go at once after a pause; 1 unless given, which spaces them evenly.
    ///   - longestWait: How long a request may be held back; 60 s unless given.
    ///   - clock: What waits are measured by.
    ///   - chance: Numbers from 0 to 1 drawn at random.
    public init(
        requests: Int, per period: Duration, burst: Int = 1, longestWait: Duration = .seconds(60),
        clock: any Clock<Duration> = ContinuousClock(),
        chance: @escaping @Sendable () -> Double = { .random(in: 0...1) }
    ) {
        var brokenRule: String?
        if requests < 1 || burst < 1 { brokenRule = "requests and burst must be at least 1" }
        if !(period > .zero && period <= .seconds(Duration.longestAccepted)) {
            brokenRule = "the period must be above zero, and less than 31 years"
        }
        let pace = RequestLine.Pace(interval: period / max(requests, 1), burst: max(burst, 1))
        self.init(
            RequestLine.Rule(pace: brokenRule == nil ? pace : nil), longestWait, clock, chance, brokenRule: brokenRule)
    }

    private init(
        _ rule: RequestLine.Rule, _ longestWait: Duration, _ clock: any Clock<Duration>,
        _ chance: @escaping @Sendable () -> Double, brokenRule: String?
    ) {
        lines = RequestLines(rule, time: clock.stopwatch(), chance: chance)
        self.longestWait = max(longestWait, .zero)
        self.clock = clock
        self.brokenRule = brokenRule
    }

    /// Passes the request on when it is its turn, and takes note of what the server says of the next ones.
    /// - Throws: `NetworkError`: `.timedOut` in phase `queued` when that would be too late, `.invalidRequest` for a rate
    ///   that makes no sense, and whatever `next` throws.
    public func intercept(_ request: Request, context: InterceptorContext, next: Next) async throws -> IncomingResponse
    {
        if let brokenRule {
            throw NetworkError(
                invalid: .configuration, "The rate limit is not valid: \(brokenRule).", request: request)
        }
        // Behind it the URL is refused.
        guard let origin = request.origin else { return try await next(request) }
        do {
            try await pass(origin, context)
        } catch let error as RequestLines.TooLong {
            throw tooLong(error.wait, origin, request, context)
        }
        let response = try await next(request)
        if let wait = response.head.wishForQuiet { lines.hold(origin, for: wait) }
        return response
    }

    /// How many requests to a URL's origin wait for their turn now.
    func waiting(for request: Request) -> Int { request.origin.map { lines.count(at: $0) } ?? 0 }

    private func pass(_ origin: String, _ context: InterceptorContext) async throws {
        let limit = min(longestWait, context.remaining ?? longestWait)
        let deadline = lines.now + limit
        switch lines.enter(origin, limit: limit) {
        case .go: return
        case .tooLong(let wait): throw RequestLines.TooLong(wait: wait)
        case .wait(let ticket):
            var hasGone = false
            defer { if !hasGone { lines.leave(ticket, at: origin) } }
            let lines = lines
            guard
                try await context.wait(
                    atMost: limit, by: clock, until: { await lines.turn(of: ticket, at: origin) })
            else { throw RequestLines.TooLong(wait: limit) }
            // Of a session that has closed nothing goes out any more, which the attempt says better.
            while !context.isClosed {
                guard let rest = try lines.step(ticket, at: origin, deadline: deadline) else {
                    hasGone = true
                    return
                }
                try await context.pause(for: rest, by: clock)
            }
        }
    }

    private func tooLong(
        _ wait: Duration, _ origin: String, _ request: Request, _ context: InterceptorContext
    ) -> NetworkError {
        let total = context.remaining.map { $0 < longestWait } == true
        return NetworkError(
            .timedOut, phase: .queued,
            "The request would have waited \(wait.brief) for its turn at \(origin), which is longer than "
                + (total
                    ? "what is left of \(NetworkError.limit("total", context.total, of: request))."
                    : "the \(longestWait.brief) of the rate limit."),
            hint: total ? "Send less, or try again then." : "Send less, try again then, or give a larger longestWait.",
            request: request, duration: context.elapsed, retryAfter: wait)
    }
}

extension Interceptor where Self == RateLimitInterceptor {
    /// Holds requests back as servers ask for.
    ///
    /// - Parameter longestWait: How long a request may be held back; 60 s unless given. Those that would wait longer fail
    ///   at once.
    public static func rateLimit(longestWait: Duration = .seconds(60)) -> RateLimitInterceptor {
        RateLimitInterceptor(longestWait: longestWait)
    }

    /// Keeps requests to each origin to a rate, and holds them back as servers ask for.
    ///
    /// - Parameters:
    ///   - requests: How many requests may go in `period`, on average.
    ///   - period: In which time.
    ///   - burst: How many may go at once after a pause; 1 unless given, which spaces them evenly.
    ///   - longestWait: How long a request may be held back; 60 s unless given. Those that would wait longer fail at once.
    public static func rateLimit(
        requests: Int, per period: Duration, burst: Int = 1, longestWait: Duration = .seconds(60)
    ) -> RateLimitInterceptor {
        RateLimitInterceptor(requests: requests, per: period, burst: burst, longestWait: longestWait)
    }
}

extension ResponseHead {
    /// How long the server wants no more requests.
    fileprivate var wishForQuiet: Duration? {
        let advice = WaitAdvice(self)
        switch status {
        // Some servers mean 429 by 403.
        case .tooManyRequests, .serviceUnavailable, .forbidden: return advice.wait
        // A quota of one of several resources says nothing about the others as long as requests go well.
        default: return fields.contains("X-RateLimit-Resource") ? nil : advice.usedUp
        }
    }
}
