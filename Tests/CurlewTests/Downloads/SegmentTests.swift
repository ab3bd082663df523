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
    private let session = Session { $0.retry = RetryPolicy(limit: 3, backOff: .none, budget: nil) }
    private let folder: Folder
    private let body = PatternBody(seed: 21, length: 3_000_000)
    private let gate = Gate()

    init() throws { folder = try Folder() }

    private func options(_ count: Int = 4) -> DownloadOptions {
        var options = DownloadOptions()
        options.segments = count
        options.smallestPiece = 100_000
        return options
    }

    /// A server whose whole stops half way until the gate opens, so that the others have something to do.
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

    /// Waits until so many bytes have come.
    private func received<Output>(_ count: Int64, of transfer: Transfer<Output>) async {
        for await progress in transfer.progress where progress.received >= count { break }
    }

    private func isWhole(_ file: DownloadedFile) -> Bool {
        file.bytes == 3_000_000 && folder.bytes("a") == body.bytes && folder.names == ["a"]
    }

    @Test func severalFetchOneFile() async throws {
        let server = try server()
        let transfer = session.transfer(
            Request(server.url("/")), to: .file(folder("a")), expecting: .sha256(body.sha256), saving: options()
        ).start()
        // The front stands at 300,000, and all but what is right in front of it comes from the others.
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

    @Test func aSmallFileComesOverOne() async throws {
        let small = PatternBody(seed: 2, length: 150_000)
        let server = try MockServer { RangeResource(small).response(to: $0) }
        let file = try await session.download(Request(server.url("/")), to: .file(folder("a")), saving: options())
        #expect(file.bytes == 150_000 && server.requestCount == 1)
    }

    @Test(arguments: [nil, "W/\"1\""])
    func withoutAStrongValidatorThereIsOne(_ tag: String?) async throws {
        gate.open()
        let server = try server(tag: tag)
        #expect(
            isWhole(try await session.download(Request(server.url("/")), to: .file(folder("a")), saving: options())))
        #expect(server.requestCount == 1)
    }

    @Test func aBandwidthOfItsOwnIsForOne() async throws {
        gate.open()
        let server = try server()
        var request = Request(server.url("/"))
        request.options.bandwidth = BandwidthLimit(download: .mebibytes(1000))
        #expect(isWhole(try await session.download(request, to: .file(folder("a")), saving: options())))
        #expect(server.requestCount == 1)
    }

    @Test(arguments: [RangeResource.Flaw.ignoresRanges, .wrongStart, .wrongTotal, .refusesRanges, .noContentRange])
    func aServerThatIsNoGoodAtRangesIsReadFromTheFront(_ flaw: RangeResource.Flaw) async throws {
        let body = body
        let server = try MockServer { RangeResource(body, flaws: [flaw]).response(to: $0) }
        let file = try await session.download(
            Request(server.url("/")), to: .file(folder("a")), expecting: .sha256(body.sha256), saving: options())
        #expect(isWhole(file))
    }

    @Test func aServerThatRefusesMoreIsLeftWithWhatItTakes() async throws {
        let server = try server { request, answer in
            // Of the ranges only those at the very end are given.
            let start = request.field("Range").flatMap { Int($0.dropFirst(6).prefix { $0 != "-" }) }
            return start.map { $0 < 2_800_000 } == true ? .status(503) : answer
        }
        let session = Session()
        let transfer = session.transfer(Request(server.url("/")), to: .file(folder("a")), saving: options()).start()
        await received(400_000, of: transfer)
        gate.open()
        #expect(isWhole(try await transfer.value))
    }

    /// The response that the front has is not left for pieces that others have only asked for.
    @Test func whoeverIsRefusedLateDoesNoHarm() async throws {
        let (body, gate, late) = (body, gate, Gate())
        let server = try MockServer { request in
            let answer = RangeResource(body).response(to: request)
            return request.field("Range") == nil
                ? answer.fault(.stall(gate), at: .body(300_000))
                : MockResponse.status(503).fault(.stall(late), at: .start)
        }
        let transfer = Session().transfer(Request(server.url("/")), to: .file(folder("a")), saving: options()).start()
        #expect(await late.waitUntilReached())
        gate.open()
        for await progress in transfer.progress where progress.received == 3_000_000 { break }
        late.open()
        #expect(isWhole(try await transfer.value))
        #expect(server.requests.filter { $0.field("Range") == nil }.count == 1)
    }

    /// What others have is not taken a second time: here it would be wrong.
    @Test func theOneInFrontStopsWhereTheOthersHaveBegun() async throws {
        let (body, gate) = (body, gate)
        let server = try MockServer { request in
            guard request.field("Range") == nil else { return RangeResource(body).response(to: request) }
            let wrong = [UInt8](repeating: 0, count: body.length - 450_000)
            return MockResponse.bytes(Array(body.bytes[..<450_000]) + wrong).field("ETag", "\"1\"")
                .field("Accept-Ranges", "bytes").fault(.stall(gate), at: .body(300_000))
        }
        let transfer = session.transfer(Request(server.url("/")), to: .file(folder("a")), saving: options()).start()
        await received(2_900_000, of: transfer)
        gate.open()
        #expect(isWhole(try await transfer.value))
    }

    /// A server that gives other bytes than those that it was asked for, and says so.
    @Test func otherBytesThanWereAskedForAreNoPiece() async throws {
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
        let transfer = session.transfer(Request(server.url("/")), to: .file(folder("a")), saving: options()).start()
        await all.wait()
        gate.open()
        #expect(isWhole(try await transfer.value))
    }

    @Test(arguments: UInt64(0)..<8)
    func dropsAtRandomSpoilNothing(_ seed: UInt64) async throws {
        let (body, drops) = (body, Lock(SeededChance(seed)))
        let server = try MockServer { request in
            let answer = RangeResource(body).response(to: request)
            let chance = drops.withLock { $0.next() }
            return chance % 3 == 0 ? answer.fault(.reset, at: .body(Int(chance >> 32) % 150_000)) : answer
        }
        let session = Session { $0.retry = RetryPolicy(limit: 100, backOff: .none, budget: nil) }
        let file = try await session.download(
            Request(server.url("/")), to: .file(folder("a")), expecting: .sha256(body.sha256), saving: options())
        #expect(isWhole(file))
    }

    @Test(arguments: [false, true])
    func anotherStateIsNotMixedIn(_ fails: Bool) async throws {
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
        let transfer = session.transfer(Request(server.url("/")), to: .file(folder("a")), saving: options).start()
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

    /// Cancelled in the middle, and gone on with by so many.
    @Test(arguments: [1, 4])
    func onlyWhatIsMissingIsAskedForAgain(_ count: Int) async throws {
        let server = try server()
        let transfer = session.transfer(
            Request(server.url("/")), to: .file(folder("a")), expecting: .sha256(body.sha256), saving: options()
        ).start()
        await received(1_500_000, of: transfer)
        let token = try #require(await transfer.cancel(producingResumeToken: true))
        let pieces = try #require(token.pieces)
        #expect(token.offset <= 300_000 && pieces.reduce(0) { $0 + $1.count } >= 1_000_000)
        gate.open()
        let asked = server.requestCount
        let file = try await session.resume(from: token, request: Request(server.url("/")), saving: options(count))
            .value
        #expect(isWhole(file) && file.resumedFrom == token.offset)
        let again = server.requests.dropFirst(asked).compactMap { $0.field("Range") }
        #expect(!again.isEmpty)
        for field in again {
            let ends = field.dropFirst(6).split(separator: "-").compactMap { Int64($0) }
            #expect(!pieces.contains { $0.contains(ends[0]) }, "\(field) of \(pieces)")
        }
    }

    /// What the machine's end may have spoilt is asked for again.
    @Test func piecesFromBeforeTheMachineStartedAreUsedAsFarAsTheyWereSynced() async throws {
        let server = try server()
        let transfer = session.transfer(Request(server.url("/")), to: .file(folder("a")), saving: options()).start()
        await received(1_500_000, of: transfer)
        var token = try #require(await transfer.cancel(producingResumeToken: true))
        gate.open()
        let last = try #require(token.pieces?.last)
        token.bootID = "another"
        token.synced = token.offset
        token.syncedPieces = [last.lowerBound + 50_000..<last.upperBound]
        // What was not synced is nothing but zeros now.
        var bytes = try #require(folder.bytes("a.part"))
        for place in Int(token.offset)..<Int(last.lowerBound + 50_000) { bytes[place] = 0 }
        folder.write("a.part", bytes)
        folder.write("a.part.json", [UInt8](try JSONEncoder().encode(token)))
        let file = try await session.download(Request(server.url("/")), to: .file(folder("a")), saving: options())
        #expect(isWhole(file))
    }

    /// What came too much must not leave a gap.
    @Test func moreThanWasAnnouncedIsNotCounted() async throws {
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
            // A thousand bytes, and then more than that, without a length.
            return MockResponse.pattern(body[start..<body.length], status: 206).chunked()
                .field("ETag", "\"1\"").field("Content-Range", "bytes \(start)-\(start + 999)/\(body.length)")
        }
        let session = Session { $0.retry = RetryPolicy(limit: 10, backOff: .none, budget: nil) }
        let transfer = session.transfer(Request(server.url("/")), to: .file(folder("a")), saving: options()).start()
        await received(1_000_000, of: transfer)
        gate.open()
        #expect(isWhole(try await transfer.value))
        #expect(flawed.withLock { $0 } < 3)
    }

    /// Nothing came from the front, and much from the others.
    ///
    /// Also where a digest is expected: that of nothing says nothing about a part.
    @Test(arguments: [false, true])
    func piecesWithoutABeginningAreKept(_ isChecked: Bool) async throws {
        let (body, gate) = (body, gate)
        let server = try MockServer { request in
            let answer = RangeResource(body).response(to: request)
            return request.field("Range") == nil ? answer.fault(.stall(gate), at: .body(0)) : answer
        }
        let transfer = session.transfer(
            Request(server.url("/")), to: .file(folder("a")),
            expecting: isChecked ? .sha256(body.sha256) : nil, saving: options()
        ).start()
        await received(1_500_000, of: transfer)
        let token = try #require(await transfer.cancel(producingResumeToken: true))
        #expect(token.offset == 0 && token.pieces?.isEmpty == false)
        gate.open()
        let asked = server.requestCount
        #expect(isWhole(try await session.resume(from: token, saving: options()).value))
        for start in server.requests.dropFirst(asked).compactMap({ $0.field("Range") }).compactMap({
            Int64($0.dropFirst(6).prefix { $0 != "-" })
        }) {
            #expect(token.pieces?.contains { $0.contains(start) } == false)
        }
    }

    /// Somebody has cut the part, so that pieces that were there are not.
    @Test func piecesThatAreNotThereAnyMoreAreAskedForAgain() async throws {
        let server = try server()
        let transfer = session.transfer(Request(server.url("/")), to: .file(folder("a")), saving: options()).start()
        await received(1_500_000, of: transfer)
        let token = try #require(await transfer.cancel(producingResumeToken: true))
        #expect(truncate(folder("a.part"), off_t(token.offset + 200_000)) == 0)
        gate.open()
        #expect(isWhole(try await session.resume(from: token, saving: options()).value))
    }

    /// The end of the process would lose what only the note knows.
    @Test func theNoteKeepsUpWithTheFront() async throws {
        let (body, gate) = (PatternBody(seed: 3, length: 24 << 20), gate)
        let server = try MockServer { request in
            let answer = RangeResource(body).response(to: request)
            // All who fetch pieces are refused, so that nothing else is news.
            return request.field("Range") == nil ? answer.fault(.stall(gate), at: .body(20 << 20)) : .status(403)
        }
        let transfer = session.transfer(Request(server.url("/")), to: .file(folder("a")), saving: options()).start()
        await received(20 << 20, of: transfer)
        let note = try JSONDecoder().decode(ResumeToken.self, from: Data(try #require(folder.bytes("a.part.json"))))
        #expect(note.pieces == [] && note.offset >= 8 << 20)
        gate.open()
        #expect(try await transfer.value.bytes == 24 << 20)
    }

    @Test func aWrongDigestRemovesAll() async throws {
        let body = body
        let server = try MockServer { RangeResource(body).response(to: $0) }
        let error = await failure { () async throws(NetworkError) in
            try await session.download(
                Request(server.url("/")), to: .file(folder("a")), expecting: .sha256(String(repeating: "0", count: 64)),
                saving: options())
        }
        #expect(error?.kind == .checksumMismatch && folder.names == [])
    }

    @Test func aLongPauseGivesUpAllConnections() async throws {
        let (body, gate) = (body, gate)
        let server = try MockServer { request in
            RangeResource(body).response(to: request).fault(.stall(gate), at: .body(50_000))
        }
        var options = options()
        options.pauseGrace = .zero
        let transfer = session.transfer(Request(server.url("/")), to: .file(folder("a")), saving: options).start()
        await received(200_000, of: transfer)
        transfer.pause()
        #expect(await server.waitUntil(openConnections: 0))
        gate.open()
        transfer.resume()
        #expect(isWhole(try await transfer.value))
    }

    @Test func whoReadsAlongGetsAllInOrder() async throws {
        let body = body
        let server = try MockServer { RangeResource(body).response(to: $0) }
        let transfer = session.transfer(Request(server.url("/")), to: .file(folder("a")), saving: options())
        var bytes: [UInt8] = []
        for try await chunk in transfer.bytes { bytes += chunk }
        #expect(bytes == body.bytes)
    }
}
