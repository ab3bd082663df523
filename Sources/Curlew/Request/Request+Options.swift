// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension Request {
    /// What a request does differently from the session's configuration; nil members leave it as it is there.
    ///
    /// ```swift
    /// request.options.timeouts = Timeouts(total: .seconds(5))
    /// request.options.label = "search"
    /// ```
    public struct Options: Hashable, Sendable {
        /// Which requests start first when the session's limits make them wait.
        public var priority: Priority
        /// A name for logs and observers.
        ///
        /// It is shown as it is, so it must hold no secret.
        public var label: String?
        /// Nil when there is nothing in it, as mostly: requests are copied often, and lie in the frames of those who wait.
        private var others: Others?

        /// Timeouts for this request, replacing the session's as a whole.
        public var timeouts: Timeouts? {
            get { others?.values.timeouts }
            set { values.timeouts = newValue }
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

        /// Options, each with its default.
        public init(
            timeouts: Timeouts? = nil, priority: Priority = .normal, label: String? = nil,
            responseLimit: ByteCount? = nil, expectContinue: ExpectContinue? = nil,
            connection: ConnectionUse = .shared, decompression: Decompression? = nil,
            compression: RequestCompression? = nil, redirects: RedirectPolicy? = nil
        ) {
            self.priority = priority
            self.label = label
            values = Others.Values(
                timeouts: timeouts, responseLimit: responseLimit, decompression: decompression,
                compression: compression, expectContinue: expectContinue, connection: connection, redirects: redirects)
        }

        private var values: Others.Values {
            get { others?.values ?? Others.Values() }
            set { others = newValue.areEmpty ? nil : Others(newValue) }
        }

        /// What few requests say.
        private final class Others: Hashable, Sendable {
            struct Values: Hashable {
                var timeouts: Timeouts?
                var responseLimit: ByteCount?
                var decompression: Decompression?
                var compression: RequestCompression?
                var expectContinue: ExpectContinue?
                var connection = ConnectionUse.shared
                var redirects: RedirectPolicy?

                /// Whether nothing is said; member by member, since every request asks.
                var areEmpty: Bool {
                    timeouts == nil && responseLimit == nil && decompression == nil && compression == nil
                        && expectContinue == nil && connection == .shared && redirects == nil
                }
            }

            let values: Values

            init(_ values: Values) { self.values = values }

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
