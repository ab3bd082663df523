// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// What a certificate shall say, in as much detail as a test wants.
///
/// Everything has a default that makes a proper certificate; what is nil goes by the certificate's role, which the call
/// decides that takes these options: a root, an intermediate or a leaf.
///
/// ```swift
/// let weak = try authority.issue(CertificateOptions(key: .rsa(1024)))
/// let clientsOnly = try authority.issue(CertificateOptions(extendedKeyUsages: [.clientAuth]))
/// let rotated = try authority.issue(CertificateOptions(privateKeyPEM: old.privateKeyPEM))
/// let narrow = try authority.intermediate(CertificateOptions(permittedNames: [.dns("example.com")]))
/// ```
public struct CertificateOptions: Sendable {
    /// The subject's common name.
    ///
    /// By default "Test Root" and "Test Intermediate" (then with a number) for authorities; a leaf's subject has only an organisation, as
    /// clients must not look there (RFC 9525 §2).
    public var commonName: String?
    /// DNS names and IP addresses for the subject alternative name, told apart by their look.
    ///
    /// By default `localhost`, `127.0.0.1` and `::1` for leaves, none for authorities.
    public var hosts: [String]?
    /// More subject alternative names, verbatim and after `hosts`; none by default.
    ///
    /// Without any names the certificate has no such extension.
    public var alternativeNames: [AlternativeName]
    /// When it is valid; now, by default.
    public var validity: CertificateValidity
    /// Which kind of key it gets; EC on P-256 by default.
    public var key: TestKey
    /// The private key it gets instead of a new one, PEM without a passphrase; nil by default.
    ///
    /// The key of an older certificate makes this one its renewal.
    public var privateKeyPEM: String?
    /// The digest that its issuer signs; SHA-256 by default.
    public var digest: SignatureDigest
    /// Whether it says to be an authority; by its role, by default.
    public var basicConstraints: BasicConstraints
    /// How many intermediates may be below it (RFC 5280 §4.2.1.9); not limited by default.
    public var pathLength: Int?
    /// What its key may be used for; empty leaves the extension out.
    ///
    /// By default `keyCertSign` and `cRLSign` for authorities, `digitalSignature` for leaves.
    public var keyUsages: [KeyUsage]?
    /// What the certificate may be used for; empty leaves the extension out.
    ///
    /// By default `serverAuth` and `clientAuth` for leaves, left out for authorities.
    public var extendedKeyUsages: [ExtendedKeyUsage]?
    /// The only names that certificates below it may have (RFC 5280 §4.2.1.10), for the kinds of name that occur.
    ///
    /// Addresses are ranges with a mask, as `10.0.0.0/255.0.0.0`. None by default.
    public var permittedNames: [AlternativeName]
    /// Names that certificates below it must not have, written as `permittedNames`; none by default.
    public var excludedNames: [AlternativeName]
    /// The serial number; nil, the default, takes a random one.
    public var serialNumber: UInt64?
    /// Whether it obliges servers to staple OCSP responses (RFC 7633); false by default.
    public var mustStaple: Bool
    /// Extensions that are added as they are; none by default.
    public var extensions: [Extension]
    /// Whether it has the key identifiers of its subject and its issuer (RFC 5280 §4.2.1.1, §4.2.1.2); true by default.
    public var hasKeyIdentifiers: Bool

    /// Options, each with its default.
    public init(
        commonName: String? = nil,
        hosts: [String]? = nil,
        alternativeNames: [AlternativeName] = [],
        validity: CertificateValidity = .current,
        key: TestKey = .p256,
        privateKeyPEM: String? = nil,
        digest: SignatureDigest = .sha256,
        basicConstraints: BasicConstraints = .byRole,
        pathLength: Int? = nil,
        keyUsages: [KeyUsage]? = nil,
        extendedKeyUsages: [ExtendedKeyUsage]? = nil,
        permittedNames: [AlternativeName] = [],
        excludedNames: [AlternativeName] = [],
        serialNumber: UInt64? = nil,
        mustStaple: Bool = false,
        extensions: [Extension] = [],
        hasKeyIdentifiers: Bool = true
    ) {
        self.commonName = commonName
        self.hosts = hosts
        self.alternativeNames = alternativeNames
        self.validity = validity
        self.key = key
        self.privateKeyPEM = privateKeyPEM
        self.digest = digest
        self.basicConstraints = basicConstraints
        self.pathLength = pathLength
        self.keyUsages = keyUsages
        self.extendedKeyUsages = extendedKeyUsages
        self.permittedNames = permittedNames
        self.excludedNames = excludedNames
        self.serialNumber = serialNumber
        self.mustStaple = mustStaple
        self.extensions = extensions
        self.hasKeyIdentifiers = hasKeyIdentifiers
    }
}
