// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Which kind of key a certificate gets.
public enum TestKey: Sendable, Hashable {
    /// EC on P-256, the default.
    case p256
    /// EC on P-384.
    case p384
    /// RSA with so many bits, 512 or more.
    ///
    /// RSA keys are slow to make, so each is made once per process: certificates of the same kind (root, intermediate,
    /// leaf), of the same size and the same number share one. Numbers tell keys apart; 0 by default.
    case rsa(_ bits: Int, number: Int = 0)
    /// Ed25519 (RFC 8410).
    case ed25519
}

/// Which digest a signature is made over.
///
/// Ed25519 keys have their own and ignore it.
public enum SignatureDigest: Sendable, Hashable {
    /// SHA-256, the default.
    case sha256
    /// SHA-384.
    case sha384
    /// SHA-512.
    case sha512
    /// SHA-1, broken: for clients that must refuse it.
    case sha1
    /// MD5, broken: for clients that must refuse it.
    ///
    /// Issuers with RSA keys only; no other signatures over it are defined.
    case md5
}
