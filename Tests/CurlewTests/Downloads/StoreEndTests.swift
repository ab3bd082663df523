// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewEngine
import CurlewTesting
import Foundation
import Testing

@testable import Curlew

/// Stores that were closed or killed, and the next store in the same directory.
@Suite struct StoreEndTests {
    private let folder: Folder
    private let server: MockServer
    private let session = Session()
    private let gate = Gate()
    private let body = PatternBody(seed: 5, length: 300_000)

    init() throws {
        folder = try Folder()
        server = try MockServer { [body, gate] request in
            let answer = RangeResource(body).response(to: request)
            return request.path == "/held" ? answer.fault(.stall(gate), at: .body(100_000)) : answer
        }
    }

    private func open() async throws -> TransferStore { try await TransferStore(at: folder("store")) }

    // MARK: Closing

    /// A download refused because of the closed store does not appear in the next store.
    @Test func downloadRefusedByClosedStoreIsNotInTheNextStore() async throws {
        let store = try await open()
        let taken = await withTaskGroup(of: String?.self) { group in
            for index in 0..<40 {
                if index == 20 {
                    group.addTask {
                        await store.close()
                        return nil
                    }
                }
                let (path, url) = (folder("\(index)"), server.url("/\(index)"))
                group.addTask { [session] in
                    try? await store.download(Request(url), on: session, to: .file(path)).id
                }
            }
            return await group.reduce(into: Set()) { ids, id in if let id { ids.insert(id) } }
        }
        let next = try await open()
        #expect(Set(next.downloads.map(\.id)) == taken)
    }

    /// A forked child has a copy of the lock's descriptor, for example.
    @Test func closedStoreReleasesItsLockDespiteCopiedDescriptors() async throws {
        let store = try await open()
        let own = "/proc/self/fd/"
        let number = try #require(
            FileManager.default.contentsOfDirectory(atPath: own).first {
                (try? FileManager.default.destinationOfSymbolicLink(atPath: own + $0)) == folder("store/lock")
            }.flatMap { Int32($0) })
        let copy = dup(number)
        defer { Glibc.close(copy) }
        await store.close()
        let next = try await open()
        #expect(next.downloads.isEmpty)
    }

    // MARK: Forgetting

    /// A `reattach` during `remove` does not start the removed download again.
    @Test func downloadRemovedDuringReattachStaysRemoved() async throws {
        let store = try await open()
        for _ in 0..<20 {
            let stored = try await store.download(Request(server.url("/held")), on: session, to: .file(folder("a")))
            for await progress in stored.transfer.progress where progress.received >= 100_000 { break }
            await stored.transfer.cancel(producingResumeToken: true)
            async let removed: Void = store.remove(stored.id)
            async let attached = store.reattach(session)
            try await removed
            for again in await attached { _ = try? await again.transfer.value }
            #expect(store.downloads.isEmpty && folder.names == ["store"])
        }
        gate.open()
    }

    // MARK: Files that were about to get their names

    @Test(arguments: [DownloadDestination.Overwrite.fail, .uniquify, .replace])
    func completePartFileGetsItsFinalNameWithoutARequest(_ overwrite: DownloadDestination.Overwrite) async throws {
        if overwrite != .fail { folder.write("1", [1]) }
        try await leavePendingRename(overwrite)
        let store = try await open()
        let name = overwrite == .uniquify ? "1 (2)" : "1"
        let record = try #require(store.downloads.first)
        #expect(record.state == .finished && record.path == folder(name))
        #expect(folder.bytes(name) == body.bytes && server.requests.isEmpty)
        #expect(!folder.names.contains("1.part") && !folder.names.contains("1.part.json"))
    }

    @Test func fileWithItsFinalNameIsRecognized() async throws {
        folder.write("1", [1])
        try await leavePendingRename(.uniquify)
        try FileManager.default.moveItem(atPath: folder("1.part"), toPath: folder("1 (2)"))
        let store = try await open()
        #expect(store.downloads.map(\.path) == [folder("1 (2)")])
        #expect(server.requests.isEmpty && folder.bytes("1") == [1])
    }

    @Test func anotherFileAtTheDestinationIsNotTakenForTheDownload() async throws {
        try await leavePendingRename(.fail)
        try FileManager.default.removeItem(atPath: folder("1.part"))
        folder.write("1", body.bytes)
        let store = try await open()
        #expect(store.downloads.map(\.state) == [.running])
        let again = try #require(await store.reattach(session).first)
        #expect(
            await failure { () async throws(NetworkError) in try await again.transfer.value }?.kind
                == .destinationFailed)
    }

    /// A move by `link` and `unlink` stopped in between, so that the file has both names.
    @Test func fileWithPartAndFinalNameLosesThePartName() async throws {
        try await leavePendingRename(.fail)
        try FileManager.default.linkItem(atPath: folder("1.part"), toPath: folder("1"))
        let store = try await open()
        #expect(store.downloads.map(\.state) == [.finished] && folder.names == ["1", "store"])
    }

    /// After a crash of the machine, bytes that were not synced may be anything.
    @Test(arguments: [false, true])
    func partFileFromBeforeRebootIsPlacedOnlyIfSynced(_ isSynced: Bool) async throws {
        try await leavePendingRename(.fail, bootID: "another", isSynced: isSynced)
        let store = try await open()
        #expect(store.downloads.map(\.state) == [isSynced ? .finished : .running])
        #expect(folder.names.contains("1") == isSynced)
    }

    /// Opening such a part file replaces it by an empty one, which must not get the final name.
    @Test func partFileWithAnotherHardLinkIsNotPlaced() async throws {
        try await leavePendingRename(.fail)
        #expect(link(folder("1.part"), folder("other")) == 0)
        let store = try await open()
        #expect(store.downloads.map(\.state) == [.running])
        #expect(folder.bytes("other") == body.bytes && !folder.names.contains("1"))
    }

    /// Leaves the state of a process killed between the last byte and the final name.
    private func leavePendingRename(
        _ overwrite: DownloadDestination.Overwrite, bootID: String = DiskFile.bootID, isSynced: Bool = true
    ) async throws {
        folder.write("1.part", body.bytes)
        folder.write("1.part.json", [1])
        let identity = try #require(DiskFile.identity(of: folder("1.part")))
        var options = DownloadOptions()
        options.isSynced = isSynced
        var record = try TransferStore.Download(
            Request(server.url("/1")), to: .file(folder("1")), overwrite: overwrite, expecting: nil,
            options: options, userInfo: [:])
        record.state = .running
        record.placing = TransferStore.Download.PendingRename(
            part: folder("1.part"), path: folder("1"), inode: identity.inode, writtenAt: identity.writtenAt,
            bytes: identity.size, bootID: bootID)
        let journal = try await DiskThread.syncing.result { [path = folder("store")] () throws(DiskFailure) in
            try TransferJournal(in: path)
        }
        try await journal.waitUntilWritten(journal.put(record))
    }
}
