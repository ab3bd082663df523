// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewSupport
import CurlewTesting
import Testing

@testable import CurlewMedia

/// Files that change on the server, servers that misbehave, errors and cancellation.
@Suite(.timeLimit(.minutes(5)))
struct MediaChangeTests {
    private static let small = MediaCache.Configuration(readAhead: .kibibytes(256), joinDistance: .kibibytes(64))

    /// Reads a range and returns the error.
    private func error(of media: MediaCache.Media, _ range: Range<Int64>) async -> NetworkError? {
        do throws(NetworkError) {
            for try await _ in media.bytes(range) {}
            return nil
        } catch { return error }
    }

    /// How a server answers a range request for a file that has changed.
    enum Change: String, CaseIterable, Sendable {
        case whole, otherValidator, otherLength, unsatisfiable, precondition
    }

    @Test(arguments: Change.allCases)
    func changedFileIsNeverMixedWithTheOldOne(_ change: Change) async throws {
        let bench = try MediaBench()
        let old = bench.body
        let media = try await bench.media(bench.cache(Self.small))
        var begun = media.bytes(0..<2_500_000).makeAsyncIterator()
        let first = try #require(try await begun.next())
        #expect(old.matches(first, at: 0))
        await bench.wait { media.use.source.state.withLock { $0.plan.transfers.values.contains { $0.isHeld } } }
        bench.replace(
            seed: 8, length: change == .otherLength || change == .unsatisfiable ? 2_800_000 : nil, tag: "\"2\"")
        if change != .whole {
            bench.resource.withLock { $0.flaws = [.ignoresConditions] }
            bench.change { request, response in
                guard request.field("Range") != nil else { return response }
                switch change {
                case .whole, .otherValidator, .otherLength: return response
                case .unsatisfiable: return .status(416).field("Content-Range", "bytes */2800000")
                case .precondition: return .status(412)
                }
            }
        }
        // A fresh reader in a hole gets the new file.
        try await bench.check(media, 2_600_000..<2_700_000, against: bench.body)
        #expect(media.validator == .tag("\"2\""))
        #expect(media.length == Int64(bench.body.length))
        // The reader that has begun gets the rest of the chunks it had read, and then the error.
        var (position, failure) = (first.count, NetworkError?.none)
        do throws(NetworkError) {
            while let chunk = try await begun.next() {
                #expect(old.matches(chunk, at: position))
                position += chunk.count
            }
        } catch { failure = error }
        #expect(failure?.kind == .contentChanged)
        #expect(position < 2_500_000)
        do throws(NetworkError) { _ = try await begun.next() } catch { failure = error }
        #expect(failure?.kind == .contentChanged)
        // All bytes are those of the new file.
        try await bench.check(media)
    }

    @Test func changeWithTheSameTagAndAnotherLengthIsDetected() async throws {
        let bench = try MediaBench()
        let media = try await bench.media(bench.cache(Self.small))
        try await bench.check(media, 0..<100_000)
        bench.replace(seed: 9, length: 2_000_000, tag: "\"1\"")
        try await bench.check(media, 1_500_000..<1_600_000, against: bench.body)
        try await bench.check(media)
    }

    @Test(arguments: RangeResource.Flaw.allCases)
    func flawedServerGivesTheRightBytes(_ flaw: RangeResource.Flaw) async throws {
        let bench = try MediaBench(1_000_000, flaws: [flaw])
        let media = try await bench.media(bench.cache(Self.small))
        for range in [700_000..<800_000, 0..<10, 400_000..<1_000_000] as [Range<Int64>] {
            try await bench.check(media, range)
        }
        try await bench.check(media)
    }

    @Test func bodyWithAContentCodingIsRefused() async throws {
        let bench = try MediaBench(1000)
        bench.change { $1.field("Content-Encoding", "gzip") }
        let cache = try await bench.cache()
        let error = await #expect(throws: NetworkError.self) { _ = try await bench.media(cache) }
        #expect(error?.kind == .invalidResponse)
    }

    // MARK: Errors

    @Test func errorOfTheFirstResponseReachesTheCallerAndALaterCallTriesAgain() async throws {
        let bench = try MediaBench(1000)
        bench.change { _, _ in .text("none", status: 404) }
        let cache = try await bench.cache()
        let error = await #expect(throws: NetworkError.self) { _ = try await bench.media(cache) }
        #expect(error?.kind == .unacceptableStatus)
        #expect(error?.response?.status == .notFound)
        bench.change { $1 }
        try await bench.check(try await bench.media(cache))
    }

