// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// This folder contains the bindings to C libraries, and the code that lends memory of the engine or of a C library to
// Foundation and to callers.

package import CurlewEngine
internal import CurlewShims
package import FoundationEssentials
internal import Glibc

/// A chunk of a body as received: a collection that shares the memory of the receive buffer.
///
/// A chunk keeps up to 64 KiB alive; copy bytes that are kept for long with `Data(chunk)` or `Array(chunk)`.
public struct ByteChunk: RandomAccessCollection, Sendable, Hashable, CustomStringConvertible {
    /// The engine's storage of the bytes.
    package let chunk: Chunk

    package init(_ chunk: Chunk) { self.chunk = chunk }

    /// Creates a chunk by copying bytes.
    ///
    /// - Parameter bytes: Any bytes.
    public init(_ bytes: some Sequence<UInt8>) { chunk = Chunk(Array(bytes)) }

    /// Always 0.
    public var startIndex: Int { 0 }

    /// The number of bytes.
    public var endIndex: Int { chunk.count }

    /// The byte at a position.
    public subscript(position: Int) -> UInt8 { chunk[position] }

    /// Returns a part of this chunk, which shares its memory.
    func slice(_ range: Range<Int>) -> ByteChunk { ByteChunk(chunk.slice(range)) }

    /// Returns the position of the first occurrence of a byte sequence, from a position on; in time linear in the
    /// chunk's length only.
    func position(of wanted: [UInt8], from start: Int) -> Int? {
        position(from: start) { curlew_find($0, $1, wanted, wanted.count) }
    }

    /// Returns the position of the last occurrence of a byte, from a position on.
    func lastPosition(of byte: UInt8, from start: Int) -> Int? {
        position(from: start) { curlew_find_last($0, $1, byte) }
    }

    private func position(from start: Int, _ find: (UnsafeRawPointer, Int) -> Int) -> Int? {
        chunk.withUnsafeBytes { bytes in
            guard let base = bytes.baseAddress, start < bytes.count else { return nil }
            let found = find(base + start, bytes.count - start)
            return found < 0 ? nil : start + found
        }
    }

    /// Calls a closure with the bytes, without copying them.
    ///
    /// - Parameter body: Receives the bytes, which are valid only while it runs.
    /// - Returns: The result of the closure.
    /// - Throws: The error of the closure.
    public func withUnsafeBytes<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
        try chunk.withUnsafeBytes(body)
    }

    /// Calls a closure with the bytes, without copying them; never returns nil by itself.
    ///
    /// - Parameter body: Receives the bytes, which are valid only while it runs.
    /// - Returns: The result of the closure.
    /// - Throws: The error of the closure.
    public func withContiguousStorageIfAvailable<Result>(
        _ body: (UnsafeBufferPointer<UInt8>) throws -> Result
    ) rethrows -> Result? {
        try chunk.withContiguousStorageIfAvailable(body)
    }

    /// Whether both chunks contain the same bytes.
    public static func == (one: ByteChunk, other: ByteChunk) -> Bool { one.elementsEqual(other) }

    /// Hashes the bytes.
    public func hash(into hasher: inout Hasher) { chunk.withUnsafeBytes { hasher.combine(bytes: $0) } }

    /// The number of bytes, never their values.
    public var description: String { "\(count) bytes" }
}

extension Data {
    /// Takes ownership of the memory of a collected body, without copying it; nil for an empty body.
    package init(taking body: (memory: UnsafeMutableRawPointer, count: Int)?) {
        guard let body else {
            self.init()
            return
        }
        self.init(bytesNoCopy: body.memory, count: body.count, deallocator: .free)
    }
}
