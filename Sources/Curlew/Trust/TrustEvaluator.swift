// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// Trust: who we talk to. Evaluators are values that judge a server inside the TLS handshake; equal values share their
// connections, different ones never do. This room knows nothing of requests or transfers.

/// Decides whether a server is the one it claims to be.
///
/// An evaluator is asked once for each new connection, on the loop thread in the middle of the handshake, before a
/// byte of the request is sent: it must be quick, use the CPU only and never wait. A connection that resumes a TLS
/// session made under an equal evaluator is not asked about again. Equal evaluators share connections and TLS sessions;
/// different ones never do, so everything that changes the judgement belongs to `==`.
public protocol TrustEvaluator: Hashable, Sendable {
    /// The certificates a chain may end at; the system's by default.
    var roots: TrustRoots { get }

    /// Returns to accept the server.
    ///
    /// - Parameter peer: The server, its certificates and OpenSSL's verdict on them.
    /// - Throws: `TrustFailure` to refuse it; the transfer then ends with `.untrusted` and this failure as its cause.
    func evaluate(_ peer: PeerIdentity) throws(TrustFailure)
}

extension TrustEvaluator {
    /// The system's roots.
    public var roots: TrustRoots { .system }
}

/// Where chains of certificates may end.
public enum TrustRoots: Hashable, Sendable {
    /// The roots of the Linux distribution, or those of `SSL_CERT_FILE` and `SSL_CERT_DIR` when these are set.
    case system
    /// These certificates alone, each source a PEM text with any number of them or one in DER.
    case only([[UInt8]])
    /// The system's and these.
    case systemAnd([[UInt8]])
}

/// A server as its TLS handshake shows it: certificates and what OpenSSL says of them.
public struct PeerIdentity: Sendable {
    /// The host of the URL, an A-label in lower case or an IP address.
    public let host: String
    /// The port of the URL.
    public let port: Int
    /// DER certificates as the server sent them, its own first.
    public let certificates: [[UInt8]]
    /// DER certificates from the server's own to the root, as verified; empty when `chainError` says why not.
    public let verifiedChain: [[UInt8]]
    /// OpenSSL's reason to reject the chain, nil when it is valid up to one of the roots.
    public let chainError: String?
    /// Which certificate `chainError` is about, 0 for the server's own.
    public let chainErrorDepth: Int
    /// Whether the server's certificate names the host: a DNS name or IP address among its alternative names, wildcards
    /// for the whole left-most label only, never the common name (RFC 9525 §6).
    public let isHostNamed: Bool

    /// Makes an identity, for testing evaluators.
    ///
    /// - Parameters:
    ///   - host: The host of the URL.
    ///   - port: The port of the URL, 443 by default.
    ///   - certificates: DER certificates as served.
    ///   - verifiedChain: DER certificates as verified.
    ///   - chainError: Why the chain is rejected; nil for a valid one.
    ///   - chainErrorDepth: Which certificate that is about.
    ///   - isHostNamed: Whether the certificate names the host.
    public init(
        host: String, port: Int = 443, certificates: [[UInt8]] = [], verifiedChain: [[UInt8]] = [],
        chainError: String? = nil, chainErrorDepth: Int = 0, isHostNamed: Bool = true
    ) {
        self.host = host
        self.port = port
        self.certificates = certificates
        self.verifiedChain = verifiedChain
        self.chainError = chainError
        self.chainErrorDepth = chainErrorDepth
        self.isHostNamed = isHostNamed
    }

    /// Accepts a server whose chain is valid and whose certificate names the host.
    ///
    /// - Throws: `TrustFailure` with rule `.chain` or `.hostName`.
    public func requireValid() throws(TrustFailure) {
        if let chainError {
            let place =
                chainErrorDepth == 0 ? "the server's certificate" : "certificate \(chainErrorDepth) of the chain"
            throw TrustFailure(.chain, "\(chainError) (\(place))")
        }
        guard isHostNamed else {
            throw TrustFailure(.hostName, "the certificate is not for \(host)")
        }
    }
}

/// Why a server was refused: the rule and a sentence.
public struct TrustFailure: Error, Hashable, CustomStringConvertible {
    /// A rule that refused a server; an open set, so that evaluators name their own.
    public struct Rule: RawRepresentable, Hashable, Sendable {
        /// The rule's stable name.
        public let rawValue: String

        /// Names a rule.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The chain of certificates is not valid up to a trusted root.
        public static let chain = Rule(rawValue: "chain")
        /// The certificate does not name the host.
        public static let hostName = Rule(rawValue: "hostName")
    }

    /// The rule that refused.
    public let rule: Rule
    /// What was wrong, in a few words.
    public let message: String

    /// Makes a failure.
    ///
    /// - Parameters:
    ///   - rule: The rule that refused.
    ///   - message: What was wrong.
    public init(_ rule: Rule, _ message: String) {
        self.rule = rule
        self.message = message
    }

    /// The rule and the sentence.
    public var description: String { "\(rule.rawValue): \(message)" }
}
