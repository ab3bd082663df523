// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// How long the parts of a transfer may take.
///
/// ```swift
/// request.options.timeouts = Timeouts(connect: .seconds(3), total: .seconds(30))
/// ```
///
/// A request's timeouts replace those of its session as a whole. To change some of them for a long poll, or for a stream
/// whose elements are rare, begin with the session's:
///
/// ```swift
/// var timeouts = session.configuration.timeouts
/// (timeouts.responseHead, timeouts.idle, timeouts.slowest) = (nil, nil, nil)
/// timeouts.total = .seconds(1800)
/// request.options.timeouts = timeouts
/// ```
public struct Timeouts: Hashable, Sendable {
    /// From the start of the transfer, after its wait in the queue, until a connection is ready for the request:
    /// resolving, connecting and the TLS handshake together.
    ///
    /// 10 s unless set.
    public var connect: Duration

    /// From the last byte of the request until the response's head is complete, informational ones left aside; nil for as
    /// long as `idle` and `total` allow.
    ///
    /// 60 s unless set. Long polls need nil or a longer time, here and for `idle`. A request whose `Accept` names
    /// `text/event-stream` has no limit, unless a time other than 60 s is set: some servers send the head together with the
    /// first event.
    public var responseHead: Duration?

    /// How long a connected transfer may pass without a byte in either direction; nil for ever.
    ///
    /// 60 s unless set.
    public var idle: Duration?

    /// The minimum rate of a body transfer, below which the transfer fails; nil for no minimum.
    ///
    /// 1 KiB within 60 s unless set. It ends transfers that `idle` misses, because a peer moves a byte now and then.
    /// Responses of type `text/event-stream` have no minimum rate. Set nil for other streams with rare elements, such
    /// as NDJSON watches or responses that a server keeps alive with whitespace.
    public var slowest: MinimumRate?

    /// The whole transfer including its wait in the queue; nil, the default, for ever.
    public var total: Duration?

    /// The wait for a place on the wire, under the session's limits; nil, the default, for ever.
    ///
    /// The error tells how many others wait and who holds the places.
    public var queue: Duration?

    /// Timeouts, each with its default.
    public init(
        connect: Duration = .seconds(10), responseHead: Duration? = .seconds(60), idle: Duration? = .seconds(60),
        total: Duration? = nil, queue: Duration? = nil,
        slowest: MinimumRate? = MinimumRate(bytes: .kibibytes(1), within: .seconds(60))
    ) {
        self.connect = connect
        self.responseHead = responseHead
        self.idle = idle
        self.total = total
        self.queue = queue
        self.slowest = slowest
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

        /// A rate, such as 1 KiB within 30 s.
        public init(bytes: ByteCount, within: Duration) {
            self.bytes = bytes
            self.within = within
        }

        /// Decodes a size and seconds.
        /// - Throws: `DecodingError` when one is missing, negative or endless.
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
        /// - Throws: What the encoder throws.
        public func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: Keys.self)
            try container.encode(bytes, forKey: .bytes)
            try container.encode(within.inSeconds, forKey: .within)
        }

        private enum Keys: CodingKey {
            case bytes, within
        }
    }

    /// The member that is not above zero, by name; nil when all are.
    var firstInvalid: String? {
        if connect <= .zero { return "connect" }
        if let responseHead, responseHead <= .zero { return "responseHead" }
        if let idle, idle <= .zero { return "idle" }
        if let total, total <= .zero { return "total" }
        if let queue, queue <= .zero { return "queue" }
        if let slowest, slowest.within <= .zero || slowest.bytes < 1 { return "slowest" }
        return nil
    }
}

extension Timeouts: Codable {
    private enum CodingKeys: CodingKey {
        case connect, responseHead, idle, total, queue, slowest
    }

    /// Decodes seconds as numbers.
    ///
    /// A missing key takes its default; null means no timeout, but for `connect`.
    /// - Throws: `DecodingError.dataCorrupted` for a negative or endless number.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        self.init()
        connect = try container.seconds(.connect) ?? connect
        if container.contains(.idle) { idle = try container.seconds(.idle) }
        if container.contains(.responseHead) { responseHead = try container.seconds(.responseHead) }
        total = try container.seconds(.total)
        queue = try container.seconds(.queue)
        if container.contains(.slowest) {
            slowest = try container.decodeIfPresent(MinimumRate.self, forKey: .slowest)
        }
    }

    /// Encodes seconds as numbers, and null for no timeout.
    /// - Throws: What the encoder throws.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(connect.inSeconds, forKey: .connect)
        try container.encode(responseHead?.inSeconds, forKey: .responseHead)
        try container.encode(idle?.inSeconds, forKey: .idle)
        try container.encode(total?.inSeconds, forKey: .total)
        try container.encode(queue?.inSeconds, forKey: .queue)
        try container.encode(slowest, forKey: .slowest)
    }
}

extension KeyedDecodingContainer {
    func seconds(_ key: Key) throws -> Duration? {
        guard let number = try decodeIfPresent(Double.self, forKey: key) else { return nil }
        guard let duration = Duration(untrustedSeconds: number) else {
            throw DecodingError.dataCorruptedError(
                forKey: key, in: self, debugDescription: "\(number) is not a sensible number of seconds")
        }
        return duration
    }
}
