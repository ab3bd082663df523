// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewEngine
import CurlewSupport
import CurlewTesting
import Foundation
import Testing

@testable import Curlew

@Suite struct TransferStoreTests {
    private let folder: Folder
    private let server: MockServer
    private let gate = Gate()
    private let session = Session()
    private let body = PatternBody(seed: 5, length: 300_000)

    init() throws {
        folder = try Folder()
        let (gate, body) = (gate, body)
        server = try MockServer { request in
            if request.path == "/missing" { return .status(404) }
            if request.path == "/secret", request.field("Authorization") != "Bearer s3cret" { return .status(401) }
            let answer = RangeResource(body).response(to: request)
            let isHeld = request.path.hasPrefix("/held") && request.field("Range") == nil
            return isHeld ? answer.fault(.stall(gate), at: .body(100_000)) : answer
        }
    }

    private func open() async throws -> TransferStore { try await TransferStore(at: folder("store")) }

    private var journal: [String] {
        String(decoding: folder.bytes("store/journal") ?? [], as: UTF8.self).split(separator: "\n").map(String.init)
    }

    private func reports(_ store: TransferStore) async -> [TransferStore.Report] {
        var reports: [TransferStore.Report] = []
        for await report in store.reports {
            if case .drained = report { break }
            reports.append(report)
        }
        return reports
    }

