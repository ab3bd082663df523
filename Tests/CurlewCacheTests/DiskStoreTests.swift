// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewEngine
import CurlewSupport
import CurlewTesting
import FoundationEssentials
import Glibc
import Testing

@testable import CurlewCache

/// A directory for one test, which is removed with its contents.
final class TestDirectory: Sendable {
    let path: String

    init() {
        var template = Array("/tmp/curlew-cache-XXXXXX".utf8CString)
        path = String(cString: mkdtemp(&template))
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }
}

/// The store on the disk.
@Suite(.timeLimit(.minutes(5)))
struct DiskStoreTests {
    let directory = TestDirectory()

    private func store(limit: ByteCount = .mebibytes(8)) async throws -> DiskCacheStore {
        try await DiskCacheStore(directory.path + "/store", limit: limit)
    }

    private func entry(_ path: String = "/") -> HTTPCache.Entry {
        let (url, now) = ("https://example.com" + path, Date())
        return HTTPCache.Entry(
            key: url, url: url, head: ResponseHead(status: .ok), fields: [.etag: "\"1\""], requestedAt: now,
            receivedAt: now)
    }

    private func write(_ entry: HTTPCache.Entry, _ size: Int, to store: DiskCacheStore) async throws -> HTTPCache.Entry
    {
        var entry = entry
        let writer = try await store.writer(for: entry, expecting: Int64(size))
        try await writer.write(ByteChunk(PatternBody(seed: 5, length: size).bytes(in: 0..<size)))
        entry.size = Int64(size)
        try await writer.finish(entry, replacing: [])
        return entry
    }

