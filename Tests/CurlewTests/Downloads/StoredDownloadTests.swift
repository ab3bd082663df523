// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewEngine
import CurlewTesting
import Testing

@testable import Curlew

/// The parts of a download that a store saves, and the downloads that it rejects.
@Suite struct StoredDownloadTests {
    private let folder: Folder
    private let server: MockServer
    private let session = Session()
    private let body = PatternBody(seed: 5, length: 300_000)

    init() throws {
        folder = try Folder()
        server = try MockServer { [gate = Gate()] _ in .status(200).fault(.stall(gate), at: .start) }
    }

    private func open() async throws -> TransferStore { try await TransferStore(at: folder("store")) }

    private var journal: String { String(decoding: folder.bytes("store/journal") ?? [], as: UTF8.self) }

    @Test func requestOptionsAndFieldsAreStoredWithoutSecrets() async throws {
        var request = Request(server.url("/held"), fields: ["Private-Token": "s3cret", "X-Kept": "1"])
        request.options.accepting = [.json]
        request.options.responseLimit = .mebibytes(7)
        request.options.label = "mine"
        do {
            let store = try await open()
            try await store.download(
                request, on: session, to: .file(folder("a")), withholding: ["private-token"])
            await store.close()
        }
        #expect(!journal.contains("s3cret"))
        let store = try await open()
        let record = try #require(store.downloads.first)
        #expect(record.request.options == request.options)
        #expect(record.withheldFields == ["Private-Token"] && record.fields == ["X-Kept": "1"])
    }

    @Test func requestWithItsOwnTrustIsRefused() async throws {
        var request = Request(server.url("/a"))
        request.trust = SystemTrust()
        let store = try await open()
        do throws(NetworkError) {
            try await store.download(request, on: session, to: .file(folder("a")))
            Issue.record("the store accepted the download")
        } catch {
            #expect(error.kind == .invalidRequest && error.hint == "Set the evaluator on the session.")
        }
        #expect(store.downloads.isEmpty)
    }

    @Test func failedDownloadCanBeRetried() async throws {
        let broken = try ResourceServer(RangeResource(body), cuts: [100_000])
        var request = Request(broken.url)
        request.options.retry = RetryPolicy.never
        let store = try await open()
        let stored = try await store.download(request, on: session, to: .file(folder("a")))
        var reported: [TransferStore.Download.State] = []
        var resumedFrom: Int64?
        for await report in store.reports {
            switch report {
            case .failed(let record):
                reported.append(record.state)
                #expect(record.id == stored.id && record.attempts == 1)
                let again = try #require(await store.retry(record.id, on: session))
                #expect(try await store.retry(record.id, on: session) == nil)
                resumedFrom = try await again.transfer.value.resumedFrom
            case .finished(let record): reported.append(record.state)
            case .drained: break
            }
            if case .drained = report { break }
        }
        #expect(reported == [.failed, .finished] && resumedFrom == 100_000)
        #expect(folder.bytes("a") == body.bytes && store.downloads.isEmpty)
        #expect(try await store.retry(stored.id, on: session) == nil)
    }

    @Test func removedFailedDownloadLosesItsPartFile() async throws {
        let broken = try ResourceServer(RangeResource(body), cuts: [100_000])
        var request = Request(broken.url)
        request.options.retry = RetryPolicy.never
        let store = try await open()
        let stored = try await store.download(request, on: session, to: .file(folder("a")))
        _ = try? await stored.transfer.value
        #expect(store.downloads.first?.state == .failed && folder.names == ["a.part", "a.part.json", "store"])
        try await store.remove(stored.id)
        #expect(folder.names == ["store"])
    }

    @Test func requestThatCannotBeDecodedAgainIsRefused() async throws {
        var request = Request(server.url("/a"))
        request.options.retry = .upTo(3)
        request.options.retry?.budget = .infinity
        let store = try await open()
        do throws(NetworkError) {
            try await store.download(request, on: session, to: .file(folder("a")))
            Issue.record("the store accepted the download")
        } catch {
            #expect(error.kind == .invalidRequest && error.message.contains("cannot be stored"))
        }
        #expect(store.downloads.isEmpty)
    }

    /// Each failure is reported, even one equal to the failure before.
    @Test func everyFailureIsReported() async throws {
        let store = try await open()
        let stored = try await store.download(
            Request(server.url("/a")), on: session, to: .file(folder("a")), expecting: .sha256("nonsense"))
        var reported = 0
        for await report in store.reports {
            guard case .failed(let record) = report else { break }
            reported += 1
            #expect(record.id == stored.id && record.attempts == 0)
            if reported == 3 { continue }
            let again = try #require(await store.retry(record.id, on: session))
            _ = try? await again.transfer.value
        }
        #expect(reported == 3 && store.downloads.isEmpty)
    }

    /// A journal with a valid checksum may have any numbers.
    @Test func journalNumbersAreBounded() async throws {
        var record = try TransferStore.Download(
            Request(server.url("/held")), to: .file(folder("a")), overwrite: .fail, expecting: nil,
            options: DownloadOptions(), userInfo: [:])
        (record.attempts, record.retries) = (.max, .min)
        record.saving.pauseGrace = .seconds(Int64.max)
        let (path, planted) = (folder("store"), record)
        do {
            let journal = try await DiskThread.syncing.result { () throws(DiskFailure) in
                try TransferJournal(in: path)
            }
            try await journal.waitUntilWritten(journal.put(planted))
        }
        let store = try await open()
        let found = try #require(store.downloads.first)
        #expect(found.attempts == Int(Int32.max) && found.retries == 0)
        #expect(found.saving.pauseGrace == .seconds(365 * 86_400))
        #expect(await store.reattach(session).count == 1)
        await store.close()
    }

    @Test func attemptCountsSaturate() throws {
        var record = try TransferStore.Download(
            Request(server.url("/held")), to: .file(folder("a")), overwrite: .fail, expecting: nil,
            options: DownloadOptions(), userInfo: [:])
        (record.attempts, record.retries) = (.max, .max - 1)
        record.incrementAttempts()
        record.incrementRetries()
        #expect(record.attempts == .max && record.retries == .max)
        var options = DownloadOptions()
        options.pauseGrace = .seconds(Int64.max)
        #expect(options.boundedGrace == .seconds(365 * 86_400))
        options.pauseGrace = .seconds(-1)
        #expect(options.boundedGrace == .zero)
    }
}
