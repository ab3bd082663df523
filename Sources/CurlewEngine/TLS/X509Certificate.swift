// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewShims
internal import Glibc

/// An X.509 certificate as OpenSSL has parsed it.
package final class X509Certificate: @unchecked Sendable {
    // Safe because OpenSSL counts references with atomics, locks what it derives from a certificate later, and nothing
    // here changes one.
    let pointer: OpaquePointer

    /// Takes over a reference.
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

    /// Every certificate of a PEM text or the one in DER, or why there is none in OpenSSL's words.
    package static func read(_ bytes: [UInt8]) -> Result<[X509Certificate], UnreadableTrust> {
        let stack = bytes.withUnsafeBufferPointer { curlew_certificates_read($0.baseAddress, $0.count) }
        guard let stack else { return .failure(UnreadableTrust(reason: String(cString: curlew_tls_reason()))) }
        defer { curlew_stack_free(stack) }
        return .success(all(of: stack))
    }

    static func all(of stack: OpaquePointer?) -> [X509Certificate] {
        (0..<curlew_stack_count(stack)).compactMap { X509Certificate(curlew_stack_at(stack, $0)) }
    }

    package var der: [UInt8] { der(keyAlone: false) }
    /// SHA-256 of the SubjectPublicKeyInfo.
    package var publicKeyHash: [UInt8] { sha256(der(keyAlone: true)) }
    package var subject: String { text(curlew_text_subject) }
    package var issuer: String { text(curlew_text_issuer) }
    /// In hexadecimal digits.
    package var serialNumber: String { text(curlew_text_serial) }
    package var keyType: String { text(curlew_text_key) }
    package var signatureAlgorithm: String { text(curlew_text_signature) }
    package var mustStaple: Bool { curlew_certificate_must_staple(pointer) }
    package var isAuthority: Bool { curlew_certificate_is_authority(pointer) }
    package var isSelfIssued: Bool { curlew_certificate_is_self_issued(pointer) }

    /// In seconds since 1970.
    package var validity: (begins: Int64, ends: Int64) {
        var (begins, ends) = (Int64.max, Int64.min)
        return curlew_certificate_times(pointer, &begins, &ends) ? (begins, ends) : (.max, .min)
    }

    /// The subject alternative names, no more than `most` of them.
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

    /// Whether it names a host, by a wildcard or exactly alone.
    package func isFor(_ host: String, byWildcards: Bool = true) -> Bool {
        curlew_certificate_is_for(pointer, host, byWildcards)
    }

    /// Whether its extended key usage names any usage.
    package var isForAnyUsage: Bool { curlew_certificate_is_for_any_usage(pointer) }

    /// What the name constraints of an authority say of a host (RFC 5280 §4.2.1.10).
    package enum Constraint: Sendable { case met, permitsOthers, excludes, unreadable }

    /// What the authority's name constraints say of a DNS name or an IP address.
    package func constraint(on host: String) -> Constraint {
        switch Int(curlew_certificate_constrains(pointer, host)) {
        case Int(curlew_constraint_met): .met
        case Int(curlew_constraint_permits_others): .permitsOthers
        case Int(curlew_constraint_excludes): .excludes
        default: .unreadable
        }
    }

    private func der(keyAlone: Bool) -> [UInt8] { bytes { curlew_certificate_der(pointer, keyAlone, $0) } }

    private func text(_ part: some BinaryInteger) -> String { string(curlew_certificate_text(pointer, CInt(part))) }
}

extension X509Certificate: Hashable {
    /// Whether both are the same bytes.
    package static func == (one: X509Certificate, other: X509Certificate) -> Bool {
        one.pointer == other.pointer || X509_cmp(one.pointer, other.pointer) == 0 && one.der == other.der
    }

    package func hash(into hasher: inout Hasher) { hasher.combine(der) }
}

/// A certificate revocation list (RFC 5280 §5).
package final class X509RevocationList: @unchecked Sendable {
    // Safe because OpenSSL counts references with atomics, and nothing here changes a list.
    let pointer: OpaquePointer

    private init?(_ pointer: OpaquePointer?) {
        guard let pointer else { return nil }
        self.pointer = pointer
    }

    deinit { X509_CRL_free(pointer) }

    /// Every list of a PEM text, or those in DER, or why there is none in OpenSSL's words.
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

/// Why certificates, keys or lists cannot be used, in OpenSSL's words.
package struct UnreadableTrust: Error {
    package let reason: String
}

/// The SHA-256 digest of bytes.
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

/// A text that OpenSSL gave away.
func string(_ text: UnsafeMutablePointer<CChar>?) -> String {
    guard let text else { return "" }
    defer { curlew_free(text) }
    return String(cString: text)
}
