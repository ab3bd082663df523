// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

//
// Trust: who we talk to. Evaluators are values that judge a server inside the TLS handshake; equal values share their
// connections, different ones never do. This room knows nothing of requests or transfers.

/// Decides whether a server is the one it claims to be.
///
/// An evaluator is asked once for each new connection, on the loop thread in the middle of the handshake, before a
/// byte of the request is sent: it must be quick, use the CPU only and never wait. A connection that resumes a TLS
/// session made under an equal evaluator is not asked about again, for a day or, if ``wantsStaple``, an hour. Equal evaluators share connections and TLS sessions;
/// different ones never do, so everything that changes the judgement belongs to `==`.
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
    /// Where the chain may end that ``evaluate(_:)`` is shown; the system's roots by default.
    var roots: TrustRoots { get }

    /// Whether servers are asked for a proof that their certificate was not revoked, an OCSP response (RFC 6066 §8);
    /// false by default.
    var wantsStaple: Bool { get }

    /// Whether requests without TLS may be sent to a host, of which no evaluator is ever asked; true by default, false
    /// for ``PinningTrust``.
    ///
    /// - Parameter host: An A-label in lower case or an IP address.
    func allowsPlainHTTP(to host: String) -> Bool

    /// Does what must not be done in a handshake, such as reading files; called on the caller's thread before the first
    /// secure transfer, and again until it succeeds. Loads ``roots`` by default.
    ///
    /// Before it has succeeded, servers are refused and nobody is asked. It must start no requests that it would judge
    /// itself. An evaluator that asks others prepares them here.
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

    /// No OCSP responses.
    public var wantsStaple: Bool { false }

    /// Where TLS is not spoken, nobody is judged.
    public func allowsPlainHTTP(to host: String) -> Bool { true }

    /// Loads the roots.
    ///
    /// - Throws: `TrustFailure` with rule `.roots` when there are none.
    public func prepare() throws(TrustFailure) { try roots.load() }

    /// Asks the evaluator about a server whose chain is verified by the evaluator's own roots: for tests of evaluators, and
    /// evaluators that ask others.
    ///
    /// - Throws: `TrustFailure` when the server is refused.
    public func judge(_ peer: PeerIdentity) throws(TrustFailure) { try evaluate(peer.verified(by: roots)) }
}

/// An evaluator that knows more of its servers than that an authority vouches for them.
///
/// Where such a one is in charge, nothing is sent without TLS. As a constraint it keeps code that must be safe from being
/// given less: `struct Payments<Trust: PinningTrust>`.
public protocol PinningTrust: TrustEvaluator {}

extension PinningTrust {
    /// Nothing without TLS, where pins say nothing.
    public func allowsPlainHTTP(to host: String) -> Bool { false }
}
