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

    /// Its responses end with a trailer field, which is none of the head's.
    @Test(arguments: PeerRoute.http2Only) func smallWithTrailer(_ route: PeerRoute) async throws {
        let response = try await on(route).response(.get, "/small.txt")
        #expect(String(decoding: response.value, as: UTF8.self) == PeerInstance.small)
        #expect(response.head[HeaderName("checksum")] == nil)
        #expect(response.head.contentType == "text/plain")
    }

    @Test(arguments: PeerRoute.http2Only) func large(_ route: PeerRoute) async throws {
        try await on(route).getsLarge()
    }

    @Test(arguments: PeerRoute.http2Only) func head(_ route: PeerRoute) async throws {
        try await on(route).asksForHead()
    }

    @Test(arguments: PeerRoute.http2Only) func missing(_ route: PeerRoute) async throws {
        let response = try await on(route).response(.get, "/missing.txt")
        #expect(response.status == .notFound)
        #expect(String(decoding: response.value, as: UTF8.self).contains("404 Not Found"))
    }

    @Test(arguments: PeerRoute.http2Only, [Curlew.Method.post, .put])
    func echoes(_ route: PeerRoute, _ method: Curlew.Method) async throws {
        for length in [1, 3000, 500_000] {
            try await on(route).echoes(PatternBody(seed: 4, length: length), by: method)
        }
    }

    @Test(arguments: PeerRoute.http2Only) func echoesLarge(_ route: PeerRoute) async throws {
        let scenario = try on(route)
        try await scenario.echoes(PeerInstance.large, as: .file(scenario.server.instance.largeFile))
    }

    @Test(arguments: PeerRoute.http2Only) func echoesStreamOfUnknownLength(_ route: PeerRoute) async throws {
        let source = ChunkSource(body: PatternBody(seed: 2, length: 5_000_000), chunk: 70_001)
        try await on(route).echoes(source.body, as: .stream(source))
    }

    @Test(arguments: PeerRoute.http2Only) func multiplexes(_ route: PeerRoute) async throws {
        let server = try NghttpdServer(route)
        try await PeerScenario(server, route).multiplexes(100)
        #expect(try server.countConnections() == (route.reusesConnections ? 1 : 100))
    }

    /// A server that answers before it has read the body, and speaks no HTTP/1.1 to ask again by: the answer comes, or an
    /// error that says that it was lost, and others go on.
    @Test(arguments: PeerRoute.http2Only) func answersEarly(_ route: PeerRoute) async throws {
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

    /// The same with an answer as long as the body.
    @Test(arguments: PeerRoute.http2Only) func answersEarlyAtLength(_ route: PeerRoute) async throws {
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

    /// More at once than the server takes on one connection.
    @Test(.differsWithNewerLibcurl("After five refused streams it gives up, and Curlew reports a lost connection."))
    func moreThanStreams() async throws {
        let server = try NghttpdServer(.http2, streams: 10)
        let all = try await PeerScenario(server, .http2).small(times: 200, atOnce: 200)
        #expect(all.count == 200)
        #expect(try server.countConnections() == Set(all.map(\.localAddress)).count)
    }

    @Test(arguments: PeerRoute.http2Only, NeighbourScene.allCases)
    func leavesOthers(_ route: PeerRoute, _ scene: NeighbourScene) async throws {
        try await on(route).leavesOthers(scene, uploadingTo: "/echo")
    }
}
