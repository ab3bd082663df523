// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
public import FoundationEssentials

/// A server as its TLS handshake shows it: certificates and what OpenSSL says of them.
public struct PeerIdentity: Sendable {
    /// What a server is to us.
    public enum Kind: Hashable, Sendable {
        /// The server that the request is for.
        case origin
        /// A proxy on the way there.
        case proxy
        /// A name server that is asked over https.
        case resolver
    }

    /// The host that is to be reached, an A-label in lower case or an IP address.
    public let host: String
    /// Its port.
    public let port: Int
    /// What the server is to us.
    public let kind: Kind
    /// The certificates as the server sent them, its own first.
    public let certificates: [Certificate]
    /// The OCSP response that came with the handshake (RFC 6066 §8); nil without one, or when it was not asked for.
    public let staple: [UInt8]?
    /// The time of the judgement.
    public let now: Date

    private let verdicts: Verdicts
    /// Where the chain may end; nil when nobody has asked for a verdict.
    private let roots: TrustRoots?
    /// What changes in the verdict, on top of the evaluator's roots.
    private var rules: ChainRules = []
    private let reporter: (@Sendable (TrustFailure) -> Void)?

    /// Makes an identity, as an evaluator is shown it or a test of one needs it; nothing is verified yet.
    ///
    /// - Parameters:
    ///   - host: The host that is to be reached.
    ///   - port: Its port, 443 by default.
    ///   - kind: What the server is to us; the origin by default.
    ///   - certificates: The certificates as served, the server's own first.
    ///   - staple: An OCSP response in DER; none by default.
    ///   - now: The time of the judgement; the current one by default.
    ///   - onReport: Hears what ``report(_:)`` is told; nobody by default.
    public init(
        host: String, port: Int = 443, kind: Kind = .origin, certificates: [Certificate], staple: [UInt8]? = nil,
        now: Date = Date(), onReport: (@Sendable (TrustFailure) -> Void)? = nil
    ) {
        self.host = host
        self.port = port
        self.kind = kind
        self.certificates = certificates
        self.staple = staple
        self.now = now
        reporter = onReport
        verdicts = Verdicts()
        roots = nil
    }

    /// The certificates from the server's own to the root, as verified; empty when ``chainError`` says why not.
    public var verifiedChain: [Certificate] { verdict.chain.map { Certificate($0) } }
    /// OpenSSL's reason to reject the chain, nil when it is valid up to one of the evaluator's roots.
    public var chainError: String? { verdict.error }
    /// Which certificate ``chainError`` is about, 0 for the server's own.
    public var chainErrorDepth: Int { verdict.depth }
    /// Whether the server's certificate names the host (RFC 9525 §6), and no authority of ``verifiedChain`` has name
    /// constraints against it (RFC 5280 §4.2.1.10); see ``Certificate/isNamed(_:)``.
    public var isHostNamed: Bool { isLeafNamed && broadWildcard == nil && objection == nil }

    /// The public suffix right below which a wildcard names the host, where the rules are strict.
    private var broadWildcard: Substring? {
        guard rules.contains(.strict), let leaf = certificates.first?.x509, !leaf.isFor(host, byWildcards: false),
            let dot = host.firstIndex(of: ".")
        else { return nil }
        let rest = host[host.index(after: dot)...]
        let domain = rest.hasSuffix(".") ? rest.dropLast() : rest
        return PublicSuffixes.system.contains(domain.lowercased()) ? domain : nil
    }

    private var isLeafNamed: Bool { certificates.first?.isNamed(host) == true }

    /// The first authority of the verified chain whose name constraints are against the host.
    ///
    /// OpenSSL holds them against the names in the certificate, so that a wildcard passes that covers an excluded host. The
    /// path of a certificate that is a root itself ends with it: no authority vouches for it.
    private var objection: (authority: X509Certificate, constraint: X509Certificate.Constraint)? {
        let verdict = verdict
        for authority in verdict.chain.dropFirst() where !verdict.isAnchor {
            let constraint = authority.constraint(on: host)
            if constraint != .met { return (authority, constraint) }
        }
        return nil
    }

