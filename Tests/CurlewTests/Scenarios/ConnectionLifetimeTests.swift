// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting
import FoundationEssentials
import Testing

/// The lifetime of connections, idle and in use.
@Suite(.timeLimit(.minutes(5)))
struct ConnectionLifetimeTests {
    @Test(arguments: [Duration.zero, .milliseconds(50)], [false, true])
    func idleConnectionIsClosedAfterItsLifetime(_ lifetime: Duration, isSecure: Bool) async throws {
        let authority = try TestAuthority()
        let server = try MockServer(tls: isSecure ? authority.issue() : nil) { _ in .text("x") }
        let session = try Session(trust: CustomRoots(pem: authority.certificatePEM)) {
            $0.limits.idleConnectionLifetime = lifetime
        }
        for round in 1...3 {
            #expect(try await session.data(for: Request(server.url("/"))).0 == Data("x".utf8))
            // No other request triggers the close.
            await server.waitUntil(openConnections: 0)
            #expect(server.connectionCount == round)
        }
    }

    @Test func idleHTTP2ConnectionIsClosedAfterItsLifetime() async throws {
        let scene = try HTTP2Scene(configure: { $0.limits.idleConnectionLifetime = .milliseconds(50) }) { _ in
            .respond(200, text: "ok")
        }
        for round in 1...2 {
            #expect(try await scene.session.data(for: scene.request()).0 == Data("ok".utf8))
            await scene.server.waitUntil(openConnections: 0)
            #expect(scene.server.connectionCount == round)
        }
    }

    @Test func connectionInUseStaysOpen() async throws {
        let gate = Gate()
        let server = try MockServer { _ in .text("x") }
        server.on("GET", "/held", .text("held").fault(.stall(gate), at: .start))
        let session = Session { $0.limits.idleConnectionLifetime = .milliseconds(20) }
        let held = session.transfer(Request(server.url("/held"))).start()
        await gate.waitUntilReached()
        // Meanwhile two other connections open and close for being idle.
        for _ in 0..<2 {
            _ = try await session.data(for: Request(server.url("/")))
            await server.waitUntil(openConnections: 1)
        }
        gate.open()
        #expect(try await held.value == Data("held".utf8))
        await server.waitUntil(openConnections: 0)
    }

    @Test func idleConnectionIsKeptByDefault() async throws {
        let server = try MockServer { _ in .text("x") }
        let session = Session()
        for _ in 0..<20 { _ = try await session.data(for: Request(server.url("/"))) }
        #expect(server.connectionCount == 1 && server.openConnections == 1)
    }

    @Test func connectionBeyondItsLifetimeClosesAfterItsRequest() async throws {
        let gate = Gate()
        let server = try MockServer { _ in .text("x") }
        server.on("GET", "/held", .text("held").fault(.stall(gate), at: .start))
        let session = Session { $0.limits.connectionLifetime = .milliseconds(20) }
        let held = session.transfer(Request(server.url("/held"))).start()
        await gate.waitUntilReached()
        // The second connection closes because of its age alone.
        _ = try await session.data(for: Request(server.url("/")))
        await server.waitUntil(openConnections: 1)
        gate.open()
        #expect(try await held.value == Data("held".utf8))
        await server.waitUntil(openConnections: 0)
        #expect(server.connectionCount == 2)
    }

    /// A connection is replaced at the end of its lifetime even if it is never idle.
    @Test func busyConnectionIsReplacedAfterItsLifetime() async throws {
        let server = try MockServer { _ in .text("x") }
        let session = Session { $0.limits.connectionLifetime = .milliseconds(50) }
        while server.connectionCount < 3 { _ = try await session.data(for: Request(server.url("/"))) }
        #expect(server.openConnections <= 2 && server.violations.isEmpty)
    }
}
