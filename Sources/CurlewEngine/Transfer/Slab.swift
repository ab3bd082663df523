// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import CurlewSupport

/// A block of memory that receives body bytes; it returns to its pool with its last chunk.
///
/// The loop fills a slab from the front and publishes filled ranges. A range is never written again, so the reader of
/// one range and the writer of the next never touch the same byte.
package final class Slab: @unchecked Sendable {
    // Safe because the loop thread alone writes, only past `used`, and readers get only ranges below it.
    let memory: UnsafeMutableRawPointer
    let capacity: Int
    private(set) var used = 0
    private let pool: SlabPool?

    init(memory: UnsafeMutableRawPointer, capacity: Int, used: Int = 0, pool: SlabPool?) {
        self.memory = memory
        self.capacity = capacity
        self.used = used
        self.pool = pool
    }

    deinit {
        if let pool { pool.recycle(memory) } else { free(memory) }
    }

    /// Copies as many bytes as fit and returns their number.
    func append(_ bytes: UnsafeRawPointer, _ count: Int) -> Int {
        let fitting = min(count, capacity - used)
        memcpy(memory + used, bytes, fitting)
        used += fitting
        return fitting
    }
}

/// Spare slabs of one size; the loop takes them and any thread returns them.
package final class SlabPool: @unchecked Sendable {
    // Safe because the only state is the locked list; no other code has the pointers in it.
    let size: Int
    private let most: Int
    private let spare = Lock<[UnsafeMutableRawPointer]>([])

    package init(size: Int = 64 << 10, most: Int) {
        self.size = size
        self.most = most
    }

    deinit { for memory in spare.withLock({ $0 }) { free(memory) } }

    func take() -> Slab {
        let memory = spare.withLock { $0.popLast() } ?? malloc(size)
        guard let memory else { preconditionFailure("out of memory for a body slab of \(size) bytes") }
        return Slab(memory: memory, capacity: size, pool: self)
    }

    /// The number of spare slabs.
    var spareCount: Int { spare.withLock { $0.count } }

    fileprivate func recycle(_ memory: UnsafeMutableRawPointer) {
        let kept = spare.withLock { spare in
            guard spare.count < most else { return false }
            spare.append(memory)
            return true
        }
        if !kept { free(memory) }
    }
}

/// A range of received bytes, as a collection; it keeps its memory alive.
package struct Chunk: RandomAccessCollection, Sendable {
    private let slab: Slab?
    private let bytes: [UInt8]
    private let offset: Int
    package let count: Int

    static let empty = Chunk([])

    init(slab: Slab, offset: Int, count: Int) {
        self.slab = slab
        self.offset = offset
        self.count = count
        bytes = []
    }

    /// Returns this range and the next one as one range; nil if `next` does not follow directly in the same slab.
    func joined(with next: Chunk) -> Chunk? {
        guard let slab, slab === next.slab, offset + count == next.offset else { return nil }
        return Chunk(slab: slab, offset: offset, count: count + next.count)
    }

    package init(_ bytes: [UInt8]) {
        self.init(bytes, 0..<bytes.count)
    }

    private init(_ bytes: [UInt8], _ range: Range<Int>) {
        slab = nil
        offset = range.lowerBound
        count = range.count
        self.bytes = bytes
    }

    /// Returns a part of this chunk, which shares its memory.
    package func slice(_ range: Range<Int>) -> Chunk {
        precondition(
            range.lowerBound >= 0 && range.upperBound <= count, "\(range) is outside a chunk of \(count) bytes")
        let (start, end) = (offset + range.lowerBound, offset + range.upperBound)
        return slab.map { Chunk(slab: $0, offset: start, count: range.count) } ?? Chunk(bytes, start..<end)
    }

    package var startIndex: Int { 0 }
    package var endIndex: Int { count }

    package subscript(position: Int) -> UInt8 {
        precondition(position >= 0 && position < count, "index \(position) is outside a chunk of \(count) bytes")
        return slab.map { $0.memory.load(fromByteOffset: offset + position, as: UInt8.self) }
            ?? bytes[offset + position]
    }

    package func withUnsafeBytes<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
        guard let slab else {
            return try bytes.withUnsafeBytes { try body(UnsafeRawBufferPointer(rebasing: $0[offset..<offset + count])) }
        }
        return try withExtendedLifetime(slab) {
            try body(UnsafeRawBufferPointer(start: slab.memory + offset, count: count))
        }
    }

    package func withContiguousStorageIfAvailable<Result>(
        _ body: (UnsafeBufferPointer<UInt8>) throws -> Result
    ) rethrows -> Result? {
        try withUnsafeBytes { raw in try raw.withMemoryRebound(to: UInt8.self, body) }
    }
}

/// A body collected into one block of memory, which grows as bytes arrive.
///
/// It is a plain value, because an object for each response would cost more than its bytes: its owner frees the memory
/// with `clear()`, unless a caller has taken it.
struct CollectedBody {
    private var memory: UnsafeMutableRawPointer?
    private(set) var count = 0
    private var capacity = 0

    mutating func clear() {
        free(memory)
        self = CollectedBody()
    }

    /// Reserves memory for a body of known length, at most 1 MiB because the announced length may be wrong.
    mutating func reserve(_ expected: Int) { _ = grow(to: Swift.min(expected, 1 << 20)) }

    private mutating func grow(to wanted: Int) -> Bool {
        guard wanted > capacity else { return true }
        guard let grown = realloc(memory, wanted) else { return false }
        memory = grown
        capacity = wanted
        return true
    }

    /// Appends bytes; returns false if no memory is left.
    mutating func append(_ bytes: UnsafeRawPointer, _ added: Int) -> Bool {
        if count + added > capacity, !grow(to: Swift.max(count + added, Swift.min(capacity * 2, capacity + (32 << 20))))
        {
            return false
        }
        guard let memory else { return added == 0 }
        memcpy(memory + count, bytes, added)
        count += added
        return true
    }

    /// Transfers ownership of the memory to the caller, which must release it with `free`; nil if the body is empty.
    ///
    /// The body is empty afterwards.
    mutating func takeMemory() -> (memory: UnsafeMutableRawPointer, count: Int)? {
        guard let memory, count > 0 else { return nil }
        defer { self = CollectedBody() }
        return (memory, count)
    }

    /// Converts the collected bytes into a chunk, for a transfer that is streamed after all.
    mutating func takeChunk() -> Chunk? {
        takeMemory().map { memory, count in
            Chunk(slab: Slab(memory: memory, capacity: count, used: count, pool: nil), offset: 0, count: count)
        }
    }

    func prefix(_ most: Int) -> [UInt8] {
        guard let memory else { return [] }
        return Array(UnsafeRawBufferPointer(start: memory, count: Swift.min(count, most)))
    }
}
