// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// How long the parts of a transfer may take.
///
/// ```swift
/// request.options.timeouts = Timeouts(connect: .seconds(3), total: .seconds(30))
/// ```
public struct Timeouts: Hashable, Sendable {
    /// From the start of the transfer, after its wait in the queue, until a connection is ready for the request:
    /// resolving, connecting and the TLS handshake together.
    ///
    /// 10 s unless set.
    public var connect: Duration

    /// How long a connected transfer may pass without a byte in either direction; nil for ever.
    ///
    /// 60 s unless set.
    public var idle: Duration?

    /// The whole transfer including its wait in the queue; nil, the default, for ever.
    public var total: Duration?

    /// Timeouts, each with its default.
    public init(connect: Duration = .seconds(10), idle: Duration? = .seconds(60), total: Duration? = nil) {
        self.connect = connect
        self.idle = idle
        self.total = total
    }

    /// The member that is not above zero, by name; nil when all are.
    var firstInvalid: String? {
        if connect <= .zero { return "connect" }
        if let idle, idle <= .zero { return "idle" }
        if let total, total <= .zero { return "total" }
        return nil
    }
}

extension Timeouts: Codable {
    private enum CodingKeys: CodingKey {
        case connect, idle, total
    }

    /// Decodes seconds as numbers.
    ///
    /// A missing key takes its default; null means no timeout for `idle` and `total`.
    /// - Throws: `DecodingError.dataCorrupted` for a negative or endless number.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        self.init()
        connect = try container.seconds(.connect) ?? connect
        if container.contains(.idle) { idle = try container.seconds(.idle) }
        total = try container.seconds(.total)
    }

    /// Encodes seconds as numbers, and null for no timeout.
    /// - Throws: What the encoder throws.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(connect.inSeconds, forKey: .connect)
        try container.encode(idle?.inSeconds, forKey: .idle)
        try container.encode(total?.inSeconds, forKey: .total)
    }
}

extension KeyedDecodingContainer {
    fileprivate func seconds(_ key: Key) throws -> Duration? {
        guard let number = try decodeIfPresent(Double.self, forKey: key) else { return nil }
        guard let duration = Duration(untrustedSeconds: number) else {
            throw DecodingError.dataCorruptedError(
                forKey: key, in: self, debugDescription: "\(number) is not a sensible number of seconds")
        }
        return duration
    }
}
