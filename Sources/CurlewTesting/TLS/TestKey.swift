// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The kind of a certificate's key.
public enum TestKey: Sendable, Hashable {
    /// EC on P-256, the default.
    case p256
    /// EC on P-384.
    case p384
    /// RSA with the given number of bits, at least 512.
    ///
    /// RSA keys are slow to make, so the process makes each key once: certificates with the same role (root,
    /// intermediate, leaf), key size and number share a key. Use different numbers to get different keys; 0 by default.
    case rsa(_ bits: Int, number: Int = 0)
    /// Ed25519 (RFC 8410).
    case ed25519
}

/// The digest that a signature covers.
///
/// Ed25519 keys use their own digest and ignore this value.
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
    /// Only issuers with RSA keys can use it; no other signatures over MD5 are defined.
    case md5
}
