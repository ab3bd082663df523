// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewTesting
import FoundationEssentials
import Testing

@testable import Curlew

/// A session with a cache, a clock that the test sets, and files of its own at a real server.
///
/// The clock is a day behind that of the server, so the `Date` of a response is in the future, and its age is only the
/// time by which the test advances the clock. The files below /cached are fresh for a minute.
private struct CacheServerScene {
    let server: any PeerServer
    let route: PeerRoute
    /// Whole seconds, whose differences have no rounding errors.
    let clock = TestTime(Date(timeIntervalSince1970: Date().timeIntervalSince1970.rounded(.down) - 86_400))
    let cache: HTTPCache
    let session: Session
    private let name = UUID().uuidString

    init(_ server: any PeerServer, _ route: PeerRoute) throws {
        (self.server, self.route) = (server, route)
        let clock = clock
        cache = HTTPCache(HTTPCache.Options(), in: HTTPCache.MemoryStore(limit: .mebibytes(64))) { clock.now }
        session = try Session(
            Session.Configuration(), trust: CustomRoots(pem: server.authority.certificatePEM), cache: cache)
    }

    /// Writes a file, whose suffix decides whether the server compresses it; a response in progress keeps the old one.
    ///
    /// - Parameter version: The time of the change, on which the tag depends. It is in the past, because Apache's tag
    ///   for a file changed within the last second is weak.
    func write(_ bytes: some Sequence<UInt8>, _ suffix: String, version: Double) throws {
        let path = "\(server.instance.folder)/files/\(name).\(suffix)"
        try Data(bytes).write(to: URL(filePath: path), options: .atomic)
        let time = Date(timeIntervalSince1970: 1_700_000_000 + version)
        try FileManager.default.setAttributes(
            [.modificationDate: time, .posixPermissions: 0o644], ofItemAtPath: path)
    }

    func request(_ suffix: String, _ method: Curlew.Method = .get, _ fields: HeaderFields = [:]) -> Request {
        let path = "/cached/\(name).\(suffix)"
        return Request(method, server.url(route.isSecure ? .secure : .plain, path), fields: fields)
    }

    @discardableResult
    func send(
        _ suffix: String, _ method: Curlew.Method = .get, _ fields: HeaderFields = [:]
    ) async throws -> CacheScene.Answer {
        let (data, head) = try await session.data(for: request(suffix, method, fields))
        let report = head.cache.map { $0.description.dropFirst("curlew; ".count) } ?? ""
        return CacheScene.Answer(body: String(decoding: data, as: UTF8.self), head: head, report: String(report))
    }

    /// Reads the first chunk of a body, and returns the stored start.
    func leaveEarly() async throws -> HTTPCache.Entry {
        let stores = cache.statistics.stores
        for try await _ in session.transfer(request("bin")).bytes { break }
        while cache.statistics.stores == stores { await Task.yield() }
        return try #require(try await cache.entries().first)
    }
}

extension CacheServerScene {
    func storesConfirmsAndReplaces() async throws {
        try write("first".utf8, "bin", version: 0)
        let first = try await send("bin")
        #expect(first.report == "fwd=uri-miss; stored; ttl=60" && first.body == "first")
        clock.advance(by: 59)
        let second = try await send("bin")
        #expect(second.report == "hit; ttl=1" && second.body == "first" && second.head[.age] == "59")
        clock.advance(by: 1)
        for seconds in [61.0, 61, 0] {
            let third = try await send("bin")
            #expect(third.report == "fwd=stale; fwd-status=304; stored; ttl=60" && third.body == "first")
            #expect(third.head.status == .ok && third.head[.etag] == first.head[.etag])
            #expect(try await send("bin").report == "hit; ttl=60")
            clock.advance(by: seconds)
        }
        try write("other".utf8, "bin", version: 100)
        #expect(try await send("bin").body == "first")
        clock.advance(by: 61)
        let changed = try await send("bin")
        #expect(changed.report == "fwd=stale; stored; ttl=60" && changed.body == "other")
        #expect(changed.head[.etag] != first.head[.etag])
        #expect(try await send("bin").report == "hit; ttl=60")
        #expect(try await cache.entries().count == 1)
        #expect(cache.statistics.validations == 3 && cache.statistics.misses == 2)
    }

    /// - Parameter confirms: Whether the server confirms a compressed response by its tag.
    func storesCompressedTextDecoded(confirms: Bool) async throws {
        let text = PeerInstance.text
        try write(text.utf8, "txt", version: 0)
        let first = try await send("txt")
        #expect(first.report == "fwd=uri-miss; stored; ttl=60" && first.body == text)
        #expect(first.head[.contentEncoding] == nil && first.head[.vary] == "Accept-Encoding")
        let entry = try #require(try await cache.entries().first)
        #expect(entry.size == Int64(text.utf8.count) && entry.fields[.contentEncoding] == nil)
        // The response was compressed: its tag is not that of the file.
        let tag = try #require(entry.fields[.etag])
        #expect(tag.hasPrefix("W/\"") || tag.hasSuffix("-gzip\""))
        #expect(try await send("txt").body == text)
        clock.advance(by: 61)
        #expect(try await send("txt", .head).report == "fwd=stale")
        #expect(try await send("txt").report == "hit; ttl=60")
        for _ in 0..<2 {
            clock.advance(by: 61)
            let again = try await send("txt")
            #expect(again.report == "fwd=stale; \(confirms ? "fwd-status=304; " : "")stored; ttl=60")
            #expect(again.body == text && again.head[.contentEncoding] == nil)
        }
        let part = try await send("txt", .get, [.range: "bytes=0-9"])
        // Ranges of the decoded body would differ from those of the server.
        #expect(part.head.cache?.isHit == false && part.body == String(text.prefix(10)))
        #expect(part.head.status == .partialContent)
        let plain = try await send("txt", .get, [.acceptEncoding: "identity"])
        #expect(plain.report == "fwd=vary-miss; stored; ttl=60" && plain.body == text)
        #expect(try await send("txt").report == "hit; ttl=60")
        #expect(try await cache.entries().count == 2)
    }

