// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewEngine
import CurlewSupport
import CurlewTesting
import FoundationEssentials
import Testing

@testable import Curlew

/// The cache in whole transfers.
@Suite(.timeLimit(.minutes(5)))
struct CacheTransferTests {
    @Test(arguments: Taking.allCases)
    func freshResponseNeedsNoServer(_ way: Taking) async throws {
        let scene = try CacheScene(respond: CacheScene.counting([.cacheControl: "max-age=60", .etag: "\"1\""]))
        let request = Request(scene.server.url("/a"))
        #expect(try await way(request, by: scene.session).body == Data("1".utf8))
        let second = try await way(request, by: scene.session)
        #expect(second.body == Data("1".utf8))
        #expect(scene.requests == 1)
        if let head = second.head {
            #expect(head.status == .ok && head.url == request.url && head[.etag] == "\"1\"" && head[.age] == "0")
            #expect(head["Cache-Status"] == "curlew; hit; ttl=60")
            #expect(head.cache == HTTPCache.Report(hit: .seconds(60)))
        }
        scene.clock.advance(by: 59)
        #expect(try await way(request, by: scene.session).body == Data("1".utf8))
        scene.clock.advance(by: 1)
        #expect(try await way(request, by: scene.session).body == Data("2".utf8))
        #expect(scene.requests == 2)
    }

    @Test func eventHasTheReport() async throws {
        let scene = try CacheScene(respond: CacheScene.counting([.cacheControl: "max-age=60"]))
        for isHit in [false, true] {
            let transfer = scene.session.transfer(Request(scene.server.url("/")))
            let events = transfer.events
            let response = try await transfer.response()
            var reports: [HTTPCache.Report] = []
            for await event in events { if case .cached(let report) = event.kind { reports.append(report) } }
            #expect(reports == [try #require(response.head.cache)] && reports.first?.isHit == isHit)
        }
    }

    @Test func reportNamesEachReason() async throws {
        let scene = try CacheScene { request in
            switch request.path {
            case "/etag":
                request.field("If-None-Match") == "\"1\""
                    ? .status(304).field("Cache-Control", "max-age=5").field("ETag", "\"1\"")
                    : .text("etag").field("Cache-Control", "max-age=10").field("ETag", "\"1\"")
            case "/vary": .text("vary").field("Cache-Control", "max-age=10").field("Vary", "Accept-Language")
            case "/private": .text("x").field("Cache-Control", "no-store")
            default: .text("x")
            }
        }
        #expect(try await scene.get("/etag").report == "fwd=uri-miss; stored; ttl=10")
        scene.clock.advance(by: 4)
        #expect(try await scene.get("/etag").report == "hit; ttl=6")
        scene.clock.advance(by: 7)
        let validated = try await scene.get("/etag")
        #expect(validated.report == "fwd=stale; fwd-status=304; stored; ttl=5" && validated.body == "etag")
        #expect(validated.head.status == .ok && validated.head[.cacheControl] == "max-age=5")
        #expect(try await scene.get("/etag").report == "hit; ttl=5")
        #expect(try await scene.get("/vary", [.acceptLanguage: "de"]).report == "fwd=uri-miss; stored; ttl=10")
        #expect(try await scene.get("/vary", [.acceptLanguage: "en"]).report == "fwd=vary-miss; stored; ttl=10")
        #expect(try await scene.get("/vary", [.acceptLanguage: "de"]).report == "hit; ttl=10")
        #expect(try await scene.get("/private").report == "fwd=uri-miss; detail=no-store")
        #expect(try await scene.get("/other").report == "fwd=uri-miss; stored; ttl=0")
        #expect(try await scene.get("/other").report == "fwd=stale; stored; ttl=0; detail=no-validator")
        let posted = try await scene.send(Request(.post, scene.server.url("/etag")))
        #expect(posted.report == "fwd=method")
        #expect(try await scene.get("/etag").report == "fwd=uri-miss; stored; ttl=10")
        let statistics = scene.cache.statistics
        #expect(statistics.hits == 3 && statistics.validations == 1 && statistics.invalidations == 1)
        #expect(statistics.stores == 6 && statistics.misses == 7 && statistics.failures == 0)
    }

    // MARK: Policies

