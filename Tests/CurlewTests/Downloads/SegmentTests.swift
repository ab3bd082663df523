// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import CurlewEngine
import CurlewTesting
import FoundationEssentials
import Glibc
import Testing

@testable import Curlew

/// One file over several connections.
@Suite(.timeLimit(.minutes(5)))
struct SegmentTests {
    private let session = Session { $0.retry = RetryPolicy(limit: 3, backoff: .none, budget: nil) }
    private let folder: Folder
    private let body = PatternBody(seed: 21, length: 3_000_000)
    private let gate = Gate()

    init() throws { folder = try Folder() }

    private func options(_ count: Int = 4) -> DownloadOptions {
        var options = DownloadOptions()
        options.segments = count
        options.minimumChunk = 100_000
        return options
    }

    /// A server that stalls responses from the front after 300,000 bytes until the gate opens.
    ///
    /// Other connections fetch pieces in the meantime.
    private func server(
        tag: String? = "\"1\"", _ change: @escaping @Sendable (RecordedRequest, MockResponse) -> MockResponse = { $1 }
    ) throws -> MockServer {
        let (body, gate) = (body, gate)
        return try MockServer { request in
            let answer = RangeResource(body, tag: tag).response(to: request)
            let isFront = request.field("Range") == nil || request.field("Range")?.hasSuffix("-") == true
            return change(request, isFront ? answer.fault(.stall(gate), at: .body(300_000)) : answer)
        }
    }

    private func ranges(_ server: MockServer) -> [Range<Int>] {
        server.requests.compactMap { $0.field("Range") }.compactMap { field in
            let ends = field.dropFirst(6).split(separator: "-").compactMap { Int($0) }
            return ends.count == 2 ? ends[0]..<ends[1] + 1 : nil
        }
    }

    /// Waits until the transfer has received so many bytes.
    private func received<Output>(_ count: Int64, of transfer: Transfer<Output>) async {
        for await progress in transfer.progress where progress.received >= count { break }
    }

    private func isWhole(_ file: DownloadedFile) -> Bool {
        file.bytes == 3_000_000 && folder.bytes("a") == body.bytes && folder.names == ["a"]
    }

    @Test func severalConnectionsFetchOneFile() async throws {
        let server = try server()
        let transfer = session.downloadTransfer(
            Request(server.url("/")), to: .file(folder("a")), expecting: .sha256(body.sha256), options: options()
        ).start()
        // The front stalls at 300,000; the other connections fetch all but the bytes right after it.
        await received(2_900_000, of: transfer)
        gate.open()
        let file = try await transfer.value
        #expect(isWhole(file) && file.checksum == .sha256(body.sha256))
        let ranges = ranges(server).sorted { $0.lowerBound < $1.lowerBound }
        #expect(ranges.count > 10 && ranges.last?.upperBound == 3_000_000)
        #expect(zip(ranges, ranges.dropFirst()).allSatisfy { $0.upperBound == $1.lowerBound })
        #expect(server.requests.dropFirst().allSatisfy { $0.field("If-Range") == "\"1\"" })
        #expect(server.connectionCount > 1 && server.connectionCount <= 5)
        #expect(transfer.currentProgress.received == 3_000_000)
    }

    @Test func smallFileUsesOneConnection() async throws {
        let small = PatternBody(seed: 2, length: 150_000)
        let server = try MockServer { RangeResource(small).response(to: $0) }
        let file = try await session.download(Request(server.url("/")), to: .file(folder("a")), options: options())
        #expect(file.bytes == 150_000 && server.requestCount == 1)
    }

