// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewShims

/// A cryptographic digest of bytes that arrive in pieces, computed by OpenSSL.
///
/// One task or thread at a time may use a digest.
package final class MessageDigest {
    /// A digest algorithm, by the name in OpenSSL's providers.
    package struct Algorithm: Sendable, Hashable {
        package let name: String

        package init(name: String) { self.name = name }

        /// MD5 (RFC 1321), which is unavailable in FIPS mode.
        package static let md5 = Algorithm(name: "MD5")
        /// SHA-256 (FIPS 180-4).
        package static let sha256 = Algorithm(name: "SHA2-256")
        /// SHA-512/256 (FIPS 180-4 §6.7): 256 bits with initial values of its own, not a truncated SHA-512.
        package static let sha512t256 = Algorithm(name: "SHA2-512/256")

        /// Whether OpenSSL on this machine supports the algorithm.
        package var isAvailable: Bool { MessageDigest(self) != nil }
    }

    private let context: OpaquePointer

    /// Creates the digest of no bytes; nil when OpenSSL has no digest of that name.
    package init?(_ algorithm: Algorithm) {
        guard let method = EVP_MD_fetch(nil, algorithm.name, nil) else {
            // Remove the failure from the thread's error queue, where later code would take it for its own.
            ERR_clear_error()
            return nil
        }
        // The context holds a reference of its own.
        defer { EVP_MD_free(method) }
        guard let context = EVP_MD_CTX_new() else { return nil }
        guard EVP_DigestInit_ex(context, method, nil) == 1 else {
            EVP_MD_CTX_free(context)
            ERR_clear_error()
            return nil
        }
        self.context = context
    }

    deinit { EVP_MD_CTX_free(context) }

    /// Adds the next bytes.
    package func update(_ bytes: UnsafeRawBufferPointer) {
        guard let base = bytes.baseAddress else { return }
        EVP_DigestUpdate(context, base, bytes.count)
    }

    /// Adds the next bytes.
    package func update(_ bytes: some Sequence<UInt8>) {
        let done: Void? = bytes.withContiguousStorageIfAvailable { update(UnsafeRawBufferPointer($0)) }
        if done == nil { Array(bytes).withUnsafeBytes(update) }
    }

    /// Returns the digest of all bytes and ends it: no bytes may follow.
    package func finish() -> [UInt8] {
        var digest = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
        var count: UInt32 = 0
        EVP_DigestFinal_ex(context, &digest, &count)
        return Array(digest.prefix(Int(count)))
    }

    /// Returns the digest of all bytes so far; more may follow.
    package func current() -> [UInt8] {
        guard let copy = EVP_MD_CTX_new() else { return [] }
        defer { EVP_MD_CTX_free(copy) }
        var digest = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
        var count: UInt32 = 0
        guard EVP_MD_CTX_copy_ex(copy, context) == 1 else { return [] }
        EVP_DigestFinal_ex(copy, &digest, &count)
        return Array(digest.prefix(Int(count)))
    }

    /// Returns the digest of bytes; nil when OpenSSL has no digest of that name.
    package static func digest(_ algorithm: Algorithm, of bytes: some Sequence<UInt8>) -> [UInt8]? {
        guard let digest = MessageDigest(algorithm) else { return nil }
        digest.update(bytes)
        return digest.finish()
    }
}

extension Sequence<UInt8> {
    /// The bytes as lower-case hexadecimal digits.
    package var hexadecimal: String {
        let digits = Array("0123456789abcdef".utf8)
        return String(decoding: flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
    }
}
