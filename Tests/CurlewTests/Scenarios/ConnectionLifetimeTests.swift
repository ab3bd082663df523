// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting
import FoundationEssentials
import Testing

/// How long connections stay open that nobody uses.
@Suite(.timeLimit(.minutes(5)))
struct ConnectionLifetimeTests {
    @Test(arguments: [Duration.zero, .milliseconds(50)], [false, true])
    func whatNobodyUsesIsClosed(_ lifetime: Duration, isSecure: Bool) async throws {
        let authority = try TestAuthority()
        let server = try MockServer(tls: isSecure ? authority.issue() : nil) { _ in .text("x") }
        let session = try Session(trust: CustomRoots(pem: authority.certificatePEM)) {
            $0.limits.idleConnectionLifetime = lifetime
        }
        for round in 1...3 {
            #expect(try await session.data(for: Request(server.url("/"))).0 == Data("x".utf8))
            // Nothing else makes the client look.
            await server.waitUntil(openConnections: 0)
            #expect(server.connectionCount == round)
        }
    }

    @Test func anHTTP2ConnectionIsClosedToo() async throws {
        let scene = try HTTP2Scene(configure: { $0.limits.idleConnectionLifetime = .milliseconds(50) }) { _ in
            .respond(200, text: "ok")
        }
        for round in 1...2 {
            #expect(try await scene.session.data(for: scene.request()).0 == Data("ok".utf8))
            await scene.server.waitUntil(openConnections: 0)
            #expect(scene.server.connectionCount == round)
        }
    }

    @Test func whatIsUsedStaysOpen() async throws {
        let gate = Gate()
        let server = try MockServer { _ in .text("x") }
        server.on("GET", "/held", .text("held").fault(.stall(gate), at: .start))
        let session = Session { $0.limits.idleConnectionLifetime = .milliseconds(20) }
        let held = session.transfer(Request(server.url("/held"))).start()
        await gate.waitUntilReached()
        // Others come and go meanwhile, twice as long as a connection may idle.
        for _ in 0..<2 {
            _ = try await session.data(for: Request(server.url("/")))
            await server.waitUntil(openConnections: 1)
        }
        gate.open()
        #expect(try await held.value == Data("held".utf8))
        await server.waitUntil(openConnections: 0)
    }

    @Test func byDefaultConnectionsAreKept() async throws {
        let server = try MockServer { _ in .text("x") }
        let session = Session()
        for _ in 0..<20 { _ = try await session.data(for: Request(server.url("/"))) }
        #expect(server.connectionCount == 1 && server.openConnections == 1)
    }

    @Test func anOldConnectionEndsWithItsRequest() async throws {
        let gate = Gate()
        let server = try MockServer { _ in .text("x") }
        server.on("GET", "/held", .text("held").fault(.stall(gate), at: .start))
        let session = Session { $0.limits.connectionLifetime = .milliseconds(20) }
        let held = session.transfer(Request(server.url("/held"))).start()
        await gate.waitUntilReached()
        // That one is younger, and is closed for its age alone.
        _ = try await session.data(for: Request(server.url("/")))
        await server.waitUntil(openConnections: 1)
        gate.open()
        #expect(try await held.value == Data("held".utf8))
        await server.waitUntil(openConnections: 0)
        #expect(server.connectionCount == 2)
    }

    /// However busily it is used.
    @Test func aConnectionInUseAllTheTimeGivesWay() async throws {
        let server = try MockServer { _ in .text("x") }
        let session = Session { $0.limits.connectionLifetime = .milliseconds(50) }
        while server.connectionCount < 3 { _ = try await session.data(for: Request(server.url("/"))) }
        #expect(server.openConnections <= 2 && server.violations.isEmpty)
    }
}
