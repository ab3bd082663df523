// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import CurlewSupport

/// Time limits for the parts of a transfer.
///
/// ```swift
/// request.options.timeouts = Timeouts(connect: .seconds(3), total: .seconds(30))
/// ```
///
/// A member that is not set is inherited: a request inherits from its client, the client from the session, and the
/// session has the defaults. A member that is set to nil has no limit. So a request for a long poll, or for a stream
/// whose elements are rare, sets only these members:
///
/// ```swift
/// request.options.timeouts.responseHead = nil
/// request.options.timeouts.idle = nil
/// request.options.timeouts.minimumRate = nil
/// ```
public struct Timeouts: Hashable, Sendable {
    /// A member: unset, without a limit, or a limit.
    private enum Member<Value: Hashable & Sendable>: Hashable, Sendable {
        case unset
        case set(Value?)

        func value(or inherited: Value?) -> Value? { if case .set(let value) = self { value } else { inherited } }
        func merging(_ other: Member) -> Member { if case .set = other { other } else { self } }
    }

    private var ownConnect = Member<Duration>.unset
    private var ownHead = Member<Duration>.unset
    private var ownIdle = Member<Duration>.unset
    private var ownRate = Member<MinimumRate>.unset
    private var ownTotal = Member<Duration>.unset
    private var ownQueue = Member<Duration>.unset

    /// The time from the end of the wait in the queue until a connection is ready for the request: resolving,
    /// connecting and the TLS handshake together.
    ///
    /// 10 s unless set.
    public var connect: Duration {
        get { ownConnect.value(or: nil) ?? .seconds(10) }
        set { ownConnect = newValue == Timeouts.inherited ? .unset : .set(newValue) }
    }

    /// The time from the last byte of the request until the response's head is complete, ignoring informational
    /// responses; nil for no limit besides `idle` and `total`.
    ///
    /// 60 s unless set. Long polls need nil or a longer time, here and for `idle`. A request whose `Accept` names
    /// `text/event-stream` has no limit unless one is set: some servers send the head together with the first event.
    public var responseHead: Duration? {
        get { ownHead.value(or: .seconds(60)) }
        set { ownHead = newValue == Timeouts.inherited ? .unset : .set(newValue) }
    }

    /// How long a connected transfer may pass without a byte in either direction; nil for no limit.
    ///
    /// 60 s unless set.
    public var idle: Duration? {
        get { ownIdle.value(or: .seconds(60)) }
        set { ownIdle = newValue == Timeouts.inherited ? .unset : .set(newValue) }
    }

    /// The minimum rate of a body transfer, below which the transfer fails; nil for no minimum.
    ///
    /// 1 KiB within 60 s unless set. The minimum rate ends transfers that `idle` does not end, because the peer moves a
    /// byte now and then. Responses of type `text/event-stream` have no minimum rate. Set nil for other streams with
    /// rare elements, such as NDJSON watches or responses that a server keeps alive with whitespace.
    public var minimumRate: MinimumRate? {
        get { ownRate.value(or: MinimumRate(bytes: .kibibytes(1), within: .seconds(60))) }
        set { ownRate = newValue == MinimumRate.inherited ? .unset : .set(newValue) }
    }

    /// The time for the whole transfer, including its wait in the queue; nil, the default, for no limit.
    public var total: Duration? {
        get { ownTotal.value(or: nil) }
        set { ownTotal = newValue == Timeouts.inherited ? .unset : .set(newValue) }
    }

    /// The wait in the session's queue, until the limits of the session allow the transfer to start; nil, the default,
    /// for no limit.
    ///
    /// The error states how many slots and connections are in use, how many transfers wait, and how long the oldest
    /// active transfer has run.
    public var queue: Duration? {
        get { ownQueue.value(or: nil) }
        set { ownQueue = newValue == Timeouts.inherited ? .unset : .set(newValue) }
    }

    /// Creates timeouts; members that are not given are unset, and nil sets no limit.
    public init(
        connect: Duration = Timeouts.inherited, responseHead: Duration? = Timeouts.inherited,
        idle: Duration? = Timeouts.inherited, total: Duration? = Timeouts.inherited,
        queue: Duration? = Timeouts.inherited, minimumRate: MinimumRate? = MinimumRate.inherited
    ) {
        self.connect = connect
        self.responseHead = responseHead
        self.idle = idle
        self.total = total
        self.queue = queue
        self.minimumRate = minimumRate
    }

    /// The value that leaves a member unset, or makes it unset again.
    public static let inherited = Duration(secondsComponent: .min, attosecondsComponent: 0)

