// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewEngine
import CurlewTesting
import FoundationEssentials
import Glibc
import Testing

@testable import Curlew

/// Stores in directories that other users own or may write, and journals that name foreign files.
@Suite(.timeLimit(.minutes(10)))
struct ForeignStoreTests {
    private let folder: Folder
    private let body = PatternBody(seed: 5, length: 30_000)

    init() throws { folder = try Folder() }

    private func refusal(_ path: String? = nil) async -> NetworkError? {
        do throws(NetworkError) {
            _ = try await TransferStore(at: path ?? folder("store"))
            return nil
        } catch {
            return error
        }
    }

    private func expectRefusal(_ why: String, of name: String = "store", at path: String? = nil) async {
        let error = await refusal(path)
        let cause = error?.cause as? DownloadDestination.Failure
        #expect(error?.kind == .destinationFailed && cause?.reason == .foreignStore, "\(error as Any)")
        #expect(cause?.path == folder(name) && error?.message.contains(why) == true, "\(error as Any)")
        #expect(error?.hint?.contains("another directory") == true)
    }

    /// Writes a complete part file, and a journal that says that it is about to get its final name.
    ///
    /// - Parameter change: Changes the entry of the journal.
    private func plant(
        _ destination: DownloadDestination? = nil, _ overwrite: DownloadDestination.Overwrite = .fail,
        part: String = "1.part",
        change: (inout TransferStore.Download.PendingRename) -> Void = { _ in }
    ) async throws {
        folder.write(part, body.bytes)
        let identity = try #require(DiskFile.identity(of: folder(part)))
        var record = try TransferStore.Download(
            Request("https://example.com/1"), to: destination ?? .file(folder("1")), overwrite: overwrite,
            expecting: nil, options: DownloadOptions(), userInfo: [:])
        record.state = .running
        var placing = TransferStore.Download.PendingRename(
            part: folder(part), path: folder("1"), inode: identity.inode, writtenAt: identity.writtenAt,
            bytes: identity.size, bootID: DiskFile.bootID)
        change(&placing)
        record.placing = placing
        let planted = record
        let journal = try await DiskThread.syncing.result { [path = folder("store")] () throws(DiskFailure) in
            try TransferJournal(in: path)
        }
        try await journal.waitUntilWritten(journal.put(planted))
        await journal.close()
    }

    // MARK: The directory

    @Test(.enabled(if: geteuid() == 0)) func storeDirectoryOfAnotherUserIsRefused() async throws {
        try await plant()
        #expect(chown(folder("store"), 12_345, 12_345) == 0)
        await expectRefusal("another user (uid 12345)")
        #expect(folder.names == ["1.part", "store"])
    }

    @Test(arguments: [0o770, 0o702, 0o1777] as [mode_t])
    func storeDirectoryWritableByOthersIsRefused(_ mode: mode_t) async throws {
        try await plant()
        #expect(chmod(folder("store"), mode) == 0)
        await expectRefusal("other users may write")
        #expect(folder.names == ["1.part", "store"])
        #expect(chmod(folder("store"), 0o755) == 0)
        #expect(await refusal() == nil)
        #expect(folder.names == ["1", "store"])
    }

    @Test(arguments: ["", "/", "/.", "/./"]) func symbolicLinkAsStoreDirectoryIsRefused(_ end: String) async throws {
        try await plant()
        #expect(symlink(folder("store"), folder("link")) == 0 && symlink("nowhere", folder("lost")) == 0)
        await expectRefusal("a link instead of a directory", of: "link", at: folder("link" + end))
        await expectRefusal("a link instead of a directory", of: "lost", at: folder("lost" + end))
        #expect(folder.names == ["1.part", "link", "lost", "store"])
        // A link in front of the last component is fine.
        #expect(mkdir(folder("deep"), 0o700) == 0 && rename(folder("store"), folder("deep/store")) == 0)
        #expect(symlink(folder("deep"), folder("way")) == 0)
        #expect(await refusal(folder("way/store" + end)) == nil)
    }

    @Test func fileAsStoreDirectoryIsRefused() async {
        folder.write("store", [1])
        let error = await refusal()
        #expect((error?.cause as? DownloadDestination.Failure)?.reason == .notADirectory && error?.hint != nil)
        #expect(folder.bytes("store") == [1])
    }

