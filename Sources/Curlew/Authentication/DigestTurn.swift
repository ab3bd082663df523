// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// One use of a server's nonce: all that a digest depends on beside the request and the password.
struct DigestTurn: Sendable, Hashable {
    /// What of a request is part of the digest (RFC 7616 §3.4.3).
    enum Quality: Sendable, Hashable {
        /// Method and URI, as RFC 2069 has it.
        case legacy
        /// Method and URI.
        case auth
        /// Method, URI and body.
        case integrity
    }

    let challenge: DigestChallenge
    /// The challenge's, or one that the server gave later.
    let nonce: String
    /// Which use of the nonce it is, from 1.
    let count: UInt32
    /// Our own part of the chance.
    let clientNonce: String
    /// The nonces that a session began with; the same as above unless the server gave another since.
    let firstNonce: String
    let firstClientNonce: String
}

/// A name, a password and what they answer to challenges (RFC 7616 §3.4): values in, values out.
struct DigestCredential: Sendable {
    let user: String
    let password: String

    /// The value of `Authorization`; nil when this machine does not compute the algorithm.
    ///
    /// - Parameters:
    ///   - uri: The request target as it is on the wire.
    ///   - bodyHash: The hash of the body in hexadecimal digits, for `.integrity`.
    func fieldValue(
        _ turn: DigestTurn, _ quality: DigestTurn.Quality, method: String, uri: String, bodyHash: String = ""
    ) -> String? {
        let (challenge, algorithm) = (turn.challenge, turn.challenge.algorithm)
        let second = quality == .integrity ? "\(method):\(uri):\(bodyHash)" : "\(method):\(uri)"
        guard let secret = secret(turn), let request = algorithm.hash(second) else { return nil }
        let count = String(turn.count, radix: 16)
        let use = String(repeating: "0", count: 8 - count.utf8.count) + count
        let name = quality == .integrity ? "auth-int" : "auth"
        let middle = quality == .legacy ? turn.nonce : "\(turn.nonce):\(use):\(turn.clientNonce):\(name)"
        guard let response = algorithm.hash("\(secret):\(middle):\(request)"), let user = self.user(for: challenge)
        else { return nil }

        var parts = [user, "realm=\(quoted(challenge.realm))", "nonce=\(quoted(turn.nonce))", "uri=\(quoted(uri))"]
        if let name = challenge.algorithmName { parts.append("algorithm=\(name)") }
        if quality != .legacy { parts += ["qop=\(name)", "nc=\(use)"] }
        if quality != .legacy || challenge.isSession { parts.append("cnonce=\(quoted(turn.clientNonce))") }
        parts.append("response=\"\(response)\"")
        if let opaque = challenge.opaque { parts.append("opaque=\(quoted(opaque))") }
        if challenge.hashesUser { parts.append("userhash=true") }
        return "Digest " + parts.joined(separator: ", ")
    }

    /// H(A1) of RFC 7616 §3.4.2.
    private func secret(_ turn: DigestTurn) -> String? {
        let (challenge, algorithm) = (turn.challenge, turn.challenge.algorithm)
        guard let own = algorithm.hash("\(user):\(challenge.realm):\(password)") else { return nil }
        if !challenge.isSession { return own }
        return algorithm.hash("\(own):\(turn.firstNonce):\(turn.firstClientNonce)")
    }

    /// The name as the server wants it (RFC 7616 §3.4.4).
    ///
    /// Servers that know RFC 7616 get what is not ASCII in the notation of RFC 8187; others know nothing of that, and get
    /// UTF-8.
    private func user(for challenge: DigestChallenge) -> String? {
        if challenge.hashesUser {
            return challenge.algorithm.hash("\(user):\(challenge.realm)").map { "username=\"\($0)\"" }
        }
        let isNew = challenge.isUTF8 || challenge.algorithm > .md5
        if isNew, user.utf8.contains(where: { $0 >= 0x80 }) {
            return "username*=UTF-8''" + user.percentEncoded(keeping: Self.attributeCharacters)
        }
        return "username=\(quoted(user))"
    }

    /// `attr-char` of RFC 8187 §3.2.1.
    private static let attributeCharacters = ByteSet.letters.union(.digits).union(ByteSet("!#$&+-.^_`|~"))

    private func quoted(_ text: String) -> String {
        guard text.utf8.contains(where: { $0 == UInt8(ascii: "\"") || $0 == UInt8(ascii: "\\") }) else {
            return "\"\(text)\""
        }
        var escaped: [UInt8] = []
        for byte in text.utf8 {
            if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") { escaped.append(UInt8(ascii: "\\")) }
            escaped.append(byte)
        }
        return "\"" + String(decoding: escaped, as: UTF8.self) + "\""
    }
}

extension DigestCredential: CustomStringConvertible, CustomReflectable {
    /// Neither the name nor the password.
    var description: String { redaction }

    /// The description alone.
    var customMirror: Mirror { Mirror(self, children: ["description": redaction], displayStyle: .struct) }
}
