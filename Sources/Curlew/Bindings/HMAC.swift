// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewShims

/// A keyed digest (RFC 2104) of bytes that come in pieces, computed by OpenSSL.
///
/// For one task or thread at a time.
final class HMAC {
    private let context: OpaquePointer

    /// The code of no bytes so far; nil when OpenSSL has no digest of that name.
    init?(_ algorithm: MessageDigest.Algorithm, key: [UInt8]) {
        guard let method = EVP_MAC_fetch(nil, "HMAC", nil) else {
            // What failed stands in the thread's queue, where the next to look would take it for its own.
            ERR_clear_error()
            return nil
        }
        // The context has a reference of its own.
        defer { EVP_MAC_free(method) }
        guard let context = EVP_MAC_CTX_new(method) else { return nil }
        // A key is filled up with zeros, so that this is the empty one, which OpenSSL would take for none.
        let key = key.isEmpty ? [0] : key
        var name = algorithm.name.utf8CString
        let isReady = name.withUnsafeMutableBufferPointer { name in
            // Parameters keep both pointers, so the name of the parameter has to live as long as they do.
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

    /// Takes the next bytes in.
    func update(_ bytes: some Sequence<UInt8>) {
        let done: Void? = bytes.withContiguousStorageIfAvailable { take($0) }
        if done == nil { Array(bytes).withUnsafeBufferPointer(take) }
    }

    private func take(_ bytes: UnsafeBufferPointer<UInt8>) {
        guard let base = bytes.baseAddress else { return }
        EVP_MAC_update(context, base, bytes.count)
    }

    /// The code of everything taken in, which ends it: nothing may follow.
    func finish() -> [UInt8] {
        var code = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
        var count = 0
        EVP_MAC_final(context, &code, &count, code.count)
        return Array(code.prefix(count))
    }

    /// Whether both have the same bytes, found out in a time that only their lengths decide.
    static func isEqual(_ one: [UInt8], _ other: [UInt8]) -> Bool {
        one.count == other.count && CRYPTO_memcmp(one, other, one.count) == 0
    }
}

extension MessageDigest.Algorithm {
    /// SHA-1 (FIPS 180-4), which still does in a keyed digest and nowhere else.
    static let sha1 = MessageDigest.Algorithm(name: "SHA1")
    /// SHA-384 (FIPS 180-4).
    static let sha384 = MessageDigest.Algorithm(name: "SHA2-384")
    /// SHA-512 (FIPS 180-4).
    static let sha512 = MessageDigest.Algorithm(name: "SHA2-512")
}
