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
        /// Timeouts for this request, replacing the session's as a whole.
        public var timeouts: Timeouts?
        /// Which requests start first when the session's limits make them wait.
        public var priority: Priority
        /// A name for logs and observers.
        ///
        /// It is shown as it is, so it must hold no secret.
        public var label: String?
        /// How many decoded bytes of the response's body may be collected.
        public var responseLimit: ByteCount?
        /// What happens to a compressed response; nil leaves it to the session's configuration.
        public var decompression: Decompression?
        /// Whether the request's body is compressed; nil leaves it to the session's configuration.
        public var compression: RequestCompression?

        /// Whether the body waits until the server has said that it wants it.
        public var expectContinue: ExpectContinue?
        /// Whether the request shares connections with others; it does unless set.
        public var connection: ConnectionUse
        /// Which redirects are followed; nil leaves it to the session's configuration.
        public var redirects: RedirectPolicy?

        /// Options, each with its default.
        public init(
            timeouts: Timeouts? = nil, priority: Priority = .normal, label: String? = nil,
            responseLimit: ByteCount? = nil, expectContinue: ExpectContinue? = nil,
            connection: ConnectionUse = .shared, decompression: Decompression? = nil,
            compression: RequestCompression? = nil, redirects: RedirectPolicy? = nil
        ) {
            self.timeouts = timeouts
            self.priority = priority
            self.label = label
            self.responseLimit = responseLimit
            self.expectContinue = expectContinue
            self.connection = connection
            self.decompression = decompression
            self.compression = compression
            self.redirects = redirects
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
