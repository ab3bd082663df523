// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting
import FoundationEssentials
import Glibc
import Testing

@testable import CurlewCache

/// Several processes that use one store on the disk, and processes without space.
@Suite(.serialized, .timeLimit(.minutes(10)))
struct CacheProcessTests {
    private let directory = TestDirectory()
    private var path: String { directory.path + "/store" }

    private func store() async throws -> DiskCacheStore {
        try await DiskCacheStore(path, limit: .bytes(CacheProcess.limit))
    }

    private func names() throws -> [String] { try DirectoryNames.inFolder(path + "/bodies") }

    // MARK: Several processes

    @Test func processesUseOneStoreAtTheSameTime() async throws {
        let (one, two) = (try CacheProcess(path), try CacheProcess(path))
        #expect(try await one.ask("open") == "ok")
        #expect(try await two.ask("open") == "ok")
        async let first = one.ask("random 1 300")
        async let second = two.ask("random 2 300")
        for result in try await [first, second] {
            let words = result.split(separator: " ")
            #expect(words.first == "ok" && words.last != "0", "\(result)")
        }
        #expect(try await one.ask("add 901 1 100") == "ok")
        #expect(try await two.ask("add 902 1 100") == "ok")
        let list = try await one.ask("check")
        #expect(list.hasSuffix(" 901.1.0 902.1.0"), "\(list)")
        #expect(try await two.ask("check") == list)
        #expect(try await store().checkedItems().list == list)
        #expect(await one.end().status == 0)
        #expect(await two.end().status == 0)
        #expect(try await store().checkedItems().list == list)
    }

    @Test func processesCreateAStoreAtTheSameTime() async throws {
        mkdir(path, 0o700)
        let processes = try (0..<4).map { _ in try CacheProcess(path) }
        for round in 0..<12 {
            for command in ["open new\(round)", "add 1 1 1000", "close", "open new\(round)", "close"] {
                let results = try await processes.mapConcurrent(limit: 4) { try await $0.ask(command) }
                #expect(results == Array(repeating: "ok", count: 4), "\(command)")
            }
            let store = try await DiskCacheStore("\(path)/new\(round)", limit: .bytes(CacheProcess.limit))
            #expect(try await store.checkedItems().list == "1.1.0 1.1.0 1.1.0 1.1.0")
        }
    }

    /// SQLite locks the index with POSIX locks, which end when the process closes any descriptor of the file.
    @Test func storesOfOneProcessKeepTheirLocks() async throws {
        let first = try await store()
        try await first.put(CacheItem(1, 1, 1000))
        let second = try await store()
        let script = ["open", "check", "close"]
        #expect(try await CacheProcess.run(path, script).result(of: "check") == "1.1.0")
        try await first.put(CacheItem(2, 1, 1000))
        #expect(try await CacheProcess.run(path, script).result(of: "check") == "1.1.0 2.1.0")
        try await second.put(CacheItem(3, 1, 1000))
        #expect(try await CacheProcess.run(path, script).result(of: "check") == "1.1.0 2.1.0 3.1.0")
        #expect(try await first.checkedItems().list == "1.1.0 2.1.0 3.1.0")
    }

    // MARK: Damage

    enum Damage: String, CaseIterable {
        case header, pages, all, short, removed
    }

    /// Damages the index without a change of its name.
    private func apply(_ damage: Damage) throws {
        let index = path + "/index.sqlite"
        let file = open(index, O_RDWR | O_CLOEXEC)
        #expect(file >= 0)
        defer { close(file) }
        let size = Int(lseek(file, 0, SEEK_END))
        #expect(size > 8192)
        let garbage = [UInt8](repeating: 0x78, count: size)
        switch damage {
        case .header: #expect(pwrite(file, garbage, 4096, 0) == 4096)
        case .pages: #expect(pwrite(file, garbage, size - 4096, 4096) == size - 4096)
        case .all: #expect(pwrite(file, garbage, size, 0) == size)
        case .short: #expect(ftruncate(file, 5000) == 0)
        case .removed: for end in ["", "-wal", "-shm"] { unlink(index + end) }
        }
    }

    /// - Parameter isNoticedInside: Whether the processes with the open store use it before another one opens it.
    @Test(arguments: Damage.allCases, [false, true])
    func damagedIndexIsMadeAgainForAllProcesses(_ damage: Damage, _ isNoticedInside: Bool) async throws {
        let fill = ["open"] + (0..<6).map { "add \($0) 1 1000" } + ["close"]
        #expect(try await CacheProcess.run(path, fill).lines.allSatisfy { $0.hasSuffix(": ok") })
        let whole = "0.1.0 1.1.0 2.1.0 3.1.0 4.1.0 5.1.0"
        let (own, other) = (try await store(), try CacheProcess(path))
        #expect(try await other.ask("open") == "ok")
        #expect(try await own.checkedItems().list == whole)
        #expect(try await other.ask("check") == whole)
        try apply(damage)
        if isNoticedInside {
            _ = try await own.entries(.all)
            let list = try await other.ask("check")
            #expect(!list.hasPrefix("failed"), "\(list)")
        }
        #expect(try await CacheProcess.run(path, ["open", "check"]).result(of: "check") == whole)
        #expect(try await own.checkedItems(isAlone: false).list == whole)
        try await own.put(CacheItem(7, 1, 1000))
        #expect(try await other.ask("add 8 1 1000") == "ok")
        let more = whole + " 7.1.0 8.1.0"
        #expect(try await other.ask("check") == more)
        #expect(try await own.checkedItems(isAlone: false).list == more)
        #expect(try await CacheProcess.run(path, ["open", "check"]).result(of: "check") == more)
        #expect(try await store().checkedItems().list == more)
    }

