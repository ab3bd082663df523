// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting
import FoundationEssentials
import Testing

@Suite(.enabledIfInstalled(.nghttpd), .peer(.nghttpd), .timeLimit(.minutes(5)))
struct NghttpdTests {
    private func on(_ route: PeerRoute) throws -> PeerScenario<NghttpdServer> {
        try PeerScenario(NghttpdServer.shared(route), route)
    }

    /// The responses end with a trailer field, which must not appear in the head.
    @Test(arguments: PeerRoute.http2Only) func trailersAreNotPartOfTheHead(_ route: PeerRoute) async throws {
        let response = try await on(route).response(.get, "/small.txt")
        #expect(String(decoding: response.value, as: UTF8.self) == PeerInstance.small)
        #expect(response.head[HeaderName("checksum")] == nil)
        #expect(response.head.contentType == "text/plain")
    }

    @Test(arguments: PeerRoute.http2Only) func largeFileIsReceived(_ route: PeerRoute) async throws {
        try await on(route).getsLarge()
    }

    @Test(arguments: PeerRoute.http2Only) func headRequestReturnsNoBody(_ route: PeerRoute) async throws {
        try await on(route).asksForHead()
    }

    @Test(arguments: PeerRoute.http2Only) func missingFileIsNotFound(_ route: PeerRoute) async throws {
        let response = try await on(route).response(.get, "/missing.txt")
        #expect(response.status == .notFound)
        #expect(String(decoding: response.value, as: UTF8.self).contains("404 Not Found"))
    }

    @Test(arguments: PeerRoute.http2Only, [Curlew.Method.post, .put])
    func echoedBodiesAreUnchanged(_ route: PeerRoute, _ method: Curlew.Method) async throws {
        for length in [1, 3000, 500_000] {
            try await on(route).echoes(PatternBody(seed: 4, length: length), by: method)
        }
    }

    @Test(arguments: PeerRoute.http2Only) func echoedLargeFileIsUnchanged(_ route: PeerRoute) async throws {
        let scenario = try on(route)
        try await scenario.echoes(PeerInstance.large, as: .file(scenario.server.instance.largeFile))
    }

    @Test(arguments: PeerRoute.http2Only) func echoedStreamOfUnknownLengthIsUnchanged(_ route: PeerRoute) async throws {
        let source = ChunkSource(body: PatternBody(seed: 2, length: 5_000_000), chunk: 70_001)
        try await on(route).echoes(source.body, as: .stream(source))
    }

    @Test(arguments: PeerRoute.http2Only) func requestsAreMultiplexed(_ route: PeerRoute) async throws {
        let server = try NghttpdServer(route)
        try await PeerScenario(server, route).multiplexes(100)
        #expect(try server.countConnections() == (route.reusesConnections ? 1 : 100))
    }

    /// The server responds before it has read the body and has no HTTP/1.1 for a retry: the response arrives, or an
    /// error reports the lost connection, and other requests continue.
    @Test(arguments: PeerRoute.http2Only) func earlyResponseArrivesDuringAnUpload(_ route: PeerRoute) async throws {
        let server = try NghttpdServer(route, hasLargeFile: true, options: ["--early-response"])
        let scenario = try PeerScenario(server, route)
        try await scenario.small()
        let body = RequestBody.file(server.instance.largeFile)
        let answer = try await scenario.losingAnswer(.sending) {
            try await scenario.response(.put, "/small.txt", body: body)
        }
        guard let response = answer else { return }
        #expect(response.status == .ok)
        #expect(String(decoding: response.value, as: UTF8.self) == PeerInstance.small)
        #expect(response.metrics.total < .seconds(5))
        try await scenario.small()
    }

    /// The server responds early with a response as long as the request body.
    @Test(arguments: PeerRoute.http2Only) func longEarlyResponseArrivesDuringAnUpload(_ route: PeerRoute) async throws {
        let server = try NghttpdServer(route, hasLargeFile: true, options: ["--early-response"])
        let scenario = try PeerScenario(server, route)
        let body = RequestBody.file(server.instance.largeFile)
        let answer = try await scenario.losingAnswer(.receiving) {
            try await scenario.response(.put, "/large.bin", body: body)
        }
        guard let response = answer else { return }
        #expect(response.status == .ok)
        #expect(response.value.count == PeerInstance.large.length)
        #expect(SHA256Stream.hex(of: response.value) == PeerInstance.large.sha256)
        try await scenario.small()
    }

    /// 200 concurrent requests exceed the ten streams that the server allows on a connection.
    @Test(.differsWithNewerLibcurl("After five refused streams it gives up, and Curlew reports a lost connection."))
    func requestsBeyondTheStreamLimitSucceed() async throws {
        let server = try NghttpdServer(.http2, streams: 10)
        let all = try await PeerScenario(server, .http2).small(times: 200, atOnce: 200)
        #expect(all.count == 200)
        #expect(try server.countConnections() == Set(all.map(\.localAddress)).count)
    }

    @Test(arguments: PeerRoute.http2Only, NeighbourScene.allCases)
    func streamsDoNotDisturbEachOther(_ route: PeerRoute, _ scene: NeighbourScene) async throws {
        try await on(route).leavesOthers(scene, uploadingTo: "/echo")
    }
}
