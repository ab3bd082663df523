// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials

/// A secret that servers give out for a while, and what renews it.
///
/// ```swift
/// AccessToken("eyJhbGciOi…", expiresIn: .seconds(3600), refreshToken: "def50200…")
/// ```
public struct AccessToken: Sendable, Hashable, Codable {
    /// What requests carry.
    public var value: String
    /// The scheme of `Authorization` that it is sent with: "Bearer" unless given (RFC 6750 §2.1).
    public var scheme: String
    /// When the server stops taking it; nil when nothing is known, and only a refusal tells.
    public var expiry: Date?
    /// What a new token is got with (RFC 6749 §1.5); nil for none.
    public var refreshToken: String?
    /// What it allows, in the server's words, separated by spaces (RFC 6749 §3.3); nil for what was asked for.
    public var permissions: String?

    /// A token.
    ///
    /// - Parameters:
    ///   - value: What requests carry, as it is.
    ///   - expiry: When the server stops taking it; nil when nothing is known.
    ///   - refreshToken: What a new token is got with.
    ///   - permissions: What it allows (the server's `scope`).
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

    /// A token that lasts from now on.
    ///
    /// - Parameters:
    ///   - value: What requests carry, as it is.
    ///   - lifetime: How long the server takes it.
    ///   - refreshToken: What a new token is got with.
    ///   - permissions: What it allows (the server's `scope`).
    public init(
        _ value: String, expiresIn lifetime: Duration, refreshToken: String? = nil, permissions: String? = nil
    ) {
        self.init(
            value, expiry: Date(timeIntervalSinceNow: lifetime.inSeconds), refreshToken: refreshToken,
            permissions: permissions)
    }

    /// What `Authorization` says.
    var fieldValue: String { scheme + " " + value }
}

extension AccessToken: CustomStringConvertible, CustomReflectable {
    /// The scheme and "<redacted>".
    public var description: String { "\(scheme) \(redaction)" }

    /// The description alone.
    public var customMirror: Mirror { Mirror(self, children: ["description": description], displayStyle: .struct) }
}

/// Keeps a token from one run of a program to the next.
///
/// ```swift
/// struct Keyring: TokenStore {
///     func load() async throws -> AccessToken? { try await keys["api"] }
///     func save(_ token: AccessToken?) async throws { try await keys.set("api", token) }
/// }
/// ```
public protocol TokenStore: Sendable {
    /// The token kept last; nil when there is none.
    ///
    /// Called before the first request that needs a token, and not again unless it throws.
    /// - Throws: Any error: those who wait for the token get it as the cause of theirs, and the next request asks again.
    func load() async throws -> AccessToken?

    /// Keeps a token in the place of the last one.
    ///
    /// Called after each refresh, before those who wait go on with the new token, and after `replace(_:)`; one call at a
    /// time, the last one with the token that is in its place then. It is not cancelled with whatever request it is for.
    /// - Parameter token: What to keep; nil to forget what was kept.
    /// - Throws: Any error: those who wait get it as the cause of theirs; later requests go on with the new token.
    func save(_ token: AccessToken?) async throws
}
