// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// A certificate without its key, for use in chains, revocation lists and OCSP responses.
public struct TestCertificate: Sendable, Hashable {
    /// The certificate, PEM.
    public let pem: String
    /// The certificate, DER.
    public let der: [UInt8]
    /// The SHA-256 digest of its SubjectPublicKeyInfo, 32 bytes, as used by public-key pins (RFC 7469 §2.4).
    public let publicKeySHA256: [UInt8]
}

/// A certificate and its key as text and bytes, so that no OpenSSL object has to be kept.
struct MadeCertificate: Sendable {
    let certificate: TestCertificate
    let keyPEM: String
}

/// The role of a certificate in a chain.
enum CertificateRole: Sendable, Hashable {
    case root, intermediate, leaf

    var isAuthority: Bool { self != .leaf }

    var defaultHosts: [String] { isAuthority ? [] : ["localhost", "127.0.0.1", "::1"] }

    var defaultCommonName: String? {
        switch self {
        case .root: "Test Root"
        case .intermediate: "Test Intermediate"
        case .leaf: nil
        }
    }
}
