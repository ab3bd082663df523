// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Glibc
import Testing

@testable import CurlewEngine

@Suite("Slab, SlabPool, Chunk")
struct SlabTests {
    private func append(_ bytes: [UInt8], to slab: Slab) -> Int {
        bytes.withUnsafeBytes { slab.append($0.baseAddress!, $0.count) }
    }

    @Test func appendStoresOnlyTheBytesThatFit() {
        let slab = SlabPool(size: 8, most: 32).take()
        #expect(slab.capacity == 8)
        #expect(append([1, 2, 3, 4, 5], to: slab) == 5)
        #expect(slab.used == 5)
        #expect(append([6, 7, 8, 9, 10], to: slab) == 3)
        #expect(append([11], to: slab) == 0)
        #expect(slab.used == 8)
        #expect(Array(Chunk(slab: slab, offset: 0, count: 8)) == [1, 2, 3, 4, 5, 6, 7, 8])
    }

    @Test func chunksOfASlabAreIndependent() {
        let slab = SlabPool(size: 16, most: 32).take()
        _ = append([1, 2, 3], to: slab)
        let first = Chunk(slab: slab, offset: 0, count: slab.used)
        _ = append([4, 5], to: slab)
        let second = Chunk(slab: slab, offset: 3, count: 2)
        #expect(Array(first) == [1, 2, 3])
        #expect(Array(second) == [4, 5])
    }

    @Test func poolReusesMemoryAfterItsLastChunk() {
        let pool = SlabPool(size: 32, most: 1)
        var chunk: Chunk?
        let address: UnsafeMutableRawPointer
        do {
            let slab = pool.take()
            address = slab.memory
            _ = append([7], to: slab)
            chunk = Chunk(slab: slab, offset: 0, count: 1)
        }
        let other = pool.take()
        #expect(other.memory != address, "the chunk still holds the first slab")
        #expect(chunk?.first == 7)
        chunk = nil
        let again = pool.take()
        #expect(again.memory == address)
        #expect(again.used == 0)
        withExtendedLifetime(other) {}
    }

    /// Chunks that a slow reader has read are released at once, so that they do not pile up.
    @Test func slabsOfReadChunksReturnToThePool() {
        let pool = SlabPool(size: 8, most: 8)
        var shared = EngineTransfer.LockedState(plan)
        shared.isHeadTaken = true
        for byte in UInt8(1)...4 {
            let slab = pool.take()
            _ = append([byte], to: slab)
            shared.append([Chunk(slab: slab, offset: 0, count: 1)])
        }
        var taken: [UInt8] = []
        for left in [3, 2, 1, 0] {
            if case .bytes(let chunk) = shared.takeStep(withProgress: false) { taken += Array(chunk) }
            #expect(pool.spareCount == 4 - left)
        }
        #expect(taken == [1, 2, 3, 4])
    }

    private var plan: TransferPlan {
        TransferPlan(
            method: "GET", url: "http://localhost/", host: "localhost", port: 80, isSecure: false,
            lines: HeaderLines([]), upload: .none,
            trust: TrustDomain(prepare: { true }, judge: { _ in nil }))
    }

    @Test func poolKeepsALimitedNumberOfSlabs() {
        let pool = SlabPool(size: 64, most: 2)
        var addresses: Set<UnsafeMutableRawPointer> = []
        do {
            let slabs = (0..<5).map { _ in pool.take() }
            addresses = Set(slabs.map(\.memory))
            #expect(addresses.count == 5)
        }
        // The next two slabs are spare ones; later slabs are new memory at any address.
        let kept = [pool.take(), pool.take()]
        #expect(kept.allSatisfy { addresses.contains($0.memory) })
        #expect(kept[0].memory != kept[1].memory)
    }

    @Test func slabOutlivesItsPool() {
        var pool: SlabPool? = SlabPool(size: 4, most: 32)
        let slab = pool!.take()
        pool = nil
        #expect(append([1, 2, 3, 4], to: slab) == 4)
    }

