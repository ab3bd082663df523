// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Stops requests to a failing origin for a while, so that neither the server nor the callers waste time on them;
/// shared by all tasks.
///
/// After some failures in a row, or too large a share of failures in the latest requests, the circuit of an origin
/// *opens*: requests fail at once with ``NetworkError/Kind/circuitOpen``, and ``NetworkError/retryAfter`` is the
/// remaining cooldown. When the cooldown is over, one request passes as a probe, while others still fail. If the probe
/// succeeds, the circuit closes; if it fails, the circuit opens for another cooldown. If it is cancelled, or takes as
/// long as a cooldown, the next request becomes the probe.
///
/// A response with one of the `statuses` is a failure. So is an origin that cannot be resolved or connected to, breaks
/// the connection, refuses the stream or exceeds a time limit. A response counts when its head arrives. Errors on the
/// client's side and cancelled requests say nothing about the server and do not count.
///
/// The interceptor surrounds each attempt, so retries count, and fail at once too: a ``RetryPolicy`` does not retry a
/// request that an open circuit has stopped. Copies share their circuits.
///
/// ```swift
/// let session = Session(interceptors: [.circuitBreaker(failures: 3, cooldown: .seconds(10))])
/// ```
public struct CircuitBreaker: Interceptor {
    private let circuits: Circuits
    private let rule: Circuit.Rule
    private let statuses: StatusSet

    /// `.attempt`: redirects and retries count, too.
    public var scope: Interception.Scope { .attempt }

    /// Creates a circuit breaker that opens after failures in a row, or by rate.
    ///
    /// With invalid numbers, each request fails with `.invalidRequest`.
    /// - Parameters:
    ///   - failures: How many failures in a row open a circuit; 5 unless given, at least 1.
    ///   - failureRate: The share of failures in the last `window` requests that also opens a circuit, above 0 and up
    ///     to 1; nil, the default, for no such rule.
    ///   - window: How many requests the rate covers, and how many are needed for it; 20 unless given, from 1 to 64.
    ///   - cooldown: How long no request is sent; 30 s unless given, above zero.
    ///   - statuses: The statuses that count as failures; 500, 502, 503 and 504 unless given.
    ///   - clock: The clock that measures cooldowns.
    public init(
        failures: Int = 5, failureRate: Double? = nil, window: Int = 20, cooldown: Duration = .seconds(30),
        statuses: StatusSet = CircuitBreaker.failing, clock: any Clock<Duration> = ContinuousClock()
    ) {
        rule = Circuit.Rule(failures: failures, failureRate: failureRate, window: window, cooldown: cooldown)
        circuits = Circuits(rule, time: clock.stopwatch())
        self.statuses = statuses
    }

    /// The statuses 500, 502, 503 and 504: the server failed.
    public static let failing: StatusSet = [
        .internalServerError, .badGateway, .serviceUnavailable, .gatewayTimeout,
    ]

    /// Passes the request on if the circuit admits it, and records the outcome.
    ///
    /// - Throws: `NetworkError`: `.circuitOpen` in phase `queued`, `.invalidRequest` for invalid numbers, and the
    ///   errors of `next`.
    public func intercept(_ request: Request, context: Interception.Context, next: Interception.Next) async throws
        -> IncomingResponse
    {
        if let brokenRule = rule.firstBroken {
            throw NetworkError(
                invalid: .configuration, "The circuit breaker is not valid: \(brokenRule).",
                request: request)
        }
        // A later step refuses the invalid URL.
        guard let origin = request.origin else { return try await next(request) }
        let admission = circuits.admit(origin)
        if case .refused(let cooldown, let reason) = admission {
            throw refusal(of: request, origin, cooldown, reason, context)
        }
        do throws(NetworkError) {
            let response = try await next(request)
            let status = response.head.status
            circuits.record(origin, admission, statuses.contains(status) ? .failure("status \(status)") : .success)
            return response
        } catch {
            circuits.record(origin, admission, error.indicatesServerFailure ? .failure("\(error.kind)") : .unknown)
            throw error
        }
    }

    private func refusal(
        of request: Request, _ origin: String, _ cooldown: Duration, _ reason: String, _ context: Interception.Context
    ) -> NetworkError {
        let end = cooldown > .zero ? "for another \(cooldown.brief)" : "until the running probe has a response"
        return NetworkError(
            .circuitOpen, phase: .queued,
            "The circuit of \(origin) is open after too many failures, so nothing is sent \(end).",
            hint: "Retry then. The last failure was: \(reason).", request: request, duration: context.elapsed,
            retryAfter: cooldown)
    }
}

extension Interceptor where Self == CircuitBreaker {
    /// Stops requests to failing origins for a while.
    ///
    /// - Parameters:
    ///   - failures: How many failures in a row open an origin's circuit; 5 unless given.
    ///   - failureRate: The share of failures in the last `window` requests that also opens it; no such rule unless
    ///     given.
    ///   - window: How many requests the rate covers; 20 unless given.
    ///   - cooldown: How long no request is sent; 30 s unless given.
    ///   - statuses: The statuses that count as failures; 500, 502, 503 and 504 unless given.
    public static func circuitBreaker(
        failures: Int = 5, failureRate: Double? = nil, window: Int = 20, cooldown: Duration = .seconds(30),
        statuses: StatusSet = CircuitBreaker.failing
    ) -> CircuitBreaker {
        CircuitBreaker(
            failures: failures, failureRate: failureRate, window: window, cooldown: cooldown, statuses: statuses)
    }
}

extension NetworkError {
    /// Whether the error shows a failure of the server or of the network path to it.
    fileprivate var indicatesServerFailure: Bool {
        switch kind {
        case .cannotResolve, .cannotConnect, .connectionLost, .streamRefused: true
        // A timeout in the local queue says nothing about the server.
        case .timedOut: phase > .queued
        default: false
        }
    }
}

extension Circuit.Rule {
    /// The rule that the first invalid member breaks; nil when all are valid.
    fileprivate var firstBroken: String? {
        if failures < 1 { return "failures must be at least 1" }
        if cooldown <= .zero { return "the cooldown must be above zero" }
        if !(1...Circuit.Rule.longestWindow).contains(window) { return "the window must be from 1 to 64" }
        if let failureRate, !(failureRate > 0 && failureRate <= 1) { return "the rate must be above 0 and up to 1" }
        return nil
    }
}
