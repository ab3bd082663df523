// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewSupport
import CurlewShims

/// Makes a new key, or reads the private key in the options; the caller owns the result.
func makeKey(_ options: CertificateOptions, as role: CertificateRole) throws -> OpaquePointer {
    if let pem = options.privateKeyPEM { return try readKey(pem) }
    let key =
        switch options.key {
        case .p256: curlew_make_ec_key("P-256")
        case .p384: curlew_make_ec_key("P-384")
        case .ed25519: curlew_make_ed25519_key()
        case .rsa: try readKey(sharedKey(options.key, as: role))
        }
    guard let key else { throw TestingError.openSSL("Making a key") }
    return key
}

/// Returns the digest to sign with a key; nil for Ed25519, which has its own digest.
func digest(_ digest: SignatureDigest, for key: OpaquePointer) -> OpaquePointer? {
    if EVP_PKEY_get_base_id(key) == EVP_PKEY_ED25519 { return nil }
    return switch digest {
    case .sha256: EVP_sha256()
    case .sha384: EVP_sha384()
    case .sha512: EVP_sha512()
    case .sha1: EVP_sha1()
    case .md5: EVP_md5()
    }
}

/// Returns a private key as PKCS #8 PEM.
func pem(ofKey key: OpaquePointer) throws -> String {
    try text { PEM_write_bio_PrivateKey($0, key, nil, nil, 0, nil, nil) }
}

private struct SharedKeyID: Hashable {
    let key: TestKey
    let role: CertificateRole
}

private let sharedKeys = Lock<[SharedKeyID: String]>([:])

/// Returns the process's RSA key of a kind; the key is made under the lock, so that it is made only once.
private func sharedKey(_ key: TestKey, as role: CertificateRole) throws -> String {
    guard case .rsa(let bits, _) = key else { throw TestingError("Only RSA keys are shared.") }
    return try sharedKeys.withLock { keys in
        let place = SharedKeyID(key: key, role: role)
        if let made = keys[place] { return made }
        guard let made = curlew_make_rsa_key(Int(clamping: max(0, bits))) else {
            throw TestingError.openSSL("Making an RSA key")
        }
        defer { EVP_PKEY_free(made) }
        let text = try pem(ofKey: made)
        keys[place] = text
        return text
    }
}
