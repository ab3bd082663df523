// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Spares a server that fails again and again, and its callers the wait: for each origin, and for all tasks alike.
///
/// After some failures in a row, or too large a part of the latest requests, the circuit of an origin *opens*: requests
/// fail at once with ``NetworkError/Kind/circuitOpen``, and ``NetworkError/retryAfter`` says for how long. When the rest
/// is over one request is let through, while others still fail: if it goes well the circuit closes, if it fails it opens
/// for another rest, and if it is cancelled, or takes as long as a rest, the next one takes its place.
///
/// Failures are the `statuses`, and an origin that cannot be resolved or connected to, breaks the connection, refuses
/// streams or lets a time limit pass. A response counts with its head. What is wrong on this side, and what is cancelled,
/// says nothing about the server and does not count.
///
/// It surrounds each attempt, so that repetitions count, and fail at once too: a ``RetryPolicy`` does not repeat what an
/// open circuit has stopped. Copies share their circuits.
///
/// ```swift
/// let session = Session(interceptors: [.circuitBreaker(failures: 3, rest: .seconds(10))])
/// ```
public struct CircuitBreaker: Interceptor {
    private let circuits: Circuits
    private let rule: Circuit.Rule
    private let statuses: StatusSet

    /// `.attempt`: redirects and repetitions count, too.
    public var scope: InterceptorScope { .attempt }

    /// Opens after failures in a row, or by rate.
    ///
    /// What makes no sense is told by each request, as `.invalidRequest`.
    /// - Parameters:
    ///   - failures: How many failures in a row open it; 5 unless given, at least 1.
    ///   - failureRate: The part of the last `window` requests that opens it, too, above 0 and up to 1; nil, the default,
    ///     for none.
    ///   - window: How many requests the rate is about, and how many there must be; 20 unless given, from 1 to 64.
    ///   - rest: How long nothing is sent; 30 s unless given, above zero.
    ///   - statuses: Which count as failures; 500, 502, 503 and 504 unless given.
    ///   - clock: What rests are measured by.
    public init(
        failures: Int = 5, failureRate: Double? = nil, window: Int = 20, rest: Duration = .seconds(30),
        statuses: StatusSet = CircuitBreaker.failing, clock: any Clock<Duration> = ContinuousClock()
    ) {
        rule = Circuit.Rule(failures: failures, failureRate: failureRate, window: window, rest: rest)
        circuits = Circuits(rule, time: clock.stopwatch())
        self.statuses = statuses
    }

    /// 500, 502, 503 and 504: the server failed.
    public static let failing: StatusSet = [
        .internalServerError, .badGateway, .serviceUnavailable, .gatewayTimeout,
    ]

    /// Passes the request on while the circuit lets it, and takes note of what becomes of it.
    /// - Throws: `NetworkError`: `.circuitOpen` in phase `queued`, `.invalidRequest` for numbers that make no sense, and
    ///   whatever `next` throws.
    public func intercept(_ request: Request, context: InterceptorContext, next: Next) async throws -> IncomingResponse
    {
        if let brokenRule = rule.firstBroken {
            throw NetworkError(
                invalid: .configuration, "The circuit breaker is not valid: \(brokenRule).",
                request: request)
        }
        // Behind it the URL is refused.
        guard let origin = request.origin else { return try await next(request) }
        let admission = circuits.admit(origin)
        if case .refused(let rest, let reason) = admission {
            throw refusal(of: request, origin, rest, reason, context)
        }
        do throws(NetworkError) {
            let response = try await next(request)
            let status = response.head.status
            circuits.settle(origin, admission, statuses.contains(status) ? .failure("it answered \(status)") : .success)
            return response
        } catch {
            circuits.settle(origin, admission, error.isOfServer ? .failure("\(error.kind)") : .unknown)
            throw error
        }
    }

    private func refusal(
        of request: Request, _ origin: String, _ rest: Duration, _ reason: String, _ context: InterceptorContext
    ) -> NetworkError {
        let end = rest > .zero ? "for another \(rest.brief)" : "until the one that tries has an answer"
        return NetworkError(
            .circuitOpen, phase: .queued,
            "The circuit of \(origin) is open after too many failures, so nothing is sent \(end).",
            hint: "Try again then. The last failure was: \(reason).", request: request, duration: context.elapsed,
            retryAfter: rest)
    }
}

extension Interceptor where Self == CircuitBreaker {
    /// Spares servers that fail again and again.
    ///
    /// - Parameters:
    ///   - failures: How many failures in a row open an origin's circuit; 5 unless given.
    ///   - failureRate: The part of the last `window` requests that opens it, too; none unless given.
    ///   - window: How many requests the rate is about; 20 unless given.
    ///   - rest: How long nothing is sent; 30 s unless given.
    ///   - statuses: Which count as failures; 500, 502, 503 and 504 unless given.
    public static func circuitBreaker(
        failures: Int = 5, failureRate: Double? = nil, window: Int = 20, rest: Duration = .seconds(30),
        statuses: StatusSet = CircuitBreaker.failing
    ) -> CircuitBreaker {
        CircuitBreaker(
            failures: failures, failureRate: failureRate, window: window, rest: rest, statuses: statuses)
    }
}

extension NetworkError {
    /// Whether it says that the server, or the way to it, is in trouble.
    fileprivate var isOfServer: Bool {
        switch kind {
        case .cannotResolve, .cannotConnect, .connectionLost, .streamRefused: true
        // What waits for a place here says nothing about the server.
        case .timedOut: phase > .queued
        default: false
        }
    }
}

extension Circuit.Rule {
    /// The member that makes no sense, and why; nil when all do.
    fileprivate var firstBroken: String? {
        if failures < 1 { return "failures must be at least 1" }
        if rest <= .zero { return "the rest must be above zero" }
        if !(1...Circuit.Rule.longestWindow).contains(window) { return "the window must be from 1 to 64" }
        if let failureRate, !(failureRate > 0 && failureRate <= 1) { return "the rate must be above 0 and up to 1" }
        return nil
    }
}
