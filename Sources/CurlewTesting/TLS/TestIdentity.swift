// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// A certificate with its private key and the intermediate certificates below the root.
///
/// A server presents an identity, and so does a client if the server requests a certificate.
public struct TestIdentity: Sendable {
    private let made: MadeCertificate
    /// The certificates sent after the certificate itself, in this order, excluding the root.
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
    /// The certificate and the intermediates in the order in which TLS sends them.
    public var chain: [TestCertificate] { [certificate] + intermediates }
    /// The certificate and the intermediates, PEM, in the order in which TLS sends them, excluding the root.
    public var chainPEM: String { chain.map(\.pem).joined() }
    /// The private key, PKCS #8 PEM without a passphrase.
    public var privateKeyPEM: String { made.keyPEM }
    /// The SHA-256 digest of the certificate's SubjectPublicKeyInfo, 32 bytes, as used by public-key pins
    /// (RFC 7469 §2.4).
    public var publicKeySHA256: [UInt8] { certificate.publicKeySHA256 }

    // MARK: Invalid identities

    /// Makes a self-signed certificate, which no authority vouches for.
    /// - Parameters:
    ///   - hosts: DNS names and IP addresses for the subject alternative name.
    ///   - validity: The validity; `current` by default.
    /// - Throws: `TestingError` if OpenSSL rejects a value.
    public static func selfSigned(
        hosts: [String] = ["localhost", "127.0.0.1", "::1"],
        validity: CertificateValidity = .current
    ) throws -> TestIdentity {
        try selfSigned(CertificateOptions(hosts: hosts, validity: validity))
    }

    /// Makes a self-signed certificate, which no authority vouches for.
    /// - Parameter options: The contents of the certificate.
    /// - Throws: `TestingError` if OpenSSL rejects a value.
    public static func selfSigned(_ options: CertificateOptions) throws -> TestIdentity {
        TestIdentity(try makeCertificate(options, as: .leaf, issuer: nil))
    }

    /// Issues a certificate signed with this identity's key, although this identity is no authority.
    ///
    /// No client may accept the result. Its chain contains this identity's certificate and intermediates.
    /// - Parameter options: The contents of the certificate.
    /// - Throws: `TestingError` if OpenSSL rejects a value.
    public func issue(_ options: CertificateOptions = CertificateOptions()) throws -> TestIdentity {
        TestIdentity(try makeCertificate(options, as: .leaf, issuer: made), intermediates: chain)
    }

    /// Returns an identity with the same certificate and key but another list of intermediates.
    ///
    /// The list can be incomplete, too long, unrelated or in any order.
    ///
    /// ```swift
    /// let incomplete = identity.serving(intermediates: [])
    /// let shuffled = identity.serving(intermediates: identity.intermediates.reversed())
    /// let withRoot = identity.serving(intermediates: identity.intermediates + [root.certificate])
    /// ```
    /// - Parameter intermediates: The certificates to send after the certificate itself, in this order.
    public func serving(intermediates: [TestCertificate]) -> TestIdentity {
        TestIdentity(made, intermediates: intermediates)
    }

    // MARK: Encrypted forms for clients

    /// Returns the private key as PKCS #8 PEM encrypted with AES-256.
    /// - Parameter passphrase: The passphrase that decrypts the key.
    /// - Throws: `TestingError` if OpenSSL reports an error.
    public func privateKeyPEM(passphrase: String) throws -> String {
        try encryptedKey(made, passphrase: passphrase)
    }

    /// Returns the certificate, the intermediates and the key as one encrypted PKCS #12 file (RFC 7292).
    /// - Parameter passphrase: The passphrase that decrypts the file; may be empty.
    /// - Throws: `TestingError` if OpenSSL reports an error.
    public func pkcs12(passphrase: String) throws -> [UInt8] {
        try encodePKCS12(made, intermediates: intermediates, passphrase: passphrase)
    }
}
