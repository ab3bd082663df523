// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
// OAuth obtains access tokens from an authorization server (RFC 6749). It depends on sessions and on the authentication
// that sends the tokens.

public import Curlew
internal import FoundationEssentials

/// A program that is registered with an authorization server and gets access tokens from it (RFC 6749).
///
/// ```swift
/// let app = OAuth2Client(
///     "https://login.example.com/oauth2/token", id: "reports", secret: secret, scopes: ["read"])
/// let api = Client("https://api.example.com").with { $0.auth = .clientCredentials(app) }
/// ```
public struct OAuth2Client: Sendable {
    /// The method by which the program authenticates to the authorization server (RFC 6749 §2.3.1).
    public enum Proof: String, Sendable, Hashable, CaseIterable, Codable {
        /// Basic authentication, which every server has to support.
        case basic
        /// `client_id` and `client_secret` in the body, for servers that do not support Basic.
        case body
    }

    /// The token endpoint (RFC 6749 §3.2).
    public var tokenURL: String
    /// The program's identifier (`client_id`).
    public var id: String
    /// The secret that authenticates the program; nil for a program that cannot keep a secret (RFC 6749 §2.1).
    public var secret: String?
    /// The method of authentication.
    public var proof: Proof
    /// The permissions to request for tokens; when empty, the server chooses (RFC 6749 §3.3).
    public var scopes: [String]
    /// Additional parameters of the token request, such as `audience` or `resource` (RFC 8707).
    public var parameters: Request.Query
    /// Whether requests for tokens are also sent without TLS, where others can read them (RFC 6749 §3.2); false unless
    /// set.
    ///
    /// Requests to this machine (localhost, 127.0.0.0/8, ::1) are sent in any case. The requests that carry the tokens
    /// have a separate option, ``RefreshingAuthentication/Settings/allowsPlainHTTP``.
    public var allowsPlainHTTP: Bool
    /// The session that sends the requests.
    public var session: Session

