// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension Request {
    /// The settings with which a request overrides the session's configuration; nil members leave the configured value.
    ///
    /// ```swift
    /// request.options.timeouts = Timeouts(total: .seconds(5))
    /// request.options.label = "search"
    /// request.options = [.timeout(.seconds(5)), .priority(.high)]
    /// ```
    public struct Options: Hashable, Sendable {
        /// The priority; nil when unset.
        private(set) var explicitPriority: Priority?
        /// A name for logs and observers.
        ///
        /// The name is shown unchanged, so it must not contain a secret.
        public var label: String?
        /// The rarely set options; nil when no such option is set.
        ///
        /// The box keeps `Options` small, because requests are copied often and live in the frames of suspended tasks.
        private var box: Box?

        /// Whether no option but the priority and the label is set.
        var isPlain: Bool { box == nil }

        /// The order in which requests start when the session's limits make them wait; `.normal` unless set.
        public var priority: Priority {
            get { explicitPriority ?? .normal }
            set { explicitPriority = newValue }
        }
        /// Timeouts for this request; members that are not set are inherited from the client and the session.
        public var timeouts: Timeouts {
            get { box?.values.timeouts ?? Timeouts() }
            set { values.timeouts = newValue == Timeouts() ? nil : newValue }
        }
        /// The timeouts, or nil when no member is set.
        var ownTimeouts: Timeouts? { box?.values.timeouts }
        /// Whether the request has limits of its own, so that it does not share those of the session.
        var setsLimits: Bool { box != nil && (ownTimeouts != nil || responseLimit != nil || bandwidth != nil) }
        /// How many decoded bytes of the response's body may be collected; nil for the session's limit.
        public var responseLimit: ByteCount? {
            get { box?.values.responseLimit }
            set { values.responseLimit = newValue }
        }
        /// How a compressed response is handled; nil for the session's setting.
        public var decompression: Request.Decompression? {
            get { box?.values.decompression }
            set { values.decompression = newValue }
        }
        /// Whether the request's body is compressed; nil for the session's setting.
        public var compression: Request.Compression? {
            get { box?.values.compression }
            set { values.compression = newValue }
        }

        /// Whether the body waits until the server has sent an interim response; nil for the session's setting.
        public var expectContinue: Request.ExpectContinue? {
            get { box?.values.expectContinue }
            set { values.expectContinue = newValue }
        }
        /// Whether the request shares connections with others; `.shared` unless set.
        public var connection: Request.ConnectionUse {
            get { box?.values.connection ?? .shared }
            set { values.connection = newValue }
        }
        /// The policy for redirects; nil for the session's policy.
        public var redirects: RedirectPolicy? {
            get { box?.values.redirects }
            set { values.redirects = newValue }
        }
        /// How many bytes of bodies the request sends and receives per second, in addition to the session's limit; nil
        /// for no limit of the request itself.
        public var bandwidth: Request.BandwidthLimit? {
            get { box?.values.bandwidth }
            set { values.bandwidth = newValue }
        }
        /// Whether the request is retried, and when; nil for the session's policy.
        public var retry: RetryPolicy? {
            get { box?.values.retry }
            set { values.retry = newValue }
        }
        /// Whether the request carries no identity, so that no ``Authenticator`` is applied to it; false unless set.
        ///
        /// Use it for requests that fetch credentials. A client also omits the credential fields that it would add;
        /// credential fields of the request or of the call itself stay.
        public var isAnonymous: Bool {
            get { box?.values.isAnonymous ?? false }
            set { values.isAnonymous = newValue }
        }
        /// The statuses that count as a success; nil for 200…299.
        ///
        /// Clients, serializers and downloads check the status; ``Session/data(for:)`` and ``Session/transfer(_:)``
        /// return every response.
        public var statuses: StatusSet? {
            get { box?.values.statuses }
            set { values.statuses = newValue }
        }
        /// The media types that are requested and accepted instead of those of the response's serializer; nil for
        /// those of the serializer.
        ///
        /// An empty list accepts every type, and responses without one. It adds no `Accept`: the field of the client or
        /// the session is sent, `*/*` unless set. Only a ``Client`` checks the types; a session returns every response.
        public var accepting: [MediaType]? {
            get { box?.values.accepting }
            set { values.accepting = newValue }
        }
        /// Whether the cookies of the session's jar are sent, and those of the response stored; both unless set.
        public var cookies: Request.CookieUse {
            get { box?.values.cookies ?? .jar }
            set { values.cookies = newValue }
        }
        /// How the session's cache is used; nil for the session's policy.
        public var cache: Request.CachePolicy? {
            get { box?.values.cache }
            set { values.cache = newValue }
        }
        /// Whether the request shares the transfer of equal requests; nil for the session's setting.
        public var coalesces: Bool? {
            get { box?.values.coalesces }
            set { values.coalesces = newValue }
        }
        /// The rule that selects the proxy; the session's rule unless set.
        ///
        /// A redirect keeps it.
        public var proxy: Proxy.Policy {
            get { box?.values.proxy ?? .inherited }
            set { values.proxy = newValue == .inherited ? nil : newValue }
        }
        /// The Unix socket for the request, like curl's `--unix-socket`; nil, the default, to connect to the host of
        /// the URL.
        ///
        /// The value is the path of the socket, or "@" and the name of an abstract socket (unix(7)). The scheme, host
        /// and port of the URL still determine the `Host` field, TLS and cookies. For Docker, use the URL
        /// `http://localhost/…` and the socket "/var/run/docker.sock". Redirects use the same socket. The request uses
        /// neither a proxy nor a cache, and opens its own connection.
        public var unixSocket: String? {
            get { box?.values.unixSocket }
            set { values.unixSocket = newValue }
        }
        /// The traffic class of the packets that carry the request; nil for the session's class.
        public var trafficClass: Request.TrafficClass? {
            get { box?.values.trafficClass }
            set { values.trafficClass = newValue }
        }
        /// Whether the options affect the route, so that the URL alone does not determine the route.
        var setsRoute: Bool { box != nil && (proxy != .inherited || unixSocket != nil || trafficClass != nil) }

        /// Creates options with every member unset.
        public init() {}

        /// Creates options; each member is unset unless given.
        public init(
            timeouts: Timeouts = Timeouts(), priority: Priority? = nil, label: String? = nil,
            responseLimit: ByteCount? = nil, decompression: Request.Decompression? = nil,
            compression: Request.Compression? = nil, expectContinue: Request.ExpectContinue? = nil,
            connection: Request.ConnectionUse? = nil, redirects: RedirectPolicy? = nil, retry: RetryPolicy? = nil,
            bandwidth: Request.BandwidthLimit? = nil, statuses: StatusSet? = nil, accepting: [MediaType]? = nil,
            isAnonymous: Bool? = nil, cookies: Request.CookieUse? = nil, cache: Request.CachePolicy? = nil,
            coalesces: Bool? = nil, proxy: Proxy.Policy = .inherited, unixSocket: String? = nil,
            trafficClass: Request.TrafficClass? = nil
        ) {
            explicitPriority = priority
            self.label = label
            values = OptionValues(
                timeouts: timeouts == Timeouts() ? nil : timeouts, responseLimit: responseLimit,
                decompression: decompression, compression: compression, expectContinue: expectContinue,
                connection: connection, redirects: redirects, statuses: statuses, accepting: accepting,
                bandwidth: bandwidth, retry: retry, isAnonymous: isAnonymous, cookies: cookies, cache: cache,
                coalesces: coalesces, proxy: proxy == .inherited ? nil : proxy, unixSocket: unixSocket,
                trafficClass: trafficClass)
        }

        /// Returns these options, overridden by those that `other` sets.
        ///
        /// - Parameter other: The options that take precedence.
        public func merging(_ other: Options) -> Options {
            var result = self
            result.explicitPriority = other.explicitPriority ?? explicitPriority
            result.label = other.label ?? label
            if let otherValues = other.box?.values { result.values = values.merging(otherValues) }
            return result
        }

        var values: OptionValues {
            get { box?.values ?? OptionValues() }
            set { box = newValue == OptionValues() ? nil : Box(newValue) }
        }

        /// A box for the options that few requests set.
        private final class Box: Hashable, Sendable {
            let values: OptionValues

            init(_ values: OptionValues) { self.values = values }

            static func == (lhs: Box, rhs: Box) -> Bool { lhs.values == rhs.values }

            func hash(into hasher: inout Hasher) { hasher.combine(values) }
        }
    }

    /// The urgency of a request among the waiting ones: an open set of integers, higher first.
    public struct Priority: RawRepresentable, Hashable, Sendable, Comparable, Codable {
        /// The rank; 0 is normal.
        public let rawValue: Int

        /// Creates a priority of any rank.
        public init(rawValue: Int) {
            self.rawValue = rawValue
        }

        /// Lower than normal: for prefetching and analytics.
        public static let low = Priority(rawValue: -100)
        /// The default.
        public static let normal = Priority(rawValue: 0)
        /// Higher than normal: for requests that a user waits for.
        public static let high = Priority(rawValue: 100)

        /// Orders by rank.
        public static func < (lhs: Priority, rhs: Priority) -> Bool {
            lhs.rawValue < rhs.rawValue
        }
    }
}
