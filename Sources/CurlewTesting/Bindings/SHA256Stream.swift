// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewShims

/// A SHA-256 digest of bytes that arrive in parts, so that a test can check a body of any size without keeping it.
///
/// The type is a value: a copy continues independently.
///
/// ```swift
/// var digest = SHA256Stream()
/// digest.update(Array("ab".utf8))
/// digest.update(Array("c".utf8))
/// print(digest.hex)  // ba7816bf…
/// ```
public struct SHA256Stream: Sendable {
    private var context = Context()

    /// Creates a digest of no bytes.
    public init() {}

    /// Adds the next bytes to the digest.
    /// - Parameter bytes: Any collection of bytes: an array, a slice, or Foundation's `Data`.
    public mutating func update(_ bytes: some Collection<UInt8>) {
        if !isKnownUniquelyReferenced(&context) { context = Context(copying: context) }
        let context = context
        let done: Void? = bytes.withContiguousStorageIfAvailable { context.update(UnsafeRawBufferPointer($0)) }
        if done == nil {
            Array(bytes).withUnsafeBytes(context.update)
        }
    }

    /// The 32 bytes of the digest of all bytes so far; more bytes may follow.
    public var digest: [UInt8] {
        Context(copying: context).finish()
    }

    /// The digest as 64 lower-case hexadecimal digits.
    public var hex: String {
        hexadecimal(digest)
    }

    /// Returns the digest of a whole input as 64 lower-case hexadecimal digits.
    /// - Parameter bytes: The whole input.
    public static func hex(of bytes: some Collection<UInt8>) -> String {
        var stream = SHA256Stream()
        stream.update(bytes)
        return stream.hex
    }

    // Safe because SHA256Stream copies the context before it changes one that has a second owner.
    private final class Context: @unchecked Sendable {
        private let pointer: OpaquePointer

        init() {
            pointer = Self.allocate()
            EVP_DigestInit_ex(pointer, EVP_sha256(), nil)
        }

        init(copying other: Context) {
            pointer = Self.allocate()
            EVP_MD_CTX_copy_ex(pointer, other.pointer)
        }

        deinit {
            EVP_MD_CTX_free(pointer)
        }

        func update(_ bytes: UnsafeRawBufferPointer) {
            EVP_DigestUpdate(pointer, bytes.baseAddress, bytes.count)
        }

        func finish() -> [UInt8] {
            var output = [UInt8](repeating: 0, count: 32)
            EVP_DigestFinal_ex(pointer, &output, nil)
            return output
        }

        private static func allocate() -> OpaquePointer {
            guard let pointer = EVP_MD_CTX_new() else {
                preconditionFailure("OpenSSL has no memory left for a digest.")
            }
            return pointer
        }
    }
}

/// Returns bytes as lower-case hexadecimal digits.
func hexadecimal(_ bytes: [UInt8]) -> String {
    let digits = Array("0123456789abcdef".utf8)
    return String(decoding: bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
}

/// Fills the whole `buffer` with the pattern's bytes from `offset` on.
func fillPattern(_ buffer: inout [UInt8], seed: UInt64, offset: Int) {
    buffer.withUnsafeMutableBufferPointer { target in
        guard let start = target.baseAddress else { return }
        curlew_pattern_fill(start, target.count, seed, UInt64(offset))
    }
}
