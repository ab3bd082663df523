// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
// This folder holds the HTTP cache. The rules of RFC 9111 are pure functions of stored and received heads and a clock;
// the interceptor carries out their decisions, and stores keep entries and bodies.

internal import FoundationEssentials

/// The rules of an HTTP cache (RFC 9111).
struct CacheRules: Sendable {
    /// Whether several users share the cache (RFC 9111 §1).
    var isShared = false
    /// The names of targeted fields, the first one with precedence (RFC 9213 §2.2).
    var targetedFields: [HeaderName] = []

    // MARK: Directives

    /// The directives that apply to a response, and whether a targeted field has them.
    struct Directives {
        var values: CacheControl
        /// Whether `Cache-Control` and `Expires` are ignored.
        var isTargeted = false
    }

    /// Returns the directives of a response: those of the first valid targeted field, else those of `Cache-Control`.
    func directives(of fields: HeaderFields) -> Directives {
        for name in targetedFields {
            // An invalid or empty field is ignored (RFC 9213 §2.1).
            guard let text = fields[name], let members = StructuredField.dictionary(text), !members.isEmpty else {
                continue
            }
            return Directives(values: CacheControl(targeted: members), isTargeted: true)
        }
        return Directives(values: fields[.cacheControl].map { CacheControl($0) } ?? CacheControl())
    }

    // MARK: Statuses

    /// The statuses that are cacheable without explicit freshness (RFC 9110 §15.1), except 206.
    static let heuristicallyCacheable: Set<Status> = [200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501]

    /// Whether the cache implements the rules of a status: it is registered and final, and not 206 or 304, which the
    /// cache handles only in response to its own requests.
    static func understands(_ status: Status) -> Bool {
        status.code >= 200 && status != .partialContent && status != .notModified && status.reasonPhrase != nil
    }

    // MARK: Storing

    /// The credentials of a request as the cache sees them.
    enum Credentials: Hashable, Sendable {
        case none
        /// The request had credentials when it reached the cache.
        case known(String)
        /// An authenticator adds credentials behind the cache.
        case added
    }

    /// Returns the reason why a response to a GET request must not be stored; nil when it may be stored
    /// (RFC 9111 §3).
    func refusal(of head: ResponseHead, to request: CacheRequest, _ credentials: Credentials) -> HTTPCache.Report
        .Reason?
    {
        let (fields, status) = (head.fields, head.status)
        let applying = directives(of: fields)
        let directives = applying.values
        if request.directives.noStore { return .requestNoStore }
        let understands = Self.understands(status)
        // With must-understand, no-store counts only for caches that do not understand the status (RFC 9111 §5.2.2.3).
        if directives.noStore, !(directives.mustUnderstand && understands) { return .noStore }
        if status == .partialContent { return .range }
        if !understands { return .status }
        if let reason = refusal(bySharing: fields, directives, credentials) { return reason }
        if fields.varyingNames.contains("*") { return .varyAll }
        if head.mediaType?.essence == "text/event-stream" { return .eventStream }
        let isExplicit =
            directives.isPublic || directives.maxAge != nil || !isShared && directives.isPrivate
            || isShared && directives.sharedMaxAge != nil || !applying.isTargeted && fields.contains(.expires)
        return isExplicit || Self.heuristicallyCacheable.contains(status) ? nil : .status
    }

    /// Returns the reason why a response must not be used for others than its receiver; nil when it may be.
    private func refusal(
        bySharing fields: HeaderFields, _ directives: CacheControl, _ credentials: Credentials
    ) -> HTTPCache.Report.Reason? {
        guard isShared else { return credentials == .added && !directives.isPublic ? .credentials : nil }
        if directives.isPrivate { return .isPrivate }
        if fields.contains(.setCookie) { return .setCookie }
        // RFC 9111 §3.5.
        let allowsSharing = directives.isPublic || directives.mustRevalidate || directives.sharedMaxAge != nil
        return credentials == .none || allowsSharing ? nil : .credentials
    }

    /// Returns the credentials that a request must have to get a stored response; nil if any request may get it.
    ///
    /// - Returns: A digest, or "" for requests without credentials.
    func requiredCredentials(_ credentials: Credentials, _ fields: HeaderFields) -> String? {
        if isShared || directives(of: fields).values.isPublic { return nil }
        if case .known(let text) = credentials { return text }
        return ""
    }

    /// Returns the fields of a response that are stored (RFC 9111 §3.1, and §5.2.2.4 and §5.2.2.7 for field lists).
    func storedFields(_ fields: HeaderFields) -> HeaderFields {
        let directives = directives(of: fields).values
        var left = Set(Self.connectionFields + [.setCookie] + directives.noCacheFields)
        if isShared { left.formUnion(directives.privateFields) }
        left.formUnion(HeaderFields.names(in: fields[.connection] ?? ""))
        // Without `Vary`, the response would answer every request.
        left.remove(.vary)
        return HeaderFields(fields.filter { !left.contains($0.name) })
    }

