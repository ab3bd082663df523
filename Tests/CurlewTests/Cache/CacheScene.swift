// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import CurlewTesting
import FoundationEssentials
import Testing

@testable import Curlew

/// A session with a cache in memory, a server and a clock that the test sets.
struct CacheScene {
    let server: MockServer
    let clock = TestTime(Date(timeIntervalSince1970: CacheCase.start))
    let cache: HTTPCache
    let session: Session

    init(
        store: any CacheStore = HTTPCache.MemoryStore(pressure: nil), tls: TestIdentity? = nil,
        _ configuration: Session.Configuration = Session.Configuration(), trust: any TrustEvaluator = SystemTrust(),
        cookies: CookieJar? = CookieJar(), interceptors: [any Interceptor] = [],
        _ configure: (inout HTTPCache.Options) -> Void = { _ in },
        respond: @escaping @Sendable (RecordedRequest) -> MockResponse
    ) throws {
        server = try MockServer(tls: tls, respond)
        var options = HTTPCache.Options()
        configure(&options)
        let clock = clock
        cache = HTTPCache(options, in: store) { clock.now }
        session = Session(
            configuration, trust: trust, interceptors: interceptors, cookies: cookies, cache: cache)
    }

    struct Answer {
        var body: String
        var head: ResponseHead
        /// The report as text, without the name of the cache.
        var report: String
    }

    @discardableResult
    func get(_ path: String = "/", _ fields: HeaderFields = [:], options: Request.Options = []) async throws -> Answer {
        try await send(Request(server.url(path), fields: fields, options: options))
    }

    @discardableResult
    func send(_ request: Request) async throws -> Answer {
        let (data, head) = try await session.data(for: request)
        let report = head.cache.map { $0.description.dropFirst("curlew; ".count) } ?? ""
        return Answer(body: String(decoding: data, as: UTF8.self), head: head, report: String(report))
    }

    /// The number of requests that the server has received.
    var requests: Int { server.requestCount }

    /// Returns a function that numbers its responses.
    static func counting(_ fields: HeaderFields = [:], status: Int = 200)
        -> @Sendable (RecordedRequest) -> MockResponse
    {
        let count = Lock(0)
        return { _ in
            let number = count.withLock { count in
                count += 1
                return count
            }
            return fields.reduce(MockResponse.text("\(number)", status: status)) {
                $0.field($1.name.rawValue, $1.value)
            }
        }
    }
}
