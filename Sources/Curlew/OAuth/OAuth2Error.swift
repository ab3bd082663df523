// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials

/// Why an authorization server gives no token (RFC 6749 §5.2): the cause of `.authenticationFailed`.
///
/// ```swift
/// if (error.cause as? OAuth2Error)?.code == .invalidGrant { try await logInAgain() }
/// ```
public struct OAuth2Error: Error, Sendable, Hashable {
    /// What kind of refusal it is: an open set.
    public struct Code: RawRepresentable, Sendable, Hashable, Codable, ExpressibleByStringLiteral {
        /// The server's word, such as "invalid_grant".
        public let rawValue: String

        /// Takes any word.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// Takes any word.
        public init(stringLiteral value: String) { self.init(rawValue: value) }

        /// A parameter is missing, given twice or not known.
        public static let invalidRequest: Code = "invalid_request"
        /// The program did not prove who it is.
        public static let invalidClient: Code = "invalid_client"
        /// The code or the refresh token is wrong, expired or taken back: somebody has to log in again.
        public static let invalidGrant: Code = "invalid_grant"
        /// The program may not use this grant.
        public static let unauthorizedClient: Code = "unauthorized_client"
        /// The server does not know the grant.
        public static let unsupportedGrantType: Code = "unsupported_grant_type"
        /// The program may not have these scopes.
        public static let invalidScope: Code = "invalid_scope"
    }

    /// What kind of refusal it is.
    public let code: Code
    /// More of it, for developers; nil when the server says no more.
    public let message: String?
    /// A page about it; nil when the server names none.
    public let page: String?
}

extension OAuth2Error {
    /// The same without secrets that the server repeats.
    func redacting(_ secrets: [String]) -> OAuth2Error {
        let message = secrets.reduce(message) { $1.isEmpty ? $0 : $0?.replacing($1, with: redaction) }
        return OAuth2Error(code: code, message: message, page: page)
    }

    /// What to try.
    var hint: String? {
        switch code {
        case .invalidClient: "Check id and secret, or try another proof (.body)."
        case .invalidGrant: "Somebody has to log in again; give what comes of it to replace(_:)."
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

/// What an authorization server answers (RFC 6749 §5.1).
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
        // Case does not matter; a few servers say nothing, and mean the same.
        let type = try container.decodeIfPresent(String.self, forKey: .type) ?? "bearer"
        guard type.lowercased() == "bearer" else {
            throw DecodingError.dataCorruptedError(
                forKey: .type, in: container, debugDescription: "Tokens of this type need more than a field.")
        }
        // A few servers write the number as a string.
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

    /// What to try, if there is something.
    public var recoverySuggestion: String? { hint }
}
