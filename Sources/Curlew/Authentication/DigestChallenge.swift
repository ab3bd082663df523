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

    /// What computes it.
    var digest: MessageDigest.Algorithm {
        switch self {
        case .md5: .md5
        case .sha256: .sha256
        case .sha512t256: .sha512t256
        }
    }

    /// Nil for what is not known.
    init?(_ name: String) {
        guard let known = Self.allCases.first(where: { $0.name == name.asciiLowercased }) else { return nil }
        self = known
    }

    /// The hash in hexadecimal digits; nil when this machine has none.
    func hash(_ text: String) -> String? { MessageDigest.digest(digest, of: text.utf8)?.hexadecimal }
}

/// A challenge of the scheme Digest (RFC 7616 §3.3), with all that can be answered in it.
struct DigestChallenge: Sendable, Hashable {
    let realm: String
    let nonce: String
    let opaque: String?
    let algorithm: DigestAlgorithm
    /// Whether the nonces are part of the secret (`-sess`).
    let isSession: Bool
    /// The algorithm as the challenge spells it; nil when it leaves it out, and MD5 is meant.
    let algorithmName: String?
    /// Whether the server takes a digest of the request (`qop="auth"`).
    let offersAuth: Bool
    /// Whether the server takes a digest of the request and its body (`qop="auth-int"`).
    let offersIntegrity: Bool
    /// Whether the server says nothing of `qop`, as by RFC 2069.
    let isLegacy: Bool
    /// Whether the digest was refused for the age of its nonce, and not for the password.
    let isStale: Bool
    /// Whether the server knows users by the hashes of their names.
    let hashesUser: Bool
    /// Whether the server says that it reads names as UTF-8.
    let isUTF8: Bool
    /// Where the same credentials open the doors; nil when the server does not say, and all of it is meant.
    let domain: [String]?

    /// How many URIs of `domain` are kept.
    private static let longestDomain = 32

    /// Nil for another scheme, and for what cannot be answered: without a realm or a nonce, with an algorithm or only
    /// qualities of protection that nobody knows, and with control characters, which no field could repeat.
    init?(_ challenge: AuthenticationChallenge) {
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
        let places = challenge["domain"]?.split(whereSeparator: { $0 == " " || $0 == "\t" }).prefix(Self.longestDomain)
        domain = places.flatMap { $0.isEmpty ? nil : $0.map(String.init) }
    }

    private static func list(_ text: String) -> [String] {
        text.split { $0 == "," || $0 == " " || $0 == "\t" }.map { String($0).asciiLowercased }
    }

    /// The one with the strongest algorithm, of equals the first; RFC 7616 §3.7 leaves the choice to us.
    ///
    /// - Parameter isAvailable: Whether this machine computes an algorithm.
    static func strongest(
        of challenges: [AuthenticationChallenge],
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
