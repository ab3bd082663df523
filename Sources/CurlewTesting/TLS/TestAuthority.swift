// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// TLS makes certificates at run time, so that no key is in the repository and none can expire there. Tests call
// TestAuthority; MockServer is given the identities.

/// A certificate authority made at run time: a self-signed root or, by `intermediate(commonName:)`, one below it.
///
/// Keys are new at each run (EC on P-256, unless options say otherwise).
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
    /// Who signed it; nil for a root, which signed itself.
    private let issuer: MadeCertificate?
    /// The certificates from this authority up to, without, the root; empty for a root.
    public let intermediates: [TestCertificate]

    /// A root authority.
    /// - Parameters:
    ///   - commonName: the name in its certificate.
    ///   - key: which kind of key it gets; EC on P-256 by default.
    ///   - validity: when it is valid; now, by default.
    /// - Throws: `TestingError` when OpenSSL refuses a value.
    public init(
        commonName: String = "Test Root", key: TestKey = .p256, validity: CertificateValidity = .current
    ) throws {
        try self.init(CertificateOptions(commonName: commonName, validity: validity, key: key))
    }

    /// A root authority.
    /// - Parameter options: what its certificate says.
    /// - Throws: `TestingError` when OpenSSL refuses a value.
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
    /// The authority's certificate, PEM: what a client has to trust.
    public var certificatePEM: String { certificate.pem }
    /// The authority's certificate, DER.
    public var certificateDER: [UInt8] { certificate.der }
    /// The SHA-256 digest of the authority's SubjectPublicKeyInfo, 32 bytes.
    public var publicKeySHA256: [UInt8] { certificate.publicKeySHA256 }
    /// The authority's private key, PKCS #8 PEM without a passphrase.
    public var privateKeyPEM: String { made.keyPEM }

    /// The name in its certificate.
    var commonName: String? {
        options.commonName ?? (issuer == nil ? CertificateRole.root : .intermediate).defaultCommonName
    }

    // MARK: More authorities

    /// An authority below this one.
    ///
    /// What it issues carries its certificate in the chain.
    /// - Parameter commonName: the name in its certificate; "Test Intermediate" by default, with a number when it is not
    ///   the first below the root.
    /// - Throws: `TestingError` when OpenSSL refuses a value.
    public func intermediate(commonName: String? = nil) throws -> TestAuthority {
        try intermediate(CertificateOptions(commonName: commonName))
    }

    /// An authority below this one.
    ///
    /// What it issues carries its certificate in the chain.
    /// - Parameter options: what its certificate says, which may be that it is no authority.
    /// - Throws: `TestingError` when OpenSSL refuses a value.
    public func intermediate(_ options: CertificateOptions) throws -> TestAuthority {
        var options = options
        if options.commonName == nil, !intermediates.isEmpty {
            // Below one of the same name it would be self-issued, which path lengths do not count (RFC 5280 §4.2.1.9).
            options.commonName = "Test Intermediate \(intermediates.count + 1)"
        }
        return try TestAuthority(options, issuer: made, above: intermediates)
    }

    /// This authority once more, with the same name and key, but signed by another one.
    ///
    /// What either issues is by either; what the result issues carries the certificate by the other in the chain.
    /// - Parameters:
    ///   - other: who signs.
    ///   - validity: when the new certificate is valid; now, by default.
    /// - Throws: `TestingError` when OpenSSL refuses a value.
    public func crossSigned(
        by other: TestAuthority, validity: CertificateValidity = .current
    ) throws -> TestAuthority {
        try TestAuthority(again(validity), issuer: other.made, above: other.intermediates)
    }

    /// This authority with a new certificate: the same name, key and issuer, another serial number and validity.
    /// - Parameter validity: when the new certificate is valid; now, by default.
    /// - Throws: `TestingError` when OpenSSL refuses a value.
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
        try issue(CertificateOptions(commonName: commonName, hosts: hosts, validity: validity))
    }

    /// A certificate for servers and clients.
    /// - Parameter options: what it says.
    /// - Throws: `TestingError` when OpenSSL refuses a value.
    public func issue(_ options: CertificateOptions) throws -> TestIdentity {
        TestIdentity(try makeCertificate(options, as: .leaf, issuer: made), intermediates: intermediates)
    }
}
