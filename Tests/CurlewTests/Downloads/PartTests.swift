// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import CurlewEngine
import CurlewTesting
import FoundationEssentials
import Testing

@testable import Curlew

/// How many bytes of a part file a download trusts, and the contents of its note.
@Suite(.timeLimit(.minutes(5)))
struct PartTests {
    private let session = Session()
    private let folder: Folder
    private let body = PatternBody(seed: 31, length: 1_000_000)

    init() throws { folder = try Folder() }

    /// The token of a download of the body that stopped after so many bytes.
    private func token(of count: Int64, at url: String) -> ResumeToken {
        var token = ResumeToken(
            url: url, validator: .tag("\"1\""), offset: count, total: Int64(body.length), part: folder("a.part"),
            destination: folder("a"), overwrite: .fail, checksum: nil)
        token.bootID = DiskFile.bootID
        return token
    }

    private func write(_ token: ResumeToken) throws {
        folder.write("a.part.json", [UInt8](try JSONEncoder().encode(token)))
    }

    private func note() throws -> ResumeToken {
        try JSONDecoder().decode(ResumeToken.self, from: Data(try #require(folder.bytes("a.part.json"))))
    }

    /// Leaves a part file of 300,000 bytes from before the last boot, of which 120,000 were synced and are intact.
    private func leaveUnsynced(of url: String) throws {
        var token = token(of: 300_000, at: url)
        token.bootID = "another"
        token.synced = 120_000
        folder.write("a.part", Array(body.bytes[..<120_000]) + [UInt8](repeating: 0, count: 180_000))
        try write(token)
    }

    /// The first attempt fails before the download has truncated the part file.
    @Test func failedAttemptDoesNotTrustUnsyncedBytes() async throws {
        let server = try ResourceServer(RangeResource(body))
        try leaveUnsynced(of: server.url)
        server.state.withLock { $0.isDown = true }
        var request = Request(server.url)
        request.options.retry = RetryPolicy.never
        let asked = request
        let error = await failure { () async throws(NetworkError) in
            try await session.download(asked, to: .file(folder("a")))
        }
        #expect(error?.kind == .unacceptableStatus && error?.resumeToken?.offset == 120_000)
        server.state.withLock { $0.isDown = false }
        let file = try await session.download(Request(server.url), to: .file(folder("a")))
        #expect(file.resumedFrom == 120_000 && folder.bytes("a") == body.bytes)
        #expect(server.ranges == ["bytes=120000-", "bytes=120000-"])
    }

    /// A crash of the process must not lose bytes received since the last boot.
    @Test func noteStoresBootIDAndSyncedBytes() async throws {
        let (gate, body) = (Gate(), body)
        let server = try MockServer { request in
            RangeResource(body).response(to: request).fault(.stall(gate), at: .body(50_000))
        }
        try leaveUnsynced(of: server.url("/"))
        let transfer = session.downloadTransfer(Request(server.url("/")), to: .file(folder("a"))).start()
        for await progress in transfer.progress where progress.received >= 170_000 { break }
        let note = try note()
        #expect(note.offset == 120_000 && note.bootID == DiskFile.bootID && note.synced == 120_000)
        gate.open()
        #expect(try await transfer.value.bytes == 1_000_000)
        #expect(folder.bytes("a") == body.bytes)
    }

    /// The part file has a gap that no connection has written yet, followed by a fetched piece.
    @Test func readerWaitsForTheFrontBeforeLaterPieces() async throws {
        let (gate, body) = (Gate(), body)
        let server = try MockServer { request in
            RangeResource(body).response(to: request).fault(.stall(gate), at: .body(1))
        }
        var token = token(of: 100_000, at: server.url("/"))
        token.pieces = [200_000..<1_000_000]
        var part = body.bytes
        for place in 100_000..<200_000 { part[place] = 0 }
        folder.write("a.part", part)
        try write(token)
        let transfer = session.downloadTransfer(Request(server.url("/")), to: .file(folder("a")))
        var read: [UInt8] = []
        for try await chunk in transfer.bytes {
            read += chunk
            if read.count >= 100_000 { gate.open() }
        }
        #expect(read == body.bytes && folder.bytes("a") == body.bytes)
    }

    @Test func readingTruncatedFileThrowsContentChanged() async throws {
        let server = try ResourceServer(RangeResource(body))
        let transfer = session.downloadTransfer(Request(server.url), to: .file(folder("a")))
        _ = try await transfer.value
        folder.write("a", Array(body.bytes[..<1000]))
        do {
            for try await _ in transfer.bytes {}
            Issue.record("the truncated file was read to its end")
        } catch {
            #expect(error.kind == .contentChanged)
        }
    }

    private func open(_ url: String) async throws(DiskFailure) -> PartialDownload {
        try await PartialDownload(
            at: folder("a.part"), of: url, expected: nil, options: DownloadOptions(), didWrite: { _ in })
    }

    /// A download reads a long part file again for its digest; cancellation stops that.
    @Test func cancelledTaskStopsRehashingOfPartFile() async throws {
        var token = token(of: 600_000, at: "http://example.com/")
        token.digest = Checksum(.sha256, digest: MessageDigest.digest(.sha256, of: body.bytes[..<600_000]) ?? [])
        folder.write("a.part", Array(body.bytes[..<600_000]))
        try write(token)
        let reading = Task { () -> ResumeToken? in
            withUnsafeCurrentTask { $0?.cancel() }
            var part = try await open("http://example.com/")
            do throws(DiskFailure) {
                try await part.keepDigest(.sha256)
                Issue.record("keepDigest ignored the cancellation")
            } catch {
                #expect(error.errno == DiskFailure.cancelled)
            }
            return await part.token()
        }
        // The token and the stored bytes are the same as before.
        #expect(try await reading.value == token)
        #expect(try await open("http://example.com/").stored == 600_000)
    }

    /// The digest in the token covers as many bytes as its offset says.
    @Test func cancelledTaskStopsHashingOfPieces() async throws {
        var token = token(of: 100_000, at: "http://example.com/")
        token.pieces = [100_000..<600_000]
        folder.write("a.part", Array(body.bytes[..<600_000]))
        try write(token)
        let reading = Task { () -> ResumeToken? in
            var part = try await open("http://example.com/")
            try await part.keepDigest(.sha256)
            withUnsafeCurrentTask { $0?.cancel() }
            do throws(DiskFailure) {
                try await part.skip(to: 600_000)
                Issue.record("skip ignored the cancellation")
            } catch {
                #expect(error.errno == DiskFailure.cancelled)
            }
            return await part.token()
        }
        let left = try #require(try await reading.value)
        #expect(left.offset == 100_000 && left.pieces == [100_000..<600_000])
        let digest = MessageDigest.digest(.sha256, of: body.bytes[..<100_000]) ?? []
        #expect(left.digest == Checksum(.sha256, digest: digest))
    }

    /// Other connections have fetched 64 MiB, after which the download syncs.
    @Test func piecesOfOtherConnectionsAreSynced() async throws {
        var part = try await open("http://example.com/")
        var token = token(of: 0, at: "http://example.com/")
        token.total = 1 << 40
        try await part.begin(token, of: "http://example.com/", total: nil)
        try await part.recordChunks([])
        try await part.recordChunks([1 << 30..<(1 << 30) + (63 << 20)])
        #expect(try note().syncedPieces == nil)
        let pieces: [Range<Int64>] = [1 << 30..<(1 << 30) + (64 << 20)]
        try await part.recordChunks(pieces)
        #expect(try note().syncedPieces == pieces && note().pieces == pieces)
    }

    // MARK: Several connections

    private let long = PatternBody(seed: 21, length: 3_000_000)

    private func several(_ url: String, _ count: Int) -> Transfer<DownloadedFile> {
        var options = DownloadOptions()
        options.segments = count
        options.minimumChunk = 100_000
        return session.downloadTransfer(Request(url), to: .file(folder("a")), options: options)
    }

    private func received(_ count: Int64, of transfer: Transfer<DownloadedFile>) async {
        for await progress in transfer.progress where progress.received >= count { break }
    }

    /// The connection at the front is closed where the pieces of the others begin.
    @Test func segmentedDownloadReportsOneSuccess() async throws {
        let (gate, long) = (Gate(), long)
        let server = try MockServer { request in
            let answer = RangeResource(long).response(to: request)
            return request.field("Range") == nil ? answer.fault(.stall(gate), at: .body(300_000)) : answer
        }
        let transfer = several(server.url("/"), 4)
        let events = transfer.events
        transfer.start()
        await received(2_900_000, of: transfer)
        gate.open()
        #expect(try await transfer.value.bytes == 3_000_000)
        var ends: [NetworkError.Kind?] = []
        for await event in events { if case .finished(let error) = event.kind { ends.append(error?.kind) } }
        #expect(ends == [nil])
    }

    /// The connection at the front waits for a piece while other connections finish theirs.
    @Test func noteListsPiecesOfOtherConnections() async throws {
        let (gate, last, other, long) = (Gate(), Gate(), Gate(), long)
        let server = try MockServer { request in
            let answer = RangeResource(long).response(to: request)
            guard let range = request.field("Range") else { return answer.fault(.stall(gate), at: .body(300_000)) }
            return answer.fault(.stall(range.hasSuffix("-2999999") ? last : other), at: .body(1000))
        }
        let transfer = several(server.url("/"), 3).start()
        await received(302_000, of: transfer)
        gate.open()
        // All but the two pieces that the other connections have begun.
        await received(2_752_000, of: transfer)
        last.open()
        while try note().pieces?.last != 2_875_000..<3_000_000, !Task.isCancelled { await Task.yield() }
        #expect(try note().pieces?.last == 2_875_000..<3_000_000)
        other.open()
        #expect(try await transfer.value.bytes == 3_000_000)
        #expect(folder.bytes("a") == long.bytes)
    }
}
