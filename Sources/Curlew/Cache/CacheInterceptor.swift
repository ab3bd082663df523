// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import FoundationEssentials

/// Answers requests from a cache, and stores responses in it.
///
/// It is inside redirects and retries, so each hop and each retry is looked up by itself, and outside of the
/// interceptors of attempts, so a stored response needs no credentials of an authenticator.
struct CacheInterceptor: FoldableInterceptor {
    let cache: HTTPCache
    /// The settings of the session that the rules need.
    let settings: Settings

    let noticedFields: HeadFields = []

    struct Settings: Sendable {
        var fields: HeaderFields
        var policy: Request.CachePolicy
        var decodes: Bool
        /// The value of `Accept-Encoding` for requests without their own.
        var acceptEncoding: String?
        /// The fields whose values are credentials, besides those that always are.
        var sensitiveFields: [HeaderName]
        var cookies: CookieInterceptor?
        /// Whether an interceptor of the session is an authenticator.
        var hasAuthenticator: Bool
    }

    /// Nil: a look-up may wait for the store.
    func interest(in request: Request) -> ChainInterest? { nil }

    func intercept(_ request: Request, context: Interception.Context, next: Interception.Next) async throws
        -> IncomingResponse
    {
        guard let target = try? request.target() else { return try await next(request) }
        let lookUp = settings.lookUp(for: request, target)
        let exchange = CacheExchange(
            cache: cache, settings: settings, request: request, lookUp: lookUp, context: context, next: next)
        if !context.isSaved, request.body.isNone || !request.method.isSafe { return try await exchange.response() }
        // A download has its own file, and the response to a request with content depends on the content.
        let reason: HTTPCache.Report.Reason? = context.isSaved ? .download : nil
        if lookUp.isOffline { return exchange.unavailable(.init(.bypass, reason: .onlyIfCached)) }
        return exchange.reported(try await next(request), .init(.bypass, reason: reason))
    }
}

extension CacheInterceptor.Settings {
    /// Creates the settings of a session.
    init(
        _ configuration: Session.Configuration, _ codings: ContentCodings, cookies: CookieInterceptor?,
        _ interceptors: [any Interceptor]
    ) {
        fields = configuration.fields
        policy = configuration.cachePolicy
        decodes = configuration.http.decompression == .automatic
        acceptEncoding = codings.acceptEncoding
        sensitiveFields = configuration.redirects.sensitiveFields
        self.cookies = cookies
        hasAuthenticator = interceptors.contains { $0 is any Authenticator }
    }

    /// Returns what the rules need to know about a request.
    func lookUp(for request: Request, _ target: RequestTarget) -> CacheRequest {
        let decodes = request.options.decompression.map { $0 == .automatic } ?? self.decodes
        var own = request.fields
        var defaults = fields
        for name in request.withheld { defaults.remove(name) }
        if decodes, !request.withheld.contains(.acceptEncoding), !defaults.contains(.acceptEncoding) {
            defaults[.acceptEncoding] = acceptEncoding
        }
        let credentials = credentials(of: request, defaults, target)
        if let cookie = cookies?.adapted(request)?.fields[.cookie] { own[.cookie] = cookie }
        return CacheRequest(
            request.method, CacheKey.url(of: target), fields: own, defaults: defaults,
            policy: request.options.cache ?? policy, decodes: decodes, credentials: credentials)
    }

    /// Returns a digest of the credentials in the fields of a request and in its URL; nil without credentials.
    private func credentials(of request: Request, _ defaults: HeaderFields, _ target: RequestTarget) -> String? {
        var values = target.userInfo.map { [$0] } ?? []
        for fields in [request.fields, defaults] {
            for field in fields where isCredential(field.name) {
                values.append("\(field.name.canonical):\(field.value)")
            }
        }
        return values.isEmpty ? nil : CacheKey.digest(values.joined(separator: "\n"))
    }

    private func isCredential(_ name: HeaderName) -> Bool { name.isSensitive || sensitiveFields.contains(name) }

