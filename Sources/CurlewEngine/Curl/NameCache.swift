// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewShims

/// The endpoints found by a look-up, and the time when they expire.
final class ResolvedName {
    private let endpoints: [SocketAddress]
    private let isSelective: Bool
    /// Whether some of the endpoints have a port of their own.
    let hasPorts: Bool
    /// Whether an HTTPS record announces HTTP/3.
    let offersHTTP3: Bool
    let until: UInt64
    /// The endpoints of the server behind a proxy that accepts only addresses; `endpoints` are then those of the proxy,
    /// if it needs a look-up.
    let server: ResolvedName?

    init(_ endpoints: [SocketAddress], until: UInt64, offersHTTP3: Bool = false, server: ResolvedName? = nil) {
        self.endpoints = endpoints
        hasPorts = endpoints.contains { $0.port != nil }
        isSelective = endpoints.contains(where: \.isForDefaultPort)
        self.until = until
        self.offersHTTP3 = offersHTTP3
        self.server = server
    }

    /// Returns a copy with the endpoints of the server behind a proxy.
    func with(server: ResolvedName) -> ResolvedName { ResolvedName(endpoints, until: server.until, server: server) }

    /// Returns the endpoints for connections of an origin to one of its peers.
    func endpoints(of peer: Origin.Peer, at origin: Origin) -> [SocketAddress] {
        guard isSelective else { return endpoints }
        let isDefault = origin.isSecure && peer.port == 443 && origin.route?.proxy == nil
        return endpoints.filter { isDefault || !$0.isForDefaultPort }
    }
}

/// The cache of host names of a session, and the running look-ups with the transfers that wait for them.
struct NameCache {
    /// Nanoseconds that addresses are used; libcurl's own cache keeps them twice as long.
    static let lifetime: UInt64 = 60_000_000_000

    /// The limits of the lifetime that a resolver states: a session does not look up a name for each request, and
    /// notices a change within a day.
    static let shortest: UInt64 = 1_000_000_000
    static let longest: UInt64 = 86_400_000_000_000

    /// A running look-up, and the transfers that wait for it.
    struct Search {
        var requestID: Resolver.RequestID?
        var waiting: [EngineTransfer] = []
    }

    /// Nanoseconds that a failed look-up is remembered; without this, queued transfers to the host would start one
    /// look-up after the other.
    private static let failureLifetime: UInt64 = 1_000_000_000
    /// The maximum number of names in the cache.
    private static let size = 1024

    /// Distinguishes the look-ups of this session from those of other sessions.
    let session = curlew_next_id()
    private var names: [String: ResolvedName] = [:]
    private var failures: [String: (text: String, until: UInt64)] = [:]
    var searches: [String: Search] = [:]

    func addresses(of name: String, now: UInt64) -> ResolvedName? {
        guard let known = names[name], known.until > now else { return nil }
        return known
    }

    /// Returns the addresses of the last successful look-up, unless they expired more than ten lifetimes ago.
    func lastAddresses(of name: String, now: UInt64) -> ResolvedName? {
        guard let known = names[name], now < known.until &+ 10 * NameCache.lifetime else { return nil }
        return known
    }

    /// Forgets all names; running look-ups continue.
    mutating func forget() {
        names = [:]
        failures = [:]
    }

    /// Returns the reason of a look-up that failed a moment ago.
    func failure(of name: String, now: UInt64) -> String? {
        guard let known = failures[name], known.until > now else { return nil }
        return known.text
    }

    mutating func learn(_ name: String, _ outcome: Resolver.Outcome, now: UInt64) {
        switch outcome {
        case .success(let addresses):
            if names.count >= NameCache.size { names = names.filter { $0.value.until > now } }
            if names.count >= NameCache.size { names.removeAll() }
            let lifetime = addresses.lifetime.map { min(max($0, NameCache.shortest), NameCache.longest) }
            names[name] = ResolvedName(
                addresses.endpoints, until: now &+ (lifetime ?? NameCache.lifetime), offersHTTP3: addresses.offersHTTP3)
            failures[name] = nil
        case .failure(.unknown(let text)):
            if failures.count >= NameCache.size { failures.removeAll() }
            failures[name] = (text, now &+ NameCache.failureLifetime)
        case .failure(.noThread): break
        }
    }

    /// Whether a host is a name that a name service has to look up: not an address, and not localhost (RFC 6761 §6.3).
    static func needsLookUp(_ host: String) -> Bool {
        if host.isEmpty || host.utf8.contains(UInt8(ascii: ":")) { return false }
        let label = host.utf8.split(separator: UInt8(ascii: ".")).last ?? Substring(host).utf8
        // A host whose last label is a number is not a name (RFC 3986 §3.2.2, URL Standard).
        if label.allSatisfy({ (48...57).contains($0) }) { return false }
        return host != "localhost" && !host.hasSuffix(".localhost")
    }
}
