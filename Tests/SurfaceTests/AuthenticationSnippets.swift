// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewAuth

// The documentation's snippets about authentication, so that they are known to compile.

/// A namespace, because another snippet uses the same name.
private enum Authenticating {
    struct Signature: Authenticator {
        let key: String

        func authenticate(
            _ request: Request, context: Interception.Context, next: Interception.Next
        ) async throws -> IncomingResponse {
            var request = request
            request.fields["X-Signature"] = key
            return try await next(request)
        }
    }
}

private struct Grant: Decodable, Sendable { let access_token: String, refresh_token: String, expires_in: Int }

private func refreshing(_ login: JSONClient) {
    let api = Client("https://api.example.com").with {
        $0.auth = .refreshing { old in
            let grant: Grant = try await login.post("token", .form(["refresh_token": old?.refreshToken ?? ""]))
            return AccessToken(
                grant.access_token, expiresIn: .seconds(grant.expires_in), refreshToken: grant.refresh_token)
        }
    }
    _ = api.with { $0.interceptors = [.refreshing { _ in AccessToken("t") }] }
}

private struct Keys: Sendable {
    subscript(_ name: String) -> AccessToken? { get async throws { nil } }
    func set(_ name: String, _ token: AccessToken?) async throws {}
}

private let keys = Keys()

struct Keyring: TokenStore {
    func load() async throws -> AccessToken? { try await keys["api"] }
    func save(_ token: AccessToken?) async throws { try await keys.set("api", token) }
}

private func tokens() -> AccessToken {
    AccessToken("eyJhbGciOi…", expiresIn: .seconds(3600), refreshToken: "def50200…")
}

private func machine(secret: String) {
    let app = OAuth2Client(
        "https://login.example.com/oauth2/token", id: "reports", secret: secret, scopes: ["read"])
    let api = Client("https://api.example.com").with { $0.auth = .clientCredentials(app) }
    _ = (api, api.with { $0.auth = .refreshToken(of: app, store: Keyring()) })
}

private func logInAgain() async throws {}

private func failed(_ error: NetworkError) async throws {
    if (error.cause as? OAuth2Error)?.code == .invalidGrant { try await logInAgain() }
}

private func askUser(_ realm: String?) async -> (String, String) { ("anna", realm ?? "") }

private func authenticating(_ head: ResponseHead, _ token: String, _ password: String) {
    for challenge in head.challenges where challenge.scheme == .basic {
        print(challenge.realm ?? "no realm", challenge["charset"] ?? "no charset")
    }

    do {
        let api = Client("https://api.example.com").with { $0.auth = .basic("anna", password) }
        _ = api
    }
    do {
        let api = Client("https://api.example.com").with { $0.auth = .bearer(token) }
        _ = api
    }
    do {
        let camera = Client("http://camera.local").with { $0.auth = .digest("viewer", password) }
        _ = camera
    }
    do {
        let api = Client("https://files.example.com").with { $0.auth = .password("anna", password) }
        _ = api
    }
    do {
        let answer = ChallengeAuthentication.Decision.use(.password("anna", password))
        _ = answer
    }
    do {
        let api = Client("https://api.example.com").with {
            $0.auth = .challenge { challenge, context in
                guard challenge.scheme == .basic || challenge.scheme == .digest else { return .reject }
                guard context.failures < 3 else { return .useDefault }
                let (user, password) = await askUser(challenge.realm)
                return .use(.password(user, password))
            }
        }
        _ = api
    }
    // The short spelling also works in the lists of sessions and requests.
    let interceptors: [any Interceptor] = [
        .basic("anna", password), .bearer(token), .digest("anna", password, protectsBodies: true),
        .password("anna", password, allowsPlainHTTP: true), .challenge { _, _ in .useDefault }, .netrc(),
        .hmac(key: Array(password.utf8), field: "X-Signature"), .refreshing { _ in AccessToken(token) },
    ]
    _ = interceptors
}

private func deciding(_ context: ChallengeAuthentication.Context) -> ChallengeAuthentication.Decision {
    guard context.failures == 0 else { return .useDefault }
    return .reject
}
