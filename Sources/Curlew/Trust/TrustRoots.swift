// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine

/// Where chains of certificates may end.
///
/// Making one is cheap; what it stands for is loaded once, before it is first needed.
public struct TrustRoots: Sendable {
    private enum Kind: Hashable {
        case system, only, systemAnd, systemOr
    }

    /// What is loaded, shared by all copies.
    private final class Loaded: Sendable {
        let result = Lock<Result<TrustStore, TrustFailure>?>(nil)
    }

    static let hint =
        "Install ca-certificates, set SSL_CERT_FILE, or trust roots of your own with CustomRoots."

    private let kind: Kind
    private let certificates: [Certificate]
    /// Stands for the certificates where roots are compared, which is done for every request with an evaluator.
    private let digest: [UInt8]
    private let loaded: Loaded

    private init(_ kind: Kind, _ certificates: [Certificate] = []) {
        self.kind = kind
        self.certificates = certificates
        digest = certificates.isEmpty ? [] : sha256(certificates.flatMap { sha256($0.der) })
        loaded = TrustRoots.loaded(Key(kind: kind, digest: digest))
    }

    private struct Key: Hashable {
        var kind: Kind
        var digest: [UInt8]
    }

    private struct WeakLoaded {
        weak var loaded: Loaded?
    }

    /// All that are in use, so that equal roots are loaded once.
    private static let all = Lock<[Key: WeakLoaded]>([:])

    private static func loaded(_ key: Key) -> Loaded {
        all.withLock { all in
            if let known = all[key]?.loaded { return known }
            if all.count >= 64 { all = all.filter { $0.value.loaded != nil } }
            let made = Loaded()
            all[key] = WeakLoaded(loaded: made)
            return made
        }
    }

    /// The roots of the Linux distribution, or those of `SSL_CERT_FILE` and `SSL_CERT_DIR` when these are set.
    public static let system = TrustRoots(.system)

    /// No roots, for evaluators that need no chain of their own.
    static let nobody = TrustRoots(.only)

    /// These certificates alone.
    public static func only(_ certificates: [Certificate]) -> TrustRoots { TrustRoots(.only, certificates) }

    /// The system's and these.
    public static func systemAnd(_ certificates: [Certificate]) -> TrustRoots { TrustRoots(.systemAnd, certificates) }

    /// The system's, or these where the system has none, as in a bare container.
    public static func systemOr(_ certificates: [Certificate]) -> TrustRoots { TrustRoots(.systemOr, certificates) }

    var areNobody: Bool { kind == .only && certificates.isEmpty }

    /// Loads the roots on the calling thread, unless they are.
    ///
    /// - Throws: `TrustFailure` with rule `.roots` when the system has none.
    public func load() throws(TrustFailure) { _ = try result(retrying: true).get() }

    /// What was loaded, or why nothing was; a handshake does not try again.
    func store() throws(TrustFailure) -> TrustStore { try result(retrying: false).get() }

    private func result(retrying: Bool) -> Result<TrustStore, TrustFailure> {
        switch loaded.result.withLock({ $0 }) {
        case .success(let store)?: return .success(store)
        case .failure(let failure)? where !retrying: return .failure(failure)
        default: break
        }
        // Outside of the lock, so that no handshake waits for a disk.
        let made = Result { () throws(TrustFailure) in try loadedStore() }
        return loaded.result.withLock { result in
            if case .success(let store)? = result { return .success(store) }
            result = made
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
            throw TrustFailure(.roots, "there is no memory left for root certificates")
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
    /// Whether both stand for the same certificates.
    public static func == (one: TrustRoots, other: TrustRoots) -> Bool {
        one.kind == other.kind && one.digest == other.digest
    }

    /// Hashes what is compared.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(kind)
        hasher.combine(digest)
    }
}
