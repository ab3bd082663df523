// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting
import FoundationEssentials
import Testing

/// Credentials are sent only to the original origin, and a redirect back to it does not restore them.
@Suite(.timeLimit(.minutes(5)))
struct RedirectCredentialTests {
    private static let secrets: HeaderFields = [
        .authorization: "Bearer word", .cookie: "id=1", "X-API-Key": "key", "X-Tenant": "mine", "X-Plain": "yes",
    ]
    private static let names = ["Authorization", "Cookie", "X-API-Key", "X-Tenant", "X-Plain"]
    private static let all = ["Bearer word", "id=1", "key", "mine", "yes"]
    private static let plain = [nil, nil, nil, nil, "yes"]

    private func credentials(_ request: RecordedRequest) -> [String?] { Self.names.map { request.field($0) } }

    /// Follows redirects from /1 on `first` to /2 on `second`, back to /3 on `first`, and on to /4.
    private func sendAround(
        _ first: MockServer, _ second: MockServer, from start: String, over other: String, _ session: Session,
        _ fields: HeaderFields, _ take: Taking
    ) async throws {
        let (back, there) = (first.origin + "/3", other + "/2")
        first.on("GET", "/1", .redirect(to: there))
        first.on("GET", "/3", .redirect(to: "/4"))
        first.on("GET", "/4", .text("end"))
        second.on("GET", "/2", .redirect(to: back))
        let taken = try await take(Request(start, fields: fields), by: session)
        #expect(taken.body == Data("end".utf8))
        if let head = taken.head { #expect(head.history.count == 3 && head.url == first.url("/4")) }
    }

    @Test(arguments: Taking.allCases, [false, true])
    func credentialsAreWithheldFromAnotherPort(_ take: Taking, _ ofSession: Bool) async throws {
        let (first, second) = (try MockServer(), try MockServer())
        let session = Session {
            $0.fields = ofSession ? Self.secrets : [:]
            $0.redirects = .follow().withholding("X-Tenant")
        }
        let start = "http://user:word@127.0.0.1:\(first.port)/1"
        try await sendAround(
            first, second, from: start, over: second.origin, session, ofSession ? [:] : Self.secrets, take)
        #expect(first.asked == ["GET /1", "GET /3", "GET /4"] && second.asked == ["GET /2"])
        #expect(second.requests.map(credentials) == [Self.plain])
        #expect(first.requests.map(credentials) == [Self.all, Self.plain, Self.plain])
        #expect(!first.requests.contains { $0.field("Authorization")?.hasPrefix("Basic") == true })
    }

    @Test(arguments: [false, true])
    func credentialsAreWithheldFromAnotherHostName(_ ofSession: Bool) async throws {
        let server = try MockServer()
        let session = Session {
            $0.fields = ofSession ? Self.secrets : [:]
            $0.redirects = .follow().withholding("X-Tenant")
        }
        try await sendAround(
            server, server, from: server.url("/1"), over: "http://localhost:\(server.port)", session,
            ofSession ? [:] : Self.secrets, .value)
        #expect(server.asked == ["GET /1", "GET /2", "GET /3", "GET /4"])
        #expect(server.requests.map(credentials) == [Self.all, Self.plain, Self.plain, Self.plain])
    }

    @Test(arguments: [false, true], [false, true])
    func credentialsAreWithheldFromAnotherScheme(_ isDowngrade: Bool, _ ofSession: Bool) async throws {
        let authority = try TestAuthority()
        let secure = try MockServer(tls: authority.issue())
        let plain = try MockServer()
        let session = try Session(trust: CustomRoots(pem: authority.certificatePEM)) {
            $0.fields = ofSession ? Self.secrets : [:]
            $0.redirects = .follow(allowingDowngrade: true).withholding("X-Tenant")
        }
        let (first, second) = isDowngrade ? (secure, plain) : (plain, secure)
        try await sendAround(
            first, second, from: first.url("/1"), over: second.origin, session, ofSession ? [:] : Self.secrets, .stream)
        #expect(second.requests.map(credentials) == [Self.plain])
        #expect(first.requests.map(credentials) == [Self.all, Self.plain, Self.plain])
    }

    /// Without TLS, the body and the fields that are not marked as sensitive would be readable on the network.
    @Test(arguments: Taking.allCases, [303, 307])
    func downgradeIsRefusedBeforeConnecting(_ take: Taking, _ status: Int) async throws {
        let authority = try TestAuthority()
        let plain = try MockServer { _ in .text("there") }
        let secure = try MockServer(tls: authority.issue())
        secure.on("POST", "/", .redirect(to: plain.url("/"), status: status))
        let session = try Session(trust: CustomRoots(pem: authority.certificatePEM))
        var request = Request(.post, secure.url("/"), fields: ["X-Tenant": "mine"], body: .text("sent"))
        let error = try await networkError { [request] in _ = try await take(request, by: session) }
        #expect(error.kind == .redirectRefused && error.response?.status.code == status, "\(error)")
        #expect(plain.connectionCount == 0)
        request.options.redirects = .follow(allowingDowngrade: true)
        #expect(try await take(request, by: session).body == Data("there".utf8))
        #expect(plain.requests.map(\.bodyText) == [status == 307 ? "sent" : ""])
    }

    @Test(arguments: Taking.allCases, [false, true])
    func credentialsAreKeptWithinTheSameOrigin(_ take: Taking, _ ofSession: Bool) async throws {
        let server = try MockServer { _ in .text("end") }
        server.on("GET", "/1", .redirect(to: server.url("/2")))
        server.on("GET", "/2", .redirect(to: "/3"))
        let session = Session { $0.fields = ofSession ? Self.secrets : [:] }
        let request = Request(server.url("/1"), fields: ofSession ? [:] : Self.secrets)
        #expect(try await take(request, by: session).body == Data("end".utf8))
        #expect(server.requests.map(credentials) == [Self.all, Self.all, Self.all])
    }

    @Test func authorizationOfRequestIsWithheldAfterRedirect() async throws {
        let (first, second) = (try MockServer(), try MockServer { _ in .text("end") })
        first.on("GET", "/", .redirect(to: second.url("/")))
        let session = Session { $0.fields = [.authorization: "of the session"] }
        let request = Request(first.url("/"), fields: [.authorization: "of the request"])
        _ = try await session.data(for: request)
        #expect(first.requests.map { $0.field("Authorization") } == ["of the request"])
        #expect(second.requests.map { $0.field("Authorization") } == [nil])
    }

    @Test func rewrittenRequestGetsNoCredentialsBack() async throws {
        let (first, second) = (try MockServer { _ in .text("end") }, try MockServer())
        first.on("GET", "/1", .redirect(to: second.url("/2")))
        let away = second.url("/rewritten")
        second.on("GET", "/rewritten", .redirect(to: first.url("/3")))
        let session = Session {
            $0.fields = Self.secrets
            $0.redirects = .custom { $0.count == 0 ? .rewrite(Request(away)) : .follow }.withholding("X-Tenant")
        }
        #expect(try await session.data(for: Request(first.url("/1"))).0 == Data("end".utf8))
        #expect(second.requests.map(credentials) == [Self.plain])
        #expect(first.requests.map(credentials) == [Self.all, Self.plain])
    }
}
