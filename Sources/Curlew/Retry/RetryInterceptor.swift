// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

package import CurlewEngine
internal import FoundationEssentials
internal import CurlewSupport

/// Retries requests by a ``RetryPolicy``.
///
/// Every session has a retry interceptor of its own, which `configuration.retry` and `options.retry` control. Add
/// another one to a client or a request if its attempts must surround other interceptors, or to a test, which can pass
/// a clock and random numbers.
///
/// While a response's body is collected, a failure before its end counts as a failure of the request. A stream is
/// retried only for failures before its head, since afterwards its reader may have received bytes.
///
/// Each interceptor has a budget of its own for all requests that pass it, so use one value for many requests.
///
/// ```swift
/// let patient = api.with { $0.interceptors = [.retry(.upTo(5))] }
/// ```
public struct RetryInterceptor: Interceptor {
    private let policy: RetryPolicy
    /// How the policy folds, and the share of a retry that a request earns; known in advance, because every request
    /// asks for both.
    private let folding: Folding
    private let share: Double?
    private let isOfSession: Bool
    private let budget: RetryBudget
    let clock: any Clock<Duration>
    let chance: @Sendable () -> Double
    /// The caller's wait for connectivity; nil for that of the session.
    private let connectivity: (@Sendable (Request) async -> Void)?

    /// Creates an interceptor with a fixed policy; it ignores the policy in the options of a request.
    ///
    /// - Parameters:
    ///   - policy: When and how often to retry.
    ///   - clock: The clock that measures waits.
    ///   - chance: Returns random numbers from 0 to 1, for the waits.
    ///   - connectivity: Returns when the server of a request is reachable, and soon when its task is cancelled; used
    ///     by a policy that waits for connectivity. Unless given, it returns when the kernel has a route to the
    ///     request's host or its proxy, or when the session's own path monitor reports a satisfied path.
    public init(
        _ policy: RetryPolicy, clock: any Clock<Duration> = ContinuousClock(),
        chance: @escaping @Sendable () -> Double = { .random(in: 0...1) },
        connectivity: (@Sendable (Request) async -> Void)? = nil
    ) {
        self.init(policy, isOfSession: false, clock: clock, chance: chance, connectivity: connectivity)
    }

    init(
        _ policy: RetryPolicy, isOfSession: Bool, clock: any Clock<Duration> = ContinuousClock(),
        chance: @escaping @Sendable () -> Double = { .random(in: 0...1) },
        connectivity: (@Sendable (Request) async -> Void)? = nil
    ) {
        self.connectivity = connectivity
        self.policy = policy
        folding = Folding(policy, runsUserCode: !isOfSession)
        share = policy.share
        self.isOfSession = isOfSession
        self.clock = clock
        self.chance = chance
        budget = RetryBudget()
    }

    /// Passes the request on until an attempt yields a response to keep, or the policy gives up.
    ///
    /// - Throws: The `NetworkError` of the last attempt, with those of the earlier attempts in
    ///   ``NetworkError/earlier``.
    public func intercept(_ request: Request, context: Interception.Context, next: Interception.Next) async throws
        -> IncomingResponse
    {
        let policy = policy(of: request)
        guard policy.isOn else { return try await next(request) }
        if let rule = policy.firstBrokenRule {
            throw NetworkError(
                invalid: .configuration, "The retry policy is not valid: \(rule).", request: request)
        }
        var attempts = Attempts(policy, policy.marking(request), context, clock)
        deposit(attempts.request, policy)
        while true {
            let (wait, reason): (Duration, NetworkError)
            do throws(NetworkError) {
                let response = try await next(attempts.request)
                let refusal = attempts.refusal(by: response)
                let following = refusal.map { step(after: $0, &attempts) }
                guard let refusal, case .retry(let time)? = following else {
                    // A failure before the end of a collected body is a failure of this attempt, so wait for the end
                    // here.
                    return attempts.marking(try await context.waitUntilCollected(response), following?.end)
                }
                await response.discard()
                (wait, reason) = (time, refusal)
            } catch {
                let following = step(after: error, &attempts)
                guard case .retry(let time) = following else { throw attempts.summary(error, following.end) }
                (wait, reason) = (time, error)
            }
            attempts.note(reason, wait)
            let limit = attempts.left(with: wait)
            guard try await pause(for: wait, after: reason, of: attempts.request, policy, atMost: limit, context) else {
                throw attempts.giveUp()
            }
        }
    }

