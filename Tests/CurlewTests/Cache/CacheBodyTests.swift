// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewEngine
import CurlewSupport
import CurlewTesting
import FoundationEssentials
import Testing

@testable import Curlew

/// How bodies are stored while they are read, and read from the store.
@Suite(.timeLimit(.minutes(5)))
struct CacheBodyTests {
    private static let pattern = PatternBody(seed: 7, length: 1 << 20)

    private func scene(
        _ pattern: PatternBody = pattern, flaws: Set<RangeResource.Flaw> = [], tag: String? = "\"1\"",
        limit: ByteCount = .mebibytes(64)
    ) throws -> CacheScene {
        let resource = RangeResource(pattern, tag: tag, flaws: flaws)
        return try CacheScene(store: HTTPCache.MemoryStore(limit: limit)) { request in
            resource.response(to: request).field("Cache-Control", "max-age=60")
        }
    }

    private func matches(_ data: Data, at start: Int = 0) -> Bool {
        Self.pattern.bytes(in: start..<start + data.count).elementsEqual(data)
    }

    /// Waits until the cache has stored a number of responses.
    private func wait(for stores: Int, in scene: CacheScene) async {
        while scene.cache.statistics.stores < stores { await Task.yield() }
    }

    @Test func streamedBodyIsStoredAndStreamedFromTheStore() async throws {
        let scene = try scene()
        for round in 1...2 {
            let transfer = scene.session.transfer(Request(scene.server.url("/")))
            var count = 0
            for try await chunk in transfer.bytes {
                #expect(Self.pattern.bytes(in: count..<count + chunk.count).elementsEqual(chunk))
                count += chunk.count
            }
            #expect(count == 1 << 20)
            #expect(transfer.metrics?.cache?.isHit == (round == 2))
            #expect(transfer.metrics?.responseBodyBytes == (round == 1 ? 1 << 20 : 0))
        }
        #expect(scene.requests == 1)
    }

    /// A recorded body reports its progress as one without a cache does: after 50 ms, and at its end.
    @Test func recordedBodyReportsItsProgress() async throws {
        let server = try MockServer { _ in .pattern(Self.pattern).field("Cache-Control", "max-age=60") }
        let clock = StubClock()
        let session = Session(
            core: SessionCore(
                Session.Configuration(), trust: SystemTrust(), cache: .memory(limit: .mebibytes(64)),
                clock: LoopClock(clock)))
        var (count, reports) = (0, [TransferProgress]())
        for try await element in session.transfer(Request(server.url("/"))).elements {
            if case .progress(let progress) = element { reports.append(progress) }
            guard case .bytes(let chunk) = element else { continue }
            if count == 0 { clock.advance(by: .milliseconds(50)) }
            count += chunk.count
            // The first report is the expected one.
            if reports.isEmpty { reports = [TransferProgress(received: Int64(count))] }
        }
        try #require(reports.count == 3)
        #expect(reports[1].received == reports[0].received && !reports[1].isFinished)
        #expect(reports[1].expectedToReceive == 1 << 20)
        #expect(reports[2].received == 1 << 20 && reports[2].isFinished)
    }

    /// The server stops in the middle until the reader has read the first half.
    @Test func bodyReachesTheReaderBeforeItIsComplete() async throws {
        let gate = Gate()
        let scene = try CacheScene { _ in
            .pattern(Self.pattern).field("Cache-Control", "max-age=60").fault(.stall(gate), at: .body(1 << 19))
        }
        var count = 0
        for try await chunk in scene.session.transfer(Request(scene.server.url("/"))).bytes {
            count += chunk.count
            if count == 1 << 19 {
                #expect(try await scene.cache.entries().isEmpty)
                gate.open()
            }
        }
        #expect(count == 1 << 20)
        #expect(try await scene.cache.entries().first?.size == 1 << 20)
    }

    @Test func readerThatLeavesKeepsAPartThatARangeRequestCompletes() async throws {
        let scene = try scene()
        var left = 0
        for try await chunk in scene.session.transfer(Request(scene.server.url("/"))).bytes {
            left += chunk.count
            if left >= 1 << 18 { break }
        }
        await wait(for: 1, in: scene)
        let part = try #require(try await scene.cache.entries().first)
        #expect(part.completeSize == 1 << 20 && part.size == Int64(left))
        let (data, head) = try await scene.session.data(for: Request(scene.server.url("/")))
        #expect(data.count == 1 << 20 && matches(data))
        #expect(head.status == .ok && head.contentLength == 1 << 20 && head[.contentRange] == nil)
        #expect(head["Cache-Status"] == "curlew; fwd=partial; fwd-status=206; stored; ttl=60")
        let last = try #require(scene.server.requests.last)
        #expect(last.field("Range") == "bytes=\(left)-" && last.field("If-Range") == "\"1\"")
        #expect(try await scene.get().report == "hit; ttl=60")
        #expect(try await scene.cache.entries().map(\.isComplete) == [true])
    }

