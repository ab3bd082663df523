// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// One use of a server's nonce: the values that a digest depends on besides the request and the password.
struct NonceUse: Sendable, Hashable {
    /// The parts of a request that the digest covers (RFC 7616 §3.4.3).
    enum Quality: Sendable, Hashable {
        /// Method and URI, in the form of RFC 2069.
        case legacy
        /// Method and URI.
        case auth
        /// Method, URI and body.
        case integrity
    }

    let challenge: DigestChallenge
    /// The nonce of the challenge, or a later one from the server.
    let nonce: String
    /// The number of this use of the nonce, from 1.
    let count: UInt32
    /// The client's own random nonce.
    let clientNonce: String
    /// The nonces that a session started with; equal to `nonce` and `clientNonce` unless the server sent another nonce
    /// since.
    let firstNonce: String
    let firstClientNonce: String
}

/// A name and a password, and the computation of their response to challenges (RFC 7616 §3.4), as a pure function.
struct DigestCredential: Sendable {
    let user: String
    let password: String

    /// Returns the value of `Authorization`; nil when this machine does not support the algorithm.
    ///
    /// - Parameters:
    ///   - uri: The request target as it is sent.
    ///   - bodyHash: The hash of the body in hexadecimal digits, for `.integrity`.
    func fieldValue(
        _ nonceUse: NonceUse, _ quality: NonceUse.Quality, method: String, uri: String, bodyHash: String = ""
    ) -> String? {
        let (challenge, algorithm) = (nonceUse.challenge, nonceUse.challenge.algorithm)
        let second = quality == .integrity ? "\(method):\(uri):\(bodyHash)" : "\(method):\(uri)"
        guard let secret = secret(nonceUse), let request = algorithm.hash(second) else { return nil }
        let count = String(nonceUse.count, radix: 16)
        let use = String(repeating: "0", count: 8 - count.utf8.count) + count
        let name = quality == .integrity ? "auth-int" : "auth"
        let middle = quality == .legacy ? nonceUse.nonce : "\(nonceUse.nonce):\(use):\(nonceUse.clientNonce):\(name)"
        guard let response = algorithm.hash("\(secret):\(middle):\(request)"), let user = self.user(for: challenge)
        else { return nil }

        var parts = [user, "realm=\(quoted(challenge.realm))", "nonce=\(quoted(nonceUse.nonce))", "uri=\(quoted(uri))"]
        if let name = challenge.algorithmName { parts.append("algorithm=\(name)") }
        if quality != .legacy { parts += ["qop=\(name)", "nc=\(use)"] }
        if quality != .legacy || challenge.isSession { parts.append("cnonce=\(quoted(nonceUse.clientNonce))") }
        parts.append("response=\"\(response)\"")
        if let opaque = challenge.opaque { parts.append("opaque=\(quoted(opaque))") }
        if challenge.hashesUser { parts.append("userhash=true") }
        return "Digest " + parts.joined(separator: ", ")
    }

    /// Returns H(A1) of RFC 7616 §3.4.2.
    private func secret(_ nonceUse: NonceUse) -> String? {
        let (challenge, algorithm) = (nonceUse.challenge, nonceUse.challenge.algorithm)
        guard let own = algorithm.hash("\(user):\(challenge.realm):\(password)") else { return nil }
        if !challenge.isSession { return own }
        return algorithm.hash("\(own):\(nonceUse.firstNonce):\(nonceUse.firstClientNonce)")
    }

    /// Returns the name in the form that the server requires (RFC 7616 §3.4.4).
    ///
    /// A server that supports RFC 7616 gets non-ASCII names in the notation of RFC 8187; other servers do not know that
    /// notation and get UTF-8.
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
    /// "<redacted>", without the name and the password.
    var description: String { redaction }

    /// The description alone.
    var customMirror: Mirror { Mirror(self, children: ["description": redaction], displayStyle: .struct) }
}
