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
    /// Who signs a revocation list.
    public enum ListSigner: Sendable, Hashable {
        /// This authority.
        case issuer
        /// Somebody who has this authority's name but another key.
        case forger
    }

    /// What an OCSP response says of a certificate.
    public enum OCSPStatus: Sendable, Hashable {
        /// It is not revoked.
        case good
        /// It is revoked.
        case revoked
        /// The responder does not know it.
        case unknown
    }

    /// Who signs an OCSP response (RFC 6960 §4.2.2.2).
    public enum OCSPSigner: Sendable, Hashable {
        /// This authority.
        case issuer
        /// Somebody with a certificate by this authority for that purpose, which is in the response.
        case delegate
        /// Somebody with a certificate by this authority, but for TLS servers; it is in the response.
        case delegateWithoutUsage
        /// Somebody with a self-signed certificate, which is in the response.
        case stranger
        /// Somebody who has this authority's name but another key.
        case forger
    }

    /// A revocation list of this authority.
    /// - Parameters:
    ///   - revoked: the certificates on it; none by default.
    ///   - thisUpdate: since when it is in force, from now; an hour ago by default, whole seconds.
    ///   - nextUpdate: when the next one is due, from now; in a day by default, nil leaves it out.
    ///   - signer: who signs it; this authority by default.
    /// - Throws: `TestingError` when OpenSSL refuses a value.
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

    /// An OCSP response (RFC 6960) on a certificate, as servers staple it.
    ///
    /// What another authority says of the certificate names another issuer, and is of no use to a client.
    /// - Parameters:
    ///   - certificate: the certificate; another one's response is one for another serial number.
    ///   - status: what it says; that it is good by default.
    ///   - thisUpdate: since when that is known to be so, from now; an hour ago by default, whole seconds.
    ///   - nextUpdate: when the next one is due, from now; in a day by default, nil leaves it out.
    ///   - signer: who signs it; this authority by default.
    /// - Returns: the bytes of the OCSPResponse, DER.
    /// - Throws: `TestingError` when OpenSSL refuses a value.
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

    /// An OCSP response that says nothing but "try later" (RFC 6960 §4.2.1), DER.
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

    /// Another root of the same name.
    private func forger() throws -> MadeCertificate {
        try makeCertificate(CertificateOptions(commonName: commonName), as: .root, issuer: nil)
    }
}
