// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewEngine
import CurlewTesting
import FoundationEssentials
import Testing

@testable import Curlew
@testable import CurlewAuth

/// OAuth 2.0 grants: requests to the token endpoint, its responses, and their use by clients.
@Suite(.timeLimit(.minutes(5)))
struct OAuth2Tests {
    private func server(_ answer: String, status: Int = 200) throws -> MockServer {
        try MockServer { _ in .json(answer, status: status) }
    }

    private func client(_ server: MockServer, _ change: (inout OAuth2Client) -> Void = { _ in }) -> OAuth2Client {
        var client = OAuth2Client(server.url("/token"), id: "me: a", secret: "p&q", session: Session())
        change(&client)
        return client
    }

    private func failure(_ body: () async throws -> AccessToken) async throws -> NetworkError {
        do { _ = try await body() } catch let error as NetworkError { return error }
        throw Unexpected()
    }

    private struct Unexpected: Error {}

    private let answer = #"{"access_token":"A","token_type":"bearer","expires_in":3600,"scope":"read"}"#

    // MARK: Requests

    @Test func clientCredentialsGetAToken() async throws {
        let server = try server(answer)
        let app = client(server) {
            $0.scopes = ["read", "write"]
            $0.parameters = ["audience": "https://api"]
        }
        let token = try await app.clientCredentials()
        #expect(token.value == "A" && token.scheme == "Bearer" && token.permissions == "read")
        let left = try #require(token.expiry).timeIntervalSinceNow
        #expect(left > 3500 && left <= 3600)
        let request = try #require(server.requests.first)
        #expect(request.method == "POST" && request.path == "/token")
        #expect(request.field("Content-Type") == "application/x-www-form-urlencoded")
        #expect(request.bodyText == "audience=https%3A//api&grant_type=client_credentials&scope=read%20write")
        // RFC 6749 §2.3.1: user and secret are form-encoded, then joined by a colon.
        let basic = Data("me%3A%20a:p%26q".utf8).base64EncodedString()
        #expect(request.field("Authorization") == "Basic " + basic)
    }

    @Test func clientCredentialsAreSentInTheBody() async throws {
        let server = try server(answer)
        _ = try await client(server) { $0.proof = .body }.clientCredentials()
        _ = try await client(server) { $0.secret = nil }.clientCredentials()
        let texts = server.requests.map(\.bodyText)
        #expect(texts[0] == "client_id=me%3A%20a&client_secret=p%26q&grant_type=client_credentials")
        #expect(texts[1] == "client_id=me%3A%20a&grant_type=client_credentials")
        #expect(server.requests.allSatisfy { $0.field("Authorization") == nil })
    }

