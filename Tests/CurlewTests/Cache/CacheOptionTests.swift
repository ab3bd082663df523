// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import CurlewTesting
import FoundationEssentials
import Testing

@testable import Curlew

/// Credentials, invalidation, variants, the `willStore` closure and the options of a cache, in whole transfers.
@Suite(.timeLimit(.minutes(5)))
struct CacheOptionTests {
    @Test func sensitiveFieldsOfTheSessionAreCredentials() async throws {
        let scene = try CacheScene(
            Session.Configuration { $0.redirects.sensitiveFields = ["X-Tenant"] },
            respond: CacheScene.counting([.cacheControl: "max-age=60"]))
        #expect(try await scene.get("/", ["X-Tenant": "a"]).body == "1")
        #expect(try await scene.get("/", ["X-Tenant": "a"]).body == "1")
        #expect(try await scene.get("/", ["X-Tenant": "b"]).body == "2")
        #expect(try await scene.get().body == "3")
    }

    @Test func userInfoIsACredential() async throws {
        let scene = try CacheScene(respond: CacheScene.counting([.cacheControl: "max-age=60"]))
        func url(_ user: String) -> String { "http://\(user)@" + scene.server.url("/").dropFirst("http://".count) }
        #expect(try await scene.send(Request(url("u:1"))).body == "1")
        #expect(try await scene.send(Request(url("u:1"))).body == "1")
        #expect(try await scene.send(Request(url("u:2"))).body == "2")
        #expect(try await scene.get().body == "3")
        #expect(try await scene.cache.entries().allSatisfy { !$0.url.contains("@") })
    }

    @Test func otherMethodsAreNotSentOffline() async throws {
        let scene = try CacheScene(respond: CacheScene.counting())
        let answer = try await scene.send(Request(.post, scene.server.url("/"), options: .cache(.onlyIfCached)))
        #expect(answer.head.status == .gatewayTimeout && answer.report == "fwd=method; detail=only-if-cached")
        #expect(scene.requests == 0)
    }

    /// The caller may have another version than the cache (RFC 9111 §4.3.4).
    @Test func confirmationOfTheCallersCopyLeavesAnotherResponse() async throws {
        let scene = try CacheScene { request in
            request.field("If-None-Match") == "\"2\""
                ? .status(304).field("ETag", "\"2\"").field("Cache-Control", "max-age=20")
                : .text("x").field("ETag", "\"1\"").field("Cache-Control", "max-age=10")
        }
        try await scene.get()
        scene.clock.advance(by: 11)
        #expect(try await scene.get("/", [.ifNoneMatch: "\"2\""]).head.status == .notModified)
        #expect(try await scene.get().head.cache?.isHit == false)
    }

    /// RFC 9111 §4.3.5.
    @Test func headThatContradictsTheStoredResponseRemovesIt() async throws {
        let scene = try CacheScene { request in
            .text("x").field("Cache-Control", "max-age=10").field("ETag", request.method == "HEAD" ? "\"2\"" : "\"1\"")
        }
        try await scene.get()
        scene.clock.advance(by: 10)
        try await scene.send(Request(.head, scene.server.url("/")))
        #expect(try await scene.cache.entries().isEmpty)
    }

    /// RFC 9875 §3.
    @Test func groupOfTheOriginIsInvalidated() async throws {
        let scene = try CacheScene { request in
            request.method == "POST"
                ? .status(204).field("Cache-Group-Invalidation", "\"g\"")
                : .text("x").field("Cache-Control", "max-age=60").field(
                    "Cache-Groups", request.path == "/a" ? "\"g\"" : "\"h\"")
        }
        try await scene.get("/a")
        try await scene.get("/b")
        try await scene.send(Request(.post, scene.server.url("/c")))
        #expect(try await scene.get("/a").report == "fwd=uri-miss; stored; ttl=60")
        #expect(try await scene.get("/b").report == "hit; ttl=60")
        #expect(scene.cache.statistics.invalidations == 1)
    }

    @Test func variantsOfAURLAreBounded() async throws {
        let scene = try CacheScene(respond: CacheScene.counting([.cacheControl: "max-age=60", .vary: "Accept"]))
        for index in 0..<70 {
            try await scene.get("/", [.accept: "\(index)"])
            scene.clock.advance(by: 0.5)
        }
        #expect(try await scene.cache.entries().count == 64)
        #expect(try await scene.get("/", [.accept: "69"]).head.cache?.isHit == true)
        #expect(try await scene.get("/", [.accept: "0"]).head.cache?.isHit == false)
    }

