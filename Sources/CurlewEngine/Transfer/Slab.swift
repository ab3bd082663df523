// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// A block of memory that body bytes land in, given back to its pool when the last chunk of it is gone.
///
/// The loop fills a slab from the front and hands out filled ranges; a range is never written again, so a reader of
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
        if let pool { pool.giveBack(memory) } else { free(memory) }
    }

    /// Copies in as much as fits and says how much that was.
    func append(_ bytes: UnsafeRawPointer, _ count: Int) -> Int {
        let fitting = min(count, capacity - used)
        memcpy(memory + used, bytes, fitting)
        used += fitting
        return fitting
    }
}

/// Spare slabs of one size, for the loop to take and any thread to give back.
package final class SlabPool: @unchecked Sendable {
    // Safe because the only state is the locked list; the pointers in it are owned by nobody else.
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

    /// How many of them there are.
    var spareCount: Int { spare.withLock { $0.count } }

    fileprivate func giveBack(_ memory: UnsafeMutableRawPointer) {
        let kept = spare.withLock { spare in
            guard spare.count < most else { return false }
            spare.append(memory)
            return true
        }
        if !kept { free(memory) }
    }
}

/// A range of received bytes that keeps its memory alive; a collection of them.
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

    /// This range and the one right behind it in the same slab as one; nil when they are not neighbours.
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

    /// A part of this chunk, which shares its memory.
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

/// A body gathered into one block of memory, grown as it comes and owned by whoever takes it.
package final class CollectedBody: @unchecked Sendable {
    // Safe because the loop thread alone writes while the transfer runs, and hands the body over, under the
    // transfer's lock, when nothing writes any more.
    #if !DEBUG
    @exclusivity(unchecked)
    #endif
    private var memory: UnsafeMutableRawPointer?
    package private(set) var count = 0
    private var capacity = 0

    package init() {}

    deinit { free(memory) }

    /// Makes room for a body of known length, without trusting a stranger with more than 1 MiB at once.
    func reserve(_ expected: Int) { _ = grow(to: Swift.min(expected, 1 << 20)) }

    private func grow(to wanted: Int) -> Bool {
        guard wanted > capacity else { return true }
        guard let grown = realloc(memory, wanted) else { return false }
        memory = grown
        capacity = wanted
        return true
    }

    /// False when there is no memory left.
    func append(_ bytes: UnsafeRawPointer, _ added: Int) -> Bool {
        if count + added > capacity, !grow(to: Swift.max(count + added, Swift.min(capacity * 2, capacity + (32 << 20))))
        {
            return false
        }
        guard let memory else { return added == 0 }
        memcpy(memory + count, bytes, added)
        count += added
        return true
    }

    /// Gives the memory away, to be freed with `free`; nil when the body is empty.
    ///
    /// The body is empty afterwards.
    package func takeMemory() -> (UnsafeMutableRawPointer, count: Int)? {
        guard let memory, count > 0 else { return nil }
        defer {
            self.memory = nil
            count = 0
            capacity = 0
        }
        return (memory, count)
    }

    /// Turns what was gathered into a chunk, for a transfer that is streamed after all.
    package func takeChunk() -> Chunk? {
        takeMemory().map { memory, count in
            Chunk(slab: Slab(memory: memory, capacity: count, used: count, pool: nil), offset: 0, count: count)
        }
    }

    package func prefix(_ most: Int) -> [UInt8] {
        guard let memory else { return [] }
        return Array(UnsafeRawBufferPointer(start: memory, count: Swift.min(count, most)))
    }
}
