// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import CurlewEngine
import CurlewTesting
import FoundationEssentials
import Testing

@testable import Curlew

/// Basic and Digest authentication with Apache's mod_auth_basic and mod_auth_digest.
@Suite(.enabledIfInstalled(.apache2), .peer(.apache2), .timeLimit(.minutes(5)))
struct ApacheAuthenticationTests {
    /// An interceptor that records the status, the nonce and the stale flag of each attempt.
    private final class ExchangeRecorder: Interceptor {
        private let all = Lock<[(status: Int, isStale: Bool, nonce: String?)]>([])

        var scope: Interception.Scope { .attempt }
        var statuses: [Int] { all.withLock { $0.map(\.status) } }
        var nonces: Set<String> { all.withLock { Set($0.compactMap(\.nonce)) } }
        var wasStale: Bool { all.withLock { $0.contains(where: \.isStale) } }

        func intercept(
            _ request: Request, context: Interception.Context, next: Interception.Next
        ) async throws -> IncomingResponse {
            let response = try await next(request)
            let isStale = response.head.challenges.contains { $0["stale"] == "true" }
            let proof = String(request.fields[.authorization]?.dropFirst("Digest ".count) ?? "")
            let nonce = ChallengeParser.parameters(in: proof)["nonce"]
            all.withLock { $0.append((Int(response.head.status.code), isStale, nonce)) }
            return response
        }
    }

    private let server: ApacheServer

    init() throws { server = try ApacheServer.shared() }

    private func session(
        _ route: PeerRoute, _ auth: any Authenticator, _ recorder: ExchangeRecorder = ExchangeRecorder()
    ) throws -> Session {
        let core = try route.session(server).configuration
        return try Session(
            core, trust: CustomRoots(pem: server.authority.certificatePEM), interceptors: [auth, recorder])
    }

    private func small(_ session: Session, _ url: String) async throws -> Int {
        let (body, head) = try await session.data(for: Request(url))
        #expect((head.status == .ok) == (body == Data(PeerInstance.small.utf8)))
        return Int(head.status.code)
    }

    @Test(arguments: PeerRoute.allCases) func basicAuthenticationIsAccepted(_ route: PeerRoute) async throws {
        let (url, recorder) = (route.url(server, "/basic/small.txt"), ExchangeRecorder())
        #expect(try await small(session(route, .basic("anna", "open sesame"), recorder), url) == 200)
        #expect(try await small(session(route, .basic("anna", "wrong"), recorder), url) == 401)
        let demanded = try session(route, .password("anna", "open sesame"), recorder)
        // The server runs on the loopback interface, where passwords are allowed over plain HTTP.
        for _ in 0..<2 { #expect(try await small(demanded, url) == 200) }
        #expect(recorder.statuses == [200, 401, 401, 200, 200])
    }

    @Test(arguments: PeerRoute.allCases) func digestAuthenticationIsAccepted(_ route: PeerRoute) async throws {
        let (url, recorder) = (route.url(server, "/digest/small.txt?a=b%20c"), ExchangeRecorder())
        for auth in [.digest("anna", "open sesame"), .password("anna", "open sesame")] as [any Authenticator] {
            let session = try session(route, auth, recorder)
            for _ in 0..<3 { #expect(try await small(session, url) == 200) }
        }
        #expect(recorder.statuses == [401, 200, 200, 200, 401, 200, 200, 200])
        #expect(try await small(session(route, .digest("anna", "wrong"), recorder), url) == 401)
        #expect(recorder.statuses.suffix(2) == [401, 401] && !recorder.wasStale)
    }

    @Test(arguments: PeerRoute.allCases) func concurrentDigestRequestsShareANonce(_ route: PeerRoute) async throws {
        let (url, recorder) = (route.url(server, "/digest/small.txt"), ExchangeRecorder())
        let session = try session(route, .digest("anna", "open sesame"), recorder)
        #expect(try await small(session, url) == 200)
        let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 0..<50 { group.addTask { try await small(session, url) } }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(statuses == Array(repeating: 200, count: 50) && recorder.statuses.count == 52)
    }

    @Test(arguments: PeerRoute.http1Only) func digestWorksWithNonReplayableBodies(_ route: PeerRoute) async throws {
        let pattern = PatternBody(seed: 8, length: 200_000)
        let recorder = ExchangeRecorder()
        let session = try session(route, .digest("anna", "open sesame"), recorder)
        for _ in 0..<2 {
            let name = UUID().uuidString
            let body = RequestBody.stream(ChunkSource(body: pattern), length: 200_000)
            let request = Request(.put, route.url(server, "/digest/upload/\(name)"), body: body)
            #expect(try await session.data(for: request).1.status == .created)
            #expect(try server.takeUpload(name).sha256 == pattern.sha256)
        }
        #expect(recorder.statuses == [401, 201, 201], "Apache refuses before the body is sent")
    }

    /// Apache's nonces live for 25 seconds here, so it sends a `nextnonce` with every response.
    @Test func nextnonceIsUsedForTheFollowingRequest() async throws {
        let (url, recorder) = (PeerRoute.plain.url(server, "/next/small.txt"), ExchangeRecorder())
        let session = try session(.plain, .digest("anna", "open sesame"), recorder)
        for _ in 0..<4 { #expect(try await small(session, url) == 200) }
        #expect(recorder.statuses == [401, 200, 200, 200, 200] && recorder.nonces.count == 4)
    }

    /// Apache's nonces live for a second here: the nonce of one session expires while another sends requests.
    @Test func staleNonceIsReplaced() async throws {
        let (url, recorder) = (PeerRoute.plain.url(server, "/brief/small.txt"), ExchangeRecorder())
        let session = try session(.plain, .digest("anna", "open sesame"), recorder)
        #expect(try await small(session, url) == 200)
        let other = try self.session(.plain, .digest("anna", "open sesame"))
        let start = ContinuousClock.now
        while ContinuousClock.now - start < .milliseconds(1500) { #expect(try await small(other, url) == 200) }
        #expect(try await small(session, url) == 200)
        // On a busy machine the nonce may have expired before the first authenticated request as well.
        #expect(recorder.wasStale && recorder.statuses.first == 401 && recorder.statuses.suffix(2) == [401, 200])
    }
}
