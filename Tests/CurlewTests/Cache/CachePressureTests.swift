// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewEngine
import CurlewSupport
import CurlewTesting
import FoundationEssentials
import Testing

@testable import Curlew

/// Caches in memory while memory is short.
@Suite(.timeLimit(.minutes(5)))
struct CachePressureTests {
    private let source = PressureSource()

    /// A scene whose bodies have 8 KiB, and whose store has room for about 16 of them.
    private func scene(_ store: HTTPCache.MemoryStore) throws -> CacheScene {
        try CacheScene(store: store) { _ in
            MockResponse.bytes([UInt8](repeating: 0x61, count: 8 << 10)).field("Cache-Control", "max-age=60")
        }
    }

    private func store() -> HTTPCache.MemoryStore {
        HTTPCache.MemoryStore(limit: .kibibytes(144), pressure: source.pressure)
    }

    @Test func warningRemovesTheLeastRecentlyUsedHalf() async throws {
        let store = store()
        let scene = try scene(store)
        for number in 0..<12 { try await scene.get("/\(number)") }
        #expect(await store.usage().count == 12)
        #expect(try await scene.get("/0").report.hasPrefix("hit"))
        await source.handle(.warning)
        let usage = await store.usage()
        #expect(usage.bytes <= 72 << 10 && usage.count >= 6 && usage.count < 12)
        #expect(try await scene.get("/0").report.hasPrefix("hit"), "it was used last")
        #expect(try await !scene.get("/1").report.hasPrefix("hit"))
        // The store stays at half of its limit until the pressure ends.
        for number in 20..<40 { try await scene.get("/\(number)") }
        #expect(await store.usage().bytes <= 72 << 10)
        await source.handle(.normal)
        for number in 40..<60 { try await scene.get("/\(number)") }
        #expect(await store.usage().bytes > 72 << 10)
    }

    @Test func criticalPressureRemovesEverything() async throws {
        let store = store()
        let scene = try scene(store)
        for number in 0..<4 { try await scene.get("/\(number)") }
        await source.handle(.critical)
        #expect(await store.usage() == HTTPCache.Usage(count: 0, bytes: 0, limit: 144 << 10))
        #expect(try await scene.get("/0").body.utf8.count == 8 << 10)
        #expect(await store.usage().count == 0, "nothing is kept while memory is critical")
        await source.handle(.normal)
        try await scene.get("/0")
        #expect(try await scene.get("/0").report.hasPrefix("hit"))
    }

    @Test func cacheWithoutResponsesStartsNoThread() async throws {
        let files = try PressureFiles()
        defer { withExtendedLifetime(files) {} }
        let monitor = files.monitor
        let cache = HTTPCache { $0.memoryPressure = MemoryPressure(monitor) }
        let server = try MockServer { _ in MockResponse.text("x").field("Cache-Control", "max-age=60") }
        let session = Session(cache: cache)
        _ = try await session.data(for: Request(server.url("/"), options: .cache(.onlyIfCached)))
        #expect(!monitor.isWatching)
        _ = try await session.data(for: Request(server.url("/")))
        #expect(monitor.isWatching)
    }

    @Test func watchingEndsWithTheStore() async throws {
        do {
            let scene = try scene(store())
            try await scene.get("/a")
            await source.waitForReaders(1)
            try await scene.session.shutdown()
        }
        await source.waitForReaders(0)
    }

    @Test func cacheWithoutPressureNeverWatches() async throws {
        let store = HTTPCache.MemoryStore(pressure: nil)
        let scene = try scene(store)
        try await scene.get("/a")
        #expect(try await scene.get("/a").report.hasPrefix("hit"))
        #expect(source.readers == 0)
    }

    @Test func optionsSelectThePressureOfTheStore() async throws {
        let caches = [
            HTTPCache { $0.memoryPressure = source.pressure },
            HTTPCache.memory(limit: .kibibytes(144)) { $0.memoryPressure = source.pressure },
        ]
        for (number, cache) in caches.enumerated() {
            let server = try MockServer { _ in MockResponse.text("x").field("Cache-Control", "max-age=60") }
            let session = Session(cache: cache)
            #expect(source.readers == number)
            _ = try await session.data(for: Request(server.url("/")))
            await source.waitForReaders(number + 1)
            await source.handle(.critical)
            #expect(try await cache.usage().count == 0)
            await source.handle(.normal)
            try await session.shutdown()
        }
    }

    @Test func warningReleasesLoadedDictionaries() async throws {
        let scene = try CacheScene(
            store: HTTPCache.MemoryStore(pressure: nil), tls: TestIdentity.selfSigned(),
            trust: InsecureTrust(reason: "The test has a certificate of its own."),
            { [source] in ($0.usesDictionaries, $0.memoryPressure) = (true, source.pressure) }
        ) { request in
            MockResponse.text("a dictionary").field("Cache-Control", "max-age=60")
                .field("Use-As-Dictionary", "match=\"/*\"")
        }
        try await scene.get("/a")
        #expect(source.readers == 0, "no dictionary is loaded")
        try await scene.get("/b")
        await source.waitForReaders(1)
        #expect(scene.cache.dictionaries.withLock { $0.count } == 1)
        await source.handle(.warning)
        #expect(scene.cache.dictionaries.withLock { $0.count } == 0)
        try await scene.get("/c")
        #expect(scene.server.requests.last?.field("Available-Dictionary") != nil, "it is loaded again")
    }
}
