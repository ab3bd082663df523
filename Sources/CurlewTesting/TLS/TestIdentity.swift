// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// A certificate with its private key and the certificates between it and the root: what a server shows, or a client
/// that is asked for one.
public struct TestIdentity: Sendable {
    private let made: MadeCertificate
    /// What is sent after the certificate itself, in this order; the root is not among them.
    public let intermediates: [TestCertificate]

    init(_ made: MadeCertificate, intermediates: [TestCertificate] = []) {
        self.made = made
        self.intermediates = intermediates
    }

    /// The certificate itself.
    public var certificate: TestCertificate { made.certificate }
    /// The certificate itself, PEM.
    public var certificatePEM: String { certificate.pem }
    /// The certificate itself, DER.
    public var certificateDER: [UInt8] { certificate.der }
    /// The certificate and then the intermediate ones, in the order TLS sends them.
    public var chain: [TestCertificate] { [certificate] + intermediates }
    /// The certificate and then the intermediate ones, PEM, in the order TLS sends them; the root is not among them.
    public var chainPEM: String { chain.map(\.pem).joined() }
    /// The private key, PKCS #8 PEM without a passphrase.
    public var privateKeyPEM: String { made.keyPEM }
    /// The SHA-256 digest of the certificate's SubjectPublicKeyInfo, 32 bytes: what a public-key pin compares
    /// (RFC 7469 §2.4).
    public var publicKeySHA256: [UInt8] { certificate.publicKeySHA256 }

    // MARK: Wrong ways

    /// A certificate signed with its own key, which no authority vouches for.
    /// - Parameters:
    ///   - hosts: DNS names and IP addresses for the subject alternative name.
    ///   - validity: when it is valid; now, by default.
    /// - Throws: `TestingError` when OpenSSL refuses a value.
    public static func selfSigned(
        hosts: [String] = ["localhost", "127.0.0.1", "::1"],
        validity: CertificateValidity = .current
    ) throws -> TestIdentity {
        try selfSigned(CertificateOptions(hosts: hosts, validity: validity))
    }

    /// A certificate signed with its own key, which no authority vouches for.
    /// - Parameter options: what it says.
    /// - Throws: `TestingError` when OpenSSL refuses a value.
    public static func selfSigned(_ options: CertificateOptions) throws -> TestIdentity {
        TestIdentity(try makeCertificate(options, as: .leaf, issuer: nil))
    }

    /// A certificate signed with this one's key, though this one is no authority: no client may accept it.
    ///
    /// This certificate and its intermediates are in the chain.
    /// - Parameter options: what it says.
    /// - Throws: `TestingError` when OpenSSL refuses a value.
    public func issue(_ options: CertificateOptions = CertificateOptions()) throws -> TestIdentity {
        TestIdentity(try makeCertificate(options, as: .leaf, issuer: made), intermediates: chain)
    }

    /// The same certificate and key, followed by other certificates: too few, too many, strangers or in any order.
    ///
    /// ```swift
    /// let incomplete = identity.serving(intermediates: [])
    /// let shuffled = identity.serving(intermediates: identity.intermediates.reversed())
    /// let withRoot = identity.serving(intermediates: identity.intermediates + [root.certificate])
    /// ```
    /// - Parameter intermediates: what is sent after the certificate itself, in this order.
    public func serving(intermediates: [TestCertificate]) -> TestIdentity {
        TestIdentity(made, intermediates: intermediates)
    }

    // MARK: For clients

    /// The private key, PKCS #8 PEM encrypted with AES-256.
    /// - Parameter passphrase: what decrypts it.
    /// - Throws: `TestingError` when OpenSSL refuses.
    public func privateKeyPEM(passphrase: String) throws -> String {
        try encryptedKey(made, passphrase: passphrase)
    }

    /// The certificate, the intermediate ones and the key in one PKCS #12 file (RFC 7292), encrypted.
    /// - Parameter passphrase: what decrypts it; may be empty.
    /// - Throws: `TestingError` when OpenSSL refuses.
    public func pkcs12(passphrase: String) throws -> [UInt8] {
        try encodePKCS12(made, intermediates: intermediates, passphrase: passphrase)
    }
}