    @Test func readerThatLeavesStoresNothingWithoutAStrongValidator() async throws {
        let scene = try scene(tag: "W/\"1\"")
        for try await _ in scene.session.transfer(Request(scene.server.url("/"))).bytes { break }
        try await scene.session.idle()
        let (data, head) = try await scene.session.data(for: Request(scene.server.url("/")))
        #expect(data.count == 1 << 20 && head.cache?.forwarding == .uriMiss)
        #expect(scene.server.requests.last?.field("Range") == nil)
    }

    @Test(arguments: [RangeResource.Flaw.wrongStart, .wrongTotal, .noContentRange, .refusesRanges, .sendsHalf])
    func partThatCannotBeCompletedIsReplaced(_ flaw: RangeResource.Flaw) async throws {
        let scene = try scene(flaws: [flaw])
        for try await _ in scene.session.transfer(Request(scene.server.url("/"))).bytes { break }
        await wait(for: 1, in: scene)
        let (data, head) = try await scene.session.data(for: Request(scene.server.url("/")))
        #expect(data.count == 1 << 20 && matches(data) && head.status == .ok)
        #expect(scene.requests == 3)
    }

    @Test func brokenBodyIsCompletedByTheRetry() async throws {
        let isFirst = Lock(true)
        let resource = RangeResource(Self.pattern)
        let scene = try CacheScene(
            store: HTTPCache.MemoryStore(limit: .mebibytes(64)), Session.Configuration { $0.retry = .standard }
        ) { request in
            let response = resource.response(to: request).field("Cache-Control", "max-age=60")
            let isBroken = isFirst.withLock { isFirst in
                defer { isFirst = false }
                return isFirst
            }
            return isBroken ? response.fault(.close, at: .body(1 << 19)) : response
        }
        let (data, head) = try await scene.session.data(for: Request(scene.server.url("/")))
        #expect(data.count == 1 << 20 && matches(data))
        #expect(head.cache?.forwarding == .partial && head.earlier.count == 1)
        #expect(scene.server.requests.last?.field("Range")?.hasPrefix("bytes=") == true)
    }

    @Test func rangesAreServedFromAWholeBody() async throws {
        let scene = try scene()
        try await scene.get()
        let middle = try await scene.session.data(
            for: Request(scene.server.url("/"), fields: [.range: "bytes=1000-1999"]))
        #expect(middle.1.status == .partialContent && middle.1[.contentRange] == "bytes 1000-1999/1048576")
        #expect(middle.0.count == 1000 && matches(middle.0, at: 1000))
        let tail = try await scene.session.data(for: Request(scene.server.url("/"), fields: [.range: "bytes=-10"]))
        #expect(tail.0.count == 10 && matches(tail.0, at: (1 << 20) - 10))
        #expect(scene.requests == 1)
        let several = try await scene.session.data(
            for: Request(scene.server.url("/"), fields: [.range: "bytes=0-1,5-6"]))
        #expect(several.1.cache?.isHit == false && scene.requests == 2)
    }

    @Test func largeBodyIsNotStored() async throws {
        let scene = try scene(limit: .mebibytes(4))
        #expect(try await scene.get().report == "fwd=uri-miss; detail=too-large")
        let unknown = try CacheScene(store: HTTPCache.MemoryStore(limit: .mebibytes(4))) { _ in
            .pattern(Self.pattern).chunked().field("Cache-Control", "max-age=60")
        }
        #expect(try await unknown.get().report == "fwd=uri-miss; stored; ttl=60")
        #expect(try await unknown.cache.entries().isEmpty)
    }

