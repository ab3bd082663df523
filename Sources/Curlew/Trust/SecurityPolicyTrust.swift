// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// AFNetworking's security policy as an evaluator, for programs that migrate; its unsafe behavior is left out.
///
/// The evaluator differs in five ways from AFNetworking:
///
/// - The initializer throws for a combination that would reject every server.
/// - The initializer throws for a pinning mode without certificates.
/// - Pinned keys with `allowInvalidCertificates` do not disable the checks of host name and validity period.
/// - Pinned keys with `allowInvalidCertificates` require the server's own key, because an unverified chain proves
///   nothing.
/// - The host is always known.
///
/// New programs should use ``PinnedPublicKeys`` and ``PinnedCertificates``.
public struct SecurityPolicyTrust: TrustEvaluator {
    /// The property of a server that is compared with the pinned certificates.
    public enum PinningMode: Hashable, Sendable {
        /// Nothing is pinned.
        case none
        /// The public keys of the certificates.
        case publicKey
        /// The certificates.
        case certificate
    }

    /// The facts about a server that the policy decides by.
    struct Facts: Hashable {
        /// Whether the chain is valid up to the system's roots.
        var isSystemValid = false
        /// Whether the chain is valid up to one of the pinned certificates.
        var isPinnedValid = false
        /// Whether the server's own certificate is valid now.
        var isCurrent = false
        /// Whether the server's own certificate names the host.
        var isHostNamed = false
        /// Whether a pinned key is in the chain as verified by the system's roots.
        var holdsKey = false
        /// Whether the server's own key is pinned.
        var isLeafPinned = false
    }

    /// The property of a server that is compared with the pinned certificates.
    public let pinningMode: PinningMode
    /// Whether servers without a valid chain are accepted.
    public let allowInvalidCertificates: Bool
    /// Whether the certificate must name the host.
    public let validatesDomainName: Bool
    /// The pinned certificates.
    public let certificates: [Certificate]
    /// The roots of chains that are valid without a pin.
    public let roots: TrustRoots
    private let pinned: TrustRoots
    private let keys: Set<Certificate.PublicKeyHash>

    /// Creates a policy.
    ///
    /// - Parameters:
    ///   - pinningMode: The property that is compared with the pinned certificates; `.none` by default.
    ///   - allowInvalidCertificates: Whether servers without a valid chain are accepted; false by default.
    ///   - validatesDomainName: Whether the certificate must name the host; true by default.
    ///   - certificates: The pinned certificates; empty by default.
    ///   - roots: The roots of chains that are valid without a pin; the system's roots by default.
    /// - Throws: `TrustFailure.InvalidPolicy` for a pinning mode without certificates, and for
    ///   `allowInvalidCertificates` with `validatesDomainName` but without pinning, because an unverified certificate
    ///   does not prove its host name.
    public init(
        pinningMode: PinningMode = .none, allowInvalidCertificates: Bool = false, validatesDomainName: Bool = true,
        certificates: [Certificate] = [], roots: TrustRoots = .system
    ) throws(TrustFailure.InvalidPolicy) {
        guard pinningMode == .none || !certificates.isEmpty else {
            throw TrustFailure.InvalidPolicy(
                "A pinning mode without certificates rejects every server.", hint: "Pass certificates.")
        }
        guard pinningMode != .none || !allowInvalidCertificates || !validatesDomainName else {
            throw TrustFailure.InvalidPolicy(
                "The host name of an invalid certificate can be validated only with pinning.",
                hint: "Pin the certificate, or use InsecureTrust to check nothing.")
        }
        self.pinningMode = pinningMode
        self.allowInvalidCertificates = allowInvalidCertificates
        self.validatesDomainName = validatesDomainName
        self.certificates = certificates
        // With allowInvalidCertificates the chain is not verified, so no roots are needed.
        self.roots = allowInvalidCertificates ? .empty : roots
        pinned = pinningMode == .certificate ? .only(certificates) : .empty
        keys = pinningMode == .publicKey ? Set(certificates.map(\.publicKeyHash)) : []
    }

    /// Returns true if nothing is pinned.
    public func allowsPlainHTTP(to host: String) -> Bool { pinningMode == .none }

    /// Loads the roots and the pinned certificates.
    ///
    /// - Throws: `TrustFailure` with rule `.roots` when the system has no roots.
    public func prepare() throws(TrustFailure) {
        try roots.load()
        try pinned.load()
    }

    /// Accepts the server if the policy accepts it.
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
            throw TrustFailure(.pin, "no key of the chain is pinned", certificate: peer.certificates.first)
        }
        throw TrustFailure(refusal, "the policy does not accept the server", certificate: peer.certificates.first)
    }

    private func requirePinned(_ pinned: PeerIdentity?, _ peer: PeerIdentity) throws(TrustFailure) {
        let pinned = pinned ?? peer
        if !pinned.isUnanchored { try pinned.requireValidChain() }
        throw pinned.noPinFailure
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

    /// Returns the rule that refuses a server with these facts; nil to accept it.
    func decide(_ facts: Facts) -> TrustFailure.Rule? {
        if pinningMode == .none && allowInvalidCertificates { return nil }
        if !allowInvalidCertificates && !facts.isSystemValid { return .chain }
        // A chain that is valid up to a pinned certificate contains that certificate.
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
