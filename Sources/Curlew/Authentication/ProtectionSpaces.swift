// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import CurlewSupport

/// The origin and path of a request, which determine its protection space (RFC 9110 §11.5).
struct ProtectedResource: Sendable, Hashable {
    let origin: String
    let path: String

    init(_ target: RequestTarget) {
        self.init(origin: "\(target.scheme.rawValue)://\(authority(target.host, target.port))", path: target.path)
    }

    init(origin: String, path: String) {
        self.origin = origin
        self.path = path
    }

    /// The path up to its last "/", below which Basic credentials are certainly valid (RFC 7617 §2.2).
    var folder: String { path.lastIndex(of: "/").map { String(path[...$0]) } ?? "/" }
}

/// The way in which a name and a password were sent to a server.
enum PasswordProof: Sendable, Hashable {
    case basic(realm: String)
    case digest(NonceUse)

    var realm: String {
        switch self {
        case .basic(let realm): realm
        case .digest(let nonceUse): nonceUse.challenge.realm
        }
    }
}

/// The challenges of servers, remembered so that later requests are not refused first.
///
/// For each realm of an origin, the object stores the nonces and the number of their uses, or that Basic is accepted.
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
        /// The nonces, the latest one last.
        var nonces: [Nonce] = []
        /// The path prefixes that the space covers.
        var prefixes: [String] = []
        /// Whether the server has accepted a proof.
        var isOpen = false
        /// The sequence number of the latest use, for eviction.
        var usedAt: UInt64 = 0
    }

    fileprivate struct State {
        var spaces: [Key: Space] = [:]
        var uses: UInt64 = 0
    }

    /// The maximum number of realms that are remembered.
    static let maximumSpaces = 64
    /// The maximum number of nonces per realm whose uses are counted, for servers that send a new one with each
    /// refusal.
    static let maximumNonces = 16
    /// The maximum number of path prefixes per realm.
    static let maximumPrefixes = 32

    private let state = Lock(State())
    private let makeClientNonce: @Sendable () -> String

    init(clientNonce: @escaping @Sendable () -> String = ProtectionSpaces.randomNonce) {
        makeClientNonce = clientNonce
    }

    /// Returns 128 random bits in hexadecimal digits.
    static func randomNonce() -> String {
        (0..<16).map { _ in UInt8.random(in: .min ... .max) }.hexadecimal
    }

    // MARK: Proving

    /// Returns the proof that is most likely to be accepted for a resource, and counts a use of its nonce; nil when
    /// nothing is known about the resource.
    func useProof(for resource: ProtectedResource) -> PasswordProof? {
        let clientNonce = makeClientNonce()
        return state.withLock { state in
            guard let key = state.openSpace(for: resource) else { return nil }
            return state.use(key, clientNonce)
        }
    }

    /// Returns the proof for a Digest challenge that has arrived.
    func begin(_ challenge: DigestChallenge, for resource: ProtectedResource) -> NonceUse {
        let clientNonce = makeClientNonce()
        return state.withLock { state in
            let key = Key(origin: resource.origin, realm: challenge.realm)
            var space = state.spaces[key] ?? Space()
            space.challenge = challenge
            space.prefixes = challenge.prefixes(at: resource.origin)
            let known = space.nonces.firstIndex { $0.value == challenge.nonce }
            let nonce = known.map { space.nonces.remove(at: $0) }
            space.add(nonce ?? Nonce(value: challenge.nonce, first: challenge.nonce, firstClient: clientNonce))
            state.spaces[key] = space
            return state.nonceUse(key, challenge, clientNonce)
        }
    }

    /// Returns the proof for a Basic challenge.
    func beginBasic(_ realm: String, for resource: ProtectedResource) -> PasswordProof {
        state.withLock { state in
            let key = Key(origin: resource.origin, realm: realm)
            var space = state.spaces[key] ?? Space()
            if space.challenge != nil { space = Space() }
            state.spaces[key] = space
            state.touch(key)
            return .basic(realm: realm)
        }
    }

    // MARK: Outcomes

    /// Records that the server accepted a proof.
    ///
    /// - Parameter next: The nonce to use from now on, if the server sent one (RFC 7616 §3.5).
    func accepted(_ proof: PasswordProof, for resource: ProtectedResource, next: String? = nil) {
        state.withLock { state in
            let key = Key(origin: resource.origin, realm: proof.realm)
            guard var space = state.spaces[key] else { return }
            space.isOpen = true
            if case .basic = proof, !space.prefixes.contains(where: resource.path.hasPrefix) {
                space.prefixes = Array((space.prefixes + [resource.folder]).suffix(Self.maximumPrefixes))
            }
            if case .digest(let nonceUse) = proof, let next, !space.nonces.contains(where: { $0.value == next }) {
                // A session keeps the secret that it started with (RFC 7616 §3.4.2).
                space.add(Nonce(value: next, first: nonceUse.firstNonce, firstClient: nonceUse.firstClientNonce))
            }
            state.spaces[key] = space
        }
    }

    /// Forgets a realm whose proof was refused, unless the server has sent a newer nonce since.
    func refused(_ proof: PasswordProof, for resource: ProtectedResource) {
        state.withLock { state in
            let key = Key(origin: resource.origin, realm: proof.realm)
            if case .digest(let nonceUse) = proof, state.spaces[key]?.nonces.last?.value != nonceUse.nonce { return }
            state.spaces[key] = nil
        }
    }
}

