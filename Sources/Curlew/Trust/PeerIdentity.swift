// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
public import FoundationEssentials
internal import CurlewSupport

/// The identity of a server in a TLS handshake: its certificates and OpenSSL's verdict on them.
public struct PeerIdentity: Sendable {
    /// The role of a server.
    public enum Kind: Hashable, Sendable {
        /// The server that the request is for.
        case origin
        /// A proxy between client and origin.
        case proxy
        /// A DNS server that is queried over https.
        case resolver
    }

    /// The host of the connection, an A-label in lower case or an IP address.
    public let host: String
    /// The port of the connection.
    public let port: Int
    /// The role of the server.
    public let kind: Kind
    /// The certificates in the order in which the server sent them, its own first.
    public let certificates: [Certificate]
    /// The OCSP response from the handshake (RFC 6066 §8); nil if the server sent no response or the client did not
    /// request one.
    public let ocspResponse: [UInt8]?
    /// The time at which the certificates are evaluated.
    public let now: Date

    private let verdicts: Verdicts
    /// The roots at which the chain may end; nil for an identity that no evaluator has verified.
    private let roots: TrustRoots?
    /// The rules for the verdict, in addition to the evaluator's roots.
    private var rules: ChainRules = []
    private let reporter: (@Sendable (TrustFailure) -> Void)?

    /// Creates an identity for an evaluator, or for the test of an evaluator; nothing is verified yet.
    ///
    /// - Parameters:
    ///   - host: The host of the connection.
    ///   - port: The port of the connection, 443 by default.
    ///   - kind: The role of the server; the origin by default.
    ///   - certificates: The certificates in the order in which the server sent them, its own first.
    ///   - ocspResponse: An OCSP response in DER; nil by default.
    ///   - now: The time at which the certificates are evaluated; the current time by default.
    ///   - onReport: Called with the failures given to ``report(_:)``; nil by default.
    public init(
        host: String, port: Int = 443, kind: Kind = .origin, certificates: [Certificate], ocspResponse: [UInt8]? = nil,
        now: Date = Date(), onReport: (@Sendable (TrustFailure) -> Void)? = nil
    ) {
        self.host = host
        self.port = port
        self.kind = kind
        self.certificates = certificates
        self.ocspResponse = ocspResponse
        self.now = now
        reporter = onReport
        verdicts = Verdicts()
        roots = nil
    }

    /// The verified chain from the server's certificate to the root; empty when ``chainError`` is set.
    public var verifiedChain: [Certificate] { verdict.chain.map { Certificate($0) } }
    /// OpenSSL's reason to reject the chain; nil when the chain is valid up to one of the evaluator's roots.
    public var chainError: String? { verdict.error }
    /// The index of the certificate that ``chainError`` is about, 0 for the server's own.
    public var chainErrorDepth: Int { verdict.depth }
    /// Whether the server's certificate names the host (RFC 9525 §6) and the name constraints of every authority in
    /// ``verifiedChain`` permit it (RFC 5280 §4.2.1.10); see ``Certificate/isNamed(_:)``.
    public var isHostNamed: Bool { isLeafNamed && broadWildcard == nil && violatedConstraint == nil }

    /// The public suffix directly above the host, if a wildcard matches the host and the rules are strict.
    private var broadWildcard: Substring? {
        guard rules.contains(.strict), let leaf = certificates.first?.x509, !leaf.matches(host, byWildcards: false),
            let dot = host.firstIndex(of: ".")
        else { return nil }
        let rest = host[host.index(after: dot)...]
        let domain = rest.hasSuffix(".") ? rest.dropLast() : rest
        return PublicSuffixes.system.contains(domain.lowercased()) ? domain : nil
    }

    private var isLeafNamed: Bool { certificates.first?.isNamed(host) == true }

