// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Rules that change how evaluators inside a ``ChainTrust`` verify certificate chains.
public struct ChainRules: OptionSet, Hashable, Sendable {
    /// The rules as a bit set.
    public let rawValue: Int

    /// Creates rules from a bit set.
    public init(rawValue: Int) { self.rawValue = rawValue }

    /// Accepts a trusted authority's own certificate as a server's.
    ///
    /// Without this rule a server is refused if its own certificate is one of the evaluator's roots and may sign others
    /// (``Certificate/isAuthority``): the key of an authority does not belong on a server. A root that may not sign
    /// others is accepted as a server's without this rule. So is a certificate that ``PinnedCertificates`` pins, or
    /// whose key ``PinnedPublicKeys`` pins with `chain: .notRequired`. `openssl req -x509` makes authorities unless it
    /// is called with `-addext basicConstraints=critical,CA:FALSE`.
    public static let authoritiesAsServers = ChainRules(rawValue: 1)

    /// Enforces RFC 5280's rules for certification authorities, and more; a private authority may fail them.
    ///
    /// - The version is 3, and names, basic constraints and key usages of authorities comply with §4
    ///   (X509_V_FLAG_X509_STRICT of OpenSSL).
    /// - Certificates have an authority key identifier, and authorities a subject key identifier (§4.2.1.1, §4.2.1.2).
    /// - No certificate below the root allows every usage (`anyExtendedKeyUsage`, §4.2.1.12).
    /// - A wildcard does not match hosts directly below a public suffix, such as `*.co.uk`. The list is libpsl's,
    ///   without the suffixes of companies. Without libpsl this rule is not enforced; a wildcard then only needs at
    ///   least two labels after the star, which is required without `strict` too.
    ///
    /// The first two rules apply to paths of at least two certificates: a root that is the server's own certificate has
    /// no issuer.
    public static let strict = ChainRules(rawValue: 2)
}

/// Applies additional ``ChainRules`` to another evaluator.
///
/// The rules apply to every chain that the evaluator verifies, with any roots, including evaluators nested inside it.
/// They have no effect on an evaluator that verifies no chain, such as ``InsecureTrust``.
///
/// ```swift
/// let trust = SystemTrust().applying(.strict)
/// let device = try CustomRoots(file: "device.crt").applying(.authoritiesAsServers)
/// ```
public struct ChainTrust<Base: TrustEvaluator>: TrustEvaluator, PartiallyPrepared {
    /// The evaluator that the rules are added to.
    public let base: Base
    /// The rules that are added to those already in effect.
    public let rules: ChainRules

    /// Adds rules to an evaluator.
    ///
    /// - Parameters:
    ///   - base: The evaluator that the rules are added to.
    ///   - rules: The rules that are added to those already in effect.
    public init(_ base: Base, rules: ChainRules) {
        self.base = base
        self.rules = rules
    }

    /// The roots of the base evaluator.
    public var roots: TrustRoots { base.roots }

    /// Whether the base evaluator requests OCSP responses.
    public var wantsOCSPResponse: Bool { base.wantsOCSPResponse }

    /// Returns whether the base evaluator allows plain HTTP to the host.
    public func allowsPlainHTTP(to host: String) -> Bool { base.allowsPlainHTTP(to: host) }

    /// Prepares the base evaluator, and loads the list of public suffixes if the rules contain ``ChainRules/strict``.
    ///
    /// - Throws: The error of the base evaluator.
    public func prepare() throws(TrustFailure) {
        if rules.contains(.strict) { _ = PublicSuffixes.system }
        try base.prepare()
    }

    var hasUnpreparedEvaluators: Bool { base.isIncomplete }

    /// Calls the base evaluator with the rules added.
    ///
    /// - Throws: The error of the base evaluator.
    public func evaluate(_ peer: PeerIdentity) throws(TrustFailure) { try base.judge(peer.applying(rules)) }
}

/// Adding rules to a pinning evaluator keeps it a pinning evaluator.
extension ChainTrust: PinningTrust where Base: PinningTrust {}

extension TrustEvaluator {
    /// Returns this evaluator with additional rules for chains; see ``ChainRules``.
    ///
    /// - Parameter rules: The rules that are added to those already in effect.
    public func applying(_ rules: ChainRules) -> ChainTrust<Self> { ChainTrust(self, rules: rules) }
}
