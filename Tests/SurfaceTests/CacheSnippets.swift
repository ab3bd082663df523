// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewCache
import CurlewTesting
import FoundationEssentials
import Testing

// Snippets of Documentation/Cache.md, word for word; parameters provide the values that a snippet assumes.

private func guideToCache() async throws {
    let stored = Session(cache: try await .disk())  // 150 MiB on the disk, with `import CurlewCache`
    let session = Session(cache: HTTPCache())  // 20 MiB of memory
    let (_, head) = try await session.data(for: "https://example.com/logo.svg")
    print(head.cache?.isHit ?? false, head["Cache-Status"] ?? "")
    _ = Session(cache: .memory(limit: .mebibytes(50)))
    _ = Session(cache: try await .disk("/var/cache/app", limit: .gibibytes(1)))
    _ = stored
}

private func guideToPolicies(_ cache: HTTPCache) async throws -> (String, [Request]) {
    let session = Session(cache: cache) { $0.cachePolicy = .preferCache }
    let api = Client("https://api.example.com", session: session).with { $0.options.cache = .standard }
    let request = Request("https://example.com/news", options: .cache(.reload))
    let news = try await api.get("news", options: .cache(.onlyIfCached), using: .text)  // may throw .cacheMiss

    var users: Request = "https://api.example.com/users"
    users.fields[.cacheControl] = CacheControl { $0.maxAge = .seconds(60) }.description  // at most a minute old
    return (news, [request, users])
}

private func guideToStoring() -> HTTPCache {
    let cache = HTTPCache { options in
        options.willStore = { proposal in
            guard proposal.head.status == .ok, proposal.head[.cacheControl] == nil else { return true }
            let fields = proposal.head.fields.merging([.cacheControl: "max-age=60"])
            proposal.head = proposal.head.with(fields: fields)
            proposal.tags = ["api"]
            return true
        }
    }
    return cache
}

private func guideToManagement(_ cache: HTTPCache, _ url: String, _ date: Date) async throws {
    _ = try await (cache.entries(), cache.entries(for: url), cache.usage())
    try await cache.remove(url: url)
    try await cache.remove(tag: "api")
    try await cache.remove(group: "cart", of: url)
    try await cache.remove(originOf: url)
    try await cache.removeAll { $0.receivedAt < date }
    try await cache.removeAll()
    _ = HTTPCache { $0.isShared = true }
    _ = HTTPCache { $0.targetedFields = ["CDN-Cache-Control"] }
    _ = HTTPCache { $0.usesNoVarySearch = true }
    let session = Session(cache: try await .disk { $0.usesDictionaries = true })
    _ = session
    _ = Session { $0.coalescesRequests = true }
}

@Suite(.timeLimit(.minutes(5)))
struct CacheGuideTests {
    @Test func cacheIsTested() async throws {
        let server = try MockServer()
        server.on("GET", "/logo", .text("<svg/>").field("Cache-Control", "max-age=60"))
        let session = Session(cache: HTTPCache())
        for _ in 0..<2 { _ = try await session.data(for: Request(server.url("/logo"))) }
        #expect(server.requests.count == 1 && session.cache?.statistics.hits == 1)
    }
}

// Snippets of the doc comments, word for word.

private func limitedMemory() -> Session {
    let session = Session(cache: .memory(limit: .mebibytes(50)))
    return session
}

private func cacheControl(_ response: Response<Data>) -> (Request, Bool) {
    var request: Request = "https://api.example.com/users"
    request.fields[.cacheControl] = CacheControl { $0.maxAge = .seconds(60) }.description
    let isUncacheable = response.head.cacheControl.noStore
    return (request, isUncacheable)
}

private func report(_ session: Session) async throws {
    let response = try await session.transfer("https://example.com/logo.svg").response()
    print(response.head.cache?.isHit ?? false)
    print(response.head["Cache-Status"] ?? "")  // curlew; hit; ttl=581
}

private func httpCache() async throws {
    let session = Session(cache: HTTPCache())
    let (_, head) = try await session.data(for: "https://example.com/logo.svg")
    print(head.cache?.isHit ?? false, head["Cache-Status"] ?? "")
}

private func diskStore() async throws -> Session {
    let store = try await DiskCacheStore("/var/cache/myservice/http", limit: .mebibytes(500))
    let session = Session(cache: HTTPCache(store: store))
    return session
}

private func diskCache() async throws -> Session {
    let session = Session(cache: try await .disk(limit: .mebibytes(50)))
    return session
}

private func ownStore(_ connection: Connection) -> HTTPCache {
    let cache = HTTPCache(store: RedisStore(connection))
    return cache
}

/// A stand-in for the connection to a server.
private struct Connection: Sendable {}

/// A store that passes everything on to a store in memory.
private struct RedisStore: CacheStore {
    /// Returns a store without entries.
    static func empty(_ connection: Connection) async throws -> RedisStore { RedisStore(connection) }

    private let store = HTTPCache.MemoryStore()

    init(_ connection: Connection) {}

    var maximumBodySize: Int64 { store.maximumBodySize }

    func entries(_ selection: HTTPCache.Selection) async throws -> [HTTPCache.Entry] { await store.entries(selection) }

    func body(of entry: HTTPCache.Entry, _ range: Range<Int64>) async throws -> HTTPCache.StoredBody? {
        await store.body(of: entry, range)
    }

    func writer(
        for entry: HTTPCache.Entry, expecting expectedSize: Int64?
    ) async throws -> any HTTPCache.BodyWriter { await store.writer(for: entry, expecting: expectedSize) }

    func update(_ entry: HTTPCache.Entry) async throws { await store.update(entry) }

    func remove(_ ids: [HTTPCache.Entry.ID]) async throws -> Int { await store.remove(ids) }

    func usage() async throws -> HTTPCache.Usage { await store.usage() }
}

struct OwnStoreTests {
    private let connection = Connection()

    @Test func storeConforms() async throws {
        let violations = try await CacheStoreConformance.violations { try await RedisStore.empty(connection) }
        #expect(violations.isEmpty)
    }
}
