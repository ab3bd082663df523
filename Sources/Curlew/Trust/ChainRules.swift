// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Rules that change how evaluators inside a ``ChainTrust`` verify certificate chains.
public struct ChainRules: OptionSet, Hashable, Sendable {
    /// The rules as bits.
    public let rawValue: Int

    /// Takes rules as bits.
    public init(rawValue: Int) { self.rawValue = rawValue }

    /// Accepts a trusted authority's own certificate as a server's.
    ///
    /// Without this rule a server is refused if its own certificate is one of the evaluator's roots and may sign others
    /// (``Certificate/isAuthority``): the key of an authority does not belong on a server. A root that may not sign others is
    /// accepted as a server's without this rule, and so is a certificate that ``PinnedCertificates`` pins, or whose key
    /// ``PinnedPublicKeys`` pins with `chain: .notRequired`. `openssl req -x509` makes authorities unless it is called with
    /// `-addext basicConstraints=critical,CA:FALSE`.
    public static let authoritiesAsServers = ChainRules(rawValue: 1)

    /// Enforces RFC 5280's rules for certification authorities, and more; a private authority may not meet them.
    ///
    /// - Version 3, names, basic constraints and key usages of authorities are as §4 says (X509_V_FLAG_X509_STRICT of
    ///   OpenSSL).
    /// - Certificates have an authority key identifier, and authorities a subject key identifier (§4.2.1.1, §4.2.1.2).
    /// - No certificate below the root is for any usage (`anyExtendedKeyUsage`, §4.2.1.12).
    /// - A wildcard does not name hosts right below a public suffix, such as `*.co.uk`. The list is libpsl's, without the
    ///   suffixes of companies. Where libpsl is not installed, a wildcard only needs at least two labels behind the star, as
    ///   everywhere.
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
public struct ChainTrust<Base: TrustEvaluator>: TrustEvaluator, PartlyPrepared {
    /// The evaluator that is asked.
    public let base: Base
    /// The rules, on top of those that hold already.
    public let rules: ChainRules

    /// Adds rules to an evaluator.
    ///
    /// - Parameters:
    ///   - base: The evaluator that is asked.
    ///   - rules: The rules, on top of those that hold already.
    public init(_ base: Base, rules: ChainRules) {
        self.base = base
        self.rules = rules
    }

    /// Those of the evaluator.
    public var roots: TrustRoots { base.roots }

    /// What the evaluator wants.
    public var wantsStaple: Bool { base.wantsStaple }

    /// What the evaluator allows.
    public func allowsPlainHTTP(to host: String) -> Bool { base.allowsPlainHTTP(to: host) }

    /// Prepares the evaluator, and reads the list of public suffixes where it is needed.
    ///
    /// - Throws: What the evaluator throws.
    public func prepare() throws(TrustFailure) {
        if rules.contains(.strict) { _ = PublicSuffixes.system }
        try base.prepare()
    }

    var isStillToPrepare: Bool { base.isIncomplete }

    /// Asks the evaluator.
    ///
    /// - Throws: What the evaluator throws.
    public func evaluate(_ peer: PeerIdentity) throws(TrustFailure) { try base.judge(peer.applying(rules)) }
}

/// What pins remains pinned.
extension ChainTrust: PinningTrust where Base: PinningTrust {}

extension TrustEvaluator {
    /// The evaluator with other rules for chains; see ``ChainRules``.
    ///
    /// - Parameter rules: The rules, on top of those that hold already.
    public func applying(_ rules: ChainRules) -> ChainTrust<Self> { ChainTrust(self, rules: rules) }
}
