// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Proves knowledge of a password without sending it (RFC 7616; RFC 2069 for servers that support only that).
///
/// The first request is sent without proof and is sent again when the server requires proof; from then on each request
/// in the same protection space has proof at once, also when many are sent at the same time. One value serves any
/// number of servers, and its copies share the state for them, so create one and keep it. It responds to every server
/// that a request is addressed to: as the authenticator of a client, to the client's own server; as that of a session,
/// to all servers.
///
/// - It supports SHA-512-256, SHA-256 and MD5, each also as `-sess`, and uses the strongest that a server offers. It
///   ignores an algorithm that this machine does not support, such as MD5 in FIPS mode.
/// - `auth` covers method and URI, `auth-int` also the body. For `auth-int`, bodies are read twice, files off the loop,
///   and bodies are not compressed.
/// - A nonce that the server calls stale is replaced by its new one. A refusal of a digest for another reason means
///   that the password is wrong: the 401 is the result.
/// - A request whose body can be read only once waits for the server's consent before it sends the body (`Expect:
///   100-continue`), and so does a request with a body of at least 64 KiB to a server about which nothing is known yet.
///   If the body has been used up, as happens over HTTP/2, the 401 is the result.
/// - The server's own proof (`rspauth`) is ignored: TLS authenticates servers.
/// - A digest is also sent over http: it does not contain the password, although a weak password can be guessed from
///   it.
///
/// A request with its own credentials, in an `Authorization` field or in the user-info of its URL, is sent unchanged.
///
/// ```swift
/// let camera = Client("http://camera.local").with { $0.auth = .digest("viewer", password) }
/// ```
public struct DigestAuthentication: Authenticator {
    private let exchange: PasswordExchange

    /// Creates authentication with a name and a password, which are checked when a request is sent.
    ///
    /// - Parameters:
    ///   - user: The name; a name that is not ASCII is sent as RFC 8187 or the server's `userhash` requires.
    ///   - password: The password, in UTF-8.
    ///   - protectsBodies: Whether bodies are covered wherever the server offers it; false, the default, covers them
    ///     only where the server accepts nothing else.
    public init(_ user: String, _ password: String, protectsBodies: Bool = false) {
        self.init(user, password, protectsBodies: protectsBodies, spaces: ProtectionSpaces())
    }

    init(_ user: String, _ password: String, protectsBodies: Bool = false, spaces: ProtectionSpaces) {
        exchange = PasswordExchange(user, password, .init(protectsBodies: protectsBodies), spaces: spaces)
    }

    /// Returns the response to a request, which is sent with proof when the server needs it.
    /// - Throws: `NetworkError`: `.invalidRequest` with the cause ``Credential/Invalid`` for control characters,
    ///   `.bodyNotReplayable` when the server requires a digest of a body that can be read only once, or the error that
    ///   `next` throws.
    public func authenticate(
        _ request: Request, context: Interception.Context, next: Interception.Next
    ) async throws -> IncomingResponse {
        try await exchange.response(to: request, next)
    }
}

/// Sends a name and a password in the scheme that a server requires: Digest wherever it is offered, else Basic.
///
/// Basic credentials are sent only over TLS or to this machine, so that a server of an http URL cannot obtain the
/// password by requiring Basic. If such a server offers only Basic, the request fails with `.invalidRequest` unless
/// `allowsPlainHTTP` is true. The scheme that a server requires is remembered, and later requests send credentials at
/// once. See ``DigestAuthentication`` for everything else.
///
/// ```swift
/// let api = Client("https://files.example.com").with { $0.auth = .password("anna", password) }
/// ```
public struct PasswordAuthentication: Authenticator {
    private let exchange: PasswordExchange

    /// Creates authentication with a name and a password, which are checked when a request is sent.
    ///
    /// - Parameters:
    ///   - user: The name.
    ///   - password: The password.
    ///   - allowsPlainHTTP: Whether Basic credentials are also sent without TLS, where others can read the password;
    ///     false unless given. They are sent to this machine (localhost, 127.0.0.0/8, ::1) in any case.
    public init(_ user: String, _ password: String, allowsPlainHTTP: Bool = false) {
        exchange = PasswordExchange(user, password, .init(allowsBasic: true, allowsPlainHTTP: allowsPlainHTTP))
    }

    /// Returns the response to a request, which is sent with credentials when the server needs them.
    /// - Throws: As ``DigestAuthentication/authenticate(_:context:next:)`` does; `.invalidRequest` when the server
    ///   requires Basic for a name with a colon, or over plain http.
    public func authenticate(
        _ request: Request, context: Interception.Context, next: Interception.Next
    ) async throws -> IncomingResponse {
        try await exchange.response(to: request, next)
    }
}

/// An authenticator that can respond to a challenge that has already arrived, without requesting another one.
protocol ChallengeResponder: Authenticator {
    func response(to request: Request, after refusal: IncomingResponse, next: Interception.Next) async throws
        -> IncomingResponse
}

extension DigestAuthentication: ChallengeResponder {
    func response(to request: Request, after refusal: IncomingResponse, next: Interception.Next) async throws
        -> IncomingResponse
    {
        try await exchange.response(to: request, next, after: refusal)
    }
}

extension PasswordAuthentication: ChallengeResponder {
    func response(to request: Request, after refusal: IncomingResponse, next: Interception.Next) async throws
        -> IncomingResponse
    {
        try await exchange.response(to: request, next, after: refusal)
    }
}

extension Interceptor where Self == DigestAuthentication {
    /// Proves knowledge of a password without sending it.
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
    /// Sends a name and a password in the scheme that a server requires.
    ///
    /// - Parameters:
    ///   - user: The name.
    ///   - password: The password.
    ///   - allowsPlainHTTP: Whether Basic credentials are also sent without TLS; false unless given.
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
    /// The name of the scheme choice, and "<redacted>".
    public var description: String { "Password \(redaction)" }

    /// The description alone.
    public var customMirror: Mirror { Mirror(self, children: ["description": description], displayStyle: .struct) }
}
