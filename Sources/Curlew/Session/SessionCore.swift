// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import FoundationEssentials
internal import CurlewSupport

/// The parts of a session besides its actor: constants that any thread may use.
final class SessionCore: Sendable {
    let configuration: Session.Configuration
    let trust: any TrustEvaluator
    let identities: ClientIdentities
    /// The caller's interceptors, in their order.
    let interceptors: [any Interceptor]
    /// The destination of downloads without a destination of their own.
    let downloads: DownloadDestination?
    /// The cookies, and the hosts that require https; nil when the session has none.
    let cookies: CookieJar?
    let hsts: HSTSStore?
    let cache: HTTPCache?
    /// The alternative services of servers, only in memory.
    let alternativeServices = AlternativeServices()
    /// The chain of the built-in interceptors, and the chain of requests without interceptors of their own.
    private let builtIns: Chain
    private let defaultChain: Chain
    /// The interceptor that lets equal requests share a transfer.
    let coalescing: CoalescingInterceptor
    /// The chain of the built-in interceptors for a transfer that several requests share.
    private let sharedBuiltIns: Chain
    /// Waits for the way to the server of a request that is retried.
    let connectivity: Connectivity
    /// The interceptor that retries requests; it holds the retry budgets of all origins.
    let retry: RetryInterceptor
    /// Sent when the session has closed and no transfer may continue.
    let closed = Signal()
    let share: LoopShare
    let relay: SessionRelay
    let domains: TrustDomains
    let routes: RouteTable
    let resolver: EngineResolver
    /// The caller's monitor of the machine's connection; nil to observe the kernel.
    let path: PathMonitor?
    let urls = Lock(PlannedURLCache())
    /// The URLs of requests whose route does not depend on the URL alone; nil before the first one.
    let routedURLs = Lock<PlannedURLCache?>(nil)
    private let headerLinesCache = Lock(HeaderLinesCache())
    /// The policy for decoding responses, unless a request turns decoding off.
    private let decodingPolicy: DecodingPolicy
    /// The header lines of requests without fields of their own: without a body, with one, and with a large one.
    private let defaultLines: (bare: HeaderLines, small: HeaderLines, large: HeaderLines)
    /// The limits of requests without limits of their own.
    private let defaultLimits: SharedLimits
    /// The same without a limit of the head, for event streams unless the session sets that limit.
    private let eventStreamLimits: SharedLimits
    private let setsHeadTimeout: Bool
    private let refusal: NetworkError?

