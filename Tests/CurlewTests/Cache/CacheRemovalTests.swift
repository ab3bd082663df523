// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import CurlewTesting
import FoundationEssentials
import Testing

@testable import Curlew

/// Removals while a response is requested: it is stored only if it is not one of those that were removed.
@Suite(.timeLimit(.minutes(5)))
struct CacheRemovalTests {
    enum Removal: Sendable, CaseIterable {
        case all, noEntry, tag, group, origin, ownURL, ownURLByPost
        case otherURL, otherURLByPost

        /// Removals that are not by URL can be about any response.
        var appliesToTheResponse: Bool { self != .otherURL && self != .otherURLByPost }
    }

    /// The removal happens after the request has passed the cache, and before the head of the response arrives.
    @Test(arguments: Removal.allCases) func removalKeepsEarlierResponsesFromBeingStored(_ removal: Removal) async throws
    {
        let scene = try CacheScene(respond: CacheScene.counting([.cacheControl: "max-age=60"]))
        var request = Request(scene.server.url("/a"))
        request.interceptors = [
            ClosureInterceptor(scope: .attempt) { request, _, next in
                switch removal {
                case .all: try await scene.cache.removeAll()
                case .noEntry: try await scene.cache.removeAll { _ in false }
                case .tag: try await scene.cache.remove(tag: "t")
                case .group: try await scene.cache.remove(group: "g", of: "https://example.com")
                case .origin: try await scene.cache.remove(originOf: "https://example.com")
                case .ownURL: try await scene.cache.remove(url: scene.server.url("/a#x"))
                case .otherURL: try await scene.cache.remove(url: scene.server.url("/b"))
                case .ownURLByPost: try await scene.send(Request(.post, scene.server.url("/a")))
                case .otherURLByPost: try await scene.send(Request(.post, scene.server.url("/b")))
                }
                return try await next(request)
            }
        ]
        try await scene.send(request)
        #expect(try await scene.cache.entries().isEmpty == removal.appliesToTheResponse)
        #expect(try await scene.get("/a").head.cache?.isHit == !removal.appliesToTheResponse)
    }

    /// The removal lists the entries before the new one is visible.
    @Test func removalWhileAResponseIsStoredRemovesIt() async throws {
        let store = SlowStore()
        let scene = try CacheScene(store: store, respond: CacheScene.counting([.cacheControl: "max-age=60"]))
        // The closures refer to the scene, which refers to the store.
        defer { store.beforeTheEnd.withLock { $0 = { 0 } } }
        store.beforeTheEnd.withLock { $0 = { try await scene.cache.removeAll() } }
        #expect(try await scene.get("/a").body == "1")
        #expect(try await scene.cache.entries().isEmpty && scene.cache.statistics.stores == 0)
        store.beforeTheEnd.withLock { $0 = { try await scene.cache.remove(url: scene.server.url("/b")) } }
        try await scene.get("/a")
        #expect(try await scene.cache.entries().count == 1)
    }

    @Test func invalidURLIsAnError() async throws {
        let cache = HTTPCache()
        for url in ["ftp://example.com/", "example.com", "https://"] {
            #expect(try await networkError { try await cache.remove(url: url) }.kind == .invalidRequest)
            #expect(try await networkError { try await cache.remove(originOf: url) }.kind == .invalidRequest)
            #expect(try await networkError { try await cache.remove(group: "g", of: url) }.kind == .invalidRequest)
            #expect(try await networkError { try await cache.entries(for: url) }.kind == .invalidRequest)
        }
        #expect(cache.removals == 0)
    }

    /// The cache knows at most 1,024 URLs apart; more removals count for every response.
    @Test func removalsOfManyURLsAreBounded() {
        let cache = HTTPCache()
        let start = cache.removals
        for number in 1...1_024 { cache.countRemoval(of: "https://example.com/\(number)") }
        #expect(cache.hasRemoved("https://example.com/1", after: start))
        #expect(!cache.hasRemoved("https://example.com/1", after: start + 1))
        #expect(!cache.hasRemoved("https://example.com/x", after: start))
        cache.countRemoval(of: "https://example.com/1025")
        #expect(cache.hasRemoved("https://example.com/x", after: start))
        #expect(!cache.hasRemoved("https://example.com/x", after: cache.removals))
    }
}

/// A store in memory that calls a closure before it makes an entry visible.
private final class SlowStore: CacheStore {
    private let store = HTTPCache.MemoryStore()
    let beforeTheEnd = Lock<@Sendable () async throws -> Int>({ 0 })

    private struct Writer: HTTPCache.BodyWriter {
        let writer: any HTTPCache.BodyWriter
        let store: SlowStore

        func write(_ chunk: ByteChunk) async throws { try await writer.write(chunk) }

        func finish(_ entry: HTTPCache.Entry, replacing replaced: [HTTPCache.Entry.ID]) async throws {
            let body = store.beforeTheEnd.withLock { $0 }
            _ = try await body()
            try await writer.finish(entry, replacing: replaced)
        }

        func discard() async { await writer.discard() }
    }

    var maximumBodySize: Int64 { store.maximumBodySize }

    func entries(_ selection: HTTPCache.Selection) async -> [HTTPCache.Entry] { await store.entries(selection) }

    func body(of entry: HTTPCache.Entry, _ range: Range<Int64>) async -> HTTPCache.StoredBody? {
        await store.body(of: entry, range)
    }

    func writer(for entry: HTTPCache.Entry, expecting size: Int64?) async -> any HTTPCache.BodyWriter {
        Writer(writer: await store.writer(for: entry, expecting: size), store: self)
    }

    func update(_ entry: HTTPCache.Entry) async { await store.update(entry) }
    func remove(_ ids: [HTTPCache.Entry.ID]) async -> Int { await store.remove(ids) }
    func usage() async -> HTTPCache.Usage { await store.usage() }
}
