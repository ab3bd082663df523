// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewSupport

/// The facts about a server that the judge of a connection receives.
package struct PeerFacts: Sendable {
    package var host: String
    package var port: UInt16
    /// Whether the server is a proxy on the way to the server that the request is for.
    package var isProxy = false
    /// The certificates that the server sent, its own first.
    package var served: [X509Certificate]
    /// The OCSP response from the handshake; nil without one.
    package var ocspResponse: [UInt8]?

    package init(
        host: String, port: UInt16, isProxy: Bool = false, served: [X509Certificate], ocspResponse: [UInt8]? = nil
    ) {
        self.host = host
        self.port = port
        self.isProxy = isProxy
        self.served = served
        self.ocspResponse = ocspResponse
    }
}

/// The scope of connections, TLS sessions and handles that share one judge, one client identity and one route.
///
/// Connections and TLS sessions made under one domain are never used under another.
package final class TrustDomain: @unchecked Sendable {
    // Safe because constants need no guard, `readiness` is behind its lock, and only the loop accesses `live`.

    /// Returns the reason why a server is refused, nil to accept it.
    ///
    /// The closure runs on the loop thread inside the handshake, so it must use only the CPU.
    package typealias Judge = @Sendable (PeerFacts) -> (any Error)?

    let judge: Judge
    /// Whether an OCSP response is requested, in which case the judge runs after the response has arrived.
    let wantsOCSPResponse: Bool
    /// The identity for servers that request a client certificate.
    let identity: X509Identity?
    /// The route of all connections; nil for the direct one.
    package let route: Route?
    /// The time in nanoseconds for which new connections may resume a judged TLS session: a day, or an hour if OCSP
    /// responses are checked.
    var sessionLifetime: UInt64 { (wantsOCSPResponse ? 1 : 24) * 3_600_000_000_000 }

    private struct Readiness {
        var isReady = false
        var isComplete = false
        var isPreparing = false
        /// The time of the next attempt of an incomplete preparation, in nanoseconds on the monotonic clock.
        var retryAt: UInt64 = 0
    }

    private let prepareJudge: @Sendable () throws(EngineFailure) -> Bool
    private let readiness = Lock(Readiness())
    /// Whether the preparation is complete; the lock is held during a preparation, and the loop never waits for it.
    private let isPrepared = Lock(false)
    var live: LiveTrust?

    /// Creates a domain.
    ///
    /// - Parameters:
    ///   - wantsOCSPResponse: Whether the judge checks OCSP responses.
    ///   - identity: The identity for servers that request a client certificate.
    ///   - route: The route of all connections; nil for the direct one.
    ///   - prepare: Does the work that the judge must not do on the loop, such as reading and parsing files. It returns
    ///     whether the preparation is complete; if not, later transfers call it again, at most once per second.
    ///   - judge: Called once for each full handshake.
    package init(
        wantsOCSPResponse: Bool = false, identity: X509Identity? = nil, route: Route? = nil,
        prepare: @escaping @Sendable () throws(EngineFailure) -> Bool, judge: @escaping Judge
    ) {
        self.wantsOCSPResponse = wantsOCSPResponse
        self.identity = identity
        self.route = route
        prepareJudge = prepare
        self.judge = judge
    }

    /// Prepares the judge on the caller's thread; must succeed before a secure transfer starts.
    ///
    /// An incomplete preparation is retried by one caller at a time, at most once per second.
    package func prepare() throws(EngineFailure) {
        let mustTry = readiness.withLock { readiness in
            if readiness.isComplete { return false }
            let now = Monotonic.now()
            if readiness.isReady && (readiness.isPreparing || now < readiness.retryAt) { return false }
            readiness.isPreparing = true
            readiness.retryAt = now &+ 1_000_000_000
            return true
        }
        if mustTry { try prepareExclusively() }
    }

    private func prepareExclusively() throws(EngineFailure) {
        defer { readiness.withLock { $0.isPreparing = false } }
        try isPrepared.withLock { (isPrepared) throws(EngineFailure) in
            if isPrepared { return }
            isPrepared = try prepareJudge()
            readiness.withLock {
                $0.isReady = true
                $0.isComplete = isPrepared
            }
        }
    }

    package var isReady: Bool { readiness.withLock { $0.isReady } }
}