    @Test func oneValidationRunsInTheBackground() async throws {
        let (gate, count) = (Gate(), Lock(0))
        let scene = try CacheScene { _ in
            let number = count.withLock { count in
                count += 1
                return count
            }
            let response = MockResponse.text("\(number)").field(
                "Cache-Control", "max-age=10, stale-while-revalidate=60")
            return number == 1 ? response : response.fault(.stall(gate), at: .start)
        }
        try await scene.get()
        scene.clock.advance(by: 11)
        for _ in 0..<3 { #expect(try await scene.get().report == "hit; ttl=-1; detail=revalidating") }
        while scene.requests < 2 { await Task.yield() }
        // Others would reach the server now.
        for _ in 0..<1000 { await Task.yield() }
        gate.open()
        while scene.cache.statistics.stores < 2 { await Task.yield() }
        try await scene.session.idle()
        #expect(scene.requests == 2)
        #expect(try await scene.get().body == "2")
        // The end of the validation allows the next one.
        scene.clock.advance(by: 11)
        while scene.requests < 3 {
            try await scene.get()
            await Task.yield()
        }
    }

    @Test func programDecidesWhatIsStored() async throws {
        let scene = try CacheScene { options in
            options.willStore = { proposal in
                proposal.tags = ["t"]
                proposal.mapBytes = { $0.map { ByteChunk($0.map { $0 ^ 1 }) } }
                return !proposal.request.url.hasSuffix("/refused")
            }
        } respond: { _ in
            .text("abc").field("Cache-Control", "max-age=60")
        }
        #expect(try await scene.get("/refused").report == "fwd=uri-miss; detail=refused")
        #expect(try await scene.cache.entries().isEmpty)
        #expect(try await scene.get("/a").body == "abc")
        #expect(try await scene.get("/a").body == "`cb")
        let entry = try await scene.cache.entries().first
        #expect(entry?.tags == ["t"] && entry?.fields[.contentLength] == nil)
        #expect(try await scene.cache.remove(tag: "t") == 1)
    }

    @Test(arguments: [false, true]) func queryIsIgnoredIfTheResponseSaysSo(_ isOn: Bool) async throws {
        let respond = CacheScene.counting([.cacheControl: "max-age=60", "No-Vary-Search": "params=(\"utm\")"])
        let scene = try CacheScene {
            $0.usesNoVarySearch = isOn
        } respond: {
            respond($0)
        }
        #expect(try await scene.get("/?utm=1&a=1").body == "1")
        #expect(try await scene.get("/?utm=1&a=1").body == "1")
        #expect(try await scene.get("/?a=1&utm=2").body == (isOn ? "1" : "2"))
        #expect(try await scene.get("/?a=2").body == (isOn ? "2" : "3"))
        #expect(try await scene.cache.remove(url: scene.server.url("/?utm=1&a=1")) == 1)
    }

    @Test func anonymousResponseIsNotForRequestsWithCredentials() async throws {
        let scene = try CacheScene(respond: CacheScene.counting([.cacheControl: "max-age=60"]))
        try await scene.get()
        #expect(
            try await scene.get("/", [.authorization: "Bearer a"]).report
                == "fwd=miss; stored; ttl=60; detail=credentials")
        var request = Request(scene.server.url("/"))
        request.interceptors = [.bearer("b", allowsPlainHTTP: true)]
        #expect(try await scene.send(request).body == "3")
        request.options.isAnonymous = true
        #expect(try await scene.send(request).body == "1")
    }

    @Test func staleResponseWithoutAValidatorReplacesAnError() async throws {
        let isBroken = Lock(false)
        let scene = try CacheScene { _ in
            isBroken.withLock { $0 }
                ? .status(503) : .text("x").field("Cache-Control", "max-age=10, stale-if-error=60")
        }
        try await scene.get()
        isBroken.withLock { $0 = true }
        scene.clock.advance(by: 20)
        #expect(try await scene.get().report == "fwd=stale; fwd-status=503; ttl=-10; detail=error")
        #expect(try await scene.send(Request(.head, scene.server.url("/"))).head.status == .ok)
        scene.clock.advance(by: 60)
        #expect(try await scene.get().head.status == .serviceUnavailable)
    }

    @Test func closureKeepsADirectiveThatAConfirmationRepeats() async throws {
        let scene = try CacheScene { options in
            options.willStore = { proposal in
                proposal.head = proposal.head.with(
                    fields: proposal.head.fields.merging([.cacheControl: "max-age=60"]))
                return true
            }
        } respond: { request in
            request.field("If-None-Match") == nil
                ? .text("x").field("ETag", "\"1\"").field("Cache-Control", "no-cache")
                : .status(304).field("ETag", "\"1\"").field("Cache-Control", "no-cache")
        }
        for _ in 0..<2 { try await scene.get() }
        #expect(scene.requests == 1)
        scene.clock.advance(by: 61)
        for _ in 0..<2 { try await scene.get() }
        #expect(scene.requests == 2)
    }

    /// The body of the stored response is used before the entry is removed.
    @Test func confirmedResponseThatMustNotBeStoredIsUsedOnce() async throws {
        let scene = try CacheScene { request in
            request.field("If-None-Match") == nil
                ? .text("x").field("ETag", "\"1\"").field("Cache-Control", "max-age=10")
                : .status(304).field("ETag", "\"1\"").field("Cache-Control", "no-store")
        }
        try await scene.get()
        scene.clock.advance(by: 10)
        let answer = try await scene.get()
        #expect(answer.body == "x" && answer.report == "fwd=stale; fwd-status=304")
        #expect(answer.head.cache?.isFromCache == true)
        #expect(scene.requests == 2)
        #expect(try await scene.cache.entries().isEmpty)
    }

    @Test func downloadsAndContentBypassTheCache() async throws {
        let scene = try CacheScene(respond: CacheScene.counting([.cacheControl: "max-age=60"]))
        try await scene.get()
        let request = Request(.get, scene.server.url("/"), body: .text("x"))
        #expect(try await scene.send(request).report == "fwd=bypass")
        let directory = "/tmp/curlew-cache-download-\(UInt64.random(in: 0 ... .max))"
        defer { try? FileManager.default.removeItem(atPath: directory) }
        _ = try await scene.session.download(Request(scene.server.url("/")), to: .file(directory))
        #expect(scene.requests == 3)
        #expect(try await scene.get().body == "1")
    }

    @Test func ephemeralCopyHasACacheOfItsOwn() async throws {
        let scene = try CacheScene(respond: CacheScene.counting([.cacheControl: "max-age=60"]))
        try await scene.get()
        let shared = scene.session.copy()
        #expect(shared.cache === scene.cache)
        let ephemeral = scene.session.copy { $0.isEphemeral = true }
        #expect(ephemeral.cache != nil && ephemeral.cache !== scene.cache)
        _ = try await ephemeral.data(for: Request(scene.server.url("/")))
        #expect(scene.requests == 2)
    }
}
