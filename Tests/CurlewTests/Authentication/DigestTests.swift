// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewTesting
import FoundationEssentials
import Testing

@testable import Curlew

/// Whole transfers with a server that checks digests.
@Suite(.timeLimit(.minutes(5)))
struct DigestTests {
    typealias Rules = DigestServer.Rules

    private func rules(_ change: (inout Rules) -> Void) -> Rules {
        var rules = Rules()
        change(&rules)
        return rules
    }

    private func session(_ auth: any Authenticator = .digest("anna", "open sesame")) -> Session {
        Session(interceptors: [auth])
    }

    private func status(_ session: Session, _ request: Request) async throws -> Int {
        Int(try await session.data(for: request).1.status.code)
    }

    @Test(
        arguments: [nil, "MD5", "MD5-sess", "SHA-256", "SHA-256-sess", "SHA-512-256", "sha-512-256-SESS"],
        [nil, "auth", "auth-int", "auth-int,auth"])
    func everyAlgorithmAndQopIsAccepted(_ algorithm: String?, _ qop: String?) async throws {
        let server = try DigestServer(rules { ($0.algorithm, $0.qop) = (algorithm, qop) })
        let session = session()
        for path in ["/", "/a/b%20c?d=e&f=%22", "/?", "//x/../y"] {
            #expect(try await status(session, Request(server.url(path))) == 200)
            let body = Request(.post, server.url(path), body: .text("hello"))
            #expect(try await status(session, body) == 200)
        }
        #expect(server.complaints == [])
        #expect(server.proofs.map { $0 == nil } == [true] + Array(repeating: false, count: 8))
    }

    @Test func strongestSupportedChallengeIsUsed() async throws {
        let before =
            "Basic realm=x, Digest realm=weak, nonce=y, algorithm=MD5, Digest realm=z, nonce=z, algorithm=TIGER, "
        let server = try DigestServer(rules { $0.before = before })
        #expect(try await status(session(), Request(server.url())) == 200)
        #expect(server.complaints == [])
    }

    @Test(arguments: [false, true]) func nonASCIIUserNamesAreAccepted(_ isHashed: Bool) async throws {
        let name = "J\u{E4}s\u{F8}n Doe"
        let server = try DigestServer(rules { ($0.user, $0.hashesUser, $0.isUTF8) = (name, isHashed, true) })
        #expect(try await status(session(.digest(name, "open sesame")), Request(server.url())) == 200)
        #expect(server.complaints == [])
    }

    // MARK: Refusals

    @Test func wrongPasswordIsSentOncePerRequest() async throws {
        let server = try DigestServer()
        let session = session(.digest("anna", "wrong"))
        for round in 1...2 {
            let (body, head) = try await session.data(for: Request(server.url()))
            #expect(head.status == .unauthorized && body == Data("who are you?".utf8))
            #expect(server.proofs.map { $0 == nil } == [true, false] * round)
        }
        #expect(server.complaints == ["response", "response"])
    }

    @Test func wrongPasswordIsSentOnceWhenTheNonceStays() async throws {
        let server = try DigestServer(rules { $0.keepsNonce = true })
        #expect(try await status(session(.digest("anna", "wrong")), Request(server.url())) == 401)
        #expect(server.proofs.count == 2)
    }

    @Test func wrongPasswordIsSentTwiceWhenTheFirstNonceWasCached() async throws {
        let server = try DigestServer()
        let spaces = ProtectionSpaces()
        let right = session(DigestAuthentication("anna", "open sesame", spaces: spaces))
        #expect(try await status(right, Request(server.url())) == 200)
        let wrong = session(DigestAuthentication("anna", "wrong", spaces: spaces))
        #expect(try await status(wrong, Request(server.url())) == 401)
        #expect(server.proofs.count == 4, "the first nonce may have been stale")
    }

