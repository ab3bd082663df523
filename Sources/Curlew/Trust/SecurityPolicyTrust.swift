// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// AFNetworking's security policy as an evaluator, for programs that come from there; what it did unsafely is not done.
///
/// It differs in five ways. A combination that could accept nobody is refused when it is made, as is a pinning mode without
/// certificates. Pinned keys with `allowInvalidCertificates` never switch off host name and validity, and then the
/// server's own key must be the pinned one, since a chain that nobody has verified proves nothing. The host is always
/// known. New programs are better off with ``PinnedPublicKeys`` and ``PinnedCertificates``.
public struct SecurityPolicyTrust: TrustEvaluator {
    /// What servers are compared with.
    public enum PinningMode: Hashable, Sendable {
        /// Nothing.
        case none
        /// The keys of the certificates.
        case publicKey
        /// The certificates.
        case certificate
    }

    /// What is known of a server when the policy decides.
    struct Facts: Hashable {
        /// Whether the chain is valid up to the system's roots.
        var isSystemValid = false
        /// Whether the chain is valid up to one of the pinned certificates.
        var isPinnedValid = false
        /// Whether the server's own certificate is valid now.
        var isCurrent = false
        /// Whether it names the host.
        var isHostNamed = false
        /// Whether a pinned key is in the chain as verified by the system's roots.
        var holdsKey = false
        /// Whether the server's own key is pinned.
        var isLeafPinned = false
    }

    /// What servers are compared with.
    public let pinningMode: PinningMode
    /// Whether servers count that no authority vouches for.
    public let allowInvalidCertificates: Bool
    /// Whether the certificate must name the host.
    public let validatesDomainName: Bool
    /// What is pinned.
    public let certificates: [Certificate]
    /// What is valid by itself.
    public let roots: TrustRoots
    private let pinned: TrustRoots
    private let keys: Set<PublicKeyHash>

    /// Makes a policy.
    ///
    /// - Parameters:
    ///   - pinningMode: What servers are compared with; nothing by default.
    ///   - allowInvalidCertificates: Whether servers count that no authority vouches for; false by default.
    ///   - validatesDomainName: Whether the certificate must name the host; true by default.
    ///   - certificates: What is pinned.
    ///   - roots: What is valid by itself; the system's roots by default.
    /// - Throws: `InvalidTrust` for a pinning mode without certificates, and for invalid certificates of a certain host
    ///   without pinning, which nobody could vouch for.
    public init(
        pinningMode: PinningMode = .none, allowInvalidCertificates: Bool = false, validatesDomainName: Bool = true,
        certificates: [Certificate] = [], roots: TrustRoots = .system
    ) throws(InvalidTrust) {
        guard pinningMode == .none || !certificates.isEmpty else {
            throw InvalidTrust("A pinning mode without certificates accepts nobody.", hint: "Give the certificates.")
        }
        guard pinningMode != .none || !allowInvalidCertificates || !validatesDomainName else {
            throw InvalidTrust(
                "To validate the host of an invalid certificate, something must be pinned.",
                hint: "Pin the certificate, or use InsecureTrust if nothing shall be checked.")
        }
        self.pinningMode = pinningMode
        self.allowInvalidCertificates = allowInvalidCertificates
        self.validatesDomainName = validatesDomainName
        self.certificates = certificates
        // Where invalid chains count, nobody asks whether they are valid.
        self.roots = allowInvalidCertificates ? .nobody : roots
        pinned = pinningMode == .certificate ? .only(certificates) : .nobody
        keys = pinningMode == .publicKey ? Set(certificates.map(\.publicKeyHash)) : []
    }

    /// Whether nothing is pinned.
    public func allowsPlainHTTP(to host: String) -> Bool { pinningMode == .none }

    /// Loads the roots and the pinned certificates.
    ///
    /// - Throws: `TrustFailure` with rule `.roots` when the system has none.
    public func prepare() throws(TrustFailure) {
        try roots.load()
        try pinned.load()
    }

    /// Accepts whom the policy accepts.
    ///
    /// - Throws: `TrustFailure` with rule `.chain`, `.validity`, `.hostName`, `.certificate` or `.pin`.
    public func evaluate(_ peer: PeerIdentity) throws(TrustFailure) {
        let peer = pinningMode == .certificate ? peer.allowingAuthority(among: certificates) : peer
        let pinned = pinningMode == .certificate ? peer.verified(by: pinned) : nil
        guard let refusal = decide(facts(peer, pinned)) else { return }
        switch refusal {
        case .chain:
            try peer.requireValidChain()
        case .validity: try peer.requireCurrentLeaf()
        case .hostName:
            try peer.requireHostName()
            try pinned?.requireHostName()
        case .certificate:
            try requirePinned(pinned, peer)
        default:
            throw TrustFailure(.pin, "none of the chain's keys is pinned", certificate: peer.certificates.first)
        }
        throw TrustFailure(refusal, "the policy does not accept the server", certificate: peer.certificates.first)
    }

    private func requirePinned(_ pinned: PeerIdentity?, _ peer: PeerIdentity) throws(TrustFailure) {
        let pinned = pinned ?? peer
        if !pinned.isUnanchored { try pinned.requireValidChain() }
        throw pinned.leadsToNoPin
    }

    private func facts(_ peer: PeerIdentity, _ pinned: PeerIdentity?) -> Facts {
        var facts = Facts()
        facts.isSystemValid = peer.chainError == nil
        facts.isPinnedValid = pinned.map { $0.chainError == nil } ?? false
        facts.isCurrent = peer.certificates.first?.isValid(at: peer.now) == true
        facts.isHostNamed = peer.isHostNamed && pinned?.isHostNamed != false
        facts.holdsKey = peer.verifiedChain.contains { keys.contains($0.publicKeyHash) }
        facts.isLeafPinned = peer.certificates.first.map { keys.contains($0.publicKeyHash) } ?? false
        return facts
    }

    /// The rule that refuses a server of which this is known; nil to accept it.
    func decide(_ facts: Facts) -> TrustFailure.Rule? {
        if pinningMode == .none && allowInvalidCertificates { return nil }
        if !allowInvalidCertificates && !facts.isSystemValid { return .chain }
        // A chain that is valid up to a pinned certificate holds it.
        if pinningMode == .certificate && !facts.isPinnedValid { return .certificate }
        if pinningMode == .publicKey && allowInvalidCertificates && !facts.isCurrent { return .validity }
        if validatesDomainName && !facts.isHostNamed { return .hostName }
        switch pinningMode {
        case .none, .certificate: return nil
        case .publicKey:
            return (allowInvalidCertificates ? facts.isLeafPinned : facts.holdsKey) ? nil : .pin
        }
    }
}
