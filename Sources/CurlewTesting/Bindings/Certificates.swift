// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewShims

/// What a certificate shall say.
struct CertificateTemplate {
    var commonName: String?
    var hosts: [String] = []
    var validity = CertificateValidity.current
    var isAuthority = false
}

/// A certificate and its key as text and bytes, so that nothing of OpenSSL's has to be kept.
struct MadeCertificate: Sendable {
    let pem: String
    let der: [UInt8]
    let keyPEM: String
    let publicKeySHA256: [UInt8]
}

/// Makes a key and a certificate for it, signed by the issuer or, without one, by the key itself.
func makeCertificate(_ template: CertificateTemplate, issuer: MadeCertificate?) throws -> MadeCertificate {
    guard let key = curlew_make_p256_key() else { throw TestingError.openSSL("Making a key") }
    defer { EVP_PKEY_free(key) }
    guard let certificate = X509_new() else { throw TestingError.openSSL("Making a certificate") }
    defer { X509_free(certificate) }
    let issuerCertificate = try issuer.map { try readCertificate($0.pem) }
    defer { X509_free(issuerCertificate) }
    let issuerKey = try issuer.map { try readKey($0.keyPEM) }
    defer { EVP_PKEY_free(issuerKey) }

    try describe(certificate, template)
    X509_set_pubkey(certificate, key)
    X509_set_issuer_name(certificate, X509_get_subject_name(issuerCertificate ?? certificate))
    try extend(certificate, template, issuer: issuerCertificate ?? certificate)
    guard X509_sign(certificate, issuerKey ?? key, EVP_sha256()) > 0 else {
        throw TestingError.openSSL("Signing a certificate")
    }
    return MadeCertificate(
        pem: try text { PEM_write_bio_X509($0, certificate) },
        der: bytes { i2d_X509(certificate, $0) },
        keyPEM: try text { PEM_write_bio_PrivateKey($0, key, nil, nil, 0, nil, nil) },
        publicKeySHA256: digest(bytes { i2d_X509_PUBKEY(X509_get_X509_PUBKEY(certificate), $0) })
    )
}

/// The certificate of a PEM text, owned by the caller.
func readCertificate(_ pem: String) throws -> OpaquePointer {
    let bio = try reader(pem)
    defer { BIO_free(bio) }
    guard let certificate = PEM_read_bio_X509(bio, nil, nil, nil) else {
        throw TestingError.openSSL("Reading a certificate")
    }
    return certificate
}

/// The certificates of a PEM text in order, owned by the caller.
func readCertificates(_ pem: String) throws -> [OpaquePointer] {
    let bio = try reader(pem)
    defer { BIO_free(bio) }
    var certificates: [OpaquePointer] = []
    while let certificate = PEM_read_bio_X509(bio, nil, nil, nil) { certificates.append(certificate) }
    // The last read failed because nothing was left, which is no error to report later.
    ERR_clear_error()
    return certificates
}

/// The private key of a PEM text, owned by the caller.
func readKey(_ pem: String) throws -> OpaquePointer {
    let bio = try reader(pem)
    defer { BIO_free(bio) }
    guard let key = PEM_read_bio_PrivateKey(bio, nil, nil, nil) else {
        throw TestingError.openSSL("Reading a private key")
    }
    return key
}

/// The bytes that an `i2d_…` function writes.
func bytes(_ encode: (UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>?) -> CInt) -> [UInt8] {
    let count = Int(max(0, encode(nil)))
    return [UInt8](unsafeUninitializedCapacity: count) { buffer, used in
        var cursor = buffer.baseAddress
        used = count > 0 ? Int(encode(&cursor)) : 0
    }
}

extension TestingError {
    /// The latest entry of OpenSSL's error queue, which is emptied.
    static func openSSL(_ action: String) -> TestingError {
        let code = ERR_get_error()
        ERR_clear_error()
        let reason = ERR_reason_error_string(code).map { String(cString: $0) }
        return TestingError("\(action) failed: \(reason ?? "OpenSSL gives no reason").")
    }
}

private func reader(_ pem: String) throws -> OpaquePointer {
    guard let bio = BIO_new(BIO_s_mem()) else { throw TestingError.openSSL("Reading PEM") }
    BIO_puts(bio, pem)
    return bio
}

private func text(_ write: (OpaquePointer) -> CInt) throws -> String {
    guard let bio = BIO_new(BIO_s_mem()) else { throw TestingError.openSSL("Writing PEM") }
    defer { BIO_free(bio) }
    guard write(bio) == 1 else { throw TestingError.openSSL("Writing PEM") }
    let count = BIO_ctrl_pending(bio)
    let text = [UInt8](unsafeUninitializedCapacity: count) { buffer, used in
        used = Int(max(0, BIO_read(bio, buffer.baseAddress, CInt(count))))
    }
    return String(decoding: text, as: UTF8.self)
}

private func digest(_ bytes: [UInt8]) -> [UInt8] {
    var stream = SHA256Stream()
    stream.update(bytes)
    return stream.digest
}

/// Version, serial number, validity and subject.
private func describe(_ certificate: OpaquePointer, _ template: CertificateTemplate) throws {
    X509_set_version(certificate, 2)
    let serial = UInt64.random(in: 1...UInt64(Int64.max))
    ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate), serial)
    X509_gmtime_adj(X509_getm_notBefore(certificate), Int(template.validity.notBefore.components.seconds))
    X509_gmtime_adj(X509_getm_notAfter(certificate), Int(template.validity.notAfter.components.seconds))
    var parts = [("O", "Test Certificates")]
    if let name = template.commonName { parts.append(("CN", name)) }
    for (key, value) in parts {
        let added = X509_NAME_add_entry_by_txt(
            X509_get_subject_name(certificate), key, MBSTRING_UTF8, value, CInt(value.utf8.count), -1, 0
        )
        guard added == 1 else { throw TestingError.openSSL("Naming a certificate \(value)") }
    }
}

private func extend(_ certificate: OpaquePointer, _ template: CertificateTemplate, issuer: OpaquePointer) throws {
    var extensions: [(CInt, String)] = [(NID_subject_key_identifier, "hash")]
    if template.isAuthority {
        extensions.append((NID_basic_constraints, "critical,CA:TRUE"))
        extensions.append((NID_key_usage, "critical,keyCertSign,cRLSign"))
    } else {
        extensions.append((NID_basic_constraints, "critical,CA:FALSE"))
        extensions.append((NID_key_usage, "critical,digitalSignature"))
        extensions.append((NID_ext_key_usage, "serverAuth,clientAuth"))
    }
    if issuer != certificate { extensions.append((NID_authority_key_identifier, "keyid")) }
    if !template.hosts.isEmpty {
        let names = template.hosts.map { (isAddress($0) ? "IP:" : "DNS:") + $0 }
        extensions.append((NID_subject_alt_name, names.joined(separator: ",")))
    }
    for (identifier, value) in extensions where curlew_add_extension(certificate, issuer, identifier, value) != 1 {
        throw TestingError.openSSL("Adding the extension \(value)")
    }
}

private func isAddress(_ host: String) -> Bool {
    guard let address = a2i_IPADDRESS(host) else {
        ERR_clear_error()
        return false
    }
    ASN1_OCTET_STRING_free(address)
    return true
}
