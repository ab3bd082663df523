// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials

/// Accepts servers whose chain contains one of the pinned public keys.
///
/// Only keys of the verified chain count, never those of other certificates that the server sends. Host name and
/// validity are always checked. Pin an authority's key rather than a server's, and keep a second key in reserve:
/// clients that pin a single key cannot connect any more when that key changes.
///
/// ```swift
/// let trust = try PinnedPublicKeys(
///     ["sha256/Xz1qoP27S5NQLw1Z7IRjPDHtJ0qHdYYdQp0K0FMRzSs="],
///     backup: "sha256/YLh1dUR9y6Kja30RrAn7JKnbQG/uEtLMkBgFF2Fuihg=")
/// ```
public struct PinnedPublicKeys: PinningTrust {
    /// The requirements on a chain besides a pinned key.
    public enum Chain: Hashable, Sendable {
        /// The chain must be valid up to one of these roots; the pinned key may be any key in it.
        case required(TrustRoots)
        /// No valid chain is required, for servers with a self-signed certificate or an unknown authority.
        ///
        /// The pinned key must be the server's own, and the server's certificate must be within its validity period and
        /// name the host. These pins cannot have an expiration date and cannot be report-only.
        case notRequired
    }

    /// The treatment of a server without a pinned key.
    public enum Enforcement: Hashable, Sendable {
        /// The server is refused.
        case enforced
        /// The server is accepted and reported as `Session.Event.trustReport`, to test pins before enforcing them.
        ///
        /// All other checks are still enforced.
        case reportOnly
    }

    /// The pins, including the backup.
    public let pins: Set<Certificate.PublicKeyHash>
    /// The requirements on a chain besides a pinned key.
    public let chain: Chain
    /// The date from which the pins are ignored; nil for never.
    public let expires: Date?
    /// The treatment of a server without a pinned key.
    public let enforcement: Enforcement

    /// Pins keys by their hashes, with a backup key (RFC 7469 §4.3).
    ///
    /// - Parameters:
    ///   - pins: At least one.
    ///   - backup: The hash of a reserve key that is stored away from the servers.
    ///   - chain: The requirements besides a pinned key; a valid chain to the system's roots by default.
    ///   - expires: The date from which the pins are ignored, so that programs without updates keep working; the chain
    ///     is still checked. Nil (never) by default.
    ///   - enforcement: The treatment of a server without a pinned key; it is refused by default.
    /// - Throws: `TrustFailure.InvalidPolicy` when there is no pin, or the backup is one of the pins.
    public init(
        _ pins: [Certificate.PublicKeyHash], backup: Certificate.PublicKeyHash, chain: Chain = .required(.system),
        expires: Date? = nil,
        enforcement: Enforcement = .enforced
    ) throws(TrustFailure.InvalidPolicy) {
        guard !pins.contains(backup) else {
            throw TrustFailure.InvalidPolicy(
                "The backup pin \(backup) is one of the pins.",
                hint: "Create a second key, store it away from the servers, and pass its hash.")
        }
        try self.init(all: pins, with: [backup], chain, expires, enforcement)
    }

    /// Pins keys by their hashes as text, with a backup key.
    ///
    /// - Parameters:
    ///   - pins: At least one, as `sha256/…`.
    ///   - backup: The hash of a reserve key that is stored away from the servers.
    ///   - chain: The requirements besides a pinned key; a valid chain to the system's roots by default.
    ///   - expires: The date from which the pins are ignored; nil (never) by default.
    ///   - enforcement: The treatment of a server without a pinned key; it is refused by default.
    /// - Throws: `TrustFailure.InvalidPolicy` when there is no pin, a pin cannot be read, or the backup is one of the
    ///   pins.
    public init(
        _ pins: [String], backup: String, chain: Chain = .required(.system), expires: Date? = nil,
        enforcement: Enforcement = .enforced
    ) throws(TrustFailure.InvalidPolicy) {
        try self.init(
            PinnedPublicKeys.hashes(pins), backup: Certificate.PublicKeyHash(backup), chain: chain, expires: expires,
            enforcement: enforcement)
    }

    /// Pins keys without a backup: when the key of the server changes, every client must be updated at the same time.
    ///
    /// - Parameters:
    ///   - pins: At least one.
    ///   - reason: The reason for having no backup, for readers of the code.
    ///   - chain: The requirements besides a pinned key; a valid chain to the system's roots by default.
    ///   - expires: The date from which the pins are ignored; nil (never) by default.
    ///   - enforcement: The treatment of a server without a pinned key; it is refused by default.
    /// - Throws: `TrustFailure.InvalidPolicy` when there is no pin.
    public init(
        _ pins: [Certificate.PublicKeyHash], withoutBackup reason: String, chain: Chain = .required(.system),
        expires: Date? = nil, enforcement: Enforcement = .enforced
    ) throws(TrustFailure.InvalidPolicy) {
        try self.init(all: pins, with: [], chain, expires, enforcement)
    }

