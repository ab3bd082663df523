// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// Bindings: where memory that the engine or a C library owns is lent to Foundation and to users.

internal import CurlewEngine
internal import CurlewShims
internal import FoundationEssentials
internal import Glibc

/// Bytes of a body as they came: a collection that shares the memory they were received in.
///
/// Keeping a chunk keeps up to 64 KiB alive; copy what is kept for long with `Data(chunk)` or `Array(chunk)`.
public struct ByteChunk: RandomAccessCollection, Sendable, Hashable, CustomStringConvertible {
    /// What the engine has it in.
    let chunk: Chunk

    init(_ chunk: Chunk) { self.chunk = chunk }

    /// Makes a chunk of bytes at hand.
    ///
    /// - Parameter bytes: Any bytes.
    public init(_ bytes: some Sequence<UInt8>) { chunk = Chunk(Array(bytes)) }

    /// Always 0.
    public var startIndex: Int { 0 }

    /// How many bytes there are.
    public var endIndex: Int { chunk.count }

    /// The byte at a position.
    public subscript(position: Int) -> UInt8 { chunk[position] }

    /// A part of this chunk, which shares its memory.
    func slice(_ range: Range<Int>) -> ByteChunk { ByteChunk(chunk.slice(range)) }

    /// Where the first of some bytes in a row is, from a position on; in time that grows with the chunk alone.
    func position(of wanted: [UInt8], from start: Int) -> Int? {
        position(from: start) { curlew_find($0, $1, wanted, wanted.count) }
    }

    /// Where the last of a byte is, from a position on.
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

    /// Lends the bytes to a closure, without copying them.
    ///
    /// - Parameter body: Gets the bytes, which are valid only while it runs.
    /// - Returns: What the closure returns.
    /// - Throws: What the closure throws.
    public func withUnsafeBytes<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
        try chunk.withUnsafeBytes(body)
    }

    /// Lends the bytes to a closure, without copying them; never nil.
    ///
    /// - Parameter body: Gets the bytes, which are valid only while it runs.
    /// - Returns: What the closure returns.
    /// - Throws: What the closure throws.
    public func withContiguousStorageIfAvailable<Result>(
        _ body: (UnsafeBufferPointer<UInt8>) throws -> Result
    ) rethrows -> Result? {
        try chunk.withContiguousStorageIfAvailable(body)
    }

    /// Whether both hold the same bytes.
    public static func == (one: ByteChunk, other: ByteChunk) -> Bool { one.elementsEqual(other) }

    /// Hashes the bytes.
    public func hash(into hasher: inout Hasher) { chunk.withUnsafeBytes { hasher.combine(bytes: $0) } }

    /// How many bytes, never which.
    public var description: String { "\(count) bytes" }
}

extension Data {
    /// Takes a collected body over, without copying it.
    init(taking body: CollectedBody?) {
        guard let (memory, count) = body?.takeMemory() else {
            self.init()
            return
        }
        self.init(bytesNoCopy: memory, count: count, deallocator: .free)
    }
}
