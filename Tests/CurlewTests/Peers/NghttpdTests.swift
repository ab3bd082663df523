// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting
import FoundationEssentials
import Testing

@Suite(.enabledIfInstalled(.nghttpd), .peer(.nghttpd), .timeLimit(.minutes(1)))
struct NghttpdTests {
    private func on(_ route: PeerRoute) throws -> PeerScenario<NghttpdServer> {
        PeerScenario(try NghttpdServer.shared(route), route)
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

    @Test func head() async throws {
        try await on(.http2).asksForHead()
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

    @Test func multiplexes() async throws {
        let server = try NghttpdServer(.http2)
        try await PeerScenario(server, .http2).multiplexes(90)
        #expect(try server.countConnections() == 1)
    }

    /// More at once than the server takes on one connection.
    @Test func moreThanStreams() async throws {
        let server = try NghttpdServer(.http2, streams: 10)
        let all = try await PeerScenario(server, .http2).small(times: 200, atOnce: 200)
        #expect(all.count == 200)
        #expect(try server.countConnections() == Set(all.map(\.localAddress)).count)
    }

    @Test func othersRunWhilePaused() async throws {
        try await on(.http2).othersRunWhilePaused()
    }

    @Test func othersRunBesideSlowReader() async throws {
        try await on(.http2).othersRunBesideSlowReader()
    }

    @Test func cancelledDownloadLeavesOthers() async throws {
        try await on(.http2).cancelledDownloadLeavesOthers()
    }

    @Test func cancelledUploadLeavesOthers() async throws {
        try await on(.http2).cancelledUploadLeavesOthers(.put, "/echo")
    }
}
