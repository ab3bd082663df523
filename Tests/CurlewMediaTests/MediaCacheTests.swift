// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewSupport
import CurlewTesting
import Testing

@testable import CurlewMedia

/// Readers of one file, with a server that behaves.
@Suite(.timeLimit(.minutes(5)))
struct MediaCacheTests {
    /// A configuration in which a reader waits for a transfer only if it is close.
    private static let small = MediaCache.Configuration(readAhead: .kibibytes(256), joinDistance: .kibibytes(64))

    @Test func readerGetsAllBytesWithOneRequest() async throws {
        let bench = try MediaBench()
        let media = try await bench.media(bench.cache())
        #expect(media.length == 3_000_000)
        #expect(media.contentType == "application/octet-stream")
        #expect(media.validator == .tag("\"1\""))
        #expect(media.supportsRanges)
        try await bench.check(media)
        #expect(media.isComplete)
        #expect(media.storedRanges == [0..<3_000_000])
        #expect(bench.ranges == ["whole"])
        try await bench.check(media)
        try await bench.check(media, 17..<99_999)
        #expect(bench.ranges == ["whole"])
    }

    @Test func requestAsksForNoContentCoding() async throws {
        let bench = try MediaBench()
        try await bench.check(try await bench.media(bench.cache()))
        #expect(bench.server.requests.map { $0.field("Accept-Encoding") } == ["identity"])
        #expect(bench.server.violations == [])
    }

