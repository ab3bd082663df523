// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import CurlewTesting
import FoundationEssentials
import Testing

@testable import Curlew

/// Compression dictionaries in whole transfers (RFC 9842).
@Suite(.timeLimit(.minutes(5)))
struct DictionaryTests {
    private static let old = Array("let version = 1; ".utf8) + Encoded.text
    private static let new = Array("let version = 2; ".utf8) + Encoded.text

    /// A server with a dictionary at /v1.js, whose other responses are compressed with it if the request names it.
    private static func respond(
        _ fields: HeaderFields = [:], to request: RecordedRequest
    ) throws -> MockResponse {
        var response: MockResponse
        if request.path == "/v1.js" {
            response = MockResponse.bytes(old).field("Use-As-Dictionary", "match=\"/*.js\", id=\"one\"")
        } else if let name = request.field("Available-Dictionary"), name == self.name(of: old),
            request.field("Accept-Encoding")?.contains("dcz") == true
        {
            response = try .bytes(ZstandardEncoder.dcz(new, dictionary: old)).field("Content-Encoding", "dcz")
        } else {
            response = .bytes(new)
        }
        response = response.field("Cache-Control", "max-age=60")
            .field("Vary", "Accept-Encoding, Available-Dictionary")
        return fields.reduce(response) { $0.field($1.name.rawValue, $1.value) }
    }

    /// Returns the value of `Available-Dictionary` for a dictionary.
    private static func name(of bytes: [UInt8]) -> String {
        ":" + (CompressionDictionary(Data(bytes)).map { Data($0.digest).base64EncodedString() } ?? "") + ":"
    }

    private func scene(
        tls: Bool = true, usesDictionaries: Bool = true, store: any CacheStore = HTTPCache.MemoryStore(),
        _ configuration: Session.Configuration = Session.Configuration(), interceptors: [any Interceptor] = [],
        respond: @escaping @Sendable (RecordedRequest) throws -> MockResponse = { try Self.respond(to: $0) }
    ) throws -> CacheScene {
        try CacheScene(
            store: store, tls: tls ? TestIdentity.selfSigned() : nil, configuration,
            trust: InsecureTrust(reason: "The test has a certificate of its own."), interceptors: interceptors,
            { $0.usesDictionaries = usesDictionaries }
        ) { request in (try? respond(request)) ?? .status(500) }
    }

