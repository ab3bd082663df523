// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import Curlew
public import FoundationEssentials

/// The reason why an authorization server issues no token (RFC 6749 §5.2); the cause of `.authenticationFailed`.
///
/// ```swift
/// if (error.cause as? OAuth2Error)?.code == .invalidGrant { try await logInAgain() }
/// ```
public struct OAuth2Error: Error, Sendable, Hashable {
    /// The kind of refusal, an open set.
    public struct Code: RawRepresentable, Sendable, Hashable, Codable, ExpressibleByStringLiteral {
        /// The server's code, such as "invalid_grant".
        public let rawValue: String

        /// Creates a code from any text.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// Creates a code from any text.
        public init(stringLiteral value: String) { self.init(rawValue: value) }

        /// A parameter is missing, repeated or unknown.
        public static let invalidRequest: Code = "invalid_request"
        /// The program failed to authenticate.
        public static let invalidClient: Code = "invalid_client"
        /// The authorization code or the refresh token is wrong, expired or revoked: the user has to log in again.
        public static let invalidGrant: Code = "invalid_grant"
        /// The program may not use this grant.
        public static let unauthorizedClient: Code = "unauthorized_client"
        /// The server does not know the grant.
        public static let unsupportedGrantType: Code = "unsupported_grant_type"
        /// The program may not have these scopes.
        public static let invalidScope: Code = "invalid_scope"
    }

    /// The kind of refusal.
    public let code: Code
    /// Further information for developers; nil when the server sends no message.
    public let message: String?
    /// The URL of a page about the error; nil when the server sends no URL.
    public let page: String?
}

extension OAuth2Error {
    /// Returns a copy whose message hides the given secrets, which the server may repeat.
    func redacting(_ secrets: [String]) -> OAuth2Error {
        let message = secrets.reduce(message) { $1.isEmpty ? $0 : $0?.replacing($1, with: redaction) }
        return OAuth2Error(code: code, message: message, page: page)
    }

    /// A suggestion for the developer.
    var hint: String? {
        switch code {
        case .invalidClient: "Check id and secret, or try another proof (.body)."
        case .invalidGrant: "Ask the user to log in again, and pass the new token to replace(_:)."
        default: nil
        }
    }
}

extension OAuth2Error: Decodable {
    private enum CodingKeys: String, CodingKey {
        case code = "error"
        case message = "error_description"
        case page = "error_uri"
    }
}

extension OAuth2Error: CustomStringConvertible {
    /// The code and the server's message, on one line and not longer than 200 characters.
    public var description: String {
        let text = message.map { "\(code.rawValue): \($0)" } ?? code.rawValue
        return String(text.prefix(200)).escapingControls
    }
}

/// The token response of an authorization server (RFC 6749 §5.1).
struct TokenResponse: Decodable {
    private enum CodingKeys: String, CodingKey {
        case value = "access_token"
        case type = "token_type"
        case lifetime = "expires_in"
        case refreshToken = "refresh_token"
        case permissions = "scope"
    }

    private let value: String
    private let lifetime: Double?
    private let refreshToken: String?
    private let permissions: String?

    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        value = try container.decode(String.self, forKey: .value)
        // The type is case-insensitive. A few servers omit the type and mean "bearer".
        let type = try container.decodeIfPresent(String.self, forKey: .type) ?? "bearer"
        guard type.lowercased() == "bearer" else {
            throw DecodingError.dataCorruptedError(
                forKey: .type, in: container, debugDescription: "Tokens of this type require more than a header field.")
        }
        // A few servers send the number as a string.
        lifetime =
            (try? container.decodeIfPresent(Double.self, forKey: .lifetime))
            ?? (try? container.decodeIfPresent(String.self, forKey: .lifetime)).flatMap { Double($0) }
        refreshToken = try container.decodeIfPresent(String.self, forKey: .refreshToken)
        permissions = try container.decodeIfPresent(String.self, forKey: .permissions)
    }

    func token(now: Date) -> AccessToken {
        let lasting = lifetime.flatMap { $0.isFinite && $0 >= 0 ? min($0, 1e9) : nil }
        return AccessToken(
            value, expiry: lasting.map { now.addingTimeInterval($0) }, refreshToken: refreshToken,
            permissions: permissions)
    }
}

extension OAuth2Error: LocalizedError {
    /// The description, which is also `localizedDescription`.
    public var errorDescription: String? { description }

    /// A suggestion for the developer, if there is one.
    public var recoverySuggestion: String? { hint }
}
