// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// What the judge of a connection is told about the server.
package struct PeerFacts: Sendable {
    package var host: String
    package var port: UInt16
    /// What the server sent, its own certificate first.
    package var served: [X509Certificate]
    /// The OCSP response that came with it.
    package var staple: [UInt8]?

    package init(host: String, port: UInt16, served: [X509Certificate], staple: [UInt8]? = nil) {
        self.host = host
        self.port = port
        self.served = served
        self.staple = staple
    }
}

/// Everything that shares one judgement of servers, and one identity towards them: connections, TLS sessions and handles.
///
/// Connections and TLS sessions made under one domain are never used under another.
package final class TrustDomain: @unchecked Sendable {
    // Safe because what never changes needs no guard, how ready it is is behind its lock, and `live` is touched by the loop
    // alone.

    /// Says why a server is refused, nil to accept it.
    ///
    /// Runs on the loop thread inside the handshake: CPU only.
    package typealias Judge = @Sendable (PeerFacts) -> (any Error)?

    let judge: Judge
    /// Whether servers are asked for an OCSP response, and judged when it has come.
    let wantsStaple: Bool
    /// What servers are shown that demand a certificate.
    let identity: X509Identity?
    /// Nanoseconds that a judgement counts for new connections, which resume its TLS session: a day, or an hour when OCSP
    /// responses are looked at.
    var sessionLifetime: UInt64 { (wantsStaple ? 1 : 24) * 3_600_000_000_000 }

    private struct Readiness {
        var isReady = false
        var isComplete = false
        var isPreparing = false
        /// When what is left to do is tried again, on the monotonic clock.
        var retryAt: UInt64 = 0
    }

    private let makeReady: @Sendable () throws(EngineFailure) -> Bool
    private let readiness = Lock(Readiness())
    /// Held while it is made ready, which the loop never waits for.
    private let preparing = Lock(())
    var live: LiveTrust?

    /// - Parameters:
    ///   - wantsStaple: Whether the judge looks at OCSP responses.
    ///   - identity: What servers are shown that demand a certificate.
    ///   - prepare: Does what the judge must not do on the loop: reading files, parsing. Gives whether nothing is left to
    ///     do; else it is called again before later transfers, but not at once.
    ///   - judge: Asked once for each full handshake.
    package init(
        wantsStaple: Bool = false, identity: X509Identity? = nil,
        prepare: @escaping @Sendable () throws(EngineFailure) -> Bool, judge: @escaping Judge
    ) {
        self.wantsStaple = wantsStaple
        self.identity = identity
        makeReady = prepare
        self.judge = judge
    }

    /// Makes the judge ready on the caller's thread; must have succeeded before a secure transfer starts.
    ///
    /// What could not be done yet is tried again, by one caller at a time and once in a second.
    package func prepare() throws(EngineFailure) {
        let mustTry = readiness.withLock { readiness in
            if readiness.isComplete { return false }
            let now = Monotonic.now()
            if readiness.isReady && (readiness.isPreparing || now < readiness.retryAt) { return false }
            readiness.isPreparing = true
            readiness.retryAt = now &+ 1_000_000_000
            return true
        }
        if mustTry { try makeReadyAlone() }
    }

    private func makeReadyAlone() throws(EngineFailure) {
        defer { readiness.withLock { $0.isPreparing = false } }
        try preparing.withLock { (_) throws(EngineFailure) in
            if readiness.withLock({ $0.isComplete }) { return }
            let isComplete = try makeReady()
            readiness.withLock {
                $0.isReady = true
                $0.isComplete = isComplete
            }
        }
    }

    package var isReady: Bool { readiness.withLock { $0.isReady } }
}
