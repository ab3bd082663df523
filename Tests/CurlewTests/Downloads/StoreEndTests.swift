// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewEngine
import CurlewTesting
import Foundation
import Testing

@testable import Curlew

/// What a store leaves to the next, and what that one makes of it.
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

    /// Whoever was told that the store is closed finds nothing of it in the next.
    @Test func whatWasRefusedDoesNotBeginLater() async throws {
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

    /// A child of fork() and the like have the descriptor of the lock, too.
    @Test func aClosedStoreIsFreeWhoeverHasItsDescriptors() async throws {
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

    /// Whoever comes in between does not begin again what is being forgotten.
    @Test func whatIsRemovedMeanwhileStaysAway() async throws {
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

    @Test(arguments: [DownloadOverwrite.fail, .uniquify, .replace])
    func aWholePartGetsItsNameWithoutAQuestion(_ overwrite: DownloadOverwrite) async throws {
        if overwrite != .fail { folder.write("1", [1]) }
        try await leavePlacing(overwrite)
        let store = try await open()
        let name = overwrite == .uniquify ? "1 (2)" : "1"
        let record = try #require(store.downloads.first)
        #expect(record.state == .finished && record.path == folder(name))
        #expect(folder.bytes(name) == body.bytes && server.requests.isEmpty)
        #expect(!folder.names.contains("1.part") && !folder.names.contains("1.part.json"))
    }

    @Test func aFileThatHasItsNameIsKnown() async throws {
        folder.write("1", [1])
        try await leavePlacing(.uniquify)
        try FileManager.default.moveItem(atPath: folder("1.part"), toPath: folder("1 (2)"))
        let store = try await open()
        #expect(store.downloads.map(\.path) == [folder("1 (2)")])
        #expect(server.requests.isEmpty && folder.bytes("1") == [1])
    }

    @Test func anotherFileIsNotTakenForIt() async throws {
        try await leavePlacing(.fail)
        try FileManager.default.removeItem(atPath: folder("1.part"))
        folder.write("1", body.bytes)
        let store = try await open()
        #expect(store.downloads.map(\.state) == [.running])
        let again = try #require(await store.reattach(session).first)
        #expect(
            await failure { () async throws(NetworkError) in try await again.transfer.value }?.kind
                == .destinationFailed)
    }

    /// The file system knew no other way to give it a second name than to leave the first.
    @Test func aPartWithBothNamesLosesTheFirst() async throws {
        try await leavePlacing(.fail)
        try FileManager.default.linkItem(atPath: folder("1.part"), toPath: folder("1"))
        let store = try await open()
        #expect(store.downloads.map(\.state) == [.finished] && folder.names == ["1", "store"])
    }

    /// After the end of the machine, what was not synced may be anything.
    @Test(arguments: [false, true])
    func aPartFromBeforeTheMachineStartedHasToBeSynced(_ isSynced: Bool) async throws {
        try await leavePlacing(.fail, bootID: "another", isSynced: isSynced)
        let store = try await open()
        #expect(store.downloads.map(\.state) == [isSynced ? .finished : .running])
        #expect(folder.names.contains("1") == isSynced)
    }

    /// Opening such a part makes a new, empty one in its place, which must not get the name.
    @Test func aPartWithASecondNameIsNotPlaced() async throws {
        try await leavePlacing(.fail)
        #expect(link(folder("1.part"), folder("other")) == 0)
        let store = try await open()
        #expect(store.downloads.map(\.state) == [.running])
        #expect(folder.bytes("other") == body.bytes && !folder.names.contains("1"))
    }

    /// As a process would that ended between the last byte and the name.
    private func leavePlacing(
        _ overwrite: DownloadOverwrite, bootID: String = DiskFile.bootID, isSynced: Bool = true
    ) async throws {
        folder.write("1.part", body.bytes)
        folder.write("1.part.json", [1])
        let identity = try #require(DiskFile.identity(of: folder("1.part")))
        var options = DownloadOptions()
        options.isSynced = isSynced
        var record = try StoredDownload(
            Request(server.url("/1")), to: .file(folder("1")), overwrite: overwrite, expecting: nil,
            saving: options, userInfo: [:])
        record.state = .running
        record.placing = StoredDownload.Placing(
            part: folder("1.part"), path: folder("1"), inode: identity.inode, writtenAt: identity.writtenAt,
            bytes: identity.size, bootID: bootID)
        let journal = try await DiskThread.syncing.result { [path = folder("store")] () throws(DiskFailure) in
            try TransferJournal(in: path)
        }
        try await journal.settle(journal.put(record))
    }
}