    init(
        _ configuration: Session.Configuration, trust: any TrustEvaluator, identities: ClientIdentities = .none,
        interceptors: [any Interceptor] = [], observers: [any Session.Observer] = [],
        downloads: DownloadDestination? = nil, cookies: CookieJar? = CookieJar(), hsts: HSTSStore? = HSTSStore(),
        cache: HTTPCache? = nil,
        environment: ProxyEnvironment? = nil, resolver: EngineResolver = .system, path: PathMonitor? = nil,
        codings: ContentCodings = .system,
        retry: RetryInterceptor? = nil, builtIns: [any FoldableInterceptor] = [], clock: LoopClock = LoopClock()
    ) {
        self.configuration = configuration
        self.trust = trust
        self.identities = identities
        self.interceptors = interceptors
        self.downloads = downloads
        (self.resolver, self.path) = (resolver, path)
        (self.cookies, self.hsts, self.cache) = (cookies, hsts, cache)
        do throws(NetworkError) {
            try configuration.validate()
            try configuration.checkFiles(cookies: cookies?.file, hsts: hsts?.file, cache: cache)
            refusal = SessionCore.refusal(of: CurlVersion.current)
        } catch {
            refusal = error
        }
        let relay = SessionRelay(EndRecorder(observers))
        self.relay = relay
        let report: @Sendable (TrustDomains.Report) -> Void = { report in
            switch report {
            case .wouldRefuse(let failure): relay.send(.trustReport(failure))
            case .identityNotReloaded(let error): relay.send(.identityNotReloaded(error))
            }
        }
        let routes = RouteTable(configuration, environment: environment ?? .current) { proxy in
            TrustDomains.proxyDomain(proxy, report: report)
        }
        self.routes = routes
        let engine = EngineConfiguration(configuration, resolver) { reason in
            relay.send(.keyLogNotWritten(path: configuration.tls.keyLogFile ?? "", reason: reason))
        }
        connectivity = Connectivity(
            monitor: path, resolver: engine.resolver, routes: routes, rules: engine.socketRules)
        self.retry = retry ?? RetryInterceptor(configuration.retry, isOfSession: true, clock: clock.taskClock)
        let storing = cookies.map { CookieInterceptor(jar: $0, fields: configuration.fields) }
        // The order is the nesting.
        var links: [any FoldableInterceptor] = [
            self.retry, RedirectInterceptor(policy: configuration.redirects, hsts: hsts),
        ]
        if let hsts { links.append(HSTSInterceptor(store: hsts, trust: trust, isInnermost: false)) }
        // A session that refuses every request must not answer any from the cache.
        if let cache, refusal == nil {
            let settings = CacheInterceptor.Settings(configuration, codings, cookies: storing, interceptors)
            links.append(CacheInterceptor(cache: cache, settings: settings))
        }
        links += builtIns
        if let hsts { links.append(HSTSInterceptor(store: hsts, trust: trust, isInnermost: true)) }
        links.append(AlternativeServiceInterceptor(services: alternativeServices, trust: trust))
        if let storing { links.append(storing) }
        links.append(ProxyInterceptor(routes: routes))
        sharedBuiltIns = Chain(links)
        coalescing = CoalescingInterceptor(isOn: configuration.coalescesRequests)
        self.builtIns = Chain([coalescing] + links)
        defaultChain = interceptors.isEmpty ? self.builtIns : Chain(interceptors, around: self.builtIns)
        share = LoopShare(
            EventLoop(configuration: engine, clock: clock) { nanoseconds in
                relay.send(.slowTurn(.nanoseconds(Int64(clamping: nanoseconds))))
            })
        domains = TrustDomains(own: trust, identities: identities, report: report)
        decodingPolicy = DecodingPolicy(codings, ratio: configuration.limits.decompressionRatio)
        let accepting = configuration.http.decompression == .automatic ? codings.acceptEncoding : nil
        defaultLines = (
            SessionCore.lines(configuration.fields, accepting: accepting, sends: false, expects: false),
            SessionCore.lines(configuration.fields, accepting: accepting, sends: true, expects: false),
            SessionCore.lines(configuration.fields, accepting: accepting, sends: true, expects: true)
        )
        var limits = TransferLimits(configuration)
        defaultLimits = SharedLimits(limits)
        limits.head = nil
        eventStreamLimits = SharedLimits(limits)
        setsHeadTimeout = configuration.timeouts.sets(.responseHead)
        relay.attach(share)
    }

    deinit { relay.close() }

    /// Returns the reason why a session cannot run with a libcurl; nil when it can.
    private static func refusal(of curl: CurlVersion) -> NetworkError? {
        if !curl.isSupported {
            return NetworkError(
                .unsupported, phase: .preparing, "libcurl \(curl.text) is too old.",
                hint: "Curlew needs libcurl 7.88 or later.")
        }
        if !curl.usesOpenSSL {
            return NetworkError(
                .unsupported, phase: .preparing, "This libcurl uses \(curl.tls) for TLS; Curlew needs OpenSSL.",
                hint: "Install the OpenSSL flavour of libcurl; Debian's package is libcurl4-openssl-dev.")
        }
        return nil
    }

