// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
// OAuth is how a program gets access tokens from an authorization server (RFC 6749). It knows sessions, and the
// authentication that its tokens are for.

internal import FoundationEssentials

/// A program that an authorization server knows, and that gets access tokens from it (RFC 6749).
///
/// ```swift
/// let app = OAuth2Client(
///     "https://login.example.com/oauth2/token", id: "reports", secret: secret, scopes: ["read"])
/// let api = Client("https://api.example.com").with { $0.auth = .clientCredentials(app) }
/// ```
public struct OAuth2Client: Sendable {
    /// How the program proves to the authorization server who it is (RFC 6749 §2.3.1).
    public enum Proof: String, Sendable, Hashable, CaseIterable, Codable {
        /// By Basic authentication, which every server has to know.
        case basic
        /// By `client_id` and `client_secret` in the body, for servers that know no better.
        case body
    }

    /// The token endpoint (RFC 6749 §3.2).
    public var tokenURL: String
    /// The program's name (`client_id`).
    public var id: String
    /// What it proves its name with; nil for a program that cannot keep a secret (RFC 6749 §2.1).
    public var secret: String?
    /// How it does.
    public var proof: Proof
    /// What tokens are to allow; what the server thinks fit when there is none (RFC 6749 §3.3).
    public var scopes: [String]
    /// What the server wants to know beside that, such as `audience` or `resource` (RFC 8707).
    public var parameters: Query
    /// Whether requests for tokens are sent without TLS, too, where others can read them (RFC 6749 §3.2); false unless
    /// set.
    ///
    /// This machine (localhost, 127.0.0.0/8, ::1) gets them in any case. The requests that carry the tokens have an option
    /// of their own, ``RefreshingAuthentication/Settings/allowsPlainHTTP``.
    public var allowsPlainHTTP: Bool
    /// What sends the requests.
    public var session: Session

    /// A program and its authorization server.
    ///
    /// - Parameters:
    ///   - tokenURL: The token endpoint.
    ///   - id: The program's name.
    ///   - secret: What it proves its name with.
    ///   - proof: How it does; by Basic authentication unless given.
    ///   - scopes: What tokens are to allow.
    ///   - parameters: What the server wants to know beside that.
    ///   - allowsPlainHTTP: Whether secrets are sent without TLS, too; false unless given.
    ///   - session: Sends the requests; `Session.shared` unless given.
    public init(
        _ tokenURL: String, id: String, secret: String? = nil, proof: Proof = .basic, scopes: [String] = [],
        parameters: Query = [:], allowsPlainHTTP: Bool = false, session: Session = .shared
    ) {
        self.tokenURL = tokenURL
        self.id = id
        self.secret = secret
        self.proof = proof
        self.scopes = scopes
        self.parameters = parameters
        self.allowsPlainHTTP = allowsPlainHTTP
        self.session = session
    }

    /// Gets a token for the program itself (RFC 6749 §4.4).
    /// - Throws: What ``token(for:_:)`` throws.
    public func clientCredentials() async throws(NetworkError) -> AccessToken {
        try await token(for: "client_credentials", scoped)
    }

    /// Gets a new token in the place of one that came with a refresh token (RFC 6749 §6).
    ///
    /// - Parameter token: The old one. Its refresh token stays the new one's, unless the server gives another.
    /// - Throws: What ``token(for:_:)`` throws; `.authenticationFailed` when the old one has no refresh token.
    public func refresh(_ token: AccessToken?) async throws(NetworkError) -> AccessToken {
        guard let refreshToken = token?.refreshToken else {
            throw NetworkError(
                .authenticationFailed, phase: .preparing, "There is no refresh token to get an access token with.",
                hint: "Somebody has to log in (again).")
        }
        // Without scopes: the server knows what was granted, which may be less than was asked for (RFC 6749 §6).
        var fresh = try await self.token(for: "refresh_token", ["refresh_token": refreshToken])
        fresh.refreshToken = fresh.refreshToken ?? refreshToken
        fresh.permissions = fresh.permissions ?? token?.permissions
        return fresh
    }

