// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import CurlewSupport

/// The routes of a session.
///
/// The table selects the route of each request. It keeps one object for each route in use, so that requests over the
/// same route share connections.
final class RouteTable: Sendable {
    private enum Hop: Hashable {
        case server
        case proxy(Proxy, tunnels: Bool)
        case socket(String)
    }

    private struct Key: Hashable {
        let hop: Hop
        let trafficClass: Request.TrafficClass
    }

    private struct State {
        var routes: [Key: Route] = [:]
        /// The keys in the order in which the routes were created.
        var order: [Key] = []
    }

    /// The maximum number of routes in the table.
    ///
    /// The next request over a removed route opens a new connection.
    private static let size = 256

    /// The policy and the traffic class of requests whose options set neither.
    private let policy: Proxy.Policy
    private let trafficClass: Request.TrafficClass
    /// Whether requests without TLS use HTTP/2.
    ///
    /// They need a tunnel, because proxies forward only HTTP/1.1.
    private let tunnelsAll: Bool
    private let environment: ProxyEnvironment
    private let makeTrust: @Sendable (Proxy) -> TrustDomain
    private let state = Lock(State())

    init(
        _ configuration: Session.Configuration, environment: ProxyEnvironment = .current,
        makeTrust: @escaping @Sendable (Proxy) -> TrustDomain
    ) {
        policy = configuration.proxy
        trafficClass = configuration.tcp.trafficClass
        tunnelsAll = configuration.http.version == .http2PriorKnowledge
        self.environment = environment
        self.makeTrust = makeTrust
    }

    /// Whether the URL alone determines the route of a request whose options set no route.
    var isFixed: Bool {
        switch policy.rule {
        case .none, .environment, .inherited, .always: true
        case .custom, .changedEnvironment: false
        }
    }

    /// Returns the proxy of a request and the reason; nil when no rule applies to the request.
    ///
    /// - Throws: The errors of ``Proxy/Policy/choice(for:_:_:)``.
    func choice(for request: Request, _ target: RequestTarget) throws(NetworkError) -> Proxy.Choice? {
        if request.options.unixSocket != nil { return nil }
        let own = request.options.proxy
        return try (own == .inherited ? policy : own).choice(for: request, target, environment)
    }

    /// Whether a proxy forwards the requests to a server instead of opening a tunnel.
    func forwards(_ target: RequestTarget, by proxy: Proxy) -> Bool {
        target.scheme == .http && (proxy.scheme == .http || proxy.scheme == .https) && !proxy.tunnelsPlainHTTP
            && !tunnelsAll
    }

    /// Returns the URL of a request with its route.
    ///
    /// - Throws: The errors of ``choice(for:_:)``, and `NetworkError` of kind `invalidRequest` for a proxy with invalid
    ///   credentials or fields.
    func planned(_ request: Request, _ target: RequestTarget) throws(NetworkError) -> PlannedURL {
        let choice = try choice(for: request, target)
        var hop = Hop.server
        if let path = request.options.unixSocket {
            hop = .socket(path)
        } else if let proxy = choice?.proxy {
            if let rule = proxy.brokenRule {
                throw NetworkError(
                    invalid: .configuration, "The proxy \(proxy.url) cannot be used: \(rule).", request: request)
            }
            hop = .proxy(proxy, tunnels: !forwards(target, by: proxy))
        }
        let key = Key(hop: hop, trafficClass: request.options.trafficClass ?? trafficClass)
        return PlannedURL(target, route: route(for: key), remark: choice?.storage)
    }

    private func route(for key: Key) -> Route? {
        if key.hop == .server, key.trafficClass == .standard { return nil }
        if let known = state.withLock({ $0.routes[key] }) { return known }
        // Create the route outside of the lock, because `makeTrust` calls the proxy's evaluator.
        let made = Route(engineHop(key.hop), trafficClass: key.trafficClass.byte)
        return state.withLock { state in
            if let known = state.routes[key] { return known }
            state.routes[key] = made
            state.order.append(key)
            if state.order.count > RouteTable.size { state.routes[state.order.removeFirst()] = nil }
            return made
        }
    }

    private func engineHop(_ hop: Hop) -> Route.Hop {
        switch hop {
        case .server: return .server
        case .socket(let path):
            return path.hasPrefix("@")
                ? .socket(path: String(path.dropFirst()), isAbstract: true) : .socket(path: path, isAbstract: false)
        case .proxy(let proxy, let tunnels):
            var hop = Route.Proxy(
                Route.Proxy.Scheme(sameAs: proxy.scheme), host: proxy.host, port: UInt16(clamping: proxy.port))
            hop.tunnels = tunnels && hop.isHTTP
            hop.usesDigest = proxy.credentials?.isDigest == true && hop.isHTTP
            // For a forwarded request, `ProxyInterceptor` computes the digest: libcurl would send the body twice.
            if let credentials = proxy.credentials, !hop.usesDigest || tunnels {
                (hop.user, hop.password) = (credentials.user, credentials.password)
            }
            if hop.isHTTP {
                // libcurl adds the field `Proxy-Connection`, which has no meaning (RFC 9112 §C.2.2).
                hop.lines = HeaderLines(
                    proxy.fields.map { ($0.name.rawValue, $0.value) },
                    suppressing: proxy.fields.contains("Proxy-Connection") ? [] : ["Proxy-Connection"])
            }
            if proxy.scheme == .https { hop.trust = makeTrust(proxy) }
            return .proxy(hop)
        }
    }
}

extension PlannedURL {
    convenience init(_ target: RequestTarget, route: Route? = nil, remark: Proxy.Choice.Storage? = nil) {
        self.init(
            target.text, host: target.host, port: target.port, isSecure: target.scheme == .https, route: route,
            remark: remark)
    }

    /// The proxy of the URL's requests and the reason; nil when no rule applies to the requests.
    var proxyChoice: Proxy.Choice? { Proxy.Choice(remark) }
}
