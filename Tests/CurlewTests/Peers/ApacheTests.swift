// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting
import FoundationEssentials
import Testing

@Suite(.enabledIfInstalled(.apache2), .peer(.apache2), .timeLimit(.minutes(1)))
struct ApacheTests {
    private let server: ApacheServer

    init() throws { server = try ApacheServer.shared() }

    private func on(_ route: PeerRoute) -> PeerScenario<ApacheServer> { PeerScenario(server, route) }

    @Test(arguments: PeerRoute.allCases) func small(_ route: PeerRoute) async throws {
        let scenario = on(route)
        #expect(try await !scenario.small().isConnectionReused)
        #expect(try await scenario.small().isConnectionReused == route.reusesConnections)
    }

    @Test(arguments: PeerRoute.allCases) func large(_ route: PeerRoute) async throws {
        try await on(route).getsLarge()
    }

    @Test(arguments: PeerRoute.allCases) func head(_ route: PeerRoute) async throws {
        try await on(route).asksForHead()
    }

    @Test(arguments: PeerRoute.allCases) func storesSmall(_ route: PeerRoute) async throws {
        try await on(route).stores(PatternBody(seed: 1, length: 3000))
    }

    @Test(arguments: PeerRoute.allCases) func storesLarge(_ route: PeerRoute) async throws {
        try await on(route).stores(PeerInstance.large, as: .file(server.instance.largeFile))
    }

    @Test(arguments: PeerRoute.allCases) func storesStreamOfUnknownLength(_ route: PeerRoute) async throws {
        let source = ChunkSource(body: PatternBody(seed: 2, length: 5_000_000), chunk: 70_001)
        try await on(route).stores(source.body, as: .stream(source))
    }

    @Test(arguments: PeerRoute.allCases) func echoes(_ route: PeerRoute) async throws {
        for length in [0, 1, 3000, 500_000] { try await on(route).echoes(PatternBody(seed: 4, length: length)) }
    }

    @Test(arguments: PeerRoute.http2Only) func multiplexes(_ route: PeerRoute) async throws {
        try await on(route).multiplexes(200)
    }

    @Test(arguments: PeerRoute.http1Only) func asksBeforeSending(_ route: PeerRoute) async throws {
        try await on(route).stores(PatternBody(seed: 5, length: 9000), fields: [.expect: "100-continue"])
    }

    @Test(arguments: PeerRoute.http1Only) func refusesBeforeBody(_ route: PeerRoute) async throws {
        let body = RequestBody.bytes(PatternBody(seed: 5, length: 9000).bytes)
        try await on(route).isRefusedEarly("/limited/x", body, sends: 0...0, fields: [.expect: "100-continue"])
    }

    @Test(arguments: PeerRoute.allCases) func refusesLarge(_ route: PeerRoute) async throws {
        let body = RequestBody.file(server.instance.largeFile)
        try await on(route).isRefusedEarly("/limited/x", body, sends: 0...(32 << 20), mayLoseAnswer: true)
    }

    @Test(arguments: PeerRoute.http2Only) func othersRunWhilePaused(_ route: PeerRoute) async throws {
        try await on(route).othersRunWhilePaused()
    }

    @Test(arguments: PeerRoute.http2Only) func othersRunBesideSlowReader(_ route: PeerRoute) async throws {
        try await on(route).othersRunBesideSlowReader()
    }

    @Test(arguments: PeerRoute.http2Only) func cancelledDownloadLeavesOthers(_ route: PeerRoute) async throws {
        try await on(route).cancelledDownloadLeavesOthers()
    }

    @Test(arguments: PeerRoute.http2Only) func cancelledUploadLeavesOthers(_ route: PeerRoute) async throws {
        try await on(route).cancelledUploadLeavesOthers(.put, "/upload/\(UUID().uuidString)")
    }

    @Test(arguments: PeerRoute.allCases) func decodesGzip(_ route: PeerRoute) async throws {
        try await on(route).decodes("gzip", "/gzip/text.txt")
    }

    @Test(.enabled(if: ApacheServer.hasBrotli, "this Apache has no mod_brotli"), arguments: PeerRoute.allCases)
    func decodesBrotli(_ route: PeerRoute) async throws {
        try await on(route).decodes("br", "/brotli/text.txt")
    }

    @Test func fallsBackToHTTP1() async throws {
        let session = PeerRoute.http2.session(server)
        for isReused in [false, true] {
            let response = try await session.transfer(Request(server.url(.http1Only, "/small.txt"))).response()
            #expect(String(decoding: response.value, as: UTF8.self) == PeerInstance.small)
            #expect(response.metrics.version == .http1_1)
            #expect(response.metrics.tlsVersion == "TLSv1.3")
            #expect(response.metrics.isConnectionReused == isReused)
        }
    }
}