    @Test func concurrentThreadsNeverShareASlab() throws {
        let pool = SlabPool(size: 128, most: 8)
        let threads = try (0..<4).map { number in
            try TestThread {
                for _ in 0..<2000 {
                    let slab = pool.take()
                    memset(slab.memory, CInt(number), slab.capacity)
                    let last = slab.memory.load(fromByteOffset: 127, as: UInt8.self)
                    if last != UInt8(number) { Issue.record("two threads had the same slab") }
                }
            }
        }
        for thread in threads { thread.join() }
    }

    @Test func chunkOfAnArrayReadsItsBytes() {
        let chunk = Chunk([9, 8, 7])
        #expect(chunk.count == 3)
        #expect(chunk.startIndex == 0)
        #expect(chunk.endIndex == 3)
        #expect(chunk[2] == 7)
        #expect(chunk.withUnsafeBytes { Array($0) } == [9, 8, 7])
        #expect(chunk.withContiguousStorageIfAvailable { Array($0) } == [9, 8, 7])
        #expect(Array(chunk.reversed()) == [7, 8, 9])
        #expect(Array(chunk[1...]) == [8, 7])
        #expect(Chunk([]).isEmpty)
    }

    @Test func chunkOfASlabReadsItsBytes() {
        let slab = SlabPool(size: 16, most: 32).take()
        _ = append(Array(0..<16), to: slab)
        let chunk = Chunk(slab: slab, offset: 5, count: 4)
        #expect(chunk[0] == 5)
        #expect(chunk[3] == 8)
        #expect(chunk.withUnsafeBytes { Array($0) } == [5, 6, 7, 8])
        #expect(chunk.withContiguousStorageIfAvailable { $0.count } == 4)
        #expect(Array(chunk) == [5, 6, 7, 8])
    }

    @Test func indexOutsideAChunkTraps() async {
        await #expect(processExitsWith: .failure) { _ = Chunk([1])[1] }
        await #expect(processExitsWith: .failure) { _ = Chunk([1])[-1] }
    }
}

@Suite("CollectedBody")
struct CollectedBodyTests {
    private func append(_ bytes: [UInt8], to body: inout CollectedBody) -> Bool {
        bytes.withUnsafeBytes { raw in
            guard let base = raw.baseAddress else { return body.append(UnsafeRawPointer(bitPattern: 8)!, 0) }
            return body.append(base, raw.count)
        }
    }

    @Test func emptyBodyHasNoMemoryAndNoChunk() {
        var body = CollectedBody()
        defer { body.clear() }
        #expect(append([], to: &body))
        #expect(body.count == 0)
        #expect(body.takeMemory() == nil)
        #expect(body.takeChunk() == nil)
        #expect(body.prefix(10) == [])
        body.reserve(100)
        #expect(body.takeMemory() == nil)
        #expect(body.prefix(10) == [])
    }

    @Test(arguments: [UInt64(1), 2, 3])
    func bodyGrowsAndKeepsEveryByte(seed: UInt64) throws {
        var random = SeededGenerator(seed)
        var body = CollectedBody()
        defer { body.clear() }
        body.reserve(Int(random.below(5000)))
        var reference: [UInt8] = []
        for _ in 0..<200 {
            let part = random.bytes(Int(random.below(900)))
            #expect(append(part, to: &body))
            reference += part
        }
        #expect(body.count == reference.count)
        #expect(body.prefix(17) == Array(reference.prefix(17)))
        #expect(body.prefix(.max) == reference)
        let taken = body.takeMemory()
        let (memory, count) = try #require(taken)
        #expect(Array(UnsafeRawBufferPointer(start: memory, count: count)) == reference)
        free(memory)
        #expect(body.count == 0)
        #expect(body.takeMemory() == nil)
    }

    @Test func appendAfterTakingStartsANewBody() throws {
        var body = CollectedBody()
        defer { body.clear() }
        #expect(append([1, 2, 3], to: &body))
        let taken = body.takeChunk()
        let chunk = try #require(taken)
        #expect(append([4], to: &body))
        #expect(Array(chunk) == [1, 2, 3])
        #expect(body.prefix(9) == [4])
    }

    @Test func hugeReservationStillAllowsAppending() {
        var body = CollectedBody()
        defer { body.clear() }
        body.reserve(.max)
        #expect(append([UInt8](repeating: 5, count: 3 << 20), to: &body))
        #expect(body.count == 3 << 20)
        #expect(body.prefix(2) == [5, 5])
    }
}
