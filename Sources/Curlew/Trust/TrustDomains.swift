// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine

/// The trust domains of one session: one for each evaluator and client identity in use.
///
/// A domain lives as long as a transfer, or the session for its own evaluator, refers to it.
final class TrustDomains: Sendable {
    /// What happens that observers of the session hear of.
    enum Report: Sendable {
        case wouldRefuse(TrustFailure)
        case identityNotReloaded(InvalidTrust)
    }

    private struct Key: Hashable {
        var evaluator: AnyHashable
        var identity: X509Identity?
    }

    private struct WeakDomain {
        weak var domain: TrustDomain?
    }

    private struct State {
        var domains: [Key: WeakDomain] = [:]
        /// The domains last used, so that a client's connections outlive the pauses between its requests.
        var recent: [TrustDomain] = []
    }

    /// That of the session's own evaluator, without an identity.
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

    /// Where a request belongs.
    ///
    /// - Parameters:
    ///   - evaluator: The request's own; nil for the session's.
    ///   - host: Whom it is for, nil without TLS, where nobody is asked who he is.
    func domain(for evaluator: (any TrustEvaluator)?, host: String?) -> TrustDomain {
        let report = report
        let identity = host.flatMap { identities.isEmpty ? nil : identities[$0] }
            .map { $0.current { report(.identityNotReloaded($0)) } }
        if evaluator == nil && identity == nil { return own }
        let evaluator = evaluator ?? ownEvaluator
        let key = Key(evaluator: AnyHashable(evaluator), identity: identity)
        if let known = known(key) { return known }
        // Outside of the lock, since evaluators are asked.
        let made = TrustDomains.makeDomain(evaluator, identity: identity, report)
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
        return domain
    }

    private func known(_ key: Key) -> TrustDomain? {
        state.withLock { state in
            // Only now, since a dictionary costs a program that has one evaluator a tenth of a millisecond at its start.
            if state.domains.isEmpty {
                state.domains[Key(evaluator: AnyHashable(ownEvaluator))] = WeakDomain(domain: own)
            }
            guard let domain = state.domains[key]?.domain else { return nil }
            // The last one used is the last to be dropped.
            if state.recent.last !== domain, let place = state.recent.firstIndex(where: { $0 === domain }) {
                state.recent.append(state.recent.remove(at: place))
            }
            return domain
        }
    }

    /// Domains that are alive.
    var count: Int {
        state.withLock { state in max(1, state.domains.values.count { $0.domain != nil }) }
    }

    private static func makeDomain(
        _ evaluator: some TrustEvaluator, identity: X509Identity?, _ report: @escaping @Sendable (Report) -> Void
    ) -> TrustDomain {
        // Kept, so that what is loaded for them stays.
        let roots = evaluator.roots
        return TrustDomain(
            wantsStaple: evaluator.wantsStaple, identity: identity,
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
                    host: facts.host, port: Int(facts.port), certificates: facts.served.map { Certificate($0) },
                    staple: facts.staple, onReport: { report(.wouldRefuse($0)) })
                return TrustDomains.refusal(of: peer, by: evaluator)
            })
    }

    /// Why a server is refused; nil to accept it.
    ///
    /// A name server is nothing that pins of an origin know: it is judged as the system does.
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
