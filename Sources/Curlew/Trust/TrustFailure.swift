// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials

/// Why a server was refused: the rule, a sentence, the certificate that is to blame and what the server has shown.
///
/// It is the cause of a `NetworkError` of kind `.untrusted`, whose `detailedDescription` shows all of it.
///
/// ```swift
/// } catch let error as NetworkError where error.kind == .untrusted {
///     if let failure = error.cause as? TrustFailure { print(failure.rule, failure.presentedPins) }
/// }
/// ```
public struct TrustFailure: Error, Hashable, Sendable {
    /// A rule that refused a server; an open set, so that evaluators name their own.
    public struct Rule: RawRepresentable, Hashable, Sendable {
        /// The rule's stable name.
        public let rawValue: String

        /// Names a rule.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The chain of certificates does not lead to a trusted root, or breaks a rule on the way.
        public static let chain = Rule(rawValue: "chain")
        /// A certificate of the chain has expired, or is not valid yet.
        public static let validity = Rule(rawValue: "validity")
        /// The certificate does not name the host, or name constraints of an authority are against it.
        public static let hostName = Rule(rawValue: "hostName")
        /// No key of the chain is pinned.
        public static let pin = Rule(rawValue: "pin")
        /// No certificate of the chain is pinned.
        public static let certificate = Rule(rawValue: "certificate")
        /// A certificate was revoked, or it could not be proved that it was not.
        public static let revocation = Rule(rawValue: "revocation")
        /// No evaluator is named for the host.
        public static let unlistedHost = Rule(rawValue: "unlistedHost")
        /// There are no roots to judge by.
        public static let roots = Rule(rawValue: "roots")
        /// None of several evaluators accepts; `causes` has the failure of each.
        public static let noneAccepts = Rule(rawValue: "noneAccepts")
    }

    /// The rule that refused.
    public let rule: Rule
    /// What was wrong, in a few words.
    public let message: String
    /// What to try, if there is something.
    public let hint: String?
    /// The certificate that the rule is about, when it is about one.
    public let certificate: Certificate?
    /// What others said, where several evaluators were asked.
    public let causes: [TrustFailure]
    /// The host that was to be reached; empty until a connection was refused.
    public private(set) var host = ""
    /// What the server had sent, its own certificate first; empty until a connection was refused.
    public private(set) var chain: [Certificate] = []

    /// Makes a failure.
    ///
    /// - Parameters:
    ///   - rule: The rule that refused.
    ///   - message: What was wrong.
    ///   - hint: What to try; nothing unless given.
    ///   - certificate: The certificate that the rule is about; none unless given.
    ///   - causes: What others said; nothing unless given.
    public init(
        _ rule: Rule, _ message: String, hint: String? = nil, certificate: Certificate? = nil,
        causes: [TrustFailure] = []
    ) {
        self.rule = rule
        self.message = message
        self.hint = hint
        self.certificate = certificate
        self.causes = causes
    }

    /// The hashes of the keys that the server has shown, its own first, ready to be pinned if it is the right one.
    ///
    /// Those behind the first are only what it says: a server can show any certificate.
    public var presentedPins: [PublicKeyHash] { chain.map(\.publicKeyHash) }

    /// The failure with what was judged.
    func about(_ peer: PeerIdentity) -> TrustFailure {
        var failure = self
        failure.host = peer.host
        failure.chain = peer.certificates
        return failure
    }
}

extension TrustFailure: CustomStringConvertible, DetailedCause {
    /// The rule and the sentence.
    public var description: String { "\(rule.rawValue): \(message)" }

    var title: String { "rule \(rule.rawValue)" }

    /// The certificate that is to blame, and every key that was shown, as a pin.
    var details: [String] {
        var lines = causes.map(\.description)
        if let certificate {
            lines.append("certificate: \(certificate)")
            lines.append("its key: \(certificate.keyType) \(certificate.publicKeyHash)")
        }
        for (place, shown) in chain.prefix(10).enumerated() {
            lines.append("shown \(place): \(shown.publicKeyHash) \(shown.subject)")
        }
        if chain.count > 10 { lines.append("and \(chain.count - 10) more") }
        return lines
    }
}

extension TrustFailure: LocalizedError {
    /// The message, which is also `localizedDescription`.
    public var errorDescription: String? { message.escapingControls }

    /// The hint, if there is one.
    public var recoverySuggestion: String? { hint?.escapingControls }
}