    /// Returns the credentials of a request as the cache sees them.
    ///
    /// - Parameters:
    ///   - request: The request when it reached the cache.
    ///   - sent: The request as it was sent.
    func credentials(of request: Request, _ lookUp: CacheRequest, sent: Request) -> CacheRules.Credentials {
        let isAuthenticated = hasAuthenticator || request.interceptors.contains { $0 is any Authenticator }
        let added = sent.fields.contains { field in
            if Self.harmless.contains(field.name) || request.fields[field.name] == sent.fields[field.name] { return false }
            return isAuthenticated || isCredential(field.name) || field.name.isHidden
        }
        if added || isAuthenticated && sent.url != request.url { return .added }
        return lookUp.credentials.map { .known($0) } ?? .none
    }

    /// The fields that Curlew's own interceptors add behind the cache.
    private static let harmless: Set<HeaderName> = [
        .cookie, "traceparent", "tracestate", "baggage", .ifNoneMatch, .ifModifiedSince, .range, .ifRange,
    ]
}

/// One request on its way through a cache.
private struct CacheExchange {
    let cache: HTTPCache
    let settings: CacheInterceptor.Settings
    let request: Request
    let lookUp: CacheRequest
    let context: Interception.Context
    let next: Interception.Next

    private var rules: CacheRules { cache.rules }

    func response() async throws -> IncomingResponse {
        guard lookUp.method == .get || lookUp.method == .head else { return try await changing() }
        let entries = await cache.entries(for: lookUp)
        switch rules.decide(lookUp, entries, at: cache.time) {
        case .serve(let entry, let report):
            if let response = await served(entry, report) { return response }
            return try await forwarded(.init(.uriMiss))
        case .refresh(let entry, let report):
            guard let response = await served(entry, report) else { return try await forwarded(.init(.uriMiss)) }
            context.refresh(request, key: entry.key, in: cache)
            return response
        case .validate(let entry, let report): return try await validated(entry, report)
        case .complete(let entry, let report): return try await completed(entry, report)
        case .forward(let report): return try await forwarded(report)
        case .unavailable(let report): return unavailable(report)
        }
    }

    /// Returns the response for a request that must not be sent (RFC 9111 §5.2.1.7).
    func unavailable(_ report: HTTPCache.Report) -> IncomingResponse {
        cache.count(\.misses)
        return reported(IncomingResponse(ResponseHead(status: .gatewayTimeout, url: request.url), to: request), report)
    }

    // MARK: Reporting

    /// Returns a response whose head and metrics have the report.
    func reported(_ response: IncomingResponse, _ report: HTTPCache.Report) -> IncomingResponse {
        var response = response
        response.head = response.head.reporting(report)
        context.announce(.cached(report, for: request))
        return response
    }

    // MARK: Stored responses

    /// Returns a stored response; nil if its body is gone, or if the cache cannot respond to the request.
    private func served(
        _ entry: HTTPCache.Entry, _ report: HTTPCache.Report, after exchange: Attempt? = nil
    ) async -> IncomingResponse? {
        let age = CacheRules.age(of: entry, at: cache.time)
        guard let answer = CacheAnswer(entry, for: lookUp, age: age) else { return nil }
        guard let body = await body(of: entry, answer.range) else {
            await cache.remove([entry])
            return nil
        }
        if report.isHit {
            cache.record { statistics in
                statistics.hits += 1
                statistics.staleHits += report.reason == nil ? 0 : 1
            }
        }
        var head = answer.head
        head.url = request.url
        return reported(IncomingResponse(head, body, request, exchange), report)
    }

    private func body(of entry: HTTPCache.Entry, _ range: Range<Int64>?) async -> IncomingBody? {
        guard let range, !range.isEmpty else { return IncomingBody(Data()) }
        guard let stored = await cache.attempt({ try await cache.store.body(of: entry, range) }), let body = stored else {
            return nil
        }
        cache.record { $0.servedBytes += Int64(range.count) }
        switch body {
        case .data(let data): return data.count == range.count ? IncomingBody(data) : nil
        case .chunks(let chunks):
            return IncomingBody(StoredSource(chunks, of: entry, range, cache, request), carrier: nil)
        }
    }