    @Test func brokenTransferFailsWaitingReadersOnly() async throws {
        let bench = try MediaBench()
        let gate = Gate()
        bench.change { request, response in
            request.field("Range") == nil
                ? response.fault(.stall(gate), at: .body(200_000)).fault(.close, at: .body(200_000)) : response
        }
        let media = try await bench.media(bench.cache())
        var begun = media.bytes().makeAsyncIterator()
        var position = 0
        while position < 200_000 { position += try await begun.next()?.count ?? 0 }
        let waiting = Task { await error(of: media, 300_000..<400_000) }
        await bench.wait { media.use.source.state.withLock { !$0.readers.isEmpty } }
        gate.open()
        #expect(await waiting.value?.kind == .connectionLost)
        // The other reader did not wait, so it continues, as does a new one.
        while let chunk = try await begun.next() {
            #expect(bench.body.matches(chunk, at: position))
            position += chunk.count
        }
        #expect(position == 3_000_000)
        try await bench.check(media)
        #expect(bench.ranges == ["whole", "200000-"])
    }

    @Test func iteratorContinuesAfterAnErrorAtTheSamePosition() async throws {
        let bench = try MediaBench(400_000)
        bench.change { request, response in
            request.field("Range") == nil ? response.fault(.close, at: .body(100_000)) : response
        }
        let media = try await bench.media(bench.cache())
        var reader = media.bytes().makeAsyncIterator()
        var (bytes, errors) = ([UInt8](), 0)
        while bytes.count < 400_000, errors < 3 {
            do throws(NetworkError) { bytes += try await reader.next() ?? ByteChunk([]) } catch { errors += 1 }
        }
        #expect(bytes == bench.body.bytes)
        #expect(errors <= 1)
    }

    @Test func brokenTransferWithoutAValidatorStartsAnew() async throws {
        let bench = try MediaBench(400_000, tag: nil)
        let isBroken = Lock(true)
        bench.change { _, response in
            isBroken.withLock { $0 } ? response.fault(.close, at: .body(100_000)) : response
        }
        let media = try await bench.media(bench.cache())
        #expect(await error(of: media, 200_000..<300_000)?.kind == .connectionLost)
        isBroken.withLock { $0 = false }
        try await bench.check(media)
        #expect(bench.ranges == ["whole", "whole"])
    }

    // MARK: Leaving

    @Test func lastReaderThatLeavesStopsTheTransferAndKeepsItsBytes() async throws {
        let bench = try MediaBench()
        let gate = Gate()
        bench.change { request, response in
            request.field("Range") == nil ? response.fault(.stall(gate), at: .body(300_000)) : response
        }
        let media = try await bench.media(bench.cache())
        do {
            var reader = media.bytes().makeAsyncIterator()
            var position = 0
            while position < 300_000 { position += try await reader.next()?.count ?? 0 }
            #expect(bench.server.openConnections == 1)
        }
        await bench.server.waitUntil(openConnections: 0)
        #expect(media.storedRanges == [0..<300_000])
        gate.open()
        try await bench.check(media)
        #expect(bench.ranges == ["whole", "300000-"])
    }

    @Test func handleWithoutAReaderStopsTheTransferWhenItIsReleased() async throws {
        let bench = try MediaBench(12_000_000)
        let cache = try await bench.cache()
        do { _ = try await bench.media(cache) }
        await bench.server.waitUntil(openConnections: 0)
        await cache.store.waitForSaves()
        #expect(cache.entries == [])
    }

    @Test func oneReaderLeavesAndTheOthersContinue() async throws {
        let bench = try MediaBench()
        let gate = Gate()
        bench.change { $1.fault(.stall(gate), at: .body(100_000)) }
        let media = try await bench.media(bench.cache(MediaCache.Configuration(joinDistance: .mebibytes(64))))
        let leaving = Task { await error(of: media, 200_000..<300_000) }
        let staying = Task { try await bench.check(media, 150_000..<400_000) }
        await bench.wait { media.use.source.state.withLock { $0.readers.count == 2 } }
        leaving.cancel()
        #expect(await leaving.value?.kind == .cancelled)
        gate.open()
        try await staying.value
        #expect(bench.ranges == ["whole"])
    }