    func completesABrokenDownload() async throws {
        let (pattern, other) = (PatternBody(seed: 7, length: 4 << 20), PatternBody(seed: 8, length: 4 << 20))
        try write(pattern.bytes, "bin", version: 0)
        let start = try await leaveEarly()
        #expect(start.completeSize == 4 << 20 && start.size > 0 && start.size < 4 << 20)
        let whole = try await session.transfer(request("bin")).response()
        #expect(whole.value == pattern.data && whole.status == .ok && whole.head.contentLength == 4 << 20)
        #expect(whole.head["Cache-Status"] == "curlew; fwd=partial; fwd-status=206; stored; ttl=60")
        #expect(whole.metrics.responseBodyBytes == 4 << 20 - start.size)
        let (stored, head) = try await session.data(for: request("bin"))
        #expect(stored == pattern.data && head.cache == HTTPCache.Report(hit: .seconds(60)))

        // The file changes before its rest is requested, so the server sends it from the start.
        try await cache.removeAll()
        _ = try await leaveEarly()
        try write(other.bytes, "bin", version: 100)
        let (changed, report) = try await session.data(for: request("bin"))
        #expect(changed == other.data && report["Cache-Status"] == "curlew; fwd=partial; stored; ttl=60")
        #expect(try await cache.entries().map(\.isComplete) == [true])
    }

    func refreshesByHead() async throws {
        try write("first".utf8, "bin", version: 0)
        try await send("bin")
        let fresh = try await send("bin", .head)
        #expect(fresh.report == "hit; ttl=60" && fresh.body.isEmpty && fresh.head.contentLength == 5)
        clock.advance(by: 61)
        #expect(try await send("bin", .head).report == "fwd=stale")
        let confirmed = try await send("bin")
        #expect(confirmed.report == "hit; ttl=60" && confirmed.body == "first")
        // The response to HEAD describes another file, so the stored one is removed.
        try write("longer than the first".utf8, "bin", version: 100)
        clock.advance(by: 61)
        #expect(try await send("bin", .head).head.contentLength == 21)
        let replaced = try await send("bin")
        #expect(replaced.report == "fwd=uri-miss; stored; ttl=60" && replaced.body == "longer than the first")
    }
}

/// The cache with nginx.
@Suite(.enabledIfInstalled(.nginx), .peer(.nginx), .timeLimit(.minutes(5)))
struct CacheNginxTests {
    private func scene(_ route: PeerRoute) throws -> CacheServerScene {
        try CacheServerScene(NginxServer.shared(), route)
    }

    @Test(arguments: [PeerRoute.plain, .http2])
    func fileOfNginxIsStoredConfirmedAndReplaced(_ route: PeerRoute) async throws {
        try await scene(route).storesConfirmsAndReplaces()
    }

    /// nginx weakens the tag of a compressed response, and its 304 has the strong one.
    @Test(arguments: [PeerRoute.plain, .http2])
    func compressedTextOfNginxIsStoredDecoded(_ route: PeerRoute) async throws {
        try await scene(route).storesCompressedTextDecoded(confirms: true)
    }

    @Test(arguments: [PeerRoute.plain, .http2])
    func brokenDownloadFromNginxIsCompleted(_ route: PeerRoute) async throws {
        try await scene(route).completesABrokenDownload()
    }

    @Test(arguments: [PeerRoute.plain, .http2])
    func headToNginxRefreshesTheStoredFile(_ route: PeerRoute) async throws {
        try await scene(route).refreshesByHead()
    }
}

/// The cache with Apache.
@Suite(.enabledIfInstalled(.apache2), .peer(.apache2), .timeLimit(.minutes(5)))
struct CacheApacheTests {
    private func scene(_ route: PeerRoute) throws -> CacheServerScene {
        try CacheServerScene(ApacheServer.shared(), route)
    }

    @Test(arguments: [PeerRoute.plain, .http2])
    func fileOfApacheIsStoredConfirmedAndReplaced(_ route: PeerRoute) async throws {
        try await scene(route).storesConfirmsAndReplaces()
    }

    /// Apache adds "-gzip" to the tag of a compressed response, and does not recognize that tag later.
    @Test(arguments: [PeerRoute.plain, .http2])
    func compressedTextOfApacheIsStoredDecoded(_ route: PeerRoute) async throws {
        try await scene(route).storesCompressedTextDecoded(confirms: false)
    }

    @Test(arguments: [PeerRoute.plain, .http2])
    func brokenDownloadFromApacheIsCompleted(_ route: PeerRoute) async throws {
        try await scene(route).completesABrokenDownload()
    }

    @Test(arguments: [PeerRoute.plain, .http2])
    func headToApacheRefreshesTheStoredFile(_ route: PeerRoute) async throws {
        try await scene(route).refreshesByHead()
    }
}
