// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine

/// Where a request goes, as protection spaces see it (RFC 9110 §11.5).
struct ProtectedPlace: Sendable, Hashable {
    let origin: String
    let path: String

    init(_ target: RequestTarget) {
        let host = target.isIPv6 ? "[\(target.host)]" : target.host
        origin = "\(target.scheme.rawValue)://\(host):\(target.port)"
        path = target.path
    }

    /// The path up to its last "/": where Basic credentials hold for certain (RFC 7617 §2.2).
    var folder: String { path.lastIndex(of: "/").map { String(path[...$0]) } ?? "/" }
}

/// How a name and a password were shown to a server.
enum PasswordProof: Sendable, Hashable {
    case basic(realm: String)
    case digest(DigestTurn)

    var realm: String {
        switch self {
        case .basic(let realm): realm
        case .digest(let turn): turn.challenge.realm
        }
    }
}

/// What servers have asked for, so that later requests need not be refused first: for each realm of an origin the nonces
/// and how often each was used, or that Basic will do.
final class ProtectionSpaces: Sendable {
    fileprivate struct Key: Hashable {
        let origin: String
        let realm: String
    }

    fileprivate struct Nonce {
        let value: String
        var uses: UInt32 = 0
        let first: String
        let firstClient: String
    }

    fileprivate struct Space {
        /// The latest challenge; nil for Basic.
        var challenge: DigestChallenge?
        /// The latest last.
        var nonces: [Nonce] = []
        /// Beginnings of the paths it is about.
        var prefixes: [String] = []
        /// Whether the server has accepted an answer.
        var isOpen = false
        /// The latest use, for forgetting.
        var usedAt: UInt64 = 0
    }

    fileprivate struct State {
        var spaces: [Key: Space] = [:]
        var uses: UInt64 = 0
    }

    /// How many realms are remembered.
    static let most = 64
    /// Nonces whose uses are counted in a realm, for servers that give each refusal its own.
    static let mostNonces = 16
    /// Beginnings of paths that are kept of a realm.
    static let mostPrefixes = 32

    private let state = Lock(State())
    private let makeClientNonce: @Sendable () -> String

    init(clientNonce: @escaping @Sendable () -> String = ProtectionSpaces.randomNonce) {
        makeClientNonce = clientNonce
    }

    /// 128 bits that nobody guesses, in hexadecimal digits.
    static func randomNonce() -> String {
        (0..<16).map { _ in UInt8.random(in: .min ... .max) }.hexadecimal
    }

    // MARK: Proving

    /// What will most likely be accepted at a place, a use of its nonce included; nil when nothing is known of it.
    func known(at place: ProtectedPlace) -> PasswordProof? {
        let clientNonce = makeClientNonce()
        return state.withLock { state in
            guard let key = state.openSpace(at: place) else { return nil }
            return state.use(key, clientNonce)
        }
    }

    /// The answer to a Digest challenge that has come.
    func begin(_ challenge: DigestChallenge, at place: ProtectedPlace) -> DigestTurn {
        let clientNonce = makeClientNonce()
        return state.withLock { state in
            let key = Key(origin: place.origin, realm: challenge.realm)
            var space = state.spaces[key] ?? Space()
            space.challenge = challenge
            space.prefixes = challenge.prefixes(at: place.origin)
            let known = space.nonces.firstIndex { $0.value == challenge.nonce }
            let nonce = known.map { space.nonces.remove(at: $0) }
            space.add(nonce ?? Nonce(value: challenge.nonce, first: challenge.nonce, firstClient: clientNonce))
            state.spaces[key] = space
            return state.turn(key, challenge, clientNonce)
        }
    }

    /// An answer to a Basic challenge.
    func beginBasic(_ realm: String, at place: ProtectedPlace) -> PasswordProof {
        state.withLock { state in
            let key = Key(origin: place.origin, realm: realm)
            var space = state.spaces[key] ?? Space()
            if space.challenge != nil { space = Space() }
            state.spaces[key] = space
            state.touch(key)
            return .basic(realm: realm)
        }
    }

    // MARK: What came of it

