// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import FoundationEssentials

/// One request on its way through a cache.
struct CacheExchange {
    let cache: HTTPCache
    let settings: CacheInterceptor.Settings
    let request: Request
    let lookUp: CacheRequest
    let context: Interception.Context
    let next: Interception.Next
    /// The number of removals when the request reached the cache; a later removal can keep the response from being
    /// stored.
    let removals: UInt64

    var rules: CacheRules { cache.rules }

    func response() async throws -> IncomingResponse {
        guard lookUp.method == .get || lookUp.method == .head else { return try await changing() }
        let entries = await cache.entries(for: lookUp)
        switch rules.decide(lookUp, entries, at: cache.time) {
        case .serve(let entry, let report):
            if let response = await served(entry, report) { return response }
            return try await forwardedInstead()
        case .refresh(let entry, let report):
            guard let response = await served(entry, report) else { return try await forwardedInstead() }
            context.refresh(request, key: entry.key, in: cache)
            return response
        case .validate(let entry, let report): return try await validated(entry, report)
        case .complete(let entry, let report): return try await completed(entry, report)
        case .forward(let report, let stale): return try await forwarded(report, insteadOfError: stale)
        case .unavailable(let report): return unavailable(report)
        }
    }

    /// Returns the response for a request that must not be sent (RFC 9111 §5.2.1.7).
    func unavailable(_ report: HTTPCache.Report) -> IncomingResponse {
        if lookUp.method == .get || lookUp.method == .head { cache.count(\.misses) }
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
        guard let stored = await cache.attempt({ try await cache.store.body(of: entry, range) }), let body = stored
        else {
            return nil
        }
        cache.record { $0.servedBytes += Int64(range.count) }
        switch body {
        case .data(let data): return data.count == range.count ? IncomingBody(data) : nil
        case .chunks(let chunks):
            return IncomingBody(
                StoredSource(chunks, of: entry, range, cache, request), carrier: nil, hasStatedLength: true)
        }
    }

    // MARK: Requests to the server

    /// Sends the request because the stored response cannot be used after all.
    private func forwardedInstead() async throws -> IncomingResponse {
        if lookUp.isOffline { return unavailable(.init(.miss, reason: .onlyIfCached)) }
        return try await forwarded(.init(.miss))
    }

    /// Sends the request as it is.
    ///
    /// - Parameter stale: The stale response that may replace an error.
    private func forwarded(
        _ report: HTTPCache.Report, insteadOfError stale: HTTPCache.Entry? = nil
    ) async throws -> IncomingResponse {
        var request = request
        if lookUp.policy == .reloadFromOrigin {
            if !request.fields.contains(.cacheControl) { request.fields[.cacheControl] = "no-cache" }
            if !request.fields.contains("Pragma") { request.fields["Pragma"] = "no-cache" }
        }
        let requestedAt = cache.time
        switch try await sent(request, insteadOfError: stale) {
        case .stale(let response): return response
        case .received(let response):
            cache.count(\.misses)
            return try await received(response, report, requestedAt)
        }
    }

    /// Asks the server whether a stored response is still valid (RFC 9111 §4.3).
    private func validated(_ entry: HTTPCache.Entry, _ report: HTTPCache.Report) async throws -> IncomingResponse {
        var conditional = request
        conditional.fields.merge(CacheRules.preconditions(for: entry))
        let requestedAt = cache.time
        let response: IncomingResponse
        switch try await sent(conditional, insteadOfError: entry) {
        case .stale(let response): return response
        case .received(let received): response = received
        }
        if response.head.status == .notModified {
            await response.discard()
            guard CacheRules.confirms(response.head, entry) else {
                return try await forwardedAgain(report, without: entry)
            }
            let updated = rules.updated(
                entry, by: response.head, to: lookUp.sent(response.request), requestedAt: requestedAt,
                receivedAt: cache.time)
            let revised = await revised(updated)
            var report = report
            report.forwardedStatus = .notModified
            report.isStored = revised != nil
            report.timeToLive = revised.map { rules.freshness(of: $0, at: cache.time).timeToLive }
            // The body is opened before the entry is replaced, which may remove it.
            let served = await served(revised ?? updated, report, after: response.attempt)
            await replace(updated, by: revised)
            guard let result = served else { return try await forwardedAgain(report, without: entry) }
            cache.count(\.validations)
            return result
        }
        cache.count(\.misses)
        return try await received(response, report, requestedAt)
    }

    /// The response to a request that was sent.
    private enum Sent {
        case received(IncomingResponse)
        /// A stale response, because the server failed or was not reachable.
        case stale(IncomingResponse)
    }

    /// Sends a request; a stale response may replace an error.
    private func sent(_ request: Request, insteadOfError stale: HTTPCache.Entry?) async throws(NetworkError) -> Sent {
        let request = await offeringDictionary(request)
        let response: IncomingResponse
        do throws(NetworkError) { response = try await next(request) } catch {
            guard Self.failures.contains(error.kind), let stale, let served = await servedInstead(of: stale) else {
                throw error
            }
            return .stale(served)
        }
        guard let stale, Self.errors.contains(response.head.status),
            let served = await servedInstead(of: stale, response.head.status)
        else { return .received(response) }
        await response.discard()
        return .stale(served)
    }

    /// The kinds of failures that a stale response may replace: the server was not reachable or broke off.
    private static let failures: Set<NetworkError.Kind> = [
        .cannotResolve, .cannotConnect, .connectionLost, .streamRefused, .timedOut,
    ]

    /// The statuses that `stale-if-error` treats as errors (RFC 5861 §4).
    private static let errors: Set<Status> = [500, 502, 503, 504]

    /// Returns a stale response instead of an error; nil if that is not allowed.
    private func servedInstead(of entry: HTTPCache.Entry, _ status: Status? = nil) async -> IncomingResponse? {
        guard rules.mayReplaceError(entry, lookUp, at: cache.time) else { return nil }
        var report = HTTPCache.Report(.stale, reason: .error)
        report.forwardedStatus = status
        report.timeToLive = rules.freshness(of: entry, at: cache.time).timeToLive
        let response = await served(entry, report)
        if response != nil { cache.count(\.replacedErrors) }
        return response
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
            guard
                let whole = rules.combined(
                    entry, with: response.head, to: lookUp.sent(response.request), requestedAt: requestedAt,
                    receivedAt: cache.time)
            else {
                await response.discard()
                return try await forwardedAgain(report, without: entry)
            }
            cache.count(\.misses)
            var report = report
            report.forwardedStatus = .partialContent
            let body = IncomingBody(
                JoinedSource(start, response.body, request), carrier: response.body.carrier, hasStatedLength: true)
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
}
