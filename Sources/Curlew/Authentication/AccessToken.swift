// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials

/// A secret that a server issues for a limited time, and the data to renew it.
///
/// ```swift
/// AccessToken("eyJhbGciOi…", expiresIn: .seconds(3600), refreshToken: "def50200…")
/// ```
public struct AccessToken: Sendable, Hashable, Codable {
    /// The text that requests carry.
    public var value: String
    /// The scheme of `Authorization` that the token is sent with: "Bearer" unless given (RFC 6750 §2.1).
    public var scheme: String
    /// The time when the server stops accepting the token; nil when it is unknown, and only a refusal shows it.
    public var expiry: Date?
    /// The secret that obtains a new token (RFC 6749 §1.5); nil when there is no such secret.
    public var refreshToken: String?
    /// The permissions of the token, in the server's words, separated by spaces (RFC 6749 §3.3); nil for the requested
    /// ones.
    public var permissions: String?

    /// Creates a token.
    ///
    /// - Parameters:
    ///   - value: The text that requests carry, unchanged.
    ///   - expiry: The time when the server stops accepting the token; nil when it is unknown.
    ///   - refreshToken: The secret that obtains a new token.
    ///   - permissions: The permissions of the token (the server's `scope`).
    ///   - scheme: The scheme of `Authorization`; "Bearer" unless given.
    public init(
        _ value: String, expiry: Date? = nil, refreshToken: String? = nil, permissions: String? = nil,
        scheme: String = "Bearer"
    ) {
        self.value = value
        self.scheme = scheme
        self.expiry = expiry
        self.refreshToken = refreshToken
        self.permissions = permissions
    }

    /// Creates a token whose lifetime starts now.
    ///
    /// - Parameters:
    ///   - value: The text that requests carry, unchanged.
    ///   - lifetime: How long the server accepts the token.
    ///   - refreshToken: The secret that obtains a new token.
    ///   - permissions: The permissions of the token (the server's `scope`).
    public init(
        _ value: String, expiresIn lifetime: Duration, refreshToken: String? = nil, permissions: String? = nil
    ) {
        self.init(
            value, expiry: Date(timeIntervalSinceNow: lifetime.inSeconds), refreshToken: refreshToken,
            permissions: permissions)
    }

    /// The value of `Authorization`.
    package var fieldValue: String { scheme + " " + value }
}

extension AccessToken: CustomStringConvertible, CustomReflectable {
    /// The scheme and "<redacted>".
    public var description: String { "\(scheme) \(redaction)" }

    /// The description alone.
    public var customMirror: Mirror { Mirror(self, children: ["description": description], displayStyle: .struct) }
}

/// Persistent storage for a token between runs of a program.
///
/// ```swift
/// struct Keyring: TokenStore {
///     func load() async throws -> AccessToken? { try await keys["api"] }
///     func save(_ token: AccessToken?) async throws { try await keys.set("api", token) }
/// }
/// ```
public protocol TokenStore: Sendable {
    /// Returns the token that was saved last; nil when there is no saved token.
    ///
    /// Curlew calls this method before the first request that needs a token, and again only if it throws.
    /// - Throws: Any error: requests that wait for the token fail with it as the cause, and the next request calls the
    ///   method again.
    func load() async throws -> AccessToken?

    /// Saves a token in place of the last one.
    ///
    /// Curlew calls this method after each refresh, before waiting requests continue with the new token, and after
    /// `replace(_:)`. Calls do not overlap, and the last call has the token that is current then. Cancelling a request
    /// does not cancel a call.
    /// - Parameter token: The token to save; nil to delete the saved token.
    /// - Throws: Any error: waiting requests fail with it as the cause; later requests use the new token.
    func save(_ token: AccessToken?) async throws
}
