// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewSupport
import CurlewTesting
import Foundation
import Glibc
import Testing

@testable import CurlewMedia

/// Kills a process that fills a cache, as `kill -9` does, and reads the cache afterwards.
@Suite(.serialized, .timeLimit(.minutes(10)))
struct MediaKillTests {
    private static let length = 700_000

    private static func copy(_ directory: TestDirectory?) throws -> TestDirectory {
        let copy = TestDirectory()
        if let directory {
            try FileManager.default.copyItem(atPath: directory.path + "/media", toPath: copy.path + "/media")
        }
        return copy
    }

    /// Runs commands in a process that may be killed, and checks that the cache has only right bytes.
    ///
    /// - Returns: The end of the process, and the number of bytes that were stored.
    private static func run(
        _ script: [String], _ bench: MediaBench, on prepared: TestDirectory?, _ environment: [String: String]
    ) async throws -> (MediaProcess.End, Int64) {
        let directory = try copy(prepared)
        let path = directory.path + "/media"
        let end = try await MediaProcess.run(
            path, bench.url, seed: bench.body.seed, length: bench.body.length, script, environment: environment)
        #expect(end.status == 0 || end.status == -SIGKILL, "\(end)")
        #expect(!end.lines.contains { $0.contains(": failed") }, "\(end)")
        let cache = try await MediaCache(at: path, session: bench.session)
        let stored = cache.entries.reduce(0) { $0 + $1.storedBytes }
        #expect(cache.entries.count <= 1)
        let media = try await cache.media(for: Request(bench.url))
        // The stored bytes are the right ones: those of the present file, or those of the old one, which serve until
        // the first missing byte shows that the file has changed.
        let isOld = media.validator == .tag("\"1\"") && bench.resource.withLock { $0.tag } != "\"1\""
        for range in media.storedRanges {
            try await bench.check(media, range, against: isOld ? PatternBody(seed: 7, length: length) : nil)
        }
        if isOld { try await bench.check(media, 610_000..<620_000) }
        try await bench.check(media)
        await cache.close()
        let again = try await MediaCache(at: path, session: bench.session)
        #expect(again.entries.map(\.storedBytes) == [Int64(bench.body.length)])
        #expect(directory.names.count == 2, "\(directory.names)")
        await again.close()
        return (end, stored)
    }

    /// Runs commands once for each step of them, killed at that step, and returns the numbers of stored bytes.
    private static func killAtEveryStep(
        of script: [String], _ bench: MediaBench, on prepared: TestDirectory? = nil, minimum: Int
    ) async throws -> [Int64] {
        let (whole, all) = try await run(script + ["steps"], bench, on: prepared, [:])
        let steps = whole.result(of: "steps").flatMap { Int($0) } ?? 0
        try #require(steps >= minimum, "\(whole)")
        let results = Lock<[Int64]>([all])
        let kills = Lock(0)
        let moments =
            (1...steps + 2).map { ["KILL_AT": "\($0)"] }
            + stride(from: 2, through: steps, by: 3).map { ["KILL_AT": "\($0)", "KILL_TORN": "1"] }
        try await moments.forEachConcurrent(limit: 3) { moment in
            let (end, stored) = try await run(script + ["steps"], bench, on: prepared, moment)
            if end.status != 0 { kills.withLock { $0 += 1 } }
            results.withLock { $0.append(stored) }
        }
        #expect(kills.withLock { $0 } >= minimum)
        return results.withLock { $0 }
    }

    @Test func killAtEveryStepOfAFillLeavesOnlyRightBytes() async throws {
        let bench = try MediaBench(Self.length)
        let stored = try await Self.killAtEveryStep(
            of: ["open", "read 400000 500000", "read 0 150000", "read 450000 700000", "close"], bench, minimum: 20)
        // Some of the killed processes had stored a part.
        #expect(stored.contains(0))
        #expect(stored.contains { $0 > 0 && $0 < 350_000 })
        #expect(stored.contains { $0 >= 350_000 })
    }

    @Test func killWhileAChangedFileReplacesTheOldOneNeverMixesThem() async throws {
        let bench = try MediaBench(Self.length)
        let prepared = TestDirectory()
        let end = try await MediaProcess.run(
            prepared.path + "/media", bench.url, seed: 7, length: Self.length,
            ["open", "read 0 300000", "read 500000 600000", "close"])
        #expect(end.status == 0 && end.lines.allSatisfy { $0.hasSuffix(": ok") }, "\(end)")
        bench.replace(seed: 8, length: 650_000, tag: "\"2\"")
        _ = try await Self.killAtEveryStep(
            of: ["open", "read 600000 650000", "read 0 300000", "close"], bench, on: prepared, minimum: 15)
    }

    @Test func killWhileAFileIsRemovedLeavesAUsableCache() async throws {
        let bench = try MediaBench(Self.length)
        let prepared = TestDirectory()
        _ = try await MediaProcess.run(
            prepared.path + "/media", bench.url, seed: 7, length: Self.length, ["open", "read 0 700000", "close"])
        let stored = try await Self.killAtEveryStep(
            of: ["open", "remove", "read 0 100000", "close"], bench, on: prepared, minimum: 8)
        #expect(stored.contains(700_000))
    }

    @Test func killAtRandomMomentsLeavesOnlyRightBytes() async throws {
        let bench = try MediaBench(Self.length)
        try await (0..<16).forEachConcurrent(limit: 3) { index in
            var chance = SeededGenerator(UInt64(index))
            let reads = (0..<40).map { _ in
                let start = Int.random(in: 0..<600_000, using: &chance)
                return "read \(start) \(start + Int.random(in: 1..<100_000, using: &chance))"
            }
            _ = try await Self.run(["open"] + reads, bench, on: nil, ["KILL_AFTER": "\(30_000 + index * 25_000)"])
        }
    }

    /// The memory of a process does not depend on the size of a file.
    @Test func memoryIsBoundedForALargeFile() async throws {
        let bench = try MediaBench(400 << 20)
        let directory = TestDirectory()
        let end = try await MediaProcess.run(
            directory.path + "/media", bench.url, seed: 7, length: 400 << 20,
            ["open", "read 0 1000000", "memory", "fill", "close", "memory"])
        let peaks = end.lines.filter { $0.hasPrefix("memory: ") }.compactMap { Int($0.dropFirst(8)) }
        try #require(peaks.count == 2, "\(end)")
        // A sanitizer keeps freed memory.
        #expect(peaks[1] - peaks[0] < 96 << 10, "\(end)")
    }
}
