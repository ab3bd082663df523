// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting
import FoundationEssentials
import Testing

/// The queue of transfers that may share HTTP/2 connections.
@Suite(.timeLimit(.minutes(5)))
struct HTTP2QueueTests {
    private let gates = (0..<3).map { _ in Gate() }
    private let scene: HTTP2Scene
    private let plain: MockServer

    init() throws {
        scene = try HTTP2Scene(configure: { configuration in
            configuration.limits.connections = 1
            configuration.limits.connectionsPerHost = 1
            configuration.limits.transfersPerHost = 2
        }) { [gates] request in
            guard let number = Int(request.path.dropFirst()) else { return .respond(200) }
            return .afterRequest.fault(.stall(gates[number])).respond(200, text: "done")
        }
        plain = try MockServer { _ in .text("plain") }
    }

    /// A transfer that needs a new connection does not block transfers that can share an existing one.
    @Test func connectionLimitBlocksOnlyTransfersThatNeedANewOne() async throws {
        _ = try await scene.session.data(for: scene.request("/warm"))
        let held = (0..<2).map { scene.session.transfer(scene.request("/\($0)")).start() }
        for gate in gates.prefix(2) { await gate.waitUntilReached() }
        let elsewhere = scene.session.transfer(Request(plain.url("/"))).start()
        let next = scene.session.transfer(scene.request("/2")).start()
        gates[0].open()
        // The next transfer takes the first one's slot on the same connection while the second one still runs.
        await gates[2].waitUntilReached()
        #expect(elsewhere.state == .queued && scene.server.connectionCount == 1 && plain.connectionCount == 0)
        gates[2].open()
        gates[1].open()
        for transfer in held + [next] { #expect(try await transfer.value == Data("done".utf8)) }
        #expect(try await elsewhere.value == Data("plain".utf8))
    }

    @Test func laterTransferDoesNotOvertakeQueuedOnes() async throws {
        _ = try await scene.session.data(for: scene.request("/warm"))
        let held = scene.session.transfer(scene.request("/0")).start()
        await gates[0].waitUntilReached()
        // This request needs its own connection, and the session may have only one.
        var request = scene.request("/own")
        request.options.connection = .own
        let own = scene.session.transfer(request).start()
        let newcomer = scene.session.transfer(scene.request("/2")).start()
        #expect(await scene.session.transfers.map(\.state) == [.running, .queued, .queued])
        own.cancel()
        await gates[2].waitUntilReached()
        for gate in gates { gate.open() }
        for transfer in [held, newcomer] { #expect(try await transfer.value == Data("done".utf8)) }
    }

    /// Own connections count towards the host's limit even if the host's other connections are shared.
    @Test func ownConnectionsCountTowardsHostLimit() async throws {
        let authority = try TestAuthority()
        let identity = try authority.issue()
        let session = try Session(trust: CustomRoots(pem: authority.certificatePEM)) {
            $0.limits.connectionsPerHost = 1
            $0.timeouts.connect = .seconds(1)
        }
        let modern = try HTTP2Server(tls: identity) { _ in .respond(200, text: "two") }
        _ = try await session.data(for: Request(modern.url("/")))
        modern.stop()
        let gate = Gate()
        var options = MockServer.Options()
        options.port = modern.port
        let server = try MockServer(tls: identity, options: options) { request in
            request.path == "/held" ? .text("one").fault(.stall(gate), at: .start) : .text("one")
        }
        let own = ["/held", "/next"].map { path in
            Request(server.url(path), options: Request.Options(connection: .own))
        }
        let held = session.transfer(own[0]).start()
        await gate.waitUntilReached()
        let next = session.transfer(own[1]).start()
        // The idle timeout of another transfer, twice the connect timeout, shows that the time has passed.
        let (silent, mute) = (try MockServer { _ in .text("x").fault(.stall(Gate()), at: .start) }, Duration.seconds(2))
        let request = Request(silent.url("/"), options: Request.Options(timeouts: Timeouts(idle: mute)))
        #expect(try await networkError { try await session.data(for: request) }.kind == .timedOut)
        #expect(next.state == .queued && server.connectionCount == 1)
        gate.open()
        for transfer in [held, next] { #expect(try await transfer.value == Data("one".utf8)) }
    }

    /// A response that refuses the content coding of a body does not close the connection.
    @Test func unsupportedMediaTypeKeepsTheConnection() async throws {
        let scene = try HTTP2Scene(configure: { $0.http.compression = .gzip() }) { request in
            request.field("content-encoding") == nil ? .respond(200, text: "taken") : .now.respond(415)
        }
        let text = String(repeating: "a line that compresses well\n", count: 2000)
        #expect(try await scene.session.data(for: scene.post(.text(text))).0 == Data("taken".utf8))
        #expect(scene.server.requests.count == 2 && scene.server.connectionCount == 1)
        #expect(scene.server.violations.isEmpty)
    }
}
