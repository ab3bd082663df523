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
    /// - Throws: `TrustFailure` with rule `.chain` or `.hostName`.
    public func evaluate(_ peer: PeerIdentity) throws(TrustFailure) { try peer.requireValid() }
}

extension TrustEvaluator where Self == SystemTrust {
    /// What the Linux distribution trusts.
    public static var system: SystemTrust { SystemTrust() }
}

/// Trusts chains that end at certificates of your own, alone or beside the system's.
public struct CustomRoots: TrustEvaluator {
    /// The system's roots and yours, or yours alone.
    public let roots: TrustRoots

    /// Takes certificates as bytes.
    ///
    /// Bytes that hold no certificate make every https transfer fail with `.untrusted`, naming what cannot be read.
    /// - Parameters:
    ///   - certificates: PEM texts, each with any number of certificates, or certificates in DER.
    ///   - addingToSystem: Whether the system's roots count too; only yours by default.
    public init(_ certificates: [[UInt8]], addingToSystem: Bool = false) {
        roots = addingToSystem ? .systemAnd(certificates) : .only(certificates)
    }

    /// Takes certificates as PEM text.
    ///
    /// - Parameters:
    ///   - pem: Any number of certificates.
    ///   - addingToSystem: Whether the system's roots count too; only yours by default.
    public init(pem: String, addingToSystem: Bool = false) {
        self.init([Array(pem.utf8)], addingToSystem: addingToSystem)
    }

    /// Accepts a valid chain up to one of the roots, for the right host.
    ///
    /// - Throws: `TrustFailure` with rule `.chain` or `.hostName`.
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
    public var roots: TrustRoots { .only([]) }

    /// Accepts every server.
    public func evaluate(_ peer: PeerIdentity) {}
}
