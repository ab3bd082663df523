// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

// Selects the multi handle of libcurl that runs a transfer. A trust domain starts with one and gets more as its
// transfers increase: libcurl 7.88 searches all connections to a host when it needs one, so the cost of many transfers
// in one multi handle grows with their square.
extension CurlTransport {
    /// Transfers per multi handle before another one is made, and the maximum of multi handles per trust domain.
    static let transfersPerDomain = 16
    static let domainsPerTrust = 16

    /// Returns the domain with an idle connection for the transfer, or the one with the fewest transfers.
    ///
    /// Transfers that share connections, or may do so, all use the first domain.
    /// - Returns: The domain, and whether it is known to have no idle connection for the transfer.
    func domain(for transfer: EngineTransfer, at origin: Origin) -> (domain: CurlDomain, isWithoutIdle: Bool)? {
        let trust = transfer.plan.trust
        guard let live = trust.live, let first = live.domains.first else {
            return make(for: trust).map { ($0, spreads(origin)) }
        }
        guard spreads(origin) else { return (first, false) }
        if origin.idleConnections(in: first.number) > 0 { return (first, false) }
        var least = first
        for index in live.domains.indices.dropFirst() {
            let domain = live.domains[index]
            if origin.idleConnections(in: domain.number) > 0 { return (domain, false) }
            if domain.active < least.active { least = domain }
        }
        if least.active >= CurlTransport.transfersPerDomain, live.domains.count < CurlTransport.domainsPerTrust,
            let made = make(for: trust)
        {
            return (made, true)
        }
        return (least, true)
    }

    /// Whether each transfer of an origin has its own connection, and all of these connections are known.
    private func spreads(_ origin: Origin) -> Bool {
        if origin.isShared { return false }
        switch limits.version {
        case .http1Only: return true
        case .automatic, .http3: return !origin.isSecure || origin.isKnown
        case .http2PriorKnowledge: return false
        }
    }

    private func make(for trust: TrustDomain) -> CurlDomain? {
        guard let live = trust.live ?? LiveTrust(for: trust, now: now) else { return nil }
        let number = domains.firstIndex { $0 == nil } ?? domains.count
        guard let made = CurlDomain(UInt32(number), of: live, trust: trust, transport: self) else { return nil }
        if number == domains.count { domains.append(made) } else { domains[number] = made }
        if trust.live == nil {
            trust.live = live
            retireUnusedTrusts()
        }
        live.domains.append(made)
        return made
    }

    /// Retires trust domains without transfers, except the six used last: clients often return after a while.
    private func retireUnusedTrusts() {
        var spare: [(live: LiveTrust, lastUsed: UInt64)] = []
        for case let domain? in domains where !spare.contains(where: { $0.live === domain.live }) {
            let all = domain.live.domains
            if all.isEmpty || all.contains(where: { $0.active > 0 }) { continue }
            spare.append((domain.live, all.map(\.lastUsed).max() ?? 0))
        }
        spare.sort { $0.lastUsed < $1.lastUsed }
        for (live, _) in spare.prefix(max(0, spare.count - 6)) { for domain in live.domains { retire(domain) } }
    }

    /// Domains without transfers, least recently used first.
    private var unusedDomains: [CurlDomain] {
        domains.compactMap { $0 }.filter { $0.active == 0 }.sorted { $0.lastUsed < $1.lastUsed }
    }

    func retire(_ domain: CurlDomain) {
        domain.isRetired = true
        domain.live.domains.removeAll { $0 === domain }
        if domain.live.domains.isEmpty, domain.trust.live === domain.live { domain.trust.live = nil }
        freeIfUnused(domain)
    }

    /// Frees a retired domain after its last transfer.
    func freeIfUnused(_ domain: CurlDomain) {
        if domain.isRetired && domain.active == 0 { domains[Int(domain.number)] = nil }
    }

    /// Closes idle connections, also of other domains, if a new socket to `origin` would exceed a limit.
    ///
    /// libcurl counts only the connections of one domain.
    func closeExcessIdle(for origin: Origin, in domain: CurlDomain) {
        if origin.sockets >= limits.connectionsPerHost { sockets.closeOldestIdle { $0 === origin } }
        guard sockets.open >= limits.connections else { return }
        if let spare = unusedDomains.first(where: { $0 !== domain }) { retire(spare) }
        if sockets.open >= limits.connections { sockets.closeOldestIdle { _ in true } }
    }
}
