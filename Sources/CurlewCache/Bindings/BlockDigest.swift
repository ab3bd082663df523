// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import Curlew
internal import CurlewShims

/// The digests of the blocks of a body, each of 16 bytes, computed while the body is written.
///
/// A digest is AES-128-GMAC (NIST SP 800-38D) with a constant key, because it finds accidental changes several times
/// faster than SHA-256. Protection from an attacker with access to the files is not its purpose.
final class BlockDigests {
    /// The size of a block in bytes.
    static let blockSize = 256 << 10
    /// The size of a digest in bytes.
    static let size = 16

    private let context: OpaquePointer
    /// The number of bytes in the current block.
    private var filled = 0
    private var finished: [UInt8] = []

    /// Nil when OpenSSL has no AES-GCM.
    init?() {
        guard let context = EVP_CIPHER_CTX_new() else { return nil }
        self.context = context
        guard EVP_EncryptInit_ex(context, EVP_aes_128_gcm(), nil, Self.key, Self.nonce) == 1 else {
            ERR_clear_error()
            return nil
        }
    }

    deinit { EVP_CIPHER_CTX_free(context) }

    private static let key = Array("Curlew's caches.".utf8)
    private static let nonce = [UInt8](repeating: 0, count: 12)

    /// Adds the next bytes.
    func update(_ bytes: UnsafeRawBufferPointer) {
        var rest = bytes
        while !rest.isEmpty {
            let count = min(rest.count, Self.blockSize - filled)
            var written: Int32 = 0
            EVP_EncryptUpdate(
                context, nil, &written, rest.baseAddress?.assumingMemoryBound(to: UInt8.self), Int32(count))
            filled += count
            rest = UnsafeRawBufferPointer(rebasing: rest[count...])
            if filled == Self.blockSize { finishBlock() }
        }
    }

    /// Adds the next bytes.
    func update(_ chunk: ByteChunk) { chunk.withUnsafeBytes { update($0) } }

    /// Returns the digests of all blocks; the last block may be shorter than the others.
    func finish() -> [UInt8] {
        if filled > 0 { finishBlock() }
        return finished
    }

    private func finishBlock() {
        var (tag, written) = ([UInt8](repeating: 0, count: Self.size), Int32(0))
        EVP_EncryptFinal_ex(context, &tag, &written)
        EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, Int32(Self.size), &tag)
        finished += tag
        filled = 0
        EVP_EncryptInit_ex(context, nil, nil, nil, Self.nonce)
    }

    /// Returns the digests of the blocks of some bytes; nil when OpenSSL has no AES-GCM.
    static func digests(of bytes: some Collection<UInt8>) -> [UInt8]? {
        guard let digests = BlockDigests() else { return nil }
        let isDone: Void? = bytes.withContiguousStorageIfAvailable { digests.update(UnsafeRawBufferPointer($0)) }
        if isDone == nil { Array(bytes).withUnsafeBytes { digests.update($0) } }
        return digests.finish()
    }
}
