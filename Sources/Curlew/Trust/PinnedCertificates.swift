// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Accepts servers whose chain contains one of the pinned certificates, compared byte by byte.
///
/// A renewed certificate does not match the pin of the old one; ``PinnedPublicKeys`` survives renewals with the same
/// key. Host name and validity are always checked.
///
/// ```swift
/// let device = try PinnedCertificates(Certificate.all(file: "device.crt"), anchors: .pinsOnly)
/// let (data, _) = try await Session(trust: device).data(for: "https://device.local/state")
/// ```
public struct PinnedCertificates: PinningTrust {
    /// The certificates at which a chain may end.
    public enum Anchors: Hashable, Sendable {
        /// The system's roots; pins are required in addition.
        case system
        /// The pinned certificates, for servers whose certificate is self-signed or issued by your own authority.
        case pinsOnly
        /// Other roots; pins are required in addition.
        case roots(TrustRoots)
    }

    /// The pinned certificates.
    public let certificates: Set<Certificate>
    /// The certificates at which a chain may end.
    public let roots: TrustRoots
    /// Whether the pinned certificates are the roots, so that an unanchored chain is a chain without a pin.
    private let areAnchors: Bool

    /// Pins certificates of the server, of an intermediate authority, or of a root.
    ///
    /// - Parameters:
    ///   - certificates: At least one.
    ///   - anchors: The certificates at which a chain may end; the system's roots by default.
    /// - Throws: `TrustFailure.InvalidPolicy` when there is no certificate.
    public init(_ certificates: [Certificate], anchors: Anchors = .system) throws(TrustFailure.InvalidPolicy) {
        guard !certificates.isEmpty else {
            throw TrustFailure.InvalidPolicy(
                "No certificates are pinned.", hint: "An empty list rejects every server.")
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

    /// Pins the certificates of every `.cer`, `.crt`, `.der` and `.pem` file of a directory, which are read now, on the
    /// calling thread.
    ///
    /// - Parameters:
    ///   - directory: The path of the directory.
    ///   - anchors: The certificates at which a chain may end; the system's roots by default.
    /// - Throws: `TrustFailure.InvalidPolicy` when the directory has no such file, or one cannot be read.
    public init(directory: String, anchors: Anchors = .system) throws(TrustFailure.InvalidPolicy) {
        try self.init(Certificate.all(directory: directory), anchors: anchors)
    }

    /// Accepts a valid chain for the right host that contains a pinned certificate.
    ///
    /// - Throws: `TrustFailure` with rule `.chain`, `.validity`, `.hostName` or `.certificate`.
    public func evaluate(_ peer: PeerIdentity) throws(TrustFailure) {
        let peer = peer.allowingAuthority(among: certificates)
        if areAnchors && peer.isUnanchored { throw peer.noPinFailure }
        try peer.requireValid()
        guard peer.verifiedChain.contains(where: certificates.contains) else {
            throw TrustFailure(
                .certificate, "no certificate of the chain is pinned",
                hint: "Was the certificate renewed? PinnedPublicKeys accepts renewals with the same key.",
                certificate: peer.certificates.first)
        }
    }
}

extension PeerIdentity {
    /// Returns an identity whose certificate may be an authority's if it is one of the pins, since it was pinned
    /// explicitly.
    func allowingAuthority(among pins: some Collection<Certificate>) -> PeerIdentity {
        certificates.first.map(pins.contains) == true ? applying(.authoritiesAsServers) : self
    }

    /// The failure for a chain that does not end at a pinned certificate although it must.
    var noPinFailure: TrustFailure {
        TrustFailure(
            .certificate, "the chain leads to no pinned certificate" + (chainError.map { ": \($0)" } ?? ""),
            hint: "Was the certificate renewed? Does the server send its intermediate certificates?",
            certificate: certificates.first)
    }
}
