// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewShims
internal import Glibc

/// An X.509 certificate, parsed by OpenSSL.
package final class X509Certificate: @unchecked Sendable {
    // Safe because OpenSSL counts references with atomics and locks its lazily computed fields, and no code here
    // changes a certificate.
    let pointer: OpaquePointer

    /// Takes ownership of a reference.
    init?(_ pointer: OpaquePointer?) {
        guard let pointer else { return nil }
        self.pointer = pointer
    }

    deinit { X509_free(pointer) }

    /// A subject alternative name (RFC 5280 §4.2.1.6).
    package enum Name {
        case dns([UInt8])
        case address([UInt8])
        case email([UInt8])
        case uri([UInt8])
        case other
    }

    /// Reads every certificate of a PEM text, or one certificate in DER; a failure has OpenSSL's message.
    package static func read(_ bytes: [UInt8]) -> Result<[X509Certificate], UnreadableTrust> {
        let stack = bytes.withUnsafeBufferPointer { curlew_certificates_read($0.baseAddress, $0.count) }
        guard let stack else { return .failure(UnreadableTrust(reason: String(cString: curlew_tls_reason()))) }
        defer { curlew_stack_free(stack) }
        return .success(all(of: stack))
    }

    static func all(of stack: OpaquePointer?) -> [X509Certificate] {
        (0..<curlew_stack_count(stack)).compactMap { X509Certificate(curlew_stack_at(stack, $0)) }
    }

    package var der: [UInt8] { der(isKeyOnly: false) }
    /// The SHA-256 digest of the SubjectPublicKeyInfo.
    package var publicKeyHash: [UInt8] { sha256(der(isKeyOnly: true)) }
    package var subject: String { text(curlew_text_subject) }
    package var issuer: String { text(curlew_text_issuer) }
    /// The serial number in hexadecimal digits.
    package var serialNumber: String { text(curlew_text_serial) }
    package var keyType: String { text(curlew_text_key) }
    package var signatureAlgorithm: String { text(curlew_text_signature) }
    package var mustStaple: Bool { curlew_certificate_must_staple(pointer) }
    package var isAuthority: Bool { curlew_certificate_is_authority(pointer) }
    package var isSelfIssued: Bool { curlew_certificate_is_self_issued(pointer) }

    /// The validity period in seconds since 1970; empty when it cannot be read.
    package var validity: (begins: Int64, ends: Int64) {
        var (begins, ends) = (Int64.max, Int64.min)
        return curlew_certificate_times(pointer, &begins, &ends) ? (begins, ends) : (.max, .min)
    }

    /// Returns the subject alternative names, at most `most` of them.
    package func names(upTo most: Int = .max) -> [Name] {
        let names = curlew_names_read(pointer)
        defer { curlew_names_free(names) }
        return (0..<min(most, Int(curlew_names_count(names)))).map { index in
            var (kind, length) = (CInt(), CInt())
            let bytes = curlew_names_at(names, CInt(index), &kind, &length)
            let value = Array(UnsafeBufferPointer(start: bytes, count: bytes == nil ? 0 : Int(length)))
            switch kind {
            case GEN_DNS: return .dns(value)
            case GEN_IPADD: return .address(value)
            case GEN_EMAIL: return .email(value)
            case GEN_URI: return .uri(value)
            default: return .other
            }
        }
    }

    /// Returns whether the certificate names a host.
    ///
    /// - Parameter byWildcards: Whether wildcards count; if false, only an exact name matches.
    package func matches(_ host: String, byWildcards: Bool = true) -> Bool {
        curlew_certificate_is_for(pointer, host, byWildcards)
    }

    /// Whether the extended key usage contains `anyExtendedKeyUsage`.
    package var allowsAnyUsage: Bool { curlew_certificate_is_for_any_usage(pointer) }

    /// The result of checking a host against the name constraints of an authority (RFC 5280 §4.2.1.10).
    package enum Constraint: Sendable { case met, permitsOthers, excludes, unreadable }

    /// Checks a DNS name or an IP address against the authority's name constraints.
    package func constraint(on host: String) -> Constraint {
        switch Int(curlew_certificate_constrains(pointer, host)) {
        case Int(curlew_constraint_met): .met
        case Int(curlew_constraint_permits_others): .permitsOthers
        case Int(curlew_constraint_excludes): .excludes
        default: .unreadable
        }
    }

    private func der(isKeyOnly: Bool) -> [UInt8] { bytes { curlew_certificate_der(pointer, isKeyOnly, $0) } }

    private func text(_ part: some BinaryInteger) -> String { string(curlew_certificate_text(pointer, CInt(part))) }
}

extension X509Certificate: Hashable {
    /// Whether the bytes of both certificates are equal.
    package static func == (one: X509Certificate, other: X509Certificate) -> Bool {
        one.pointer == other.pointer || X509_cmp(one.pointer, other.pointer) == 0 && one.der == other.der
    }

    package func hash(into hasher: inout Hasher) { hasher.combine(der) }
}

/// A certificate revocation list (RFC 5280 §5).
package final class X509RevocationList: @unchecked Sendable {
    // Safe because OpenSSL counts references with atomics, and no code here changes a list.
    let pointer: OpaquePointer

    private init?(_ pointer: OpaquePointer?) {
        guard let pointer else { return nil }
        self.pointer = pointer
    }

    deinit { X509_CRL_free(pointer) }

    /// Reads every list of a PEM text or of DER; a failure has OpenSSL's message.
    package static func read(_ bytes: [UInt8]) -> Result<[X509RevocationList], UnreadableTrust> {
        let lists = bytes.withUnsafeBufferPointer { curlew_lists_read($0.baseAddress, $0.count) }
        guard let lists else { return .failure(UnreadableTrust(reason: String(cString: curlew_tls_reason()))) }
        defer { curlew_lists_free(lists) }
        return .success(
            (0..<curlew_lists_count(lists)).compactMap { X509RevocationList(curlew_lists_at(lists, $0)) })
    }

    package var der: [UInt8] { bytes { curlew_list_der(pointer, $0) } }
    package var issuer: String { string(curlew_list_issuer(pointer)) }
}

/// The reason why certificates, keys or lists cannot be used, mostly OpenSSL's message.
package struct UnreadableTrust: Error {
    package let reason: String
}

/// Returns the SHA-256 digest of bytes.
package func sha256(_ bytes: [UInt8]) -> [UInt8] {
    [UInt8](unsafeUninitializedCapacity: 32) { digest, count in
        bytes.withUnsafeBufferPointer { curlew_sha256($0.baseAddress, $0.count, digest.baseAddress) }
        count = 32
    }
}

private func bytes(_ make: (UnsafeMutablePointer<CInt>) -> UnsafeMutablePointer<UInt8>?) -> [UInt8] {
    var length: CInt = 0
    guard let made = make(&length) else { return [] }
    defer { curlew_free(made) }
    return Array(UnsafeBufferPointer(start: made, count: Int(length)))
}

/// Copies a C string from the shims and frees it; an empty string for NULL.
func string(_ text: UnsafeMutablePointer<CChar>?) -> String {
    guard let text else { return "" }
    defer { curlew_free(text) }
    return String(cString: text)
}
