// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// What changes in the judgement of chains for evaluators inside a ``ChainTrust``.
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
}

/// Asks another evaluator, for which other rules for chains hold.
///
/// The rules hold for every chain that the evaluator has verified, by whatever roots, also through evaluators that ask
/// others. Where an evaluator verifies no chain, as ``InsecureTrust`` does, they change nothing.
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

    /// Prepares the evaluator.
    ///
    /// - Throws: What the evaluator throws.
    public func prepare() throws(TrustFailure) { try base.prepare() }

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