    @Test func refreshTokenGrantReturnsANewToken() async throws {
        let server = try server(answer)
        let token = try await client(server) { $0.scopes = ["more"] }.refresh(AccessToken("old", refreshToken: "R"))
        #expect(token.value == "A" && token.refreshToken == "R" && token.permissions == "read")
        #expect(server.requests[0].bodyText == "grant_type=refresh_token&refresh_token=R")
        let rotating = try self.server(#"{"access_token":"A","refresh_token":"R2"}"#)
        #expect(try await client(rotating).refresh(AccessToken("old", refreshToken: "R")).refreshToken == "R2")
        let error = try await failure { try await client(server).refresh(AccessToken("old")) }
        #expect(error.kind == .authenticationFailed && server.requestCount == 1)
    }

    @Test func customGrantParametersAreSent() async throws {
        let server = try server(answer)
        _ = try await client(server).token(for: "authorization_code", ["code": "c", "code_verifier": "v"])
        #expect(server.requests[0].bodyText == "code=c&code_verifier=v&grant_type=authorization_code")
    }

    // MARK: Responses

    @Test(arguments: [
        (#"{"access_token":"A","expires_in":"60"}"#, true), (#"{"access_token":"A"}"#, false),
        (#"{"access_token":"A","token_type":"BEARER","expires_in":null}"#, false),
        (#"{"access_token":"A","expires_in":-1}"#, false), (#"{"access_token":"A","expires_in":1e300}"#, true),
    ])
    func expiresInVariantsAreRead(answer: String, expires: Bool) async throws {
        let server = try server(answer)
        let token = try await client(server).clientCredentials()
        #expect((token.expiry != nil) == expires && token.value == "A")
    }

    @Test(arguments: ["{}", "no", #"{"access_token":"A","token_type":"mac"}"#, #"{"access_token":7}"#])
    func invalidTokenResponsesFail(answer: String) async throws {
        let server = try server(answer)
        let error = try await failure { try await client(server).clientCredentials() }
        #expect(error.kind == .authenticationFailed && error.phase == .decoding && error.response?.status == .ok)
    }

    @Test func errorResponsesBecomeOAuth2Errors() async throws {
        let text = #"{"error":"invalid_grant","error_description":"ex\npired","error_uri":"https://x"}"#
        let server = try server(text, status: 400)
        let error = try await failure { try await client(server).clientCredentials() }
        let cause = try #require(error.cause as? OAuth2Error)
        #expect(cause.code == .invalidGrant && cause.message == "ex\npired" && cause.page == "https://x")
        #expect(error.message == "The authorization server issued no token: invalid_grant: ex\\npired.")
        let silent = try self.server("<html>", status: 502)
        let other = try await failure { try await client(silent).clientCredentials() }
        #expect(other.kind == .unacceptableStatus && other.response?.status == .badGateway)
        // The error body of an overloaded server becomes the cause, too.
        for status in [429, 500, 503] {
            let busy = try self.server(#"{"error":"temporarily_unavailable"}"#, status: status)
            let later = try await failure { try await client(busy).clientCredentials() }
            #expect(later.kind == .unacceptableStatus && later.response?.status.code == status)
            #expect((later.cause as? OAuth2Error)?.code == "temporarily_unavailable")
        }
        let closed = try self.server("<html>", status: 403)
        #expect(try await failure { try await client(closed).clientCredentials() }.kind == .authenticationFailed)
        let polite = try self.server(#"{"error":"bad_refresh_token"}"#)
        let said = try await failure { try await client(polite).clientCredentials() }
        #expect(said.kind == .authenticationFailed && (said.cause as? OAuth2Error)?.code == "bad_refresh_token")
        #expect("\(try JSONDecoder().decode(OAuth2Error.self, from: Data(#"{"error":"x"}"#.utf8)))" == "x")
    }

    @Test func tokenRequestsFollowNoRedirectsAndRequireHTTPS() async throws {
        let other = try server(answer)
        let server = try MockServer { _ in .redirect(to: other.url("/token"), status: 307) }
        let error = try await failure { try await client(server).clientCredentials() }
        #expect(error.response?.status.code == 307 && other.requestCount == 0)
        for host in ["http://login.example.com/t", "http://127.evil.example/t", "http://10.0.0.1/t"] {
            let plain = OAuth2Client(host, id: "a", secret: "hush")
            let error = try await failure { try await plain.clientCredentials() }
            #expect(error.kind == .invalidRequest && error.phase == .preparing, "\(host)")
            #expect(!"\(plain) \(error)".contains("hush"))
        }
    }

    // MARK: With a client

    @Test func clientFetchesItsTokenOverTheSameSession() async throws {
        let login = try server(answer)
        let api = try MockServer { request in
            request.field("Authorization") == "Bearer A" ? .json("1") : .status(401)
        }
        // The token requests use the client's session; the client's authentication does not apply to them.
        let session = Session()
        let app = OAuth2Client(login.url("/token"), id: "a", session: session)
        let client = Client(try BaseURL(api.url("/")), session: session).with { $0.auth = .clientCredentials(app) }
        let value: Int = try await client.get("x")
        #expect(value == 1 && login.requestCount == 1)
        let kept = Client(try BaseURL(api.url("/")), session: session).with {
            $0.auth = .refreshToken(AccessToken("old", refreshToken: "R"), of: app)
        }
        #expect(try await kept.get("x", as: Int.self) == 1)
        #expect(login.requestCount == 2 && api.requestCount == 3)
    }

    @Test func tokenErrorIsTheCauseOfTheRequestError() async throws {
        let login = try server(#"{"error":"invalid_grant"}"#, status: 400)
        let server = try server("1")
        let app = client(login)
        var request = Request(server.url("/"))
        request.interceptors = [.refreshToken(AccessToken("a", expiresIn: .zero, refreshToken: "hush"), of: app)]
        do {
            _ = try await Session().data(for: request)
            Issue.record("the request must fail without a token")
        } catch {
            #expect(error.kind == .authenticationFailed && (error.cause as? OAuth2Error)?.code == .invalidGrant)
            #expect(error.message.contains("invalid_grant") && !error.description.contains("hush"))
            #expect(error.message.hasSuffix("..") == false)
        }
        #expect(server.requestCount == 0)
    }

    @Test func secretsInErrorDescriptionsAreRedacted() async throws {
        let text = #"{"error":"invalid_grant","error_description":"Invalid refresh token: s3 cret&x, of p&q"}"#
        let server = try server(text, status: 400)
        let app = client(server)
        let error = try await failure { try await app.refresh(AccessToken("a", refreshToken: "s3 cret&x")) }
        #expect(error.message.contains("Invalid refresh token: <redacted>, of <redacted>"))
        #expect(error.hint?.contains("log in") == true && !"\(String(reflecting: error.cause))".contains("s3 cret"))
    }

    @Test func retryAfterOfTheTokenEndpointIsReported() async throws {
        let login = try MockServer { _ in .text("busy", status: 503).field("Retry-After", "9") }
        var request = Request("http://127.0.0.1:1/")
        request.interceptors = [.clientCredentials(client(login))]
        let error = try await networkError { try await Session().data(for: request) }
        #expect(error.kind == .authenticationFailed && error.retriability == .safe(after: .seconds(9)))
    }

    @Test func failedTokenRequestIsRetriedWithTheRequest() async throws {
        let login = try MockServer()
        login.on("POST", "/token", inOrder: [.text("busy", status: 503), .json(answer)])
        let server = try MockServer { .text($0.field("Authorization") ?? "nothing") }
        let session = Session { $0.retry = RetryPolicy(limit: 1, backoff: .none) }
        var request = Request(.post, server.url("/"))
        request.interceptors = [.clientCredentials(client(login))]
        #expect(try await session.data(for: request).0 == Data("Bearer A".utf8))
        #expect(login.requestCount == 2 && server.requestCount == 1)
    }

    @Test func anonymousCallsOmitTheClientsCredentials() async throws {
        let server = try MockServer { .text($0.field("Authorization") ?? "nothing") }
        let client = Client(try BaseURL(server.url("/")), session: Session()).with {
            $0.fields.set(.authorization, Credential.bearer("secret"))
            $0.auth = .refreshing(AccessToken("secret")) { _ in AccessToken("other") }
        }
        #expect(try await client.get("", using: .text) == "Bearer secret")
        #expect(try await client.get("", options: .anonymous, using: .text) == "nothing")
    }

    @Test func crossOriginCallsOmitTheClientsAuthentication() async throws {
        let other = try MockServer { .text($0.field("Authorization") ?? "nothing") }
        let client = Client("http://127.0.0.1:1/", session: Session()).with {
            $0.auth = .refreshing(AccessToken("secret")) { _ in AccessToken("other") }
            $0.interceptors = [.refreshing(AccessToken("secret")) { _ in AccessToken("other") }]
        }
        #expect(try await client.get(Path(raw: other.url("/")), using: .text) == "nothing")
    }
}
