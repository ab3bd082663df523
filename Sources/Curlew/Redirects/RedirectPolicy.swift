// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Which redirects are followed, and which fields they may take to another origin.
///
/// Followed are responses with status 301, 302, 303, 307 and 308 and a `Location` (RFC 9110 §15.4), each as a request
/// of its own. 301 and 302 turn POST into GET, 303 turns everything but HEAD into GET, and 307 and 308 change neither
/// method nor body. On the way to another origin (another scheme, host or port) credentials are left behind:
/// user-info, the fields of ``HeaderName/isSensitive``, and those of ``sensitiveFields``, be they the request's own or
/// the session's. ``follow(max:allowingDowngrade:)`` refuses to leave TLS, from https to http, unless that is allowed.
///
/// ```swift
/// let session = Session(SessionConfiguration { $0.redirects = .sameOrigin().withholding("X-Tenant") })
/// request.options.redirects = .custom { $0.isDowngrade ? .stop : .follow }
/// ```
public struct RedirectPolicy: Sendable, Hashable {
    /// A closure with an identity.
    final class Question: Sendable, Hashable {
        let decide: @Sendable (Redirect) async throws -> RedirectDecision

        init(_ decide: @escaping @Sendable (Redirect) async throws -> RedirectDecision) { self.decide = decide }

        static func == (lhs: Question, rhs: Question) -> Bool { lhs === rhs }

        func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
    }

    enum Rule: Sendable, Hashable {
        case follow
        case none
        case sameOrigin
        case custom(Question)
    }

    let rule: Rule
    /// How many redirects of one transfer may be followed; one more is `.tooManyRedirects`.
    let maximum: Int

    /// Names that are left behind on the way to another origin, beside those of ``HeaderName/isSensitive``; none unless
    /// set.
    public var sensitiveFields: [HeaderName] = []

    /// Whether `.follow` goes from https to http.
    let allowsDowngrade: Bool

    init(_ rule: Rule, maximum: Int = RedirectPolicy.usualMaximum, allowsDowngrade: Bool = false) {
        self.rule = rule
        self.maximum = maximum
        self.allowsDowngrade = allowsDowngrade
    }

    static let usualMaximum = 20

    /// Whether a redirect may be followed.
    var followsSome: Bool { rule != .none }

    /// Every redirect is followed but for those from https to http: the default.
    ///
    /// - Parameters:
    ///   - max: How many; one more, or a circle, is `.tooManyRedirects`. A negative number is refused with
    ///     `.invalidRequest` when a request runs.
    ///   - allowingDowngrade: Whether redirects from https to http are followed too, for the network to read and to
    ///     change what is sent: the body of a 307 or 308, and fields other than the sensitive ones. Unless set, such a
    ///     redirect is `.redirectRefused`.
    public static func follow(max: Int = 20, allowingDowngrade: Bool = false) -> RedirectPolicy {
        RedirectPolicy(.follow, maximum: max, allowsDowngrade: allowingDowngrade)
    }

    /// No redirect is followed: the response with the redirecting status is the result.
    ///
    /// Where the policy is optional, as in a request's options, write `RedirectPolicy.none`: Swift takes a bare `.none`
    /// for nil there, and warns.
    public static let none = RedirectPolicy(.none)

    /// Redirects to the same scheme, host and port are followed; one to another origin is the result.
    ///
    /// - Parameter max: How many, as in ``follow(max:allowingDowngrade:)``.
    public static func sameOrigin(max: Int = 20) -> RedirectPolicy { RedirectPolicy(.sameOrigin, maximum: max) }

    /// A closure decides about each redirect.
    ///
    /// It is not asked about responses whose `Location` is missing or unusable. What it throws counts as
    /// ``RedirectDecision/fail(_:)``. It decides about https to http as well: ``Redirect/isDowngrade`` tells of that.
    /// Policies of different calls are never equal, and none can be encoded.
    /// - Parameters:
    ///   - max: How many are followed or rewritten, as in ``follow(max:allowingDowngrade:)``.
    ///   - decide: Called in the transfer's task, one redirect after the other; what it awaits delays the transfer.
    public static func custom(
        max: Int = 20, _ decide: @escaping @Sendable (Redirect) async throws -> RedirectDecision
    ) -> RedirectPolicy {
        RedirectPolicy(.custom(Question(decide)), maximum: max)
    }

    /// A copy that leaves these fields behind too on the way to another origin.
    public func withholding(_ names: HeaderName...) -> RedirectPolicy {
        var copy = self
        copy.sensitiveFields += names
        return copy
    }
}

extension RedirectPolicy: CustomStringConvertible {
    /// The rule and its maximum, such as "same origin, at most 20".
    public var description: String {
        let limit = ", at most \(maximum)"
        return switch rule {
        case .follow: (allowsDowngrade ? "follow also from https to http" : "follow") + limit
        case .none: "none"
        case .sameOrigin: "same origin" + limit
        case .custom: "custom" + limit
        }
    }
}

/// A redirect that a policy is asked about (RFC 9110 §15.4).
public struct Redirect: Sendable {
    /// The request that was redirected.
    public let request: Request
    /// The head of the response that redirects it; its history has the redirects before.
    public let response: ResponseHead
    /// The request that would be sent next, without what must not go to another origin.
    public let proposed: Request
    /// How many redirects were followed before this one.
    public let count: Int
    /// Whether `proposed` goes to the same scheme, host and port as `request`.
    public let isSameOrigin: Bool
    /// Whether TLS would be left: `request` is https and `proposed` http.
    public let isDowngrade: Bool

    /// A redirect of its parts; public so that tests of closures can make one.
    public init(
        request: Request, response: ResponseHead, proposed: Request, count: Int = 0, isSameOrigin: Bool = true,
        isDowngrade: Bool = false
    ) {
        self.request = request
        self.response = response
        self.proposed = proposed
        self.count = count
        self.isSameOrigin = isSameOrigin
        self.isDowngrade = isDowngrade
    }
}

extension Redirect: CustomStringConvertible {
    /// One line: the status and both requests, redacted.
    public var description: String { "\(response.status.code): \(request) → \(proposed)" }
}

/// What becomes of a redirect.
public enum RedirectDecision: Sendable {
    /// The proposed request is sent.
    case follow
    /// This request is sent in its place, counted as a redirect.
    ///
    /// Change the proposed one where that is possible: what goes to another origin then lacks credentials already. All
    /// fields of the given request are sent as they are; of the session's own fields those that hold credentials are
    /// still left out on the way to another origin.
    case rewrite(Request)
    /// The response with the redirecting status is the result.
    case stop
    /// The transfer fails with `.redirectRefused` and this error as its cause.
    case fail(any Error)
}
