// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewTesting
import FoundationEssentials
import Testing

@testable import Curlew

/// Basic, Bearer and password authentication, preemptive or after a challenge, and challenges without an authenticator.
@Suite(.timeLimit(.minutes(5)))
struct PasswordTests {
    private static let right = "Basic YW5uYTpvcGVuIHNlc2FtZQ=="

    /// Responds like a server that requires Basic authentication below /in.
    private static func answer(_ request: RecordedRequest) -> MockResponse {
        if !request.path.hasPrefix("/in") || request.field("Authorization") == right { return .text("welcome") }
        return .text("who are you?", status: 401).field("WWW-Authenticate", "Basic realm=\"staff\"")
    }

    private func server(tls: TestIdentity? = nil) throws -> MockServer {
        try MockServer(tls: tls) { Self.answer($0) }
    }

    private func proofs(_ server: MockServer) -> [String?] { server.requests.map { $0.field("Authorization") } }

    private func status(_ session: Session, _ request: Request) async throws -> Int {
        Int(try await session.data(for: request).1.status.code)
    }

    // MARK: Preemptive credentials

    @Test func basicIsSentPreemptively() async throws {
        let server = try server()
        let api = Client(try BaseURL(server.origin)).with { $0.auth = .basic("anna", "open sesame") }
        for _ in 0..<2 { try await api.get("in/x", using: .empty) }
        #expect(proofs(server) == [Self.right, Self.right])
    }

    @Test func bearerIsSentPreemptively() async throws {
        let server = try server()
        let session = Session(interceptors: [.bearer("abc")])
        #expect(try await status(session, Request(server.url("/"))) == 200)
        #expect(proofs(server) == ["Bearer abc"])
    }

    @Test func requestsOwnCredentialsTakePrecedence() async throws {
        let server = try server()
        for auth in [.basic("a", "b"), .bearer("c"), .password("a", "b")] as [any Authenticator] {
            let session = Session(interceptors: [auth])
            _ = try await status(session, Request(server.url("/in"), fields: [.authorization: "Own word"]))
            #expect(server.requests.last?.field("Authorization") == "Own word")
            _ = try await status(session, Request("http://me:too@127.0.0.1:\(server.port)/in"))
            #expect(server.requests.last?.field("Authorization") != "Bearer c")
            var anonymous = Request(server.url("/in"))
            anonymous.options.isAnonymous = true
            _ = try await status(session, anonymous)
            #expect(server.requests.last?.field("Authorization") == nil)
        }
        #expect(server.requests.count == 9)
    }

    @Test func authenticatorOverridesTheSessionsAuthorizationField() async throws {
        let server = try server()
        let session = Session(interceptors: [.basic("anna", "open sesame")]) { $0.fields = [.authorization: "Old"] }
        #expect(try await status(session, Request(server.url("/in"))) == 200)
        #expect(proofs(server) == [Self.right])
    }

    @Test(arguments: [
        ("a:b", "", Credential.Invalid.colonInUser), ("a\n", "", .controlInUser), ("a", "b\n", .controlInPassword),
    ])
    func basicRejectsColonsAndControlCharacters(_ user: String, _ password: String, _ flaw: Credential.Invalid)
        async throws
    {
        let server = try server()
        let session = Session(interceptors: [.basic(user, password)])
        let error = try await networkError { try await status(session, Request(server.url("/in"))) }
        #expect(error.kind == .invalidRequest && error.cause as? Credential.Invalid == flaw)
        #expect(error.phase == .preparing && server.requests.isEmpty)
        #expect(password.isEmpty || !error.detailedDescription.contains(password))
    }

    @Test func bearerRejectsControlCharacters() async throws {
        let server = try server()
        let session = Session(interceptors: [.bearer("secret\r\nX: y")])
        let error = try await networkError { try await status(session, Request(server.url("/"))) }
        #expect(error.kind == .invalidRequest && !error.detailedDescription.contains("secret"))
    }

    @Test func crossOriginRedirectsGetNoCredentials() async throws {
        for auth in [.basic("anna", "open sesame"), .bearer("c")] as [any Authenticator] {
            let (home, away) = (try server(), try server())
            home.on("GET", "/away", .redirect(to: away.url("/back")))
            away.on("GET", "/back", .redirect(to: home.url("/in")))
            home.on("GET", "/near", .redirect(to: "/in"))
            let session = Session(interceptors: [auth])
            #expect(try await status(session, Request(home.url("/away"))) == 401)
            #expect(proofs(away) == [nil] && proofs(home).last == .some(nil), "a redirect back gets none either")
            _ = try await status(session, Request(home.url("/near")))
            #expect(proofs(home).suffix(2).allSatisfy { $0 != nil })
        }
    }

