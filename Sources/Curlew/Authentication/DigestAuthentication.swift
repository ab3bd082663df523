// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Proves that somebody knows a password, without saying it (RFC 7616; RFC 2069 for servers that know no better).
///
/// The first request goes without proof and is repeated when the server asks for it; from then on each request in the
/// same protection space has proof at once, also many at the same time. One value serves any number of servers, and its
/// copies share what it knows of them; so make one and keep it. It answers every server that a request is addressed to:
/// as the authenticator of a client that is the client's own, of a session all of them.
///
/// - SHA-512-256, SHA-256 and MD5 are known, each also as `-sess`, and the strongest that a server offers is used; one
///   that this machine does not compute, as MD5 in FIPS mode, is passed over.
/// - `auth` covers method and URI, `auth-int` the body, too. Bodies are read twice for that, files off the loop, and not
///   compressed.
/// - A nonce that the server calls stale is replaced by its new one. A refusal of a digest for another reason means that
///   the password is wrong: the 401 is the result.
/// - A request whose body can be read only once asks the server before it sends it (`Expect: 100-continue`); so does one
///   of at least 64 KiB to a server of which nothing is known yet. Where the body is gone, as over HTTP/2, the 401 is
///   the result.
/// - What the server says to prove itself (`rspauth`) is not looked at: TLS is for that.
/// - A digest is sent over http, too: it does not tell the password, although a weak one can be guessed from it.
///
/// A request that says itself who asks, by a field `Authorization` or by the user-info of its URL, goes as it is.
///
/// ```swift
/// let camera = Client("http://camera.local").with { $0.auth = .digest("viewer", password) }
/// ```
public struct DigestAuthentication: Authenticator {
    private let exchange: PasswordExchange

    /// Takes name and password, which are looked at when a request is sent.
    ///
    /// - Parameters:
    ///   - user: The name; names that are not ASCII go as RFC 8187 or the server's `userhash` has it.
    ///   - password: The password, in UTF-8.
    ///   - protectsBodies: Whether bodies are covered wherever the server offers it; false, the default, does that only
    ///     where the server takes nothing else.
    public init(_ user: String, _ password: String, protectsBodies: Bool = false) {
        self.init(user, password, protectsBodies: protectsBodies, spaces: ProtectionSpaces())
    }

    init(_ user: String, _ password: String, protectsBodies: Bool = false, spaces: ProtectionSpaces) {
        exchange = PasswordExchange(user, password, .init(protectsBodies: protectsBodies), spaces: spaces)
    }

    /// Gives the response to a request with proof, asked for or not.
    /// - Throws: `NetworkError`: `.invalidRequest` with the cause ``InvalidCredential`` for control characters,
    ///   `.bodyNotReplayable` where the server wants a digest of a body that can be read only once, or what `next` throws.
    public func authenticate(
        _ request: Request, context: InterceptorContext, next: Next
    ) async throws -> IncomingResponse {
        try await exchange.response(to: request, next)
    }
}

/// Shows a name and a password in the way that a server asks for: Digest wherever it is offered, else Basic.
///
/// Basic credentials are sent only over TLS or to this machine, so that a server of an http URL cannot obtain the
/// password by asking for Basic. If such a server offers only Basic, the request fails with `.invalidRequest` unless
/// `allowsPlainHTTP` is true. The scheme that a server asks for is remembered, and later requests send credentials at
/// once. See ``DigestAuthentication`` for everything else.
///
/// ```swift
/// let api = Client("https://files.example.com").with { $0.auth = .password("anna", password) }
/// ```
public struct PasswordAuthentication: Authenticator {
    private let exchange: PasswordExchange

    /// Takes name and password, which are looked at when a request is sent.
    ///
    /// - Parameters:
    ///   - user: The name.
    ///   - password: The password.
    ///   - allowsPlainHTTP: Whether Basic is answered without TLS, too, where others can read the password; false unless
    ///     given. This machine (localhost, 127.0.0.0/8, ::1) is answered in any case.
    public init(_ user: String, _ password: String, allowsPlainHTTP: Bool = false) {
        exchange = PasswordExchange(user, password, .init(allowsBasic: true, allowsPlainHTTP: allowsPlainHTTP))
    }

    /// Gives the response to a request with proof, asked for or not.
    /// - Throws: As ``DigestAuthentication/authenticate(_:context:next:)`` does; `.invalidRequest` where the server wants
    ///   Basic for a name with a colon, and over plain http.
    public func authenticate(
        _ request: Request, context: InterceptorContext, next: Next
    ) async throws -> IncomingResponse {
        try await exchange.response(to: request, next)
    }
}

/// What can answer a challenge that has come already, without asking for another one.
protocol ChallengeAnswering: Authenticator {
    func response(to request: Request, after refusal: IncomingResponse, next: Next) async throws -> IncomingResponse
}

extension DigestAuthentication: ChallengeAnswering {
    func response(to request: Request, after refusal: IncomingResponse, next: Next) async throws -> IncomingResponse {
        try await exchange.response(to: request, next, after: refusal)
    }
}

extension PasswordAuthentication: ChallengeAnswering {
    func response(to request: Request, after refusal: IncomingResponse, next: Next) async throws -> IncomingResponse {
        try await exchange.response(to: request, next, after: refusal)
    }
}

extension Interceptor where Self == DigestAuthentication {
    /// Proves that somebody knows a password, without saying it.
    ///
    /// - Parameters:
    ///   - user: The name.
    ///   - password: The password.
    ///   - protectsBodies: Whether bodies are covered wherever the server offers it; false unless given.
    public static func digest(
        _ user: String, _ password: String, protectsBodies: Bool = false
    ) -> DigestAuthentication {
        DigestAuthentication(user, password, protectsBodies: protectsBodies)
    }
}

extension Interceptor where Self == PasswordAuthentication {
    /// Shows a name and a password in the way that a server asks for.
    ///
    /// - Parameters:
    ///   - user: The name.
    ///   - password: The password.
    ///   - allowsPlainHTTP: Whether Basic is answered without TLS, too; false unless given.
    public static func password(
        _ user: String, _ password: String, allowsPlainHTTP: Bool = false
    ) -> PasswordAuthentication {
        PasswordAuthentication(user, password, allowsPlainHTTP: allowsPlainHTTP)
    }
}

extension DigestAuthentication: CustomStringConvertible, CustomReflectable {
    /// The scheme, and "<redacted>".
    public var description: String { "Digest \(redaction)" }

    /// The description alone.
    public var customMirror: Mirror { Mirror(self, children: ["description": description], displayStyle: .struct) }
}

extension PasswordAuthentication: CustomStringConvertible, CustomReflectable {
    /// What it is, and "<redacted>".
    public var description: String { "Password \(redaction)" }

    /// The description alone.
    public var customMirror: Mirror { Mirror(self, children: ["description": description], displayStyle: .struct) }
}