    /// Returns everything that the engine needs to run a request.
    /// - Throws: `NetworkError` of kind `invalidRequest` or `bodyNotReplayable`, or the error that prevents every
    ///   request.
    func plan(for request: Request, interest: SharedInterest = .none) throws(NetworkError) -> TransferPlan {
        if let refusal { throw refusal.with(request: request) }
        try request.validateParts()
        let target = try plannedURL(of: request)
        if !target.isSecure { try checkPlainHTTP(for: request, to: target.host) }
        guard !request.body.isConsumed else {
            throw NetworkError(
                .bodyNotReplayable, phase: .preparing, "The request's body was sent before and can be read only once.",
                hint: request.body.replayHint(or: "a new one"), request: request)
        }
        let upload: TransferPlan.Upload
        do throws(SourceFailure) {
            upload = try request.body.upload()
        } catch {
            throw .unusableBody(error, request)
        }
        let expectsContinue = upload.waits(by: expectation(of: request))
        var plan = TransferPlan(
            method: request.method.rawValue, target: target,
            lines: lines(
                for: request, expectsContinue: expectsContinue, proof: request.proxyProof?.fieldValue(for: target)),
            upload: upload,
            trust: domains.domain(
                for: request.trust, host: target.isSecure ? target.host : nil, route: target.route),
            limits: limits(of: request), interest: interest, priority: request.options.priority.rawValue,
            label: request.options.label)
        plan.expectsContinue = expectsContinue
        // Connections over Unix sockets have no ports, by which the engine would recognise an open one.
        plan.ownsConnection = request.options.connection == .own || request.options.unixSocket != nil
        plan.resends = request.options.connection == .resending
        if configuration.http.version == .http3 { plan.offersHTTP3 = alternativeServices.offersHTTP3(target) }
        plan.isIdempotent = request.method.isIdempotent
        compress(request, in: &plan)
        return plan
    }

    /// Checks that the request may be sent without TLS, where no trust evaluator runs; evaluators that pin certificates
    /// refuse it.
    private func checkPlainHTTP(for request: Request, to host: String) throws(NetworkError) {
        let rule: String
        if configuration.tls.isRequired {
            rule = "The session sends no request without TLS (tls.isRequired)."
        } else if !(request.trust?.allowsPlainHTTP(to: host) ?? trust.allowsPlainHTTP(to: host)) {
            rule = "The trust evaluator of the request does not allow \(host) without TLS."
        } else {
            return
        }
        throw NetworkError(
            invalid: .scheme, rule, hint: "Use an https URL; after a redirect, check its target.",
            request: request)
    }

    /// - Parameter proof: The value of `Proxy-Authorization`; nil without one.
    private func lines(
        for request: Request, expectsContinue: Bool, contentEncoding: String? = nil, proof: String? = nil
    ) -> HeaderLines {
        let decodes = decodes(request)
        // libcurl treats POST, PUT and PATCH as having a body, even an empty one.
        let method = request.method
        let sends = !request.body.isNone || method != .get && (method == .post || method == .put || method == .patch)
        if request.fields.isEmpty, request.withheld.isEmpty, contentEncoding == nil, proof == nil,
            decodes == (configuration.http.decompression == .automatic)
        {
            return expectsContinue ? defaultLines.large : sends ? defaultLines.small : defaultLines.bare
        }
        var wish = HeaderLinesCache.HeaderLinesInput(
            fields: request.fields, withheld: request.withheld, contentEncoding: contentEncoding, decodes: decodes,
            sends: sends, expects: expectsContinue)
        if let proof {
            // The proof is valid once.
            wish.fields[.proxyAuthorization] = proof
            return lines(for: wish)
        }
        if let known = headerLinesCache.withLock({ $0[wish] }) { return known }
        let made = lines(for: wish)
        headerLinesCache.withLock { $0.keep(made, for: wish) }
        return made
    }

    /// Forgets the header lines of earlier requests, including credentials in them.
    func forgetHeaderLines() { headerLinesCache.withLock { $0 = HeaderLinesCache() } }

    private func lines(for wish: HeaderLinesCache.HeaderLinesInput) -> HeaderLines {
        var fields = configuration.fields
        for name in wish.withheld { fields.remove(name) }
        fields.merge(wish.fields)
        if let coding = wish.contentEncoding { fields[.contentEncoding] = coding }
        let offersCodings = wish.decodes && !wish.withheld.contains(.acceptEncoding)
        return SessionCore.lines(
            fields, accepting: offersCodings ? decodingPolicy.codings.acceptEncoding : nil, sends: wish.sends,
            expects: wish.expects)
    }

