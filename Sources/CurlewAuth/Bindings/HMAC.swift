// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import Curlew
internal import CurlewShims

/// A keyed digest (RFC 2104) of bytes that arrive in pieces, computed by OpenSSL.
///
/// One task or thread at a time may use a digest.
final class HMAC {
    private let context: OpaquePointer

    /// Creates the digest of no bytes; nil when OpenSSL has no digest of that name.
    init?(_ algorithm: MessageDigest.Algorithm, key: [UInt8]) {
        guard let method = EVP_MAC_fetch(nil, "HMAC", nil) else {
            // Remove the failure from the thread's error queue, where later code would take it for its own.
            ERR_clear_error()
            return nil
        }
        // The context holds a reference of its own.
        defer { EVP_MAC_free(method) }
        guard let context = EVP_MAC_CTX_new(method) else { return nil }
        // HMAC pads a key with zeros, so one zero byte equals the empty key, which OpenSSL treats as missing.
        let key = key.isEmpty ? [0] : key
        var name = algorithm.name.utf8CString
        let isReady = name.withUnsafeMutableBufferPointer { name in
            // The parameters hold both pointers, so the parameter's name must live as long as they do.
            "digest".withCString { parameter in
                let parameters = [
                    OSSL_PARAM_construct_utf8_string(parameter, name.baseAddress, 0), OSSL_PARAM_construct_end(),
                ]
                return EVP_MAC_init(context, key, key.count, parameters) == 1
            }
        }
        guard isReady else {
            EVP_MAC_CTX_free(context)
            ERR_clear_error()
            return nil
        }
        self.context = context
    }

    deinit { EVP_MAC_CTX_free(context) }

    /// Adds the next bytes.
    func update(_ bytes: some Sequence<UInt8>) {
        let done: Void? = bytes.withContiguousStorageIfAvailable { take($0) }
        if done == nil { Array(bytes).withUnsafeBufferPointer(take) }
    }

    private func take(_ bytes: UnsafeBufferPointer<UInt8>) {
        guard let base = bytes.baseAddress else { return }
        EVP_MAC_update(context, base, bytes.count)
    }

    /// Returns the digest of all bytes and ends it: no bytes may follow.
    func finish() -> [UInt8] {
        var code = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
        var count = 0
        EVP_MAC_final(context, &code, &count, code.count)
        return Array(code.prefix(count))
    }

    /// Whether both arrays contain the same bytes, in a time that depends only on their lengths.
    static func isEqual(_ one: [UInt8], _ other: [UInt8]) -> Bool {
        one.count == other.count && CRYPTO_memcmp(one, other, one.count) == 0
    }
}

extension MessageDigest.Algorithm {
    /// SHA-1 (FIPS 180-4), which is still secure in a keyed digest, but not elsewhere.
    static let sha1 = MessageDigest.Algorithm(name: "SHA1")
    /// SHA-384 (FIPS 180-4).
    static let sha384 = MessageDigest.Algorithm(name: "SHA2-384")
    /// SHA-512 (FIPS 180-4).
    static let sha512 = MessageDigest.Algorithm(name: "SHA2-512")
}
