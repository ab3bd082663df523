// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The rules by which a request is sent again: when, how often, and after which wait.
///
/// Without a policy Curlew resends only requests that no server can have acted on: those that lost a reused connection
/// at its end, and those whose stream was refused. A policy also retries after:
///
/// - errors after which the server cannot have acted (``NetworkError/retriability-swift.property`` is `safe` for any
///   method), for every method;
/// - errors and `statuses` after which the server may have acted, if the method is one of `methods` or the request
///   carries an `Idempotency-Key`.
///
/// A collected body is decoded after the retries, so an error of its content coding is not retried.
///
/// A policy never retries after errors that another attempt cannot avoid. It never retries cancelled requests, requests
/// that an open circuit has stopped, and requests whose body can be read only once and was read. After the last attempt
/// the caller receives that attempt's response or error; ``ResponseHead/earlier`` and ``NetworkError/earlier`` contain
/// the earlier errors.
///
/// ```swift
/// let session = Session { $0.retry = .standard }
/// let config: Config = try await api.get("config", options: .retry(.never))
/// ```
public struct RetryPolicy: Sendable, Hashable {
    /// How many times a request may be sent again; 0 for never.
    public var limit: Int
    /// Methods that are retried although the server may have acted; the idempotent ones (RFC 9110 §9.2.2) unless set.
    public var methods: Set<Method> {
        get { ownMethods ?? RetryPolicy.idempotent }
        set { ownMethods = newValue == RetryPolicy.idempotent ? nil : newValue }
    }
    /// Statuses after which the request is sent again; 408, 429, 500, 502, 503 and 504 unless set.
    public var statuses: StatusSet {
        get { ownStatuses ?? RetryPolicy.transient }
        set { ownStatuses = newValue == RetryPolicy.transient ? nil : newValue }
    }
    /// The methods and the statuses; nil for the defaults, because a process makes its first set of each kind slowly.
    private var ownMethods: Set<Method>?
    private var ownStatuses: StatusSet?
    /// The wait before an attempt, in addition to a requested wait (`Retry-After`, `RateLimit`).
    public var backoff: RetryPolicy.Backoff
    /// The longest wait that a server may request by `Retry-After` or `RateLimit`; 60 s unless set.
    ///
    /// If the server requests a longer wait, the policy gives up.
    public var longestWait: Duration
    /// The latest start of an attempt, counted from the transfer's start; nil, the default, for any time within
    /// `timeouts.total`.
    public var deadline: Duration?
    /// The number of retries per request, on average over all requests to an origin; 0.2 unless set, nil for any
    /// number.
    ///
    /// Each request adds this share to the budget of its origin, and each retry takes one. A budget starts at ten
    /// retries, regains one per second while it is below ten, and holds at most a hundred. When it is empty, the
    /// request is not sent again: the caller receives the last response or error, whose hint names the reason. With
    /// zero, requests add nothing; the initial ten and the one per second remain. This protects a server that is down,
    /// and does not affect a script that sends few requests.
    public var budget: Double?
    /// Whether a request whose method is not in `methods` gets an `Idempotency-Key` (a random UUID, the same for each
    /// attempt), and so may be retried; false unless set.
    ///
    /// Use it with servers that support the field.
    public var addsIdempotencyKey: Bool
    /// Whether an attempt waits until the kernel has a route to the server, after a failure to resolve or to connect;
    /// false unless set.
    ///
    /// The wait precedes the back-off and lasts no longer than `deadline` and `timeouts.total` allow. It ends when a
    /// ``PathMonitor`` of the request's host, or of its proxy's host, reports a satisfied path, under the rules of the
    /// session's `tcp` for interfaces and local addresses. It also ends if two look-ups of the name fail although a
    /// name server can be asked, since the name may not exist, and if the kernel does not answer. The
    /// retries of a session that was created with a path monitor wait for a satisfied path of that monitor instead. A
    /// request with `options.unixSocket` does not wait.
    public var waitsForConnectivity: Bool

    /// Creates a policy; each member has its default unless given.
    public init(
        limit: Int, methods: Set<Method> = RetryPolicy.idempotent, statuses: StatusSet = RetryPolicy.transient,
        backoff: RetryPolicy.Backoff = RetryPolicy.Backoff(), longestWait: Duration = .seconds(60),
        deadline: Duration? = nil,
        budget: Double? = 0.2, addsIdempotencyKey: Bool = false, waitsForConnectivity: Bool = false
    ) {
        self.init(defaultsExcept: limit)
        self.methods = methods
        self.statuses = statuses
        self.backoff = backoff
        self.longestWait = longestWait
        self.deadline = deadline
        self.budget = budget
        self.addsIdempotencyKey = addsIdempotencyKey
        self.waitsForConnectivity = waitsForConnectivity
    }

