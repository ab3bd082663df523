// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Time limits for the parts of a transfer.
///
/// ```swift
/// request.options.timeouts = Timeouts(connect: .seconds(3), total: .seconds(30))
/// ```
///
/// A request's timeouts replace those of its session as a whole. To change some of them, for a long poll or for a
/// stream whose elements are rare, copy the session's timeouts and change the copy:
///
/// ```swift
/// var timeouts = session.configuration.timeouts
/// (timeouts.responseHead, timeouts.idle, timeouts.minimumRate) = (nil, nil, nil)
/// timeouts.total = .seconds(1800)
/// request.options.timeouts = timeouts
/// ```
public struct Timeouts: Hashable, Sendable {
    /// The time from the start of the transfer, after its wait in the queue, until a connection is ready for the
    /// request: resolving, connecting and the TLS handshake together.
    ///
    /// 10 s unless set.
    public var connect: Duration

    /// The time from the last byte of the request until the response's head is complete, ignoring informational
    /// responses; nil for no limit besides `idle` and `total`.
    ///
    /// 60 s unless set. Long polls need nil or a longer time, here and for `idle`. A request whose `Accept` names
    /// `text/event-stream` has no limit, unless a time other than 60 s is set: some servers send the head together with
    /// the first event.
    public var responseHead: Duration?

    /// How long a connected transfer may pass without a byte in either direction; nil for no limit.
    ///
    /// 60 s unless set.
    public var idle: Duration?

    /// The minimum rate of a body transfer, below which the transfer fails; nil for no minimum.
    ///
    /// 1 KiB within 60 s unless set. It ends transfers that `idle` does not end, because the peer moves a byte now and
    /// then. Responses of type `text/event-stream` have no minimum rate. Set nil for other streams with rare elements,
    /// such as NDJSON watches or responses that a server keeps alive with whitespace.
    public var minimumRate: MinimumRate?

    /// The time for the whole transfer, including its wait in the queue; nil, the default, for no limit.
    public var total: Duration?

    /// The wait in the session's queue, until the limits of the session allow the transfer to start; nil, the default,
    /// for no limit.
    ///
    /// The error states how many slots and connections are in use, how many transfers wait, and how long the oldest
    /// active transfer has run.
    public var queue: Duration?

    /// Creates timeouts; each has its default unless given.
    public init(
        connect: Duration = .seconds(10), responseHead: Duration? = .seconds(60), idle: Duration? = .seconds(60),
        total: Duration? = nil, queue: Duration? = nil,
        minimumRate: MinimumRate? = MinimumRate(bytes: .kibibytes(1), within: .seconds(60))
    ) {
        self.connect = connect
        self.responseHead = responseHead
        self.idle = idle
        self.total = total
        self.queue = queue
        self.minimumRate = minimumRate
    }

    /// The minimum number of body bytes, sent and received together, in every span of time.
    ///
    /// A span begins with the request body, with the response body, at the end of the previous span and after a pause.
    /// Time that the peer does not control is not measured: the wait for the response head (see
    /// ``Timeouts/responseHead``), a paused transfer, a slow reader, a bandwidth limit, and a request body whose source
    /// has no data yet.
    public struct MinimumRate: Hashable, Sendable, Codable {
        /// The fewest bytes of bodies that must move in each span.
        public var bytes: ByteCount
        /// The span, in seconds when encoded.
        public var within: Duration

        /// Creates a rate, such as 1 KiB within 30 s.
        public init(bytes: ByteCount, within: Duration) {
            self.bytes = bytes
            self.within = within
        }

        /// Decodes a size and seconds.
        /// - Throws: `DecodingError` when a value is missing, or negative, or longer than about 31 years.
        public init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: Keys.self)
            bytes = try container.decode(ByteCount.self, forKey: .bytes)
            guard let within = try container.seconds(.within) else {
                throw DecodingError.dataCorruptedError(
                    forKey: .within, in: container, debugDescription: "A rate needs a span of time.")
            }
            self.within = within
        }

        /// Encodes a size and seconds.
        /// - Throws: The errors of the encoder.
        public func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: Keys.self)
            try container.encode(bytes, forKey: .bytes)
            try container.encode(within.inSeconds, forKey: .within)
        }

        private enum Keys: CodingKey {
            case bytes, within
        }
    }

    /// The name of the first member that is not above zero; nil when all are valid.
    var firstInvalid: String? {
        if connect <= .zero { return "connect" }
        if let responseHead, responseHead <= .zero { return "responseHead" }
        if let idle, idle <= .zero { return "idle" }
        if let total, total <= .zero { return "total" }
        if let queue, queue <= .zero { return "queue" }
        if let minimumRate, minimumRate.within <= .zero || minimumRate.bytes < 1 { return "minimumRate" }
        return nil
    }
}

extension Timeouts: Codable {
    private enum CodingKeys: CodingKey {
        case connect, responseHead, idle, total, queue, minimumRate
    }

    /// Decodes seconds as numbers.
    ///
    /// A missing key leaves the default; null means no limit, except for `connect`, where it leaves the default.
    /// - Throws: `DecodingError.dataCorrupted` for a number that is negative or above about 31 years.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        self.init()
        connect = try container.seconds(.connect) ?? connect
        if container.contains(.idle) { idle = try container.seconds(.idle) }
        if container.contains(.responseHead) { responseHead = try container.seconds(.responseHead) }
        total = try container.seconds(.total)
        queue = try container.seconds(.queue)
        if container.contains(.minimumRate) {
            minimumRate = try container.decodeIfPresent(MinimumRate.self, forKey: .minimumRate)
        }
    }

    /// Encodes seconds as numbers, and null for no limit.
    /// - Throws: The errors of the encoder.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(connect.inSeconds, forKey: .connect)
        try container.encode(responseHead?.inSeconds, forKey: .responseHead)
        try container.encode(idle?.inSeconds, forKey: .idle)
        try container.encode(total?.inSeconds, forKey: .total)
        try container.encode(queue?.inSeconds, forKey: .queue)
        try container.encode(minimumRate, forKey: .minimumRate)
    }
}

extension KeyedDecodingContainer {
    func seconds(_ key: Key) throws -> Duration? {
        guard let number = try decodeIfPresent(Double.self, forKey: key) else { return nil }
        guard let duration = Duration(untrustedSeconds: number) else {
            throw DecodingError.dataCorruptedError(
                forKey: key, in: self, debugDescription: "\(number) is not a valid number of seconds")
        }
        return duration
    }
}
