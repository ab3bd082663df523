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
    _ = HTTPCache(store: HTTPCache.MemoryStore(limit: .mebibytes(50)))
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
    try await cache.removeAll { $0.receivedAt < date }
    try await cache.removeAll()
    _ = HTTPCache { $0.isShared = true }
    _ = HTTPCache { $0.targetedFields = ["CDN-Cache-Control"] }
    _ = HTTPCache { $0.usesNoVarySearch = true }
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
