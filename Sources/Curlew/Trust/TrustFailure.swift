// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials

/// The reason why a server was refused: the rule, a message, the rejected certificate and the certificates of the
/// server.
///
/// The failure is the cause of a `NetworkError` of kind `.untrusted`, whose `detailedDescription` includes all of it.
///
/// ```swift
/// } catch let error as NetworkError where error.kind == .untrusted {
///     if let failure = error.cause as? TrustFailure { print(failure.rule, failure.presentedPins) }
/// }
/// ```
public struct TrustFailure: Error, Hashable, Sendable {
    /// A rule that refused a server; an open set, so that evaluators can define their own rules.
    public struct Rule: RawRepresentable, Hashable, Sendable {
        /// The rule's stable name.
        public let rawValue: String

        /// Creates a rule.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The chain of certificates does not end at a trusted root, or breaks a rule below it.
        public static let chain = Rule(rawValue: "chain")
        /// A certificate of the chain has expired, or is not valid yet.
        public static let validity = Rule(rawValue: "validity")
        /// The certificate does not name the host, or name constraints of an authority do not permit it.
        public static let hostName = Rule(rawValue: "hostName")
        /// No key of the chain is pinned.
        public static let pin = Rule(rawValue: "pin")
        /// No certificate of the chain is pinned.
        public static let certificate = Rule(rawValue: "certificate")
        /// A certificate was revoked, or the proof that it was not revoked is missing.
        public static let revocation = Rule(rawValue: "revocation")
        /// ``HostTrust`` has no evaluator for the host.
        public static let unlistedHost = Rule(rawValue: "unlistedHost")
        /// There are no roots to verify the chain with.
        public static let roots = Rule(rawValue: "roots")
        /// No evaluator of a composite evaluator accepted the server; `causes` has the failure of each.
        public static let noneAccepts = Rule(rawValue: "noneAccepts")
    }

    /// The rule that refused.
    public let rule: Rule
    /// The problem, in a few words.
    public let message: String
    /// A suggestion for a fix, if there is one.
    public let hint: String?
    /// The certificate that broke the rule, if the rule is about a certificate.
    public let certificate: Certificate?
    /// The failures of the nested evaluators of a composite evaluator.
    public let causes: [TrustFailure]
    /// The host of the connection; empty until a connection was refused.
    public private(set) var host = ""
    /// The certificates of the server, its own first; empty until a connection was refused.
    public private(set) var chain: [Certificate] = []

    /// Creates a failure.
    ///
    /// - Parameters:
    ///   - rule: The rule that refused.
    ///   - message: The problem.
    ///   - hint: A suggestion for a fix; nil by default.
    ///   - certificate: The certificate that broke the rule; nil by default.
    ///   - causes: The failures of nested evaluators; empty by default.
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

    /// The hashes of the keys that the server presented, its own first, ready to be pinned if the server is the right
    /// one.
    ///
    /// Only the first key is proven: a server can send any other certificates along.
    public var presentedPins: [Certificate.PublicKeyHash] { chain.map(\.publicKeyHash) }

    /// Returns the failure with the host and the certificates of the server.
    func about(_ peer: PeerIdentity) -> TrustFailure {
        var failure = self
        failure.host = peer.host
        failure.chain = peer.certificates
        return failure
    }
}

extension TrustFailure: CustomStringConvertible, DetailedCause {
    /// The rule and the message.
    public var description: String { "\(rule.rawValue): \(message)" }

    var title: String { "rule \(rule.rawValue)" }

    /// The causes, the certificate that broke the rule, and up to ten keys of the server as pins.
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
