// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import FoundationEssentials

/// Sends requests again by a ``RetryPolicy``.
///
/// A session has one of its own, which `configuration.retry` and `options.retry` steer; this is for a client or a request
/// whose tries are to surround other interceptors, and for tests, which bring a clock and chance.
///
/// While a response's body is collected, a failure before its end counts as one of the request's; of a stream only what
/// comes before its head is repeated, since its reader has had the rest.
///
/// Each has a budget of its own, for all requests that pass it: one value is to serve many requests.
///
/// ```swift
/// let patient = api.with { $0.interceptors = [.retry(.upTo(5))] }
/// ```
public struct RetryInterceptor: Interceptor {
    private let policy: RetryPolicy
    private let isOfSession: Bool
    private let budget: RetryBudget
    private let clock: any Clock<Duration>
    private let chance: @Sendable () -> Double
    private let connectivity: @Sendable () async -> Void

    /// Repeats by a policy, whatever the options of a request say.
    ///
    /// - Parameters:
    ///   - policy: When and how often.
    ///   - clock: What waits are measured by.
    ///   - chance: Numbers from 0 to 1 drawn at random, for the waits.
    ///   - connectivity: Returns when there is a way to servers, and soon when its task is cancelled, for a policy that
    ///     waits for that; unless given, when the machine has a default route.
    public init(
        _ policy: RetryPolicy, clock: any Clock<Duration> = ContinuousClock(),
        chance: @escaping @Sendable () -> Double = { .random(in: 0...1) },
        connectivity: (@Sendable () async -> Void)? = nil
    ) {
        self.init(policy, isOfSession: false, clock: clock, chance: chance, connectivity: connectivity)
    }

    init(
        _ policy: RetryPolicy, isOfSession: Bool, clock: any Clock<Duration> = ContinuousClock(),
        chance: @escaping @Sendable () -> Double = { .random(in: 0...1) },
        connectivity: (@Sendable () async -> Void)? = nil
    ) {
        self.connectivity = connectivity ?? Connectivity.wait
        self.policy = policy
        self.isOfSession = isOfSession
        self.clock = clock
        self.chance = chance
        budget = RetryBudget()
    }

    /// Passes the request on until there is a response to keep, or no reason to go on.
    /// - Throws: The last try's `NetworkError`, with the ones before in ``NetworkError/earlier``.
    public func intercept(_ request: Request, context: InterceptorContext, next: Next) async throws -> IncomingResponse
    {
        let policy = isOfSession ? request.options.retry ?? policy : policy
        guard policy.isOn else { return try await next(request) }
        if let rule = policy.firstBrokenRule {
            throw NetworkError(
                invalid: .configuration, "The retry policy is not valid: \(rule).", request: request)
        }
        var tries = Tries(policy, policy.marking(request), context, clock)
        if let share = policy.budget { budget.deposit(share, for: tries.origin) }
        while true {
            let (wait, reason): (Duration, NetworkError)
            do throws(NetworkError) {
                let response = try await next(tries.request)
                let refusal = tries.refusal(by: response)
                let following = refusal.map { step(after: $0, tries) }
                guard let refusal, case .again(let time)? = following else {
                    // The caller hears of no half of a body that is collected.
                    if !context.isStreamed { try await response.complete() }
                    return tries.marking(response, following?.end)
                }
                await response.discard()
                (wait, reason) = (time, refusal)
            } catch {
                let following = step(after: error, tries)
                guard case .again(let time) = following else { throw tries.summary(error, following.end) }
                (wait, reason) = (time, error)
            }
            tries.note(reason, wait)
            do {
                if tries.needsConnectivity(after: reason) {
                    // The back-off comes after it, so that not all who waited come back at once.
                    let isThere = try await context.wait(atMost: tries.left(with: wait), by: clock, until: connectivity)
                    guard isThere else { throw tries.giveUp() }
                }
                if wait > .zero { try await context.pause(for: wait, by: clock) }
            } catch {
                if tries.policy.budget != nil { budget.refund(tries.origin) }
                throw error
            }
        }
    }

    /// Takes note of a request that went well without passing here.
    func noteSuccess(at origin: @autoclosure () -> String?) {
        if let share = policy.budget { budget.earn(share, for: origin()) }
    }

    /// What follows a try.
    private func step(after error: NetworkError, _ tries: Tries) -> Tries.Step {
        let step = tries.step(after: error, chance: chance)
        guard case .again = step, tries.policy.budget != nil, !budget.withdraw(for: tries.origin) else { return step }
        return .stop("It was not sent again: too many requests to this origin fail for the policy's `budget`.")
    }
}

extension Interceptor where Self == RetryInterceptor {
    /// Sends requests again by a policy.
    public static func retry(_ policy: RetryPolicy) -> RetryInterceptor { RetryInterceptor(policy) }
}

/// The tries of one request so far.
private struct Tries {
    let policy: RetryPolicy
    let request: Request
    let context: InterceptorContext
    /// The time since the transfer's start by the policy's clock.
    private let time: @Sendable () -> Duration
    /// What was left of `timeouts.total` at time zero.
    private let total: Duration?
    private var failures: [NetworkError] = []