    private func expectation(of request: Request) -> Request.ExpectContinue {
        if request.fields.contains(.expect) { return .always }
        return request.options.expectContinue ?? configuration.http.expectContinue
    }

    private func decodes(_ request: Request) -> Bool {
        (request.options.decompression ?? configuration.http.decompression) == .automatic
    }

    /// - Parameter codings: The value of `Accept-Encoding`, unless the fields contain it; nil adds no such field, and
    ///   no coding.
    private static func lines(
        _ fields: HeaderFields, accepting codings: String?, sends: Bool, expects: Bool
    ) -> HeaderLines {
        // libcurl adds these fields to some requests by itself; fields that the user did not set must not be sent.
        var additions: [HeaderName] = [.accept]
        if sends { additions.append(.contentType) }
        if sends && !expects { additions.append(.expect) }
        var lines = fields.map { ($0.name.rawValue, $0.value) }
        if let codings, !fields.contains(.acceptEncoding) {
            // A range counts the bytes of the representation, which includes its content coding (RFC 9110 §14.2).
            lines.append((HeaderName.acceptEncoding.rawValue, fields.contains(.range) ? "identity" : codings))
        }
        return HeaderLines(lines, suppressing: additions.filter { fields[$0] == nil }.map(\.rawValue))
    }

    /// Replaces the body with the compressed one; the plain body remains as the alternative if it can be read again.
    private func compress(_ request: Request, in plan: inout TransferPlan) {
        let compression = request.options.compression ?? configuration.http.compression
        guard let threshold = compression.threshold, let zlib = decodingPolicy.codings.zlib, !request.body.isNone,
            !request.fields.contains(.contentEncoding), !configuration.fields.contains(.contentEncoding)
        else { return }
        let upload: TransferPlan.Upload
        switch plan.upload {
        case .none: return
        case .bytes(let bytes):
            guard bytes.count > threshold.bytes,
                let compressed = try? Deflater(zlib).compressed(bytes)
            else { return }
            upload = .bytes(compressed)
        case .pipe(let pipe):
            guard pipe.declared ?? .max > threshold.bytes else { return }
            upload = .pipe(pipe.transformed { try Deflater(zlib) })
        }
        if request.body.canReplay, let plain = try? request.body.upload() {
            plan.alternative = TransferPlan.Alternative(
                lines: plan.lines, upload: plain, expectsContinue: plan.expectsContinue)
        }
        plan.upload = upload
        plan.expectsContinue = upload.waits(by: expectation(of: request))
        plan.lines = lines(
            for: request, expectsContinue: plan.expectsContinue, contentEncoding: ContentCoding.gzip.rawValue,
            proof: request.proxyProof?.fieldValue(for: plan.target))
    }

    func transfer(_ request: Request, for download: DownloadRun? = nil) -> TransferLifetime {
        TransferLifetime(TransferRun(request, on: self, for: download))
    }

    /// Creates the transfer of a request that can never be sent.
    func transfer(_ request: Request, refusedBy error: NetworkError) -> TransferLifetime {
        TransferLifetime(TransferRun(request, refusedBy: error, on: self))
    }
}

// MARK: For transfers

extension SessionCore {
    var loop: EventLoop { share.loop }

    /// The clock of all waits of transfers: retries, downloads, the total timeout and discarded bodies.
    var clock: any Clock<Duration> { loop.clock.taskClock }

    /// Writes the changes of the cookies and of the hosts that require https to their files, if they have files.
    ///
    /// - Throws: The first error, after both files were tried.
    func saveState() async throws(NetworkError) {
        var failure: NetworkError?
        do throws(NetworkError) { try await cookies?.saveAndReport() } catch { failure = error }
        do throws(NetworkError) { try await hsts?.save() } catch { failure = failure ?? error }
        if let failure { throw failure }
    }

