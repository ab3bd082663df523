// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Accepts a server whose chain is valid up to one of the Linux distribution's roots and whose certificate names the
/// host.
///
/// Roots are read from `SSL_CERT_FILE` and `SSL_CERT_DIR` when set, otherwise from the default paths of Debian, Alpine,
/// Red Hat and SUSE. They are read once per process, at the first https request.
public struct SystemTrust: TrustEvaluator {
    /// Creates the evaluator; all instances are equal.
    public init() {}

    /// Accepts a valid chain for the right host.
    ///
    /// - Throws: `TrustFailure` with rule `.chain`, `.validity` or `.hostName`.
    public func evaluate(_ peer: PeerIdentity) throws(TrustFailure) { try peer.requireValid() }
}

extension TrustEvaluator where Self == SystemTrust {
    /// The evaluator that trusts the roots of the Linux distribution.
    public static var system: SystemTrust { SystemTrust() }
}

/// Accepts a server whose chain ends at one of your own certificates, alone or in addition to the system's roots.
///
/// Any certificate can be a root, including an intermediate certificate or the server's own. A server that presents the
/// certificate of an authority among the roots is refused, unless ``ChainRules/authoritiesAsServers`` is applied.
public struct CustomRoots: TrustEvaluator {
    /// The certificates at which a chain may end.
    public let roots: TrustRoots

    /// Creates the evaluator from roots, for example `CustomRoots(.systemOr(bundled))`.
    public init(_ roots: TrustRoots) { self.roots = roots }

    /// Creates the evaluator from certificates.
    ///
    /// - Parameters:
    ///   - certificates: At least one.
    ///   - addingToSystem: Whether the system's roots are trusted too; false by default.
    /// - Throws: `TrustFailure.InvalidPolicy` when the list is empty.
    public init(_ certificates: [Certificate], addingToSystem: Bool = false) throws(TrustFailure.InvalidPolicy) {
        guard !certificates.isEmpty else {
            throw TrustFailure.InvalidPolicy("No roots are given.", hint: "An empty list rejects every server.")
        }
        roots = addingToSystem ? .systemAnd(certificates) : .only(certificates)
    }

    /// Creates the evaluator from certificates in PEM text.
    ///
    /// - Parameters:
    ///   - pem: At least one certificate.
    ///   - addingToSystem: Whether the system's roots are trusted too; false by default.
    /// - Throws: `TrustFailure.InvalidPolicy` when the text has no certificate, or a certificate cannot be read.
    public init(pem: String, addingToSystem: Bool = false) throws(TrustFailure.InvalidPolicy) {
        try self.init(Certificate.all(pem: pem), addingToSystem: addingToSystem)
    }

    /// Creates the evaluator from a PEM or DER file, which is read now, on the calling thread.
    ///
    /// - Parameters:
    ///   - file: The path of the file.
    ///   - addingToSystem: Whether the system's roots are trusted too; false by default.
    /// - Throws: `TrustFailure.InvalidPolicy` when the file cannot be read or has no certificate.
    public init(file: String, addingToSystem: Bool = false) throws(TrustFailure.InvalidPolicy) {
        try self.init(Certificate.all(file: file), addingToSystem: addingToSystem)
    }

    /// Creates the evaluator from every `.cer`, `.crt`, `.der` and `.pem` file of a directory, which are read now, on
    /// the calling thread.
    ///
    /// - Parameters:
    ///   - directory: The path of the directory.
    ///   - addingToSystem: Whether the system's roots are trusted too; false by default.
    /// - Throws: `TrustFailure.InvalidPolicy` when the directory has no such file, or one cannot be read.
    public init(directory: String, addingToSystem: Bool = false) throws(TrustFailure.InvalidPolicy) {
        try self.init(Certificate.all(directory: directory), addingToSystem: addingToSystem)
    }

    /// Accepts a valid chain up to one of the roots, for the right host.
    ///
    /// - Throws: `TrustFailure` with rule `.chain`, `.validity` or `.hostName`.
    public func evaluate(_ peer: PeerIdentity) throws(TrustFailure) { try peer.requireValid() }
}

/// Accepts every server, so anything between client and server can read and change all traffic.
///
/// Use it only for tests or for a device on the bench. The initializer requires a reason, so that a reviewer finds it
/// in the code.
public struct InsecureTrust: TrustEvaluator {
    /// The reason why servers are not checked.
    public let reason: String

    /// Accepts every server.
    ///
    /// - Parameter reason: The reason why servers are not checked, for readers of the code.
    public init(reason: String) { self.reason = reason }

    /// Empty, because the evaluator verifies no chain.
    public var roots: TrustRoots { .empty }

    /// Accepts every server.
    public func evaluate(_ peer: PeerIdentity) {}
}

/// Accepts the servers that a closure accepts.
///
/// Closures cannot be compared, so `id` identifies the closure. Give every closure that decides differently its own
/// `id`; evaluators with the same `id` share connections.
///
/// ```swift
/// let trust = CustomTrust(id: "ours-2026") { peer throws(TrustFailure) in
///     try peer.requireValid()
///     guard peer.verifiedChain.last?.subject == "CN=Our Root" else { throw TrustFailure(.chain, "not our root") }
/// }
/// ```
public struct CustomTrust: TrustEvaluator {
    /// The string that identifies the closure when evaluators are compared.
    public let id: String
    /// The certificates at which a chain may end.
    public let roots: TrustRoots
    /// Whether the client requests an OCSP response from servers.
    public let wantsOCSPResponse: Bool
    private let refusesPlainHTTP: Bool
    private let body: @Sendable (PeerIdentity) throws(TrustFailure) -> Void

    /// Creates an evaluator from a closure.
    ///
    /// - Parameters:
    ///   - id: The string that identifies the closure when evaluators are compared.
    ///   - roots: The certificates at which a chain may end; the system's roots by default.
    ///   - wantsOCSPResponse: Whether the client requests an OCSP response from servers; false by default.
    ///   - allowsPlainHTTP: Whether requests without TLS may be sent; the closure is not called for them. True by
    ///     default.
    ///   - evaluate: Throws to refuse a server. It runs on the loop thread, so it must be quick and never wait. Nothing
    ///     is checked before the call: begin with `peer.requireValid()`, as other evaluators do.
    public init(
        id: String, roots: TrustRoots = .system, wantsOCSPResponse: Bool = false, allowsPlainHTTP: Bool = true,
        evaluate: @escaping @Sendable (PeerIdentity) throws(TrustFailure) -> Void
    ) {
        self.id = id
        self.roots = roots
        self.wantsOCSPResponse = wantsOCSPResponse
        refusesPlainHTTP = !allowsPlainHTTP
        body = evaluate
    }

    /// The value given to the initializer.
    public func allowsPlainHTTP(to host: String) -> Bool { !refusesPlainHTTP }

    /// Calls the closure.
    ///
    /// - Throws: The error of the closure.
    public func evaluate(_ peer: PeerIdentity) throws(TrustFailure) { try body(peer) }

    /// Whether id, roots, ``wantsOCSPResponse`` and the permission of plain HTTP are equal.
    public static func == (one: CustomTrust, other: CustomTrust) -> Bool {
        one.id == other.id && one.roots == other.roots && one.wantsOCSPResponse == other.wantsOCSPResponse
            && one.refusesPlainHTTP == other.refusesPlainHTTP
    }

    /// Hashes the id.
    public func hash(into hasher: inout Hasher) { hasher.combine(id) }
}
