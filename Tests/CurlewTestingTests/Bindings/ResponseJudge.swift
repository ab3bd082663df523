// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewShims
import CurlewTesting

/// A client's verdict on an OCSP response.
enum OCSPVerdict: Equatable {
    case unreadable
    /// A response with this status code and no content.
    case refused(CInt)
    case notSigned
    case otherCertificate
    case outOfDate
    case says(CInt)
}

/// Verifies an OCSP response about a certificate like a client that trusts the issuer.
func verdict(
    onResponse bytes: [UInt8], for certificate: TestCertificate, issuer: TestCertificate
) -> OCSPVerdict {
    let parsed: OpaquePointer? = bytes.withUnsafeBufferPointer { buffer in
        var start = buffer.baseAddress
        return d2i_OCSP_RESPONSE(nil, &start, buffer.count)
    }
    guard let parsed else { return .unreadable }
    defer { OCSP_RESPONSE_free(parsed) }
    let code = OCSP_response_status(parsed)
    guard code == OCSP_RESPONSE_STATUS_SUCCESSFUL, let basic = OCSP_response_get1_basic(parsed) else {
        return .refused(code)
    }
    defer { OCSP_BASICRESP_free(basic) }
    return withCertificate(issuer.der) { issuer in
        withCertificate(certificate.der) { judge(basic, $0, issuer: issuer) }
    }
}

private func judge(_ basic: OpaquePointer, _ certificate: OpaquePointer, issuer: OpaquePointer) -> OCSPVerdict {
    let store = X509_STORE_new()
    defer { X509_STORE_free(store) }
    X509_STORE_add_cert(store, issuer)
    X509_STORE_set_flags(store, UInt(X509_V_FLAG_PARTIAL_CHAIN))
    let others = curlew_make_certificate_list()
    defer { curlew_free_certificate_list(others) }
    if let others { curlew_append_certificate(others, issuer) }
    guard OCSP_basic_verify(basic, others, store, 0) == 1 else {
        ERR_clear_error()
        return .notSigned
    }
    let identifier = OCSP_cert_to_id(nil, certificate, issuer)
    defer { OCSP_CERTID_free(identifier) }
    var (status, reason): (CInt, CInt) = (0, 0)
    var revoked: UnsafeMutablePointer<ASN1_GENERALIZEDTIME>?
    var this: UnsafeMutablePointer<ASN1_GENERALIZEDTIME>?
    var next: UnsafeMutablePointer<ASN1_GENERALIZEDTIME>?
    guard OCSP_resp_find_status(basic, identifier, &status, &reason, &revoked, &this, &next) == 1 else {
        return .otherCertificate
    }
    guard OCSP_check_validity(this, next, 300, -1) == 1 else {
        ERR_clear_error()
        return .outOfDate
    }
    return .says(status)
}

/// Returns the certificates of a PKCS #12 file; nil if the passphrase is wrong or key and certificate do not match.
func openPKCS12(_ bytes: [UInt8], passphrase: String) -> [[UInt8]]? {
    let file: OpaquePointer? = bytes.withUnsafeBufferPointer { buffer in
        var start = buffer.baseAddress
        return d2i_PKCS12(nil, &start, buffer.count)
    }
    defer { PKCS12_free(file) }
    var (key, certificate, others): (OpaquePointer?, OpaquePointer?, OpaquePointer?)
    guard PKCS12_parse(file, passphrase, &key, &certificate, &others) == 1 else {
        ERR_clear_error()
        return nil
    }
    defer {
        EVP_PKEY_free(key)
        X509_free(certificate)
        curlew_free_certificate_list(others)
    }
    guard X509_check_private_key(certificate, key) == 1 else { return nil }
    let rest = (0..<curlew_count_certificates(others)).map { index in
        others.flatMap { curlew_certificate_at($0, index) }
    }
    return ([certificate] + rest).compactMap { $0.map(encode) }
}

/// Returns whether a passphrase decrypts a private key and the key belongs to the certificate.
func opensKey(_ pem: String, passphrase: String, of certificate: TestCertificate) -> Bool {
    let bio = BIO_new(BIO_s_mem())
    defer { BIO_free(bio) }
    BIO_puts(bio, pem)
    var passphrase = Array(passphrase.utf8CString)
    guard let key = PEM_read_bio_PrivateKey(bio, nil, nil, &passphrase) else {
        ERR_clear_error()
        return false
    }
    defer { EVP_PKEY_free(key) }
    return withCertificate(certificate.der) { X509_check_private_key($0, key) == 1 }
}

/// Returns the DER bytes of a certificate.
func encode(_ certificate: OpaquePointer) -> [UInt8] {
    let count = Int(max(0, i2d_X509(certificate, nil)))
    return [UInt8](unsafeUninitializedCapacity: count) { buffer, used in
        var cursor = buffer.baseAddress
        used = Int(max(0, i2d_X509(certificate, &cursor)))
    }
}