    /// Returns these timeouts, overridden by the members that `other` sets.
    ///
    /// - Parameter other: The timeouts that take precedence.
    public func merging(_ other: Timeouts) -> Timeouts {
        var result = self
        result.ownConnect = ownConnect.merging(other.ownConnect)
        result.ownHead = ownHead.merging(other.ownHead)
        result.ownIdle = ownIdle.merging(other.ownIdle)
        result.ownRate = ownRate.merging(other.ownRate)
        result.ownTotal = ownTotal.merging(other.ownTotal)
        result.ownQueue = ownQueue.merging(other.ownQueue)
        return result
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

        /// The value that leaves the rate unset, or makes it unset again.
        public static let inherited = MinimumRate(bytes: .bytes(0), within: Timeouts.inherited)

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

    /// A time limit by its name, which is also its key in JSON.
    enum Name: String, CodingKey, CaseIterable {
        case connect, responseHead, idle, total, queue, minimumRate
    }

    func sets(_ member: Name) -> Bool {
        switch member {
        case .connect: ownConnect != .unset
        case .responseHead: ownHead != .unset
        case .idle: ownIdle != .unset
        case .total: ownTotal != .unset
        case .queue: ownQueue != .unset
        case .minimumRate: ownRate != .unset
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
    /// Decodes seconds as numbers.
    ///
    /// A missing key leaves its member unset; null means no limit, except for `connect`, where it leaves it unset.
    /// - Throws: `DecodingError.dataCorrupted` for a number that is negative or above about 31 years.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Name.self)
        self.init()
        if let connect = try container.seconds(.connect) { self.connect = connect }
        if container.contains(.responseHead) { responseHead = try container.seconds(.responseHead) }
        if container.contains(.idle) { idle = try container.seconds(.idle) }
        if container.contains(.total) { total = try container.seconds(.total) }
        if container.contains(.queue) { queue = try container.seconds(.queue) }
        if container.contains(.minimumRate) {
            minimumRate = try container.decodeIfPresent(MinimumRate.self, forKey: .minimumRate)
        }
    }

    /// Encodes the members that are set: seconds as numbers, and null for no limit.
    /// - Throws: The errors of the encoder.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Name.self)
        if case .set(let value) = ownConnect { try container.encode(value?.inSeconds, forKey: .connect) }
        if case .set(let value) = ownHead { try container.encode(value?.inSeconds, forKey: .responseHead) }
        if case .set(let value) = ownIdle { try container.encode(value?.inSeconds, forKey: .idle) }
        if case .set(let value) = ownTotal { try container.encode(value?.inSeconds, forKey: .total) }
        if case .set(let value) = ownQueue { try container.encode(value?.inSeconds, forKey: .queue) }
        if case .set(let value) = ownRate { try container.encode(value, forKey: .minimumRate) }
    }
}

// MARK: For the engine

extension TransferLimits {
    /// Replaces the limits whose members are set in `timeouts`.
    mutating func merge(_ timeouts: Timeouts) {
        if timeouts.sets(.connect) { connect = timeouts.connect.engineTime }
        if timeouts.sets(.responseHead) { head = timeouts.responseHead?.engineTime }
        if timeouts.sets(.idle) { idle = timeouts.idle?.engineTime }
        if timeouts.sets(.minimumRate) {
            minimumRate = timeouts.minimumRate.map { (bytes: $0.bytes.bytes, within: $0.within.engineTime) }
        }
        if timeouts.sets(.queue) { queue = timeouts.queue?.engineTime }
        if timeouts.sets(.total) { total = timeouts.total?.engineTime }
    }
}

extension Timeouts {
    /// These timeouts with every member set: an unset member gets its default.
    var withDefaults: Timeouts {
        Timeouts(
            connect: connect, responseHead: responseHead, idle: idle, total: total, queue: queue,
            minimumRate: minimumRate)
    }
}

extension Request {
    /// Whether the request asks for an event stream; some servers send its head together with the first event.
    var acceptsEventStream: Bool { fields[.accept]?.lowercased().contains("text/event-stream") == true }
}

extension TransferLimits.Kind {
    /// Returns the message and the hint of the error for an exceeded limit.
    func explanation(_ length: Duration, of request: Request?) -> (message: String, hint: String) {
        func text(_ member: Timeouts.Name) -> String { NetworkError.limit(member, length, of: request) }
        return switch self {
        case .connect:
            (
                "No connection was made within \(text(.connect)).",
                "Check that the host is up and that no firewall blocks it, or raise the limit."
            )
        case .head:
            (
                "No response head arrived within \(text(.responseHead)).",
                "The server is slow or busy; retry later, or raise the limit."
            )
        case .idle:
            (
                "No byte was sent or received for \(text(.idle)).",
                "The server or the network hangs; retry later, or raise the limit."
            )
        case .slow(let bytes):
            (
                "Fewer than \(ByteCount(bytes)) were transferred within \(text(.minimumRate)).",
                "The server or the network is slow. Retry later, or set `timeouts.minimumRate` to nil for a stream "
                    + "whose elements are rare."
            )
        case .total:
            (
                NetworkError.totalTimeoutMessage(of: request, after: length),
                "Raise the limit if the transfer may take longer."
            )
        }
    }
}

extension Duration {
    /// Nanoseconds for the engine: at least zero, at most about 31 years.
    var engineTime: UInt64 {
        let (seconds, attoseconds) = asWait.components
        return UInt64(seconds) * 1_000_000_000 + UInt64(attoseconds / 1_000_000_000)
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