    @Test(arguments: [nil, "W/\"1\""])
    func oneConnectionIsUsedWithoutStrongValidator(_ tag: String?) async throws {
        gate.open()
        let server = try server(tag: tag)
        #expect(
            isWhole(try await session.download(Request(server.url("/")), to: .file(folder("a")), options: options())))
        #expect(server.requestCount == 1)
    }

    @Test func oneConnectionIsUsedWithBandwidthLimitOfTheRequest() async throws {
        gate.open()
        let server = try server()
        var request = Request(server.url("/"))
        request.options.bandwidth = Request.BandwidthLimit(download: .mebibytes(1000))
        #expect(isWhole(try await session.download(request, to: .file(folder("a")), options: options())))
        #expect(server.requestCount == 1)
    }

    @Test(arguments: [RangeResource.Flaw.ignoresRanges, .wrongStart, .wrongTotal, .refusesRanges, .noContentRange])
    func serverWithFlawedRangesIsReadFromTheFront(_ flaw: RangeResource.Flaw) async throws {
        let body = body
        let server = try MockServer { RangeResource(body, flaws: [flaw]).response(to: $0) }
        let file = try await session.download(
            Request(server.url("/")), to: .file(folder("a")), expecting: .sha256(body.sha256), options: options())
        #expect(isWhole(file))
    }

    @Test func refusedRangesDoNotFailTheDownload() async throws {
        let server = try server { request, answer in
            // The server accepts only ranges at the very end.
            let start = request.field("Range").flatMap { Int($0.dropFirst(6).prefix { $0 != "-" }) }
            return start.map { $0 < 2_800_000 } == true ? .status(503) : answer
        }
        let session = Session()
        let transfer = session.downloadTransfer(Request(server.url("/")), to: .file(folder("a")), options: options())
            .start()
        await received(400_000, of: transfer)
        gate.open()
        #expect(isWhole(try await transfer.value))
    }

    /// The front keeps its response and reads past pieces that other connections requested without a response yet.
    @Test func lateRefusalOfAPieceDoesNotRestartTheFront() async throws {
        let (body, gate, late) = (body, gate, Gate())
        let server = try MockServer { request in
            let answer = RangeResource(body).response(to: request)
            return request.field("Range") == nil
                ? answer.fault(.stall(gate), at: .body(300_000))
                : MockResponse.status(503).fault(.stall(late), at: .start)
        }
        let transfer = Session().downloadTransfer(Request(server.url("/")), to: .file(folder("a")), options: options())
            .start()
        #expect(await late.waitUntilReached())
        gate.open()
        for await progress in transfer.progress where progress.received == 3_000_000 { break }
        late.open()
        #expect(isWhole(try await transfer.value))
        #expect(server.requests.filter { $0.field("Range") == nil }.count == 1)
    }

    /// The front must not read bytes that other connections have: in this test its response has wrong bytes there.
    @Test func frontStopsWhereFetchedPiecesBegin() async throws {
        let (body, gate) = (body, gate)
        let server = try MockServer { request in
            guard request.field("Range") == nil else { return RangeResource(body).response(to: request) }
            let wrong = [UInt8](repeating: 0, count: body.length - 450_000)
            return MockResponse.bytes(Array(body.bytes[..<450_000]) + wrong).field("ETag", "\"1\"")
                .field("Accept-Ranges", "bytes").fault(.stall(gate), at: .body(300_000))
        }
        let transfer = session.downloadTransfer(Request(server.url("/")), to: .file(folder("a")), options: options())
            .start()
        await received(2_900_000, of: transfer)
        gate.open()
        #expect(isWhole(try await transfer.value))
    }

    /// The server sends a range eight bytes before the requested one, with a matching `Content-Range`.
    @Test func responseWithAnotherRangeIsNoPiece() async throws {
        let (body, gate) = (body, gate)
        let (answered, all) = (Lock(0), Gate())
        let server = try MockServer { request in
            guard let range = request.field("Range") else {
                return RangeResource(body).response(to: request).fault(.stall(gate), at: .body(300_000))
            }
            let count = answered.withLock { count in
                count += 1
                return count
            }
            if count == 3 { all.open() }
            let ends = range.dropFirst(6).split(separator: "-").compactMap { Int($0) }
            let given = (ends[0] - 8)...(ends[1] - 8)
            return MockResponse.pattern(body[given.lowerBound..<given.upperBound + 1], status: 206)
                .field("ETag", "\"1\"").field("Content-Range", "bytes \(given.lowerBound)-\(given.upperBound)/3000000")
        }
        let transfer = session.downloadTransfer(Request(server.url("/")), to: .file(folder("a")), options: options())
            .start()
        await all.wait()
        gate.open()
        #expect(isWhole(try await transfer.value))
    }

    @Test(arguments: UInt64(0)..<8)
    func randomResetsDoNotCorruptTheFile(_ seed: UInt64) async throws {
        let (body, drops) = (body, Lock(SeededChance(seed)))
        let server = try MockServer { request in
            let answer = RangeResource(body).response(to: request)
            let chance = drops.withLock { $0.next() }
            return chance % 3 == 0 ? answer.fault(.reset, at: .body(Int(chance >> 32) % 150_000)) : answer
        }
        let session = Session { $0.retry = RetryPolicy(limit: 100, backoff: .none, budget: nil) }
        let file = try await session.download(
            Request(server.url("/")), to: .file(folder("a")), expecting: .sha256(body.sha256), options: options())
        #expect(isWhole(file))
    }

    @Test(arguments: [false, true])
    func changedResourceIsNotMixedIn(_ fails: Bool) async throws {
        let (body, gate) = (body, gate)
        let next = PatternBody(seed: 99, length: 3_000_000)
        let isNext = Lock(false)
        let server = try MockServer { request in
            if isNext.withLock({ $0 }) { return RangeResource(next, tag: "\"2\"").response(to: request) }
            let answer = RangeResource(body).response(to: request)
            return request.field("Range") == nil
                ? answer.fault(.stall(gate), at: .body(300_000)).fault(.reset, at: .body(300_000)) : answer
        }
        var options = options()
        options.failsWhenChanged = fails
        let transfer = session.downloadTransfer(Request(server.url("/")), to: .file(folder("a")), options: options)
            .start()
        await received(1_000_000, of: transfer)
        isNext.withLock { $0 = true }
        gate.open()
        if fails {
            let error = await failure { () async throws(NetworkError) in try await transfer.value }
            #expect(error?.kind == .contentChanged)
        } else {
            #expect(try await transfer.value.bytes == 3_000_000)
            #expect(folder.bytes("a") == next.bytes)
        }
    }

    /// The download is cancelled in the middle and resumed with so many connections.
    @Test(arguments: [1, 4])
    func resumeRequestsOnlyMissingPieces(_ count: Int) async throws {
        let server = try server()
        let transfer = session.downloadTransfer(
            Request(server.url("/")), to: .file(folder("a")), expecting: .sha256(body.sha256), options: options()
        ).start()
        await received(1_500_000, of: transfer)
        let token = try #require(await transfer.cancel(producingResumeToken: true))
        let pieces = try #require(token.pieces)
        #expect(token.offset <= 300_000 && pieces.reduce(0) { $0 + $1.count } >= 1_000_000)
        gate.open()
        let asked = server.requestCount
        let file = try await session.resume(from: token, request: Request(server.url("/")), options: options(count))
            .value
        #expect(isWhole(file) && file.resumedFrom == token.offset)
        let again = server.requests.dropFirst(asked).compactMap { $0.field("Range") }
        #expect(!again.isEmpty)
        for field in again {
            let ends = field.dropFirst(6).split(separator: "-").compactMap { Int64($0) }
            #expect(!pieces.contains { $0.contains(ends[0]) }, "\(field) of \(pieces)")
        }
    }

    /// The download requests all bytes again that were not synced before the last boot.
    @Test func onlySyncedPiecesAreUsedAfterReboot() async throws {
        let server = try server()
        let transfer = session.downloadTransfer(Request(server.url("/")), to: .file(folder("a")), options: options())
            .start()
        await received(1_500_000, of: transfer)
        var token = try #require(await transfer.cancel(producingResumeToken: true))
        gate.open()
        let last = try #require(token.pieces?.last)
        token.bootID = "another"
        token.synced = token.offset
        token.syncedPieces = [last.lowerBound + 50_000..<last.upperBound]
        // The bytes that were not synced are zeros now.
        var bytes = try #require(folder.bytes("a.part"))
        for place in Int(token.offset)..<Int(last.lowerBound + 50_000) { bytes[place] = 0 }
        folder.write("a.part", bytes)
        folder.write("a.part.json", [UInt8](try JSONEncoder().encode(token)))
        let file = try await session.download(Request(server.url("/")), to: .file(folder("a")), options: options())
        #expect(isWhole(file))
    }

    /// Bytes beyond the announced range must not leave a gap.
    @Test func bytesBeyondTheAnnouncedRangeAreNotCounted() async throws {
        let (body, gate, flawed) = (body, gate, Lock(3))
        let server = try MockServer { request in
            let answer = RangeResource(body).response(to: request)
            guard let range = request.field("Range") else {
                return answer.fault(.stall(gate), at: .body(300_000)).fault(.reset, at: .body(300_000))
            }
            guard range.hasSuffix("-"), let start = Int(range.dropFirst(6).dropLast()),
                flawed.withLock({ left in
                    left -= 1
                    return left >= 0
                })
            else { return answer }
            // The response announces a thousand bytes and sends more, without a length.
            return MockResponse.pattern(body[start..<body.length], status: 206).chunked()
                .field("ETag", "\"1\"").field("Content-Range", "bytes \(start)-\(start + 999)/\(body.length)")
        }
        let session = Session { $0.retry = RetryPolicy(limit: 10, backoff: .none, budget: nil) }
        let transfer = session.downloadTransfer(Request(server.url("/")), to: .file(folder("a")), options: options())
            .start()
        await received(1_000_000, of: transfer)
        gate.open()
        #expect(isWhole(try await transfer.value))
        #expect(flawed.withLock { $0 } < 3)
    }

    /// The front received no bytes, the other connections many.
    ///
    /// An expected checksum makes no difference: the digest of zero bytes must not reject the part file.
    @Test(arguments: [false, true])
    func piecesAreKeptWithoutBytesOfTheFront(_ isChecked: Bool) async throws {
        let (body, gate) = (body, gate)
        let server = try MockServer { request in
            let answer = RangeResource(body).response(to: request)
            return request.field("Range") == nil ? answer.fault(.stall(gate), at: .body(0)) : answer
        }
        let transfer = session.downloadTransfer(
            Request(server.url("/")), to: .file(folder("a")),
            expecting: isChecked ? .sha256(body.sha256) : nil, options: options()
        ).start()
        await received(1_500_000, of: transfer)
        let token = try #require(await transfer.cancel(producingResumeToken: true))
        #expect(token.offset == 0 && token.pieces?.isEmpty == false)
        gate.open()
        let asked = server.requestCount
        #expect(isWhole(try await session.resume(from: token, options: options()).value))
        for start in server.requests.dropFirst(asked).compactMap({ $0.field("Range") }).compactMap({
            Int64($0.dropFirst(6).prefix { $0 != "-" })
        }) {
            #expect(token.pieces?.contains { $0.contains(start) } == false)
        }
    }

    /// Another program has truncated the part file, so that pieces listed in the token are missing.
    @Test func piecesLostByTruncationAreRequestedAgain() async throws {
        let server = try server()
        let transfer = session.downloadTransfer(Request(server.url("/")), to: .file(folder("a")), options: options())
            .start()
        await received(1_500_000, of: transfer)
        let token = try #require(await transfer.cancel(producingResumeToken: true))
        #expect(truncate(folder("a.part"), off_t(token.offset + 200_000)) == 0)
        gate.open()
        #expect(isWhole(try await session.resume(from: token, options: options()).value))
    }

    /// The note must follow the front, since a crash loses all that the note does not list.
    @Test func noteFollowsTheFront() async throws {
        let (body, gate) = (PatternBody(seed: 3, length: 24 << 20), gate)
        let server = try MockServer { request in
            let answer = RangeResource(body).response(to: request)
            // The server refuses all pieces, so that only the front causes a new note.
            return request.field("Range") == nil ? answer.fault(.stall(gate), at: .body(20 << 20)) : .status(403)
        }
        let transfer = session.downloadTransfer(Request(server.url("/")), to: .file(folder("a")), options: options())
            .start()
        await received(20 << 20, of: transfer)
        let note = try JSONDecoder().decode(ResumeToken.self, from: Data(try #require(folder.bytes("a.part.json"))))
        #expect(note.pieces == [] && note.offset >= 8 << 20)
        gate.open()
        #expect(try await transfer.value.bytes == 24 << 20)
    }

    @Test func wrongChecksumRemovesAllFiles() async throws {
        let body = body
        let server = try MockServer { RangeResource(body).response(to: $0) }
        let error = await failure { () async throws(NetworkError) in
            try await session.download(
                Request(server.url("/")), to: .file(folder("a")), expecting: .sha256(String(repeating: "0", count: 64)),
                options: options())
        }
        #expect(error?.kind == .checksumMismatch && folder.names == [])
    }

    @Test func longPauseClosesAllConnections() async throws {
        let (body, gate) = (body, gate)
        let server = try MockServer { request in
            RangeResource(body).response(to: request).fault(.stall(gate), at: .body(50_000))
        }
        var options = options()
        options.pauseGrace = .zero
        let transfer = session.downloadTransfer(Request(server.url("/")), to: .file(folder("a")), options: options)
            .start()
        await received(200_000, of: transfer)
        transfer.pause()
        #expect(await server.waitUntil(openConnections: 0))
        gate.open()
        transfer.resume()
        #expect(isWhole(try await transfer.value))
    }

    @Test func readerGetsAllBytesInOrder() async throws {
        let body = body
        let server = try MockServer { RangeResource(body).response(to: $0) }
        let transfer = session.downloadTransfer(Request(server.url("/")), to: .file(folder("a")), options: options())
        var bytes: [UInt8] = []
        for try await chunk in transfer.bytes { bytes += chunk }
        #expect(bytes == body.bytes)
    }
}
