// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine

extension Session {
    /// The settings of a session in groups, each with its defaults.
    ///
    /// `Session.Configuration()` suits most programs. A configuration can be decoded from JSON or a property list:
    /// missing keys take their defaults, invalid values are errors, and sensitive fields (``HeaderName/isSensitive``)
    /// are never encoded.
    ///
    /// ```swift
    /// let session = Session(Session.Configuration { $0.timeouts.connect = .seconds(3) })
    /// ```
    public struct Configuration: Sendable, Hashable {
        /// The time limits of transfers; a request can override them.
        public var timeouts: Timeouts
        /// Limits for the numbers of connections and transfers, and for the sizes of responses.
        public var limits: Limits
        /// The TLS settings of connections.
        public var tls: TLS
        /// How TCP connections are opened and monitored.
        public var tcp: TCP
        /// Fields sent with every request that does not set them: `User-Agent` and `Accept` unless changed.
        public var fields: HeaderFields
        /// The HTTP version, and the compression of bodies.
        public var http: HTTP
        /// The sizes of a transfer's buffers.
        public var buffers: Buffers
        /// The rule that selects the proxy of each request; ``Proxy/Policy/environment`` unless set.
        public var proxy: Proxy.Policy
        /// The policy for redirects; unless set, up to 20 redirects to any target are followed.
        public var redirects: RedirectPolicy
        /// Whether the session keeps its state in memory only; false unless set.
        ///
        /// Every request fails if the jar or the HSTS store has a file, if the cache has a persistent store, or if
        /// `tls.keyLogFile` is set. Downloads and uploads may still use files.
        public var isEphemeral: Bool
        /// How requests use the session's cache, if it has one; by the rules of HTTP unless set.
        public var cachePolicy: Request.CachePolicy
        /// Whether equal requests that run at the same time share one transfer; false unless set.
        ///
        /// Only GET, HEAD, OPTIONS and TRACE requests without a body share a transfer, and only if their bodies are
        /// collected. They must have the same URL, fields, options except label and priority, trust evaluator and
        /// interceptors of attempts, so requests with different credentials never share one. An interceptor of attempts
        /// must be `Hashable` or an object; Curlew's `.basic`, `.bearer` and `.refreshing` can be compared, too. The
        /// transfer ends early only when all of its requests were cancelled.
        public var coalescesRequests: Bool
        /// The policy for retries; unless set, only requests that no server can have processed are retried.
        public var retry: RetryPolicy

        /// The default configuration.
        public init() {
            timeouts = Timeouts()
            limits = Limits()
            tls = TLS()
            tcp = TCP()
            fields = Self.standardFields
            http = HTTP()
            buffers = Buffers()
            proxy = .environment
            redirects = .follow()
            retry = .never
            isEphemeral = false
            cachePolicy = .standard
            coalescesRequests = false
        }

        /// Creates the default configuration, changed by a closure.
        /// - Throws: The error of `configure`.
        public init(_ configure: (inout Session.Configuration) throws -> Void) rethrows {
            self.init()
            try configure(&self)
        }

        /// The default configuration.
        public static let `default` = Session.Configuration()

        /// The default configuration of a session that keeps its state in memory only.
        public static let ephemeral = Session.Configuration { $0.isEphemeral = true }

        private static let standardFields: HeaderFields = [.userAgent: UserAgent.standard, .accept: "*/*"]
    }
}