    /// Creates a client for a program and its authorization server.
    ///
    /// - Parameters:
    ///   - tokenURL: The token endpoint.
    ///   - id: The program's identifier.
    ///   - secret: The secret that authenticates the program.
    ///   - proof: The method of authentication; Basic unless given.
    ///   - scopes: The permissions to request for tokens.
    ///   - parameters: Additional parameters of the token request.
    ///   - allowsPlainHTTP: Whether secrets are also sent without TLS; false unless given.
    ///   - session: The session that sends the requests; `Session.shared` unless given.
    public init(
        _ tokenURL: String, id: String, secret: String? = nil, proof: Proof = .basic, scopes: [String] = [],
        parameters: Request.Query = [:], allowsPlainHTTP: Bool = false, session: Session = .shared
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
    /// - Throws: The errors of ``token(for:_:)``.
    public func clientCredentials() async throws(NetworkError) -> AccessToken {
        try await token(for: "client_credentials", scoped)
    }

    /// Gets a new token in place of a token that has a refresh token (RFC 6749 §6).
    ///
    /// - Parameter token: The old token. The new token keeps its refresh token, unless the server sends another.
    /// - Throws: The errors of ``token(for:_:)``; `.authenticationFailed` when the old token has no refresh token.
    public func refresh(_ token: AccessToken?) async throws(NetworkError) -> AccessToken {
        guard let refreshToken = token?.refreshToken else {
            throw NetworkError(
                .authenticationFailed, phase: .preparing, "There is no refresh token to get an access token with.",
                hint: "Ask the user to log in (again).")
        }
        // The request omits the scopes: the server knows which scopes it granted, which may be fewer than the requested
        // ones (RFC 6749 §6).
        var fresh = try await self.token(for: "refresh_token", ["refresh_token": refreshToken])
        fresh.refreshToken = fresh.refreshToken ?? refreshToken
        fresh.permissions = fresh.permissions ?? token?.permissions
        return fresh
    }

    /// Gets a token by any grant of the token endpoint, such as `authorization_code`.
    ///
    /// The request is sent without any ``Authenticator`` and follows no redirect, because it carries secrets.
    /// - Parameters:
    ///   - grant: The `grant_type`.
    ///   - parameters: The parameters of the grant, such as `code`, `redirect_uri` and `code_verifier` (RFC 7636).
    /// - Throws: `NetworkError`: `.invalidRequest` for a URL without TLS; `.authenticationFailed` when the server
    ///   refuses, with an ``OAuth2Error`` as the cause if the response has one, and when the response has no token of a
    ///   supported type; `.unacceptableStatus` when the server cannot handle the request; any other error that ends a
    ///   transfer.
    public func token(for grant: String, _ parameters: Request.Query = [:]) async throws(NetworkError) -> AccessToken {
        let (request, form) = try request(for: grant, parameters)
        let (body, head) = try await session.data(for: request)
        let decoder = JSON()
        let refusal = (try? decoder.decode(OAuth2Error.self, from: body))?.redacting(secrets(in: form))
        let isBusy = head.status.kind == .serverError || RetryPolicy.transient.contains(head.status)
        guard !isBusy else {
            throw NetworkError(
                .unacceptableStatus, phase: .validating, "The authorization server responded with \(head.status).",
                cause: refusal, request: request, response: head)
        }
        // Some servers refuse with status 200 and an error in the body.
        if let refusal {
            throw NetworkError(
                .authenticationFailed, phase: .validating, "The authorization server issued no token: \(refusal).",
                hint: refusal.hint, cause: refusal, request: request, response: head)
        }
        guard head.status == .ok else {
            throw NetworkError(
                .authenticationFailed, phase: .validating, "The authorization server responded with \(head.status).",
                request: request, response: head)
        }
        do {
            return try decoder.decode(TokenResponse.self, from: body).token(now: Date())
        } catch {
            throw NetworkError(
                .authenticationFailed, phase: .decoding, "The authorization server's response has no usable token.",
                hint: "Expect JSON with access_token and the token_type “Bearer” (RFC 6749 §5.1).", cause: error,
                request: request, response: head)
        }
    }

    /// Returns the secrets of a request, which must not appear in a message.
    private func secrets(in form: String) -> [String] {
        let names: Set = ["refresh_token", "code", "code_verifier", "password", "assertion", "client_assertion"]
        let sent = form.split(separator: "&").compactMap { pair -> String? in
            let parts = pair.split(separator: "=", maxSplits: 1)
            guard parts.count == 2, names.contains(String(parts[0])) else { return nil }
            return String(decoding: parts[1].utf8.formDecoded, as: UTF8.self)
        }
        return [secret].compactMap(\.self) + sent
    }

    private var scoped: Request.Query { scopes.isEmpty ? [:] : ["scope": scopes.joined(separator: " ")] }

    /// Returns the request, and the form that it sends.
    private func request(for grant: String, _ parameters: Request.Query) throws(NetworkError) -> (Request, String) {
        var request = Request(
            .post, tokenURL, options: [.anonymous, .redirects(.never), .responseLimit(.mebibytes(1))])
        try request.refusePlainHTTP(
            for: "Requests for tokens", unless: allowsPlainHTTP, option: "OAuth2Client(…, allowsPlainHTTP: true)")
        var form = self.parameters.merging(parameters).merging(["grant_type": grant])
        request.fields = [.accept: "application/json", .contentType: "application/x-www-form-urlencoded"]
        if let secret, proof == .basic {
            // Name and secret are form-encoded before they are joined (RFC 6749 §2.3.1).
            let credential = try? Credential.basic(id.formEncoded, secret.formEncoded)
            request.fields[.authorization] = credential?.fieldValue
        } else {
            form = form.merging(["client_id": id])
            if let secret { form = form.merging(["client_secret": secret]) }
        }
        do {
            let text = try form.text(Request.QueryEncoder())
            request.body = .text(text)
            return (request, text)
        } catch {
            throw NetworkError(
                .encodingFailed, phase: .preparing, "The grant's parameters cannot be encoded.", cause: error,
                request: request)
        }
    }
}

extension OAuth2Client: CustomStringConvertible, CustomReflectable {
    /// The identifier and the endpoint, redacted.
    public var description: String { "OAuth2Client(\(id.escapingControls), \(redactedURL(tokenURL)))" }

    /// The description alone.
    public var customMirror: Mirror { Mirror(self, children: ["description": description], displayStyle: .struct) }
}

extension String {
    fileprivate var formEncoded: String { percentEncoded(keeping: .unreserved) }
}

extension Interceptor where Self == RefreshingAuthentication {
    /// Returns authentication with tokens for the program itself, by the client credentials grant (RFC 6749 §4.4).
    ///
    /// - Parameters:
    ///   - client: The program and its authorization server.
    ///   - store: The storage for the token between runs of the program; the token is not saved unless it is given.
    ///   - settings: The conditions for replacing the token.
    public static func clientCredentials(
        _ client: OAuth2Client, store: (any TokenStore)? = nil,
        settings: RefreshingAuthentication.Settings = RefreshingAuthentication.Settings()
    ) -> RefreshingAuthentication {
        RefreshingAuthentication(store: store, settings: settings) { _ in try await client.clientCredentials() }
    }

    /// Returns authentication with tokens for a logged-in user, by the refresh token grant (RFC 6749 §6).
    ///
    /// - Parameters:
    ///   - token: The token of the log-in; nil when the store has it.
    ///   - client: The program and its authorization server.
    ///   - store: The storage for the token between runs of the program; the token is not saved unless it is given.
    ///   - settings: The conditions for replacing the token.
    public static func refreshToken(
        _ token: AccessToken? = nil, of client: OAuth2Client, store: (any TokenStore)? = nil,
        settings: RefreshingAuthentication.Settings = RefreshingAuthentication.Settings()
    ) -> RefreshingAuthentication {
        RefreshingAuthentication(token, store: store, settings: settings) { try await client.refresh($0) }
    }
}