    @Test func finishedDownloadIsReportedOnce() async throws {
        let store = try await open()
        let stored = try await store.download(
            Request(server.url("/a")), on: session, to: .file(folder("a")), expecting: .sha256(body.sha256),
            userInfo: ["for": "me"])
        let file = try await stored.transfer.value
        #expect(file.bytes == 300_000 && file.checksum == .sha256(body.sha256))
        let record = try #require(store.downloads.first)
        #expect(
            record.state == .finished && record.path == file.path && record.bytes == 300_000 && record.attempts == 1)
        #expect(await reports(store) == [.finished(record)])
        #expect(record.userInfo == ["for": "me"] && record.id == stored.id)
        #expect(store.downloads.isEmpty)
        #expect(await reports(store).isEmpty)
    }

    @Test func failedDownloadIsReportedOnce() async throws {
        let store = try await open()
        let stored = try await store.download(Request(server.url("/missing")), on: session, to: .file(folder("a")))
        #expect(
            await failure { () async throws(NetworkError) in try await stored.transfer.value }?.kind
                == .unacceptableStatus)
        let received = await reports(store)
        guard case .failed(let record) = received.first, received.count == 1 else {
            Issue.record("\(received)")
            return
        }
        #expect(record.failure?.contains("unacceptable_status") == true, "\(record)")
        #expect(store.downloads.isEmpty)
    }

    @Test func cancelledDownloadResumesWhenReattached() async throws {
        let store = try await open()
        let stored =
            try await store.download(
                Request(server.url("/held")), on: session, to: .file(folder("a")), userInfo: ["n": "1"])
        for await progress in stored.transfer.progress where progress.received >= 100_000 { break }
        #expect(await stored.transfer.cancel(producingResumeToken: true)?.offset == 100_000)
        #expect(store.downloads.map(\.state) == [.waiting])
        gate.open()
        await store.close()
        let next = try await open()
        let again = await next.reattach(session)
        #expect(again.map(\.id) == [stored.id] && again.first?.record.userInfo == ["n": "1"])
        #expect(try await again.first?.transfer.value.bytes == 300_000)
        #expect(folder.bytes("a") == body.bytes)
        #expect(server.requests.map { $0.field("Range") } == [nil, "bytes=100000-"])
        #expect(next.downloads.map(\.attempts) == [2])
    }

    @Test func runningDownloadOfClosedStoreResumesInTheNext() async throws {
        let store = try await open()
        let stored = try await store.download(Request(server.url("/held")), on: session, to: .file(folder("a")))
        for await progress in stored.transfer.progress where progress.received >= 100_000 { break }
        let received = Task { await reports(store) }
        await store.close()
        gate.open()
        #expect(await received.value.isEmpty)
        #expect(await failure { () async throws(NetworkError) in try await stored.transfer.value }?.kind == .cancelled)
        await #expect(throws: NetworkError.self) {
            try await store.download(Request(server.url("/b")), on: session, to: .file(folder("b")))
        }
        #expect(await store.reattach(session).isEmpty)
        let next = try await open()
        #expect(try await next.reattach(session).first?.transfer.value.resumedFrom == 100_000)
    }

    @Test func reattachReturnsTheRunningTransfer() async throws {
        let store = try await open()
        let stored = try await store.download(Request(server.url("/held")), on: session, to: .file(folder("a")))
        let again = await store.reattach(session)
        #expect(again.map(\.transfer.id) == [stored.transfer.id])
        gate.open()
        #expect(try await stored.transfer.value.bytes == 300_000)
        #expect(server.requests.count == 1)
    }

    @Test func downloadCancelledWithoutTokenIsRemoved() async throws {
        let store = try await open()
        let stored = try await store.download(Request(server.url("/held")), on: session, to: .file(folder("a")))
        for await progress in stored.transfer.progress where progress.received >= 100_000 { break }
        await stored.transfer.cancel(producingResumeToken: false)
        #expect(store.downloads.isEmpty && folder.names == ["store"])
        gate.open()
    }

    @Test func removedDownloadLeavesNoFile() async throws {
        let store = try await open()
        let running = try await store.download(Request(server.url("/held")), on: session, to: .file(folder("a")))
        for await progress in running.transfer.progress where progress.received >= 100_000 { break }
        try await store.remove(running.id)
        let resting = try await store.download(Request(server.url("/held2")), on: session, to: .directory(folder.path))
        for await progress in resting.transfer.progress where progress.received >= 100_000 { break }
        await resting.transfer.cancel(producingResumeToken: true)
        #expect(folder.names.count == 3)
        try await store.remove(resting.id)
        try await store.remove("unknown")
        gate.open()
        #expect(folder.names == ["store"] && store.downloads.isEmpty)
        #expect(await reports(store).isEmpty)
    }

    @Test func withheldFieldsAreNotStoredAndAddedWhenReattached() async throws {
        let store = try await open()
        var request = Request(server.url("/secret"))
        request.fields = ["Authorization": "Bearer s3cret", "X-Kind": "plain"]
        let stored = try await store.download(request, on: session, to: .file(folder("a")))
        #expect(try await stored.transfer.value.bytes == 300_000)
        #expect(stored.record.withheldFields == [.authorization])
        let text = journal.joined()
        #expect(!text.contains("s3cret") && text.contains("X-Kind"))
        #expect(!"\(stored.record)".contains("s3cret"))

        // The state after a process that ended before the download began.
        folder.write("other.journal", [])
        let other = try await TransferStore(at: folder("other"))
        let lineNumber = other.journal.put(
            try TransferStore.Download(
                request, to: .file(folder("b")), overwrite: .fail, expecting: nil, options: DownloadOptions(),
                userInfo: [:]))
        try await other.journal.waitUntilWritten(lineNumber)
        let again = await other.reattach(session) { record, request in
            for name in record.withheldFields { request.fields[name] = "Bearer s3cret" }
        }
        #expect(try await again.first?.transfer.value.bytes == 300_000)
    }

    @Test func storeInUseIsBusyAndNamesTheProcess() async throws {
        let store = try await open()
        let error = try #require(
            await storeFailure { () async throws(NetworkError) in try await TransferStore(at: folder("store")) })
        #expect(error.kind == .destinationFailed && (error.cause as? DownloadDestination.Failure)?.reason == .busy)
        #expect(error.message.contains("process \(getpid())") && error.message.contains(folder("store")))
        #expect(store.downloads.isEmpty)
    }

    private func storeFailure(_ work: () async throws(NetworkError) -> TransferStore) async -> NetworkError? {
        do throws(NetworkError) {
            _ = try await work()
            return nil
        } catch {
            return error
        }
    }

    @Test func postAndChoosingDestinationAreRefused() async throws {
        let store = try await open()
        for (request, destination) in [
            (Request(.post, server.url("/")), DownloadDestination.file(folder("a"))),
            (Request(server.url("/")), .choosing { _ in "/nowhere" }),
        ] {
            await #expect(throws: NetworkError.self) {
                try await store.download(request, on: session, to: destination)
            }
        }
        #expect(store.downloads.isEmpty && server.requests.isEmpty)
    }

    @Test func queueLimitsDownloadsOfTheStore() async throws {
        let store = try await TransferStore(at: folder("store"), queue: DownloadOptions.Queue(atMost: 1))
        let held = try await store.download(Request(server.url("/held")), on: session, to: .file(folder("a")))
        #expect(await gate.waitUntilReached())
        let other = try await store.download(Request(server.url("/b")), on: session, to: .file(folder("b")))
        #expect(server.requests.count == 1)
        gate.open()
        _ = try await (held.transfer.value, other.transfer.value)
        #expect(await reports(store).count == 2)
    }

    @Test func severalReadersShareTheReports() async throws {
        let store = try await open()
        for name in ["a", "b"] {
            _ = try await store.download(Request(server.url("/\(name)")), on: session, to: .file(folder(name))).transfer
                .value
        }
        var first: TransferStore.Reports.Iterator? = store.reports.makeAsyncIterator()
        let second = store.reports.makeAsyncIterator()
        let report = await first?.next()
        #expect(await second.next() != report)
        // The first reader goes away before it asks for the next report, so that its report is delivered again.
        first = nil
        #expect(await second.next() == report)
        #expect(await second.next() == .drained)
        #expect(store.downloads.isEmpty)
    }

    @Test func waitingReaderReceivesDrained() async throws {
        let store = try await open()
        _ = try await store.download(Request(server.url("/a")), on: session, to: .file(folder("a"))).transfer.value
        let first = store.reports.makeAsyncIterator()
        #expect(await first.next() != .drained)
        // The second reader waits, since the first has not asked for the next report.
        let second = Task.immediate { await store.reports.makeAsyncIterator().next() }
        #expect(await first.next() == .drained)
        #expect(await second.value == .drained)
    }

    /// A `reattach` during `download` does not start the same download twice.
    @Test func reattachDuringDownloadStartsNothingTwice() async throws {
        let store = try await open()
        for number in 0..<20 {
            async let attached = store.reattach(session)
            async let begun = store.download(
                Request(server.url("/\(number)")), on: session, to: .file(folder("\(number)")))
            _ = try await begun.transfer.value
            for earlier in await attached { _ = try await earlier.transfer.value }
        }
        #expect(server.requestCount == 20)
        #expect(await reports(store).count == 20)
    }

    @Test func closeInCancelledTaskReleasesTheStore() async throws {
        let store = try await open()
        try await store.download(Request(server.url("/held")), on: session, to: .file(folder("held")))
        #expect(await gate.waitUntilReached())
        let closing = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            await store.close()
        }
        await closing.value
        // The closed store does not write any more, so a new store can open.
        let next = try await open()
        gate.open()
        let again = await next.reattach(session)
        #expect(try await again.first?.transfer.value.bytes == 300_000)
        await #expect(throws: NetworkError.self) {
            try await store.download(Request(server.url("/b")), on: session, to: .file(folder("b")))
        }
    }

    @Test func closeWaitsUntilItsDownloadsHaveEnded() async throws {
        let store = try await open()
        let (isRunning, wasReleased) = (Gate(), Lock(false))
        let session = Session(interceptors: [
            .intercept { request, _, next in
                isRunning.open()
                #expect(!(await gate.wait()), "only cancellation ends this wait")
                // The store is closing, but this download has not ended: the store keeps its lock.
                let attempts = Task {
                    for _ in 0..<100 where (try? await open()) != nil { wasReleased.withLock { $0 = true } }
                }
                await attempts.value
                return try await next(request)
            }
        ])
        let stored = try await store.download(Request(server.url("/a")), on: session, to: .file(folder("a")))
        await isRunning.wait()
        await store.close()
        await #expect(throws: NetworkError.self) { try await stored.transfer.value }
        #expect(!wasReleased.withLock { $0 })
        _ = try await open()
    }

    // MARK: The journal

    @Test(arguments: [0, 1, 5, 18])
    func tornLastJournalEntryIsDropped(_ kept: Int) async throws {
        try await leaveTwo()
        let lines = journal
        let torn = Array((lines[0] + "\n" + lines[1] + "\n").utf8) + Array(lines[2].utf8.prefix(kept))
        folder.write("store/journal", torn)
        let store = try await open()
        #expect(store.downloads.map(\.userInfo) == [["n": "1"]])
        #expect(folder.bytes("store/journal.damaged") == nil)
        #expect(journal.count == 2)
    }

    @Test func damagedJournalEntryIsSkippedAndTheFileIsCopied() async throws {
        try await leaveTwo()
        var bytes = try #require(folder.bytes("store/journal"))
        // The damaged line is still valid JSON.
        let value = Array(#""n":"1""#.utf8)
        let place = try #require(bytes.indices.first { bytes[$0...].starts(with: value) }) + value.count - 2
        bytes[place] ^= 2
        folder.write("store/journal", bytes)
        let store = try await open()
        #expect(store.downloads.map(\.userInfo) == [["n": "2"]])
        #expect(folder.bytes("store/journal.damaged") == bytes)
    }

    @Test(arguments: ["curlew-transfers 2\n", "something else\n", "{}"])
    func journalOfAnotherFormatIsRefused(_ text: String) async throws {
        try FileManager.default.createDirectory(atPath: folder("store"), withIntermediateDirectories: false)
        folder.write("store/journal", Array(text.utf8))
        let error = await storeFailure { () async throws(NetworkError) in try await TransferStore(at: folder("store")) }
        #expect(error?.kind == .destinationFailed && error?.message.contains("journal") == true)
        #expect(folder.bytes("store/journal") == Array(text.utf8))
    }

    @Test func journalIsCompacted() async throws {
        let journal = try await DiskThread.syncing.result { [path = folder("store")] () throws(DiskFailure) in
            try TransferJournal(in: path)
        }
        let record = try record("1")
        for _ in 0..<3000 { try await journal.waitUntilWritten(journal.put(record), isSynced: false) }
        #expect(self.journal.count < 1100)
        #expect(journal.records == [record])
    }

    @Test func storeDirectoryIsReadableByItsOwnerOnly() async throws {
        let store = try await open()
        let attributes = try FileManager.default.attributesOfItem(atPath: folder("store"))
        #expect(attributes[.posixPermissions] as? Int == 0o700)
        #expect(store.downloads.isEmpty)
    }

    private func record(_ number: String) throws -> TransferStore.Download {
        try TransferStore.Download(
            Request(server.url("/\(number)")), to: .file(folder(number)), overwrite: .fail, expecting: nil,
            options: DownloadOptions(), userInfo: ["n": number])
    }

    /// Leaves the state of a process that ended before its two downloads began.
    private func leaveTwo() async throws {
        let journal = try await DiskThread.syncing.result { [path = folder("store")] () throws(DiskFailure) in
            try TransferJournal(in: path)
        }
        for number in ["1", "2"] { try await journal.waitUntilWritten(journal.put(try record(number))) }
    }
}
