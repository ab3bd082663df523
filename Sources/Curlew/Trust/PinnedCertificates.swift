// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Trusts servers whose chain holds one of certain certificates, byte by byte.
///
/// A renewed certificate is another one; ``PinnedPublicKeys`` survives renewals with the same key. Host name and validity
/// are always checked.
///
/// ```swift
/// let device = try PinnedCertificates(Certificate.all(file: "device.crt"), anchors: .pinsOnly)
/// let (data, _) = try await Session(trust: device).data(for: "https://device.local/state")
/// ```
public struct PinnedCertificates: PinningTrust {
    /// Where chains may end.
    public enum Anchors: Hashable, Sendable {
        /// At the system's roots: pins come on top of what the system demands.
        case system
        /// At the pinned certificates: for servers that no authority vouches for, or one of your own.
        case pinsOnly
        /// At other roots: pins come on top of what these demand.
        case roots(TrustRoots)
    }

    /// The pinned certificates.
    public let certificates: Set<Certificate>
    /// Where chains may end.
    public let roots: TrustRoots
    /// Whether a chain that leads nowhere is one without a pin.
    private let areAnchors: Bool

    /// Pins certificates: of the server, of an authority between, or of a root.
    ///
    /// - Parameters:
    ///   - certificates: At least one.
    ///   - anchors: Where chains may end; at the system's roots by default.
    /// - Throws: `InvalidTrust` when there is no certificate.
    public init(_ certificates: [Certificate], anchors: Anchors = .system) throws(InvalidTrust) {
        guard !certificates.isEmpty else {
            throw InvalidTrust("No certificates are pinned.", hint: "Without any, no server would be accepted.")
        }
        self.certificates = Set(certificates)
        areAnchors = anchors == .pinsOnly
        roots =
            switch anchors {
            case .system: .system
            case .pinsOnly: .only(certificates)
            case .roots(let roots): roots
            }
    }

    /// Pins the certificates of every `.cer`, `.crt`, `.der` and `.pem` file of a directory, read now on the calling
    /// thread.
    ///
    /// - Parameters:
    ///   - directory: Its path.
    ///   - anchors: Where chains may end; at the system's roots by default.
    /// - Throws: `InvalidTrust` when there is no such file, or one cannot be read.
    public init(directory: String, anchors: Anchors = .system) throws(InvalidTrust) {
        try self.init(Certificate.all(directory: directory), anchors: anchors)
    }

    /// Accepts a valid chain for the right host that holds a pinned certificate.
    ///
    /// - Throws: `TrustFailure` with rule `.chain`, `.validity`, `.hostName` or `.certificate`.
    public func evaluate(_ peer: PeerIdentity) throws(TrustFailure) {
        let peer = peer.allowingAuthority(among: certificates)
        if areAnchors && peer.isUnanchored { throw peer.leadsToNoPin }
        try peer.requireValid()
        guard peer.verifiedChain.contains(where: certificates.contains) else {
            throw TrustFailure(
                .certificate, "none of the chain's certificates is pinned",
                hint: "Has the certificate been renewed? PinnedPublicKeys survives that.",
                certificate: peer.certificates.first)
        }
    }
}

extension PeerIdentity {
    /// The same server, whose certificate may be an authority's if it is a pinned one: no other was asked for.
    func allowingAuthority(among pins: some Collection<Certificate>) -> PeerIdentity {
        certificates.first.map(pins.contains) == true ? applying(.authoritiesAsServers) : self
    }

    /// Why a chain is refused that should lead to a pinned certificate and leads nowhere.
    var leadsToNoPin: TrustFailure {
        TrustFailure(
            .certificate, "the chain leads to no pinned certificate" + (chainError.map { ": \($0)" } ?? ""),
            hint: "Was the certificate renewed? Does the server send those between its own and the pinned one?",
            certificate: certificates.first)
    }
}
