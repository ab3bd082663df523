// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The options that few requests set; nil means unset.
struct OptionValues: Hashable, Codable, Sendable {
    var timeouts: Timeouts?
    var responseLimit: ByteCount?
    var decompression: Request.Decompression?
    var compression: Request.Compression?
    var expectContinue: Request.ExpectContinue?
    var connection: Request.ConnectionUse?
    var redirects: RedirectPolicy?
    var statuses: StatusSet?
    var accepting: [MediaType]?
    var bandwidth: Request.BandwidthLimit?
    var retry: RetryPolicy?
    var isAnonymous: Bool?
    var cookies: Request.CookieUse?
    var cache: Request.CachePolicy?
    var coalesces: Bool?
    var proxy: Proxy.Policy?
    var unixSocket: String?
    var trafficClass: Request.TrafficClass?

    /// Returns these values, overridden by those that `other` sets.
    func merging(_ other: OptionValues) -> OptionValues {
        OptionValues(
            timeouts: other.timeouts.map { timeouts?.merging($0) ?? $0 } ?? timeouts,
            responseLimit: other.responseLimit ?? responseLimit, decompression: other.decompression ?? decompression,
            compression: other.compression ?? compression, expectContinue: other.expectContinue ?? expectContinue,
            connection: other.connection ?? connection, redirects: other.redirects ?? redirects,
            statuses: other.statuses ?? statuses, accepting: other.accepting ?? accepting,
            bandwidth: bandwidth?.merging(other.bandwidth) ?? other.bandwidth, retry: other.retry ?? retry,
            isAnonymous: other.isAnonymous ?? isAnonymous,
            cookies: other.cookies ?? cookies, cache: other.cache ?? cache,
            coalesces: other.coalesces ?? coalesces, proxy: other.proxy ?? proxy,
            unixSocket: other.unixSocket ?? unixSocket, trafficClass: other.trafficClass ?? trafficClass)
    }
}

extension Request.Options: ExpressibleByArrayLiteral {
    /// Merges the elements; later elements override earlier ones.
    public init(arrayLiteral elements: Request.Options...) {
        self = elements.reduce(Request.Options()) { $0.merging($1) }
    }

    /// Limits the duration of the whole transfer; the other timeouts stay.
    public static func timeout(_ total: Duration) -> Self { made { $0.timeouts.total = total } }

    /// Sets the timeouts whose members are set.
    public static func timeouts(_ timeouts: Timeouts) -> Self { made { $0.timeouts = timeouts } }

    /// Sets the priority of the request.
    public static func priority(_ priority: Request.Priority) -> Self { made { $0.priority = priority } }

    /// Sets a name for logs and observers, which must not contain secrets.
    public static func label(_ label: String) -> Self { made { $0.label = label } }

    /// Limits how many decoded bytes of the response's body may be collected.
    public static func responseLimit(_ limit: ByteCount) -> Self { made { $0.responseLimit = limit } }

    /// Sets how a compressed response is handled.
    public static func decompression(_ decompression: Request.Decompression) -> Self {
        made { $0.decompression = decompression }
    }

    /// Sets whether the request's body is compressed.
    public static func compression(_ compression: Request.Compression) -> Self { made { $0.compression = compression } }

    /// Sets whether the body waits until the server has sent an interim response.
    public static func expectContinue(_ policy: Request.ExpectContinue) -> Self { made { $0.expectContinue = policy } }

    /// Sets whether the request shares connections with others.
    public static func connection(_ use: Request.ConnectionUse) -> Self { made { $0.connection = use } }

    /// Sets which redirects are followed.
    public static func redirects(_ policy: RedirectPolicy) -> Self { made { $0.redirects = policy } }

    /// Sets which statuses are a success.
    public static func statuses(_ statuses: StatusSet) -> Self { made { $0.statuses = statuses } }

    /// Sets the media types that are requested and accepted, instead of those of the serializer.
    ///
    /// Without arguments, every type is accepted, and `Accept` is left to the fields of the client and the session.
    public static func accepting(_ types: MediaType...) -> Self { made { $0.accepting = types } }

    /// Limits how many bytes of bodies are sent and received per second.
    public static func bandwidth(upload: ByteCount? = nil, download: ByteCount? = nil) -> Self {
        made { $0.bandwidth = Request.BandwidthLimit(upload: upload, download: download) }
    }

    /// Sets whether the request is retried, and when.
    public static func retry(_ policy: RetryPolicy) -> Self { made { $0.retry = policy } }

    /// Keeps authenticators from adding credentials.
    public static var anonymous: Self { made { $0.isAnonymous = true } }

    /// Sets whether the cookies of the session's jar are sent, and those of the response stored.
    public static func cookies(_ use: Request.CookieUse) -> Self { made { $0.cookies = use } }

    /// Sets how the session's cache is used.
    public static func cache(_ policy: Request.CachePolicy) -> Self { made { $0.cache = policy } }

    /// Lets the request share the transfer of equal requests that run at the same time.
    public static var coalescing: Self { made { $0.coalesces = true } }

    /// Sets the rule that selects the proxy of the request.
    public static func proxy(_ policy: Proxy.Policy) -> Self { made { $0.proxy = policy } }

    /// Sends the request over a Unix socket: a path, or an abstract name after "@".
    public static func unixSocket(_ path: String) -> Self { made { $0.unixSocket = path } }

    /// Sets the traffic class of the packets that carry the request.
    public static func trafficClass(_ trafficClass: Request.TrafficClass) -> Self {
        made { $0.trafficClass = trafficClass }
    }

    private static func made(_ change: (inout Self) -> Void) -> Self {
        var options = Self()
        change(&options)
        return options
    }
}

extension Request.Options: Codable {
    private enum CodingKeys: CodingKey { case priority, label }

    /// Decodes options, times in seconds; a missing key leaves its option unset.
    /// - Throws: `DecodingError` for an invalid value.
    public init(from decoder: any Decoder) throws {
        self.init()
        var decoded = try OptionValues(from: decoder)
        if decoded.timeouts == Timeouts() { decoded.timeouts = nil }
        values = decoded
        let container = try decoder.container(keyedBy: CodingKeys.self)
        if let rank = try container.decodeIfPresent(Int.self, forKey: .priority) {
            priority = Request.Priority(rawValue: rank)
        }
        label = try container.decodeIfPresent(String.self, forKey: .label)
    }

    /// Encodes the options that are set, times in seconds.
    /// - Throws: The errors of the encoder.
    public func encode(to encoder: any Encoder) throws {
        try values.encode(to: encoder)
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encodeIfPresent(explicitPriority?.rawValue, forKey: .priority)
        try container.encodeIfPresent(label, forKey: .label)
    }
}
