// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewShims

/// The validity of a revocation list or an OCSP response, relative to now.
struct RevocationTimes {
    let thisUpdate: Duration
    let nextUpdate: Duration?
}

/// The contents of an OCSP response.
struct OCSPStatement {
    let certificate: TestCertificate
    let status: TestAuthority.OCSPStatus
    let times: RevocationTimes
}

/// Makes a revocation list in the issuer's name.
func makeRevocationList(
    _ times: RevocationTimes, revoked: [TestCertificate], issuer: MadeCertificate, signer: MadeCertificate
) throws -> TestRevocationList {
    guard let list = X509_CRL_new() else { throw TestingError.openSSL("Making a revocation list") }
    defer { X509_CRL_free(list) }
    let issuer = try readCertificate(issuer.certificate.pem)
    defer { X509_free(issuer) }
    let key = try readKey(signer.keyPEM)
    defer { EVP_PKEY_free(key) }

    X509_CRL_set_version(list, 1)
    X509_CRL_set_issuer_name(list, X509_get_subject_name(issuer))
    try withTime(times.thisUpdate) { _ = X509_CRL_set1_lastUpdate(list, $0) }
    if let next = times.nextUpdate { try withTime(next) { _ = X509_CRL_set1_nextUpdate(list, $0) } }
    for certificate in revoked { try revoke(certificate, on: list, since: times.thisUpdate) }
    X509_CRL_sort(list)
    let number = ASN1_INTEGER_new()
    defer { ASN1_INTEGER_free(number) }
    ASN1_INTEGER_set(number, 1)
    guard X509_CRL_add1_ext_i2d(list, NID_crl_number, number, 0, 0) == 1, curlew_add_list_issuer(list, issuer) == 1,
        X509_CRL_sign(list, key, digest(.sha256, for: key)) > 0
    else { throw TestingError.openSSL("Signing a revocation list") }
    return TestRevocationList(
        pem: try text { PEM_write_bio_X509_CRL($0, list) }, der: bytes { i2d_X509_CRL(list, $0) })
}

private func revoke(_ certificate: TestCertificate, on list: OpaquePointer, since moment: Duration) throws {
    let certificate = try readCertificate(certificate.pem)
    defer { X509_free(certificate) }
    guard let entry = X509_REVOKED_new() else { throw TestingError.openSSL("Revoking a certificate") }
    X509_REVOKED_set_serialNumber(entry, X509_get_serialNumber(certificate))
    try withTime(moment) { _ = X509_REVOKED_set_revocationDate(entry, $0) }
    // From here on the list owns the entry.
    guard X509_CRL_add0_revoked(list, entry) == 1 else { throw TestingError.openSSL("Revoking a certificate") }
}

/// Makes the bytes of an OCSPResponse.
func makeOCSPResponse(
    _ statement: OCSPStatement, issuer: MadeCertificate, responder: MadeCertificate, includesCertificate: Bool
) throws -> [UInt8] {
    let issuer = try readCertificate(issuer.certificate.pem)
    defer { X509_free(issuer) }
    let signer = try readCertificate(responder.certificate.pem)
    defer { X509_free(signer) }
    let key = try readKey(responder.keyPEM)
    defer { EVP_PKEY_free(key) }
    guard let basic = OCSP_BASICRESP_new() else { throw TestingError.openSSL("Making an OCSP response") }
    defer { OCSP_BASICRESP_free(basic) }
    try add(statement, to: basic, issuer: issuer)
    let flags = includesCertificate ? 0 : UInt(OCSP_NOCERTS)
    guard OCSP_basic_sign(basic, signer, key, digest(.sha256, for: key), nil, flags) == 1,
        let response = OCSP_response_create(OCSP_RESPONSE_STATUS_SUCCESSFUL, basic)
    else { throw TestingError.openSSL("Signing an OCSP response") }
    defer { OCSP_RESPONSE_free(response) }
    return bytes { i2d_OCSP_RESPONSE(response, $0) }
}

private func add(_ statement: OCSPStatement, to response: OpaquePointer, issuer: OpaquePointer) throws {
    let certificate = try readCertificate(statement.certificate.pem)
    defer { X509_free(certificate) }
    guard let identifier = OCSP_cert_to_id(nil, certificate, issuer) else {
        throw TestingError.openSSL("Naming a certificate in an OCSP response")
    }
    defer { OCSP_CERTID_free(identifier) }
    let status =
        switch statement.status {
        case .good: V_OCSP_CERTSTATUS_GOOD
        case .revoked: V_OCSP_CERTSTATUS_REVOKED
        case .unknown: V_OCSP_CERTSTATUS_UNKNOWN
        }
    try withTime(statement.times.thisUpdate) { this in
        let next = statement.times.nextUpdate.flatMap { X509_gmtime_adj(nil, Int($0.components.seconds)) }
        defer { ASN1_TIME_free(next) }
        let revoked = statement.status == .revoked ? this : nil
        guard OCSP_basic_add1_status(response, identifier, status, 0, revoked, this, next) != nil else {
            throw TestingError.openSSL("Making an OCSP response")
        }
    }
}

/// Calls a closure with a time in OpenSSL's form, given as an offset from now.
private func withTime(_ offset: Duration, _ body: (UnsafeMutablePointer<ASN1_TIME>) throws -> Void) throws {
    guard let time = X509_gmtime_adj(nil, Int(offset.components.seconds)) else {
        throw TestingError.openSSL("Making a time")
    }
    defer { ASN1_TIME_free(time) }
    try body(time)
}