    init(_ policy: RetryPolicy, _ request: Request, _ context: InterceptorContext, _ clock: any Clock<Duration>) {
        self.policy = policy
        self.request = request
        self.context = context
        let (stopwatch, before) = (clock.stopwatch(), context.elapsed)
        time = { before + stopwatch() }
        total = context.remaining.map { $0 + before }
    }

    private var remaining: Duration? { total.map { max($0 - time(), .zero) } }

    /// Whose budget is asked.
    var origin: String {
        request.origin ?? ""
    }

    /// What a response that is to be asked for again says; nil for one to keep.
    func refusal(by response: IncomingResponse) -> NetworkError? {
        guard policy.statuses.contains(response.head.status) else { return nil }
        return NetworkError(
            .unacceptableStatus, phase: .validating, "The server answered \(response.head.status).",
            request: response.request, response: response.head, duration: context.elapsed)
    }

    enum Step {
        /// Another try, after so long.
        case again(Duration)
        /// None; why, where that is not plain to see.
        case stop(String?)

        var end: String? { if case .stop(let why) = self { why } else { nil } }
    }

    /// What follows a try, by everything but the budget.
    func step(after error: NetworkError, chance: () -> Double) -> Step {
        let count = failures.count + 1
        // An open circuit is there to fail at once.
        guard count <= policy.limit, !Task.isCancelled, error.repetition != .never || isNamed(error),
            error.kind != .circuitOpen
        else {
            return .stop(nil)
        }
        guard mayRepeat(after: error) else {
            return .stop(
                "It was not sent again, since the server may have acted on it: an `Idempotency-Key` would allow it.")
        }
        if request.body.isSpent { return .stop("It was not sent again: its body can be read only once.") }
        let (backOff, asked) = (policy.backOff.wait(after: count, chance: chance()), error.retryAfter ?? .zero)
        guard asked <= policy.longestWait else {
            let (asked, longest) = (asked.inSeconds, policy.longestWait.inSeconds)
            return .stop("It was not sent again: a wait of \(asked) s is asked for, and `longestWait` is \(longest) s.")
        }
        let (least, most) = (max(backOff, asked), backOff + asked)
        if let left = remaining, least >= left {
            return .stop("It was not sent again: `timeouts.total` leaves no time for a wait of \(least.inSeconds) s.")
        }
        if let deadline = policy.deadline, time() + least > deadline {
            return .stop("It was not sent again: the policy's `deadline` leaves no time for it.")
        }
        // All who were asked for the same would come back at once, so the back-off comes on top where there is time.
        return .again(left(with: most) == .zero ? least : most)
    }

    /// Whether doing it again does no harm and could help.
    private func mayRepeat(after error: NetworkError) -> Bool {
        switch error.repetition {
        case .safe: true
        case .repeatable: isIdempotent
        // The policy names the status: whoever wrote it knows more than the table.
        case .never: isNamed(error) && isIdempotent
        }
    }

    private func isNamed(_ error: NetworkError) -> Bool {
        error.kind == .unacceptableStatus && error.response.map { policy.statuses.contains($0.status) } == true
    }

    private var isIdempotent: Bool {
        policy.methods.contains(request.method) || request.fields.contains(.idempotencyKey)
    }

    mutating func note(_ error: NetworkError, _ wait: Duration) {
        failures.append(error)
        context.run.willRetry(after: wait, error)
    }

    /// Whether it was the way to the server that failed, and the policy waits for one.
    func needsConnectivity(after error: NetworkError) -> Bool {
        policy.waitsForConnectivity && (error.kind == .cannotResolve || error.kind == .cannotConnect)
    }

    /// How long a wait may still be put off; nil for any time.
    func left(with wait: Duration) -> Duration? {
        let untilDeadline = policy.deadline.map { $0 - time() }
        let left = [untilDeadline, remaining].compactMap { $0 }.min()
        return left.map { max($0 - wait, .zero) }
    }

    /// The error of a try that was to be followed by another one.
    mutating func giveUp() -> NetworkError {
        let last = failures.removeLast()
        return summary(last)
    }

    /// A response to keep, with what came before it.
    func marking(_ response: IncomingResponse, _ end: String?) -> IncomingResponse {
        guard !failures.isEmpty || end != nil else { return response }
        var response = response
        response.head.tries = TryHistory(earlier: failures, end: end, duration: context.elapsed)
        return response
    }

    /// The last try's error, with those before.
    func summary(_ error: NetworkError, _ end: String? = nil) -> NetworkError {
        let error = end.map { error.adding(hint: $0) } ?? error
        if failures.isEmpty { return error }
        return error.with(attempts: failures.count + 1, earlier: failures, duration: context.elapsed)
    }
}

extension RetryPolicy {
    /// The request with a key, where the policy wants one for it.
    fileprivate func marking(_ request: Request) -> Request {
        guard addsIdempotencyKey, !methods.contains(request.method), !request.fields.contains(.idempotencyKey) else {
            return request
        }
        var request = request
        // A quoted string (draft-ietf-httpapi-idempotency-key-header).
        request.fields[.idempotencyKey] = "\"\(UUID().uuidString.lowercased())\""
        return request
    }
}
