// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine

/// Requires proof that the certificates of servers accepted by another evaluator were not revoked.
///
/// Nothing is fetched: the caller provides the lists, and OCSP responses arrive stapled in the handshake (RFC 6066 §8).
/// The proof is about the chain as verified by the evaluator's own roots. A composite evaluator has no roots; add the
/// requirement to each of its nested evaluators instead.
///
/// ```swift
/// let trust = try CustomRoots(file: "ca.pem").checkingRevocation(
///     lists: Certificate.RevocationList.all(file: "ca.crl"), scope: .chain, ocspResponse: .ifPresent)
/// ```
public struct Revocation<Base: TrustEvaluator>: TrustEvaluator, PartiallyPrepared {
    /// The certificates that the lists must cover.
    public enum Scope: Hashable, Sendable {
        /// The server's own certificate.
        case leaf
        /// The certificates of the whole chain: every authority in it needs a list, and the chain must end at a
        /// self-signed root.
        case chain
    }

    /// The treatment of OCSP responses in the handshake.
    public enum OCSPResponsePolicy: Hashable, Sendable {
        /// The client does not request a response.
        case ignored
        /// A response must be good if the server sends one; it is required if the certificate demands it (RFC 7633).
        case ifPresent
        /// The server must send a good response.
        case required
    }

    /// The evaluator that must accept the server first.
    public let base: Base
    /// The lists; if empty, no lists are checked.
    public let lists: [Certificate.RevocationList]
    /// The certificates that the lists must cover.
    public let scope: Scope
    /// The treatment of OCSP responses.
    public let ocspResponse: OCSPResponsePolicy

    /// Adds revocation checks to an evaluator.
    ///
    /// - Parameters:
    ///   - base: The evaluator that must accept the server first.
    ///   - lists: Lists of every authority whose certificates are checked. A certificate of an authority without a
    ///     current list is refused. Empty by default: no lists are checked.
    ///   - scope: The certificates that the lists must cover; the server's own by default.
    ///   - ocspResponse: The treatment of OCSP responses; they are ignored by default.
    public init(
        _ base: Base, lists: [Certificate.RevocationList] = [], scope: Scope = .leaf,
        ocspResponse: OCSPResponsePolicy = .ignored
    ) {
        self.base = base
        self.lists = lists
        self.scope = scope
        self.ocspResponse = ocspResponse
    }

    /// The roots of the base evaluator.
    public var roots: TrustRoots { base.roots }

    /// Whether OCSP responses are checked here or requested by the base evaluator.
    public var wantsOCSPResponse: Bool { ocspResponse != .ignored || base.wantsOCSPResponse }

    /// Returns whether the base evaluator allows plain HTTP to the host.
    public func allowsPlainHTTP(to host: String) -> Bool { base.allowsPlainHTTP(to: host) }

    /// Prepares the base evaluator.
    ///
    /// - Throws: The error of the base evaluator.
    public func prepare() throws(TrustFailure) { try base.prepare() }

    var hasUnpreparedEvaluators: Bool { base.isIncomplete }

    /// Runs the base evaluator, then checks the lists, then the OCSP response.
    ///
    /// - Throws: The error of the base evaluator, or `TrustFailure` with rule `.revocation`.
    public func evaluate(_ peer: PeerIdentity) throws(TrustFailure) {
        // The peer may come from an evaluator with other roots.
        let peer = peer.verified(by: roots)
        // Verify with the lists before the base evaluator runs: it can reuse that verdict.
        let listed = lists.isEmpty ? nil : try listVerdict(peer)
        if let listed, listed.error == nil { peer.storeVerdict(listed) }
        try base.evaluate(peer)
        guard !lists.isEmpty || ocspResponse != .ignored else { return }
        guard !peer.verifiedChain.isEmpty else {
            throw TrustFailure(
                .revocation,
                "revocation cannot be checked for an invalid chain: \(peer.chainError ?? "it is empty")",
                hint: "A composite evaluator has no chain; add the revocation check to each nested evaluator.",
                certificate: peer.certificates.first)
        }
        if let listed { try check(listed) }
        try checkOCSPResponse(peer)
    }

    /// Returns OpenSSL's verdict on the chain and the lists together; nil if there are no roots.
    private func listVerdict(_ peer: PeerIdentity) throws(TrustFailure) -> TrustStore.Verdict? {
        if roots.areEmpty { return nil }
        return try peer.verdict(of: roots, lists: lists.map(\.list), checksChain: scope == .chain)
    }

    private func check(_ verdict: TrustStore.Verdict) throws(TrustFailure) {
        guard let error = verdict.error else { return }
        let hint: String? =
            switch verdict.kind {
            case .noList: "Pass a list of every authority whose certificates are checked."
            case .staleList: "Pass the authority's current list."
            default: nil
            }
        throw TrustFailure(
            .revocation, "\(error) (certificate \(verdict.depth) of the chain)", hint: hint,
            certificate: verdict.rejectedCertificate.map { Certificate($0) })
    }

    private func checkOCSPResponse(_ peer: PeerIdentity) throws(TrustFailure) {
        guard ocspResponse != .ignored else { return }
        guard let response = peer.ocspResponse else {
            if ocspResponse == .ifPresent, peer.certificates.first?.x509.mustStaple != true { return }
            throw refused(
                "the server sent no OCSP response", peer,
                hint: "Enable OCSP stapling on the server, or require less with the parameter ocspResponse.")
        }
        let chain = peer.verifiedChain.map(\.x509)
        switch try roots.store().read(ocspResponse: response, chain: chain, now: peer.seconds) {
        case .good: return
        case .revoked: throw refused("the OCSP response says that the certificate was revoked", peer)
        case .unknown: throw refused("the OCSP response does not know the certificate", peer)
        case .unsuccessful: throw refused("the OCSP response is an error of the responder", peer)
        case .malformed: throw refused("the OCSP response cannot be read", peer)
        case .forged: throw refused("the OCSP response is not signed by the issuer or a delegate of it", peer)
        case .stale: throw refused("the OCSP response is not current", peer)
        case .noIssuer: throw refused("the chain has no issuer that could sign an OCSP response", peer)
        case .other: throw refused("the OCSP response is about another certificate", peer)
        }
    }

    private func refused(_ message: String, _ peer: PeerIdentity, hint: String? = nil) -> TrustFailure {
        TrustFailure(.revocation, message, hint: hint, certificate: peer.certificates.first)
    }
}

/// Adding revocation checks to a pinning evaluator keeps it a pinning evaluator.
extension Revocation: PinningTrust where Base: PinningTrust {}

extension TrustEvaluator {
    /// Returns this evaluator with additional revocation checks; see ``Revocation``.
    ///
    /// - Parameters:
    ///   - lists: Lists of every authority whose certificates are checked; empty by default: no lists are checked.
    ///   - scope: The certificates that the lists must cover; the server's own by default.
    ///   - ocspResponse: The treatment of OCSP responses; they are ignored by default.
    public func checkingRevocation(
        lists: [Certificate.RevocationList] = [], scope: Revocation<Self>.Scope = .leaf,
        ocspResponse: Revocation<Self>.OCSPResponsePolicy = .ignored
    ) -> Revocation<Self> {
        Revocation(self, lists: lists, scope: scope, ocspResponse: ocspResponse)
    }
}
