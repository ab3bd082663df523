// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials

/// What proves to a server who asks: the value of `Authorization` (RFC 9110 §11.6.2).
///
/// No description shows more of it than its scheme.
///
/// ```swift
/// request.fields[.authorization] = try Credential.basic("anna", password).fieldValue
/// request.fields[.authorization] = Credential.bearer(token).fieldValue
/// let api = Client("https://api.example.com").with { $0.fields = [.authorization: Credential.bearer(token)] }
/// ```
public struct Credential: Sendable, Hashable {
    /// How it proves it, such as "Basic".
    public let scheme: String
    /// What `Authorization` has to say: the scheme and the secret.
    public let fieldValue: String

    private init(scheme: String, secret: String) {
        self.scheme = scheme
        fieldValue = scheme + " " + secret
    }

    /// A user's name and password (RFC 7617), in UTF-8.
    ///
    /// Everybody on the way can read them unless the connection is secure.
    /// - Throws: ``InvalidCredential`` when the name has a colon, at which servers would cut it, and when name or
    ///   password has a control character (RFC 7617 §2).
    public static func basic(_ user: String, _ password: String) throws(InvalidCredential) -> Credential {
        guard !user.utf8.contains(UInt8(ascii: ":")) else { throw .colonInUser }
        // A control character is mostly the line end of a file that was read.
        guard !user.unicodeScalars.contains(where: isControl) else { throw .controlInUser }
        guard !password.unicodeScalars.contains(where: isControl) else { throw .controlInPassword }
        return Credential(scheme: "Basic", secret: Data("\(user):\(password)".utf8).base64EncodedString())
    }

    /// A token (RFC 6750 §2.1).
    ///
    /// - Parameter token: Sent as it is, even if it is none by the grammar of RFC 6750: servers give out others, too. A
    ///   request with one that has control characters is refused, like one with any such field.
    public static func bearer(_ token: String) -> Credential { Credential(scheme: "Bearer", secret: token) }

    private static func isControl(_ scalar: Unicode.Scalar) -> Bool { scalar.properties.generalCategory == .control }
}

extension Credential: HeaderValue {}

extension Credential: CustomStringConvertible, CustomReflectable {
    /// The scheme, and "<redacted>".
    public var description: String { "\(scheme) \(redaction)" }

    /// The description alone.
    public var customMirror: Mirror { Mirror(self, children: ["description": description], displayStyle: .struct) }
}

/// Why a name and a password are no credential.
///
/// ```swift
/// do {
///     credential = try .basic(user, password)
/// } catch InvalidCredential.colonInUser {
///     print("A user name has no colon.")
/// }
/// ```
public enum InvalidCredential: Error, Sendable, Hashable, CustomStringConvertible {
    /// The name has a colon, which would end it.
    case colonInUser
    /// The name has a control character.
    case controlInUser
    /// The password has a control character.
    case controlInPassword

    /// One sentence, without the name and the password.
    public var description: String {
        switch self {
        case .colonInUser: "The user name has a colon, which Basic credentials cannot express."
        case .controlInUser: "The user name has a control character, perhaps the line end of the file it was read from."
        case .controlInPassword:
            "The password has a control character, perhaps the line end of the file it was read from."
        }
    }
}

extension InvalidCredential: LocalizedError {
    /// The description, which is also `localizedDescription`.
    public var errorDescription: String? { description }
}
