// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewShims

/// Makes a certificate, signed by the issuer or, without one, by its own key.
func makeCertificate(
    _ options: CertificateOptions, as role: CertificateRole, issuer: MadeCertificate?
) throws -> MadeCertificate {
    let key = try makeKey(options, as: role)
    defer { EVP_PKEY_free(key) }
    guard let certificate = X509_new() else { throw TestingError.openSSL("Making a certificate") }
    defer { X509_free(certificate) }
    let issuerCertificate = try issuer.map { try readCertificate($0.certificate.pem) }
    defer { X509_free(issuerCertificate) }
    let issuerKey = try issuer.map { try readKey($0.keyPEM) }
    defer { EVP_PKEY_free(issuerKey) }

    try describe(certificate, options, as: role)
    X509_set_pubkey(certificate, key)
    X509_set_issuer_name(certificate, X509_get_subject_name(issuerCertificate ?? certificate))
    try extend(certificate, options, as: role, issuer: issuerCertificate ?? certificate)
    let signer = issuerKey ?? key
    guard X509_sign(certificate, signer, digest(options.digest, for: signer)) > 0 else {
        throw TestingError.openSSL("Signing a certificate")
    }
    let made = TestCertificate(
        pem: try text { PEM_write_bio_X509($0, certificate) },
        der: bytes { i2d_X509(certificate, $0) },
        publicKeySHA256: sha256(bytes { i2d_X509_PUBKEY(X509_get_X509_PUBKEY(certificate), $0) })
    )
    return MadeCertificate(certificate: made, keyPEM: try pem(ofKey: key))
}

/// Returns the private key encrypted with a passphrase.
func encryptedKey(_ made: MadeCertificate, passphrase: String) throws -> String {
    let key = try readKey(made.keyPEM)
    defer { EVP_PKEY_free(key) }
    return try text { bio in
        PEM_write_bio_PKCS8PrivateKey(
            bio, key, EVP_aes_256_cbc(), passphrase, CInt(passphrase.utf8.count), nil, nil)
    }
}

/// Returns certificate, intermediates and key as one encrypted PKCS #12 file.
func encodePKCS12(
    _ made: MadeCertificate, intermediates: [TestCertificate], passphrase: String
) throws -> [UInt8] {
    let key = try readKey(made.keyPEM)
    defer { EVP_PKEY_free(key) }
    let certificate = try readCertificate(made.certificate.pem)
    defer { X509_free(certificate) }
    guard let others = curlew_make_certificate_list() else { throw TestingError.openSSL("Making a list") }
    defer { curlew_free_certificate_list(others) }
    for other in intermediates {
        let other = try readCertificate(other.pem)
        curlew_append_certificate(others, other)
        X509_free(other)
    }
    guard let file = PKCS12_create(passphrase, "test", key, certificate, others, 0, 0, 0, 0, 0) else {
        throw TestingError.openSSL("Making a PKCS #12 file")
    }
    defer { PKCS12_free(file) }
    return bytes { i2d_PKCS12(file, $0) }
}

private func sha256(_ bytes: [UInt8]) -> [UInt8] {
    var stream = SHA256Stream()
    stream.update(bytes)
    return stream.digest
}

/// Sets version, serial number, validity and subject.
private func describe(_ certificate: OpaquePointer, _ options: CertificateOptions, as role: CertificateRole) throws {
    X509_set_version(certificate, 2)
    let serial = options.serialNumber ?? UInt64.random(in: 1...UInt64(Int64.max))
    ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate), serial)
    X509_gmtime_adj(X509_getm_notBefore(certificate), Int(options.validity.notBefore.components.seconds))
    X509_gmtime_adj(X509_getm_notAfter(certificate), Int(options.validity.notAfter.components.seconds))
    var parts = [("O", "Test Certificates")]
    if let name = options.commonName ?? role.defaultCommonName { parts.append(("CN", name)) }
    for (key, value) in parts {
        let added = X509_NAME_add_entry_by_txt(
            X509_get_subject_name(certificate), key, MBSTRING_UTF8, value, CInt(value.utf8.count), -1, 0
        )
        guard added == 1 else { throw TestingError.openSSL("Naming a certificate \(value)") }
    }
}
