// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewSupport
import CurlewTesting
import FoundationEssentials
import Glibc
import Testing

@testable import CurlewMedia

/// A temporary directory, which is removed with this object.
final class TestDirectory: Sendable {
    let path: String

    init() {
        var template = Array("/tmp/curlew-media-XXXXXX".utf8CString)
        path = String(cString: mkdtemp(&template))
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    /// The names of the files in the cache, without its lock.
    var names: [String] {
        let all = (try? FileManager.default.contentsOfDirectory(atPath: path + "/media")) ?? []
        return all.filter { $0 != "lock" }.sorted()
    }
}

/// A server with one file, and a cache that reads it.
final class MediaBench: Sendable {
    let directory = TestDirectory()
    let server: MockServer
    let session: Session
    let resource: Lock<RangeResource>
    /// A change of a response before it is sent.
    ///
    /// It is a struct, because each access to a bare closure in a lock would wrap the closure once more.
    private struct Change: Sendable {
        var body: @Sendable (RecordedRequest, MockResponse) -> MockResponse = { $1 }
    }

    private let changing = Lock(Change())

    init(_ length: Int = 3_000_000, tag: String? = "\"1\"", flaws: Set<RangeResource.Flaw> = []) throws {
        let resource = Lock(RangeResource(PatternBody(seed: 7, length: length), tag: tag, flaws: flaws))
        let changing = changing
        self.resource = resource
        server = try MockServer { request in
            let response = resource.withLock { $0 }.response(to: request).field("X-Path", request.path)
            return changing.withLock { $0 }.body(request, response)
        }
        session = Session { $0.retry = .never }
    }

    deinit { server.stop() }

    /// Changes each response from now on.
    func change(_ body: @escaping @Sendable (RecordedRequest, MockResponse) -> MockResponse) {
        changing.withLock { $0.body = body }
    }

    var body: PatternBody { resource.withLock { $0.body } }

    var path: String { directory.path + "/media" }

    /// The URL of the file.
    var url: String { server.url("/film.mp4") }

    func cache(_ configuration: MediaCache.Configuration = MediaCache.Configuration()) async throws -> MediaCache {
        try await MediaCache(at: path, session: session, configuration: configuration)
    }

    func media(_ cache: MediaCache, _ path: String = "/film.mp4") async throws -> MediaCache.Media {
        try await cache.media(for: Request(server.url(path)))
    }

    /// Replaces the file on the server.
    func replace(seed: UInt64, length: Int? = nil, tag: String?) {
        resource.withLock { resource in
            resource.body = PatternBody(seed: seed, length: length ?? resource.body.length)
            resource.tag = tag
        }
    }

    /// The requested ranges, "whole" for a request without one.
    var ranges: [String] {
        server.requests.filter { $0.method == "GET" }.map {
            $0.field("Range").map { String($0.dropFirst(6)) } ?? "whole"
        }
    }

    /// Waits until a condition holds that work on another thread brings about.
    func wait(until condition: @Sendable () -> Bool) async {
        while !condition(), !Task.isCancelled { await Task.yield() }
    }

    /// Reads a range, and checks each byte against the body.
    func check(
        _ media: MediaCache.Media, _ range: Range<Int64>? = nil, against body: PatternBody? = nil,
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        let body = body ?? self.body
        var position = Int(range?.lowerBound ?? 0)
        let end = min(range.map { Int($0.upperBound) } ?? body.length, body.length)
        for try await chunk in range.map({ media.bytes($0) }) ?? media.bytes() {
            guard position + chunk.count <= end, body.matches(chunk, at: position) else {
                Issue.record("wrong bytes at \(position)", sourceLocation: sourceLocation)
                return
            }
            position += chunk.count
        }
        #expect(position == end, sourceLocation: sourceLocation)
    }
}
