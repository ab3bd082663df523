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
        /// The value of `Accept-Encoding` for requests that name a dictionary; nil if no library can decode with one.
        var acceptEncodingWithDictionary: String?
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
        // The cache knows a server by its URL, which does not name a Unix socket.
        guard request.options.unixSocket == nil, let target = try? request.target() else {
            return try await next(request)
        }
        if request.tags[OwnStore.self] != nil { return try await next(request) }
        let lookUp = settings.lookUp(for: request, target, isAtOrigin: context.isAtOrigin(request))
        let exchange = CacheExchange(
            cache: cache, settings: settings, request: request, lookUp: lookUp, context: context, next: next,
            removals: cache.removals)
        if !request.method.isSafe || !context.isSaved && request.body.isNone { return try await exchange.response() }
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
        acceptEncodingWithDictionary = codings.acceptEncodingWithDictionary
        sensitiveFields = configuration.redirects.sensitiveFields
        self.cookies = cookies
        hasAuthenticator = interceptors.contains { $0 is any Authenticator }
    }

    /// Returns what the rules need to know about a request.
    ///
    /// - Parameter isAtOrigin: Whether authenticators may add credentials to the request.
    func lookUp(for request: Request, _ target: RequestTarget, isAtOrigin: Bool) -> CacheRequest {
        let decodes = request.options.decompression.map { $0 == .automatic } ?? self.decodes
        var own = request.fields
        var defaults = fields
        for name in request.withheld { defaults.remove(name) }
        if decodes, !request.withheld.contains(.acceptEncoding), !defaults.contains(.acceptEncoding) {
            defaults[.acceptEncoding] = acceptEncoding
        }
        let credentials = credentials(of: request, defaults, target, isAtOrigin: isAtOrigin)
        if let cookie = cookies?.adapted(request)?.fields[.cookie] { own[.cookie] = cookie }
        return CacheRequest(
            request.method, CacheKey.url(of: target), fields: own, defaults: defaults,
            policy: request.options.cache ?? policy, decodes: decodes, credentials: credentials)
    }

    /// Returns the credentials in the fields of a request and in its URL, as a digest.
    private func credentials(
        of request: Request, _ defaults: HeaderFields, _ target: RequestTarget, isAtOrigin: Bool
    ) -> CacheRules.Credentials {
        if isAtOrigin, !request.options.isAnonymous, !request.hasOwnCredentials,
            hasAuthenticator || request.interceptors.contains(where: { $0 is any Authenticator })
        {
            return .added
        }
        var values = target.userInfo.map { [$0] } ?? []
        let sensitive = request.options.redirects?.sensitiveFields ?? []
        for fields in [request.fields, defaults] {
            for field in fields where isCredential(field.name) || sensitive.contains(field.name) {
                values.append("\(field.name.canonical):\(field.value)")
            }
        }
        return values.isEmpty ? .none : .known(CacheKey.digest(values.joined(separator: "\n")))
    }

    private func isCredential(_ name: HeaderName) -> Bool { name.isSensitive || sensitiveFields.contains(name) }

    /// Returns the credentials of a request as it was sent.
    ///
    /// - Parameters:
    ///   - request: The request when it reached the cache.
    ///   - lookUp: The parts of that request.
    ///   - sent: The request as it was sent.
    ///   - isShared: Whether the cache is shared, so that the cookies of the jar count.
    func credentials(
        of request: Request, _ lookUp: CacheRequest, sent: Request, isShared: Bool
    ) -> CacheRules.Credentials {
        let isAdded = sent.fields.contains { field in
            guard isShared || field.name != .cookie, isCredential(field.name) || field.name.isHidden else {
                return false
            }
            return request.fields[field.name] != sent.fields[field.name]
        }
        return isAdded ? .added : lookUp.credentials
    }
}

extension ResponseHead {
    /// Returns this head with the report of a cache, which is also added to `Cache-Status`: the last member is that of
    /// the cache next to the user (RFC 9211 §2).
    func reporting(_ report: HTTPCache.Report) -> ResponseHead {
        // The member of the same cache is replaced if the head has one already.
        let own = cache.map { HeaderFields.Field(name: "Cache-Status", value: $0.description) }
        var fields = HeaderFields(fields.filter { $0 != own })
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
        // The interceptors of the transfer have changed the request already.
        let (session, chain) = (run.session, run.session.sharedChain(for: request))
        Task(priority: .utility) {
            let lifetime = TransferLifetime(TransferRun(request, by: chain, on: session))
            // The body is stored while it is read, and can be larger than the memory.
            let reader = BodyReader(lifetime, withProgress: false)
            while let element = try? await reader.nextElement() { _ = element }
            cache.endRefresh(key)
        }
    }
}
