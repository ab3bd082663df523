// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewEngine
import CurlewTesting
import FoundationEssentials
import Glibc
import Testing

@testable import Curlew

/// Downloads on a full disk or with a file size limit: they report it and leave only what a later download can resume.
@Suite(.serialized, .timeLimit(.minutes(5)))
struct FullDiskTests {
    private let folder: Folder
    private let session = Session()

    init() throws { folder = try Folder() }

    /// Runs in its own process, since the limit applies to the process, and lifts the limit before the end.
    @Test func fileSizeLimitIsReported() async throws {
        await #expect(processExitsWith: .success) {
            let server = try ResourceServer(RangeResource(.usual))
            let chunked = try MockServer { _ in .pattern(.usual).field("ETag", "\"1\"").chunked() }
            let folder = try Folder()
            limitFiles(to: 300_000)
            let known = await failure { () async throws(NetworkError) in
                try await Session().download(Request(server.url), to: .file(folder("a")))
            }
            let unknown = await failure { () async throws(NetworkError) in
                try await Session().download(Request(chunked.url("/")), to: .file(folder("b")))
            }
            limitFiles(to: rlim_t.max)
            #expect((known?.cause as? DownloadDestination.Failure)?.reason == .tooLarge && known?.phase == .saving)
            #expect((unknown?.cause as? DownloadDestination.Failure)?.reason == .tooLarge)
            #expect(unknown?.resumeToken?.offset ?? 0 <= 300_000 && !folder.names.contains("b"))
        }
    }

    @Test func fullDiskIsReportedAndLeavesNoFile() async throws {
        let disk = folder("disk")
        mkdir(disk, 0o700)
        guard mount("tmpfs", disk, "tmpfs", 0, "size=524288") == 0 else {
            try Test.cancel("this user may not mount a small file system")
        }
        defer { umount2(disk, 2) }
        let server = try ResourceServer(RangeResource(.usual))
        let known = await failure { () async throws(NetworkError) in
            try await session.download(Request(server.url), to: .file(disk + "/a"))
        }
        #expect((known?.cause as? DownloadDestination.Failure)?.reason == .noSpace && known?.exitCode == 73)
        let chunked = try MockServer { _ in .pattern(.usual).field("ETag", "\"1\"").chunked() }
        let unknown = await failure { () async throws(NetworkError) in
            try await session.download(Request(chunked.url("/")), to: .file(disk + "/b"))
        }
        #expect((unknown?.cause as? DownloadDestination.Failure)?.reason == .noSpace)
        #expect(
            !((try? FileManager.default.contentsOfDirectory(atPath: disk)) ?? []).contains { $0 == "a" || $0 == "b" })
    }

    // MARK: Stores

    /// Leaves the store of an earlier process: a file about to get its final name, a failed and a waiting download.
    private func leaveStore(_ disk: String, _ url: String) async throws {
        let bytes = [UInt8](repeating: 7, count: 30_000)
        #expect(FileManager.default.createFile(atPath: disk + "/a.part", contents: Data(bytes)))
        let identity = try #require(DiskFile.identity(of: disk + "/a.part"))
        let journal = try await DiskThread.syncing.result { () throws(DiskFailure) in
            try TransferJournal(in: disk + "/store")
        }
        for name in ["a", "b", "c"] {
            var record = try TransferStore.Download(
                Request(url), to: .file(disk + "/" + name), overwrite: .fail, expecting: nil,
                options: DownloadOptions(), userInfo: ["name": name])
            if name == "a" {
                record.placing = TransferStore.Download.PendingRename(
                    part: disk + "/a.part", path: disk + "/a", inode: identity.inode, writtenAt: identity.writtenAt,
                    bytes: identity.size, bootID: DiskFile.bootID)
            }
            if name == "b" { (record.state, record.failure) = (.failed, "why") }
            try await journal.waitUntilWritten(journal.put(record))
        }
        await journal.close()
    }

    /// The reports of a store, until it has drained or sent two of them.
    private func reports(_ store: TransferStore) async -> [String] {
        var names: [String] = []
        for await report in store.reports {
            switch report {
            case .finished(let record): names.append("finished \(record.userInfo["name"] ?? "?")")
            case .failed(let record): names.append("failed \(record.userInfo["name"] ?? "?")")
            case .drained: return names
            }
            if names.count == 2 { return names }
        }
        return names
    }

    private func expectFull(_ store: TransferStore, _ url: String, _ path: String) async {
        do throws(NetworkError) {
            // More than the free rest of the last block of the file.
            let info = ["large": String(repeating: "x", count: 20_000)]
            try await store.download(Request(url), on: session, to: .file(path), userInfo: info)
            Issue.record("the store accepted the download")
        } catch {
            let reason = (error.cause as? DownloadDestination.Failure)?.reason
            #expect(error.kind == .destinationFailed && (reason == .noSpace || reason == .tooLarge), "\(error)")
            #expect(error.hint != nil)
        }
    }

    @Test func storeOnFullDiskCanBeRead() async throws {
        let disk = folder("disk")
        mkdir(disk, 0o700)
        guard mount("tmpfs", disk, "tmpfs", 0, "size=524288,mode=700") == 0 else {
            try Test.cancel("this user may not mount a small file system")
        }
        defer { umount2(disk, 2) }
        let server = try ResourceServer(RangeResource(PatternBody(seed: 3, length: 40_000)))
        try await leaveStore(disk, server.url)
        try fill(disk + "/filler")
        let journal = try DiskFile.contents(of: disk + "/store/journal", upTo: .max)
        do {
            let store = try await TransferStore(at: disk + "/store")
            #expect(store.downloads.map(\.state) == [.finished, .failed, .waiting])
            #expect(store.downloads.first?.path == disk + "/a" && DiskFile.identity(of: disk + "/a")?.size == 30_000)
            #expect(await reports(store) == ["finished a", "failed b"])
            await expectFull(store, server.url, disk + "/d")
            let again = try #require(await store.reattach(session).last)
            let error = await failure { () async throws(NetworkError) in try await again.transfer.value }
            #expect((error?.cause as? DownloadDestination.Failure)?.reason == .noSpace, "\(error as Any)")
            await store.close()
        }
        #expect(try DiskFile.contents(of: disk + "/store/journal", upTo: .max) == journal)

        // The next process gets the same reports, and resumes the rest once the disk has space.
        let store = try await TransferStore(at: disk + "/store")
        #expect(await reports(store) == ["finished a", "failed b"])
        DiskFile.remove(disk + "/filler")
        let again = try #require(await store.reattach(session).first)
        #expect(try await again.transfer.value.bytes == 40_000 && again.record.userInfo["name"] == "c")
        await store.close()
        let next = try await TransferStore(at: disk + "/store")
        #expect(next.downloads.map(\.path) == [nil, disk + "/c"])
    }

    /// Fills the disk.
    private func fill(_ path: String) throws {
        let file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
        defer { close(file) }
        let block = [UInt8](repeating: 1, count: 4096)
        while write(file, block, block.count) > 0 {}
        #expect(errno == ENOSPC)
    }

    /// The journal keeps a copy with its damaged lines as soon as the disk has space.
    @Test func damagedJournalIsCopiedOnceTheDiskHasSpace() async throws {
        await #expect(processExitsWith: .success) {
            let folder = try Folder()
            let record = try TransferStore.Download(
                Request("https://example.com/"), to: .file(folder("a")), overwrite: .fail, expecting: nil,
                options: DownloadOptions(), userInfo: [:])
            let open = { @Sendable () async throws -> TransferJournal in
                try await DiskThread.syncing.result { () throws(DiskFailure) in
                    try TransferJournal(in: folder("store"))
                }
            }
            let first = try await open()
            try await first.waitUntilWritten(first.put(record))
            await first.close()
            let good = folder.bytes("store/journal") ?? []
            let header = good.prefix { $0 != 10 }.count + 1
            let bytes = Array(good[..<header]) + Array("nonsense\n".utf8) + Array(good[header...])
            folder.write("store/journal", bytes)
            limitFiles(to: 100)
            let journal = try await open()
            #expect(journal.records == [record])
            await #expect(throws: DiskFailure.self) { try await journal.waitUntilWritten(journal.put(record)) }
            #expect(folder.bytes("store/journal") == bytes && folder.bytes("store/journal.damaged") == nil)
            limitFiles(to: rlim_t.max)
            try await journal.waitUntilWritten(journal.put(record))
            #expect(folder.bytes("store/journal") == good && folder.bytes("store/journal.damaged") == bytes)
        }
    }

    @Test func readOnlyDiskIsReported() async throws {
        let disk = folder("disk")
        mkdir(disk, 0o700)
        guard mount("tmpfs", disk, "tmpfs", UInt(MS_RDONLY), "size=65536") == 0 else {
            try Test.cancel("this user may not mount a file system")
        }
        defer { umount2(disk, 2) }
        let server = try ResourceServer(RangeResource(.usual))
        let error = await failure { () async throws(NetworkError) in
            try await session.download(Request(server.url), to: .file(disk + "/a"))
        }
        #expect((error?.cause as? DownloadDestination.Failure)?.reason == .readOnly && server.server.requestCount == 0)
    }
}

/// Limits the size of files that this process writes.
private func limitFiles(to size: rlim_t) {
    var limit = rlimit(rlim_cur: size, rlim_max: rlim_t.max)
    setrlimit(__rlimit_resource_t(1), &limit)  // RLIMIT_FSIZE
}
