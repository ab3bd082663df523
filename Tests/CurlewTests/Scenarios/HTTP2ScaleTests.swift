// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting
import FoundationEssentials
import Testing

/// More transfers than the streams of a connection open as many connections as needed.
@Suite(.timeLimit(.minutes(5)))
struct HTTP2ScaleTests {
    private func scene(
        _ gate: Gate, streams: Int, configure: (inout Session.Configuration) -> Void = { _ in }
    ) throws -> HTTP2Scene {
        try HTTP2Scene(configure: {
            $0.limits.streamsPerConnection = streams
            configure(&$0)
        }) { request in
            request.path == "/warm" ? .respond(200) : .afterRequest.fault(.stall(gate)).respond(200, text: "ok")
        }
    }

    private func start(_ count: Int, _ scene: HTTP2Scene) -> [Transfer<Data>] {
        (0..<count).map { scene.session.transfer(scene.request("/\($0)")).start() }
    }

    private func finish(_ transfers: [Transfer<Data>], _ gate: Gate) async throws {
        gate.open()
        for transfer in transfers { #expect(try await transfer.value == Data("ok".utf8)) }
    }

    /// The number of requests of each connection, in ascending order.
    private func spread(_ scene: HTTP2Scene) -> [Int] {
        let counts = scene.server.requests.reduce(into: [Int: Int]()) { counts, request in
            if request.path != "/warm" { counts[request.connection, default: 0] += 1 }
        }
        return counts.values.sorted()
    }

    @Test(arguments: [true, false]) func twoHundredTransfersUseFourConnections(isWarm: Bool) async throws {
        let gate = Gate()
        let scene = try scene(gate, streams: 50)
        if isWarm { _ = try await scene.session.data(for: scene.request("/warm")) }
        let transfers = start(200, scene)
        await gate.waitUntilReached(times: 200)
        #expect(scene.server.connectionCount == 4 && spread(scene) == [50, 50, 50, 50])
        #expect(await scene.session.transfers.count { $0.state == .running } == 200)
        try await finish(transfers, gate)
        #expect(scene.server.mostOpenStreams == 50 && scene.server.violations.isEmpty)
    }

    @Test func connectionsPerHostLimitHolds() async throws {
        let gate = Gate()
        let scene = try scene(gate, streams: 10) { $0.limits.connectionsPerHost = 2 }
        _ = try await scene.session.data(for: scene.request("/warm"))
        let transfers = start(50, scene)
        await gate.waitUntilReached(times: 20)
        #expect(scene.server.connectionCount == 2 && spread(scene) == [10, 10])
        let states = await scene.session.transfers.map(\.state)
        #expect(states.count { $0 == .running } == 20 && states.count { $0 == .queued } == 30)
        try await finish(transfers, gate)
        #expect(scene.server.connectionCount == 2 && scene.server.mostOpenStreams == 10)
    }

    @Test func totalConnectionLimitHolds() async throws {
        let gate = Gate()
        let scene = try scene(gate, streams: 5) { $0.limits.connections = 3 }
        _ = try await scene.session.data(for: scene.request("/warm"))
        let transfers = start(40, scene)
        await gate.waitUntilReached(times: 15)
        #expect(scene.server.connectionCount == 3 && spread(scene) == [5, 5, 5])
        try await finish(transfers, gate)
        #expect(scene.server.connectionCount == 3 && scene.server.mostOpenStreams == 5)
    }

    /// Transfers cancelled while connections are established do not block the others.
    @Test func cancelledTransfersDoNotBlockOthers() async throws {
        let gate = Gate()
        let scene = try scene(gate, streams: 2)
        _ = try await scene.session.data(for: scene.request("/warm"))
        var transfers = start(40, scene)
        for transfer in transfers.prefix(20) { transfer.cancel() }
        transfers.removeFirst(20)
        await gate.waitUntilReached(times: 20)
        try await finish(transfers, gate)
        #expect(scene.server.mostOpenStreams <= 2)
        #expect(await scene.session.transfers.isEmpty)
    }

    @Test func fewTransfersShareOneConnection() async throws {
        let gate = Gate()
        gate.open()
        let scene = try scene(gate, streams: 50)
        for _ in 0..<5 {
            let transfers = start(50, scene)
            try await finish(transfers, gate)
        }
        #expect(scene.server.connectionCount == 1)
    }
}
