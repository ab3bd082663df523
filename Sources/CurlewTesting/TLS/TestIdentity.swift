// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// A certificate with its private key and the certificates between it and the root: what a server shows, or a client
/// that is asked for one.
public struct TestIdentity: Sendable {
    /// The certificate itself, PEM.
    public let certificatePEM: String
    /// The certificate itself, DER.
    public let certificateDER: [UInt8]
    /// The certificate and then the intermediate ones, PEM, in the order TLS sends them; the root is not among them.
    public let chainPEM: String
    /// The private key, PKCS #8 PEM without a passphrase.
    public let privateKeyPEM: String
    /// The SHA-256 digest of the certificate's SubjectPublicKeyInfo, 32 bytes: what a public-key pin compares
    /// (RFC 7469 §2.4).
    public let publicKeySHA256: [UInt8]

    init(_ certificate: MadeCertificate, intermediates: [String] = []) {
        certificatePEM = certificate.pem
        certificateDER = certificate.der
        chainPEM = ([certificate.pem] + intermediates).joined()
        privateKeyPEM = certificate.keyPEM
        publicKeySHA256 = certificate.publicKeySHA256
    }

    /// A certificate signed with its own key, which no authority vouches for.
    /// - Parameters:
    ///   - hosts: DNS names and IP addresses for the subject alternative name.
    ///   - validity: when it is valid; now, by default.
    /// - Throws: `TestingError` when OpenSSL refuses a value.
    public static func selfSigned(
        hosts: [String] = ["localhost", "127.0.0.1", "::1"],
        validity: CertificateValidity = .current
    ) throws -> TestIdentity {
        TestIdentity(try makeCertificate(CertificateTemplate(hosts: hosts, validity: validity), issuer: nil))
    }
}
