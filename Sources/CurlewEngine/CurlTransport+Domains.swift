// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

// Which of libcurl's multi handles runs a transfer. A trust domain has one, and more of them as its transfers become
// many: libcurl 7.88 looks at every connection to a host when it wants one, so that many in one place cost their square.
extension CurlTransport {
    /// How many transfers a multi handle has before the next one is made, and how many there may be for one trust.
    static let transfersPerDomain = 16
    static let domainsPerTrust = 16

    /// Where a transfer finds an idle connection, or has the fewest neighbours.
    ///
    /// Those that share connections, or may, are all in one place.
    /// - Returns: The domain, and whether it is known to have no idle connection for the transfer.
    func domain(for transfer: EngineTransfer, at origin: Origin) -> (domain: CurlDomain, isWithoutIdle: Bool)? {
        let trust = transfer.plan.trust
        guard let live = trust.live, let first = live.domains.first else {
            return make(for: trust).map { ($0, spreads(origin)) }
        }
        guard spreads(origin) else { return (first, false) }
        var least = first
        for domain in live.domains {
            if origin.spare(in: domain.number) > 0 { return (domain, false) }
            if domain.active < least.active { least = domain }
        }
        if least.active >= CurlTransport.transfersPerDomain, live.domains.count < CurlTransport.domainsPerTrust,
            let made = make(for: trust)
        {
            return (made, true)
        }
        return (least, true)
    }

    /// Whether each of an origin's transfers has a connection of its own, of which all are known.
    private func spreads(_ origin: Origin) -> Bool {
        if origin.isShared { return false }
        switch limits.version {
        case .http1Only: return true
        case .automatic: return !origin.isSecure || origin.isKnown
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
            retireSpareTrusts()
        }
        live.domains.append(made)
        return made
    }

    /// Trusts that nobody uses are kept for a while, since clients come back, but only a few of them.
    private func retireSpareTrusts() {
        var spare: [(live: LiveTrust, lastUsed: UInt64)] = []
        for case let domain? in domains where !spare.contains(where: { $0.live === domain.live }) {
            let all = domain.live.domains
            if all.isEmpty || all.contains(where: { $0.active > 0 }) { continue }
            spare.append((domain.live, all.map(\.lastUsed).max() ?? 0))
        }
        spare.sort { $0.lastUsed < $1.lastUsed }
        for (live, _) in spare.prefix(max(0, spare.count - 6)) { for domain in live.domains { retire(domain) } }
    }

    /// Domains without transfers, the one that was used longest ago first.
    private var spareDomains: [CurlDomain] {
        domains.compactMap { $0 }.filter { $0.active == 0 }.sorted { $0.lastUsed < $1.lastUsed }
    }

    func retire(_ domain: CurlDomain) {
        domain.isRetired = true
        domain.live.domains.removeAll { $0 === domain }
        if domain.live.domains.isEmpty, domain.trust.live === domain.live { domain.trust.live = nil }
        dropIfDone(domain)
    }

    /// Frees a retired domain after its last transfer.
    func dropIfDone(_ domain: CurlDomain) {
        if domain.isRetired && domain.active == 0 { domains[Int(domain.number)] = nil }
    }

    /// Makes room for a socket to `origin` where idle ones of other domains would put it over a limit.
    ///
    /// libcurl minds each domain's own connections only.
    func makeRoom(for origin: Origin, in domain: CurlDomain) {
        if origin.sockets >= limits.connectionsPerHost { sockets.buryOldestIdle { $0 === origin } }
        guard sockets.open >= limits.connections else { return }
        if let spare = spareDomains.first(where: { $0 !== domain }) { retire(spare) }
        if sockets.open >= limits.connections { sockets.buryOldestIdle { _ in true } }
    }
}