extension ProtectionSpaces.Space {
    /// Makes a nonce the current one.
    fileprivate mutating func add(_ nonce: ProtectionSpaces.Nonce) {
        nonces = nonces.suffix(ProtectionSpaces.maximumNonces - 1) + [nonce]
    }
}

extension ProtectionSpaces.State {
    /// Returns the realm that most likely covers a resource: the longest prefix of its path, then the latest use.
    fileprivate func openSpace(for resource: ProtectedResource) -> ProtectionSpaces.Key? {
        var best: (key: ProtectionSpaces.Key, length: Int, usedAt: UInt64)?
        for (key, space) in spaces where key.origin == resource.origin && space.isOpen {
            let lengths = space.prefixes.filter(resource.path.hasPrefix).map(\.utf8.count)
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
        return .digest(nonceUse(key, challenge, clientNonce))
    }

    /// Counts one more use of the latest nonce, and returns it.
    fileprivate mutating func nonceUse(
        _ key: ProtectionSpaces.Key, _ challenge: DigestChallenge, _ clientNonce: String
    ) -> NonceUse {
        touch(key)
        var nonce =
            spaces[key]?.nonces.popLast()
            ?? ProtectionSpaces.Nonce(value: challenge.nonce, first: challenge.nonce, firstClient: clientNonce)
        nonce.uses &+= 1
        spaces[key]?.nonces.append(nonce)
        // Servers disagree on which of the client's nonces is part of a session's secret; with a single nonce there is
        // no ambiguity.
        let own = challenge.isSession ? nonce.firstClient : clientNonce
        return NonceUse(
            challenge: challenge, nonce: nonce.value, count: nonce.uses, clientNonce: own, firstNonce: nonce.first,
            firstClientNonce: nonce.firstClient)
    }

    fileprivate mutating func touch(_ key: ProtectionSpaces.Key) {
        uses += 1
        spaces[key]?.usedAt = uses
        guard spaces.count > ProtectionSpaces.maximumSpaces else { return }
        if let oldest = spaces.min(by: { $0.value.usedAt < $1.value.usedAt }) { spaces[oldest.key] = nil }
    }
}

extension DigestChallenge {
    /// Returns the path prefixes at an origin that the challenge covers: "/" unless it lists some.
    fileprivate func prefixes(at origin: String) -> [String] {
        guard let domain else { return ["/"] }
        return domain.compactMap { uri in
            if uri.hasPrefix("/") { return uri }
            guard let target = try? RequestTarget(uri), ProtectedResource(target).origin == origin else { return nil }
            return target.path
        }
    }
}
