// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials

/// Trusts servers whose chain holds one of certain public keys.
///
/// Keys are looked for in the chain as verified, never among certificates that a server merely sends along. Host name and
/// validity are always checked. Pin an authority's key rather than a server's, and keep a second key for the day when the
/// first must be changed: clients that know only one cannot be reached any more.
///
/// ```swift
/// let trust = try PinnedPublicKeys(
///     ["sha256/Xz1qoP27S5NQLw1Z7IRjPDHtJ0qHdYYdQp0K0FMRzSs="],
///     backup: "sha256/YLh1dUR9y6Kja30RrAn7JKnbQG/uEtLMkBgFF2Fuihg=")
/// ```
public struct PinnedPublicKeys: PinningTrust {
    /// What besides a pinned key is demanded of a chain.
    public enum Chain: Hashable, Sendable {
        /// It must be valid up to one of these roots; any key in it may be the pinned one.
        case required(TrustRoots)
        /// Nothing: the key alone vouches, for servers that no authority knows. It must be the server's own, whose
        /// certificate must be in date and name the host. Such pins neither expire nor only report.
        case notRequired
    }

    /// What happens to a server without a pinned key.
    public enum Enforcement: Hashable, Sendable {
        /// It is refused.
        case enforced
        /// It is accepted, and reported as `SessionEvent.trustReport`: to try pins before they can do harm.
        ///
        /// Everything else is enforced as ever.
        case reportOnly
    }

    /// The pins, with the backup.
    public let pins: Set<PublicKeyHash>
    /// What besides a pinned key is demanded of a chain.
    public let chain: Chain
    /// When the pins are given up; nil for never.
    public let expires: Date?
    /// What happens to a server without a pinned key.
    public let enforcement: Enforcement

    /// Pins keys by their hashes, with one more in reserve (RFC 7469 §4.3).
    ///
    /// - Parameters:
    ///   - pins: At least one.
    ///   - backup: The hash of a key that is kept for later, away from the servers.
    ///   - chain: What besides a pinned key is demanded; a valid chain to the system's roots by default.
    ///   - expires: From when on the pins are not looked at any more, so that programs that are never updated go on; the
    ///     chain still is. Never by default.
    ///   - enforcement: What happens to a server without a pinned key; it is refused by default.
    /// - Throws: `InvalidTrust` when there is no pin, or the backup is one of them.
    public init(
        _ pins: [PublicKeyHash], backup: PublicKeyHash, chain: Chain = .required(.system), expires: Date? = nil,
        enforcement: Enforcement = .enforced
    ) throws(InvalidTrust) {
        guard !pins.contains(backup) else {
            throw InvalidTrust(
                "The backup pin \(backup) is one of the pins.",
                hint: "Make a second key, keep it away from the servers, and give its hash.")
        }
        try self.init(all: pins, with: [backup], chain, expires, enforcement)
    }

    /// Pins keys by their hashes as texts, with one more in reserve.
    ///
    /// - Parameters:
    ///   - pins: At least one, as `sha256/…`.
    ///   - backup: The hash of a key that is kept for later, away from the servers.
    ///   - chain: What besides a pinned key is demanded; a valid chain to the system's roots by default.
    ///   - expires: From when on the pins are not looked at any more; never by default.
    ///   - enforcement: What happens to a server without a pinned key; it is refused by default.
    /// - Throws: `InvalidTrust` when there is no pin, one cannot be read, or the backup is one of them.
    public init(
        _ pins: [String], backup: String, chain: Chain = .required(.system), expires: Date? = nil,
        enforcement: Enforcement = .enforced
    ) throws(InvalidTrust) {
        try self.init(
            PinnedPublicKeys.hashes(pins), backup: PublicKeyHash(backup), chain: chain, expires: expires,
            enforcement: enforcement)
    }

    /// Pins keys without one in reserve: when the key of the server changes, every client must change with it.
    ///
    /// - Parameters:
    ///   - pins: At least one.
    ///   - reason: Why there is none, for whoever reads the code.
    ///   - chain: What besides a pinned key is demanded; a valid chain to the system's roots by default.
    ///   - expires: From when on the pins are not looked at any more; never by default.
    ///   - enforcement: What happens to a server without a pinned key; it is refused by default.
    /// - Throws: `InvalidTrust` when there is no pin.
    public init(
        _ pins: [PublicKeyHash], withoutBackup reason: String, chain: Chain = .required(.system),
        expires: Date? = nil, enforcement: Enforcement = .enforced
    ) throws(InvalidTrust) {
        try self.init(all: pins, with: [], chain, expires, enforcement)
    }

    /// Pins keys by their hashes as texts, without one in reserve.
    ///
    /// - Parameters:
    ///   - pins: At least one, as `sha256/…`.
    ///   - reason: Why there is none in reserve, for whoever reads the code.
    ///   - chain: What besides a pinned key is demanded; a valid chain to the system's roots by default.
    ///   - expires: From when on the pins are not looked at any more; never by default.
    ///   - enforcement: What happens to a server without a pinned key; it is refused by default.
    /// - Throws: `InvalidTrust` when there is no pin, or one cannot be read.
    public init(
        _ pins: [String], withoutBackup reason: String, chain: Chain = .required(.system), expires: Date? = nil,
        enforcement: Enforcement = .enforced
    ) throws(InvalidTrust) {
        try self.init(
            PinnedPublicKeys.hashes(pins), withoutBackup: reason, chain: chain, expires: expires,
            enforcement: enforcement)
    }

    private static func hashes(_ pins: [String]) throws(InvalidTrust) -> [PublicKeyHash] {
        var hashes: [PublicKeyHash] = []
        for pin in pins { hashes.append(try PublicKeyHash(pin)) }
        return hashes
    }

    private init(
        all pins: [PublicKeyHash], with backups: [PublicKeyHash], _ chain: Chain, _ expires: Date?,
        _ enforcement: Enforcement
    ) throws(InvalidTrust) {
        guard !pins.isEmpty else {
            throw InvalidTrust("No keys are pinned.", hint: "Without any, no server would be accepted.")
        }
        if chain == .notRequired, expires != nil || enforcement == .reportOnly {
            throw InvalidTrust(
                "Where no chain is required the pins are all there is, so they neither expire nor only report.",
                hint: "Require a chain, or leave out expires and reportOnly.")
        }
        self.pins = Set(pins + backups)
        self.chain = chain
        self.expires = expires
        self.enforcement = enforcement
    }

    /// Where chains may end.
    public var roots: TrustRoots {
        switch chain {
        case .required(let roots): roots
        case .notRequired: .nobody
        }
    }

    /// Accepts a valid chain for the right host with a pinned key in it.
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
            .pin, "none of the chain's keys is pinned: \(shown.escapingControls)",
            hint: "If the server is the right one, pin one of these keys.", certificate: candidates.first)
    }
}

extension TrustEvaluator where Self == PinnedPublicKeys {
    /// Pins keys on top of what the system trusts.
    ///
    /// - Parameters:
    ///   - keys: At least one, as `sha256/…`.
    ///   - backup: The hash of a key that is kept for later, away from the servers.
    /// - Throws: `InvalidTrust` when there is no pin, one cannot be read, or the backup is one of them.
    public static func pinned(keys: [String], backup: String) throws(InvalidTrust) -> PinnedPublicKeys {
        try PinnedPublicKeys(keys, backup: backup)
    }
}
