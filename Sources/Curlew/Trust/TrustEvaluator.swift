// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

//
// Trust: the identity of servers and clients. Evaluators are values that judge a server inside the TLS handshake; equal
// values share connections, different values never do. This folder does not depend on requests or transfers.

/// Decides whether a server is the host that it claims to be.
///
/// An evaluator runs once for each new connection, on the loop thread in the middle of the handshake, before any byte
/// of the request is sent. It must be quick, use only the CPU and never wait. It does not run for a connection that
/// resumes a TLS session of an equal evaluator, for up to a day, or an hour if ``wantsOCSPResponse`` is true. Equal
/// evaluators share connections and TLS sessions, different evaluators never do, so `==` must compare everything that
/// changes the decision.
///
/// ```swift
/// struct OurServersOnly: TrustEvaluator {
///     func evaluate(_ peer: PeerIdentity) throws(TrustFailure) {
///         try peer.requireValid()
///         guard peer.host.hasSuffix(".example.com") else { throw TrustFailure(.unlistedHost, "not one of ours") }
///     }
/// }
/// ```
public protocol TrustEvaluator: Hashable, Sendable {
    /// The roots with which the chain is verified before ``evaluate(_:)``; the system's roots by default.
    var roots: TrustRoots { get }

    /// Whether the client requests an OCSP response, a proof that the certificate was not revoked (RFC 6066 §8); false
    /// by default.
    var wantsOCSPResponse: Bool { get }

    /// Returns whether requests without TLS may be sent to a host; true by default, false for ``PinningTrust``.
    ///
    /// No evaluator runs for a connection without TLS.
    /// - Parameter host: An A-label in lower case or an IP address.
    func allowsPlainHTTP(to host: String) -> Bool

    /// Does work that must not happen in a handshake, such as reading files; loads ``roots`` by default.
    ///
    /// The method is called on the caller's thread before the first secure transfer, and again until it succeeds. Until
    /// it has succeeded, servers are refused and ``evaluate(_:)`` is not called. The method must not start requests
    /// that this evaluator would judge itself. A composite evaluator prepares its nested evaluators here.
    /// - Throws: `TrustFailure`, with which the transfer ends.
    func prepare() throws(TrustFailure)

    /// Returns to accept the server.
    ///
    /// - Parameter peer: The server and its certificates, verified by ``roots``.
    /// - Throws: `TrustFailure` to refuse it; the transfer then ends with `.untrusted` and this failure as its cause.
    func evaluate(_ peer: PeerIdentity) throws(TrustFailure)
}

extension TrustEvaluator {
    /// The system's roots.
    public var roots: TrustRoots { .system }

    /// False: no OCSP responses are requested.
    public var wantsOCSPResponse: Bool { false }

    /// Returns true.
    public func allowsPlainHTTP(to host: String) -> Bool { true }

    /// Loads the roots.
    ///
    /// - Throws: `TrustFailure` with rule `.roots` when no roots are available.
    public func prepare() throws(TrustFailure) { try roots.load() }

    /// Runs the evaluator for a server whose chain is verified by the evaluator's own roots.
    ///
    /// Use it in tests of evaluators and in composite evaluators.
    ///
    /// - Throws: `TrustFailure` when the server is refused.
    public func judge(_ peer: PeerIdentity) throws(TrustFailure) { try evaluate(peer.verified(by: roots)) }
}

/// An evaluator that requires more of a server than a valid chain.
///
/// Requests with a pinning evaluator are never sent without TLS. As a generic constraint the protocol rejects weaker
/// evaluators at compile time: `struct Payments<Trust: PinningTrust>`.
public protocol PinningTrust: TrustEvaluator {}

extension PinningTrust {
    /// Returns false, because pins cannot be checked without TLS.
    public func allowsPlainHTTP(to host: String) -> Bool { false }
}