    private func policy(of request: Request) -> RetryPolicy {
        isOfSession ? request.options.retry ?? policy : policy
    }

    /// Returns the next step after a failed attempt.
    private func step(after error: NetworkError, _ attempts: inout Attempts) -> RetrySchedule.Step {
        if Task.isCancelled { return .stop(nil) }
        return withdraw(attempts.step(after: error, chance: chance), attempts.request, attempts.schedule.policy)
    }

    /// Waits before a retry, and first for connectivity if the policy wants that and the server was not reached.
    ///
    /// The back-off follows the wait for connectivity, so that waiting requests do not all return at once.
    ///
    /// - Parameter limit: The longest wait for connectivity; nil for no limit.
    /// - Returns: False if the limit passed first.
    /// - Throws: `CancellationError` when the task is cancelled, and errors of the clock. Unless the result is
    ///   true, the budget gets the payment for the retry back.
    func pause(
        for wait: Duration, after error: NetworkError, of request: Request, _ policy: RetryPolicy,
        atMost limit: Duration?, _ context: Interception.Context
    ) async throws -> Bool {
        var mayRetry = false
        defer { if !mayRetry { refund(request, policy) } }
        if policy.waitsForConnectivity, error.kind == .cannotResolve || error.kind == .cannotConnect,
            try await !context.wait(
                atMost: limit, by: clock,
                until: {
                    if let connectivity { return await connectivity(request) }
                    await context.connectivity.wait(for: request, by: clock)
                })
        {
            return false
        }
        if wait > .zero { try await context.pause(for: wait, by: clock) }
        mayRetry = true
        return true
    }

    /// Pays for a retry from the budget of the request's origin; without budget, the step becomes a stop.
    ///
    /// - Parameter reserve: The number of retries that must be left for others afterwards.
    func withdraw(
        _ step: RetrySchedule.Step, _ request: Request, _ policy: RetryPolicy, leaving reserve: Double = 0
    ) -> RetrySchedule.Step {
        guard case .retry = step, policy.budget != nil,
            !budget.withdraw(for: request.origin ?? "", leaving: reserve)
        else { return step }
        return .stop("It was not sent again: too many requests to this origin fail for the policy's `budget`.")
    }

    /// Adds the share of a request to the budget of its origin.
    func deposit(_ request: Request, _ policy: RetryPolicy) {
        if let share = policy.budget { budget.deposit(share, for: request.origin ?? "") }
    }

    /// Returns the payment for a retry that does not happen.
    func refund(_ request: Request, _ policy: RetryPolicy) {
        if policy.budget != nil { budget.refund(request.origin ?? "") }
    }
}

extension RetryInterceptor: FoldableInterceptor {
    /// How a policy folds.
    fileprivate enum Folding: Sendable {
        /// The interceptor must see these ends.
        case always(ChainInterest)
        /// The interceptor must see these ends; it does not fold for a request that gets an idempotency key, which is
        /// random.
        case withoutKey(ChainInterest)
        /// The policy is invalid and fails each request.
        case never

        /// - Parameter runsUserCode: Whether the clock or a closure may belong to the user.
        init(_ policy: RetryPolicy, runsUserCode: Bool = false) {
            var interest = ChainInterest()
            guard policy.isOn else {
                self = .always(interest)
                return
            }
            interest.statuses = ChainInterest.Statuses(in: policy.statuses.ranges)
            interest.failures = true
            interest.runsUserCode = runsUserCode
            if policy.firstBrokenRule != nil {
                self = .never
            } else {
                self = policy.addsIdempotencyKey ? .withoutKey(interest) : .always(interest)
            }
        }

        func interest(in request: Request, _ policy: RetryPolicy) -> ChainInterest? {
            switch self {
            case .always(let interest): interest
            case .withoutKey(let interest): policy.addsKey(to: request) ? nil : interest
            case .never: nil
            }
        }
    }

    package var plainInterest: ChainInterest? { if case .always(let interest) = folding { interest } else { nil } }

