// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials

/// A credential of the client for a server: the value of `Authorization` (RFC 9110 §11.6.2).
///
/// Descriptions show only its scheme.
///
/// ```swift
/// request.fields[.authorization] = try Credential.basic("anna", password).fieldValue
/// request.fields[.authorization] = Credential.bearer(token).fieldValue
/// let api = Client("https://api.example.com").with { $0.fields = [.authorization: Credential.bearer(token)] }
/// ```
public struct Credential: Sendable, Hashable {
    /// The authentication scheme, such as "Basic".
    public let scheme: String
    /// The value of `Authorization`: the scheme and the secret.
    public let fieldValue: String

    private init(scheme: String, secret: String) {
        self.scheme = scheme
        fieldValue = scheme + " " + secret
    }

    /// Creates a credential from a user's name and password (RFC 7617), in UTF-8.
    ///
    /// Every host on the path can read both unless the connection is secure.
    /// - Throws: ``Credential/Invalid`` when the name has a colon, at which servers would split it, and when the name
    ///   or password has a control character (RFC 7617 §2).
    public static func basic(_ user: String, _ password: String) throws(Credential.Invalid) -> Credential {
        guard !user.utf8.contains(UInt8(ascii: ":")) else { throw .colonInUser }
        // A control character is usually the line end of a file that was read.
        guard !user.unicodeScalars.contains(where: isControl) else { throw .controlInUser }
        guard !password.unicodeScalars.contains(where: isControl) else { throw .controlInPassword }
        return Credential(scheme: "Basic", secret: Data("\(user):\(password)".utf8).base64EncodedString())
    }

    /// Creates a credential from a token (RFC 6750 §2.1).
    ///
    /// - Parameter token: Sent unchanged, even if it is not valid in the grammar of RFC 6750, because servers issue
    ///   such tokens, too. A request with a token that has control characters is invalid, like a request with any such
    ///   field.
    public static func bearer(_ token: String) -> Credential { Credential(scheme: "Bearer", secret: token) }

    private static func isControl(_ scalar: Unicode.Scalar) -> Bool { scalar.properties.generalCategory == .control }
}

extension Credential: HeaderValue {}

extension Credential: CustomStringConvertible, CustomReflectable {
    /// The scheme, followed by "<redacted>".
    public var description: String { "\(scheme) \(redaction)" }

    /// The description alone.
    public var customMirror: Mirror { Mirror(self, children: ["description": description], displayStyle: .struct) }
}

extension Credential {
    /// The reason why a name and a password cannot form a credential.
    ///
    /// ```swift
    /// do {
    ///     credential = try .basic(user, password)
    /// } catch Credential.Invalid.colonInUser {
    ///     print("A user name has no colon.")
    /// }
    /// ```
    public enum Invalid: Error, Sendable, Hashable, CustomStringConvertible {
        /// The name has a colon, which would end the name.
        case colonInUser
        /// The name has a control character.
        case controlInUser
        /// The password has a control character.
        case controlInPassword

        /// One sentence, without the name and the password.
        public var description: String {
            switch self {
            case .colonInUser: "The user name has a colon, which Basic credentials cannot express."
            case .controlInUser:
                "The user name has a control character, perhaps the line end of the file it was read from."
            case .controlInPassword:
                "The password has a control character, perhaps the line end of the file it was read from."
            }
        }
    }
}

extension Credential.Invalid: LocalizedError {
    /// The description, which is also `localizedDescription`.
    public var errorDescription: String? { description }
}
