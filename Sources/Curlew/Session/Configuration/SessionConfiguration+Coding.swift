// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension Session.Configuration: Codable {
    enum CodingKeys: CodingKey, CaseIterable {
        case timeouts, limits, tls, tcp, fields, http, buffers, redirects, retry, isEphemeral
        case cachePolicy, coalescesRequests, proxy
    }

    /// Decodes a configuration; missing groups and missing members take their defaults.
    /// - Throws: `DecodingError.dataCorrupted` for negative limits, sizes and timeouts, and for unknown versions.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        self.init()
        timeouts = try container.decodeIfPresent(Timeouts.self, forKey: .timeouts) ?? timeouts
        limits = try container.decodeIfPresent(Limits.self, forKey: .limits) ?? limits
        tls = try container.decodeIfPresent(TLS.self, forKey: .tls) ?? tls
        tcp = try container.decodeIfPresent(TCP.self, forKey: .tcp) ?? tcp
        fields = try container.decodeIfPresent(HeaderFields.self, forKey: .fields) ?? fields
        http = try container.decodeIfPresent(HTTP.self, forKey: .http) ?? http
        buffers = try container.decodeIfPresent(Buffers.self, forKey: .buffers) ?? buffers
        redirects = try container.decodeIfPresent(RedirectPolicy.self, forKey: .redirects) ?? redirects
        retry = try container.decodeIfPresent(RetryPolicy.self, forKey: .retry) ?? retry
        isEphemeral = try container.decodeIfPresent(Bool.self, forKey: .isEphemeral) ?? isEphemeral
        cachePolicy = try container.decodeIfPresent(Request.CachePolicy.self, forKey: .cachePolicy) ?? cachePolicy
        coalescesRequests = try container.decodeIfPresent(Bool.self, forKey: .coalescesRequests) ?? coalescesRequests
        proxy = try container.decodeIfPresent(Proxy.Policy.self, forKey: .proxy) ?? proxy
    }

    /// Encodes every group, but omits fields whose values are credentials (``HeaderName/isSensitive``).
    ///
    /// A configuration that is decoded from the result lacks these fields.
    /// - Throws: `EncodingError.invalidValue` for a redirect or proxy policy with a closure, and the errors of the
    ///   encoder.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(timeouts, forKey: .timeouts)
        try container.encode(limits, forKey: .limits)
        try container.encode(tls, forKey: .tls)
        try container.encode(tcp, forKey: .tcp)
        try container.encode(HeaderFields(fields.filter { !$0.name.isSensitive }), forKey: .fields)
        try container.encode(http, forKey: .http)
        try container.encode(buffers, forKey: .buffers)
        try container.encode(redirects, forKey: .redirects)
        try container.encode(retry, forKey: .retry)
        try container.encode(isEphemeral, forKey: .isEphemeral)
        try container.encode(cachePolicy, forKey: .cachePolicy)
        try container.encode(coalescesRequests, forKey: .coalescesRequests)
        try container.encode(proxy, forKey: .proxy)
    }
}

extension Session.Configuration.Limits: Codable {
    enum Keys: CodingKey, CaseIterable {
        case connectionsPerHost, connections, transfersPerHost, streamsPerConnection, idleConnectionLifetime
        case connectionLifetime, requestsPerConnection, responseBody, responseHead, responseFields, decompressionRatio,
            bandwidth
    }

