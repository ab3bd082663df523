// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewShims
internal import CurlewSupport

/// The state of a trust domain while it is in use: its multi handles and the TLS sessions of all of them.
final class LiveTrust {
    var sessions: TLSShares
    #if !DEBUG
    @exclusivity(unchecked)
    #endif
    var domains: [CurlDomain] = []

    init?(for trust: TrustDomain, now: UInt64) {
        guard let sessions = TLSShares(lifetime: trust.sessionLifetime, now: now) else { return nil }
        self.sessions = sessions
    }
}

/// One of libcurl's multi handles for a trust domain: its connections and its pool of handles.
final class CurlDomain {
    let multi: UnsafeMutableRawPointer
    let live: LiveTrust
    /// Identifies this domain in epoll tokens.
    let number: UInt32
    /// Safe because the transport owns its domains.
    unowned(unsafe) let transport: CurlTransport
    let sockets: SocketTable
    let trust: TrustDomain
    /// The time at which libcurl has to be called without a socket event, on the monotonic clock.
    var deadline = Monotonic.never
    #if !DEBUG
    @exclusivity(unchecked)
    #endif
    var active = 0
    /// The time at which a transfer last started in this domain, on the monotonic clock.
    var lastUsed: UInt64 = 0
    /// The domain accepts no new transfers, and is freed when the last one ends.
    var isRetired = false
    #if !DEBUG
    @exclusivity(unchecked)
    #endif
    private var idle: [EasyHandle] = []
    private let mostIdle: Int
    /// The addresses that were given to libcurl's own cache, and the times at which they were given.
    private var givenAddresses: [ObjectIdentifier: (origin: Origin, name: ResolvedName, at: UInt64)] = [:]

    init?(_ number: UInt32, of live: LiveTrust, trust: TrustDomain, transport: CurlTransport) {
        guard let multi = curl_multi_init() else { return nil }
        self.multi = multi
        self.live = live
        self.number = number
        self.trust = trust
        self.transport = transport
        sockets = transport.sockets
        let most = transport.limits.transfersPerHost / CurlTransport.domainsPerTrust
        mostIdle = max(2 * CurlTransport.transfersPerDomain, most)
        curlew_close_wakeup_on_exec(multi)
        let configuration = transport.limits
        setEngineCallbacks(on: self)
        _ = curlew_multi_set_long(multi, CURLMOPT_MAX_HOST_CONNECTIONS, configuration.connectionsPerHost)
        _ = curlew_multi_set_long(multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, configuration.connections)
        let streams = min(configuration.streamsPerConnection, 1 << 20)
        _ = curlew_multi_set_long(multi, CURLMOPT_MAX_CONCURRENT_STREAMS, streams)
        // A cache smaller than the number of connections in use would close them after every request.
        _ = curlew_multi_set_long(multi, CURLMOPT_MAXCONNECTS, configuration.connections)
    }

    deinit {
        idle = []
        curl_multi_cleanup(multi)
    }

    /// Records that libcurl is about to get these addresses; returns false if it already has them.
    func recordGivenAddresses(_ name: ResolvedName, _ origin: Origin, now: UInt64) -> Bool {
        if let last = givenAddresses[ObjectIdentifier(origin)], last.name === name, now &- last.at < NameCache.lifetime
        {
            return false
        }
        if givenAddresses.count >= 1024 { givenAddresses.removeAll() }
        givenAddresses[ObjectIdentifier(origin)] = (origin, name, now)
        return true
    }

    /// Forgets that libcurl was given addresses, because libcurl reads the addresses of a handle only when its transfer
    /// begins.
    func forgetGivenAddresses(_ origin: Origin) { givenAddresses[ObjectIdentifier(origin)] = nil }

    func takeHandle() -> EasyHandle? { idle.popLast() ?? EasyHandle(domain: self) }

    func recycle(_ handle: EasyHandle) {
        handle.transfer = nil
        handle.judge = nil
        handle.proxyJudge = nil
        handle.endpoint = nil
        handle.head.clear()
        handle.forgetAddresses()
        // libcurl 7.88 counts the retries of a handle over its whole life, and fails the retry after the fifth.
        if handle.hasRetried { return }
        // libcurl does not report an offer of Digest a second time.
        if handle.isRefusedByProxy { return }
        if idle.count < mostIdle { idle.append(handle) }
    }

    /// Calls libcurl if its timer is due; a call may set the timer to now again.
    func fireIfDue(now: UInt64) {
        var rounds = 0
        while deadline <= now && rounds < 4 {
            deadline = Monotonic.never
            var running: CInt = 0
            curl_multi_socket_action(multi, CURL_SOCKET_TIMEOUT, 0, &running)
            rounds += 1
        }
    }
}
