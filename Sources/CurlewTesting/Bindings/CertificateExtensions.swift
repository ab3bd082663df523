// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewShims

/// Adds the extensions that the options specify; the certificate must already have its public key.
func extend(
    _ certificate: OpaquePointer, _ options: CertificateOptions, as role: CertificateRole, issuer: OpaquePointer
) throws {
    var extensions: [(CInt, String)] = []
    if options.hasKeyIdentifiers { extensions.append((NID_subject_key_identifier, "hash")) }
    if let value = basicConstraints(options, as: role) { extensions.append((NID_basic_constraints, value)) }
    let usages = options.keyUsages ?? (role.isAuthority ? [.keyCertSign, .cRLSign] : [.digitalSignature])
    if !usages.isEmpty {
        extensions.append((NID_key_usage, (["critical"] + usages.map(\.rawValue)).joined(separator: ",")))
    }
    let purposes = options.extendedKeyUsages ?? (role.isAuthority ? [] : [.serverAuth, .clientAuth])
    if !purposes.isEmpty {
        extensions.append((NID_ext_key_usage, purposes.map(\.identifier).joined(separator: ",")))
    }
    if issuer != certificate, options.hasKeyIdentifiers { extensions.append((NID_authority_key_identifier, "keyid")) }
    if options.mustStaple { extensions.append((NID_tlsfeature, "status_request")) }
    for (identifier, value) in extensions where curlew_add_extension(certificate, issuer, identifier, value) != 1 {
        throw TestingError.openSSL("Adding the extension \(value)")
    }
    try addNames(certificate, options, as: role)
    try addNameConstraints(certificate, options)
    for one in options.extensions {
        let added = curlew_add_verbatim_extension(
            certificate, one.identifier, one.isCritical ? 1 : 0, one.value, CInt(one.value.count))
        guard added == 1 else { throw TestingError.openSSL("Adding the extension \(one.identifier)") }
    }
}

private func basicConstraints(_ options: CertificateOptions, as role: CertificateRole) -> String? {
    let isAuthority: Bool
    switch options.basicConstraints {
    case .byRole: isAuthority = role.isAuthority
    case .authority: isAuthority = true
    case .notAuthority: isAuthority = false
    case .absent: return nil
    }
    let limit = options.pathLength.map { ",pathlen:\($0)" } ?? ""
    return "critical,CA:\(isAuthority ? "TRUE" : "FALSE")\(limit)"
}

private func addNames(_ certificate: OpaquePointer, _ options: CertificateOptions, as role: CertificateRole) throws {
    let hosts = (options.hosts ?? role.defaultHosts).map { host -> CertificateOptions.AlternativeName in
        isAddress(host) ? .ip(host) : .dns(host)
    }
    let all = hosts + options.alternativeNames
    if all.isEmpty { return }
    guard let names = GENERAL_NAMES_new() else { throw TestingError.openSSL("Naming a certificate") }
    defer { GENERAL_NAMES_free(names) }
    for name in all {
        guard curlew_append_name(names, try make(name)) == 1 else {
            throw TestingError.openSSL("Naming a certificate")
        }
    }
    let added = X509_add1_ext_i2d(certificate, NID_subject_alt_name, UnsafeMutableRawPointer(names), 0, 0)
    guard added == 1 else { throw TestingError.openSSL("Naming a certificate") }
}

private func addNameConstraints(_ certificate: OpaquePointer, _ options: CertificateOptions) throws {
    if options.permittedNames.isEmpty, options.excludedNames.isEmpty { return }
    guard let constraints = NAME_CONSTRAINTS_new() else { throw TestingError.openSSL("Constraining names") }
    defer { NAME_CONSTRAINTS_free(constraints) }
    for (isExcluded, names) in [(CInt(0), options.permittedNames), (1, options.excludedNames)] {
        for name in names {
            guard curlew_constrain_name(constraints, isExcluded, try make(name, isRange: true)) == 1 else {
                throw TestingError.openSSL("Constraining names")
            }
        }
    }
    let added = X509_add1_ext_i2d(certificate, NID_name_constraints, UnsafeMutableRawPointer(constraints), 1, 0)
    guard added == 1 else { throw TestingError.openSSL("Constraining names") }
}

/// Makes a name in OpenSSL's form, owned by the caller.
private func make(
    _ name: CertificateOptions.AlternativeName, isRange: Bool = false
) throws -> UnsafeMutablePointer<GENERAL_NAME> {
    let type: CInt
    let value: [UInt8]
    switch name {
    case .dns(let text): (type, value) = (GEN_DNS, Array(text.utf8))
    case .email(let text): (type, value) = (GEN_EMAIL, Array(text.utf8))
    case .uri(let text): (type, value) = (GEN_URI, Array(text.utf8))
    case .ip(let text):
        guard let address = isRange ? a2i_IPADDRESS_NC(text) : a2i_IPADDRESS(text) else {
            throw TestingError.openSSL("Reading the address \(text)")
        }
        defer { ASN1_OCTET_STRING_free(address) }
        let count = Int(ASN1_STRING_length(address))
        (type, value) = (GEN_IPADD, Array(UnsafeBufferPointer(start: ASN1_STRING_get0_data(address), count: count)))
    }
    guard let made = curlew_make_name(type, value, CInt(value.count)) else {
        throw TestingError.openSSL("Naming a certificate")
    }
    return made
}

private func isAddress(_ host: String) -> Bool {
    guard let address = a2i_IPADDRESS(host) else {
        ERR_clear_error()
        return false
    }
    ASN1_OCTET_STRING_free(address)
    return true
}