    // MARK: After a challenge

    @Test func basicChallengeIsAnsweredOverTLS() async throws {
        let authority = try TestAuthority()
        let server = try server(tls: authority.issue())
        let session = try Session(
            trust: CustomRoots(pem: authority.certificatePEM), interceptors: [.password("anna", "open sesame")])
        for path in ["/in/a", "/in/b", "/", "/in/deep/c"] {
            #expect(try await status(session, Request(server.url(path))) == 200)
        }
        #expect(proofs(server) == [nil, Self.right, Self.right, nil, Self.right])
    }

    @Test func wrongPasswordIsSentOncePerRequest() async throws {
        let server = try server()
        let session = Session(interceptors: [.password("anna", "wrong")])
        for _ in 0..<2 { #expect(try await status(session, Request(server.url("/in"))) == 401) }
        #expect(proofs(server).map { $0 == nil } == [true, false, true, false])
    }

    @Test func digestIsPreferredToBasic() async throws {
        var rules = DigestServer.Rules()
        rules.before = "Basic realm=\"staff\", "
        let server = try DigestServer(rules)
        let session = Session(interceptors: [.password("anna", "open sesame")])
        for _ in 0..<2 { #expect(try await status(session, Request(server.url())) == 200) }
        #expect(server.complaints == [] && server.server.requests.count == 3)
        let wrong = Session(interceptors: [.password("anna", "wrong")])
        #expect(try await status(wrong, Request(server.url())) == 401)
        #expect(server.proofs.allSatisfy { $0?.hasPrefix("Basic") != true }, "no fallback to Basic")
    }

    @Test func serverMaySwitchFromDigestToBasic() async throws {
        let digest = try DigestServer()
        let session = Session(interceptors: [.password("anna", "open sesame")])
        #expect(try await status(session, Request(digest.url())) == 200)
        digest.server.on(
            "GET", "/",
            inOrder: [
                .text("no", status: 401).field("WWW-Authenticate", "Basic realm=staff"), .text("welcome"),
            ])
        #expect(try await status(session, Request(digest.url())) == 200)
        #expect(digest.proofs.last == Self.right)
    }

    // MARK: Without an authenticator

    @Test(arguments: Taking.allCases) func unauthorizedIsReturnedWithoutAuthenticator(_ take: Taking) async throws {
        let server = try server()
        let taken = try await take(Request(server.url("/in")), by: Session())
        #expect(taken.body == Data("who are you?".utf8) && taken.head?.status ?? .unauthorized == .unauthorized)
        #expect(taken.head?.challenges ?? [.init(.basic, ["realm": "staff"])] == [.init(.basic, ["realm": "staff"])])
        #expect(server.requests.count == 1)
    }

    @Test func unauthorizedIsReturnedForStreamedBodyWithoutAuthenticator() async throws {
        let server = try server()
        let body = RequestBody.stream(ChunkSource(body: PatternBody(seed: 1, length: 100_000)))
        let (data, head) = try await Session().data(for: Request(.put, server.url("/in"), body: body))
        #expect(head.status == .unauthorized && data == Data("who are you?".utf8))
    }

    @Test func unauthorizedFailsClientCallsWithoutAuthenticator() async throws {
        let server = try server()
        let api = Client(try BaseURL(server.origin))
        let error = try await networkError { try await api.get("in", using: .empty) }
        #expect(error.kind == .unacceptableStatus && error.response?.challenges.first?.scheme == .basic)
    }

    // MARK: Secrets

    @Test func descriptionsHideCredentials() {
        let shown: [any Authenticator] = [
            .basic("anna", "hidden"), .bearer("hidden"), .digest("anna", "hidden"), .password("anna", "hidden"),
        ]
        for authenticator in shown {
            var dumped = ""
            dump(authenticator, to: &dumped)
            for text in [dumped, "\(authenticator)", String(reflecting: authenticator)] {
                #expect(!text.contains("hidden") && !text.contains("anna"), "\(text)")
            }
            #expect("\(authenticator)".hasSuffix("<redacted>"))
        }
    }
}
