// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import CurlewTesting
import FoundationEssentials
import Testing

@testable import Curlew

/// Proxies in the environment that a closure changes, on real sockets.
///
/// `server.test` has no address, so only a proxy reaches it.
@Suite(.timeLimit(.minutes(5)))
struct ProxyEnvironmentTests {
    /// Returns a session whose environment has `http_proxy`.
    private func session(_ proxy: MockProxy, _ policy: Proxy.Policy) -> Session {
        let environment = ProxyEnvironment { $0 == "http_proxy" ? proxy.url : nil }
        let configuration = Session.Configuration { $0.proxy = policy }
        return Session(core: SessionCore(configuration, trust: SystemTrust(), environment: environment))
    }

    @Test func closureSetsTheTrustOfTheProxy() async throws {
        let authority = try TestAuthority()
        let server = try MockServer { _ in .text("ok") }
        let mock = try MockProxy(.http, tls: authority.issue())
        let roots = try CustomRoots(pem: authority.certificatePEM)
        let trusting = Proxy.Policy.environment { $0.trust = roots }
        var request = Request("http://server.test:\(server.port)/")
        let good = session(mock, trusting)
        for _ in 0..<2 {
            let metrics = try await good.transfer(request).response().metrics
            #expect(metrics.proxy?.reason == .variable("http_proxy"))
        }
        #expect(mock.connectionCount == 1)
        let plain = session(mock, .environment)
        let error = try await networkError { try await plain.data(for: request) }
        #expect(error.kind == .untrusted && error.message.contains("(http_proxy)"))
        request.options.proxy = trusting
        #expect(try await plain.data(for: request).0 == Data("ok".utf8))
    }

    @Test func closureChangesTheProxyOfEachRequest() async throws {
        let server = try MockServer { _ in .text("ok") }
        let mock = try MockProxy(.http)
        let token = Lock("first")
        let session = session(
            mock,
            .environment { proxy in proxy.fields[.proxyAuthorization] = token.withLock { "Bearer \($0)" } })
        let request = Request("http://server.test:\(server.port)/")
        _ = try await session.data(for: request)
        token.withLock { $0 = "second" }
        _ = try await session.data(for: request)
        #expect(mock.requests.map { $0.field("Proxy-Authorization") } == ["Bearer first", "Bearer second"])
    }
}