    // MARK: Requests to the server

    /// Sends the request as it is.
    private func forwarded(_ report: HTTPCache.Report) async throws -> IncomingResponse {
        cache.count(\.misses)
        var request = request
        if lookUp.policy == .reloadFromOrigin {
            if !request.fields.contains(.cacheControl) { request.fields[.cacheControl] = "no-cache" }
            if !request.fields.contains("Pragma") { request.fields["Pragma"] = "no-cache" }
        }
        let requestedAt = cache.time
        let response = try await next(request)
        return try await received(response, report, requestedAt)
    }

    /// Asks the server whether a stored response is still valid (RFC 9111 §4.3).
    private func validated(_ entry: HTTPCache.Entry, _ report: HTTPCache.Report) async throws -> IncomingResponse {
        var conditional = request
        conditional.fields.merge(CacheRules.preconditions(for: entry))
        let requestedAt = cache.time
        let response: IncomingResponse
        do throws(NetworkError) { response = try await next(conditional) } catch {
            guard !error.isCancellation, let stale = await servedInstead(of: entry) else { throw error }
            return stale
        }
        if response.head.status == .notModified {
            await response.discard()
            guard CacheRules.confirms(response.head, entry) else { return try await forwardedAgain(report, without: entry) }
            let updated = rules.updated(
                entry, by: response.head, to: lookUp.sent(response.request), requestedAt: requestedAt, receivedAt: cache.time)
            _ = await cache.attempt { try await cache.store.update(updated) }
            var report = report
            report.forwardedStatus = .notModified
            report.isStored = true
            report.timeToLive = rules.freshness(of: updated, at: cache.time).timeToLive
            guard let result = await served(updated, report, after: response.attempt) else {
                return try await forwardedAgain(report, without: entry)
            }
            cache.count(\.validations)
            return result
        }
        if Self.errors.contains(response.head.status), rules.mayReplaceError(entry, lookUp, at: cache.time) {
            if let stale = await servedInstead(of: entry, response.head.status) {
                await response.discard()
                return stale
            }
        }
        cache.count(\.misses)
        return try await received(response, report, requestedAt)
    }

    /// The statuses that `stale-if-error` treats as errors (RFC 5861 §4).
    private static let errors: Set<Status> = [500, 502, 503, 504]

    /// Returns a stale response instead of an error; nil if that is not allowed.
    private func servedInstead(of entry: HTTPCache.Entry, _ status: Status? = nil) async -> IncomingResponse? {
        guard rules.mayReplaceError(entry, lookUp, at: cache.time) else { return nil }
        var report = HTTPCache.Report(hit: rules.freshness(of: entry, at: cache.time).timeToLive, reason: .error)
        report.forwardedStatus = status
        return await served(entry, report)
    }

    /// Asks the server for the rest of a response whose start is stored (RFC 9111 §3.4).
    private func completed(_ entry: HTTPCache.Entry, _ report: HTTPCache.Report) async throws -> IncomingResponse {
        guard let fields = CacheRules.completion(of: entry),
            let start = await body(of: entry, 0..<entry.size)
        else { return try await forwardedAgain(report, without: entry) }
        var partial = request
        partial.fields.merge(fields)
        let requestedAt = cache.time
        let response = try await next(partial)
        switch response.head.status {
        case .partialContent:
            guard let whole = rules.combined(
                entry, with: response.head, to: lookUp.sent(response.request), requestedAt: requestedAt, receivedAt: cache.time)
            else {
                await response.discard()
                return try await forwardedAgain(report, without: entry)
            }
            cache.count(\.misses)
            var report = report
            report.forwardedStatus = .partialContent
            let body = IncomingBody(JoinedSource(start, response.body, request), carrier: response.body.carrier)
            var head = whole.head
            head.url = request.url
            let joined = IncomingResponse(head, body, request, response.attempt)
            return try await stored(joined, report, whole, lookUp, expecting: entry.completeSize)
        case .rangeNotSatisfiable:
            await response.discard()
            return try await forwardedAgain(report, without: entry)
        default:
            cache.count(\.misses)
            return try await received(response, report, requestedAt)
        }
    }

