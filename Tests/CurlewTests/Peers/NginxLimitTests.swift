// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting
import FoundationEssentials
import Testing

/// nginx with refused uploads, limited rates, closed connections and reloads.
@Suite(.enabledIfInstalled(.nginx), .peer(.nginx), .timeLimit(.minutes(5)))
struct NginxLimitTests {
    private let server: NginxServer

    init() throws { server = try NginxServer.shared() }

    private func on(_ route: PeerRoute) throws -> PeerScenario<NginxServer> { try PeerScenario(server, route) }

    // MARK: Uploads

    @Test(arguments: PeerRoute.allCases) func postedBodyIsStored(_ route: PeerRoute) async throws {
        try await on(route).stores(PatternBody(seed: 6, length: 300_000), by: .post, in: "/post")
    }

    @Test(arguments: UploadScene.all) func uploadsAreStored(_ scene: UploadScene, _ route: PeerRoute) async throws {
        try await on(route).uploads(scene)
    }

    // MARK: Responses

    @Test(arguments: PeerRoute.allCases) func noContentResponseHasNoBody(_ route: PeerRoute) async throws {
        let scenario = try on(route)
        for isReused in [false, true] {
            let response = try await scenario.response(.get, "/nothing")
            #expect(response.status == .noContent)
            #expect(response.value.isEmpty)
            #expect(response.metrics.isConnectionReused == (isReused && route.reusesConnections))
        }
    }

    @Test(arguments: PeerRoute.allCases) func errorPageKeepsTheConnection(_ route: PeerRoute) async throws {
        let scenario = try on(route)
        let response = try await scenario.response(.get, "/broken")
        #expect(response.status == .serviceUnavailable)
        #expect(String(decoding: response.value, as: UTF8.self) == PeerInstance.small)
        #expect(try await scenario.small().isConnectionReused == route.reusesConnections)
    }

    @Test(arguments: PeerRoute.allCases) func gzipIsDecoded(_ route: PeerRoute) async throws {
        try await on(route).decodes("gzip", "/gzip/text.txt")
    }

    @Test(arguments: PeerRoute.allCases) func rateLimitedResponseIsReceivedSlowly(_ route: PeerRoute) async throws {
        let response = try await on(route).response(.get, "/paced.bin", fields: [.range: "bytes=0-1048575"])
        #expect(response.status == .partialContent)
        #expect(SHA256Stream.hex(of: response.value) == PatternBody(seed: 64, length: 1 << 20).sha256)
        #expect(response.metrics.receive >= .milliseconds(300))
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

    // MARK: One connection

    @Test(arguments: PeerRoute.http2Only) func requestsAreMultiplexed(_ route: PeerRoute) async throws {
        try await on(route).multiplexes(100)
    }

    @Test(arguments: PeerRoute.http2Only, NeighbourScene.allCases)
    func streamsDoNotDisturbEachOther(_ route: PeerRoute, _ scene: NeighbourScene) async throws {
        try await on(route).leavesOthers(scene, uploadingTo: "/upload/\(UUID().uuidString)")
    }

    // MARK: The server closes

    /// Sends a GET or a POST, depending on the number, and checks the response.
    private func answer(_ number: Int, _ scenario: PeerScenario<NginxServer>) async throws -> TransferMetrics {
        let isPost = number % 2 == 1
        let response = try await scenario.response(
            isPost ? .post : .get, "/answer", body: isPost ? .text("question \(number)") : .none)
        #expect(response.status == .ok)
        #expect(String(decoding: response.value, as: UTF8.self) == "Answered.\n")
        return response.metrics
    }

    @Test(arguments: PeerRoute.allCases) func connectionsClosedAfterThreeRequestsAreReplaced(_ route: PeerRoute)
        async throws
    {
        let scenario = try PeerScenario(NginxServer(.init(keepAliveRequests: 3)), route)
        var all: [TransferMetrics] = []
        for number in 0..<100 { all.append(try await answer(number, scenario)) }
        #expect(all.count { !$0.isConnectionReused } == (route.reusesConnections ? 34 : 100))
    }

    /// Requests survive a connection that closes after three requests, or their errors report whether they can be
    /// retried.
    ///
    /// Over HTTP/2 many requests are in flight when nginx resets the connection, and its GOAWAY with the last processed
    /// stream is lost.
    @Test(arguments: PeerRoute.allCases) func concurrentRequestsSurviveOrReportClosedConnections(_ route: PeerRoute)
        async throws
    {
        let scenario = try PeerScenario(NginxServer(.init(keepAliveRequests: 3)), route)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<50 {
                group.addTask {
                    do {
                        _ = try await answer(number, scenario)
                    } catch let error as NetworkError where [.http2, .priorKnowledge].contains(route) {
                        #expect(error.kind == .connectionLost, "\(error)")
                        #expect(error.retriability != .never, "\(error)")
                        if number % 2 == 0 { #expect(error.retriability == .safe(after: nil), "\(error)") }
                    }
                }
            }
            try await group.waitForAll()
        }
    }

    /// A reload closes connections that have requests in flight; all requests get their response.
    ///
    /// Over HTTP/2 libcurl 7.88 drops a response that is arriving when it can no longer send on the connection. The
    /// error then reports that the request can be retried, and the retry succeeds.
    @Test(arguments: PeerRoute.allCases) func requestsSurviveServerReloads(_ route: PeerRoute) async throws {
        let server = try NginxServer()
        let scenario = try PeerScenario(server, route)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<400 {
                if number % 80 == 40 { try server.reload() }
                if number >= 16 { try await group.next() }
                group.addTask {
                    do {
                        try await scenario.small()
                    } catch let error as NetworkError where [.http2, .priorKnowledge].contains(route) {
                        #expect(error.retriability == .safe(after: nil), "\(error)")
                        try await scenario.small()
                    }
                }
            }
            try await group.waitForAll()
        }
    }
}