    /// The first authority of the verified chain whose name constraints do not permit the host.
    ///
    /// OpenSSL compares the constraints with the names in the certificate, so it accepts a wildcard that covers an
    /// excluded host. If the server's certificate is itself a root, the path ends there and no authority's constraints
    /// apply.
    private var violatedConstraint: (authority: X509Certificate, constraint: X509Certificate.Constraint)? {
        let verdict = verdict
        for authority in verdict.chain.dropFirst() where !verdict.isAnchor {
            let constraint = authority.constraint(on: host)
            if constraint != .met { return (authority, constraint) }
        }
        return nil
    }

    /// Whether the chain does not end at one of the evaluator's roots, regardless of other errors.
    var isUnanchored: Bool { verdict.kind == .unanchored }

    /// Returns the identity of the same server with the chain verified by other roots (RFC 5280 §6).
    ///
    /// The server's certificate must be for TLS servers; every key and signature must have a security of 112 bits. Load
    /// roots other than the evaluator's own in `prepare`, otherwise the handshake waits while they load.
    /// - Parameter roots: The certificates at which the chain may end.
    /// - Returns: The identity with that verdict, which is computed at first use and once for each roots value.
    public func verified(by roots: TrustRoots) -> PeerIdentity { PeerIdentity(self, roots) }

    /// Returns the identity of the same server with additional rules.
    func applying(_ rules: ChainRules) -> PeerIdentity {
        var peer = self
        peer.rules.formUnion(rules)
        return peer
    }

    /// Accepts a server whose chain is valid and whose certificate names the host.
    ///
    /// - Throws: `TrustFailure` with rule `.chain`, `.validity`, `.hostName`, or `.roots` when no roots are available.
    public func requireValid() throws(TrustFailure) {
        try requireValidChain()
        try requireHostName()
    }

    /// Accepts a server whose chain is valid up to one of the evaluator's roots; the host is not checked.
    ///
    /// - Throws: `TrustFailure` with rule `.chain` or `.validity`, or `.roots` when no roots are available.
    public func requireValidChain() throws(TrustFailure) {
        let verdict = verdict
        guard let error = verdict.error else { return }
        if verdict.kind == .noRoots { throw TrustFailure(.roots, error, hint: TrustRoots.hint) }
        let place = verdict.depth == 0 ? "the server's certificate" : "certificate \(verdict.depth) of the chain"
        throw TrustFailure(
            verdict.kind == .validity ? .validity : .chain, "\(error) (\(place))", hint: verdict.hint,
            certificate: verdict.rejectedCertificate.map { Certificate($0) } ?? certificates.first)
    }

    /// Accepts a server whose certificate names the host (RFC 9525 §6), unless the name constraints of an authority in
    /// the verified chain do not permit it (RFC 5280 §4.2.1.10).
    ///
    /// - Throws: `TrustFailure` with rule `.hostName`.
    public func requireHostName() throws(TrustFailure) {
        guard !isLeafNamed else { return try requirePermittedName() }
        // An unverified certificate may have tens of thousands of names.
        let names = certificates.first?.hostNames ?? []
        let text = names.isEmpty ? "no host" : names.prefix(8).joined(separator: ", ") + (names.count > 8 ? ", …" : "")
        throw TrustFailure(
            .hostName, "the certificate is for \(text.escapingControls), not for \(host)",
            certificate: certificates.first)
    }

    private func requirePermittedName() throws(TrustFailure) {
        if let broadWildcard {
            throw TrustFailure(
                .hostName, "a wildcard directly below the public suffix \(broadWildcard) does not count",
                certificate: certificates.first)
        }
        guard let violatedConstraint else { return }
        let words =
            switch violatedConstraint.constraint {
            case .excludes: "exclude \(host)"
            case .unreadable: "cannot be read"
            case .permitsOthers, .met: "do not permit \(host)"
            }
        let authority = Certificate(violatedConstraint.authority)
        throw TrustFailure(
            .hostName, "the name constraints of \(authority.subject.escapingControls) \(words)", certificate: authority)
    }