    /// Whether the chain leads to none of the evaluator's roots, whatever else may be wrong with it.
    var isUnanchored: Bool { verdict.kind == .unanchored }

    /// The same server, its chain verified by other roots (RFC 5280 §6).
    ///
    /// The server's certificate must be for TLS servers; every key and signature must have a security of 112 bits. Roots
    /// other than the evaluator's own are to be loaded in `prepare`, or the handshake waits for them.
    /// - Parameter roots: Where the chain may end.
    /// - Returns: The identity with that verdict, which is made when it is first asked for, and once for each roots.
    public func verified(by roots: TrustRoots) -> PeerIdentity { PeerIdentity(self, roots) }

    /// The same server, judged by more rules.
    func applying(_ rules: ChainRules) -> PeerIdentity {
        var peer = self
        peer.rules.formUnion(rules)
        return peer
    }

    /// Accepts a server whose chain is valid and whose certificate names the host.
    ///
    /// - Throws: `TrustFailure` with rule `.chain`, `.validity`, `.hostName`, or `.roots` when there are none.
    public func requireValid() throws(TrustFailure) {
        try requireValidChain()
        try requireHostName()
    }

    /// Accepts a server whose chain is valid up to one of the evaluator's roots, whatever host it is for.
    ///
    /// - Throws: `TrustFailure` with rule `.chain` or `.validity`, or `.roots` when there are none.
    public func requireValidChain() throws(TrustFailure) {
        let verdict = verdict
        guard let error = verdict.error else { return }
        if verdict.kind == .noRoots { throw TrustFailure(.roots, error, hint: TrustRoots.hint) }
        let place = verdict.depth == 0 ? "the server's certificate" : "certificate \(verdict.depth) of the chain"
        throw TrustFailure(
            verdict.kind == .validity ? .validity : .chain, "\(error) (\(place))", hint: verdict.hint,
            certificate: verdict.offender.map { Certificate($0) } ?? certificates.first)
    }

    /// Accepts a server whose certificate names the host (RFC 9525 §6), unless an authority of the verified chain has name
    /// constraints against it (RFC 5280 §4.2.1.10).
    ///
    /// - Throws: `TrustFailure` with rule `.hostName`.
    public func requireHostName() throws(TrustFailure) {
        guard !isLeafNamed else { return try requireNoObjection() }
        // A certificate that nobody has verified may have tens of thousands.
        let names = certificates.first?.hostNames ?? []
        let text = names.isEmpty ? "no host" : names.prefix(8).joined(separator: ", ") + (names.count > 8 ? ", …" : "")
        throw TrustFailure(
            .hostName, "the certificate is for \(text.escapingControls), not for \(host)",
            certificate: certificates.first)
    }

    private func requireNoObjection() throws(TrustFailure) {
        if let broadWildcard {
            throw TrustFailure(
                .hostName, "a wildcard right below the public suffix \(broadWildcard) does not count",
                certificate: certificates.first)
        }
        guard let objection else { return }
        let words =
            switch objection.constraint {
            case .excludes: "exclude \(host)"
            case .unreadable: "cannot be read"
            case .permitsOthers, .met: "do not permit \(host)"
            }
        let authority = Certificate(objection.authority)
        throw TrustFailure(
            .hostName, "the name constraints of \(authority.subject.escapingControls) \(words)", certificate: authority)
    }

    /// Accepts a server whose own certificate is valid now, whoever signed it.
    ///
    /// - Throws: `TrustFailure` with rule `.validity`.
    public func requireCurrentLeaf() throws(TrustFailure) {
        guard let leaf = certificates.first else { throw TrustFailure(.chain, "the server sent no certificate") }
        guard !leaf.isValid(at: now) else { return }
        let text = now < leaf.notBefore ? "certificate is not yet valid" : "certificate has expired"
        throw TrustFailure(.validity, "\(text) (the server's certificate)", certificate: leaf)
    }

    /// Tells the session's observers what would have been refused (`SessionEvent.trustReport`), without refusing it.
    public func report(_ failure: TrustFailure) { reporter?(failure.about(self)) }

