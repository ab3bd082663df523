// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import CurlewEngine
import CurlewTesting
import FoundationEssentials
import Glibc
import Testing

@testable import Curlew

/// Safety of files: downloads never mix two resources, discard a part file without need or touch foreign files.
@Suite(.timeLimit(.minutes(5)))
struct DownloadSafetyTests {
    private let session = Session { $0.retry = RetryPolicy(limit: 3, backoff: .none) }
    private let folder: Folder

    init() throws { folder = try Folder() }

    private func broken(
        _ server: ResourceServer, after count: Int, expecting digest: Checksum? = nil
    ) async throws -> NetworkError {
        server.state.withLock { $0.cuts = [count] }
        var request = Request(server.url)
        request.options.retry = RetryPolicy.never
        return try #require(
            await failure { () async throws(NetworkError) in
                try await session.download(request, to: .file(folder("a")), expecting: digest)
            })
    }

    private var isWhole: Bool { folder.bytes("a") == PatternBody.usual.bytes && folder.names == ["a"] }

    // MARK: Two resources in one file

    @Test func resumeTokenDoesNotUsePartFileOfAnotherDownload() async throws {
        let server = try ResourceServer(RangeResource(.usual))
        let token = try #require(try await broken(server, after: 300_000).resumeToken)
        let other = try ResourceServer(RangeResource(PatternBody(seed: 4, length: 900_000)))
        _ = try await broken(other, after: 400_000)
        #expect(try await session.resume(from: token).value.resumedFrom == 0)
        #expect(isWhole && server.ranges == [nil, nil])
    }

    @Test func partFileIsFreeAfterItsTokenWasMade() async throws {
        var note = ResumeToken(
            url: "https://h.test/a", validator: .tag("\"1\""), offset: 3, total: 9, part: folder("a.part"),
            destination: folder("a"), overwrite: .fail, checksum: nil)
        note.bootID = DiskFile.bootID
        folder.write("a.part", [1, 2, 3])
        folder.write("a.part.json", Array(try JSONEncoder().encode(note)))
        let (path, url) = (folder("a.part"), note.url)
        @Sendable func part() async throws(DiskFailure) -> PartialDownload {
            try await PartialDownload(at: path, of: url, expected: nil, options: DownloadOptions(), didWrite: { _ in })
        }
        var first = try await part()
        let busy = await #expect(throws: DiskFailure.self) { _ = try await part() }
        #expect(busy?.errno == EWOULDBLOCK)
        let token = await first.token()
        let second = try await part()
        #expect(token?.offset == 3 && second.stored == 3)
        withExtendedLifetime(first) {}
    }

    @Test func partFileThatGrewByOtherBytesIsNotResumed() async throws {
        let server = try ResourceServer(RangeResource(.usual))
        let digest = Checksum.sha256(PatternBody.usual.sha256)
        let token = try #require(try await broken(server, after: 300_000, expecting: digest).resumeToken)
        folder.write("a.part", [UInt8](repeating: 0, count: 400_000))
        #expect(try await session.resume(from: token).value.resumedFrom == 0)
        #expect(isWhole)
    }

    @Test func noteIsInvalidatedWhenThePartFileIsReused() async throws {
        let gate = Gate()
        let server = try ResourceServer(RangeResource(.usual))
        _ = try await broken(server, after: 300_000)
        let other = try MockServer { _ in .pattern(.usual).fault(.stall(gate), at: .body(500_000)) }
        let transfer = session.downloadTransfer(Request(other.url("/")), to: .file(folder("a"))).start()
        for await progress in transfer.progress where progress.received >= 500_000 { break }
        let note = try #require(folder.bytes("a.part.json"))
        #expect((try? JSONDecoder().decode(ResumeToken.self, from: Data(note))) == nil)
        gate.open()
        _ = try await transfer.value
        #expect(isWhole)
    }

    @Test func partFileWithSeveralHardLinksIsNotWritten() throws {
        folder.write("a", [1, 2, 3])
        #expect(link(folder("a"), folder("a.part")) == 0)
        let error = #expect(throws: DiskFailure.self) { try PartialFile.open(folder("a.part")) }
        #expect(error?.errno == EEXIST && folder.names == ["a", "a.part"])
        // With a note, the file was a part file that got its final name by a hard link.
        folder.write("a.part.json", [])
        let part = try PartialFile.open(folder("a.part"))
        #expect(try part.size() == 0)
        #expect(folder.bytes("a") == [1, 2, 3])
    }

    /// The download is cancelled in the queue; the file with the name of its part file is foreign.
    @Test func cancelInTheQueueKeepsForeignPartFile() async throws {
        folder.write("a.part", [1, 2, 3])
        var options = DownloadOptions()
        options.queue = DownloadOptions.Queue(atMost: 1)
        let gate = Gate()
        let server = try MockServer { RangeResource(.usual).response(to: $0).fault(.stall(gate), at: .start) }
        let held = session.downloadTransfer(Request(server.url("/")), to: .file(folder("held")), options: options)
            .start()
        #expect(await gate.waitUntilReached())
        let transfer = session.downloadTransfer(Request(server.url("/")), to: .file(folder("a")), options: options)
            .start()
        while options.queue?.waiting == 0, !Task.isCancelled { await Task.yield() }
        await transfer.cancel(producingResumeToken: false)
        #expect(folder.bytes("a.part") == [1, 2, 3])
        gate.open()
        _ = try await held.value
    }

    @Test func replacedPartFileDoesNotGetTheFinalName() async throws {
        let gate = Gate()
        let server = try MockServer {
            RangeResource(.usual).response(to: $0).fault(.stall(gate), at: .body(1_000_000))
        }
        let transfer = session.downloadTransfer(Request(server.url("/")), to: .file(folder("a"))).start()
        for await progress in transfer.progress where progress.received >= 1_000_000 { break }
        gate.open()
        // The number of bytes written so far does not matter.
        #expect(unlink(folder("a.part")) == 0)
        folder.write("a.part", [])
        let error = await failure { () async throws(NetworkError) in try await transfer.value }
        #expect(error?.kind == .destinationFailed && !folder.names.contains("a"))
    }

    /// The connection breaks after the response head and before the first byte of the body.
    @Test func connectionLostBeforeTheFirstByteIsRetried() async throws {
        let server = try ResourceServer(RangeResource(.usual), cuts: [0, 0])
        #expect(try await session.download(Request(server.url), to: .file(folder("a"))).bytes == 1_234_567)
        #expect(isWhole && server.ranges == [nil, nil, nil])
    }

    /// The total timeout ends during a pause that has closed the connection.
    @Test func totalTimeoutDuringPauseLeavesResumeToken() async throws {
        let gate = Gate()
        let server = try MockServer {
            RangeResource(.usual).response(to: $0).fault(.stall(gate), at: .body(500_000))
        }
        var request = Request(server.url("/"))
        request.options.timeouts = Timeouts(total: .seconds(2))
        var options = DownloadOptions()
        options.pauseGrace = .zero
        let transfer = session.downloadTransfer(request, to: .file(folder("a")), options: options).start()
        for await progress in transfer.progress where progress.received >= 500_000 { break }
        transfer.pause()
        let error = await failure { () async throws(NetworkError) in try await transfer.value }
        #expect(error?.kind == .timedOut && error?.resumeToken?.offset == 500_000)
        gate.open()
    }

    // MARK: Lengths

    /// The first response has no length, and each later response has only a part of the missing bytes.
    @Test func responseOfUnknownLengthIsResumedToItsEnd() async throws {
        let resource = RangeResource(.usual, flaws: [.sendsHalf])
        let server = try MockServer { request in
            let answer = resource.response(to: request)
            return request.field("Range") == nil ? answer.chunked().fault(.reset, at: .body(200_000)) : answer
        }
        let file = try await session.download(Request(server.url("/")), to: .file(folder("a")))
        #expect(isWhole && file.bytes == 1_234_567 && server.requests.count > 5)
    }

    @Test func contentRangeOfUnknownLengthIsFollowedToItsEnd() async throws {
        let server = try MockServer { request in
            let resource = RangeResource(.usual)
            guard let range = request.field("Range"), let start = Int(range.dropFirst(6).dropLast()) else {
                return resource.response(to: request).chunked().fault(.reset, at: .body(200_000))
            }
            if start >= 1_234_567 { return resource.response(to: request) }
            let end = min(start + 400_000, 1_234_567)
            return .pattern(PatternBody.usual[start..<end], status: 206).field("ETag", "\"1\"")
                .field("Content-Range", "bytes \(start)-\(end - 1)/*")
        }
        _ = try await session.download(Request(server.url("/")), to: .file(folder("a")))
        #expect(isWhole)
    }

    @Test(arguments: ["bytes 200000-1234566/1234567", "bytes 200000-299999/1234567"])
    func rangeResponseLongerThanAnnouncedIsInvalid(_ range: String) async throws {
        let server = try MockServer { request in
            guard request.field("Range") != nil else {
                return RangeResource(.usual).response(to: request).fault(.reset, at: .body(200_000))
            }
            return .pattern(.usual, status: 206).field("ETag", "\"1\"").field("Content-Range", range).chunked()
        }
        let error = await failure { () async throws(NetworkError) in
            try await session.download(Request(server.url("/")), to: .file(folder("a")))
        }
        #expect(error?.kind == .invalidResponse)
        #expect(!folder.names.contains("a"))
    }

    // MARK: Kept part files

    @Test func unacceptableContentTypeKeepsPartFile() async throws {
        let server = try ResourceServer(RangeResource(.usual))
        _ = try await broken(server, after: 300_000)
        server.state.withLock { $0.isPortal = true }
        var request = Request(server.url)
        request.options.accepting = ["application/octet-stream"]
        let error = await failure { () async throws(NetworkError) in
            try await session.download(request, to: .file(folder("a")))
        }
        #expect(error?.kind == .unacceptableContentType)
        #expect(error?.resumeToken?.offset == 300_000)
        server.state.withLock { $0.isPortal = false }
        let file = try await session.download(Request(server.url), to: .file(folder("a")))
        #expect(isWhole && file.resumedFrom == 300_000)
    }

    @Test func status204MakesNoFileUnlessAccepted() async throws {
        let server = try MockServer { _ in .status(204) }
        let error = await failure { () async throws(NetworkError) in
            try await session.download(Request(server.url("/")), to: .file(folder("a")))
        }
        #expect(error?.kind == .unacceptableStatus && folder.names == [])
        var request = Request(server.url("/"))
        request.options.statuses = [204]
        #expect(try await session.download(request, to: .file(folder("a"))).bytes == 0)
    }

    @Test func acceptedErrorStatusIsSaved() async throws {
        let server = try MockServer { _ in .bytes([7, 8], status: 404) }
        var request = Request(server.url("/"))
        request.options.statuses = [404]
        #expect(try await session.download(request, to: .file(folder("a"))).bytes == 2)
    }

    @Test func failedDownloadKeepsPartFileOfAnotherURL() async throws {
        let server = try ResourceServer(RangeResource(.usual))
        _ = try await broken(server, after: 300_000)
        let missing = try MockServer { _ in .status(404) }
        _ = await failure { () async throws(NetworkError) in
            try await session.download(Request(missing.url("/")), to: .file(folder("a")))
        }
        let file = try await session.download(Request(server.url), to: .file(folder("a")))
        #expect(isWhole && file.resumedFrom == 300_000)
    }

    @Test func partFileWithoutNoteIsForeignAndKept() async throws {
        folder.write("a.part", [1, 2, 3])
        let server = try ResourceServer(RangeResource(.usual))
        let error = await failure { () async throws(NetworkError) in
            try await session.download(Request(server.url), to: .file(folder("a")))
        }
        #expect((error?.cause as? DownloadDestination.Failure)?.reason == .foreignPart)
        #expect(folder.bytes("a.part") == [1, 2, 3] && server.ranges == [])
    }

    @Test func fifoWithNoteNameFailsWithoutBlocking() async throws {
        let server = try ResourceServer(RangeResource(.usual))
        _ = try await broken(server, after: 300_000)
        try FileManager.default.removeItem(atPath: folder("a.part.json"))
        #expect(mkfifo(folder("a.part.json"), 0o600) == 0)
        let error = await failure { () async throws(NetworkError) in
            try await session.download(Request(server.url), to: .file(folder("a")))
        }
        #expect(error?.kind == .destinationFailed)
    }

    @Test func cancelInTheQueueRemovesItsOwnPartFile() async throws {
        let server = try ResourceServer(RangeResource(.usual))
        _ = try await broken(server, after: 300_000)
        let gate = Gate()
        let holding = try MockServer { _ in .pattern(.usual).fault(.stall(gate), at: .body(100)) }
        var options = DownloadOptions()
        options.queue = DownloadOptions.Queue(atMost: 1)
        let held = session.downloadTransfer(Request(holding.url("/")), to: .file(folder("b")), options: options).start()
        #expect(await gate.waitUntilReached())
        let waiting = session.downloadTransfer(Request(server.url), to: .file(folder("a")), options: options).start()
        while options.queue?.waiting == 0, !Task.isCancelled { await Task.yield() }
        await waiting.cancel(producingResumeToken: false)
        #expect(!folder.names.contains { $0.hasPrefix("a") })
        gate.open()
        _ = try await held.value
    }

    // MARK: Requests and results

    @Test func resumedDownloadIsRetriedUpToThePolicyLimit() async throws {
        let server = try ResourceServer(RangeResource(.usual))
        _ = try await broken(server, after: 300_000)
        server.state.withLock { $0.isDown = true }
        let error = await failure { () async throws(NetworkError) in
            try await session.download(Request(server.url), to: .file(folder("a")))
        }
        #expect(error?.kind == .unacceptableStatus && error?.resumeToken?.offset == 300_000)
        // One request of the first download, and one with three retries.
        #expect(server.ranges.count == 5)
    }

    @Test func repeatedRestartsEndWithTheRetryLimit() async throws {
        let cuts = Lock(0)
        let server = try MockServer { _ in
            let number = cuts.withLock { count in
                count += 1
                return count
            }
            let long = PatternBody(seed: 1, length: 9 << 20)
            return .pattern(long).field("ETag", "\"\(number)\"")
                .fault(.reset, at: .body(number % 2 == 0 ? 8 << 20 : 5 << 20))
        }
        let error = await failure { () async throws(NetworkError) in
            try await session.download(Request(server.url("/")), to: .file(folder("a")))
        }
        #expect(error?.kind == .connectionLost && server.requestCount < 12)
    }

    @Test func rangeFieldOfTheCallerIsRefused() async throws {
        let server = try ResourceServer(RangeResource(.usual))
        let request = Request(server.url, fields: ["Range": "bytes=1-2"])
        let error = await failure { () async throws(NetworkError) in
            try await session.download(request, to: .file(folder("a")))
        }
        #expect(error?.kind == .invalidRequest && server.ranges == [])
    }

    @Test func readerThatStopsDoesNotEndTheDownload() async throws {
        let server = try ResourceServer(RangeResource(.usual))
        let transfer = session.downloadTransfer(Request(server.url), to: .file(folder("a")))
        for try await _ in transfer.bytes { break }
        #expect(try await transfer.value.bytes == 1_234_567)
        #expect(isWhole && server.ranges == [nil])
    }

    @Test func transferRateCountsOnlyReceivedBytes() async throws {
        let server = try ResourceServer(RangeResource(.usual))
        let token = try #require(try await broken(server, after: 300_000).resumeToken)
        let transfer = session.resume(from: token)
        _ = try await transfer.value
        #expect(transfer.run.download?.transferred == 934_567)
        #expect(transfer.run.download?.progress.received == 1_234_567)
    }

    @Test func sessionDownloadDestinationIsTheDefault() async throws {
        let server = try ResourceServer(RangeResource(.usual))
        let session = Session(downloads: .directory(folder.path))
        #expect(try await session.download(Request(server.url)).path == folder("big.bin"))
        #expect(try await session.copy().download(Request(server.url), to: .file(folder("a"))).path == folder("a"))
        let error = await failure { () async throws(NetworkError) in
            try await self.session.download(Request(server.url))
        }
        #expect(error?.kind == .invalidRequest)
    }
}
