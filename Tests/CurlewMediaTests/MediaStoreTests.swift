// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewEngine
import CurlewSupport
import CurlewTesting
import Foundation
import Glibc
import Testing

@testable import CurlewMedia

/// The directory of a cache keeps, refuses and removes files.
@Suite(.timeLimit(.minutes(5)))
struct MediaStoreTests {
    private static let small = MediaCache.Configuration(readAhead: .kibibytes(256), joinDistance: .kibibytes(64))

    /// Stores two ranges of a file, and closes the cache.
    private func stored(_ bench: MediaBench, _ ranges: [Range<Int64>] = [0..<200_000, 500_000..<700_000]) async throws {
        let cache = try await bench.cache(Self.small)
        let media = try await bench.media(cache)
        for range in ranges { try await bench.check(media, range) }
        await cache.close()
    }

    private func path(_ bench: MediaBench, _ suffix: String) throws -> String {
        try "\(bench.path)/\(#require(bench.directory.names.first { $0.hasSuffix(suffix) }))"
    }

    // MARK: Keeping

    @Test func storedRangesServeTheNextProcess() async throws {
        let bench = try MediaBench()
        try await stored(bench)
        let count = bench.ranges.count
        let cache = try await bench.cache(Self.small)
        #expect(cache.entries.count == 1)
        let media = try await bench.media(cache)
        #expect(media.length == 3_000_000 && media.validator == .tag("\"1\""))
        #expect(media.contentType == "application/octet-stream")
        #expect(media.storedRanges.last?.contains(699_999) == true)
        try await bench.check(media, 500_000..<700_000)
        try await bench.check(media, 0..<200_000)
        #expect(bench.ranges.count == count)
        try await bench.check(media)
        #expect(bench.server.requests.dropFirst(count).allSatisfy { $0.field("If-Range") == "\"1\"" })
    }

    @Test func fileThatChangedMeanwhileIsReplaced() async throws {
        let bench = try MediaBench()
        try await stored(bench)
        bench.replace(seed: 5, length: 2_000_000, tag: "\"5\"")
        let cache = try await bench.cache(Self.small)
        let media = try await bench.media(cache)
        try await bench.check(media, 1_000_000..<1_100_000)
        try await bench.check(media)
        await cache.close()
        #expect(bench.directory.names.count == 2)
    }

    @Test(arguments: [true, false])
    func oldFileIsValidated(_ isChanged: Bool) async throws {
        let bench = try MediaBench(300_000)
        try await stored(bench, [0..<300_000])
        bench.change { request, response in
            request.field("If-None-Match") == "\"1\"" && !isChanged ? .status(304) : response
        }
        if isChanged { bench.replace(seed: 9, tag: "\"9\"") }
        let cache = try await bench.cache(MediaCache.Configuration(validatesAfter: .seconds(-10)))
        let media = try await bench.media(cache)
        try await bench.check(media)
        let later = bench.server.requests.dropFirst(1)
        #expect(later.map(\.method) == (isChanged ? ["HEAD", "GET"] : ["HEAD"]))
        #expect(media.validator == .tag(isChanged ? "\"9\"" : "\"1\""))
    }

    @Test func storedFileServesWithoutTheServer() async throws {
        let bench = try MediaBench(300_000)
        try await stored(bench, [0..<300_000])
        bench.server.stop()
        let cache = try await bench.cache(MediaCache.Configuration(validatesAfter: .seconds(-10)))
        try await bench.check(try await bench.media(cache))
    }

