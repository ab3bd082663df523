// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import FoundationEssentials

/// The way in which a cache handles a request.
enum CacheDecision: Sendable, Hashable {
    /// Use a stored response.
    case serve(HTTPCache.Entry, HTTPCache.Report)
    /// Use a stale response, and validate it in the background.
    case refresh(HTTPCache.Entry, HTTPCache.Report)
    /// Ask the server whether a stored response is still valid.
    case validate(HTTPCache.Entry, HTTPCache.Report)
    /// Ask the server for the rest of a response whose start is stored.
    case complete(HTTPCache.Entry, HTTPCache.Report)
    /// Send the request as it is; the stale entry, if there is one, may replace an error.
    case forward(HTTPCache.Report, instead: HTTPCache.Entry? = nil)
    /// Respond with the status 504, because the request must not be sent.
    case unavailable(HTTPCache.Report)
}

extension CacheRules {
    /// Returns what to do with a request (RFC 9111 §4).
    ///
    /// - Parameter entries: The entries with the key of the request.
    func decide(_ request: CacheRequest, _ entries: [HTTPCache.Entry], at now: Date) -> CacheDecision {
        let decision = wanted(request, entries, at: now)
        guard request.isOffline else { return decision }
        switch decision {
        case .serve, .unavailable: return decision
        case .refresh(let entry, var report):
            report.reason = .acceptedStale
            return .serve(entry, report)
        case .validate(_, var report), .complete(_, var report), .forward(var report, _):
            report.reason = .onlyIfCached
            return .unavailable(report)
        }
    }

    /// Returns what to do with a request that may be sent.
    private func wanted(_ request: CacheRequest, _ entries: [HTTPCache.Entry], at now: Date) -> CacheDecision {
        guard request.method == .get || request.method == .head else { return .forward(.init(.method)) }
        if request.policy == .reload || request.policy == .reloadFromOrigin { return .forward(.init(.request)) }
        if request.directives.noStore { return .forward(.init(.request, reason: .requestNoStore)) }
        let candidates = entries.filter { matches($0, request) }
        let usable = candidates.filter { !request.decodes || !$0.fields.contains(.contentEncoding) }
        guard let entry = Self.latest(of: usable) else {
            if !candidates.isEmpty { return .forward(.init(.miss, reason: .encoding)) }
            if entries.contains(where: { varies($0, like: request) }) {
                return .forward(.init(.miss, reason: .credentials))
            }
            return .forward(.init(entries.isEmpty ? .uriMiss : .varyMiss))
        }
        let decision = decide(request, entry, at: now)
        switch decision {
        // The request asks the server itself, and its response is about that.
        case .validate(let entry, let report) where request.asksItself: return .forward(report, instead: entry)
        case .complete(_, let report) where request.asksItself: return .forward(report)
        default: return decision
        }
    }

    private func decide(_ request: CacheRequest, _ entry: HTTPCache.Entry, at now: Date) -> CacheDecision {
        guard entry.isComplete else { return completion(of: entry, for: request) }
        let directives = directives(of: entry.fields).values
        let freshness = freshness(of: entry, at: now)
        if directives.noCache { return validation(of: entry, .init(.miss, reason: .noCache), for: request) }
        if request.directives.noCache { return validation(of: entry, .init(.request), for: request) }
        if request.policy == .revalidate, !(directives.isImmutable && freshness.isFresh) {
            return validation(of: entry, .init(.request), for: request)
        }
        if isAcceptable(freshness, request) { return .serve(entry, .init(hit: freshness.timeToLive)) }
        if allowsStale(directives) {
            if acceptsStale(freshness, request) {
                let reason: HTTPCache.Report.Reason? = freshness.isFresh ? nil : .acceptedStale
                return .serve(entry, .init(hit: freshness.timeToLive, reason: reason))
            }
            if let limit = directives.staleWhileRevalidate, request.directives.maxAge == nil,
                request.directives.minFresh == nil,
                -freshness.remaining < limit.inSeconds
            {
                return .refresh(entry, .init(hit: freshness.timeToLive, reason: .revalidating))
            }
        }
        return validation(of: entry, .init(freshness.isFresh ? .request : .stale), for: request)
    }

    // MARK: Matching

    /// Whether a stored response was made for such a request: the fields that `Vary` lists are equal (RFC 9111 §4.1),
    /// and the credentials are.
    func matches(_ entry: HTTPCache.Entry, _ request: CacheRequest) -> Bool {
        admits(request.credentials, entry) && varies(entry, like: request)
    }

    /// Whether requests with these credentials may get a stored response.
    func admits(_ credentials: Credentials, _ entry: HTTPCache.Entry) -> Bool {
        guard let required = entry.credentials else { return true }
        return switch credentials {
        case .none: required.isEmpty
        case .known(let text): required == text
        case .added: false
        }
    }

