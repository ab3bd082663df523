// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials
internal import Glibc

// Operations on bytes for the decoders of streams: searches by libc, and conversions to text or data in one step.

extension ByteChunk {
    /// Calls a closure with the bytes as a span, which checks every access.
    package func withSpan<Value, Failure: Error>(
        _ body: (Span<UInt8>) throws(Failure) -> Value
    ) throws(Failure) -> Value {
        try withUnsafeBytes { bytes in
            Result { () throws(Failure) in try body(bytes.bindMemory(to: UInt8.self).span) }
        }.get()
    }
}

extension Span<UInt8> {
    /// Returns the first index of a byte from `start` on; nil when it does not occur.
    package func firstIndex(of byte: UInt8, from start: Int) -> Int? {
        withUnsafeBytes { bytes in
            guard start < bytes.count, let base = bytes.baseAddress,
                let found = memchr(base + start, Int32(byte), bytes.count - start)
            else { return nil }
            return UnsafeRawPointer(found) - base
        }
    }

    /// The bytes as UTF-8, with U+FFFD for invalid sequences.
    var text: String { withUnsafeBytes { String(decoding: $0, as: UTF8.self) } }

    /// A copy of the bytes.
    package var data: Data { withUnsafeBytes { Data($0) } }

    /// Appends the bytes to an array.
    package func append(to array: inout [UInt8]) { withUnsafeBytes { array.append(contentsOf: $0) } }
}
