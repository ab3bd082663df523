// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// When a request is sent again, how often, and after how long.
///
/// Without a policy Curlew repeats only what no server can have acted on: a request that met the end of a connection it
/// was to reuse, or whose stream was refused. A policy repeats more:
///
/// - errors after which nothing can have happened (``NetworkError/retriability-swift.property`` is `safe` for any
///   method), whatever the method is;
/// - errors and `statuses` after which the server may have acted, where the method is one of `methods` or the request
///   carries an `Idempotency-Key`.
///
/// Never is repeated what cannot help, what the caller cancelled, what an open circuit has stopped, and a request whose body
/// can be read only once and was. After the last try the caller gets that try's response or error;
/// ``ResponseHead/earlier`` and ``NetworkError/earlier`` have the ones before.
///
/// ```swift
/// let session = Session { $0.retry = .standard }
/// let config: Config = try await api.get("config", options: .retry(.none))
/// ```
public struct RetryPolicy: Sendable, Hashable {
    /// How many times a request may be sent again; 0 for never.
    public var limit: Int
    /// Methods that are repeated although the server may have acted; the idempotent ones (RFC 9110 §9.2.2) unless set.
    public var methods: Set<Method>
    /// Statuses after which the request is sent again; 408, 429, 500, 502, 503 and 504 unless set.
    public var statuses: StatusSet
    /// How long to wait, on top of what the server asks for.
    public var backOff: BackOff
    /// How long a server may make a request wait, by `Retry-After` or `RateLimit`; 60 s unless set.
    ///
    /// Asked for more, the policy gives up.
    public var longestWait: Duration
    /// How long after the transfer's start a try may begin; nil, the default, for as long as `timeouts.total` allows.
    public var deadline: Duration?
    /// How many repetitions there may be for one request, on average over all requests to an origin; 0.2 unless set, nil
    /// for any number.
    ///
    /// Each request adds this share to the budget of its origin, and each repetition takes one. A budget starts at ten
    /// repetitions, regains one each second while it is below ten, and holds at most a hundred. When it is empty, the
    /// request is not sent again: the caller gets the last response or error, whose hint says so. With zero, requests
    /// add nothing; the initial ten and the one each second remain. So a server that is down is spared, and a script
    /// that sends few requests notices nothing.
    public var budget: Double?
    /// Whether a request of another method than `methods` gets an `Idempotency-Key` (a random UUID, the same for each
    /// try), and so may be repeated; false unless set.
    ///
    /// It helps with servers that know the field.
    public var addsIdempotencyKey: Bool
    /// Whether a try waits until the machine has a way out, after a failure to resolve or to connect; false unless set.
    ///
    /// It waits before the back-off, no longer than `deadline` and `timeouts.total` allow. A way out is a default route, as
    /// in `NetworkPath.isSatisfied`, so leave it off for servers that are reached without one.
    public var waitsForConnectivity: Bool

    /// A policy, each member with its default.
    public init(
        limit: Int, methods: Set<Method> = RetryPolicy.idempotent, statuses: StatusSet = RetryPolicy.transient,
        backOff: BackOff = BackOff(), longestWait: Duration = .seconds(60), deadline: Duration? = nil,
        budget: Double? = 0.2, addsIdempotencyKey: Bool = false, waitsForConnectivity: Bool = false
    ) {
        self.limit = limit
        self.methods = methods
        self.statuses = statuses
        self.backOff = backOff
        self.longestWait = longestWait
        self.deadline = deadline
        self.budget = budget
        self.addsIdempotencyKey = addsIdempotencyKey
        self.waitsForConnectivity = waitsForConnectivity
    }

    /// Methods that RFC 9110 §9.2.2 calls idempotent.
    public static let idempotent: Set<Method> = [.get, .head, .options, .trace, .put, .delete]
    /// 408, 429, 500, 502, 503 and 504: what may be different in a moment.
    public static let transient: StatusSet = [
        .requestTimeout, .tooManyRequests, .internalServerError, .badGateway, .serviceUnavailable, .gatewayTimeout,
    ]

    /// Nothing is repeated but what no server can have acted on: the default of a session.
    ///
    /// Where the policy is optional, as in a request's options, write `RetryPolicy.none`, or `.retry(.none)`.
    public static let none = RetryPolicy(limit: 0)

    /// Two more tries, after up to half a second and up to a second.
    public static let standard = RetryPolicy(limit: 2)

    /// So many more tries, else as ``standard``.
    public static func upTo(_ limit: Int) -> RetryPolicy { RetryPolicy(limit: limit) }

    /// Whether anything is repeated.
    var isOn: Bool { limit > 0 }

    /// The member that makes no sense, and why; nil when all do.
    var firstBrokenRule: String? {
        if limit < 0 { return "limit must not be negative" }
        if longestWait < .zero { return "longestWait must not be negative" }
        if let deadline, deadline <= .zero { return "deadline must be above zero" }
        if let budget, !(budget >= 0) { return "budget must not be negative" }
        if backOff.first < .zero || backOff.longest < .zero || backOff.least < .zero || !(backOff.factor >= 1) {
            return "backOff must not be negative nor grow by a factor below 1"
        }
        return nil
    }
}

extension RetryPolicy: Codable {
    private enum CodingKeys: CodingKey {
        case limit, methods, statuses, backOff, longestWait, deadline, budget, addsIdempotencyKey, waitsForConnectivity
    }

    /// Decodes what is there, times in seconds; what is missing takes its default, and null is no limit.
    /// - Throws: `DecodingError` for a missing limit and for what is negative or endless.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        self.init(limit: try container.decode(Int.self, forKey: .limit))
        methods = try container.decodeIfPresent(Set<Method>.self, forKey: .methods) ?? methods
        statuses = try container.decodeIfPresent(StatusSet.self, forKey: .statuses) ?? statuses
        backOff = try container.decodeIfPresent(BackOff.self, forKey: .backOff) ?? backOff
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
    /// - Throws: What the encoder throws.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(limit, forKey: .limit)
        try container.encode(methods.sorted { $0.rawValue < $1.rawValue }, forKey: .methods)
        try container.encode(statuses, forKey: .statuses)
        try container.encode(backOff, forKey: .backOff)
        try container.encode(longestWait.inSeconds, forKey: .longestWait)
        try container.encode(deadline?.inSeconds, forKey: .deadline)
        try container.encode(budget, forKey: .budget)
        try container.encode(addsIdempotencyKey, forKey: .addsIdempotencyKey)
        try container.encode(waitsForConnectivity, forKey: .waitsForConnectivity)
    }
}
