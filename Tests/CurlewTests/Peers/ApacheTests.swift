// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting
import FoundationEssentials
import Testing

@Suite(.enabledIfInstalled(.apache2), .peer(.apache2), .timeLimit(.minutes(5)))
struct ApacheTests {
    private let server: ApacheServer

    init() throws { server = try ApacheServer.shared() }

    private func on(_ route: PeerRoute) throws -> PeerScenario<ApacheServer> { try PeerScenario(server, route) }

    @Test(arguments: PeerRoute.allCases) func smallFileReusesTheConnection(_ route: PeerRoute) async throws {
        let scenario = try on(route)
        #expect(try await !scenario.small().isConnectionReused)
        #expect(try await scenario.small().isConnectionReused == route.reusesConnections)
    }

    @Test(arguments: PeerRoute.allCases) func largeFileIsReceived(_ route: PeerRoute) async throws {
        try await on(route).getsLarge()
    }

    @Test(arguments: PeerRoute.allCases) func headRequestReturnsNoBody(_ route: PeerRoute) async throws {
        try await on(route).asksForHead()
    }

    @Test(arguments: PeerRoute.allCases) func smallUploadIsStored(_ route: PeerRoute) async throws {
        try await on(route).stores(PatternBody(seed: 1, length: 3000))
    }

    @Test(arguments: UploadScene.all) func uploadsAreStored(_ scene: UploadScene, _ route: PeerRoute) async throws {
        try await on(route).uploads(scene)
    }

    @Test(arguments: PeerRoute.allCases) func echoedBodiesAreUnchanged(_ route: PeerRoute) async throws {
        for length in [0, 1, 3000, 500_000] { try await on(route).echoes(PatternBody(seed: 4, length: length)) }
    }

    @Test(arguments: PeerRoute.http2Only) func requestsAreMultiplexed(_ route: PeerRoute) async throws {
        try await on(route).multiplexes(100)
    }

    @Test(arguments: PeerRoute.http2Only, NeighbourScene.allCases)
    func streamsDoNotDisturbEachOther(_ route: PeerRoute, _ scene: NeighbourScene) async throws {
        try await on(route).leavesOthers(scene, uploadingTo: "/upload/\(UUID().uuidString)")
    }

    @Test(arguments: PeerRoute.allCases) func gzipIsDecoded(_ route: PeerRoute) async throws {
        try await on(route).decodes("gzip", "/gzip/text.txt")
    }

    @Test(.enabled(if: ApacheServer.hasBrotli, "this Apache has no mod_brotli"), arguments: PeerRoute.allCases)
    func brotliIsDecoded(_ route: PeerRoute) async throws {
        try await on(route).decodes("br", "/brotli/text.txt")
    }

    @Test func alpnFallsBackToHTTP1() async throws {
        let session = try PeerRoute.http2.session(server)
        for isReused in [false, true] {
            let response = try await session.transfer(Request(server.url(.http1Only, "/small.txt"))).response()
            #expect(String(decoding: response.value, as: UTF8.self) == PeerInstance.small)
            #expect(response.metrics.version == .http1_1)
            #expect(response.metrics.tlsVersion == "TLSv1.3")
            #expect(response.metrics.isConnectionReused == isReused)
        }
    }
}
