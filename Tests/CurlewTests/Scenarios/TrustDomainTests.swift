// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewTesting
import FoundationEssentials
import Testing

@testable import Curlew
@testable import CurlewEngine

/// Connections and TLS sessions of one evaluator never serve another; equal evaluators share them.
@Suite(.timeLimit(.minutes(5)))
struct TrustDomainTests {
    /// Accepts or refuses every peer as configured, and records the peers.
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

    @Test func evaluatorReceivesThePeerIdentity() async throws {
        let authority = try TestAuthority()
        let intermediate = try authority.intermediate()
        let identity = try intermediate.issue()
        let server = try MockServer(tls: identity) { _ in .text("x") }
        let (peers, seen) = AsyncStream<PeerIdentity>.makeStream()
        let session = Session()
        let roots = TrustRoots.only([try Certificate(der: authority.certificateDER)])
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
            #expect(peer.certificates.map(\.der) == [identity.certificateDER, intermediate.certificateDER])
            #expect(try peer.verifiedChain == peer.certificates + [Certificate(der: authority.certificateDER)])
            #expect(peer.chainError == nil && peer.isHostNamed)
        }
    }

    @Test func evaluatorReceivesChainAndHostErrors() async throws {
        let identity = try TestAuthority().issue(hosts: ["elsewhere.test"])
        let server = try MockServer(tls: identity) { _ in .text("x") }
        let (peers, seen) = AsyncStream<PeerIdentity>.makeStream()
        let session = Session()
        #expect(try await session.data(for: request(server, Watcher(name: "lax", seen: seen))).1.status == .ok)
        let error = try await networkError {
            try await session.data(for: request(server, Watcher(name: "strict", refuses: true, seen: seen)))
        }
        #expect(error.kind == .untrusted && error.phase == .securing)
        let cause = try #require(error.cause as? TrustFailure)
        #expect(cause.description == "mood: not today")
        #expect(cause.chain.map(\.der) == [identity.certificateDER] && cause.host == "localhost")
        seen.finish()
        let all = await peers.reduce(into: [PeerIdentity]()) { $0.append($1) }
        #expect(all.count == 2)
        for peer in all {
            #expect(peer.certificates.map(\.der) == [identity.certificateDER] && peer.verifiedChain.isEmpty)
            #expect(peer.chainError != nil && !peer.isHostNamed)
        }
        #expect(server.requestCount == 1)
    }

    @Test func strictTrustNeverUsesConnectionsOfLaxTrust() async throws {
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
        let session = try Session(trust: CustomRoots(pem: authority.certificatePEM))
        _ = try await session.data(for: Request(server.url("/")))
        _ = try await session.data(for: request(server, try CustomRoots(pem: authority.certificatePEM)))
        #expect(server.connectionCount == 1)
        let more = try CustomRoots(pem: authority.certificatePEM, addingToSystem: true)
        _ = try await session.data(for: request(server, more))
        _ = try await session.data(for: request(server, InsecureTrust(reason: "one")))
        _ = try await session.data(for: request(server, InsecureTrust(reason: "two")))
        _ = try await session.data(for: request(server, InsecureTrust(reason: "one")))
        #expect(server.connectionCount == 4)
        #expect(server.requests.allSatisfy { $0.tls?.isResumed == false || $0.ordinal > 1 })
    }

    @Test(arguments: [Session.Configuration.TLS.Version.v1_2, .v1_3])
    func tlsSessionsAreResumedWithinADomainOnly(_ version: Session.Configuration.TLS.Version) async throws {
        let authority = try TestAuthority()
        let server = try MockServer(tls: authority.issue()) { _ in .text("x").closing() }
        let session = try Session(trust: CustomRoots(pem: authority.certificatePEM)) { $0.tls.maximumVersion = version }
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
        let session = try Session(trust: CustomRoots(pem: authority.certificatePEM))
        var resumed: [Bool?] = []
        for round in 0..<3 {
            if round == 2 { await session.reset(.connections) }
            let metrics = try await session.transfer(Request(server.url("/"))).response().metrics
            resumed.append(metrics.isTLSSessionResumed)
        }
        #expect(resumed == [false, true, false])
    }

    /// Ten thousand evaluators with equal pins share one domain, and domains of different evaluators are freed.
    @Test func unusedDomainsAreFreed() throws {
        let domains = TrustDomains(own: SystemTrust())
        let pins = try (0..<3).map { try PinnedPublicKeys([.unknown], withoutBackup: "client \($0)") }
        let first = domains.domain(for: pins[0], host: "a")
        for number in 0..<10_000 {
            #expect(domains.domain(for: pins[number % 3], host: "a") === first)
        }
        #expect(domains.count == 2)
        for number in 0..<10_000 { _ = domains.domain(for: InsecureTrust(reason: "\(number)"), host: "a") }
        #expect(domains.count <= 8)
    }

    /// Domains are freed together with their connections.
    @Test func domainsAreFreedWithTheirConnections() async throws {
        let server = try MockServer { _ in .text("x") }
        let session = Session()
        for number in 0..<200 { _ = try await session.data(for: request(server, InsecureTrust(reason: "\(number)"))) }
        #expect(session.core.domains.count <= 8)
        #expect(await session.liveTrusts <= 8)
    }

    /// Every difference that may change an evaluator's decision makes a new domain.
    @Test func changedEvaluatorsMakeNewDomains() throws {
        let scene = try TrustScene()
        let roots = try scene.roots
        let list = try Certificate.RevocationList(der: scene.authority.revocationList().der)
        let other = try Certificate.RevocationList(
            der: scene.authority.revocationList(revoking: [scene.leaf.certificate]).der)
        let pins = try PinnedPublicKeys([.unknown], withoutBackup: "a", chain: .required(roots))
        let all: [any TrustEvaluator] = [
            CustomRoots(roots), pins,
            try PinnedPublicKeys([Certificate.PublicKeyHash(number: 1)], withoutBackup: "a", chain: .required(roots)),
            try PinnedPublicKeys([.unknown], withoutBackup: "a", chain: .notRequired),
            try PinnedPublicKeys([.unknown], withoutBackup: "a", chain: .required(roots), enforcement: .reportOnly),
            try PinnedPublicKeys([.unknown], withoutBackup: "a", chain: .required(roots), expires: .distantFuture),
            pins.checkingRevocation(lists: [list]), pins.checkingRevocation(lists: [other]),
            pins.checkingRevocation(lists: [list], scope: .chain), pins.checkingRevocation(ocspResponse: .ifPresent),
            AllTrust(pins), AnyTrust(pins), try HostTrust(["a.test": pins]), try HostTrust(["b.test": pins]),
            try PinnedCertificates([Certificate(scene.root.certificate)]),
            try PinnedCertificates([Certificate(scene.root.certificate)], anchors: .pinsOnly),
        ]
        let domains = TrustDomains(own: SystemTrust())
        let made = all.map { domains.domain(for: $0, host: "a") }
        #expect(Set(made.map { ObjectIdentifier($0) }).count == all.count)
        let again = all.map { domains.domain(for: $0, host: "a") }
        #expect(zip(made, again).allSatisfy { $0 === $1 })
    }

    @Test func manyDomainsServeRequestsAndShutDown() async throws {
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

extension Session {
    /// The number of trust evaluators that have connections or may have some.
    fileprivate var liveTrusts: Int {
        let domains = (core.share.loop.transport as? CurlTransport)?.domains ?? []
        return Set(domains.compactMap { $0.map { ObjectIdentifier($0.live) } }).count
    }
}
