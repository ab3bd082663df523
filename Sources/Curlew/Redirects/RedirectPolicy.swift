// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The rules that select the redirects to follow and the fields to send to another origin.
///
/// A policy follows responses with status 301, 302, 303, 307 and 308 and a `Location` (RFC 9110 §15.4), each by a new
/// request. 301 and 302 turn POST into GET, 303 turns every method but HEAD into GET, and 307 and 308 change neither
/// method nor body. A request to another origin (another scheme, host or port) omits credentials: user-info, the fields
/// of ``HeaderName/isSensitive``, and those of ``sensitiveFields``, both the request's and the session's.
/// ``follow(max:allowingDowngrade:)`` refuses redirects from https to http, unless they are allowed.
///
/// ```swift
/// let session = Session(Session.Configuration { $0.redirects = .sameOrigin().withholding("X-Tenant") })
/// request.options.redirects = .custom { $0.isDowngrade ? .stop : .follow }
/// ```
public struct RedirectPolicy: Sendable, Hashable {
    enum Rule: Sendable, Hashable {
        case follow
        case none
        case sameOrigin
        case custom(IdentifiedClosure<@Sendable (Redirect) async throws -> Decision>)
    }

    let rule: Rule
    /// The number of redirects of one transfer that may be followed; one more fails with `.tooManyRedirects`.
    let maximum: Int

    /// Names of fields that are not sent to another origin, besides those of ``HeaderName/isSensitive``; empty unless
    /// set.
    public var sensitiveFields: [HeaderName] = []

    /// Whether `.follow` includes redirects from https to http.
    let allowsDowngrade: Bool

    init(_ rule: Rule, maximum: Int = RedirectPolicy.defaultMaximum, allowsDowngrade: Bool = false) {
        self.rule = rule
        self.maximum = maximum
        self.allowsDowngrade = allowsDowngrade
    }

    static let defaultMaximum = 20

    /// Whether the policy may follow a redirect.
    var followsSome: Bool { rule != .none }

    /// Follows every redirect except those from https to http: the default.
    ///
    /// - Parameters:
    ///   - max: The number of redirects that may be followed; one more, or a redirect loop, fails with
    ///     `.tooManyRedirects`. A negative number fails with `.invalidRequest` when a request runs.
    ///   - allowingDowngrade: Whether redirects from https to http are followed, too. The network can then read and
    ///     change the data that is sent: the body of a 307 or 308, and fields other than the sensitive ones. Unless
    ///     set, such a redirect fails with `.redirectRefused`.
    public static func follow(max: Int = 20, allowingDowngrade: Bool = false) -> RedirectPolicy {
        RedirectPolicy(.follow, maximum: max, allowsDowngrade: allowingDowngrade)
    }

    /// Follows no redirect: the redirecting response is the result.
    public static let never = RedirectPolicy(.none)

    /// Follows redirects to the same scheme, host and port; a redirect to another origin is the result.
    ///
    /// - Parameter max: The number of redirects, as in ``follow(max:allowingDowngrade:)``.
    public static func sameOrigin(max: Int = 20) -> RedirectPolicy { RedirectPolicy(.sameOrigin, maximum: max) }

    /// Decides about each redirect by a closure.
    ///
    /// The closure is not called for responses whose `Location` is missing or unusable. An error that it throws counts
    /// as ``Decision/fail(_:)``. It also decides about redirects from https to http; see
    /// ``RedirectPolicy/Redirect/isDowngrade``. Policies of different calls are never equal, and custom policies cannot
    /// be encoded.
    /// - Parameters:
    ///   - max: The number of followed or rewritten redirects, as in ``follow(max:allowingDowngrade:)``.
    ///   - decide: Called in the transfer's task, for one redirect after the other; the transfer waits for its result.
    public static func custom(
        max: Int = 20, _ decide: @escaping @Sendable (RedirectPolicy.Redirect) async throws -> RedirectPolicy.Decision
    ) -> RedirectPolicy {
        RedirectPolicy(.custom(IdentifiedClosure(decide)), maximum: max)
    }

    /// Returns a copy that also omits these fields in requests to another origin.
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

extension RedirectPolicy {
    /// A redirect that the closure of a policy decides about (RFC 9110 §15.4).
    public struct Redirect: Sendable {
        /// The request that was redirected.
        public let request: Request
        /// The head of the redirecting response; its history contains the earlier redirects.
        public let response: ResponseHead
        /// The request that would be sent next, without the fields that must not be sent to another origin.
        public let proposed: Request
        /// How many redirects were followed before this one.
        public let count: Int
        /// Whether `proposed` has the same scheme, host and port as `request`.
        public let isSameOrigin: Bool
        /// Whether the redirect gives up TLS: `request` is https and `proposed` http.
        public let isDowngrade: Bool

        /// Creates a redirect from its parts; public for tests of closures.
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
}

extension RedirectPolicy.Redirect: CustomStringConvertible {
    /// One line: the status and both requests, redacted.
    public var description: String { "\(response.status.code): \(request) → \(proposed)" }
}

extension RedirectPolicy {
    /// The decision about a redirect.
    public enum Decision: Sendable {
        /// Send the proposed request.
        case follow
        /// Send this request instead, counted as a redirect.
        ///
        /// Change the proposed request if possible: credentials for another origin are already removed from it. All
        /// fields of the given request are sent unchanged. The session's own fields are still sent to another origin
        /// without those that hold credentials.
        case rewrite(Request)
        /// Use the redirecting response as the result.
        case stop
        /// Fail the transfer with `.redirectRefused` and this error as its cause.
        case fail(any Error)
    }
}