    /// Gets a token by any grant of the token endpoint, such as `authorization_code`.
    ///
    /// The request goes out without any ``Authenticator``, and follows no redirect: it carries secrets.
    /// - Parameters:
    ///   - grant: The `grant_type`.
    ///   - parameters: What the grant needs, such as `code`, `redirect_uri` and `code_verifier` (RFC 7636).
    /// - Throws: `NetworkError`: `.invalidRequest` for a URL without TLS; `.authenticationFailed` when the server refuses,
    ///   with an ``OAuth2Error`` as the cause if it says why, and when its answer has no token of a kind that is known;
    ///   `.unacceptableStatus` when it is not able to; whatever else ends a transfer.
    public func token(for grant: String, _ parameters: Query = [:]) async throws(NetworkError) -> AccessToken {
        let (request, form) = try request(for: grant, parameters)
        let (body, head) = try await session.data(for: request)
        let decoder = JSON()
        let refusal = (try? decoder.decode(OAuth2Error.self, from: body))?.redacting(secrets(in: form))
        let isBusy = head.status.kind == .serverError || RetryPolicy.transient.contains(head.status)
        guard !isBusy else {
            throw NetworkError(
                .unacceptableStatus, phase: .validating, "The authorization server answered \(head.status).",
                cause: refusal, request: request, response: head)
        }
        // Some servers refuse with 200, and an error in the body.
        if let refusal {
            throw NetworkError(
                .authenticationFailed, phase: .validating, "The authorization server gave no token: \(refusal).",
                hint: refusal.hint, cause: refusal, request: request, response: head)
        }
        guard head.status == .ok else {
            throw NetworkError(
                .authenticationFailed, phase: .validating, "The authorization server answered \(head.status).",
                request: request, response: head)
        }
        do {
            return try decoder.decode(TokenResponse.self, from: body).token(now: Date())
        } catch {
            throw NetworkError(
                .authenticationFailed, phase: .decoding, "The authorization server's answer has no token of use.",
                hint: "It is to be JSON with access_token and the token_type “Bearer” (RFC 6749 §5.1).", cause: error,
                request: request, response: head)
        }
    }

    /// What was sent and must not come back in a message.
    private func secrets(in form: String) -> [String] {
        let names: Set = ["refresh_token", "code", "code_verifier", "password", "assertion", "client_assertion"]
        let sent = form.split(separator: "&").compactMap { pair -> String? in
            let parts = pair.split(separator: "=", maxSplits: 1)
            guard parts.count == 2, names.contains(String(parts[0])) else { return nil }
            return String(decoding: parts[1].utf8.formDecoded, as: UTF8.self)
        }
        return [secret].compactMap(\.self) + sent
    }

    private var scoped: Query { scopes.isEmpty ? [:] : ["scope": scopes.joined(separator: " ")] }

    /// The request, and the form it sends.
    private func request(for grant: String, _ parameters: Query) throws(NetworkError) -> (Request, String) {
        var request = Request(.post, tokenURL, options: [.anonymous, .redirects(.none), .responseLimit(.mebibytes(1))])
        try request.refusePlainHTTP(
            for: "Requests for tokens", unless: allowsPlainHTTP, option: "OAuth2Client(…, allowsPlainHTTP: true)")
        var form = self.parameters.merging(parameters).merging(["grant_type": grant])
        request.fields = [.accept: "application/json", .contentType: "application/x-www-form-urlencoded"]
        if let secret, proof == .basic {
            // Name and secret are written like a form before they are joined (RFC 6749 §2.3.1).
            let credential = try? Credential.basic(id.formEncoded, secret.formEncoded)
            request.fields[.authorization] = credential?.fieldValue
        } else {
            form = form.merging(["client_id": id])
            if let secret { form = form.merging(["client_secret": secret]) }
        }
        do {
            let text = try form.text(QueryEncoder())
            request.body = .text(text)
            return (request, text)
        } catch {
            throw NetworkError(
                .encodingFailed, phase: .preparing, "The grant's parameters cannot be written.", cause: error,
                request: request)
        }
    }
}

extension OAuth2Client: CustomStringConvertible, CustomReflectable {
    /// Name and endpoint, redacted.
    public var description: String { "OAuth2Client(\(id.escapingControls), \(redactedURL(tokenURL)))" }

    /// The description alone.
    public var customMirror: Mirror { Mirror(self, children: ["description": description], displayStyle: .struct) }
}

extension String {
    fileprivate var formEncoded: String { percentEncoded(keeping: .unreserved) }
}

extension Interceptor where Self == RefreshingAuthentication {
    /// Tokens for the program itself, by the client credentials grant (RFC 6749 §4.4).
    ///
    /// - Parameters:
    ///   - client: The program and its authorization server.
    ///   - store: Keeps the token from one run of the program to the next; nobody unless given.
    ///   - settings: When it is replaced.
    public static func clientCredentials(
        _ client: OAuth2Client, store: (any TokenStore)? = nil,
        settings: RefreshingAuthentication.Settings = RefreshingAuthentication.Settings()
    ) -> RefreshingAuthentication {
        RefreshingAuthentication(store: store, settings: settings) { _ in try await client.clientCredentials() }
    }

    /// Tokens for a user who has logged in, by the refresh token grant (RFC 6749 §6).
    ///
    /// - Parameters:
    ///   - token: What came of the log-in; nil when the store has it.
    ///   - client: The program and its authorization server.
    ///   - store: Keeps the token from one run of the program to the next; nobody unless given.
    ///   - settings: When it is replaced.
    public static func refreshToken(
        _ token: AccessToken? = nil, of client: OAuth2Client, store: (any TokenStore)? = nil,
        settings: RefreshingAuthentication.Settings = RefreshingAuthentication.Settings()
    ) -> RefreshingAuthentication {
        RefreshingAuthentication(token, store: store, settings: settings) { try await client.refresh($0) }
    }
}
