// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import CurlewSupport

/// The trust domains of one session: one domain for each combination of evaluator, client identity and route in use.
///
/// A domain lives as long as a transfer, or the session for its own evaluator, refers to it.
final class TrustDomains: Sendable {
    /// An event for the observers of the session.
    enum Report: Sendable {
        case wouldRefuse(TrustFailure)
        case identityNotReloaded(TrustFailure.InvalidPolicy)
    }

    private struct Key: Hashable {
        var evaluator: AnyHashable
        var identity: X509Identity?
        var route: ObjectIdentifier?
    }

    private struct WeakDomain {
        weak var domain: TrustDomain?
    }

    private struct State {
        var domains: [Key: WeakDomain] = [:]
        /// The most recently used domains, kept so that a client's connections survive pauses between its requests.
        var recent: [TrustDomain] = []
        /// The last domain for the session's own evaluator with a route and without a client identity.
        ///
        /// Most sessions with a proxy use no other domain. The key of a domain is slow to hash.
        var lastRouted: TrustDomain?
    }

    /// The domain of the session's own evaluator without a client identity.
    let own: TrustDomain
    private let ownEvaluator: any TrustEvaluator
    private let identities: ClientIdentities
    private let report: @Sendable (Report) -> Void
    private let state = Lock(State())

    init(
        own evaluator: any TrustEvaluator, identities: ClientIdentities = .none,
        report: @escaping @Sendable (Report) -> Void = { _ in }
    ) {
        ownEvaluator = evaluator
        self.identities = identities
        self.report = report
        own = TrustDomains.makeDomain(evaluator, identity: nil, report)
    }

    /// Returns the domain for a request.
    ///
    /// - Parameters:
    ///   - evaluator: The evaluator of the request; nil for the session's.
    ///   - host: The host of the request; nil without TLS, where no client certificate is used.
    ///   - route: The route of the request; nil for the direct one.
    func domain(for evaluator: (any TrustEvaluator)?, host: String?, route: Route? = nil) -> TrustDomain {
        let report = report
        let identity = host.flatMap { identities.isEmpty ? nil : identities[$0] }
            .map { $0.current { report(.identityNotReloaded($0)) } }
        let isOwn = evaluator == nil && identity == nil
        if isOwn {
            guard let route else { return own }
            if let last = state.withLock({ $0.lastRouted }), last.route === route { return last }
        }
        let evaluator = evaluator ?? ownEvaluator
        // A domain keeps its route, so no other route gets the same identifier while the domain lives.
        let key = Key(
            evaluator: AnyHashable(evaluator), identity: identity, route: route.map { ObjectIdentifier($0) })
        if let known = known(key) {
            if isOwn { keep(known) }
            return known
        }
        // Create the domain outside of the lock, since that calls code of the evaluator.
        let made = TrustDomains.makeDomain(evaluator, identity: identity, route: route, report)
        var dropped: TrustDomain?
        let domain = state.withLock { state in
            if let known = state.domains[key]?.domain { return known }
            state.domains = state.domains.filter { $0.value.domain != nil }
            state.domains[key] = WeakDomain(domain: made)
            state.recent.append(made)
            if state.recent.count > 6 { dropped = state.recent.removeFirst() }
            return made
        }
        withExtendedLifetime(dropped) {}
        if isOwn { keep(domain) }
        return domain
    }

    /// Stores the last domain with a route.
    private func keep(_ domain: TrustDomain) {
        let last = state.withLock { state in
            defer { state.lastRouted = domain }
            return state.lastRouted
        }
        // The previous domain is freed outside of the lock.
        withExtendedLifetime(last) {}
    }

    /// Creates the domain with the evaluator and the identity of an https proxy, for a route that keeps it.
    static func proxyDomain(_ proxy: Proxy, report: @escaping @Sendable (Report) -> Void) -> TrustDomain {
        let identity = proxy.identity?.current { report(.identityNotReloaded($0)) }
        return makeDomain(proxy.trust, identity: identity, report)
    }

    private func known(_ key: Key) -> TrustDomain? {
        state.withLock { state in
            // Fill the dictionary lazily: it costs a tenth of a millisecond, which a program with one evaluator saves.
            if state.domains.isEmpty {
                state.domains[Key(evaluator: AnyHashable(ownEvaluator))] = WeakDomain(domain: own)
            }
            guard let domain = state.domains[key]?.domain else { return nil }
            // Move the domain to the end: the least recently used domain is dropped first.
            if state.recent.last !== domain, let place = state.recent.firstIndex(where: { $0 === domain }) {
                state.recent.append(state.recent.remove(at: place))
            }
            return domain
        }
    }

    /// The number of domains that are alive.
    var count: Int {
        state.withLock { state in max(1, state.domains.values.count { $0.domain != nil }) }
    }

    private static func makeDomain(
        _ evaluator: some TrustEvaluator, identity: X509Identity?, route: Route? = nil,
        _ report: @escaping @Sendable (Report) -> Void
    ) -> TrustDomain {
        // The closure retains the roots, so that they stay loaded.
        let roots = evaluator.roots
        return TrustDomain(
            wantsOCSPResponse: evaluator.wantsOCSPResponse, identity: identity, route: route,
            prepare: { () throws(EngineFailure) in
                do throws(TrustFailure) {
                    try withExtendedLifetime(roots) { () throws(TrustFailure) in try evaluator.prepare() }
                } catch {
                    throw EngineFailure(.untrusted(error), phase: .securing)
                }
                return !evaluator.isIncomplete
            },
            judge: { facts in
                let peer = PeerIdentity(
                    host: facts.host, port: Int(facts.port), kind: facts.isProxy ? .proxy : .origin,
                    certificates: facts.served.map { Certificate($0) },
                    ocspResponse: facts.ocspResponse, onReport: { report(.wouldRefuse($0)) })
                return TrustDomains.refusal(of: peer, by: evaluator)
            })
    }

    /// Returns the failure if a server is refused; nil to accept it.
    ///
    /// Pins of an origin do not apply to a DNS server, so `SystemTrust` evaluates it.
    static func refusal(of peer: PeerIdentity, by evaluator: some TrustEvaluator) -> TrustFailure? {
        do throws(TrustFailure) {
            if peer.kind == .resolver {
                try SystemTrust().judge(peer)
            } else {
                try evaluator.judge(peer)
            }
            return nil
        } catch {
            return error.about(peer)
        }
    }
}
