// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// TLS makes certificates at run time, so that the repository contains no keys and no certificates that can expire.
// Tests call TestAuthority and pass the identities to MockServer.

/// A certificate authority made at run time: a self-signed root or an intermediate from `intermediate(commonName:)`.
///
/// Each run makes new keys (EC on P-256, unless the options select another kind).
///
/// ```swift
/// let authority = try TestAuthority()
/// let server = try MockServer(tls: authority.issue())
/// // the client under test trusts authority.certificatePEM
/// let expired = try authority.issue(validity: .expired)
/// let wrong = try authority.issue(hosts: ["wrong.test"])
/// let nameless = try authority.issue(hosts: [], commonName: "localhost")
/// let weak = try authority.issue(CertificateOptions(key: .rsa(1024), digest: .sha1))
/// ```
public struct TestAuthority: Sendable {
    let made: MadeCertificate
    private let options: CertificateOptions
    /// The issuer of the authority's certificate; nil for a root, which is self-signed.
    private let issuer: MadeCertificate?
    /// The certificates from this authority up to the root, excluding the root; empty for a root.
    public let intermediates: [TestCertificate]

    /// Creates a root authority.
    /// - Parameters:
    ///   - commonName: The common name in its certificate.
    ///   - key: The kind of its key; EC on P-256 by default.
    ///   - validity: The validity of its certificate; `current` by default.
    /// - Throws: `TestingError` if OpenSSL rejects a value.
    public init(
        commonName: String = "Test Root", key: TestKey = .p256, validity: CertificateValidity = .current
    ) throws {
        try self.init(CertificateOptions(commonName: commonName, validity: validity, key: key))
    }

    /// Creates a root authority.
    /// - Parameter options: The contents of its certificate.
    /// - Throws: `TestingError` if OpenSSL rejects a value.
    public init(_ options: CertificateOptions) throws {
        try self.init(options, issuer: nil, above: [])
    }

    private init(_ options: CertificateOptions, issuer: MadeCertificate?, above: [TestCertificate]) throws {
        made = try makeCertificate(options, as: issuer == nil ? .root : .intermediate, issuer: issuer)
        self.options = options
        self.issuer = issuer
        intermediates = issuer == nil ? [] : [made.certificate] + above
    }

    /// The authority's certificate.
    public var certificate: TestCertificate { made.certificate }
    /// The authority's certificate, PEM; a client must trust it to accept the issued certificates.
    public var certificatePEM: String { certificate.pem }
    /// The authority's certificate, DER.
    public var certificateDER: [UInt8] { certificate.der }
    /// The SHA-256 digest of the authority's SubjectPublicKeyInfo, 32 bytes.
    public var publicKeySHA256: [UInt8] { certificate.publicKeySHA256 }
    /// The authority's private key, PKCS #8 PEM without a passphrase.
    public var privateKeyPEM: String { made.keyPEM }

    /// The common name in the authority's certificate.
    var commonName: String? {
        options.commonName ?? (issuer == nil ? CertificateRole.root : .intermediate).defaultCommonName
    }

    // MARK: Derived authorities

    /// Makes an intermediate authority below this authority.
    ///
    /// Identities that the intermediate issues contain its certificate in their chain.
    /// - Parameter commonName: The common name in its certificate; "Test Intermediate" by default, with a number if it
    ///   is not the first intermediate below the root.
    /// - Throws: `TestingError` if OpenSSL rejects a value.
    public func intermediate(commonName: String? = nil) throws -> TestAuthority {
        try intermediate(CertificateOptions(commonName: commonName))
    }

    /// Makes an intermediate authority below this authority.
    ///
    /// Identities that the intermediate issues contain its certificate in their chain.
    /// - Parameter options: The contents of its certificate, which may state that it is not an authority.
    /// - Throws: `TestingError` if OpenSSL rejects a value.
    public func intermediate(_ options: CertificateOptions) throws -> TestAuthority {
        var options = options
        if options.commonName == nil, !intermediates.isEmpty {
            // With its issuer's name it would be self-issued, and path lengths do not count such certificates
            // (RFC 5280 §4.2.1.9).
            options.commonName = "Test Intermediate \(intermediates.count + 1)"
        }
        return try TestAuthority(options, issuer: made, above: intermediates)
    }

    /// Makes an authority with the same name and key whose certificate another authority signs.
    ///
    /// Certificates issued by this authority verify with both certificates, and so do those issued by the result. The
    /// chain of an identity that the result issues contains the certificate signed by the other authority.
    /// - Parameters:
    ///   - other: The authority that signs.
    ///   - validity: The validity of the new certificate; `current` by default.
    /// - Throws: `TestingError` if OpenSSL rejects a value.
    public func crossSigned(
        by other: TestAuthority, validity: CertificateValidity = .current
    ) throws -> TestAuthority {
        try TestAuthority(again(validity), issuer: other.made, above: other.intermediates)
    }

    /// Renews the authority's certificate: the same name, key and issuer, another serial number and validity.
    /// - Parameter validity: The validity of the new certificate; `current` by default.
    /// - Throws: `TestingError` if OpenSSL rejects a value.
    public func renewed(validity: CertificateValidity = .current) throws -> TestAuthority {
        try TestAuthority(again(validity), issuer: issuer, above: Array(intermediates.dropFirst()))
    }

    private func again(_ validity: CertificateValidity) -> CertificateOptions {
        var options = options
        options.commonName = commonName
        options.privateKeyPEM = privateKeyPEM
        options.serialNumber = nil
        options.validity = validity
        return options
    }

    // MARK: Leaves

    /// Issues a certificate for servers and clients.
    /// - Parameters:
    ///   - hosts: DNS names (a leading `*.` is allowed) and IP addresses for the subject alternative name; an empty
    ///     array omits the extension.
    ///   - commonName: The subject's common name; by default the subject has only an organisation, because clients must
    ///     not use the common name (RFC 9525 §2).
    ///   - validity: The validity; `current` by default.
    /// - Throws: `TestingError` if OpenSSL rejects a value.
    public func issue(
        hosts: [String] = ["localhost", "127.0.0.1", "::1"],
        commonName: String? = nil,
        validity: CertificateValidity = .current
    ) throws -> TestIdentity {
        try issue(CertificateOptions(commonName: commonName, hosts: hosts, validity: validity))
    }

    /// Issues a certificate for servers and clients.
    /// - Parameter options: The contents of the certificate.
    /// - Throws: `TestingError` if OpenSSL rejects a value.
    public func issue(_ options: CertificateOptions) throws -> TestIdentity {
        TestIdentity(try makeCertificate(options, as: .leaf, issuer: made), intermediates: intermediates)
    }
}