    /// Sends the request without preconditions, because a stored response has turned out to be unusable.
    private func forwardedAgain(
        _ report: HTTPCache.Report, without entry: HTTPCache.Entry
    ) async throws -> IncomingResponse {
        await cache.remove([entry])
        return try await forwarded(HTTPCache.Report(report.forwarding ?? .miss, reason: report.reason))
    }

    // MARK: Received responses

    /// Returns a response of the server, which is stored while it is read if the rules allow it.
    private func received(
        _ response: IncomingResponse, _ report: HTTPCache.Report, _ requestedAt: Date
    ) async throws -> IncomingResponse {
        let receivedAt = cache.time
        var report = report
        if lookUp.method == .head {
            await update(by: response.head, requestedAt, receivedAt)
            return reported(response, report)
        }
        if response.head.status == .notModified {
            // The response to the request's own preconditions.
            await update(by: response.head, requestedAt, receivedAt)
            return reported(response, report)
        }
        var proposal = HTTPCache.Proposal(request: response.request, head: response.head)
        if let willStore = cache.options.willStore, await !willStore(&proposal) {
            report.reason = .refused
            return reported(response, report)
        }
        let sent = lookUp.sent(response.request)
        let credentials = settings.credentials(of: request, lookUp, sent: response.request)
        if let reason = rules.refusal(of: proposal.head, to: sent, credentials) {
            report.reason = reason
            return reported(response, report)
        }
        if proposal.mapBytes == nil, let length = proposal.head.contentLength, length > cache.maximumBodySize {
            report.reason = .tooLarge
            return reported(response, report)
        }
        let fields = rules.storedFields(proposal.head.fields)
        var entry = HTTPCache.Entry(
            key: key(for: fields), url: lookUp.url, head: proposal.head, fields: fields, requestFields: CacheRules.requestFields(of: sent, for: fields),
            credentials: rules.requiredCredentials(credentials, fields), requestedAt: requestedAt,
            receivedAt: receivedAt, tags: proposal.tags)
        if proposal.mapBytes != nil { entry.fields.remove(.contentLength) }
        return try await stored(response, report, entry, sent, expecting: entry.head.contentLength, by: proposal.mapBytes)
    }

    private func key(for fields: HeaderFields) -> String {
        let answersOthers = cache.options.usesNoVarySearch && NoVarySearch(of: fields) != nil
        return answersOthers ? CacheKey.ofSearch(lookUp.url) : lookUp.url
    }

    /// Returns a response that is stored while it is read.
    private func stored(
        _ response: IncomingResponse, _ report: HTTPCache.Report, _ entry: HTTPCache.Entry, _ sent: CacheRequest,
        expecting size: Int64?, by map: HTTPCache.Mapping? = nil
    ) async throws -> IncomingResponse {
        var report = report
        guard let writer = await cache.attempt({ try await cache.store.writer(for: entry, expecting: size) }) else {
            report.reason = .storeFailed
            return reported(response, report)
        }
        report.isStored = true
        report.timeToLive = rules.freshness(of: entry, at: cache.time).timeToLive
        let completeSize = map == nil && response.attempt?.isDecoded == false ? CacheRules.completeSize(of: entry.head) : nil
        let replaced = await replaced(by: entry, sent)
        let recorder = BodyRecorder(
            entry, to: writer, in: cache, replacing: replaced, completeSize: completeSize, by: map)
        let source = RecordedSource(response, recorder)
        let body = IncomingBody(source, carrier: response.body.carrier, isAsReceived: response.body.isAsReceived)
        let recorded = IncomingResponse(response.head, body, response.request, response.attempt)
        // A redirect that is followed is not read.
        guard response.head.status.redirects, size ?? 0 <= Self.largestRedirect else { return reported(recorded, report) }
        let (data, trailers) = try await body.whole(upTo: nil, of: request)
        let collected = IncomingBody(data, trailers: trailers)
        return reported(IncomingResponse(response.head, collected, response.request, response.attempt), report)
    }

