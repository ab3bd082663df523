// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine

/// The trust domains of one session: one for each evaluator value in use.
///
/// A domain lives as long as a transfer, or the session for its own evaluator, refers to it.
final class TrustDomains: Sendable {
    private struct WeakDomain {
        weak var domain: TrustDomain?
    }

    private struct State {
        var domains: [AnyHashable: WeakDomain] = [:]
        /// The evaluators last used, so that a client's connections outlive the pauses between its requests.
        var recent: [TrustDomain] = []
    }

    /// That of the session's own evaluator.
    let own: TrustDomain
    private let ownEvaluator: any TrustEvaluator
    private let state = Lock(State())

    init(own evaluator: any TrustEvaluator) {
        ownEvaluator = evaluator
        own = TrustDomains.makeDomain(evaluator)
    }

    func domain(for evaluator: any TrustEvaluator) -> TrustDomain {
        let key = AnyHashable(evaluator)
        return state.withLock { state in
            // Only now, since a dictionary costs a program that has one evaluator a tenth of a millisecond at its start.
            if state.domains.isEmpty { state.domains[AnyHashable(ownEvaluator)] = WeakDomain(domain: own) }
            if let known = state.domains[key]?.domain { return known }
            let made = TrustDomains.makeDomain(evaluator)
            state.domains = state.domains.filter { $0.value.domain != nil }
            state.domains[key] = WeakDomain(domain: made)
            state.recent.append(made)
            if state.recent.count > 6 { state.recent.removeFirst() }
            return made
        }
    }

    static func makeDomain(_ evaluator: some TrustEvaluator) -> TrustDomain {
        let roots = evaluator.roots
        return TrustDomain(
            roots: { () throws(EngineFailure) in try store(for: roots) },
            judge: { facts in
                let peer = PeerIdentity(
                    host: facts.host, port: Int(facts.port), certificates: facts.served,
                    verifiedChain: facts.verified, chainError: facts.chainError,
                    chainErrorDepth: facts.chainErrorDepth, isHostNamed: facts.hostMatches)
                do throws(TrustFailure) {
                    try evaluator.evaluate(peer)
                    return nil
                } catch {
                    return error
                }
            })
    }

    private static func store(for roots: TrustRoots) throws(EngineFailure) -> TrustStore {
        switch roots {
        case .system: return try TrustStore.system()
        case .only(let sources): return try store(sources, system: false)
        case .systemAnd(let sources): return try store(sources, system: true)
        }
    }

    private static func store(_ sources: [[UInt8]], system: Bool) throws(EngineFailure) -> TrustStore {
        let store = try TrustStore()
        if system { try store.addSystemRoots() }
        for (number, source) in sources.enumerated() {
            try store.add(source, named: sources.count == 1 ? "the given root" : "given root \(number + 1)")
        }
        return store
    }
}
