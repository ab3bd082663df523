// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine

/// Demands of servers that another evaluator accepts a proof that their certificates were not revoked.
///
/// Nothing is fetched: lists are given, and OCSP responses come stapled to the handshake (RFC 6066 §8). The proof is about
/// the chain as verified by the evaluator's own roots; where an evaluator has none, as those have that ask others, give
/// the demand to each of these instead.
///
/// ```swift
/// let trust = try CustomRoots(file: "ca.pem").checkingRevocation(
///     lists: RevocationList.all(file: "ca.crl"), scope: .chain, staple: .ifPresent)
/// ```
public struct Revocation<Base: TrustEvaluator>: TrustEvaluator, PartlyPrepared {
    /// Which certificates the lists must speak of.
    public enum Scope: Hashable, Sendable {
        /// The server's own.
        case leaf
        /// Those of the whole chain, so that every authority in it needs a list, and the chain must end at a root that
        /// signed itself.
        case chain
    }

    /// What is made of the OCSP response that comes with the handshake.
    public enum Staple: Hashable, Sendable {
        /// Nothing; servers are not asked for one.
        case ignored
        /// One that comes must be good, and one must come if the certificate says so (RFC 7633).
        case ifPresent
        /// One must come, and be good.
        case required
    }

    /// Who must accept the server first.
    public let base: Base
    /// The lists; without any they are not asked.
    public let lists: [RevocationList]
    /// Which certificates the lists must speak of.
    public let scope: Scope
    /// What is made of OCSP responses.
    public let staple: Staple

    /// Adds demands to an evaluator.
    ///
    /// - Parameters:
    ///   - base: Who must accept the server first.
    ///   - lists: Lists of every authority whose certificates are checked. A certificate of one without a current list is
    ///     refused. None by default: no lists are asked.
    ///   - scope: Which certificates the lists must speak of; the server's own by default.
    ///   - staple: What is made of OCSP responses; they are ignored by default.
    public init(_ base: Base, lists: [RevocationList] = [], scope: Scope = .leaf, staple: Staple = .ignored) {
        self.base = base
        self.lists = lists
        self.scope = scope
        self.staple = staple
    }

    /// Those of the evaluator.
    public var roots: TrustRoots { base.roots }

    /// Whether responses are not ignored.
    public var wantsStaple: Bool { staple != .ignored || base.wantsStaple }

    /// What the evaluator allows.
    public func allowsPlainHTTP(to host: String) -> Bool { base.allowsPlainHTTP(to: host) }

    /// Prepares the evaluator.
    ///
    /// - Throws: What it throws.
    public func prepare() throws(TrustFailure) { try base.prepare() }

    var isStillToPrepare: Bool { base.isIncomplete }

    /// Asks the evaluator, then the lists, then the OCSP response.
    ///
    /// - Throws: What the evaluator throws, or `TrustFailure` with rule `.revocation`.
    public func evaluate(_ peer: PeerIdentity) throws(TrustFailure) {
        // Whoever asked, and for whatever roots.
        let peer = peer.verified(by: roots)
        // Before the evaluator asks for a verdict: one with lists does for both.
        let listed = lists.isEmpty ? nil : try listVerdict(peer)
        if let listed, listed.error == nil { peer.assume(listed) }
        try base.evaluate(peer)
        guard !lists.isEmpty || staple != .ignored else { return }
        guard !peer.verifiedChain.isEmpty else {
            throw TrustFailure(
                .revocation, "nothing can be proved of a chain that is not valid: \(peer.chainError ?? "it is empty")",
                hint: "An evaluator that asks others has no chain; give the demand to each of them.",
                certificate: peer.certificates.first)
        }
        if let listed { try check(listed) }
        try checkStaple(peer)
    }

    /// What OpenSSL says of the chain and the lists together; of no roots there is nothing to say.
    private func listVerdict(_ peer: PeerIdentity) throws(TrustFailure) -> TrustStore.Verdict? {
        if roots.areNobody { return nil }
        return try peer.verdict(of: roots, lists: lists.map(\.list), checksChain: scope == .chain)
    }

    private func check(_ verdict: TrustStore.Verdict) throws(TrustFailure) {
        guard let error = verdict.error else { return }
        let hint: String? =
            switch verdict.kind {
            case .noList: "Give a list of every authority whose certificates are checked."
            case .staleList: "Give the authority's current list."
            default: nil
            }
        throw TrustFailure(
            .revocation, "\(error) (certificate \(verdict.depth) of the chain)", hint: hint,
            certificate: verdict.offender.map { Certificate($0) })
    }

    private func checkStaple(_ peer: PeerIdentity) throws(TrustFailure) {
        guard staple != .ignored else { return }
        guard let response = peer.staple else {
            if staple == .ifPresent, peer.certificates.first?.x509.mustStaple != true { return }
            throw refused("the server sent no OCSP response", peer, hint: "Let the server staple one, or demand less.")
        }
        let chain = peer.verifiedChain.map(\.x509)
        switch try roots.store().read(staple: response, chain: chain, now: peer.seconds) {
        case .good: return
        case .revoked: throw refused("the OCSP response says that the certificate was revoked", peer)
        case .unknown: throw refused("the OCSP response does not know the certificate", peer)
        case .unsuccessful: throw refused("the OCSP response is an error of the responder", peer)
        case .malformed: throw refused("the OCSP response cannot be read", peer)
        case .forged: throw refused("the OCSP response is not signed by the issuer or for it", peer)
        case .stale: throw refused("the OCSP response is not current", peer)
        case .noIssuer: throw refused("the chain has no issuer that could sign an OCSP response", peer)
        case .other: throw refused("the OCSP response is about another certificate", peer)
        }
    }

    private func refused(_ message: String, _ peer: PeerIdentity, hint: String? = nil) -> TrustFailure {
        TrustFailure(.revocation, message, hint: hint, certificate: peer.certificates.first)
    }
}

/// What pins remains pinned.
extension Revocation: PinningTrust where Base: PinningTrust {}

extension TrustEvaluator {
    /// The evaluator with the demand of a proof that certificates were not revoked; see ``Revocation``.
    ///
    /// - Parameters:
    ///   - lists: Lists of every authority whose certificates are checked; none by default: no lists are asked.
    ///   - scope: Which certificates the lists must speak of; the server's own by default.
    ///   - staple: What is made of OCSP responses; they are ignored by default.
    public func checkingRevocation(
        lists: [RevocationList] = [], scope: Revocation<Self>.Scope = .leaf,
        staple: Revocation<Self>.Staple = .ignored
    ) -> Revocation<Self> {
        Revocation(self, lists: lists, scope: scope, staple: staple)
    }
}
