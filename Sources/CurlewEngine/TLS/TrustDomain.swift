// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// What the judge of a connection is told about the server: plain values, copied out of OpenSSL.
package struct PeerFacts: Sendable {
    package var host: String
    package var port: UInt16
    /// DER certificates as the server sent them, the leaf first.
    package var served: [[UInt8]]
    /// DER certificates from the leaf to the root, as OpenSSL verified them; empty when it could not.
    package var verified: [[UInt8]]
    /// Why OpenSSL rejects the chain, nil when it does not, and which certificate it rejects (0 is the leaf).
    package var chainError: String?
    package var chainErrorCode: Int32
    package var chainErrorDepth: Int
    package var hostMatches: Bool

    package init(
        host: String, port: UInt16, served: [[UInt8]], verified: [[UInt8]], chainError: String?,
        chainErrorCode: Int32, chainErrorDepth: Int, hostMatches: Bool
    ) {
        self.host = host
        self.port = port
        self.served = served
        self.verified = verified
        self.chainError = chainError
        self.chainErrorCode = chainErrorCode
        self.chainErrorDepth = chainErrorDepth
        self.hostMatches = hostMatches
    }
}

/// Everything that shares one judgement of servers: connections, TLS sessions and handles.
///
/// Connections and TLS sessions made under one domain are never used under another.
package final class TrustDomain: @unchecked Sendable {
    // Safe because `roots` is behind its lock, the closures never change, and `live` is touched by the loop alone.

    /// Says why a server is refused, nil to accept it.
    ///
    /// Runs on the loop thread inside the handshake: CPU only.
    package typealias Judge = @Sendable (PeerFacts) -> (any Error)?

    let judge: Judge
    private let makeRoots: @Sendable () throws(EngineFailure) -> TrustStore
    private let roots = Lock<TrustStore?>(nil)
    var live: LiveTrust?

    package init(roots: @escaping @Sendable () throws(EngineFailure) -> TrustStore, judge: @escaping Judge) {
        makeRoots = roots
        self.judge = judge
    }

    /// Loads the roots on the caller's thread, once; must have succeeded before a secure transfer starts.
    package func prepare() throws(EngineFailure) {
        try roots.withLock { (roots) throws(EngineFailure) in
            if roots == nil { roots = try makeRoots() }
        }
    }

    var preparedRoots: TrustStore? { roots.withLock { $0 } }
}