    /// Whether the fields that `Vary` lists are equal.
    private func varies(_ entry: HTTPCache.Entry, like request: CacheRequest) -> Bool {
        entry.fields.varyingNames.allSatisfy { name in
            guard name != "*" else { return false }
            // Bytes are compared: for Swift, strings of different bytes can be equal.
            let (stored, value) = (entry.requestFields[name], request.normalizedValue(name))
            return stored.map { Array($0.utf8) } == value.map { Array($0.utf8) }
        }
    }

    /// Returns the most recent response (RFC 9111 §4); of equally recent ones, the one that arrived last.
    private static func latest(of entries: [HTTPCache.Entry]) -> HTTPCache.Entry? {
        if entries.count < 2 { return entries.first }
        return entries.max { (date(of: $0), $0.receivedAt) < (date(of: $1), $1.receivedAt) }
    }

    // MARK: Freshness for a request

    /// Whether a response is fresh enough for the request's own directives (RFC 9111 §5.2.1).
    private func isAcceptable(_ freshness: Freshness, _ request: CacheRequest) -> Bool {
        guard freshness.isFresh else { return false }
        if request.acceptsAnyAge { return true }
        if let limit = request.directives.maxAge, freshness.age > limit.inSeconds { return false }
        if let limit = request.directives.minFresh, freshness.remaining < limit.inSeconds { return false }
        return true
    }

    /// Whether a response may be used when it is stale (RFC 9111 §4.2.4).
    func allowsStale(_ directives: CacheControl) -> Bool {
        if directives.mustRevalidate || directives.noCache { return false }
        return !(isShared && (directives.proxyRevalidate || directives.sharedMaxAge != nil))
    }

    /// Whether the request accepts a response that is not fresh enough (RFC 9111 §5.2.1.2).
    private func acceptsStale(_ freshness: Freshness, _ request: CacheRequest) -> Bool {
        if request.acceptsAnyAge { return true }
        guard let limit = request.directives.maxStale else { return false }
        if limit >= CacheControl.unlimited { return true }
        let lifetime = min(freshness.lifetime, request.directives.maxAge?.inSeconds ?? .infinity)
        let staleness = freshness.age + (request.directives.minFresh?.inSeconds ?? 0) - lifetime
        return staleness <= limit.inSeconds
    }

    /// Whether a stored response may be used instead of an error (RFC 5861 §4).
    func mayReplaceError(_ entry: HTTPCache.Entry, _ request: CacheRequest, at now: Date) -> Bool {
        let directives = directives(of: entry.fields).values
        guard entry.isComplete, allowsStale(directives), !request.directives.noCache,
            let limit = request.directives.staleIfError ?? directives.staleIfError
        else { return false }
        return -freshness(of: entry, at: now).remaining < limit.inSeconds
    }

    // MARK: Requests to the server

    private func validation(
        of entry: HTTPCache.Entry, _ report: HTTPCache.Report, for request: CacheRequest
    ) -> CacheDecision {
        // The response to HEAD updates the entry anyway.
        guard request.method == .get else { return .forward(report, instead: entry) }
        guard entry.fields.contains(.etag) || entry.fields.contains(.lastModified) else {
            var report = report
            report.reason = report.reason ?? .noValidator
            return .forward(report, instead: entry)
        }
        return .validate(entry, report)
    }

    private func completion(of entry: HTTPCache.Entry, for request: CacheRequest) -> CacheDecision {
        let isCompletable = request.method == .get && !request.fields.contains(.range) && entry.size > 0
        guard isCompletable, ResumeToken.Validator(entry.head) != nil else { return .forward(.init(.partial)) }
        return .complete(entry, .init(.partial))
    }

    /// Returns the preconditions that validate a stored response (RFC 9111 §4.3.1).
    static func preconditions(for entry: HTTPCache.Entry) -> HeaderFields {
        var fields: HeaderFields = [:]
        if let tag = entry.fields[.etag] { fields[.ifNoneMatch] = tag }
        if let date = entry.fields[.lastModified] { fields[.ifModifiedSince] = date }
        return fields
    }

    /// Returns the fields that request the rest of a response whose start is stored (RFC 9111 §3.4); nil without a
    /// strong validator.
    static func completion(of entry: HTTPCache.Entry) -> HeaderFields? {
        guard let validator = ResumeToken.Validator(entry.head) else { return nil }
        return [.range: "bytes=\(entry.size)-", .ifRange: validator.field]
    }
}

extension HTTPCache.Entry {
    /// The head of the stored response.
    var head: ResponseHead { ResponseHead(status: status, version: version, fields: fields, url: url) }
}
