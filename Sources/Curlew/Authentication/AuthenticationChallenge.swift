// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension ChallengeAuthentication {
    /// A demand for credentials: one challenge of `WWW-Authenticate` (RFC 9110 §11.3).
    ///
    /// ```swift
    /// for challenge in head.challenges where challenge.scheme == .basic {
    ///     print(challenge.realm ?? "no realm", challenge["charset"] ?? "no charset")
    /// }
    /// ```
    public struct Challenge: Sendable, Hashable {
        /// A method of authentication, such as "Basic", compared without regard to ASCII case (RFC 9110 §11.1).
        public struct Scheme: Sendable, ExpressibleByStringLiteral, CustomStringConvertible {
            /// The name in its original spelling.
            public let rawValue: String

            /// Creates a scheme from any text, unchanged.
            public init(_ name: String) { rawValue = name }

            /// Creates a scheme from any text, unchanged.
            public init(stringLiteral value: String) { rawValue = value }

            /// The name, with control characters escaped.
            public var description: String { rawValue.escapingControls }
        }

        /// The method of authentication that the server requires.
        public let scheme: Scheme
        /// The parameters of the scheme, by names in lower case; the first value of a name that occurs twice.
        public let parameters: [String: String]
        /// The single value that some schemes have in place of parameters, mostly Base64 (RFC 9110 §11.2).
        public let token68: String?

        /// Creates a challenge from its parts.
        ///
        /// - Parameters:
        ///   - scheme: The method of authentication.
        ///   - parameters: Values by names, which are compared without regard to ASCII case.
        ///   - token68: The single value in place of parameters.
        public init(_ scheme: Scheme, _ parameters: [String: String] = [:], token68: String? = nil) {
            self.scheme = scheme
            self.parameters = Dictionary(parameters.map { ($0.asciiLowercased, $1) }) { first, _ in first }
            self.token68 = token68
        }

        /// Returns the value of a parameter, whose name is compared without regard to ASCII case.
        public subscript(name: String) -> String? { parameters[name.asciiLowercased] }

        /// The server's name for the resources that the same credentials give access to (RFC 9110 §11.5).
        public var realm: String? { self["realm"] }
    }
}

extension ChallengeAuthentication.Challenge.Scheme: Hashable {
    /// Returns whether both names are equal, regardless of ASCII case.
    public static func == (lhs: Self, rhs: Self) -> Bool {
        lhs.rawValue.asciiLowercased == rhs.rawValue.asciiLowercased
    }

    /// Hashes the name in lower case.
    public func hash(into hasher: inout Hasher) { hasher.combine(rawValue.asciiLowercased) }

    /// A name and a password in the clear (RFC 7617).
    public static let basic = Self("Basic")
    /// Digests of a name and a password (RFC 7616).
    public static let digest = Self("Digest")
    /// A token (RFC 6750).
    public static let bearer = Self("Bearer")
}

extension ChallengeAuthentication.Challenge: CustomStringConvertible, CustomReflectable {
    /// The scheme and the realm, with control characters escaped: `Digest realm="staff"`.
    public var description: String { realm.map { "\(scheme) realm=\"\($0.escapingControls)\"" } ?? scheme.description }

    /// The description and the names of the parameters; the values are left out because they may be secret.
    public var customMirror: Mirror {
        Mirror(
            self, children: ["description": description, "parameters": parameters.keys.sorted()],
            displayStyle: .struct)
    }
}

extension ResponseHead {
    /// The challenges of `WWW-Authenticate`, in the order of the field (RFC 9110 §11.6.1).
    ///
    /// Malformed challenges are left out. At most 32 challenges are read, and challenges longer than 8 KiB are left
    /// out.
    public var challenges: [ChallengeAuthentication.Challenge] {
        ChallengeParser.challenges(in: fields.values(for: .wwwAuthenticate))
    }
}

extension String {
    /// This text with the letters A to Z in lower case.
    var asciiLowercased: String {
        utf8.contains { $0 != $0.asciiLowercased } ? String(decoding: utf8.map(\.asciiLowercased), as: UTF8.self) : self
    }
}
