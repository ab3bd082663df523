// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension Request {
    /// What a request does differently from the session's configuration; nil members leave it as it is there.
    ///
    /// ```swift
    /// request.options.timeouts = Timeouts(total: .seconds(5))
    /// request.options.label = "search"
    /// request.options = [.timeout(.seconds(5)), .priority(.high)]
    /// ```
    public struct Options: Hashable, Sendable {
        /// Nil when unset.
        private(set) var ownPriority: Priority?
        /// A name for logs and observers.
        ///
        /// It is shown as it is, so it must hold no secret.
        public var label: String?
        /// Nil when there is nothing in it, as mostly: requests are copied often, and lie in the frames of those who wait.
        private var others: Others?

        /// Which requests start first when the session's limits make them wait; `.normal` unless set.
        public var priority: Priority {
            get { ownPriority ?? .normal }
            set { ownPriority = newValue }
        }
        /// Timeouts for this request, replacing the session's as a whole.
        public var timeouts: Timeouts? {
            get { others?.values.timeouts }
            set { values.timeouts = newValue }
        }
        /// How long the whole transfer may take, in the place of `timeouts.total`; the other timeouts stay.
        ///
        /// Where options are merged, whole timeouts replace it.
        public var timeout: Duration? {
            get { others?.values.timeout }
            set { values.timeout = newValue }
        }
        /// How many decoded bytes of the response's body may be collected.
        public var responseLimit: ByteCount? {
            get { others?.values.responseLimit }
            set { values.responseLimit = newValue }
        }
        /// What happens to a compressed response; nil leaves it to the session's configuration.
        public var decompression: Decompression? {
            get { others?.values.decompression }
            set { values.decompression = newValue }
        }
        /// Whether the request's body is compressed; nil leaves it to the session's configuration.
        public var compression: RequestCompression? {
            get { others?.values.compression }
            set { values.compression = newValue }
        }

        /// Whether the body waits until the server has said that it wants it.
        public var expectContinue: ExpectContinue? {
            get { others?.values.expectContinue }
            set { values.expectContinue = newValue }
        }
        /// Whether the request shares connections with others; it does unless set.
        public var connection: ConnectionUse {
            get { others?.values.connection ?? .shared }
            set { values.connection = newValue }
        }
        /// Which redirects are followed; nil leaves it to the session's configuration.
        public var redirects: RedirectPolicy? {
            get { others?.values.redirects }
            set { values.redirects = newValue }
        }
        /// How many bytes of bodies the request sends and receives in a second, beside what the session allows; nil for no
        /// limit of its own.
        public var bandwidth: BandwidthLimit? {
            get { others?.values.bandwidth }
            set { values.bandwidth = newValue }
        }
        /// Whether the request is sent again, and when; nil leaves it to the session's configuration.
        public var retry: RetryPolicy? {
            get { others?.values.retry }
            set { values.retry = newValue }
        }
        /// Whether the request says nothing about who asks: no ``Authenticator`` is asked for it; false unless set.
        ///
        /// For requests that get credentials in the first place. A client leaves its own credential fields out, too; those
        /// that stand in the request or the call itself stay.
        public var isAnonymous: Bool {
            get { others?.values.isAnonymous ?? false }
            set { values.isAnonymous = newValue }
        }
        /// Which statuses a client takes for a success; nil for 200…299.
        ///
        /// Only a ``Client`` judges; a session returns whatever comes.
        public var statuses: StatusSet? {
            get { others?.values.statuses }
            set { values.statuses = newValue }
        }
        /// The media types that a client requests and accepts instead of those of the response's serializer; nil for
        /// those of the serializer.
        ///
        /// An empty list accepts every type, and responses without one. It adds no `Accept`: the field of the client
        /// or the session is sent, `*/*` unless set.
        /// Only a ``Client`` judges; a session returns whatever comes.
        public var accepting: [MediaType]? {
            get { others?.values.accepting }
            set { values.accepting = newValue }
        }

        /// Options of which none is set.
        public init() {}

        /// Options, each unset unless given.
        public init(
            timeouts: Timeouts? = nil, priority: Priority? = nil, label: String? = nil,
            responseLimit: ByteCount? = nil, expectContinue: ExpectContinue? = nil,
            connection: ConnectionUse? = nil, decompression: Decompression? = nil,
            compression: RequestCompression? = nil, redirects: RedirectPolicy? = nil
        ) {
            ownPriority = priority
            self.label = label
            values = OptionValues(
                timeouts: timeouts, responseLimit: responseLimit, decompression: decompression,
                compression: compression, expectContinue: expectContinue, connection: connection, redirects: redirects)
        }

        /// These options, with `other`'s in the place of those that it sets.
        ///
        /// - Parameter other: What wins.
        public func merging(_ other: Options) -> Options {
            var result = self
            result.ownPriority = other.ownPriority ?? ownPriority
            result.label = other.label ?? label
            if let theirs = other.others?.values { result.values = values.merging(theirs) }
            return result
        }

        var values: OptionValues {
            get { others?.values ?? OptionValues() }
            set { others = newValue == OptionValues() ? nil : Others(newValue) }
        }

        /// What few requests say.
        private final class Others: Hashable, Sendable {
            let values: OptionValues

            init(_ values: OptionValues) { self.values = values }

            static func == (lhs: Others, rhs: Others) -> Bool { lhs.values == rhs.values }

            func hash(into hasher: inout Hasher) { hasher.combine(values) }
        }
    }

    /// How urgent a request is among those that wait: an open set of integers, higher first.
    public struct Priority: RawRepresentable, Hashable, Sendable, Comparable, Codable {
        /// The rank; 0 is normal.
        public let rawValue: Int

        /// Takes any rank.
        public init(rawValue: Int) {
            self.rawValue = rawValue
        }

        /// Behind everything normal: prefetching, analytics.
        public static let low = Priority(rawValue: -100)
        /// The default.
        public static let normal = Priority(rawValue: 0)
        /// Before everything normal: what a user waits for.
        public static let high = Priority(rawValue: 100)

        /// Orders by rank.
        public static func < (lhs: Priority, rhs: Priority) -> Bool {
            lhs.rawValue < rhs.rawValue
        }
    }
}