    private func names() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: directory.path + "/store/bodies")
    }

    private func path(of entry: HTTPCache.Entry) -> String {
        directory.path + "/store/bodies/" + DiskCacheStore.name(of: Int64(entry.id))
    }

    @Test func storesConform() async throws {
        let count = Lock(0)
        let violations = try await CacheStoreConformance.violations {
            let number = count.withLock { count in
                count += 1
                return count
            }
            return try await DiskCacheStore(directory.path + "/\(number)", limit: .mebibytes(16))
        }
        #expect(violations == [])
        #expect(try await CacheStoreConformance.violations { HTTPCache.MemoryStore(limit: .mebibytes(32)) } == [])
    }

    @Test func entriesOutliveTheStore() async throws {
        let entry = try await write(entry(), 1000, to: store())
        let again = try await store()
        #expect(try await again.entries(.all) == [entry])
        guard case .data(let data)? = try await again.body(of: entry, 0..<1000) else {
            Issue.record("the body is missing")
            return
        }
        #expect(data.elementsEqual(PatternBody(seed: 5, length: 1000).bytes(in: 0..<1000)))
    }

    @Test func filesAreForThisUserOnly() async throws {
        let store = try await store()
        _ = try await write(entry(), 10, to: store)
        let body = try "/bodies/\(names()[0])"
        for name in ["", "/index.sqlite", "/index.sqlite-wal", "/index.sqlite-shm", "/bodies", body] {
            var status = stat()
            #expect(stat(directory.path + "/store" + name, &status) == 0)
            #expect(status.st_mode & 0o077 == 0, "\(name)")
        }
    }

    /// Flips a byte at a position from the end of the file of a body.
    private func damage(_ entry: HTTPCache.Entry, fromEnd offset: Int) throws {
        let path = path(of: entry)
        var bytes = Array(try Data(contentsOf: URL(filePath: path)))
        bytes[bytes.count - 1 - offset] ^= 0x40
        try Data(bytes).write(to: URL(filePath: path))
    }

    @Test(arguments: [0, 20, 47, 58, 400, 1200])
    func damagedFileIsNotUsed(_ offset: Int) async throws {
        let store = try await store()
        let entry = try await write(entry(), 1000, to: store)
        try damage(entry, fromEnd: offset)
        #expect(try await store.body(of: entry, 0..<1000) == nil)
    }

    @Test(arguments: [0, 10, 100, 999])
    func shortFileIsNotUsed(_ size: Int) async throws {
        let store = try await store()
        let entry = try await write(entry(), 1000, to: store)
        #expect(truncate(path(of: entry), off_t(size)) == 0)
        #expect(try await store.body(of: entry, 0..<1000) == nil)
    }

    @Test func damagedBlockEndsALargeBodyBeforeIt() async throws {
        let store = try await store()
        let size = 2 << 20
        let entry = try await write(entry(), size, to: store)
        var bytes = Array(try Data(contentsOf: URL(filePath: path(of: entry))))
        bytes[(3 * 256 << 10) + 5] ^= 1
        try Data(bytes).write(to: URL(filePath: path(of: entry)))
        guard case .chunks(let chunks)? = try await store.body(of: entry, 0..<Int64(size)) else {
            Issue.record("the body is not in chunks")
            return
        }
        let read = await Self.count(chunks)
        #expect(read.count == 3 * 256 << 10 && read.error == "a stored body is damaged")
    }

    private static func count<Chunks: AsyncSequence>(_ chunks: Chunks) async -> (count: Int, error: String?)
    where Chunks.Element == ByteChunk {
        var count = 0
        do { for try await chunk in chunks { count += chunk.count } } catch { return (count, "\(error)") }
        return (count, nil)
    }

    @Test(arguments: ["", "garbage", "SQLite format 3\0garbage"])
    func damagedIndexIsMadeAgain(_ contents: String) async throws {
        let first = try await write(entry("/1"), 100, to: store())
        let index = directory.path + "/store/index.sqlite"
        for end in ["-wal", "-shm"] { unlink(index + end) }
        try Data((contents + String(repeating: "x", count: contents.isEmpty ? 0 : 5000)).utf8)
            .write(to: URL(filePath: index))
        let again = try await store()
        #expect(try await again.entries(.all) == [first])
        let second = try await write(entry("/2"), 100, to: again)
        #expect(Set(try await again.entries(.all).map(\.id)) == [first.id, second.id])
        #expect(try await again.usage().count == 2)
    }

    /// Another process, or the user, may remove the index or the whole directory.
    @Test func removedIndexIsMadeAgainByAnOpenStore() async throws {
        let store = try await store()
        let first = try await write(entry("/1"), 100, to: store)
        for end in ["", "-wal", "-shm"] { unlink(directory.path + "/store/index.sqlite" + end) }
        _ = try await store.entries(.all)
        let second = try await write(entry("/2"), 100, to: store)
        #expect(try await store.entries(.all).contains(second))
        #expect(access(directory.path + "/store/index.sqlite", F_OK) == 0)
        let again = try await self.store()
        #expect(try await again.entries(.key(second.key)) == [second])
        _ = first
    }

    @Test func abandonedFilesAreRemovedWhenTheStoreOpens() async throws {
        let first = try await store()
        let entry = try await write(entry(), 100, to: first)
        let writer = try await first.writer(for: self.entry("/running"), expecting: nil)
        try await writer.write(ByteChunk([1]))
        for name in ["00000000000000aa", "00000000000000ab.new", "notes"] {
            try Data("x".utf8).write(to: URL(filePath: directory.path + "/store/bodies/" + name))
        }
        _ = try await store()
        let names = Set(try names())
        #expect(names.contains(DiskCacheStore.name(of: Int64(entry.id))) && names.contains("notes"))
        #expect(names.count { $0.hasSuffix(".new") } == 1 && names.count == 3)
        await writer.discard()
        #expect(try self.names().count == 2)
    }

    @Test func writerThatIsReleasedRemovesItsFile() async throws {
        let store = try await store()
        var writer: (any HTTPCache.BodyWriter)? = try await store.writer(for: entry(), expecting: nil)
        try await writer?.write(ByteChunk([1]))
        #expect(try names().count == 1)
        writer = nil
        // A disk thread removes the file.
        while try !names().isEmpty { await Task.yield() }
    }

    @Test func directoryOfAnotherKindIsRefused() async throws {
        try Data().write(to: URL(filePath: directory.path + "/store"))
        let error = await #expect(throws: NetworkError.self) { _ = try await store() }
        #expect(error?.kind == .cacheFailed && error?.phase == .preparing)
        unlink(directory.path + "/store")
        symlink("/tmp", directory.path + "/store")
        await #expect(throws: NetworkError.self) { _ = try await store() }
    }

    @Test func directoryThatOthersMayWriteIsRefused() async throws {
        mkdir(directory.path + "/store", 0o700)
        chmod(directory.path + "/store", 0o777)
        let error = await #expect(throws: NetworkError.self) { _ = try await store() }
        #expect(error?.message.contains("other users may write") == true)
    }

    @Test func lastUseIsKeptOverTheLifeOfAStore() async throws {
        var first: DiskCacheStore? = try await store(limit: .kibibytes(300))
        var entries: [HTTPCache.Entry] = []
        for index in 0..<4 { entries.append(try await write(entry("/\(index)"), 60 << 10, to: #require(first))) }
        _ = try await first?.body(of: entries[0], 0..<1)
        first = nil
        let second = try await store(limit: .kibibytes(300))
        while try await second.usage().count < 4 { await Task.yield() }
        for index in 4..<6 { entries.append(try await write(entry("/\(index)"), 60 << 10, to: second)) }
        let kept = Set(try await second.entries(.all).map(\.id))
        #expect(kept == Set([entries[0], entries[3], entries[4], entries[5]].map(\.id)))
        #expect(try names().count == 4)
    }

    @Test func cacheOnTheDiskServesASession() async throws {
        let server = try MockServer { _ in
            .pattern(PatternBody(seed: 9, length: 3 << 20)).field("Cache-Control", "max-age=60")
        }
        for round in 0..<2 {
            let session = Session(cache: try await .disk(directory.path + "/store", limit: .mebibytes(50)))
            let (data, head) = try await session.data(for: Request(server.url("/")))
            #expect(data.count == 3 << 20 && head.cache?.isHit == (round == 1))
            var count = 0
            for try await chunk in session.transfer(Request(server.url("/"))).bytes { count += chunk.count }
            #expect(count == 3 << 20)
            try await session.shutdown()
        }
        #expect(server.requests.count == 1)
        let ephemeral = Session(.ephemeral, cache: try await .disk(directory.path + "/store"))
        let error = await #expect(throws: NetworkError.self) { try await ephemeral.data(for: Request(server.url("/"))) }
        #expect(error?.message.contains("persistent store") == true)
    }

    @Test func entryWhoseFileGetsNoNameIsNotVisible() async throws {
        let store = try await store()
        var entry = entry()
        let writer = try await store.writer(for: entry, expecting: nil)
        try await writer.write(ByteChunk([1]))
        entry.size = 1
        for name in try names() { unlink(directory.path + "/store/bodies/" + name) }
        let finished = entry
        await #expect(throws: (any Error).self) { try await writer.finish(finished, replacing: []) }
        #expect(try await store.entries(.all).isEmpty)
        #expect(try await store.usage().count == 0)
    }

    @Test func copyOfAFileIsNoOtherResponse() async throws {
        let entry = try await write(entry(), 100, to: store())
        try FileManager.default.copyItem(
            atPath: path(of: entry), toPath: directory.path + "/store/bodies/00000000000000aa")
        for end in ["", "-wal", "-shm"] { unlink(directory.path + "/store/index.sqlite" + end) }
        let again = try await store()
        #expect(try await again.entries(.all) == [entry])
        #expect(try await again.usage().count == 1)
        #expect(try names() == [DiskCacheStore.name(of: Int64(entry.id))])
    }
}
