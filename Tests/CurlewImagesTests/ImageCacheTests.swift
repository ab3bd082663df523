// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewSupport
import Testing

@testable import CurlewImages

/// The cache of decoded images: costs, purges, keys and memory pressure.
@Suite(.timeLimit(.minutes(5)))
struct ImageCacheTests {
    /// An image that costs `count` × 4 bytes.
    private func image(_ count: Int) throws -> DecodedImage {
        try DecodedImage(pixels: [UInt8](repeating: 0, count: count * 3), width: count, height: 1)
    }

    private func key(_ number: Int) -> ImageCache.Key { ImageCache.Key("http://example.com/\(number)") }

    // MARK: Table

    @Test func purgeRemovesTheLeastRecentlyUsedUntilThePreferredCost() {
        var table = ImageTable<Int, Int>(.init(capacity: 100, preferred: 60))
        for number in 0..<10 { #expect(table.add(number, cost: 10, for: number) == (true, [])) }
        #expect(table.cost == 100 && table.count == 10, "the capacity itself is no reason for a purge")
        #expect(table.value(for: 0) == 0 && table.value(for: 2) == 2)
        // 110 is above the capacity; 1, 3, 4, 5 and 6 are the least recently used.
        let (isAdded, removed) = table.add(10, cost: 10, for: 10)
        #expect(isAdded && removed == [1, 3, 4, 5, 6] && table.cost == 60)
        #expect(table.value(for: 1) == nil && table.value(for: 0) == 0)
    }

    @Test func addedValueIsNeverRemoved() {
        var table = ImageTable<Int, Int>(.init(capacity: 100, preferred: 60))
        _ = table.add(1, cost: 50, for: 1)
        #expect(table.add(2, cost: 90, for: 2) == (true, [1]))
        #expect(table.value(for: 2) == 2 && table.cost == 90, "it costs more than the preferred cost")
        #expect(table.add(3, cost: 101, for: 3) == (false, []))
        #expect(table.value(for: 3) == nil && table.cost == 90)
        // A replaced value does not count any more; a refused one removes the old one.
        #expect(table.add(4, cost: 20, for: 2) == (true, [2]))
        #expect(table.cost == 20)
        #expect(table.add(5, cost: 101, for: 2) == (false, [4]))
        #expect(table.cost == 0 && table.count == 0)
    }

    @Test func valuesAreRemovedAndLimitsChange() {
        var table = ImageTable<Int, Int>(.init(capacity: 100, preferred: 60))
        for number in 0..<5 { _ = table.add(number, cost: 20, for: number) }
        #expect(table.remove(3) == 3 && table.remove(3) == nil && table.cost == 80)
        #expect(table.adapt(to: .init(capacity: 50, preferred: 30)) == [0, 1, 2])
        #expect(table.cost == 20 && table.limits.capacity == 50)
        #expect(table.adapt(to: .init(capacity: 0, preferred: 0)) == [4] && table.count == 0)
        #expect(table.add(9, cost: 1, for: 9).isAdded == false)
        #expect(table.adapt(to: .init(capacity: 9, preferred: 5)).isEmpty)
        _ = table.add(1, cost: 4, for: 1)
        #expect(table.removeAll() == [1] && table.removeAll().isEmpty && table.cost == 0)
    }

    // MARK: Cache

    @Test func sizesAreThoseOfAFNetworking() {
        let cache = ImageCache(pressure: nil)
        #expect(cache.capacity == .bytes(104_857_600) && cache.preferredCost == .bytes(62_914_560))
        let odd = ImageCache(capacity: -1, preferredCost: 10, pressure: nil)
        #expect(odd.capacity == 0 && odd.preferredCost == 0)
    }

    @Test func methodsSayWhetherTheyChangedTheCache() throws {
        let cache = ImageCache(capacity: 100, preferredCost: 60, pressure: nil)
        #expect(cache.add(try image(10), for: key(1)))
        #expect(!cache.add(try image(26), for: key(2)), "it costs more than the capacity")
        #expect(cache.image(for: key(1))?.width == 10 && cache.image(for: key(2)) == nil)
        #expect(cache.cost == 40 && cache.count == 1)
        #expect(cache.remove(key(1)) && !cache.remove(key(1)))
        #expect(!cache.removeAll())
        cache.add(try image(1), for: key(1))
        #expect(cache.removeAll() && cache.image(for: key(1)) == nil && cache.cost == 0)
    }

    @Test func pressureReleasesImages() async throws {
        let (levels, source) = AsyncStream.makeStream(of: MemoryPressure.Level.self)
        let cache = ImageCache(capacity: 400, preferredCost: 240, pressure: MemoryPressure { levels })
        for number in 0..<10 { cache.add(try image(10), for: key(number)) }
        #expect(cache.cost == 400)
        #expect(cache.image(for: key(0)) != nil)
        source.yield(.warning)
        // Half of both limits: above 200, down to 120.
        while cache.cost > 200 { await Task.yield() }
        #expect(cache.cost == 120 && cache.image(for: key(0)) != nil, "it was used last")
        source.yield(.critical)
        while cache.count > 0 { await Task.yield() }
        source.yield(.normal)
        while !cache.add(try image(100), for: key(1)) { await Task.yield() }
        #expect(cache.cost == 400)
        source.finish()
    }

    // MARK: Keys

    @Test func keysDifferInURLVariantOptionsAndFields() {
        let url = "https://example.com/a.png"
        let keys: [ImageCache.Key] = [
            .init(url), .init(url, variant: "round"), .init(url, options: .fitting(width: 1, height: 2)),
            .init(Request(url, fields: [.authorization: "Bearer x"])),
            .init(Request(url, fields: [.authorization: "Bearer y"])), .init("https://example.com/b.png"),
        ]
        #expect(Set(keys).count == keys.count)
        #expect(ImageCache.Key(Request(url)) == ImageCache.Key(url))
    }

    @Test func descriptionOfAKeyHasNoSecrets() {
        let request = Request(
            "https://user:secret@example.com/a.png?token=secret", fields: [.authorization: "Bearer secret"])
        let key = ImageCache.Key(request, variant: "round")
        #expect(!"\(key)".contains("secret") && "\(key)".contains("example.com/a.png") && "\(key)".contains("round"))
        var dump = ""
        Swift.dump(key, to: &dump)
        #expect(!dump.contains("secret"))
    }
}
