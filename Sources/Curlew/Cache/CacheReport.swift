// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension HTTPCache {
    /// How a cache handled a request, and why (RFC 9211).
    ///
    /// ```swift
    /// let response = try await session.transfer("https://example.com/logo.svg").response()
    /// print(response.head.cache?.isHit ?? false)
    /// print(response.head["Cache-Status"] ?? "")     // curlew; hit; ttl=581
    /// ```
    public struct Report: Sendable, Hashable {
        /// The reason why a request was forwarded to the network (RFC 9211 §2.2).
        public enum Forwarding: String, Sendable, Hashable, Codable, CaseIterable {
            /// The cache was configured not to handle the request.
            case bypass
            /// The method of the request requires it.
            case method
            /// Nothing is stored for the URL.
            case uriMiss = "uri-miss"
            /// Only responses to requests with other fields, such as another `Accept-Language`, are stored for the URL.
            case varyMiss = "vary-miss"
            /// The stored response cannot be used for another reason, which ``HTTPCache/Report/reason`` names.
            case miss
            /// A directive of the request, such as `no-cache`, or its policy requires it.
            case request
            /// The stored response is stale.
            case stale
            /// Only a part of the response is stored.
            case partial
        }

        /// A detail of a report: why a response was used, not used, or not stored.
        public enum Reason: String, Sendable, Hashable, Codable, CaseIterable {
            // Why a stored response was used although it is stale.
            /// The request accepts stale responses: `max-stale`, or its policy.
            case acceptedStale = "accepted-stale"
            /// `stale-while-revalidate`: the response is validated in the background.
            case revalidating
            /// `stale-if-error`: the server failed or was not reachable.
            case error

            // Why a response was not stored.
            /// `no-store` in the request.
            case requestNoStore = "request-no-store"
            /// `no-store` in the response.
            case noStore = "no-store"
            /// `private` in a response, and the cache is shared.
            case isPrivate = "private"
            /// The request had credentials, and the response does not allow its use for others; or the stored response
            /// belongs to other credentials.
            case credentials
            /// The status is not cacheable without explicit freshness, or not at all.
            case status
            /// `Vary: *`: no other request can match.
            case varyAll = "vary-all"
            /// `Set-Cookie` in a response, and the cache is shared.
            case setCookie = "set-cookie"
            /// The response is only a part that the request asked for.
            case range
            /// The response is a stream of events.
            case eventStream = "event-stream"
            /// The body is larger than the limit of the cache.
            case tooLarge = "too-large"
            /// The `willStore` closure refused it.
            case refused
            /// The store failed.
            case storeFailed = "store-failed"

            // Why a request was forwarded.
            /// The transfer saves a file.
            case download
            /// The stored response was encoded, and the request decodes responses.
            case encoding
            /// `no-cache` in the stored response.
            case noCache = "no-cache"
            /// The stored response has no validator.
            case noValidator = "no-validator"
            /// Nothing usable is stored, and the request must not be forwarded.
            case onlyIfCached = "only-if-cached"
        }

        /// Whether a stored response was used without waiting for the server.
        public var isHit: Bool
        /// The reason why the request was forwarded; nil for a hit.
        public var forwarding: Forwarding?
        /// The status of the response to the forwarded request if it differs from that of the result, such as 304.
        public var forwardedStatus: Status?
        /// Whether the response is stored, provided that its whole body is read.
        ///
        /// A removal also discards responses that are still being received. A removal by URL discards those of the URL;
        /// a removal by tag, origin, group or condition discards all. A request with an unsafe method removes the URLs
        /// and the groups that its response invalidates.
        public var isStored = false
        /// Whether the request shared the transfer of an equal request.
        public var isCollapsed = false
        /// How long the response stays fresh; negative if it is stale, and nil for a response that was not stored.
        public var timeToLive: Duration?
        /// The details; nil without any.
        public var reason: Reason?

        /// Whether the body is from the store: for a hit, for a response that the server has confirmed (304), and for
        /// one that replaced an error.
        ///
        /// False if only the start of the body was stored, for the 504 of the cache, and for a 304 to the request's own
        /// preconditions.
        public var isFromCache: Bool { isHit || forwardedStatus == .notModified || reason == .error }

        /// Creates the report of a hit.
        public init(hit timeToLive: Duration?, reason: Reason? = nil) {
            isHit = true
            self.timeToLive = timeToLive
            self.reason = reason
        }

        /// Creates the report of a request that was forwarded.
        public init(_ forwarding: Forwarding, reason: Reason? = nil) {
            isHit = false
            self.forwarding = forwarding
            self.reason = reason
        }
    }
}

extension HTTPCache.Report: CustomStringConvertible {
    /// The member for the `Cache-Status` field, such as "curlew; fwd=stale; fwd-status=304; stored; ttl=60".
    public var description: String {
        var parts = ["curlew"]
        if isHit { parts.append("hit") }
        if let forwarding { parts.append("fwd=\(forwarding.rawValue)") }
        if let forwardedStatus { parts.append("fwd-status=\(forwardedStatus.code)") }
        if isStored { parts.append("stored") }
        if isCollapsed { parts.append("collapsed") }
        if let timeToLive { parts.append("ttl=\(timeToLive.components.seconds)") }
        if let reason { parts.append("detail=\(reason.rawValue)") }
        return parts.joined(separator: "; ")
    }
}