    @Test(arguments: [true, false]) func exhaustedNonceIsReplaced(_ saysStale: Bool) async throws {
        let server = try DigestServer(rules { ($0.uses, $0.saysStale) = (2, saysStale) })
        let session = session()
        for _ in 0..<6 { #expect(try await status(session, Request(server.url())) == 200) }
        #expect(server.server.requests.count == 9 && server.complaints == [])
    }

    @Test func unknownNonceIsReplacedAfterServerRestart() async throws {
        let server = try DigestServer()
        let session = session()
        for count in [2, 4, 6] {
            #expect(try await status(session, Request(server.url())) == 200)
            server.forget()
            #expect(server.server.requests.count == count)
        }
    }

    @Test func staleNoncesAreRetriedALimitedNumberOfTimes() async throws {
        let server = try DigestServer(rules { $0.uses = 0 })
        #expect(try await status(session(), Request(server.url())) == 401)
        #expect(server.proofs.count == 1 + PasswordExchange.maximumStaleNonces)
    }

    @Test func nextnonceIsUsed() async throws {
        let server = try DigestServer(rules { ($0.uses, $0.givesNext) = (1, true) })
        let session = session()
        for _ in 0..<4 { #expect(try await status(session, Request(server.url())) == 200) }
        #expect(server.server.requests.count == 5)
        let nonces = server.values.map { $0["nonce"] }
        #expect(Set(nonces).count == 4)
    }

    @Test func unsupportedChallengesReturnTheResponse() async throws {
        for text in ["Digest realm=a", "Basic realm=a", "Negotiate", "Digest realm=a, nonce=b, qop=x", "\"", ""] {
            let server = try MockServer { _ in .text("no", status: 401).field("WWW-Authenticate", text) }
            #expect(try await status(session(), Request(server.url())) == 401)
            #expect(server.requests.count == 1)
        }
    }

    // MARK: Concurrent requests

    @Test func concurrentRequestsShareANonce() async throws {
        let server = try DigestServer()
        let session = session()
        #expect(try await status(session, Request(server.url())) == 200)
        let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
            for number in 0..<200 {
                group.addTask { try await status(session, Request(server.url("/\(number)"))) }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(statuses == Array(repeating: 200, count: 200))
        let proofs = server.values
        #expect(proofs.count == 201 && server.server.requests.count == 202 && server.complaints == [])
        #expect(Set(proofs.map { $0["nonce"] }).count == 1 && Set(proofs.map { $0["nc"] }).count == 201)
        #expect(Set(proofs.map { $0["cnonce"] }).count == 201)
    }

    @Test func concurrentRequestsUseSingleUseNonces() async throws {
        let server = try DigestServer(rules { $0.uses = 1 })
        let session = session()
        let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 0..<50 { group.addTask { try await status(session, Request(server.url())) } }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(statuses == Array(repeating: 200, count: 50) && server.complaints == [])
    }

    @Test func domainLimitsPreemptiveCredentials() async throws {
        let server = try DigestServer(rules { $0.domain = "/in" })
        let session = session()
        for (path, count) in [("/in/1", 2), ("/in/2", 3), ("/out", 5)] {
            #expect(try await status(session, Request(server.url(path))) == 200)
            #expect(server.server.requests.count == count, "\(path)")
        }
    }

    // MARK: Bodies

    @Test(arguments: ["auth", "auth-int", "auth,auth-int"], [false, true])
    func bodiesAreSentWithEveryQop(_ qop: String, _ protects: Bool) async throws {
        let server = try DigestServer(rules { $0.qop = qop })
        let session = session(.digest("anna", "open sesame", protectsBodies: protects))
        let pattern = PatternBody(seed: 3, length: 300_000)
        let file = try ScratchFile(pattern.bytes)
        let replayed = RequestBody.stream(ChunkSource(body: pattern), canReplay: true)
        let bodies: [RequestBody] = [.bytes(pattern.bytes), .file(file.path), replayed]
        for body in bodies {
            #expect(try await status(session, Request(.put, server.url(), body: body)) == 200)
            #expect(server.server.requests.last?.bodySHA256 == pattern.sha256)
        }
        #expect(server.complaints == [])
        let qualities = Set(server.values.map { $0["qop"] })
        #expect(qualities == [qop == "auth" || (qop != "auth-int" && !protects) ? "auth" : "auth-int"])
    }

    @Test func authIntBodiesAreNotCompressed() async throws {
        let server = try DigestServer(rules { $0.qop = "auth-int" })
        var request = Request(.put, server.url(), body: .text(String(repeating: "a", count: 5000)))
        request.options.compression = .gzip()
        #expect(try await status(session(), request) == 200)
        #expect(server.server.requests.last?.bodyLength == 5000)
    }

    @Test func firstLargeBodyExpectsContinue() async throws {
        let server = try DigestServer()
        let session = session()
        for (length, expects) in [(70_000, [true, false]), (70_000, [false]), (100, [false])] {
            let before = server.server.requests.count
            let body = RequestBody.bytes(PatternBody(seed: 1, length: length).bytes)
            #expect(try await status(session, Request(.put, server.url(), body: body)) == 200)
            #expect(server.server.requests.dropFirst(before).map(\.expectsContinue) == expects)
        }
        let once = RequestBody.stream(ChunkSource(body: PatternBody(seed: 1, length: 10)))
        #expect(try await status(session, Request(.put, server.url(), body: once)) == 200)
        #expect(server.server.requests.last?.expectsContinue == true, "the nonce may be stale")
        var quiet = Request(.put, server.url(), body: .bytes(Array(repeating: 1, count: 70_000)))
        quiet.options.expectContinue = .never
        _ = try await status(self.session(), quiet)
        #expect(server.server.requests.suffix(2).allSatisfy { !$0.expectsContinue })
    }

    @Test func streamedBodyReturnsTheUnauthorizedResponse() async throws {
        let server = try DigestServer()
        let body = RequestBody.stream(ChunkSource(body: PatternBody(seed: 1, length: 10)), length: 10)
        #expect(try await status(session(), Request(.put, server.url(), body: body)) == 401)
        #expect(server.server.requests.count == 1)
    }

    @Test func authIntFailsForNonReplayableBody() async throws {
        let server = try DigestServer(rules { $0.qop = "auth-int" })
        let session = session()
        #expect(try await status(session, Request(server.url())) == 200)
        let body = RequestBody.stream(ChunkSource(body: PatternBody(seed: 1, length: 10)))
        let error = try await networkError { try await status(session, Request(.put, server.url(), body: body)) }
        #expect(error.kind == .bodyNotReplayable && error.phase == .preparing && error.request != nil)
    }

    @Test func authIntFailsForMissingFile() async throws {
        let server = try DigestServer(rules { $0.qop = "auth-int" })
        let session = session()
        #expect(try await status(session, Request(server.url())) == 200)
        let request = Request(.put, server.url(), body: .file("/none/such"))
        #expect(try await networkError { try await status(session, request) }.kind == .invalidRequest)
    }

    // MARK: Origins and the request's own credentials

    @Test func sameOriginRedirectsAreAuthenticated() async throws {
        let server = try DigestServer()
        let target = "/end?a=b"
        server.server.on("GET", "/start", .redirect(to: target))
        #expect(try await status(session(), Request(server.url("/start"))) == 200)
        #expect(server.complaints == [])
        #expect(server.values.last?["uri"] == target)
    }

    @Test func crossOriginRedirectsGetNoCredentials() async throws {
        let (home, away) = (try DigestServer(), try DigestServer())
        home.server.on("GET", "/away", .redirect(to: away.url("/")))
        let session = session()
        #expect(try await status(session, Request(home.url())) == 200)
        #expect(try await status(session, Request(home.url("/away"))) == 401)
        #expect(away.proofs == [nil])
    }

    @Test func requestsOwnCredentialsTakePrecedence() async throws {
        let server = try DigestServer()
        let request = Request(server.url(), fields: [.authorization: "Digest own"])
        #expect(try await status(session(), request) == 401)
        let named = "http://me:too@127.0.0.1:\(server.server.port)/"
        #expect(try await status(session(), Request(named)) == 401)
        #expect(server.proofs.count == 2 && server.proofs.first == "Digest own")
        var anonymous = Request(server.url())
        anonymous.options.isAnonymous = true
        #expect(try await status(session(), anonymous) == 401)
        #expect(server.proofs.last == .some(nil))
    }

    @Test(arguments: [("a\n", "b", Credential.Invalid.controlInUser), ("a", "b\n", .controlInPassword)])
    func controlCharactersAreRejected(_ user: String, _ password: String, _ flaw: Credential.Invalid) async throws {
        let server = try DigestServer()
        let error = try await networkError { try await status(session(.digest(user, password)), Request(server.url())) }
        #expect(error.kind == .invalidRequest && error.cause as? Credential.Invalid == flaw)
        #expect(server.server.requests.isEmpty && !error.detailedDescription.contains("\n\n"))
    }
}

private func * (list: [Bool], count: Int) -> [Bool] { Array(repeating: list, count: count).flatMap(\.self) }