    /// What OpenSSL says of the chain, when somebody wants to know.
    private var verdict: TrustStore.Verdict {
        guard let roots else { return TrustStore.Verdict(error: "the chain was not verified") }
        if roots.areNobody { return TrustStore.Verdict(error: "there are no roots to verify it by") }
        return verdicts.verdict(by: roots, rules) { verify(by: roots) }
    }

    /// Spares the verification by the same roots: this one asked for more.
    func assume(_ verdict: TrustStore.Verdict) {
        if let roots { _ = verdicts.verdict(by: roots, rules) { verdict } }
    }

    private init(_ peer: PeerIdentity, _ roots: TrustRoots) {
        (host, port, kind, certificates) = (peer.host, peer.port, peer.kind, peer.certificates)
        (staple, now, verdicts, reporter) = (peer.staple, peer.now, peer.verdicts, peer.reporter)
        self.roots = roots
        rules = peer.rules
    }

    private func verify(by roots: TrustRoots) -> TrustStore.Verdict {
        do throws(TrustFailure) {
            return try verdict(of: roots)
        } catch {
            return TrustStore.Verdict(error: error.message, kind: .noRoots)
        }
    }

    /// What OpenSSL and the rules say of the chain.
    ///
    /// - Parameters:
    ///   - roots: Where it may end.
    ///   - lists: Revocation lists, of which each certificate that is checked needs one; none are checked without.
    ///   - checksChain: Whether all certificates of the chain are checked or only the server's own.
    func verdict(
        of roots: TrustRoots, lists: [X509RevocationList] = [], checksChain: Bool = false
    ) throws(TrustFailure) -> TrustStore.Verdict {
        let verdict = try roots.store().verify(
            certificates.map(\.x509), lists: lists, checksChain: checksChain, isStrict: rules.contains(.strict),
            now: seconds)
        return verdict.judged(by: rules)
    }

    /// Since 1970; what a broken clock says is brought into the range that OpenSSL takes.
    var seconds: Int64 { Int64(min(max(now.timeIntervalSince1970, 0), 253_402_300_799)) }
}

/// What was found out about a chain already, for evaluators that are composed of several.
private final class Verdicts: Sendable {
    private let all = Lock<[(roots: TrustRoots, rules: ChainRules, verdict: TrustStore.Verdict)]>([])

    func verdict(
        by roots: TrustRoots, _ rules: ChainRules, _ make: () -> TrustStore.Verdict
    ) -> TrustStore.Verdict {
        let known = all.withLock { $0.first { $0.roots == roots && $0.rules == rules }?.verdict }
        if let known { return known }
        let made = make()
        all.withLock { $0.append((roots, rules, made)) }
        return made
    }
}

extension TrustStore.Verdict {
    /// The verdict when rules are added to OpenSSL's.
    fileprivate func judged(by rules: ChainRules) -> TrustStore.Verdict {
        guard error == nil, let leaf = chain.first else { return self }
        if isAnchor, leaf.isAuthority, !rules.contains(.authoritiesAsServers) {
            return TrustStore.Verdict(
                error: "the server shows the certificate of a trusted authority", kind: .authority, offender: leaf)
        }
        // What a root may be used for is what it is trusted for.
        let below = chain.prefix(max(1, chain.count - 1))
        if rules.contains(.strict), let depth = below.firstIndex(where: \.isForAnyUsage) {
            return TrustStore.Verdict(
                error: "anyExtendedKeyUsage is not accepted", depth: depth, offender: chain[depth])
        }
        return self
    }

    fileprivate var hint: String? {
        guard kind == .authority else { return nil }
        return "Issue a certificate for the server, pin this one (PinnedCertificates([…], anchors: .pinsOnly)), or use "
            + "the evaluator's .applying(.authoritiesAsServers)."
    }
}

extension Certificate {
    /// The hosts that it is for.
    fileprivate var hostNames: [String] {
        names(upTo: 20).compactMap { name in
            switch name {
            case .dns(let text), .address(let text): text
            default: nil
            }
        }
    }
}
