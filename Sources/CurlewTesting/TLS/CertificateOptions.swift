// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The contents of a certificate, in as much detail as a test needs.
///
/// Every option has a default that makes a proper certificate. The value of a nil option depends on the certificate's
/// role: root, intermediate or leaf. The method that takes the options determines the role.
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
    /// By default "Test Root" and "Test Intermediate" (with a number below another intermediate) for authorities. A
    /// leaf's subject has only an organisation by default, because clients must not use its common name (RFC 9525 §2).
    public var commonName: String?
    /// DNS names and IP addresses for the subject alternative name, distinguished by their syntax.
    ///
    /// By default `localhost`, `127.0.0.1` and `::1` for leaves, and empty for authorities.
    public var hosts: [String]?
    /// More subject alternative names, verbatim and after `hosts`; empty by default.
    ///
    /// Without any names the certificate omits the extension.
    public var alternativeNames: [AlternativeName]
    /// The validity; `current` by default.
    public var validity: CertificateValidity
    /// The kind of the new key; EC on P-256 by default.
    public var key: TestKey
    /// The private key to use instead of a new one, PEM without a passphrase; nil by default.
    ///
    /// With the key of an older certificate, the new certificate is a renewal.
    public var privateKeyPEM: String?
    /// The digest that the issuer signs; SHA-256 by default.
    public var digest: SignatureDigest
    /// The statement whether the certificate is an authority; depends on the role by default.
    public var basicConstraints: BasicConstraints
    /// The maximum number of intermediates below the certificate (RFC 5280 §4.2.1.9); unlimited by default.
    public var pathLength: Int?
    /// The permitted uses of the key; an empty array omits the extension.
    ///
    /// By default `keyCertSign` and `cRLSign` for authorities, `digitalSignature` for leaves.
    public var keyUsages: [KeyUsage]?
    /// The permitted uses of the certificate; an empty array omits the extension.
    ///
    /// By default `serverAuth` and `clientAuth` for leaves, and omitted for authorities.
    public var extendedKeyUsages: [ExtendedKeyUsage]?
    /// The only names that certificates below this one may have (RFC 5280 §4.2.1.10); empty by default.
    ///
    /// The limit applies only to the kinds of name that occur in the array. Addresses are ranges with a mask, such as
    /// `10.0.0.0/255.0.0.0`.
    public var permittedNames: [AlternativeName]
    /// Names that certificates below this one must not have, in the form of `permittedNames`; empty by default.
    public var excludedNames: [AlternativeName]
    /// The serial number; nil, the default, selects a random one.
    public var serialNumber: UInt64?
    /// Whether the certificate requires servers to staple OCSP responses (RFC 7633); false by default.
    public var mustStaple: Bool
    /// Additional extensions, added unchanged; empty by default.
    public var extensions: [Extension]
    /// Whether to add the key identifiers of subject and issuer (RFC 5280 §4.2.1.1, §4.2.1.2); true by default.
    public var hasKeyIdentifiers: Bool

    /// Creates options; each parameter has a default.
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