    @Test func directoryAndFilesAreForThisUserOnly() async throws {
        let bench = try MediaBench(300_000)
        let old = umask(0)
        defer { umask(old) }
        try await stored(bench, [0..<300_000])
        func mode(_ path: String) throws -> Int? {
            try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
        }
        #expect(try mode(bench.path) == 0o700)
        for name in bench.directory.names + ["lock"] { #expect(try mode("\(bench.path)/\(name)") == 0o600) }
    }

    @Test func neitherUrlNorFieldsAreOnTheDisk() async throws {
        let bench = try MediaBench(3000)
        let cache = try await bench.cache()
        let request = Request(
            bench.server.url("/film.mp4?signature=Geheimnis1"),
            fields: [.authorization: "Bearer Geheimnis2", .cookie: "id=Geheimnis3"])
        try await bench.check(try await cache.media(for: request))
        await cache.close()
        for name in bench.directory.names {
            let data = try Data(contentsOf: URL(filePath: "\(bench.path)/\(name)"))
            for secret in ["Geheimnis", "film.mp4", "127.0.0.1"] {
                #expect(data.range(of: Data(secret.utf8)) == nil)
                #expect(!name.contains(secret))
            }
        }
    }

    // MARK: Refusing

    @Test func secondCacheOfADirectoryIsRefused() async throws {
        let bench = try MediaBench()
        let cache = try await bench.cache()
        let error = await #expect(throws: NetworkError.self) { _ = try await bench.cache() }
        #expect(error?.kind == .cacheFailed)
        #expect(error?.message.contains("process \(getpid())") == true)
        await cache.close()
        _ = try await bench.cache()
    }

    @Test func directoryOfOthersIsRefused() async throws {
        let bench = try MediaBench()
        mkdir(bench.path, 0o700)
        chmod(bench.path, 0o777)
        var error = await #expect(throws: NetworkError.self) { _ = try await bench.cache() }
        #expect(error?.kind == .cacheFailed && (error?.cause as? DiskFailure)?.isForeignStore == true)
        let link = bench.directory.path + "/link"
        chmod(bench.path, 0o700)
        symlink(bench.path, link)
        error = await #expect(throws: NetworkError.self) { _ = try await MediaCache(at: link, session: bench.session) }
        #expect(error?.kind == .cacheFailed)
    }

    /// A change of the stored files after which nothing of them may be used.
    enum Damage: String, CaseIterable, Sendable {
        case recordByte, recordCut, recordEmpty, recordLink, recordOfOthers, recordHardLink, recordMissing
        case dataShort, dataMissing, dataLink, dataOfOthers, dataHole, dataFolder, otherKey
    }

    @Test(arguments: Damage.allCases)
    func damagedOrForeignFilesAreNotUsed(_ damage: Damage) async throws {
        let bench = try MediaBench()
        try await stored(bench)
        let (record, data) = (try path(bench, ".media"), try path(bench, ".bytes"))
        let copy = bench.directory.path + "/copy"
        let original = try Data(contentsOf: URL(filePath: record))
        switch damage {
        case .recordByte:
            var bytes = original
            bytes[bytes.count - 20] ^= 1
            try bytes.write(to: URL(filePath: record))
        case .recordCut: try original.dropLast(1).write(to: URL(filePath: record))
        case .recordEmpty: truncate(record, 0)
        case .recordLink:
            rename(record, copy)
            symlink(copy, record)
        case .recordOfOthers: chmod(record, 0o666)
        case .recordHardLink: link(record, copy)
        case .recordMissing: unlink(record)
        case .dataShort: truncate(data, 600_000)
        case .dataMissing: unlink(data)
        case .dataLink:
            rename(data, copy)
            symlink(copy, data)
        case .dataOfOthers: chmod(data, 0o622)
        case .dataHole:
            truncate(data, 600_000)
            truncate(data, 3_000_000)
        case .dataFolder:
            unlink(data)
            mkdir(data, 0o700)
        case .otherKey:
            // The record of one file under the name of another one.
            let other = try MediaKey(Request(bench.server.url("/other.mp4")))
            rename(record, "\(bench.path)/\(other.text).media")
            let cache = try await bench.cache(Self.small)
            #expect(cache.entries == [])
            return
        }
        // The bytes of the damaged file would show, because those on the server are other ones now.
        bench.replace(seed: 3, tag: "\"3\"")
        let cache = try await bench.cache(Self.small)
        let media = try await bench.media(cache)
        try await bench.check(media, 0..<200_000)
        try await bench.check(media, 500_000..<700_000)
        await cache.close()
        #expect(bench.directory.names.count == (damage == .dataFolder ? 3 : 2))
        if damage == .recordLink || damage == .dataLink { #expect(FileManager.default.fileExists(atPath: copy)) }
    }

    @Test func leftoversAreRemovedAndOtherFilesStay() async throws {
        let bench = try MediaBench()
        try await stored(bench)
        let key = String(repeating: "ab", count: 32)
        let kept = bench.directory.names
        for name in ["\(key)-0123456789abcdef.bytes", "\(key).media", "\(key).media.new", "notes.txt", "x.bytes"] {
            try Data("x".utf8).write(to: URL(filePath: "\(bench.path)/\(name)"))
        }
        let cache = try await bench.cache()
        #expect(bench.directory.names == (kept + ["notes.txt", "x.bytes"]).sorted())
        #expect(cache.entries.count == 1)
    }

    @Test func dataThatIsCutWhileInUseIsDiscarded() async throws {
        let bench = try MediaBench(1_000_000)
        let media = try await bench.media(bench.cache())
        try await bench.check(media)
        truncate(try path(bench, ".bytes"), 10)
        let error = await #expect(throws: NetworkError.self) { try await bench.check(media) }
        #expect(error?.kind == .cacheFailed)
        try await bench.check(media)
    }

    // MARK: Limits

    private func add(_ number: Int, to cache: MediaCache, _ bench: MediaBench) async throws {
        try await bench.check(try await bench.media(cache, "/\(number)"))
        await cache.store.waitForSaves()
    }

    @Test func leastRecentlyUsedFilesAreRemoved() async throws {
        let bench = try MediaBench(100_000)
        let cache = try await bench.cache(MediaCache.Configuration(limit: .bytes(4 * 110_000)))
        for number in 0..<4 { try await add(number, to: cache, bench) }
        try await add(0, to: cache, bench)
        #expect(bench.server.requests.count == 4)
        try await add(4, to: cache, bench)
        #expect(cache.entries.count == 4 && cache.size.bytes <= 440_000)
        try await add(0, to: cache, bench)
        #expect(bench.server.requests.count == 5)
        // The second file was the oldest one.
        try await add(1, to: cache, bench)
        #expect(bench.server.requests.count == 6)
        await cache.close()
        #expect(bench.directory.names.count == 8)
        // The order of use survives the process, and a lower limit applies at the start.
        let smaller = try await bench.cache(MediaCache.Configuration(limit: .bytes(2 * 110_000)))
        #expect(smaller.entries.count == 2)
        try await add(1, to: smaller, bench)
        try await add(0, to: smaller, bench)
        #expect(bench.server.requests.count == 6)
    }

    @Test func filesInUseAreNotRemoved() async throws {
        let bench = try MediaBench(100_000)
        let cache = try await bench.cache(MediaCache.Configuration(limit: .bytes(150_000)))
        let media = try await bench.media(cache, "/0")
        try await bench.check(media)
        for number in 1..<4 { try await add(number, to: cache, bench) }
        let key = try MediaKey(Request(bench.server.url("/0"))).text
        #expect(cache.entries.map(\.id) == [key])
        #expect(try await cache.remove(Request(bench.server.url("/0"))) == false)
        await cache.removeAll()
        try await bench.check(media)
        #expect(bench.server.requests.count == 4)
        #expect(media.isComplete)
    }

    @Test func removeDeletesFiles() async throws {
        let bench = try MediaBench(100_000)
        let cache = try await bench.cache()
        for number in 0..<3 { try await add(number, to: cache, bench) }
        #expect(cache.entries.map(\.storedBytes) == [100_000, 100_000, 100_000])
        #expect(cache.entries.allSatisfy { $0.isComplete && $0.contentType == "application/octet-stream" })
        #expect(try await cache.remove(Request(bench.server.url("/1"))))
        #expect(try await cache.remove(Request(bench.server.url("/1"))) == false)
        #expect(cache.entries.count == 2 && bench.directory.names.count == 4)
        await cache.removeAll()
        #expect(cache.entries == [] && cache.size == .bytes(0) && bench.directory.names == [])
    }

    @Test func closedCacheFailsReadersAndHandles() async throws {
        let bench = try MediaBench()
        let gate = Gate()
        bench.change { $1.fault(.stall(gate), at: .body(100_000)) }
        let cache = try await bench.cache()
        let media = try await bench.media(cache)
        let reading = Task { () -> NetworkError? in
            do throws(NetworkError) {
                for try await _ in media.bytes() {}
                return nil
            } catch { return error }
        }
        await bench.wait {
            media.use.source.state.withLock { !$0.readers.isEmpty } && media.storedRanges == [0..<100_000]
        }
        await cache.close()
        #expect(await reading.value?.kind == .sessionClosed)
        let error = await #expect(throws: NetworkError.self) { _ = try await bench.media(cache) }
        #expect(error?.kind == .sessionClosed)
        // Stored bytes can be read, others cannot.
        try await bench.check(media, 0..<100_000)
        let late = await #expect(throws: NetworkError.self) { try await bench.check(media, 200_000..<300_000) }
        #expect(late?.kind == .sessionClosed)
        // The received bytes are stored.
        let next = try await bench.cache()
        #expect(next.entries.map(\.storedBytes) == [100_000])
    }

    @Test func fullDiskIsReportedAfterOldFilesAreRemoved() async throws {
        let bench = try MediaBench(300_000)
        mkdir(bench.path, 0o700)
        guard mount("tmpfs", bench.path, "tmpfs", 0, "size=1048576,mode=0700") == 0 else {
            try Test.cancel("this user may not mount a small file system")
        }
        defer { umount2(bench.path, 2) }
        let cache = try await bench.cache()
        for number in 0..<6 { try await add(number, to: cache, bench) }
        #expect((1...3).contains(cache.entries.count))
        bench.resource.withLock { $0.body = PatternBody(seed: 1, length: 2_000_000) }
        let media = try await bench.media(cache, "/large")
        let error = await #expect(throws: NetworkError.self) { try await bench.check(media) }
        #expect(error?.kind == .resourceExhausted)
        #expect(error?.hint?.contains("space") == true)
        await cache.close()
    }

    @Test func recordIsDecodedOnlyWhenItIsIntact() throws {
        let key = try #require(MediaKey(String(repeating: "01", count: 32)))
        let other = try #require(MediaKey(String(repeating: "02", count: 32)))
        let facts = MediaFacts(length: 100, contentType: nil, validator: .tag("\"a\""))
        func record(_ ranges: [Range<Int64>], _ mode: FetchPlan.Mode = .ranged, name: String? = nil) throws
            -> MediaRecord
        {
            MediaRecord(
                key: key, name: name ?? MediaRecord.dataName(of: key), facts: facts, mode: mode,
                intervals: try #require(ByteIntervals(ranges)), usedAt: 1, confirmedAt: 2)
        }
        let good = try record([0..<10, 20..<100])
        let bytes = try #require(good.encoded())
        #expect(MediaRecord(bytes, of: key) == good)
        #expect(MediaRecord(bytes, of: other) == nil)
        for index in bytes.indices {
            var damaged = bytes
            damaged[index] ^= 4
            #expect(MediaRecord(damaged, of: key) == nil)
            #expect(MediaRecord(Array(bytes[..<index]), of: key) == nil)
        }
        for bad in [
            try record([0..<101]), try record([0..<10], .whole), try record([0..<10], .unverified), try record([]),
            try record([0..<10], name: "../secret"), try record([0..<10], name: MediaRecord.dataName(of: other)),
        ] {
            #expect(MediaRecord(try #require(bad.encoded()), of: key) == nil)
        }
        #expect(MediaRecord(try #require(record([0..<100], .unverified).encoded()), of: key) != nil)
    }
}
