// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting
import FoundationEssentials
import Testing

/// Connections and TLS sessions made under one evaluator never serve another; equal evaluators share them.
@Suite(.timeLimit(.minutes(1)))
struct TrustDomainTests {
    /// Judges as it was told, and writes down what it was shown.
    private struct Watcher: TrustEvaluator {
        let name: String
        var refuses = false
        var roots = TrustRoots.only([])
        let seen: AsyncStream<PeerIdentity>.Continuation

        func evaluate(_ peer: PeerIdentity) throws(TrustFailure) {
            seen.yield(peer)
            if refuses { throw TrustFailure(TrustFailure.Rule(rawValue: "mood"), "not today") }
        }

        static func == (one: Watcher, other: Watcher) -> Bool {
            one.name == other.name && one.refuses == other.refuses && one.roots == other.roots
        }

        func hash(into hasher: inout Hasher) { hasher.combine(name) }
    }

    private func request(_ server: MockServer, _ trust: any TrustEvaluator) -> Request {
        var request = Request(server.url("/"))
        request.trust = trust
        return request
    }

    @Test func anEvaluatorIsShownTheServer() async throws {
        let authority = try TestAuthority()
        let intermediate = try authority.intermediate()
        let identity = try intermediate.issue()
        let server = try MockServer(tls: identity) { _ in .text("x") }
        let (peers, seen) = AsyncStream<PeerIdentity>.makeStream()
        let session = Session()
        let roots = TrustRoots.only([authority.certificateDER])
        for (name, host) in [("a", "localhost"), ("b", "127.0.0.1")] {
            var request = Request("https://\(host):\(server.port)/")
            request.trust = Watcher(name: name, roots: roots, seen: seen)
            _ = try await session.data(for: request)
            _ = try await session.data(for: request)
        }
        seen.finish()
        let all = await peers.reduce(into: [PeerIdentity]()) { $0.append($1) }
        #expect(all.map(\.host) == ["localhost", "127.0.0.1"])
        for peer in all {
            #expect(peer.port == Int(server.port))
            #expect(peer.certificates == [identity.certificateDER, intermediate.certificateDER])
            #expect(peer.verifiedChain == peer.certificates + [authority.certificateDER])
            #expect(peer.chainError == nil && peer.isHostNamed)
        }
    }

    @Test func anEvaluatorIsToldWhatIsWrong() async throws {
        let identity = try TestAuthority().issue(hosts: ["elsewhere.test"])
        let server = try MockServer(tls: identity) { _ in .text("x") }
        let (peers, seen) = AsyncStream<PeerIdentity>.makeStream()
        let session = Session()
        #expect(try await session.data(for: request(server, Watcher(name: "lax", seen: seen))).1.status == .ok)
        let error = try await networkError {
            try await session.data(for: request(server, Watcher(name: "strict", refuses: true, seen: seen)))
        }
        #expect(error.kind == .untrusted && error.phase == .securing)
        #expect(error.cause as? TrustFailure == TrustFailure(TrustFailure.Rule(rawValue: "mood"), "not today"))
        seen.finish()
        let all = await peers.reduce(into: [PeerIdentity]()) { $0.append($1) }
        #expect(all.count == 2)
        for peer in all {
            #expect(peer.certificates == [identity.certificateDER] && peer.verifiedChain.isEmpty)
            #expect(peer.chainError != nil && !peer.isHostNamed)
        }
        #expect(server.requestCount == 1)
    }

    @Test func strictNeverUsesWhatLaxOpened() async throws {
        let server = try MockServer(tls: TestIdentity.selfSigned()) { _ in .text("x") }
        let session = Session()
        let lax = InsecureTrust(reason: "test")
        for _ in 0..<2 { _ = try await session.data(for: request(server, lax)) }
        #expect(server.connectionCount == 1 && server.openConnections == 1)
        for _ in 0..<3 {
            let error = try await networkError { try await session.data(for: request(server, SystemTrust())) }
            #expect(error.kind == .untrusted)
        }
        #expect(server.requestCount == 2)
        _ = try await session.data(for: request(server, lax))
        #expect(server.requests.map(\.connection) == [1, 1, 1])
    }

    @Test func equalEvaluatorsShareConnections() async throws {
        let authority = try TestAuthority()
        let server = try MockServer(tls: authority.issue()) { _ in .text("x") }
        let session = Session(trust: CustomRoots(pem: authority.certificatePEM))
        _ = try await session.data(for: Request(server.url("/")))
        _ = try await session.data(for: request(server, CustomRoots(pem: authority.certificatePEM)))
        #expect(server.connectionCount == 1)
        let more = CustomRoots(pem: authority.certificatePEM, addingToSystem: true)
        _ = try await session.data(for: request(server, more))
        _ = try await session.data(for: request(server, InsecureTrust(reason: "one")))
        _ = try await session.data(for: request(server, InsecureTrust(reason: "two")))
        _ = try await session.data(for: request(server, InsecureTrust(reason: "one")))
        #expect(server.connectionCount == 4)
        #expect(server.requests.allSatisfy { $0.tls?.isResumed == false || $0.ordinal > 1 })
    }

    @Test(arguments: [SessionConfiguration.TLS.Version.v1_2, .v1_3])
    func sessionsAreResumedWithinADomainOnly(_ version: SessionConfiguration.TLS.Version) async throws {
        let authority = try TestAuthority()
        let server = try MockServer(tls: authority.issue()) { _ in .text("x").closing() }
        let session = Session(trust: CustomRoots(pem: authority.certificatePEM)) { $0.tls.maximumVersion = version }
        var resumed: [Bool] = []
        for trust in [nil, nil, InsecureTrust(reason: "a"), InsecureTrust(reason: "b"), nil] as [InsecureTrust?] {
            var request = Request(server.url("/"))
            if let trust { request.trust = trust }
            let metrics = try await session.transfer(request).response().metrics
            #expect(metrics.tlsVersion == "TLSv\(version.rawValue)")
            #expect(metrics.tlsCipher?.isEmpty == false)
            #expect(!metrics.isConnectionReused)
            resumed.append(metrics.isTLSSessionResumed)
        }
        #expect(resumed == [false, true, false, false, true])
        #expect(server.requests.map { $0.tls?.isResumed } == resumed)
        #expect(server.connectionCount == 5)
    }

    @Test func resetForgetsTLSSessions() async throws {
        let authority = try TestAuthority()
        let server = try MockServer(tls: authority.issue()) { _ in .text("x").closing() }
        let session = Session(trust: CustomRoots(pem: authority.certificatePEM))
        var resumed: [Bool?] = []
        for round in 0..<3 {
            if round == 2 { await session.reset(.connections) }
            let metrics = try await session.transfer(Request(server.url("/"))).response().metrics
            resumed.append(metrics.isTLSSessionResumed)
        }
        #expect(resumed == [false, true, false])
    }

    @Test func manyDomainsComeAndGo() async throws {
        let server = try MockServer(tls: TestIdentity.selfSigned()) { _ in .text("x") }
        let session = Session()
        for round in 0..<2 {
            for number in 0..<20 {
                let trust = InsecureTrust(reason: "\(number)")
                #expect(try await session.data(for: request(server, trust)).1.status == .ok, "\(round)")
            }
        }
        #expect(server.requestCount == 40)
        try await session.shutdown()
        await server.waitUntil(openConnections: 0)
    }
}