    // MARK: No space

    /// The limit for the size of files stops the writes of a body first, then those of the index.
    @Test func limitedFileSizeStoresNothingByHalves() async throws {
        let process = try CacheProcess(path)
        #expect(try await process.ask("open") == "ok")
        for number in 0..<10 { #expect(try await process.ask("add \(number) 1 1000") == "ok") }
        let list = try await process.ask("check")
        let files = try names().sorted()
        #expect(files.count == 10)

        #expect(try await process.ask("limit 150000") == "ok")
        for command in ["add 20 1 400000", "add 21 1 400000 1"] {
            #expect(try await process.ask(command).hasPrefix("failed"))
            #expect(try names().sorted() == files, "\(command)")
        }
        var status = stat()
        #expect(stat(path + "/index.sqlite-wal", &status) == 0)
        #expect(status.st_size > 50_000)
        #expect(try await process.ask("limit \(status.st_size)") == "ok")
        for command in ["add 22 1 1000", "replace 2 2 1000", "remove 3", "update 4 1"] {
            let result = try await process.ask(command)
            #expect(result.hasPrefix("failed") && result.contains("index"), "\(command): \(result)")
            #expect(try names().sorted() == files, "\(command)")
        }
        #expect(try await process.ask("check") == list)
        #expect(try await store().checkedItems().list == list)

        #expect(try await process.ask("limit 0") == "ok")
        for command in ["add 20 1 300000", "replace 2 2 1000", "remove 3", "update 4 1"] {
            #expect(try await process.ask(command) == "ok")
        }
        let changed = "0.1.0 1.1.0 2.2.0 4.1.1 5.1.0 6.1.0 7.1.0 8.1.0 9.1.0 20.1.0"
        #expect(try await process.ask("check") == changed)
        #expect(await process.end().status == 0)
        #expect(try await store().checkedItems().list == changed)
    }

    @Test func fullDiskStoresNothingByHalves() async throws {
        let disk = directory.path + "/disk"
        mkdir(disk, 0o700)
        guard mount("tmpfs", disk, "tmpfs", 0, "size=2m,mode=700") == 0 else {
            try Test.cancel("this user may not mount a small file system")
        }
        defer { umount2(disk, 2) }
        let limit = ByteCount.mebibytes(8)
        let store = try await DiskCacheStore(disk + "/store", limit: limit)
        for number in 0..<10 { try await store.put(CacheItem(number, 1, 10_000)) }
        let items = try await store.checkedItems()
        let ids = try await store.entries(.all).map(\.id)
        try fill(disk + "/filler")
        for isAnnounced in [false, true] {
            await #expect(throws: (any Error).self) {
                try await store.put(CacheItem(20, 1, 100_000), isAnnounced: isAnnounced)
            }
            #expect(try await store.checkedItems() == items)
        }
        // There is no space in the index, although there would be less to store.
        await #expect(throws: (any Error).self) { _ = try await store.remove(ids) }
        #expect(try await store.checkedItems() == items)

        unlink(disk + "/filler")
        try await store.put(CacheItem(20, 1, 100_000), isAnnounced: true)
        #expect(try await store.remove([ids[0]]) == 1)
        #expect(try await store.checkedItems().count == 10)
        let again = try await DiskCacheStore(disk + "/store", limit: limit)
        #expect(try await again.checkedItems() == store.checkedItems())
    }

    /// A client that leaves early stores the start of a body whose whole size was announced.
    @Test func shortBodyKeepsNoReservedSpace() async throws {
        let store = try await store()
        var entry = CacheItem(1, 1, 10_000).entry
        let writer = try await store.writer(for: entry, expecting: 50 << 20)
        try await writer.write(ByteChunk(CacheItem(1, 1, 10_000).body.bytes))
        (entry.size, entry.completeSize) = (10_000, 50 << 20)
        try await writer.finish(entry, replacing: [])
        #expect(try await store.checkedItems().list == "1.1.0")
        var status = stat()
        #expect(stat(path + "/bodies/" + DiskCacheStore.name(of: Int64(entry.id)), &status) == 0)
        #expect(status.st_blocks * 512 < 1 << 20)
    }

    /// Fills the disk.
    private func fill(_ path: String) throws {
        let file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
        #expect(file >= 0)
        defer { close(file) }
        let block = [UInt8](repeating: 1, count: 4096)
        while write(file, block, block.count) > 0 {}
        #expect(errno == ENOSPC)
    }
}