    /// Returns the latest request that the server has received.
    private func lastRequest(_ scene: CacheScene) throws -> RecordedRequest { try #require(scene.server.requests.last) }

    @Test func responseIsCompressedWithAStoredOne() async throws {
        let scene = try scene()
        try await scene.get("/v1.js")
        #expect(try lastRequest(scene).field("Available-Dictionary") == nil)
        let response = try await scene.session.transfer(Request(scene.server.url("/v2.js"))).response()
        #expect(Array(response.value) == Self.new)
        #expect(response.head[.contentEncoding] == nil)
        #expect(response.head.cache?.isStored == true)
        let request = try lastRequest(scene)
        #expect(request.field("Available-Dictionary") == Self.name(of: Self.old))
        #expect(request.field("Dictionary-ID") == "\"one\"")
        #expect(request.field("Accept-Encoding") == ContentCodings.system.acceptEncodingWithDictionary)
        #expect(response.metrics.responseBodyBytes < 200 && response.metrics.decodedBodyBytes == Self.new.count)
    }

    /// The stored body is decoded, so the dictionary of the request does not matter for later requests.
    @Test func decodedResponseIsUsedWithoutTheDictionary() async throws {
        let scene = try scene()
        try await scene.get("/v1.js")
        try await scene.get("/v2.js")
        #expect(try await scene.get("/v2.js").report == "hit; ttl=60")
        try await scene.cache.remove(url: scene.server.url("/v1.js"))
        let answer = try await scene.get("/v2.js")
        #expect(answer.report == "hit; ttl=60" && Array(answer.body.utf8) == Self.new)
        #expect(scene.requests == 2)
    }

    @Test func removedOrStaleDictionaryIsNotNamed() async throws {
        let scene = try scene()
        try await scene.get("/v1.js")
        scene.clock.advance(by: 60)
        #expect(try await Array(scene.get("/v2.js").body.utf8) == Self.new)
        #expect(try lastRequest(scene).field("Available-Dictionary") == nil)
        try await scene.get("/v1.js", options: .cache(.reload))
        try await scene.get("/v3.js")
        #expect(try lastRequest(scene).field("Available-Dictionary") != nil)
        try await scene.cache.removeAll()
        try await scene.get("/v4.js")
        #expect(try lastRequest(scene).field("Available-Dictionary") == nil)
    }

    /// A new version of a resource is compressed with the version that the cache has.
    @Test func staleResponseIsADictionaryForItsValidation() async throws {
        let scene = try scene { request in
            let fields: HeaderFields = [
                .cacheControl: "max-age=5, stale-while-revalidate=100", .etag: "\"1\"",
                .useAsDictionary: "match=\"/app.js\"",
            ]
            let isNamed = request.field("Available-Dictionary") == Self.name(of: Self.old)
            let response: MockResponse =
                try isNamed
                ? .bytes(ZstandardEncoder.dcz(Self.new, dictionary: Self.old)).field("Content-Encoding", "dcz")
                : .bytes(Self.old)
            return fields.reduce(response) { $0.field($1.name.rawValue, $1.value) }
        }
        try await scene.get("/app.js")
        scene.clock.advance(by: 6)
        let answer = try await scene.get("/app.js", options: .cache(.revalidate))
        #expect(Array(answer.body.utf8) == Self.new && answer.report == "fwd=request; stored; ttl=5")
        #expect(try lastRequest(scene).field("If-None-Match") == "\"1\"")
        // The new version is the next dictionary.
        try await scene.get("/app.js", options: .cache(.reload))
        #expect(try lastRequest(scene).field("Available-Dictionary") == Self.name(of: Self.new))
    }

    /// A 304 can change the fields of a dictionary that is in memory.
    @Test func nameOfTheDictionaryIsTheLatestOne() async throws {
        let scene = try scene { request in
            guard request.path == "/v1.js" else { return try Self.respond(to: request) }
            let isConfirmed = request.field("If-None-Match") != nil
            return (isConfirmed ? MockResponse.status(304) : .bytes(Self.old))
                .field("Use-As-Dictionary", "match=\"/*.js\", id=\"\(isConfirmed ? "two" : "one")\"")
                .field("Cache-Control", "max-age=60").field("ETag", "\"1\"")
        }
        try await scene.get("/v1.js")
        try await scene.get("/v2.js")
        #expect(try lastRequest(scene).field("Dictionary-ID") == "\"one\"")
        try await scene.get("/v1.js", options: .cache(.revalidate))
        try await scene.get("/v3.js")
        #expect(try lastRequest(scene).field("Dictionary-ID") == "\"two\"")
    }

    /// The server does not know the bytes that the closure makes.
    @Test func changedBodyIsNoDictionary() async throws {
        let server = try MockServer(tls: TestIdentity.selfSigned()) { request in
            let response: MockResponse =
                request.field("If-None-Match") == nil ? .bytes(Self.old) : .status(304)
            return response.field("Use-As-Dictionary", "match=\"/*.js\"").field("Cache-Control", "max-age=60")
                .field("ETag", "\"1\"")
        }
        let cache = HTTPCache { options in
            options.usesDictionaries = true
            options.willStore = { proposal in
                proposal.mapBytes = { $0 }
                return true
            }
        }
        let session = Session(trust: InsecureTrust(reason: "The test has a certificate of its own."), cache: cache)
        for path in ["/v1.js", "/v2.js"] { _ = try await session.data(for: Request(server.url(path))) }
        #expect(try await cache.entries().count == 2)
        #expect(try #require(server.requests.last).field("Available-Dictionary") == nil)
        // A confirmation has the field again.
        _ = try await session.data(for: Request(server.url("/v1.js"), options: .cache(.revalidate)))
        _ = try await session.data(for: Request(server.url("/v3.js")))
        #expect(server.requests.count == 4)
        #expect(try #require(server.requests.last).field("Available-Dictionary") == nil)
    }

    enum Exception: Sendable, CaseIterable {
        case off, http, ownAcceptEncoding, sessionsAcceptEncoding, withoutDecompression, range, ownDictionary, head
    }

    @Test(arguments: Exception.allCases) func otherRequestsNameNoDictionary(_ exception: Exception) async throws {
        var configuration = Session.Configuration()
        if exception == .sessionsAcceptEncoding { configuration.fields[.acceptEncoding] = "gzip" }
        let scene = try scene(tls: exception != .http, usesDictionaries: exception != .off, configuration)
        try await scene.get("/v1.js")
        var request = Request(scene.server.url("/v2.js"))
        switch exception {
        case .off, .http, .sessionsAcceptEncoding: break
        case .ownAcceptEncoding: request.fields[.acceptEncoding] = "gzip"
        case .withoutDecompression: request.options.decompression = .off
        case .range: request.fields[.range] = "bytes=0-1"
        case .ownDictionary: request.fields["Available-Dictionary"] = ":AAAA:"
        case .head: request.method = .head
        }
        try await scene.send(request)
        let sent = try lastRequest(scene)
        #expect(sent.path == "/v2.js")
        #expect(sent.field("Available-Dictionary") == (exception == .ownDictionary ? ":AAAA:" : nil))
        #expect(sent.field("Accept-Encoding")?.contains("dcz") != true)
    }

    @Test func otherOriginsGetNoDictionary() async throws {
        let scene = try scene()
        let other = try MockServer(tls: TestIdentity.selfSigned()) { request in
            (try? Self.respond(to: request)) ?? .status(500)
        }
        try await scene.get("/v1.js")
        try await scene.send(Request(other.url("/v2.js")))
        #expect(try #require(other.requests.last).field("Available-Dictionary") == nil)
    }

    /// A redirect to another origin must not take the dictionary with it.
    @Test func redirectLeavesTheDictionaryBehind() async throws {
        let other = try MockServer(tls: TestIdentity.selfSigned()) { _ in .bytes(Self.new) }
        let target = other.url("/x.js")
        let scene = try scene { request in
            request.path == "/v2.js" ? .redirect(to: target) : try Self.respond(to: request)
        }
        try await scene.get("/v1.js")
        #expect(try await Array(scene.get("/v2.js").body.utf8) == Self.new)
        #expect(try lastRequest(scene).field("Available-Dictionary") != nil)
        let followed = try #require(other.requests.last)
        #expect(followed.field("Available-Dictionary") == nil && followed.field("Dictionary-ID") == nil)
        #expect(followed.field("Accept-Encoding") == ContentCodings.system.acceptEncoding)
    }

    @Test func bodyForAnotherDictionaryIsAnError() async throws {
        let scene = try scene { request in
            if request.path == "/v1.js" { return try Self.respond(to: request) }
            return try .bytes(ZstandardEncoder.dcz(Self.new, dictionary: Self.new)).field("Content-Encoding", "dcz")
                .field("Cache-Control", "max-age=60")
        }
        try await scene.get("/v1.js")
        let error = try await networkError { try await scene.get("/v2.js") }
        #expect(error.kind == .corruptEncoding)
        #expect(try await scene.cache.entries(for: scene.server.url("/v2.js")).isEmpty)
    }

    /// The body of a stored response can be gone, or shorter than its entry says.
    @Test(arguments: [DamagedStore.Damage.gone, .short, .chunks, .shortChunks, .longChunks, .brokenChunks, .failing])
    func dictionaryComesFromTheStore(_ damage: DamagedStore.Damage) async throws {
        let store = DamagedStore(damage)
        let scene = try scene(store: store)
        try await scene.get("/v1.js")
        #expect(try await Array(scene.get("/v2.js").body.utf8) == Self.new)
        #expect(try (lastRequest(scene).field("Available-Dictionary") != nil) == (damage == .chunks))
        #expect((scene.cache.statistics.failures > 0) == (damage == .failing || damage == .brokenChunks))
        // A damaged body would keep other dictionaries from being used.
        let isLeft = try await !scene.cache.entries(for: scene.server.url("/v1.js")).isEmpty
        #expect(isLeft == (damage == .chunks || damage == .failing))
    }

    @Test func requestsAtTheSameTimeShareOneLoad() async throws {
        let store = DamagedStore(.chunks)
        let scene = try scene(store: store)
        try await scene.get("/v1.js")
        try await withThrowingTaskGroup(of: Bool.self) { group in
            for number in 2..<6 {
                group.addTask { try await Array(scene.get("/v\(number).js").body.utf8) == Self.new }
            }
            for try await isRight in group { #expect(isRight) }
        }
        #expect(store.reads == 1)
    }

    /// The bytes of the dictionary do not count as growth.
    @Test func dictionaryDoesNotExceedTheDecompressionRatio() async throws {
        let old = PatternBody(seed: 3, length: 2 << 20).bytes(in: 0..<2 << 20)
        let scene = try scene(
            store: HTTPCache.MemoryStore(limit: .mebibytes(64)),
            Session.Configuration { $0.limits.decompressionRatio = 10 }
        ) { request in
            let field = "match=\"/*.js\""
            if request.path == "/v1.js" {
                return .bytes(old).field("Use-As-Dictionary", field).field("Cache-Control", "max-age=60")
            }
            let copies = request.path == "/v2.js" ? 1 : 3
            let new = Array(repeatElement(old, count: copies).joined())
            let wire = try ZstandardEncoder.dcz(new, dictionary: old, windowLog: 23)
            return .bytes(wire).field("Content-Encoding", "dcz")
        }
        try await scene.get("/v1.js")
        #expect(try await scene.session.data(for: Request(scene.server.url("/v2.js"))).0.count == 2 << 20)
        let error = try await networkError { try await scene.session.data(for: Request(scene.server.url("/v3.js"))) }
        #expect(error.kind == .bodyTooLarge)
    }

    /// The load continues for the other request.
    @Test func cancelledRequestDoesNotWaitForTheDictionary() async throws {
        let gate = Gate()
        let store = DamagedStore(.chunks, gate: gate)
        let scene = try scene(store: store)
        try await scene.get("/v1.js")
        let tasks = (2...3).map { number in Task { try await scene.get("/v\(number).js").body } }
        while store.reads == 0 { await Task.yield() }
        tasks[0].cancel()
        #expect(try await networkError { try await tasks[0].value }.kind == .cancelled)
        gate.open()
        #expect(try await Array(tasks[1].value.utf8) == Self.new)
        #expect(try lastRequest(scene).field("Available-Dictionary") != nil && store.reads == 1)
    }

    @Test(arguments: [true, false]) func storeIsAskedForHTTPSOnly(_ isSecure: Bool) async throws {
        let store = DamagedStore(.chunks)
        let scene = try scene(tls: isSecure, store: store)
        try await scene.get("/v1.js")
        #expect(store.searches == (isSecure ? 1 : 0))
    }

    @Test func dictionaryIsReadOnce() async throws {
        let store = DamagedStore(.chunks)
        let scene = try scene(store: store)
        try await scene.get("/v1.js")
        for number in 2...5 { try await scene.get("/v\(number).js") }
        #expect(try lastRequest(scene).field("Available-Dictionary") != nil)
        // The first use reads the body, and the fourth one after it tells the store about a use.
        #expect(store.reads == 1)
    }
}

/// A store in memory whose bodies are damaged.
final class DamagedStore: CacheStore {
    enum Damage: Sendable { case gone, short, chunks, shortChunks, longChunks, brokenChunks, failing }
    struct Failure: Error {}

    private let damage: Damage
    private let store = HTTPCache.MemoryStore()
    private let count = Lock(0)
    private let searchCount = Lock(0)
    /// Bodies are read after the gate opens.
    private let gate: Gate?

    init(_ damage: Damage, gate: Gate? = nil) {
        self.damage = damage
        self.gate = gate
    }

    /// The number of bodies that were read.
    var reads: Int { count.withLock { $0 } }
    /// The number of searches for dictionaries.
    var searches: Int { searchCount.withLock { $0 } }
    var maximumBodySize: Int64 { store.maximumBodySize }

    func entries(_ selection: HTTPCache.Selection) async -> [HTTPCache.Entry] {
        if case .dictionaries = selection { searchCount.withLock { $0 += 1 } }
        return await store.entries(selection)
    }

    func body(of entry: HTTPCache.Entry, _ range: Range<Int64>) async throws -> HTTPCache.StoredBody? {
        count.withLock { $0 += 1 }
        _ = await gate?.wait()
        guard case .data(let data)? = await store.body(of: entry, range) else { return nil }
        func chunks(_ data: Data, end failure: Failure? = nil) -> HTTPCache.StoredBody {
            let (stream, feed) = AsyncThrowingStream<ByteChunk, any Error>.makeStream()
            for start in stride(from: 0, to: data.count, by: 100) {
                feed.yield(ByteChunk(data[start..<min(start + 100, data.count)]))
            }
            feed.finish(throwing: failure)
            return .chunks(stream)
        }
        switch damage {
        case .gone: return nil
        case .short: return .data(data.dropLast())
        case .chunks: return chunks(data)
        case .shortChunks: return chunks(data.dropLast())
        case .longChunks: return chunks(data + [1])
        case .brokenChunks: return chunks(data.dropLast(), end: Failure())
        case .failing: throw Failure()
        }
    }

    func writer(
        for entry: HTTPCache.Entry, expecting size: Int64?
    ) async -> any HTTPCache.BodyWriter { await store.writer(for: entry, expecting: size) }

    func update(_ entry: HTTPCache.Entry) async { await store.update(entry) }
    func remove(_ ids: [HTTPCache.Entry.ID]) async -> Int { await store.remove(ids) }
    func usage() async -> HTTPCache.Usage { await store.usage() }
}