    package var noticedFields: HeadFields { share == nil ? [] : .every }

    package func interest(in request: Request) -> ChainInterest? {
        if isOfSession, let own = request.options.retry { return Folding(own).interest(in: request, own) }
        return folding.interest(in: request, policy)
    }

    /// Earns a share of a retry for a response that bypassed this interceptor.
    package func didBypass(_ request: Request, _ head: RawHead, isComplete: Bool) {
        guard isComplete else { return }
        let share = if isOfSession, let own = request.options.retry { own.share } else { share }
        if let share { budget.earn(share, for: request.origin) }
    }
}

extension Interceptor where Self == RetryInterceptor {
    /// Retries requests by a policy.
    public static func retry(_ policy: RetryPolicy) -> RetryInterceptor { RetryInterceptor(policy) }
}

/// The attempts of one request so far.
private struct Attempts {
    private(set) var schedule: RetrySchedule
    let request: Request
    let context: Interception.Context
    private let stopwatch: RetrySchedule.Stopwatch
    private var failures: [NetworkError] = []

    init(_ policy: RetryPolicy, _ request: Request, _ context: Interception.Context, _ clock: any Clock<Duration>) {
        schedule = RetrySchedule(policy)
        self.request = request
        self.context = context
        stopwatch = RetrySchedule.Stopwatch(clock, from: context.time)
    }

    /// Returns the error for a response that calls for a retry, or nil for a response to keep.
    func refusal(by response: IncomingResponse) -> NetworkError? {
        // The cache would give the same response again.
        if let report = response.head.cache, report.isHit || report.reason == .onlyIfCached { return nil }
        return schedule.refusal(by: response.head, of: response.request, after: context.elapsed)
    }

    mutating func step(after error: NetworkError, chance: () -> Double) -> RetrySchedule.Step {
        schedule.step(after: error, of: request, at: stopwatch.now, chance: chance())
    }

    mutating func note(_ error: NetworkError, _ wait: Duration) {
        failures.append(error)
        context.announce(.waits(wait, after: error))
    }

    /// Returns the time left beyond a wait; nil for no limit.
    func left(with wait: Duration) -> Duration? { schedule.left(with: wait, at: stopwatch.now) }

    /// Returns the error of an attempt whose announced retry did not happen.
    mutating func giveUp() -> NetworkError {
        let last = failures.removeLast()
        return summary(last)
    }

    /// Returns a response to keep, with the errors of the attempts before it.
    func marking(_ response: IncomingResponse, _ end: String?) -> IncomingResponse {
        guard !failures.isEmpty || end != nil else { return response }
        var response = response
        response.head.tries = AttemptHistory(earlier: failures, end: end, duration: context.elapsed)
        return response
    }

    /// Returns the error of the last attempt, with those of the attempts before it.
    func summary(_ error: NetworkError, _ end: String? = nil) -> NetworkError {
        let error = end.map { error.adding(hint: $0) } ?? error
        if failures.isEmpty { return error }
        return error.with(attempts: failures.count + 1, earlier: failures, duration: context.elapsed)
    }
}

extension Interception.Context {
    /// The time of the transfer, for a schedule of retries.
    var time: RetrySchedule.Time { RetrySchedule.Time(elapsed: elapsed, remaining: remaining) }
}

extension RetrySchedule.Step {
    fileprivate var end: String? { if case .stop(let reason) = self { reason } else { nil } }
}

extension RetryPolicy {
    /// The share of a retry that a request earns; nil without a budget.
    fileprivate var share: Double? { isOn ? budget : nil }

    /// Whether the policy wants an idempotency key for a request.
    fileprivate func addsKey(to request: Request) -> Bool {
        addsIdempotencyKey && !methods.contains(request.method) && !request.fields.contains(.idempotencyKey)
    }

    /// Returns the request, with an idempotency key if the policy wants one for it.
    fileprivate func marking(_ request: Request) -> Request {
        guard addsKey(to: request) else { return request }
        var request = request
        // A quoted string (draft-ietf-httpapi-idempotency-key-header).
        request.fields[.idempotencyKey] = "\"\(UUID().uuidString.lowercased())\""
        return request
    }
}
