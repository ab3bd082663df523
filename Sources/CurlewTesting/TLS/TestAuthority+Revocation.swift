// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// A certificate revocation list (RFC 5280 §5).
public struct TestRevocationList: Sendable, Hashable {
    /// The list, PEM.
    public let pem: String
    /// The list, DER.
    public let der: [UInt8]
}

extension TestAuthority {
    /// The signer of a revocation list.
    public enum ListSigner: Sendable, Hashable {
        /// This authority.
        case issuer
        /// An authority with this authority's name but another key.
        case forger
    }

    /// The status of a certificate in an OCSP response.
    public enum OCSPStatus: Sendable, Hashable {
        /// The certificate is not revoked.
        case good
        /// The certificate is revoked.
        case revoked
        /// The responder does not know the certificate.
        case unknown
    }

    /// The signer of an OCSP response (RFC 6960 §4.2.2.2).
    public enum OCSPSigner: Sendable, Hashable {
        /// This authority.
        case issuer
        /// A responder with a certificate from this authority for OCSP signing; the response includes the certificate.
        case delegate
        /// A responder with a certificate from this authority for TLS servers; the response includes the certificate.
        case delegateWithoutUsage
        /// A responder with a self-signed certificate; the response includes the certificate.
        case stranger
        /// An authority with this authority's name but another key.
        case forger
    }

    /// Makes a revocation list of this authority.
    /// - Parameters:
    ///   - revoked: The certificates on the list; empty by default.
    ///   - thisUpdate: The start of validity relative to now, in whole seconds; an hour ago by default.
    ///   - nextUpdate: The time of the next list relative to now, in whole seconds; in a day by default, nil omits it.
    ///   - signer: The signer; this authority by default.
    /// - Throws: `TestingError` if OpenSSL rejects a value.
    public func revocationList(
        revoking revoked: [TestCertificate] = [],
        thisUpdate: Duration = .seconds(-3600),
        nextUpdate: Duration? = .seconds(86_400),
        signer: ListSigner = .issuer
    ) throws -> TestRevocationList {
        let signer = signer == .issuer ? made : try forger()
        return try makeRevocationList(
            RevocationTimes(thisUpdate: thisUpdate, nextUpdate: nextUpdate), revoked: revoked, issuer: made,
            signer: signer)
    }

    /// Makes an OCSP response (RFC 6960) about a certificate, as servers staple it.
    ///
    /// The response names this authority as the issuer; a client rejects it for a certificate from another authority.
    /// - Parameters:
    ///   - certificate: The certificate, which the response identifies by its serial number.
    ///   - status: The status of the certificate; good by default.
    ///   - thisUpdate: The time of the status relative to now, in whole seconds; an hour ago by default.
    ///   - nextUpdate: The time of the next response relative to now, in whole seconds; in a day by default, nil omits
    ///     it.
    ///   - signer: The signer; this authority by default.
    /// - Returns: The bytes of the OCSPResponse, DER.
    /// - Throws: `TestingError` if OpenSSL rejects a value.
    public func ocspResponse(
        for certificate: TestCertificate,
        status: OCSPStatus = .good,
        thisUpdate: Duration = .seconds(-3600),
        nextUpdate: Duration? = .seconds(86_400),
        signer: OCSPSigner = .issuer
    ) throws -> [UInt8] {
        let responder = try responder(signer)
        return try makeOCSPResponse(
            OCSPStatement(
                certificate: certificate, status: status,
                times: RevocationTimes(thisUpdate: thisUpdate, nextUpdate: nextUpdate)),
            issuer: made, responder: responder, includesCertificate: signer != .issuer && signer != .forger)
    }

    /// An OCSP response with the status `tryLater` and no other content (RFC 6960 §4.2.1), DER.
    public static let ocspTryLater: [UInt8] = [0x30, 0x03, 0x0A, 0x01, 0x03]

    private func responder(_ signer: OCSPSigner) throws -> MadeCertificate {
        switch signer {
        case .issuer: return made
        case .forger: return try forger()
        case .delegate, .delegateWithoutUsage:
            let usage: CertificateOptions.ExtendedKeyUsage = signer == .delegate ? .ocspSigning : .serverAuth
            let options = CertificateOptions(
                commonName: "Test Responder", hosts: [], extendedKeyUsages: [usage], extensions: [.ocspNoCheck])
            return try makeCertificate(options, as: .leaf, issuer: made)
        case .stranger:
            let options = CertificateOptions(
                commonName: "Test Stranger", hosts: [], extendedKeyUsages: [.ocspSigning])
            return try makeCertificate(options, as: .leaf, issuer: nil)
        }
    }

    /// Makes another root with the same name.
    private func forger() throws -> MadeCertificate {
        try makeCertificate(CertificateOptions(commonName: commonName), as: .root, issuer: nil)
    }
}