    @Test func cancelledReaderNeverEndsSilently() async throws {
        let bench = try MediaBench(200_000)
        let media = try await bench.media(bench.cache())
        try await bench.check(media)
        let task = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return await error(of: media, 0..<200_000)
        }
        #expect(await task.value?.kind == .cancelled)
    }

    @Test func cancelledWaitForTheFirstResponseStopsTheTransfer() async throws {
        let bench = try MediaBench(1000)
        let gate = Gate()
        bench.change { $1.fault(.stall(gate), at: .start) }
        let cache = try await bench.cache()
        let task = Task { () -> NetworkError? in
            do throws(NetworkError) {
                _ = try await cache.media(for: Request(bench.url))
                return nil
            } catch { return error }
        }
        await gate.waitUntilReached()
        task.cancel()
        #expect(await task.value?.kind == .cancelled)
        await bench.server.waitUntil(openConnections: 0)
    }

    @Test func twoTasksWithOneIteratorGetAnError() async throws {
        let bench = try MediaBench()
        let gate = Gate()
        bench.change { $1.fault(.stall(gate), at: .body(0)) }
        let media = try await bench.media(bench.cache())
        let reader = MediaReader(media.use, from: 0, to: nil)
        let waiting = Task { try await reader.next()?.count }
        await bench.wait { media.use.source.state.withLock { !$0.readers.isEmpty } }
        let error = await #expect(throws: NetworkError.self) { _ = try await reader.next() }
        #expect(error?.kind == .invalidRequest)
        gate.open()
        #expect(try await waiting.value ?? 0 > 0)
    }

    // MARK: Requests

    @Test func requestsThatTheCacheCannotSendAreRefused() async throws {
        let bench = try MediaBench(10)
        let cache = try await bench.cache()
        let url = bench.url
        let requests = [
            Request(.post, url), Request("no url"), Request(url, fields: [.range: "bytes=0-"]),
            Request(url, fields: [.ifNoneMatch: "\"1\""]),
        ]
        for request in requests {
            let error = await #expect(throws: NetworkError.self) { _ = try await cache.media(for: request) }
            #expect(error?.kind == .invalidRequest)
        }
        #expect(bench.ranges == [])
    }

    @Test func fieldsThatMatterSeparateFiles() throws {
        let url = "https://example.com/film?token=1"
        func key(_ fields: HeaderFields, _ url: String = "https://example.com/film?token=1") throws -> String {
            try MediaKey(Request(url, fields: fields)).text
        }
        let plain = try key([:])
        #expect(try key([.userAgent: "x", .acceptEncoding: "gzip", .referer: "y"]) == plain)
        #expect(try key([:], "HTTPS://EXAMPLE.com:443/film?token=1#part") == plain)
        #expect(try key([.authorization: "Bearer a"]) != plain)
        #expect(try key([.authorization: "Bearer a"]) != key([.authorization: "Bearer b"]))
        #expect(try key([.cookie: "a=1"]) != plain)
        #expect(try key([.acceptLanguage: "de"]) != plain)
        #expect(try key([:], url + "2") != plain)
        #expect(try key([:], "https://user:secret@example.com/film?token=1") != plain)
        #expect(plain.utf8.count == 64)
    }

    @Test func credentialsOfOneUserAreNotUsedForAnother() async throws {
        let bench = try MediaBench(1000)
        let cache = try await bench.cache()
        for user in ["a", "b", "a"] {
            let request = Request(bench.url, fields: [.authorization: "Bearer \(user)"])
            try await bench.check(try await cache.media(for: request))
        }
        #expect(bench.server.requests.map { $0.field("Authorization") } == ["Bearer a", "Bearer b"])
        await cache.store.waitForSaves()
        #expect(cache.entries.count == 2)
    }

    @Test func sessionCacheTakesNoPart() async throws {
        let bench = try MediaBench(1000)
        bench.change { $1.field("Cache-Control", "max-age=1000") }
        let session = Session(cache: HTTPCache())
        let cache = try await MediaCache(at: bench.path, session: session)
        try await bench.check(try await bench.media(cache))
        #expect(try await session.cache?.entries().count == 0)
    }
}
