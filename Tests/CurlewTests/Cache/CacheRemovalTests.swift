// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewTesting
import FoundationEssentials
import Testing

@testable import Curlew

/// Removals while a response is requested: it is stored only if it is not one of those that were removed.
@Suite(.timeLimit(.minutes(5)))
struct CacheRemovalTests {
    enum Removal: Sendable, CaseIterable {
        case all, ownURL, ownURLByPost
        case otherURL, otherURLByPost

        var isOfTheResponse: Bool { self == .all || self == .ownURL || self == .ownURLByPost }
    }

    /// The removal happens after the request has passed the cache, and before the head of the response arrives.
    @Test(arguments: Removal.allCases) func removalIsAboutEarlierRequests(_ removal: Removal) async throws {
        let scene = try CacheScene(respond: CacheScene.counting([.cacheControl: "max-age=60"]))
        var request = Request(scene.server.url("/a"))
        request.interceptors = [
            ClosureInterceptor(scope: .attempt) { request, _, next in
                switch removal {
                case .all: try await scene.cache.removeAll()
                case .ownURL: try await scene.cache.remove(url: scene.server.url("/a#x"))
                case .otherURL: try await scene.cache.remove(url: scene.server.url("/b"))
                case .ownURLByPost: try await scene.send(Request(.post, scene.server.url("/a")))
                case .otherURLByPost: try await scene.send(Request(.post, scene.server.url("/b")))
                }
                return try await next(request)
            }
        ]
        try await scene.send(request)
        #expect(try await scene.cache.entries().isEmpty == removal.isOfTheResponse)
        #expect(try await scene.get("/a").head.cache?.isHit == !removal.isOfTheResponse)
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
