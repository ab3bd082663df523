// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Trusts what the Linux distribution trusts: a valid chain up to one of its roots, for the right host.
///
/// Roots come from `SSL_CERT_FILE` and `SSL_CERT_DIR` when set, else from where Debian, Alpine, Red Hat and SUSE keep
/// them. They are read once for the process, at the first https request.
public struct SystemTrust: TrustEvaluator {
    /// Makes the evaluator; all are equal.
    public init() {}

    /// Accepts a valid chain for the right host.
    ///
    /// - Throws: `TrustFailure` with rule `.chain`, `.validity` or `.hostName`.
    public func evaluate(_ peer: PeerIdentity) throws(TrustFailure) { try peer.requireValid() }
}

extension TrustEvaluator where Self == SystemTrust {
    /// What the Linux distribution trusts.
    public static var system: SystemTrust { SystemTrust() }
}

/// Trusts chains that end at certificates of your own, alone or beside the system's.
///
/// Any certificate can be such an end, also an intermediate one or the server's own. A server that shows the certificate of
/// an authority among them is refused, unless ``ChainRules/authoritiesAsServers`` is applied.
public struct CustomRoots: TrustEvaluator {
    /// Where chains may end.
    public let roots: TrustRoots

    /// Takes roots as they are: `CustomRoots(.systemOr(bundled))`.
    public init(_ roots: TrustRoots) { self.roots = roots }

    /// Takes certificates.
    ///
    /// - Parameters:
    ///   - certificates: At least one.
    ///   - addingToSystem: Whether the system's roots count too; only yours by default.
    /// - Throws: `InvalidTrust` when there is none.
    public init(_ certificates: [Certificate], addingToSystem: Bool = false) throws(InvalidTrust) {
        guard !certificates.isEmpty else {
            throw InvalidTrust("No roots are given.", hint: "Without any, no server would be accepted.")
        }
        roots = addingToSystem ? .systemAnd(certificates) : .only(certificates)
    }

    /// Takes certificates as PEM text.
    ///
    /// - Parameters:
    ///   - pem: At least one certificate.
    ///   - addingToSystem: Whether the system's roots count too; only yours by default.
    /// - Throws: `InvalidTrust` when there is none, or one cannot be read.
    public init(pem: String, addingToSystem: Bool = false) throws(InvalidTrust) {
        try self.init(Certificate.all(pem: pem), addingToSystem: addingToSystem)
    }

    /// Takes the certificates of a file, PEM or DER, read now on the calling thread.
    ///
    /// - Parameters:
    ///   - file: Its path.
    ///   - addingToSystem: Whether the system's roots count too; only yours by default.
    /// - Throws: `InvalidTrust` when it cannot be read.
    public init(file: String, addingToSystem: Bool = false) throws(InvalidTrust) {
        try self.init(Certificate.all(file: file), addingToSystem: addingToSystem)
    }

    /// Takes the certificates of every `.cer`, `.crt`, `.der` and `.pem` file of a directory, read now on the calling
    /// thread.
    ///
    /// - Parameters:
    ///   - directory: Its path.
    ///   - addingToSystem: Whether the system's roots count too; only yours by default.
    /// - Throws: `InvalidTrust` when there is no such file, or one cannot be read.
    public init(directory: String, addingToSystem: Bool = false) throws(InvalidTrust) {
        try self.init(Certificate.all(directory: directory), addingToSystem: addingToSystem)
    }

    /// Accepts a valid chain up to one of the roots, for the right host.
    ///
    /// - Throws: `TrustFailure` with rule `.chain`, `.validity` or `.hostName`.
    public func evaluate(_ peer: PeerIdentity) throws(TrustFailure) { try peer.requireValid() }
}

/// Trusts anybody: whoever can reach the connection can read and change everything on it.
///
/// For a test or a machine on the bench. The reason is asked for so that a reviewer finds it in the code.
public struct InsecureTrust: TrustEvaluator {
    /// Why nothing is checked here.
    public let reason: String

    /// Accepts every server.
    ///
    /// - Parameter reason: Why nothing is checked here, for whoever reads the code.
    public init(reason: String) { self.reason = reason }

    /// No roots are needed.
    public var roots: TrustRoots { .nobody }

    /// Accepts every server.
    public func evaluate(_ peer: PeerIdentity) {}
}

/// Trusts what a closure accepts.
///
/// Closures cannot be compared, so the evaluator is known by its `id`: give another one to whatever judges differently,
/// or it would use the connections of the first.
///
/// ```swift
/// let trust = CustomTrust(id: "ours-2026") { peer throws(TrustFailure) in
///     try peer.requireValid()
///     guard peer.verifiedChain.last?.subject == "CN=Our Root" else { throw TrustFailure(.chain, "not our root") }
/// }
/// ```
public struct CustomTrust: TrustEvaluator {
    /// What stands for the closure when evaluators are compared.
    public let id: String
    /// Where chains may end.
    public let roots: TrustRoots
    /// Whether servers are asked for an OCSP response.
    public let wantsStaple: Bool
    private let isForTLSAlone: Bool
    private let body: @Sendable (PeerIdentity) throws(TrustFailure) -> Void

    /// Makes an evaluator of a closure.
    ///
    /// - Parameters:
    ///   - id: What stands for the closure when evaluators are compared.
    ///   - roots: Where chains may end; the system's roots by default.
    ///   - wantsStaple: Whether servers are asked for an OCSP response; false by default.
    ///   - allowsPlainHTTP: Whether requests without TLS may be sent, of which the closure never hears; true by default.
    ///   - evaluate: Throws to refuse a server. It runs on the loop thread: it must be quick and never wait. Nothing is
    ///     checked before: `peer.requireValid()` is what other evaluators begin with.
    public init(
        id: String, roots: TrustRoots = .system, wantsStaple: Bool = false, allowsPlainHTTP: Bool = true,
        evaluate: @escaping @Sendable (PeerIdentity) throws(TrustFailure) -> Void
    ) {
        self.id = id
        self.roots = roots
        self.wantsStaple = wantsStaple
        isForTLSAlone = !allowsPlainHTTP
        body = evaluate
    }

    /// As it was given.
    public func allowsPlainHTTP(to host: String) -> Bool { !isForTLSAlone }

    /// Asks the closure.
    ///
    /// - Throws: What the closure throws.
    public func evaluate(_ peer: PeerIdentity) throws(TrustFailure) { try body(peer) }

    /// Whether id, roots and what is wanted are the same.
    public static func == (one: CustomTrust, other: CustomTrust) -> Bool {
        one.id == other.id && one.roots == other.roots && one.wantsStaple == other.wantsStaple
            && one.isForTLSAlone == other.isForTLSAlone
    }

    /// Hashes the id.
    public func hash(into hasher: inout Hasher) { hasher.combine(id) }
}
