// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import FoundationEssentials
internal import Glibc

// What decoders of streams ask of bytes: to be searched by libc, and to be taken over as text or data in one go.

extension ByteChunk {
    /// Lends the bytes to a closure, with every access checked.
    func withSpan<Result>(_ body: (Span<UInt8>) throws -> Result) rethrows -> Result {
        try withUnsafeBytes { try body($0.bindMemory(to: UInt8.self).span) }
    }
}

extension Span<UInt8> {
    /// Where a byte stands first from `start` on; nil when it stands nowhere.
    func firstIndex(of byte: UInt8, from start: Int) -> Int? {
        withUnsafeBytes { bytes in
            guard start < bytes.count, let base = bytes.baseAddress,
                let found = memchr(base + start, Int32(byte), bytes.count - start)
            else { return nil }
            return UnsafeRawPointer(found) - base
        }
    }

    /// The bytes as UTF-8, with U+FFFD for what is no character.
    var text: String { withUnsafeBytes { String(decoding: $0, as: UTF8.self) } }

    /// A copy of the bytes.
    var data: Data { withUnsafeBytes { Data($0) } }

    /// Adds the bytes to an array.
    func append(to array: inout [UInt8]) { withUnsafeBytes { array.append(contentsOf: $0) } }
}