    /// Accepts a server whose own certificate is within its validity period; the issuer is not checked.
    ///
    /// - Throws: `TrustFailure` with rule `.validity`, or `.chain` when the server sent no certificate.
    public func requireCurrentLeaf() throws(TrustFailure) {
        guard let leaf = certificates.first else { throw TrustFailure(.chain, "the server sent no certificate") }
        guard !leaf.isValid(at: now) else { return }
        let text = now < leaf.notBefore ? "certificate is not yet valid" : "certificate has expired"
        throw TrustFailure(.validity, "\(text) (the server's certificate)", certificate: leaf)
    }

    /// Notifies the session's observers of a failure (`Session.Event.trustReport`) without refusing the server.
    public func report(_ failure: TrustFailure) { reporter?(failure.about(self)) }

    /// OpenSSL's verdict on the chain, computed at first use.
    private var verdict: TrustStore.Verdict {
        guard let roots else { return TrustStore.Verdict(error: "the chain was not verified") }
        if roots.areEmpty { return TrustStore.Verdict(error: "there are no roots to verify it by") }
        return verdicts.verdict(by: roots, rules) { verify(by: roots) }
    }

    /// Stores the verdict of a stricter verification with the same roots, so that the chain is not verified again.
    func storeVerdict(_ verdict: TrustStore.Verdict) {
        if let roots { _ = verdicts.verdict(by: roots, rules) { verdict } }
    }

    private init(_ peer: PeerIdentity, _ roots: TrustRoots) {
        (host, port, kind, certificates) = (peer.host, peer.port, peer.kind, peer.certificates)
        (ocspResponse, now, verdicts, reporter) = (peer.ocspResponse, peer.now, peer.verdicts, peer.reporter)
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

    /// Returns the verdict of OpenSSL and the rules on the chain.
    ///
    /// - Parameters:
    ///   - roots: The certificates at which the chain may end.
    ///   - lists: Revocation lists; every checked certificate needs one. If empty, revocation is not checked.
    ///   - checksChain: Whether revocation is checked for the whole chain or only for the server's certificate.
    func verdict(
        of roots: TrustRoots, lists: [X509RevocationList] = [], checksChain: Bool = false
    ) throws(TrustFailure) -> TrustStore.Verdict {
        let verdict = try roots.store().verify(
            certificates.map(\.x509), lists: lists, checksChain: checksChain, isStrict: rules.contains(.strict),
            now: seconds)
        return verdict.applying(rules)
    }

    /// The time in seconds since 1970, clamped to the range that OpenSSL accepts in case the clock is wrong.
    var seconds: Int64 { Int64(min(max(now.timeIntervalSince1970, 0), 253_402_300_799)) }
}

/// A cache of verdicts on one chain, shared by the evaluators of a composite evaluator.
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
    /// Returns the verdict after applying rules in addition to OpenSSL's.
    fileprivate func applying(_ rules: ChainRules) -> TrustStore.Verdict {
        guard error == nil, let leaf = chain.first else { return self }
        if isAnchor, leaf.isAuthority, !rules.contains(.authoritiesAsServers) {
            return TrustStore.Verdict(
                error: "the server presents the certificate of a trusted authority", kind: .authority,
                rejectedCertificate: leaf)
        }
        // The usages in a root do not matter: it is trusted as a root in any case.
        let below = chain.prefix(max(1, chain.count - 1))
        if rules.contains(.strict), let depth = below.firstIndex(where: \.allowsAnyUsage) {
            return TrustStore.Verdict(
                error: "anyExtendedKeyUsage is not accepted", depth: depth, rejectedCertificate: chain[depth])
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
    /// The host names and addresses of the certificate.
    fileprivate var hostNames: [String] {
        names(upTo: 20).compactMap { name in
            switch name {
            case .dns(let text), .address(let text): text
            default: nil
            }
        }
    }
}