    @Test func readersAtManyPlacesShareOneTransfer() async throws {
        let bench = try MediaBench()
        let gate = Gate()
        bench.change { $1.fault(.stall(gate), at: .body(100_000)) }
        let cache = try await bench.cache(MediaCache.Configuration(joinDistance: .mebibytes(64)))
        let media = try await bench.media(cache)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for start in stride(from: Int64(0), to: 3_000_000, by: 300_000) {
                group.addTask { try await bench.check(media, start..<start + 400_000) }
            }
            await gate.waitUntilReached()
            gate.open()
            try await group.waitForAll()
        }
        #expect(bench.ranges == ["whole"])
    }

    @Test func waitingReaderGetsBytesBeforeTheTransferEnds() async throws {
        let bench = try MediaBench()
        let gate = Gate()
        bench.change { $1.fault(.stall(gate), at: .body(100_000)) }
        let media = try await bench.media(bench.cache())
        try await bench.check(media, 0..<100_000)
        #expect(!gate.isOpen && !media.isComplete)
        gate.open()
        try await bench.check(media)
    }

    @Test func seekIntoAHoleRequestsThatRangeUnderTheValidator() async throws {
        let bench = try MediaBench()
        let media = try await bench.media(bench.cache(Self.small))
        try await bench.check(media, 2_000_000..<2_100_000)
        #expect(bench.ranges == ["whole", "2000000-2099999"])
        #expect(bench.server.requests.last?.field("If-Range") == "\"1\"")
        try await bench.check(media, 1_900_000..<2_200_000)
        #expect(bench.ranges.dropFirst(2) == ["1900000-1999999", "2100000-2199999"])
        #expect(media.storedRanges.contains(1_900_000..<2_200_000))
    }

    @Test func modificationDateServesAsValidator() async throws {
        let bench = try MediaBench(tag: nil)
        bench.resource.withLock { $0.lastModified = "Mon, 01 Dec 2025 00:00:00 GMT" }
        let media = try await bench.media(bench.cache(Self.small))
        #expect(media.validator == .lastModified("Mon, 01 Dec 2025 00:00:00 GMT"))
        try await bench.check(media, 2_000_000..<2_100_000)
        #expect(bench.server.requests.last?.field("If-Range") == "Mon, 01 Dec 2025 00:00:00 GMT")
    }

    @Test func wholeFileIsReadInAnyOrderOfRanges() async throws {
        let bench = try MediaBench(2_000_000)
        let media = try await bench.media(bench.cache(Self.small))
        var chance = SeededGenerator(3)
        for part in (0..<20).shuffled(using: &chance) {
            try await bench.check(media, Int64(part) * 100_000..<Int64(part + 1) * 100_000)
        }
        #expect(media.isComplete)
        // Each byte was requested at most once; the first request was stopped after its start.
        var requested = Set<Int>()
        for range in bench.ranges.dropFirst() {
            let ends = range.split(separator: "-").compactMap { Int($0) } + [1_999_999]
            #expect(requested.isDisjoint(with: ends[0]...ends[1]))
            requested.formUnion(ends[0]...ends[1])
        }
    }

    @Test func manyReadersAtRandomPlacesGetTheRightBytes() async throws {
        let bench = try MediaBench(4_000_000)
        let media = try await bench.media(bench.cache(Self.small))
        try await withThrowingTaskGroup(of: Void.self) { group in
            for reader in 0..<40 {
                group.addTask {
                    var chance = SeededGenerator(UInt64(reader))
                    for _ in 0..<6 {
                        let start = Int64.random(in: 0..<4_000_000, using: &chance)
                        try await bench.check(media, start..<start + Int64.random(in: 1..<300_000, using: &chance))
                    }
                }
            }
            try await group.waitForAll()
        }
    }

    @Test func fillStoresTheWholeFile() async throws {
        let bench = try MediaBench(2_000_000)
        let media = try await bench.media(bench.cache(Self.small))
        try await bench.check(media, 1_000_000..<1_100_000)
        try await media.fill()
        #expect(media.isComplete)
        bench.server.stop()
        try await bench.check(media)
    }

    @Test func slowReaderHoldsTheTransfer() async throws {
        let bench = try MediaBench(12_000_000)
        let media = try await bench.media(bench.cache(Self.small))
        var reader = media.bytes().makeAsyncIterator()
        _ = try await reader.next()
        await bench.wait { media.use.source.state.withLock { $0.plan.transfers.values.contains { $0.isHeld } } }
        let stored = media.storedRanges.reduce(0) { $0 + $1.count }
        #expect(stored <= 1_048_576 + 262_144 + 65_536)
        while let chunk = try await reader.next() { #expect(chunk.count <= 262_144) }
        #expect(media.isComplete)
        #expect(bench.ranges == ["whole"])
    }

    @Test func openingIsHeldUntilAReaderComes() async throws {
        let bench = try MediaBench(12_000_000)
        let media = try await bench.media(bench.cache())
        await bench.wait { media.use.source.state.withLock { !$0.held.isEmpty } }
        #expect(media.storedRanges == [])
        try await bench.check(media, 0..<1_000_000)
        #expect(bench.ranges == ["whole"])
    }

    @Test func rangesBeyondTheEndAreCut() async throws {
        let bench = try MediaBench(1000)
        let media = try await bench.media(bench.cache())
        try await bench.check(media, 900..<5000)
        for try await chunk in media.bytes(1000..<2000) { Issue.record("\(chunk)") }
        for try await chunk in media.bytes(from: 7000) { Issue.record("\(chunk)") }
        for try await chunk in media.bytes(5..<5) { Issue.record("\(chunk)") }
    }

    @Test func emptyFileHasNoBytes() async throws {
        let bench = try MediaBench(0)
        let media = try await bench.media(bench.cache())
        #expect(media.length == 0)
        try await bench.check(media)
    }

    @Test func unknownLengthIsFoundAtTheEnd() async throws {
        let bench = try MediaBench(500_000)
        bench.change { $0.field("Range") == nil ? $1.chunked() : $1 }
        let media = try await bench.media(bench.cache())
        #expect(media.length == nil)
        try await bench.check(media)
        #expect(media.length == 500_000 && media.isComplete)
    }

    @Test func readerBeyondAnUnknownLengthEnds() async throws {
        let bench = try MediaBench(500_000)
        bench.change { $0.field("Range") == nil ? $1.chunked() : $1 }
        let media = try await bench.media(bench.cache(Self.small))
        for try await chunk in media.bytes(from: 900_000) { Issue.record("\(chunk)") }
        #expect(media.length == 500_000)
        #expect(bench.ranges == ["whole", "900000-"])
    }

    // MARK: Servers without ranges

    @Test func serverThatIgnoresRangesSendsTheFileOnce() async throws {
        let bench = try MediaBench(flaws: [.ignoresRanges])
        let media = try await bench.media(bench.cache(Self.small))
        try await bench.check(media, 2_500_000..<2_600_000)
        #expect(!media.supportsRanges)
        #expect(bench.ranges == ["whole", "2500000-2599999"])
        // The bytes before are there, since the response had them.
        try await bench.check(media, 0..<2_600_000)
        #expect(bench.ranges.count == 2)
    }

    @Test func serverThatRefusesRangesIsAskedForTheWhole() async throws {
        let bench = try MediaBench(500_000)
        bench.change { _, _ in
            .pattern(PatternBody(seed: 7, length: 500_000)).field("ETag", "\"1\"").field("Accept-Ranges", "none")
        }
        let media = try await bench.media(bench.cache(Self.small))
        #expect(!media.supportsRanges)
        try await bench.check(media, 400_000..<500_000)
        #expect(bench.ranges == ["whole"])
    }

    @Test(arguments: [String?.none, "W/\"1\""])
    func withoutAStrongValidatorReadersWaitForOneTransfer(_ tag: String?) async throws {
        let bench = try MediaBench(tag: tag)
        let gate = Gate()
        bench.change { $1.fault(.stall(gate), at: .body(500_000)) }
        let cache = try await bench.cache(Self.small)
        var media: MediaCache.Media? = try await bench.media(cache)
        #expect(media?.supportsRanges == false && media?.validator == nil)
        if let media {
            try await withThrowingTaskGroup(of: Void.self) { group in
                for start in [0, 1_000_000, 2_000_000] as [Int64] {
                    group.addTask { try await bench.check(media, start..<start + 90_000) }
                }
                await gate.waitUntilReached()
                gate.open()
                try await group.waitForAll()
            }
        }
        #expect(bench.ranges == ["whole"])
        media = nil
        await cache.store.waitForSaves()
        await cache.close()
        #expect(bench.directory.names == [])
    }

    @Test func completeFileWithoutAValidatorIsKept() async throws {
        let bench = try MediaBench(300_000, tag: nil)
        let cache = try await bench.cache()
        try await bench.check(try await bench.media(cache))
        try await bench.check(try await bench.media(cache))
        #expect(bench.ranges == ["whole"])
        await cache.close()
        try await bench.check(try await bench.media(try await bench.cache()))
        #expect(bench.ranges == ["whole"])
    }
}
