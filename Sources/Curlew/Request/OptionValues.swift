// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The options that few requests set; nil is unset.
struct OptionValues: Hashable, Codable, Sendable {
    var timeouts: Timeouts?
    var timeout: Duration?
    var responseLimit: ByteCount?
    var decompression: Decompression?
    var compression: RequestCompression?
    var expectContinue: ExpectContinue?
    var connection: ConnectionUse?
    var redirects: RedirectPolicy?
    var statuses: StatusSet?
    var accepting: [MediaType]?
    var bandwidth: BandwidthLimit?
    var retry: RetryPolicy?
    var isAnonymous: Bool?

    /// These values, with `other`'s in the place of those that it sets.
    func merging(_ other: OptionValues) -> OptionValues {
        OptionValues(
            timeouts: other.timeouts ?? timeouts, timeout: other.timeout ?? (other.timeouts == nil ? timeout : nil),
            responseLimit: other.responseLimit ?? responseLimit, decompression: other.decompression ?? decompression,
            compression: other.compression ?? compression, expectContinue: other.expectContinue ?? expectContinue,
            connection: other.connection ?? connection, redirects: other.redirects ?? redirects,
            statuses: other.statuses ?? statuses, accepting: other.accepting ?? accepting,
            bandwidth: bandwidth?.merging(other.bandwidth) ?? other.bandwidth, retry: other.retry ?? retry,
            isAnonymous: other.isAnonymous ?? isAnonymous)
    }

    /// All but `timeout`, which is written in seconds.
    enum CodingKeys: CodingKey {
        case timeouts, responseLimit, decompression, compression, expectContinue, connection, redirects,
            statuses, accepting, bandwidth, retry, isAnonymous
    }
}

extension Request.Options: ExpressibleByArrayLiteral {
    /// The options of all members, the later ones winning.
    public init(arrayLiteral elements: Request.Options...) {
        self = elements.reduce(Request.Options()) { $0.merging($1) }
    }

    /// How long the whole transfer may take; the other timeouts stay.
    public static func timeout(_ total: Duration) -> Self { made { $0.timeout = total } }

    /// All timeouts.
    public static func timeouts(_ timeouts: Timeouts) -> Self { made { $0.timeouts = timeouts } }

    /// Which requests start first.
    public static func priority(_ priority: Request.Priority) -> Self { made { $0.priority = priority } }

    /// A name for logs and observers, without secrets.
    public static func label(_ label: String) -> Self { made { $0.label = label } }

    /// How many decoded bytes of the response's body may be collected.
    public static func responseLimit(_ limit: ByteCount) -> Self { made { $0.responseLimit = limit } }

    /// What happens to a compressed response.
    public static func decompression(_ decompression: Decompression) -> Self {
        made { $0.decompression = decompression }
    }

    /// Whether the request's body is compressed.
    public static func compression(_ compression: RequestCompression) -> Self { made { $0.compression = compression } }

    /// Whether the body waits until the server has said that it wants it.
    public static func expectContinue(_ policy: ExpectContinue) -> Self { made { $0.expectContinue = policy } }

    /// Whether the request shares connections with others.
    public static func connection(_ use: ConnectionUse) -> Self { made { $0.connection = use } }

    /// Which redirects are followed.
    public static func redirects(_ policy: RedirectPolicy) -> Self { made { $0.redirects = policy } }

    /// Which statuses are a success.
    public static func statuses(_ statuses: StatusSet) -> Self { made { $0.statuses = statuses } }

    /// Which media types are asked for and taken, in the place of what the serializer says; without any, every type is taken,
    /// and `Accept` is left to the fields of the client and the session.
    public static func accepting(_ types: MediaType...) -> Self { made { $0.accepting = types } }

    /// How many bytes of bodies are sent and received in a second.
    public static func bandwidth(upload: ByteCount? = nil, download: ByteCount? = nil) -> Self {
        made { $0.bandwidth = BandwidthLimit(upload: upload, download: download) }
    }

    /// Whether the request is sent again, and when.
    public static func retry(_ policy: RetryPolicy) -> Self { made { $0.retry = policy } }

    /// No authenticator adds credentials.
    public static var anonymous: Self { made { $0.isAnonymous = true } }

    private static func made(_ change: (inout Self) -> Void) -> Self {
        var options = Self()
        change(&options)
        return options
    }
}

extension Request.Options: Codable {
    private enum CodingKeys: CodingKey { case priority, label, timeout }

    /// Decodes what is there, times in seconds; what is missing is unset.
    /// - Throws: `DecodingError` for a value that makes no sense.
    public init(from decoder: any Decoder) throws {
        self.init()
        values = try OptionValues(from: decoder)
        let container = try decoder.container(keyedBy: CodingKeys.self)
        if let rank = try container.decodeIfPresent(Int.self, forKey: .priority) {
            priority = Request.Priority(rawValue: rank)
        }
        label = try container.decodeIfPresent(String.self, forKey: .label)
        timeout = try container.seconds(.timeout)
    }

    /// Encodes what is set, times in seconds.
    /// - Throws: What the encoder throws.
    public func encode(to encoder: any Encoder) throws {
        try values.encode(to: encoder)
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encodeIfPresent(ownPriority?.rawValue, forKey: .priority)
        try container.encodeIfPresent(label, forKey: .label)
        try container.encodeIfPresent(timeout?.inSeconds, forKey: .timeout)
    }
}