    /// Decodes times as seconds; missing members take their defaults.
    /// - Throws: `DecodingError.dataCorrupted` for negative numbers and for times above about 31 years.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Keys.self)
        self.init()
        connectionsPerHost = try container.count(.connectionsPerHost) ?? connectionsPerHost
        connections = try container.count(.connections) ?? connections
        transfersPerHost = try container.count(.transfersPerHost) ?? transfersPerHost
        streamsPerConnection = try container.count(.streamsPerConnection) ?? streamsPerConnection
        idleConnectionLifetime = try container.seconds(.idleConnectionLifetime) ?? idleConnectionLifetime
        connectionLifetime = try container.seconds(.connectionLifetime)
        requestsPerConnection = try container.count(.requestsPerConnection)
        responseBody = try container.count(.responseBody) ?? responseBody
        responseHead = try container.count(.responseHead) ?? responseHead
        decompressionRatio = try container.count(.decompressionRatio)
        bandwidth = try container.decodeIfPresent(Request.BandwidthLimit.self, forKey: .bandwidth) ?? bandwidth
        responseFields = try container.count(.responseFields) ?? responseFields
    }

    /// Encodes times as seconds.
    /// - Throws: The errors of the encoder.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Keys.self)
        try container.encode(connectionsPerHost, forKey: .connectionsPerHost)
        try container.encode(connections, forKey: .connections)
        try container.encode(transfersPerHost, forKey: .transfersPerHost)
        try container.encode(streamsPerConnection, forKey: .streamsPerConnection)
        try container.encode(idleConnectionLifetime.inSeconds, forKey: .idleConnectionLifetime)
        try container.encode(connectionLifetime?.inSeconds, forKey: .connectionLifetime)
        try container.encode(requestsPerConnection, forKey: .requestsPerConnection)
        try container.encode(responseBody, forKey: .responseBody)
        try container.encode(responseHead, forKey: .responseHead)
        try container.encode(responseFields, forKey: .responseFields)
        try container.encode(decompressionRatio, forKey: .decompressionRatio)
        try container.encode(bandwidth, forKey: .bandwidth)
    }
}

extension Session.Configuration.HTTP: Codable {
    enum Keys: CodingKey, CaseIterable {
        case version, ping, expectContinue, expectContinueTimeout, decompression, compression
    }

    /// Decodes times as seconds; missing members take their defaults.
    /// - Throws: `DecodingError.dataCorrupted` for an unknown version or choice, a negative threshold, and a time that
    ///   is negative or above about 31 years.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Keys.self)
        self.init()
        version = try container.decodeIfPresent(Version.self, forKey: .version) ?? version
        ping = try container.decodeIfPresent(Ping.self, forKey: .ping)
        expectContinue =
            try container.decodeIfPresent(Request.ExpectContinue.self, forKey: .expectContinue) ?? expectContinue
        expectContinueTimeout = try container.seconds(.expectContinueTimeout) ?? expectContinueTimeout
        decompression =
            try container.decodeIfPresent(Request.Decompression.self, forKey: .decompression) ?? decompression
        compression = try container.decodeIfPresent(Request.Compression.self, forKey: .compression) ?? compression
    }

    /// Encodes times as seconds.
    /// - Throws: The errors of the encoder.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Keys.self)
        try container.encode(version, forKey: .version)
        try container.encode(ping, forKey: .ping)
        try container.encode(expectContinue, forKey: .expectContinue)
        try container.encode(expectContinueTimeout.inSeconds, forKey: .expectContinueTimeout)
        try container.encode(decompression, forKey: .decompression)
        try container.encode(compression, forKey: .compression)
    }
}

extension Session.Configuration.HTTP.Ping: Codable {
    private enum Keys: CodingKey { case interval, limit }

    /// Decodes times as seconds; missing members take their defaults.
    /// - Throws: `DecodingError.dataCorrupted` for a time that is negative or above about 31 years.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Keys.self)
        self.init()
        interval = try container.seconds(.interval) ?? interval
        limit = try container.seconds(.limit) ?? limit
    }

    /// Encodes times as seconds.
    /// - Throws: The errors of the encoder.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Keys.self)
        try container.encode(interval.inSeconds, forKey: .interval)
        try container.encode(limit.inSeconds, forKey: .limit)
    }
}

extension Session.Configuration.Buffers: Decodable {
    enum Keys: CodingKey, CaseIterable {
        case highWater, lowWater, receive
    }

    /// Decodes sizes; missing members take their defaults.
    /// - Throws: `DecodingError.dataCorrupted` for negative numbers.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Keys.self)
        self.init()
        highWater = try container.count(.highWater) ?? highWater
        lowWater = try container.count(.lowWater) ?? lowWater
        receive = try container.count(.receive) ?? receive
    }
}

extension KeyedDecodingContainer {
    /// Decodes a number that must not be negative; nil when the key is missing.
    fileprivate func count<Number: Decodable & Comparable & ExpressibleByIntegerLiteral>(
        _ key: Key
    ) throws -> Number? {
        guard let number = try decodeIfPresent(Number.self, forKey: key) else { return nil }
        guard number >= 0 else {
            throw DecodingError.dataCorruptedError(forKey: key, in: self, debugDescription: "It must not be negative.")
        }
        return number
    }
}
