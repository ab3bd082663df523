// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// TLS makes certificates at run time, so that no key is in the repository and none can expire there. Tests call
// TestAuthority; MockServer is given the identities.

/// A certificate authority made at run time: a self-signed root or, by `intermediate(commonName:)`, one below it.
///
/// Keys are new at each run (EC on P-256).
///
/// ```swift
/// let authority = try TestAuthority()
/// let server = try MockServer(tls: authority.issue())
/// // the client under test trusts authority.certificatePEM
/// let expired = try authority.issue(validity: .expired)
/// let wrong = try authority.issue(hosts: ["wrong.test"])
/// let nameless = try authority.issue(hosts: [], commonName: "localhost")
/// ```
public struct TestAuthority: Sendable {
    private let certificate: MadeCertificate
    /// The certificates from this authority up to, without, the root; empty for a root.
    private let path: [String]

    /// A root authority.
    /// - Parameter commonName: the name in its certificate.
    /// - Throws: `TestingError` when OpenSSL refuses a value.
    public init(commonName: String = "Test Root") throws {
        let template = CertificateTemplate(commonName: commonName, isAuthority: true)
        self.init(certificate: try makeCertificate(template, issuer: nil), path: [])
    }

    private init(certificate: MadeCertificate, path: [String]) {
        self.certificate = certificate
        self.path = path
    }

    /// The authority's certificate, PEM: what a client has to trust.
    public var certificatePEM: String { certificate.pem }
    /// The authority's certificate, DER.
    public var certificateDER: [UInt8] { certificate.der }
    /// The SHA-256 digest of the authority's SubjectPublicKeyInfo, 32 bytes.
    public var publicKeySHA256: [UInt8] { certificate.publicKeySHA256 }

    /// An authority below this one.
    ///
    /// What it issues carries its certificate in the chain.
    /// - Parameter commonName: the name in its certificate.
    /// - Throws: `TestingError` when OpenSSL refuses a value.
    public func intermediate(commonName: String = "Test Intermediate") throws -> TestAuthority {
        let template = CertificateTemplate(commonName: commonName, isAuthority: true)
        let made = try makeCertificate(template, issuer: certificate)
        return TestAuthority(certificate: made, path: [made.pem] + path)
    }

    /// A certificate for servers and clients.
    /// - Parameters:
    ///   - hosts: DNS names (a leading `*.` is allowed) and IP addresses for the subject alternative name; without any
    ///     the certificate has no such extension.
    ///   - commonName: the subject's common name; by default the subject has only an organisation, as clients must
    ///     not look there (RFC 9525 §2).
    ///   - validity: when it is valid; now, by default.
    /// - Throws: `TestingError` when OpenSSL refuses a value.
    public func issue(
        hosts: [String] = ["localhost", "127.0.0.1", "::1"],
        commonName: String? = nil,
        validity: CertificateValidity = .current
    ) throws -> TestIdentity {
        let template = CertificateTemplate(commonName: commonName, hosts: hosts, validity: validity)
        return TestIdentity(try makeCertificate(template, issuer: certificate), intermediates: path)
    }
}