    /// The store keeps writing to the directory that it checked when it opened.
    @Test func storeKeepsItsDirectoryAfterARename() async throws {
        let store = try await TransferStore(at: folder("store"))
        #expect(rename(folder("store"), folder("moved")) == 0 && mkdir(folder("store"), 0o700) == 0)
        let server = try MockServer { _ in .status(404) }
        try await store.download(Request(server.url("/")), on: Session(), to: .file(folder("a")))
        for await report in store.reports { if case .drained = report { break } }
        await store.close()
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder("store")) == [])
        #expect(folder.bytes("moved/journal")?.count ?? 0 > 100)
    }

    @Test func fileOwnerRejectsForeignAndWritableDirectories() {
        func rejectionReason(_ mode: UInt32, _ owner: UInt32 = 7) -> String? {
            FileOwner.rejectionReason(toDirectory: mode, owner: owner, user: 7)
        }
        #expect(
            rejectionReason(0o040700) == nil && rejectionReason(0o040755) == nil && rejectionReason(0o042750) == nil)
        #expect(rejectionReason(0o040700, 0)?.contains("another user (uid 0)") == true)
        #expect(rejectionReason(0o040770)?.contains("other users may write") == true)
        #expect(rejectionReason(0o041702)?.contains("other users may write") == true)
        #expect(rejectionReason(0o100700)?.contains("something other than") == true)
    }

    // MARK: Files of the store

    @Test(.enabled(if: geteuid() == 0), arguments: ["journal", "lock"])
    func journalOrLockOfAnotherUserIsRefused(_ name: String) async throws {
        try await plant()
        let bytes = folder.bytes("store/" + name)
        #expect(chown(folder("store/" + name), 12_345, 12_345) == 0)
        await expectRefusal("another user (uid 12345)", of: "store/" + name)
        #expect(folder.bytes("store/" + name) == bytes && folder.names == ["1.part", "store"])
    }

    @Test(arguments: ["journal", "lock"]) func journalOrLockWritableByOthersIsRefused(_ name: String) async throws {
        try await plant()
        #expect(chmod(folder("store/" + name), 0o620) == 0)
        await expectRefusal("other users may write", of: "store/" + name)
        #expect(folder.names == ["1.part", "store"])
    }

    /// The store checks the owner and the kind of a file before it truncates or writes it.
    @Test(arguments: ["journal", "lock"]) func linkedJournalOrLockIsRefusedAndNotChanged(_ name: String) async throws {
        try await plant()
        let victim = [UInt8]("what somebody needs".utf8)
        #expect(unlink(folder("store/" + name)) == 0)
        folder.write("victim", victim)
        #expect(link(folder("victim"), folder("store/" + name)) == 0)
        await expectRefusal("several hard links", of: "store/" + name)
        #expect(unlink(folder("store/" + name)) == 0 && symlink(folder("victim"), folder("store/" + name)) == 0)
        await expectRefusal("something other than", of: "store/" + name)
        #expect(unlink(folder("store/" + name)) == 0 && mkfifo(folder("store/" + name), 0o600) == 0)
        await expectRefusal("something other than", of: "store/" + name)
        #expect(folder.bytes("victim") == victim && folder.names == ["1.part", "store", "victim"])
    }

    // MARK: Files that a journal names

    private func openStore() async throws -> [TransferStore.Download] {
        let store = try await TransferStore(at: folder("store"))
        defer { withExtendedLifetime(store) {} }
        return store.downloads
    }

    @Test func journalCannotMoveAFileToAnotherPath() async throws {
        for path in ["2", "1.part", "deep/1", "../1", "./1", "1/"] {
            try await plant { $0.path = folder(path) }
            #expect(try await openStore().map(\.state) == [.running], "\(path)")
            #expect(folder.names == ["1.part", "store"], "\(path)")
            try FileManager.default.removeItem(atPath: folder("store"))
        }
    }

    @Test func journalCannotMoveAnotherFileThanThePart() async throws {
        for (part, overwrite) in [
            ("2", DownloadDestination.Overwrite.fail), ("2.part", .uniquify), ("1.2.part", .fail),
            ("1.02.part", .uniquify),
            ("1.1000.part", .uniquify), ("1.1.part", .uniquify), ("1.part.part", .replace),
        ] {
            try await plant(nil, overwrite, part: part)
            #expect(try await openStore().map(\.state) == [.running], "\(part)")
            #expect(folder.names.sorted() == [part, "store"].sorted())
            for name in [part, "store"] { try FileManager.default.removeItem(atPath: folder(name)) }
        }
    }

    /// The destination has its final name already; the note of the foreign file must stay.
    @Test func journalCannotRemoveAnotherFileThanThePart() async throws {
        folder.write("victim.json", [1])
        try await plant(part: "1") { $0.part = folder("victim") }
        #expect(try await openStore().map(\.state) == [.running])
        #expect(folder.names == ["1", "store", "victim.json"])
    }

    @Test func numberedPartFileOfTheDestinationIsMoved() async throws {
        try await plant(nil, .uniquify, part: "1.2.part")
        #expect(try await openStore().map(\.path) == [folder("1")])
        #expect(folder.names == ["1", "store"] && folder.bytes("1") == body.bytes)
    }

    @Test func journalNamesInADirectoryMustBeSafe() async throws {
        let destination = DownloadDestination.directory(folder.path)
        let implied = try #require(destination.part(of: "https://example.com/1"))
        let part = String(implied.dropFirst(folder.path.utf8.count + 1))
        for name in ["../evil", ".profile", "a.part", "a.part.json", "deep/a", "a\u{202E}b", "a "] {
            try await plant(destination, part: part) { $0.path = folder(name) }
            #expect(try await openStore().map(\.state) == [.running], "\(name)")
            #expect(folder.names == [part, "store"], "\(name)")
            try FileManager.default.removeItem(atPath: folder("store"))
        }
        try await plant(destination, part: part) { $0.path = folder("what it is.tar.gz") }
        #expect(try await openStore().map(\.path) == [folder("what it is.tar.gz")])
        #expect(folder.names == ["store", "what it is.tar.gz"])
    }
}
