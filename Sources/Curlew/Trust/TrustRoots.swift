// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import CurlewSupport

/// The certificates at which chains may end.
///
/// Creating a value is cheap; the certificates are loaded once, before their first use.
public struct TrustRoots: Sendable {
    private enum Kind: Hashable {
        case system, only, systemAnd, systemOr
    }

    private enum State {
        case unloaded
        case loaded(TrustStore)
        case failed(TrustFailure)
    }

    /// The loaded certificates, shared by all copies.
    private final class Loaded: Sendable {
        let state = Lock(State.unloaded)
    }

    static let hint =
        "Install ca-certificates, set SSL_CERT_FILE, or trust roots of your own with CustomRoots."

    private let kind: Kind
    private let certificates: [Certificate]
    /// The digest of the certificates, which makes comparison cheap: every request with an evaluator compares roots.
    private let digest: [UInt8]
    private let loaded: Loaded

    private init(_ kind: Kind, _ certificates: [Certificate] = []) {
        self.kind = kind
        self.certificates = certificates
        digest = certificates.isEmpty ? [] : sha256(certificates.flatMap { sha256($0.der) })
        loaded = TrustRoots.loaded(kind, digest)
    }

    private struct WeakLoaded {
        var kind: Kind
        var digest: [UInt8]
        weak var loaded: Loaded?
    }

    /// All loaded roots in use, so that equal roots are loaded once.
    ///
    /// An array, because a dictionary would make the first request of a program slower: the runtime would search all
    /// its tables for the conformance of the key.
    private static let all = Lock<[WeakLoaded]>([])

    private static func loaded(_ kind: Kind, _ digest: [UInt8]) -> Loaded {
        all.withLock { all in
            for entry in all where entry.kind == kind && entry.digest == digest {
                if let known = entry.loaded { return known }
            }
            all.removeAll { $0.loaded == nil }
            let made = Loaded()
            all.append(WeakLoaded(kind: kind, digest: digest, loaded: made))
            return made
        }
    }

    /// The roots of the Linux distribution, or those of `SSL_CERT_FILE` and `SSL_CERT_DIR` if these variables are set.
    public static let system = TrustRoots(.system)

    /// Empty roots, for evaluators that verify no chain themselves.
    static let empty = TrustRoots(.only)

    /// Returns roots of these certificates only.
    public static func only(_ certificates: [Certificate]) -> TrustRoots { TrustRoots(.only, certificates) }

    /// Returns the system's roots and these certificates.
    public static func systemAnd(_ certificates: [Certificate]) -> TrustRoots { TrustRoots(.systemAnd, certificates) }

    /// Returns the system's roots, or these certificates if the system has no roots, as in a bare container.
    public static func systemOr(_ certificates: [Certificate]) -> TrustRoots { TrustRoots(.systemOr, certificates) }

    var areEmpty: Bool { kind == .only && certificates.isEmpty }

    /// Loads the roots on the calling thread, unless they are already loaded.
    ///
    /// - Throws: `TrustFailure` with rule `.roots` when the system has no roots.
    public func load() throws(TrustFailure) { _ = try result(retrying: true).get() }

    /// Returns the loaded roots or throws the stored failure; a handshake does not retry a failed load.
    func store() throws(TrustFailure) -> TrustStore { try result(retrying: false).get() }

    private func result(retrying: Bool) -> Result<TrustStore, TrustFailure> {
        switch loaded.state.withLock({ $0 }) {
        case .loaded(let store): return .success(store)
        case .failed(let failure) where !retrying: return .failure(failure)
        default: break
        }
        // Load outside of the lock, so that no handshake waits for the disk.
        let made = Result { () throws(TrustFailure) in try loadedStore() }
        return loaded.state.withLock { state in
            if case .loaded(let store) = state { return .success(store) }
            switch made {
            case .success(let store): state = .loaded(store)
            case .failure(let failure): state = .failed(failure)
            }
            return made
        }
    }

    private func loadedStore() throws(TrustFailure) -> TrustStore {
        do throws(EngineFailure) {
            return try makeStore()
        } catch {
            if case .noRoots(let places) = error.reason {
                throw TrustFailure(
                    .roots, "no root certificates were found in \(places.joined(separator: ", "))",
                    hint: TrustRoots.hint)
            }
            throw TrustFailure(.roots, "there is not enough memory for root certificates")
        }
    }

    private func makeStore() throws(EngineFailure) -> TrustStore {
        let own = certificates.map(\.x509)
        switch kind {
        case .system: return try TrustStore.system()
        case .only: return try TrustStore(own)
        case .systemAnd:
            let store = try TrustStore(own)
            try store.addSystemRoots()
            return store
        case .systemOr:
            do throws(EngineFailure) {
                return try TrustStore.system()
            } catch {
                guard case .noRoots = error.reason else { throw error }
                return try TrustStore(own)
            }
        }
    }
}

extension TrustRoots: Hashable {
    /// Whether both contain the same certificates.
    public static func == (one: TrustRoots, other: TrustRoots) -> Bool {
        one.kind == other.kind && one.digest == other.digest
    }

    /// Hashes the compared properties.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(kind)
        hasher.combine(digest)
    }
}
