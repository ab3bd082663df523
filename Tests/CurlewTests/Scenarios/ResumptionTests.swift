// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewEngine
import CurlewTesting
import FoundationEssentials
import Testing

@testable import Curlew

/// New connections to many hosts resume earlier TLS sessions, but only within a trust domain.
@Suite(.timeLimit(.minutes(5)))
struct ResumptionTests {
    private let authority: TestAuthority
    private let server: MockServer

    init() throws {
        authority = try TestAuthority()
        server = try MockServer(tls: authority.issue(hosts: ["*.shop.example"])) { _ in .text("x").closing() }
    }

    /// Returns a session that resolves every name to 127.0.0.1.
    private func session(_ configure: (inout Session.Configuration) -> Void = { _ in }) -> Session {
        var configuration = Session.Configuration()
        configure(&configuration)
        return Session(configuration, resolver: Resolver { _ in .success(["127.0.0.1"]) })
    }

    private func request(_ host: Int, _ trust: any TrustEvaluator) -> Request {
        var request = Request("https://host-\(host).shop.example:\(server.port)/")
        request.trust = trust
        return request
    }

    /// Returns how many of fifty hosts, each with a new connection, resume a TLS session.
    private func resumed(_ session: Session, _ trust: any TrustEvaluator) async throws -> Int {
        try await withThrowingTaskGroup(of: Bool.self) { group in
            for host in 0..<50 {
                group.addTask {
                    let metrics = try await session.transfer(request(host, trust)).response().metrics
                    return !metrics.isConnectionReused && metrics.isTLSSessionResumed
                }
            }
            return try await group.reduce(0) { $0 + ($1 ? 1 : 0) }
        }
    }

    @Test(arguments: [Session.Configuration.TLS.Version.v1_2, .v1_3])
    func connectionsToFiftyHostsResumeTLSSessions(_ version: Session.Configuration.TLS.Version) async throws {
        let session = session { $0.tls.maximumVersion = version }
        let trust = try CustomRoots(pem: authority.certificatePEM)
        #expect(try await resumed(session, trust) == 0)
        #expect(try await resumed(session, trust) >= 45)
        #expect(try await resumed(session, trust) >= 45)
        #expect(server.connectionCount == 150)
        #expect(server.requests.count { $0.tls?.isResumed == true } >= 90)
    }

    @Test func trustDomainsDoNotShareTLSSessions() async throws {
        let session = session()
        #expect(try await resumed(session, try CustomRoots(pem: authority.certificatePEM)) == 0)
        for name in ["one", "two"] { #expect(try await resumed(session, InsecureTrust(reason: name)) == 0) }
        #expect(try await resumed(session, InsecureTrust(reason: "one")) >= 45)
    }

    /// With one connection, the same handles serve all hosts, and each handle finds the TLS sessions of its host.
    @Test func reusedHandleResumesTLSSessionsOfManyHosts() async throws {
        let session = session { $0.limits.connections = 1 }
        let trust = try CustomRoots(pem: authority.certificatePEM)
        for round in 0..<2 {
            for host in 0..<20 {
                let metrics = try await session.transfer(request(host, trust)).response().metrics
                #expect(metrics.isTLSSessionResumed == (round == 1), "host \(host)")
            }
        }
    }

    /// TLS sessions are kept for each port of a host.
    @Test func tlsSessionsAreKeptPerPort() async throws {
        let session = session()
        let servers = try (0..<12).map { _ in
            try MockServer(tls: authority.issue(hosts: ["*.shop.example"])) { _ in .text("x").closing() }
        }
        for round in 0..<2 {
            for server in servers {
                var request = Request("https://a.shop.example:\(server.port)/")
                request.trust = try CustomRoots(pem: authority.certificatePEM)
                let metrics = try await session.transfer(request).response().metrics
                #expect(metrics.isTLSSessionResumed == (round == 1))
            }
        }
    }
}