    @Test func policiesDecideBetweenCacheAndServer() async throws {
        let scene = try CacheScene(respond: CacheScene.counting([.cacheControl: "max-age=10"]))
        #expect(try await scene.get(options: .cache(.onlyIfCached)).head.status == .gatewayTimeout)
        #expect(scene.requests == 0)
        #expect(try await scene.get(options: .cache(.preferCache)).body == "1")
        scene.clock.advance(by: 100)
        #expect(try await scene.get(options: .cache(.preferCache)).report == "hit; ttl=-90; detail=accepted-stale")
        #expect(try await scene.get(options: .cache(.onlyIfCached)).body == "1")
        #expect(try await scene.get(options: .cache(.standard)).body == "2")
        #expect(try await scene.get(options: .cache(.reload)).body == "3")
        #expect(try await scene.get().body == "3")
        #expect(scene.server.requests.last?.field("Cache-Control") == nil)
        #expect(try await scene.get(options: .cache(.reloadFromOrigin)).body == "4")
        #expect(scene.server.requests.last?.field("Cache-Control") == "no-cache")
        #expect(scene.server.requests.last?.field("Pragma") == "no-cache")
        #expect(try await scene.get().body == "4")
        #expect(try await scene.get(options: .cache(.revalidate)).report.hasPrefix("fwd=request"))
        #expect(scene.requests == 5)
    }

    @Test func policyOfTheSessionAppliesUnlessTheRequestHasItsOwn() async throws {
        let scene = try CacheScene(
            Session.Configuration { $0.cachePolicy = .reload },
            respond: CacheScene.counting([.cacheControl: "max-age=10"]))
        try await scene.get()
        #expect(try await scene.get().body == "2")
        #expect(try await scene.get(options: .cache(.standard)).body == "2")
        let client = Client(try BaseURL(scene.server.origin), session: scene.session)
            .with { $0.options.cache = .preferCache }
        #expect(try await client.get("/", using: .text) == "2")
        #expect(try await client.get("/", options: .cache(.reload), using: .text) == "3")
    }