    @Test func leastRecentlyUsedBodiesAreRemoved() async throws {
        let scene = try CacheScene(store: HTTPCache.MemoryStore(limit: .kibibytes(80))) { request in
            .bytes(Array(repeating: 1, count: 8 << 10)).field("Cache-Control", "max-age=60")
        }
        for index in 0..<8 {
            try await scene.get("/\(index)")
            try await scene.get("/0")
        }
        for index in 8..<12 { try await scene.get("/\(index)") }
        let urls = try await scene.cache.entries().map { String($0.url.dropFirst(scene.server.origin.count)) }
        #expect(
            Set(urls) == ["/0", "/5", "/6", "/7", "/8", "/9", "/10", "/11"] || urls.count == 9 && urls.contains("/0"))
        let usage = try await scene.cache.usage()
        #expect(usage.bytes <= 80 << 10 && usage.count == urls.count)
    }

    @Test func encodedBodyIsStoredDecoded() async throws {
        let text = String(repeating: "curlew ", count: 1000)
        let zlib = try #require(ContentCodings.system.zlib)
        let compressed = try #require(try Deflater(zlib).compressed(Array(text.utf8)))
        let scene = try CacheScene { _ in
            .bytes(compressed).field("Content-Encoding", "gzip").field("Cache-Control", "max-age=60")
                .field("Vary", "Accept-Encoding")
        }
        for round in 0..<2 {
            let answer = try await scene.get()
            #expect(answer.body == text && answer.head[.contentEncoding] == nil)
            #expect(answer.head.cache?.isHit == (round == 1))
        }
        #expect(try await scene.cache.entries().first?.size == 7000)
    }

    @Test(arguments: [301, 308])
    func permanentRedirectIsStoredThoughItIsNotRead(_ status: Int) async throws {
        let scene = try CacheScene { request in
            request.path == "/old"
                ? .redirect(to: "/new", status: status) : .text("new").field("Cache-Control", "max-age=9")
        }
        for _ in 0..<2 {
            let answer = try await scene.get("/old")
            #expect(answer.body == "new" && answer.head.history.count == 1)
        }
        // Without freshness, the redirect is asked for again.
        #expect(scene.server.requests.map(\.path) == ["/old", "/new", "/old"])
        let fresh = try CacheScene { request in
            request.path == "/old"
                ? .redirect(to: "/new", status: status).field("Cache-Control", "max-age=9")
                : .text("new").field("Cache-Control", "max-age=9")
        }
        for _ in 0..<2 { #expect(try await fresh.get("/old").body == "new") }
        #expect(fresh.server.requests.map(\.path) == ["/old", "/new"])
    }

    @Test func bodyIsNotStoredAfterAFailureOfTheStore() async throws {
        let scene = try CacheScene(store: FlawedStore(.failsFirstWrite)) { _ in
            .pattern(Self.pattern).field("Cache-Control", "max-age=60")
        }
        var count = 0
        for try await chunk in scene.session.transfer(Request(scene.server.url("/"))).bytes { count += chunk.count }
        #expect(count == 1 << 20)
        #expect(try await scene.cache.entries().isEmpty)
        #expect(scene.cache.statistics.failures == 1 && scene.cache.statistics.stores == 0)
    }

    @Test func storedBodyOfAnotherSizeIsAnErrorAndRemoved() async throws {
        let scene = try CacheScene(store: FlawedStore(.servesTooLittle)) { _ in
            .text("abc").field("Cache-Control", "max-age=60")
        }
        try await scene.get()
        let error = await #expect(throws: NetworkError.self) { try await scene.get() }
        #expect(error?.kind == .cacheFailed)
        #expect(try await scene.cache.entries().isEmpty && scene.cache.statistics.failures == 1)
        #expect(try await scene.get().body == "abc")
    }
}

/// A store in memory that misbehaves.
private final class FlawedStore: CacheStore {
    enum Flaw: Sendable { case failsFirstWrite, servesTooLittle }

    private let store = HTTPCache.MemoryStore(limit: .mebibytes(64))
    private let flaw: Flaw

    init(_ flaw: Flaw) { self.flaw = flaw }

    var maximumBodySize: Int64 { store.maximumBodySize }

    func entries(_ selection: HTTPCache.Selection) async throws -> [HTTPCache.Entry] { await store.entries(selection) }

    func body(of entry: HTTPCache.Entry, _ range: Range<Int64>) async throws -> HTTPCache.StoredBody? {
        let body = await store.body(of: entry, range)
        guard flaw == .servesTooLittle, case .data(let data)? = body else { return body }
        return .chunks(
            AsyncThrowingStream<ByteChunk, any Error> { continuation in
                continuation.yield(ByteChunk(Array(data.dropLast())))
                continuation.finish()
            })
    }

    func writer(for entry: HTTPCache.Entry, expecting size: Int64?) async throws -> any HTTPCache.BodyWriter {
        let writer = await store.writer(for: entry, expecting: size)
        return flaw == .failsFirstWrite ? Writer(writer) : writer
    }

    func update(_ entry: HTTPCache.Entry) async throws { await store.update(entry) }
    func remove(_ ids: [HTTPCache.Entry.ID]) async throws -> Int { await store.remove(ids) }
    func usage() async throws -> HTTPCache.Usage { await store.usage() }

    private struct Failure: Error {}

    private final class Writer: HTTPCache.BodyWriter {
        private let writer: any HTTPCache.BodyWriter
        private let hasFailed = Lock(false)

        init(_ writer: any HTTPCache.BodyWriter) { self.writer = writer }

        func write(_ chunk: ByteChunk) async throws {
            let fails = hasFailed.withLock { hasFailed in
                defer { hasFailed = true }
                return !hasFailed
            }
            if fails { throw Failure() }
            try await writer.write(chunk)
        }

        func finish(_ entry: HTTPCache.Entry, replacing replaced: [HTTPCache.Entry.ID]) async throws {
            try await writer.finish(entry, replacing: replaced)
        }

        func discard() async { await writer.discard() }
    }
}