    /// The server let somebody in.
    ///
    /// - Parameter next: The nonce to use from now on, if the server gave one (RFC 7616 §3.5).
    func accepted(_ proof: PasswordProof, at place: ProtectedPlace, next: String? = nil) {
        state.withLock { state in
            let key = Key(origin: place.origin, realm: proof.realm)
            guard var space = state.spaces[key] else { return }
            space.isOpen = true
            if case .basic = proof, !space.prefixes.contains(where: place.path.hasPrefix) {
                space.prefixes = Array((space.prefixes + [place.folder]).suffix(Self.mostPrefixes))
            }
            if case .digest(let turn) = proof, let next, !space.nonces.contains(where: { $0.value == next }) {
                // A session goes on with the secret that it began with (RFC 7616 §3.4.2).
                space.add(Nonce(value: next, first: turn.firstNonce, firstClient: turn.firstClientNonce))
            }
            state.spaces[key] = space
        }
    }

    /// The server knows better: nobody should say it again unasked, unless somebody else had more luck since.
    func refused(_ proof: PasswordProof, at place: ProtectedPlace) {
        state.withLock { state in
            let key = Key(origin: place.origin, realm: proof.realm)
            if case .digest(let turn) = proof, state.spaces[key]?.nonces.last?.value != turn.nonce { return }
            state.spaces[key] = nil
        }
    }
}

extension ProtectionSpaces.Space {
    /// Makes a nonce the one to use.
    fileprivate mutating func add(_ nonce: ProtectionSpaces.Nonce) {
        nonces = nonces.suffix(ProtectionSpaces.mostNonces - 1) + [nonce]
    }
}

extension ProtectionSpaces.State {
    /// The realm that is most likely asked for at a place: the longest beginning of its path, then the latest.
    fileprivate func openSpace(at place: ProtectedPlace) -> ProtectionSpaces.Key? {
        var best: (key: ProtectionSpaces.Key, length: Int, usedAt: UInt64)?
        for (key, space) in spaces where key.origin == place.origin && space.isOpen {
            let lengths = space.prefixes.filter(place.path.hasPrefix).map(\.utf8.count)
            guard let length = lengths.max() else { continue }
            if let best, (best.length, best.usedAt) > (length, space.usedAt) { continue }
            best = (key, length, space.usedAt)
        }
        return best?.key
    }

    fileprivate mutating func use(_ key: ProtectionSpaces.Key, _ clientNonce: String) -> PasswordProof {
        guard let challenge = spaces[key]?.challenge else {
            touch(key)
            return .basic(realm: key.realm)
        }
        return .digest(turn(key, challenge, clientNonce))
    }

    /// One more use of the latest nonce.
    fileprivate mutating func turn(
        _ key: ProtectionSpaces.Key, _ challenge: DigestChallenge, _ clientNonce: String
    ) -> DigestTurn {
        touch(key)
        var nonce =
            spaces[key]?.nonces.popLast()
            ?? ProtectionSpaces.Nonce(value: challenge.nonce, first: challenge.nonce, firstClient: clientNonce)
        nonce.uses &+= 1
        spaces[key]?.nonces.append(nonce)
        // Servers disagree on which of our nonces a session's secret is made of; with one there is no doubt.
        let own = challenge.isSession ? nonce.firstClient : clientNonce
        return DigestTurn(
            challenge: challenge, nonce: nonce.value, count: nonce.uses, clientNonce: own, firstNonce: nonce.first,
            firstClientNonce: nonce.firstClient)
    }

    fileprivate mutating func touch(_ key: ProtectionSpaces.Key) {
        uses += 1
        spaces[key]?.usedAt = uses
        guard spaces.count > ProtectionSpaces.most else { return }
        if let oldest = spaces.min(by: { $0.value.usedAt < $1.value.usedAt }) { spaces[oldest.key] = nil }
    }
}

extension DigestChallenge {
    /// The beginnings of paths at an origin that it is about: all unless it names some.
    fileprivate func prefixes(at origin: String) -> [String] {
        guard let domain else { return ["/"] }
        return domain.compactMap { place in
            if place.hasPrefix("/") { return place }
            guard let target = try? RequestTarget(place), ProtectedPlace(target).origin == origin else { return nil }
            return target.path
        }
    }
}