    /// Creates a policy with defaults, except for the limit.
    private init(defaultsExcept limit: Int) {
        self.limit = limit
        backoff = RetryPolicy.Backoff()
        longestWait = .seconds(60)
        budget = 0.2
        addsIdempotencyKey = false
        waitsForConnectivity = false
    }

    /// Methods that RFC 9110 §9.2.2 calls idempotent.
    public static let idempotent: Set<Method> = Method.known.filter(\.isIdempotent)
    /// The statuses 408, 429, 500, 502, 503 and 504, whose cause may vanish soon.
    public static let transient: StatusSet = [
        .requestTimeout, .tooManyRequests, .internalServerError, .badGateway, .serviceUnavailable, .gatewayTimeout,
    ]

    /// No retries, except for requests that no server can have acted on: the default of a session.
    public static let never = RetryPolicy(defaultsExcept: 0)

    /// Two more attempts, after up to half a second and up to a second.
    public static let standard = RetryPolicy(defaultsExcept: 2)

    /// Returns a policy with a number of retries, otherwise like ``standard``.
    public static func upTo(_ limit: Int) -> RetryPolicy { RetryPolicy(defaultsExcept: limit) }

    /// Whether the policy retries at all.
    var isOn: Bool { limit > 0 }

    /// The name of the first invalid member, with the rule it breaks; nil when all are valid.
    var firstBrokenRule: String? {
        if limit < 0 { return "limit must not be negative" }
        if longestWait < .zero { return "longestWait must not be negative" }
        if let deadline, deadline <= .zero { return "deadline must be above zero" }
        if let budget, !(budget >= 0) { return "budget must not be negative" }
        if backoff.first < .zero || backoff.longest < .zero || backoff.least < .zero || !(backoff.factor >= 1) {
            return "backoff must not be negative, and its factor not below 1"
        }
        return nil
    }
}

extension RetryPolicy: Codable {
    enum CodingKeys: CodingKey, CaseIterable {
        case limit, methods, statuses, backoff, longestWait, deadline, budget, addsIdempotencyKey, waitsForConnectivity
    }

    /// Decodes a policy, times in seconds; a missing key leaves the default, and null means no limit.
    ///
    /// - Throws: `DecodingError` for a missing limit and for negative or too large values.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        self.init(limit: try container.decode(Int.self, forKey: .limit))
        methods = try container.decodeIfPresent(Set<Method>.self, forKey: .methods) ?? methods
        statuses = try container.decodeIfPresent(StatusSet.self, forKey: .statuses) ?? statuses
        backoff = try container.decodeIfPresent(RetryPolicy.Backoff.self, forKey: .backoff) ?? backoff
        longestWait = try container.seconds(.longestWait) ?? longestWait
        deadline = try container.seconds(.deadline)
        if container.contains(.budget) { budget = try container.decodeIfPresent(Double.self, forKey: .budget) }
        addsIdempotencyKey = try container.decodeIfPresent(Bool.self, forKey: .addsIdempotencyKey) ?? false
        waitsForConnectivity = try container.decodeIfPresent(Bool.self, forKey: .waitsForConnectivity) ?? false
        if let rule = firstBrokenRule {
            throw DecodingError.dataCorrupted(
                DecodingError.Context(codingPath: container.codingPath, debugDescription: "In a retry policy \(rule)."))
        }
    }

    /// Encodes all members, times in seconds.
    /// - Throws: The errors of the encoder.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(limit, forKey: .limit)
        try container.encode(methods.sorted { $0.rawValue < $1.rawValue }, forKey: .methods)
        try container.encode(statuses, forKey: .statuses)
        try container.encode(backoff, forKey: .backoff)
        try container.encode(longestWait.inSeconds, forKey: .longestWait)
        try container.encode(deadline?.inSeconds, forKey: .deadline)
        try container.encode(budget, forKey: .budget)
        try container.encode(addsIdempotencyKey, forKey: .addsIdempotencyKey)
        try container.encode(waitsForConnectivity, forKey: .waitsForConnectivity)
    }
}