    /// The maximum size of a redirect's body that is read only to store it.
    private static let largestRedirect: Int64 = 64 << 10

    /// The maximum number of responses for one key, which differ in the fields of their requests.
    private static let maximumVariants = 64

    /// Returns the entries that a new one replaces: those for the same requests, and the oldest ones if there are too
    /// many.
    private func replaced(by entry: HTTPCache.Entry, _ sent: CacheRequest) async -> [HTTPCache.Entry.ID] {
        let stored = await cache.attempt { try await cache.store.entries(.key(entry.key)) } ?? []
        let isEqual = { (other: HTTPCache.Entry) in
            other.url == entry.url && (rules.matches(other, sent) || rules.matches(other, lookUp))
        }
        var others = stored.filter { !isEqual($0) }
        let equal = stored.filter(isEqual).map(\.id)
        if others.count < Self.maximumVariants { return equal }
        others.sort { $0.receivedAt > $1.receivedAt }
        return equal + others[(Self.maximumVariants - 1)...].map(\.id)
    }

    /// Updates the stored responses to GET by a response to HEAD or to the request's own preconditions
    /// (RFC 9111 §4.3.4, §4.3.5).
    private func update(by head: ResponseHead, _ requestedAt: Date, _ receivedAt: Date) async {
        let isConfirmation = head.status == .notModified
        guard isConfirmation || head.status == .ok else { return }
        for entry in await cache.entries(for: lookUp) where entry.status == .ok && rules.matches(entry, lookUp) {
            if isConfirmation {
                guard let tag = head[.etag], tag == entry.fields[.etag] else { continue }
            } else if !CacheRules.describes(head, entry) {
                await cache.remove([entry])
                continue
            }
            let updated = rules.updated(
                entry, by: head, to: lookUp, requestedAt: requestedAt, receivedAt: receivedAt)
            _ = await cache.attempt { try await cache.store.update(updated) }
        }
    }

    // MARK: Other methods

    /// Sends a request whose response is not stored, and removes what it invalidates (RFC 9111 §4.4).
    private func changing() async throws -> IncomingResponse {
        if lookUp.isOffline { return unavailable(.init(.method, reason: .onlyIfCached)) }
        let response = try await next(request)
        for invalidation in CacheRules.invalidated(by: response.head, to: lookUp) {
            let removed: Int
            do throws(NetworkError) {
                switch invalidation {
                case .url(let url): removed = try await cache.remove(url: url)
                case .group(let group, let origin): removed = try await cache.remove(group: group, of: origin)
                }
                cache.record { $0.invalidations += removed }
            } catch {
                cache.count(\.failures)
            }
        }
        return reported(response, .init(.method))
    }
}

extension ResponseHead {
    /// Returns this head with the report of a cache, which is also added to `Cache-Status`: the last member is that of
    /// the cache next to the user (RFC 9211 §2).
    func reporting(_ report: HTTPCache.Report) -> ResponseHead {
        var fields = fields
        fields.append("Cache-Status", report.description)
        var head = with(fields: fields)
        head.cache = report
        return head
    }
}

extension Interception.Context {
    /// Whether the transfer saves its response to a file.
    var isSaved: Bool { run.download != nil }

    /// Validates the stored response to a request in a transfer of its own, unless that runs already.
    func refresh(_ request: Request, key: String, in cache: HTTPCache) {
        guard cache.beginRefresh(key) else { return }
        var request = request
        request.options.cache = .revalidate
        // The stored response is the whole one.
        for name in [HeaderName.range] + CacheRequest.preconditions { request.fields.remove(name) }
        // The others have changed the request already.
        request.interceptors = request.interceptors.filter { $0.scope == .attempt }
        let session = run.session
        Task(priority: .utility) {
            _ = try? await TransferRun(request, on: session).response()
            cache.endRefresh(key)
        }
    }
}