    /// Pins keys by their hashes as text, without a backup.
    ///
    /// - Parameters:
    ///   - pins: At least one, as `sha256/…`.
    ///   - reason: The reason for having no backup, for readers of the code.
    ///   - chain: The requirements besides a pinned key; a valid chain to the system's roots by default.
    ///   - expires: The date from which the pins are ignored; nil (never) by default.
    ///   - enforcement: The treatment of a server without a pinned key; it is refused by default.
    /// - Throws: `TrustFailure.InvalidPolicy` when there is no pin, or a pin cannot be read.
    public init(
        _ pins: [String], withoutBackup reason: String, chain: Chain = .required(.system), expires: Date? = nil,
        enforcement: Enforcement = .enforced
    ) throws(TrustFailure.InvalidPolicy) {
        try self.init(
            PinnedPublicKeys.hashes(pins), withoutBackup: reason, chain: chain, expires: expires,
            enforcement: enforcement)
    }

    private static func hashes(_ pins: [String]) throws(TrustFailure.InvalidPolicy) -> [Certificate.PublicKeyHash] {
        var hashes: [Certificate.PublicKeyHash] = []
        for pin in pins { hashes.append(try Certificate.PublicKeyHash(pin)) }
        return hashes
    }

    private init(
        all pins: [Certificate.PublicKeyHash], with backups: [Certificate.PublicKeyHash], _ chain: Chain,
        _ expires: Date?,
        _ enforcement: Enforcement
    ) throws(TrustFailure.InvalidPolicy) {
        guard !pins.isEmpty else {
            throw TrustFailure.InvalidPolicy("No keys are pinned.", hint: "An empty list rejects every server.")
        }
        if chain == .notRequired, expires != nil || enforcement == .reportOnly {
            throw TrustFailure.InvalidPolicy(
                "Pins that require no chain cannot have an expiration date and cannot be report-only.",
                hint: "Require a chain, or leave out expires and reportOnly.")
        }
        self.pins = Set(pins + backups)
        self.chain = chain
        self.expires = expires
        self.enforcement = enforcement
    }

    /// The certificates at which a chain may end.
    public var roots: TrustRoots {
        switch chain {
        case .required(let roots): roots
        case .notRequired: .empty
        }
    }

    /// Accepts a valid chain for the right host that contains a pinned key.
    ///
    /// - Throws: `TrustFailure` with rule `.chain`, `.validity`, `.hostName` or `.pin`.
    public func evaluate(_ peer: PeerIdentity) throws(TrustFailure) {
        let candidates: [Certificate]
        switch chain {
        case .required:
            try peer.requireValid()
            candidates = peer.verifiedChain
        case .notRequired:
            try peer.requireCurrentLeaf()
            try peer.requireHostName()
            candidates = Array(peer.certificates.prefix(1))
        }
        guard !candidates.contains(where: { pins.contains($0.publicKeyHash) }) else { return }
        let failure = PinnedPublicKeys.failure(candidates)
        if let expires, peer.now >= expires {
            peer.report(TrustFailure(.pin, "\(failure.message); the pins expired \(expires.formatted(.iso8601))"))
        } else if enforcement == .reportOnly {
            peer.report(failure)
        } else {
            throw failure
        }
    }

    private static func failure(_ candidates: [Certificate]) -> TrustFailure {
        let shown = candidates.prefix(4).map { $0.publicKeyHash.description }.joined(separator: ", ")
        return TrustFailure(
            .pin, "no key of the chain is pinned: \(shown.escapingControls)",
            hint: "If the server is the right one, pin one of these keys.", certificate: candidates.first)
    }
}

extension TrustEvaluator where Self == PinnedPublicKeys {
    /// Returns an evaluator that requires a pinned key in addition to a chain up to the system's roots.
    ///
    /// - Parameters:
    ///   - keys: At least one, as `sha256/…`.
    ///   - backup: The hash of a reserve key that is stored away from the servers.
    /// - Throws: `TrustFailure.InvalidPolicy` when there is no pin, a pin cannot be read, or the backup is one of the
    ///   pins.
    public static func pinned(keys: [String], backup: String) throws(TrustFailure.InvalidPolicy) -> PinnedPublicKeys {
        try PinnedPublicKeys(keys, backup: backup)
    }
}
