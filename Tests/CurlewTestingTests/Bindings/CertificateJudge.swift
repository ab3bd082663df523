// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewShims
import CurlewTesting

/// Verifies a server's chain with OpenSSL like a strict client: returns X509_V_OK or another X509_V_… code.
func verdict(
    on chain: [TestCertificate], trusting roots: [TestCertificate], lists: [TestRevocationList] = []
) -> CInt {
    let store = X509_STORE_new()
    defer { X509_STORE_free(store) }
    for root in roots { withCertificate(root.der) { _ = X509_STORE_add_cert(store, $0) } }
    for list in lists {
        let parsed = list.der.withUnsafeBufferPointer { buffer in
            var start = buffer.baseAddress
            return d2i_X509_CRL(nil, &start, buffer.count)
        }
        X509_STORE_add_crl(store, parsed)
        X509_CRL_free(parsed)
        X509_STORE_set_flags(store, UInt(X509_V_FLAG_CRL_CHECK))
    }
    guard let others = curlew_make_certificate_list(), let first = chain.first else { return -1 }
    defer { curlew_free_certificate_list(others) }
    for one in chain.dropFirst() { withCertificate(one.der) { _ = curlew_append_certificate(others, $0) } }
    return withCertificate(first.der) { leaf in
        let context = X509_STORE_CTX_new()
        defer { X509_STORE_CTX_free(context) }
        X509_STORE_CTX_init(context, store, leaf, others)
        X509_STORE_CTX_set_default(context, "ssl_server")
        let parameters = X509_STORE_CTX_get0_param(context)
        X509_VERIFY_PARAM_set_flags(parameters, UInt(X509_V_FLAG_PARTIAL_CHAIN | X509_V_FLAG_TRUSTED_FIRST))
        X509_VERIFY_PARAM_set_auth_level(parameters, 2)
        if X509_verify_cert(context) == 1 { return X509_V_OK }
        ERR_clear_error()
        return X509_STORE_CTX_get_error(context)
    }
}

/// The contents of a certificate.
struct CertificateFacts {
    let keyType: CInt
    let keyBits: CInt
    let signature: CInt
    let serialNumber: UInt64
    let flags: UInt32
    let pathLength: Int
    /// The kinds (GEN_DNS and so on) and bytes of the subject alternative names.
    let names: [(kind: CInt, value: [UInt8])]
    let mustStaple: Bool

    init(_ certificate: TestCertificate) {
        self = withCertificate(certificate.der) { certificate in
            let key = X509_get0_pubkey(certificate)
            var serial: UInt64 = 0
            ASN1_INTEGER_get_uint64(&serial, X509_get0_serialNumber(certificate))
            return CertificateFacts(
                keyType: EVP_PKEY_get_base_id(key), keyBits: EVP_PKEY_get_bits(key),
                signature: X509_get_signature_nid(certificate), serialNumber: serial,
                flags: X509_get_extension_flags(certificate), pathLength: X509_get_pathlen(certificate),
                names: alternativeNames(certificate),
                mustStaple: X509_get_ext_by_NID(certificate, NID_tlsfeature, -1) >= 0)
        }
    }

    private init(
        keyType: CInt, keyBits: CInt, signature: CInt, serialNumber: UInt64, flags: UInt32, pathLength: Int,
        names: [(kind: CInt, value: [UInt8])], mustStaple: Bool
    ) {
        self.keyType = keyType
        self.keyBits = keyBits
        self.signature = signature
        self.serialNumber = serialNumber
        self.flags = flags
        self.pathLength = pathLength
        self.names = names
        self.mustStaple = mustStaple
    }

    var isAuthority: Bool { flags & UInt32(EXFLAG_CA) != 0 }
    var saysWhetherAuthority: Bool { flags & UInt32(EXFLAG_BCONS) != 0 }
    var limitsKeyUsage: Bool { flags & UInt32(EXFLAG_KUSAGE) != 0 }
    var limitsPurposes: Bool { flags & UInt32(EXFLAG_XKUSAGE) != 0 }
}

private func alternativeNames(_ certificate: OpaquePointer) -> [(kind: CInt, value: [UInt8])] {
    guard let names = X509_get_ext_d2i(certificate, NID_subject_alt_name, nil, nil) else { return [] }
    let list = OpaquePointer(names)
    defer { GENERAL_NAMES_free(list) }
    return (0..<OPENSSL_sk_num(list)).compactMap { index in
        let name = OPENSSL_sk_value(list, index)?.assumingMemoryBound(to: GENERAL_NAME.self)
        var kind: CInt = 0
        guard let value = GENERAL_NAME_get0_value(name, &kind) else { return nil }
        let text = value.assumingMemoryBound(to: ASN1_STRING.self)
        let bytes = UnsafeBufferPointer(start: ASN1_STRING_get0_data(text), count: Int(ASN1_STRING_length(text)))
        return (kind, Array(bytes))
    }
}

/// Calls a closure with the certificate in some bytes.
func withCertificate<Result>(_ der: [UInt8], _ body: (OpaquePointer) -> Result) -> Result {
    let certificate: OpaquePointer? = der.withUnsafeBufferPointer { buffer in
        var start = buffer.baseAddress
        return d2i_X509(nil, &start, buffer.count)
    }
    guard let certificate else { preconditionFailure("These bytes are no certificate.") }
    defer { X509_free(certificate) }
    return body(certificate)
}