    /// The fields that belong to a connection, not to a response (RFC 9111 §3.1).
    private static let connectionFields: [HeaderName] = [
        .connection, "Keep-Alive", "Proxy-Connection", .transferEncoding, .upgrade, "TE", .trailer,
        .proxyAuthenticate, .proxyAuthorization, "Proxy-Authentication-Info",
    ]

    /// Returns the fields of the request that a response depends on (RFC 9111 §4.1).
    static func requestFields(of request: CacheRequest, for fields: HeaderFields) -> HeaderFields {
        HeaderFields(
            fields.varyingNames.compactMap { name in
                request.normalizedValue(name).map { HeaderFields.Field(name: name, value: $0) }
            })
    }

    // MARK: Freshness

    /// The freshness of a stored response, in seconds.
    struct Freshness: Hashable, Sendable {
        /// The time for which the response is fresh (RFC 9111 §4.2.1).
        var lifetime: Double
        /// The time since the origin generated or validated the response (RFC 9111 §4.2.3).
        var age: Double
        var isHeuristic = false

        var isFresh: Bool { lifetime > age }

        /// The time until the response is stale; negative when it is stale.
        var remaining: Double { lifetime - age }

        var timeToLive: Duration { .seconds(Int64(min(max(remaining.rounded(.down), -1e12), 1e12))) }
    }

    /// The maximum lifetime of a response without explicit freshness: one day, because a longer one would need a
    /// warning in RFC 7234 §4.2.2.
    private static let longestHeuristic: Double = 86_400

    func freshness(of entry: HTTPCache.Entry, at now: Date) -> Freshness {
        var freshness = lifetime(of: entry)
        freshness.age = Self.age(of: entry, at: now)
        return freshness
    }

    private func lifetime(of entry: HTTPCache.Entry) -> Freshness {
        let directives = directives(of: entry.fields)
        if isShared, let time = directives.values.sharedMaxAge { return Freshness(lifetime: time.inSeconds, age: 0) }
        if let time = directives.values.maxAge { return Freshness(lifetime: time.inSeconds, age: 0) }
        let date = Self.date(of: entry)
        if !directives.isTargeted, let text = entry.fields.values(for: .expires).first {
            // An invalid date is in the past (RFC 9111 §5.3).
            let expiry = HTTPDate(anyCase: text).map { Double($0.seconds) } ?? -.infinity
            return Freshness(lifetime: max(expiry - date, 0), age: 0)
        }
        guard Self.heuristicallyCacheable.contains(entry.status) || directives.values.isPublic,
            let changed = entry.fields[.lastModified].flatMap({ HTTPDate(anyCase: $0) })
        else { return Freshness(lifetime: 0, age: 0) }
        let tenth = (date - Double(changed.seconds)) / 10
        return Freshness(lifetime: min(max(tenth, 0), Self.longestHeuristic), age: 0, isHeuristic: true)
    }

    /// The time at which the origin generated a response; the time of its arrival without a valid `Date`
    /// (RFC 9110 §6.6.1).
    static func date(of entry: HTTPCache.Entry) -> Double {
        entry.fields.values(for: .date).first.flatMap { HTTPDate(anyCase: $0) }.map { Double($0.seconds) }
            ?? entry.receivedAt.timeIntervalSince1970.rounded(.down)
    }

    /// Returns the age of a response (RFC 9111 §4.2.3); unlimited if the clock has been set back since its arrival.
    static func age(of entry: HTTPCache.Entry, at now: Date) -> Double {
        let (requested, received) = (entry.requestedAt.timeIntervalSince1970, entry.receivedAt.timeIntervalSince1970)
        let resident = now.timeIntervalSince1970 - received
        // A small step back is a correction of the clock.
        if resident < -60 { return .infinity }
        let apparent = max(0, received.rounded(.down) - date(of: entry))
        let corrected = ageValue(of: entry.fields) + max(0, received - requested)
        return max(apparent, corrected) + max(0, resident)
    }

    /// Returns the number in the first member of `Age`; zero for an invalid one (RFC 9111 §5.1).
    static func ageValue(of fields: HeaderFields) -> Double {
        let first = fields[.age]?.split(separator: ",").first.map { String($0).trimmingSpace } ?? ""
        guard !first.isEmpty, ByteSet.digits.containsAll(of: first) else { return 0 }
        return min(Double(first) ?? 0, Double(Int64(1) << 31))
    }
}