    /// Returns the retry policy of the request; nil when neither the request nor the session sets one.
    func retryPolicy(of request: Request) -> RetryPolicy? {
        request.options.retry ?? (configuration.retry.isOn ? configuration.retry : nil)
    }

    /// Returns the chain of a request: interceptors of the transfer, the built-in ones, and those of each attempt.
    func chain(for request: Request) -> Chain {
        if request.interceptors.isEmpty { return defaultChain }
        return Chain(request.interceptors + interceptors, around: builtIns)
    }

    /// Returns the chain of a transfer that several requests share: without interceptors that they have passed already.
    func sharedChain(for request: Request) -> Chain {
        let own = (request.interceptors + interceptors).filter { $0.scope == .attempt }
        return own.isEmpty ? sharedBuiltIns : Chain(own, around: sharedBuiltIns)
    }

    private func limits(of request: Request) -> SharedLimits {
        let common = setsHeadTimeout || !request.acceptsEventStream ? defaultLimits : eventStreamLimits
        return request.options.setsLimits ? ownLimits(of: request, common.values) : common
    }

    private func ownLimits(of request: Request, _ common: TransferLimits) -> SharedLimits {
        var limits = common
        if let timeouts = request.options.ownTimeouts { limits.merge(timeouts) }
        if let size = request.options.responseLimit { limits.bodySize = Int(clamping: size.bytes) }
        if let bandwidth = request.options.bandwidth { limits.throttle = Throttle(bandwidth) }
        return SharedLimits(limits)
    }

    func totalTimeout(of request: Request) -> Duration? {
        (request.options.ownTimeouts.map { configuration.timeouts.merging($0) } ?? configuration.timeouts).total
    }

    func bodyLimit(of request: Request) -> ByteCount {
        request.options.responseLimit ?? configuration.limits.responseBody
    }

    /// The observer of all transfers; nil without an observer.
    var observedRelay: SessionRelay? { relay.isObserved ? relay : nil }

    var recorder: EndRecorder? { relay.recorder }

    /// Waits until the session's recorders have recorded every end that was sent before.
    func waitForRecorders() async { await recorder?.waitUntilRecorded() }

    /// Prepares an attempt of a request.
    ///
    /// - Throws: `NetworkError` of kind `invalidRequest`, `bodyNotReplayable` or `timedOut`, or the error that prevents
    ///   every request.
    func attempt(_ request: Request, at position: AttemptPosition) throws(NetworkError) -> Attempt {
        let engine = try engineTransfer(for: request, at: position)
        return Attempt(request, engine, offset: position.offset, policy: policy(for: request))
    }

    /// Returns the policy for decoding the response; nil when the response is not decoded.
    func policy(for request: Request) -> DecodingPolicy? { decodes(request) ? decodingPolicy : nil }

    /// Creates the engine's transfer for one attempt of a request.
    func engineTransfer(
        for request: Request, at position: AttemptPosition, isMeasured: Bool = true
    ) throws(NetworkError) -> EngineTransfer {
        var plan = try plan(for: request, interest: position.interest)
        plan.isMeasured = isMeasured
        plan.transfer = position.id
        plan.ordinal = position.ordinal
        plan.offset = position.offset
        plan.continues = position.continues
        plan.isSaved = position.isSaved
        if plan.remainingTotal == 0 { throw .overdue(request, after: totalTimeout(of: request)) }
        return EngineTransfer(plan, on: share.loop)
    }
}

extension TransferPlan.Upload {
    /// Whether the request waits for `100 Continue` before its body is sent (RFC 9110 §10.1.1).
    ///
    /// A body of unknown length counts as long.
    fileprivate func waits(by policy: Request.ExpectContinue) -> Bool {
        let length: Int64
        switch self {
        case .none: return false
        case .bytes(let bytes): length = Int64(bytes.count)
        case .pipe(let pipe): length = pipe.declared ?? .max
        }
        switch policy.threshold {
        case nil: return false
        case let threshold?: return length > 0 && length >= threshold.bytes
        }
    }
}
