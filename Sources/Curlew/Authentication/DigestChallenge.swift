// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// A hash function of Digest authentication, the weakest first (RFC 7616 §6.1).
enum DigestAlgorithm: Int, Comparable, CaseIterable, Sendable {
    case md5, sha256, sha512t256

    static func < (lhs: Self, rhs: Self) -> Bool { lhs.rawValue < rhs.rawValue }

    /// The name in challenges, in lower case.
    private var name: String {
        switch self {
        case .md5: "md5"
        case .sha256: "sha-256"
        case .sha512t256: "sha-512-256"
        }
    }

    /// The message digest that computes the hash.
    var digest: MessageDigest.Algorithm {
        switch self {
        case .md5: .md5
        case .sha256: .sha256
        case .sha512t256: .sha512t256
        }
    }

    /// Returns nil for an unknown name.
    init?(_ name: String) {
        guard let known = Self.allCases.first(where: { $0.name == name.asciiLowercased }) else { return nil }
        self = known
    }

    /// Returns the hash in hexadecimal digits; nil when this machine does not support the algorithm.
    func hash(_ text: String) -> String? { MessageDigest.digest(digest, of: text.utf8)?.hexadecimal }
}

/// A challenge of the scheme Digest (RFC 7616 §3.3) that the client can respond to.
struct DigestChallenge: Sendable, Hashable {
    let realm: String
    let nonce: String
    let opaque: String?
    let algorithm: DigestAlgorithm
    /// Whether the nonces are part of the secret (`-sess`).
    let isSession: Bool
    /// The algorithm in the challenge's spelling; nil when the challenge omits it, which means MD5.
    let algorithmName: String?
    /// Whether the server accepts a digest of the request (`qop="auth"`).
    let offersAuth: Bool
    /// Whether the server accepts a digest of the request and its body (`qop="auth-int"`).
    let offersIntegrity: Bool
    /// Whether the challenge has no `qop`, as in RFC 2069.
    let isLegacy: Bool
    /// Whether the server refused the digest because its nonce is too old, and not because of the password.
    let isStale: Bool
    /// Whether the server identifies users by the hashes of their names.
    let hashesUser: Bool
    /// Whether the server reads names as UTF-8, according to the challenge.
    let isUTF8: Bool
    /// The URIs that the credentials cover; nil when the challenge lists no URIs, which means the whole server.
    let domain: [String]?

    /// The maximum number of URIs of `domain` that are kept.
    private static let maximumDomainURIs = 32

    /// Returns nil for another scheme, and for a challenge that the client cannot respond to.
    ///
    /// Such a challenge has no realm or no nonce, an unknown algorithm, only unknown qualities of protection, or
    /// control characters, which no field can contain.
    init?(_ challenge: ChallengeAuthentication.Challenge) {
        guard challenge.scheme == .digest, let realm = challenge.realm, let nonce = challenge["nonce"] else {
            return nil
        }
        let opaque = challenge["opaque"]
        guard [realm, nonce, opaque ?? ""].allSatisfy(HeaderFields.isValidValue) else { return nil }
        (self.realm, self.nonce, self.opaque) = (realm, nonce, opaque)

        let name = challenge["algorithm"]
        let bare = name.map { $0.asciiLowercased.hasSuffix("-sess") ? String($0.dropLast(5)) : $0 }
        guard let algorithm = DigestAlgorithm(bare ?? "MD5") else { return nil }
        self.algorithm = algorithm
        algorithmName = name
        isSession = name != bare

        let qualities = Self.list(challenge["qop"] ?? "")
        offersAuth = qualities.contains("auth")
        offersIntegrity = qualities.contains("auth-int")
        isLegacy = qualities.isEmpty
        guard offersAuth || offersIntegrity || isLegacy else { return nil }

        isStale = challenge["stale"]?.asciiLowercased == "true"
        hashesUser = challenge["userhash"]?.asciiLowercased == "true"
        isUTF8 = challenge["charset"]?.asciiLowercased == "utf-8"
        let places = challenge["domain"]?.split(whereSeparator: { $0 == " " || $0 == "\t" }).prefix(
            Self.maximumDomainURIs)
        domain = places.flatMap { $0.isEmpty ? nil : $0.map(String.init) }
    }

    private static func list(_ text: String) -> [String] {
        text.split { $0 == "," || $0 == " " || $0 == "\t" }.map { String($0).asciiLowercased }
    }

    /// Returns the challenge with the strongest algorithm, the first of equals; RFC 7616 §3.7 leaves the choice to the
    /// client.
    ///
    /// - Parameter isAvailable: Returns whether this machine supports an algorithm.
    static func strongest(
        of challenges: [ChallengeAuthentication.Challenge],
        where isAvailable: (DigestAlgorithm) -> Bool = { $0.digest.isAvailable }
    ) -> DigestChallenge? {
        var best: DigestChallenge?
        for challenge in challenges {
            guard let next = DigestChallenge(challenge), isAvailable(next.algorithm) else { continue }
            if let known = best, known.algorithm >= next.algorithm { continue }
            best = next
        }
        return best
    }
}
