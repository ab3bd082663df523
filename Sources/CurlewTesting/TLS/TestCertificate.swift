// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// A certificate without its key, to be put into chains, lists and responses.
public struct TestCertificate: Sendable, Hashable {
    /// The certificate, PEM.
    public let pem: String
    /// The certificate, DER.
    public let der: [UInt8]
    /// The SHA-256 digest of its SubjectPublicKeyInfo, 32 bytes: what a public-key pin compares (RFC 7469 §2.4).
    public let publicKeySHA256: [UInt8]
}

/// A certificate and its key as text and bytes, so that nothing of OpenSSL's has to be kept.
struct MadeCertificate: Sendable {
    let certificate: TestCertificate
    let keyPEM: String
}

/// What a certificate is made as.
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