    @Test func clientNamesTheMissingResponse() async throws {
        let scene = try CacheScene(
            Session.Configuration { $0.retry = .standard }, respond: CacheScene.counting([.cacheControl: "max-age=10"]))
        let client = Client(try BaseURL(scene.server.origin), session: scene.session)
        let error = await #expect(throws: NetworkError.self) {
            try await client.get("/", options: .cache(.onlyIfCached), using: .text)
        }
        #expect(error?.kind == .cacheMiss)
        #expect(try await scene.get("/", options: .cache(.onlyIfCached)).head.earlier.isEmpty)
        #expect(scene.requests == 0)
        #expect(try await scene.get("/", [.cacheControl: "only-if-cached"]).head.status == .gatewayTimeout)
    }

    // MARK: Validation

    @Test func changedResponseReplacesTheStoredOne() async throws {
        let tag = Lock("\"1\"")
        let scene = try CacheScene { request in
            let current = tag.withLock { $0 }
            if request.field("If-None-Match") == current { return .status(304).field("ETag", current) }
            return .text(current).field("ETag", current).field("Cache-Control", "no-cache")
        }
        #expect(try await scene.get().body == "\"1\"")
        #expect(try await scene.get().report == "fwd=miss; fwd-status=304; stored; ttl=0; detail=no-cache")
        tag.withLock { $0 = "\"2\"" }
        #expect(try await scene.get().body == "\"2\"")
        #expect(try await scene.cache.entries().count == 1)
        #expect(scene.server.requests.map { $0.field("If-None-Match") } == [nil, "\"1\"", "\"1\""])
    }

    @Test func confirmationOfAnotherResponseIsNotUsed() async throws {
        let scene = try CacheScene { request in
            request.field("If-None-Match") == nil
                ? .text("new").field("ETag", "\"2\"") : .status(304).field("ETag", "\"3\"")
        }
        try await scene.get()
        let second = try await scene.get()
        #expect(second.body == "new" && second.head.status == .ok)
        #expect(scene.requests == 3)
    }

    @Test func requestOfTheCallerValidatesByItself() async throws {
        let scene = try CacheScene { request in
            request.field("If-None-Match") == "\"1\""
                ? .status(304).field("ETag", "\"1\"").field("Cache-Control", "max-age=20")
                : .text("x").field("ETag", "\"1\"").field("Cache-Control", "max-age=10")
        }
        try await scene.get()
        let fresh = try await scene.get("/", [.ifNoneMatch: "\"1\""])
        #expect(fresh.head.status == .notModified && fresh.body.isEmpty && fresh.report == "hit; ttl=10")
        scene.clock.advance(by: 11)
        let stale = try await scene.get("/", [.ifNoneMatch: "\"1\""])
        #expect(stale.head.status == .notModified && stale.report == "fwd=stale")
        #expect(try await scene.get().report == "hit; ttl=20")
        #expect(scene.requests == 2)
    }

    @Test func headUpdatesAndUsesTheStoredResponse() async throws {
        let scene = try CacheScene { request in
            request.method == "HEAD"
                ? MockResponse.text("x").field("Cache-Control", "max-age=99").field("ETag", "\"1\"")
                : .text("x").field("Cache-Control", "max-age=10").field("ETag", "\"1\"")
        }
        try await scene.get()
        let head = try await scene.send(Request(.head, scene.server.url("/")))
        #expect(head.report == "hit; ttl=10" && head.body.isEmpty && head.head.contentLength == 1)
        scene.clock.advance(by: 10)
        #expect(try await scene.send(Request(.head, scene.server.url("/"))).report == "fwd=stale")
        #expect(try await scene.get().report == "hit; ttl=99")
        #expect(scene.requests == 2)
    }

    // MARK: Stale responses

    @Test func staleResponseIsUsedWhileItIsValidated() async throws {
        let scene = try CacheScene(
            respond: CacheScene.counting([.cacheControl: "max-age=10, stale-while-revalidate=60"]))
        try await scene.get()
        scene.clock.advance(by: 11)
        let stale = try await scene.get()
        #expect(stale.body == "1" && stale.report == "hit; ttl=-1; detail=revalidating")
        while scene.requests < 2 { await Task.yield() }
        try await scene.session.idle()
        #expect(try await scene.get().report == "hit; ttl=10")
        #expect(try await scene.get().body == "2")
        #expect(scene.requests == 2)
    }

    @Test(arguments: [500, 502, 503, 504])
    func staleResponseReplacesAnError(_ status: Int) async throws {
        let isBroken = Lock(false)
        let scene = try CacheScene { _ in
            isBroken.withLock { $0 }
                ? .status(status)
                : .text("x").field("Cache-Control", "max-age=10, stale-if-error=60").field("ETag", "\"1\"")
        }
        try await scene.get()
        isBroken.withLock { $0 = true }
        scene.clock.advance(by: 20)
        let stale = try await scene.get()
        #expect(stale.body == "x" && stale.report == "fwd=stale; fwd-status=\(status); ttl=-10; detail=error")
        scene.clock.advance(by: 60)
        #expect(try await scene.get().head.status.code == status)
    }

    @Test func staleResponseReplacesALostConnection() async throws {
        let scene = try CacheScene { request in
            request.field("If-None-Match") == nil
                ? .text("x").field("Cache-Control", "max-age=1, stale-if-error=60").field("ETag", "\"1\"")
                : .text("y").fault(.close, at: .start)
        }
        try await scene.get()
        scene.clock.advance(by: 5)
        #expect(try await scene.get().body == "x")
    }

    // MARK: Credentials

    @Test func credentialsNeverShareAResponse() async throws {
        let scene = try CacheScene(respond: CacheScene.counting([.cacheControl: "max-age=60"]))
        for (path, name) in [("/1", .authorization), ("/2", "X-API-Key"), ("/3", .cookie)] as [(String, HeaderName)] {
            let first = try await scene.get(path, [name: "secret"]).body
            #expect(try await scene.get(path, [name: "secret"]).body == first)
            #expect(try await scene.get(path, [name: "other"]).body != first)
            #expect(try await scene.get(path).body != first)
        }
        let entries = try await scene.cache.entries()
        let text = entries.map { entry in
            let values = (Array(entry.fields) + Array(entry.requestFields)).map(\.value)
            return "\(entry.url) \(values) \(entry.credentials ?? "")"
        }.joined()
        #expect(entries.count == 9 && !text.contains("secret"))
    }

    @Test func responseBehindAnAuthenticatorIsStoredOnlyIfItIsPublic() async throws {
        let control = Lock("max-age=60")
        let scene = try CacheScene { _ in .text("x").field("Cache-Control", control.withLock { $0 }) }
        var request = Request(scene.server.url("/"))
        request.interceptors = [.bearer("secret", allowsPlainHTTP: true)]
        #expect(try await scene.send(request).report == "fwd=uri-miss; detail=credentials")
        control.withLock { $0 = "max-age=60, public" }
        #expect(try await scene.send(request).report == "fwd=uri-miss; stored; ttl=60")
        #expect(try await scene.get().report == "hit; ttl=60")
    }

    @Test func cookiesOfTheJarAreKnownToVary() async throws {
        let jar = CookieJar()
        let scene = try CacheScene(
            cookies: jar, respond: CacheScene.counting([.cacheControl: "max-age=60", .vary: "Cookie"]))
        try jar.set(field: "a=1", from: scene.server.url("/"))
        #expect(try await scene.get().body == "1")
        #expect(try await scene.get().report == "hit; ttl=60")
        try jar.set(field: "a=2", from: scene.server.url("/"))
        #expect(try await scene.get().report == "fwd=vary-miss; stored; ttl=60")
        #expect(try await scene.cache.entries().allSatisfy { $0.requestFields.allSatisfy { !$0.value.contains("a=") } })
    }

    @Test func acceptEncodingOfTheSessionIsKnownToVary() async throws {
        let scene = try CacheScene(
            respond: CacheScene.counting([.cacheControl: "max-age=60", .vary: "Accept-Encoding, User-Agent"]))
        try await scene.get()
        #expect(try await scene.get().report == "hit; ttl=60")
        #expect(try await scene.get(options: [.decompression(.off)]).report == "fwd=vary-miss; stored; ttl=60")
    }
}
