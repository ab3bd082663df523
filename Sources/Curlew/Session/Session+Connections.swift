// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import CurlewSupport

extension Session {
    /// The numbers of connections and transfers of a session at one instant.
    ///
    /// ```swift
    /// let pool = await session.pool
    /// print(pool.open, pool.idle, pool.queued)
    /// ```
    public struct Pool: Sendable, Hashable, CustomStringConvertible {
        /// The numbers of connections and transfers of one server.
        public struct Server: Sendable, Hashable, CustomStringConvertible {
            /// The scheme, host and port of the server, such as "https://example.com:443".
            ///
            /// If a proxy forwards the requests, this is the URL of the proxy: requests to several servers share the
            /// connections to the proxy.
            public let origin: String
            /// The URL of the proxy that tunnels to the server, or the path of the Unix socket; nil for other routes.
            public let via: String?
            /// The number of open connections.
            public let open: Int
            /// The number of open connections that no transfer uses.
            public let idle: Int
            /// The number of transfers that have started and not ended.
            public let running: Int
            /// The number of transfers that wait because of the limits of the session.
            public let queued: Int

            /// One line, such as "https://example.com:443: 2 open, 1 idle, 1 running, 0 queued".
            public var description: String {
                "\(origin)\(via.map { " via \($0.escapingControls)" } ?? ""): \(open) open, \(idle) idle, "
                    + "\(running) running, \(queued) queued"
            }
        }

        /// The servers with connections or transfers.
        public let servers: [Server]

        /// The number of open connections to all servers.
        public var open: Int { servers.reduce(0) { $0 + $1.open } }
        /// The number of open connections that no transfer uses.
        public var idle: Int { servers.reduce(0) { $0 + $1.idle } }
        /// The number of transfers that have started and not ended.
        public var running: Int { servers.reduce(0) { $0 + $1.running } }
        /// The number of transfers that wait because of the limits of the session.
        public var queued: Int { servers.reduce(0) { $0 + $1.queued } }

        /// One line with the sums.
        public var description: String { "\(open) open, \(idle) idle, \(running) running, \(queued) queued" }
    }

    /// The numbers of connections and transfers at this instant.
    public var pool: Pool {
        let counts = (core.share.loop.transport as? CurlTransport)?.pool ?? []
        return Pool(servers: counts.map { Pool.Server($0) })
    }

    /// The current ``pool``, and then the pool after each change.
    ///
    /// The sequence ends when the task is cancelled and when the session is shut down.
    /// - Parameter interval: The time between two readings of the pool; one second by default. The sequence omits
    ///   changes that are undone between two readings.
    public nonisolated func poolChanges(every interval: Duration = .seconds(1)) -> AsyncStream<Pool> {
        let last = Lock<Pool?>(nil)
        return AsyncStream {
            while self.core.closed.count == 0 {
                let known = last.withLock { $0 }
                if known != nil {
                    do { try await self.core.clock.wait(for: max(interval, .milliseconds(1))) } catch { return nil }
                }
                let pool = await self.pool
                if pool == known { continue }
                last.withLock { $0 = pool }
                return pool
            }
            return nil
        }
    }

    /// Opens connections to a server, so that the next requests do not wait for a connection.
    ///
    /// The connections use the proxy, the trust evaluator and the timeouts of the request. An unused connection closes
    /// after `limits.idleConnectionLifetime`. For a server that supports HTTP/2, the session opens only one connection.
    /// The number includes idle connections that are already open.
    ///
    /// - Parameters:
    ///   - request: A request to the server; its method, path, fields and body have no effect.
    ///   - connections: The number of connections; one by default.
    /// - Throws: The `NetworkError` of the first connection that failed, with the kinds of ``data(for:)``. The other
    ///   connections stay open.
    public nonisolated func preconnect(to request: Request, connections: Int = 1) async throws(NetworkError) {
        guard connections > 0 else { return }
        // The first connection shows whether the server supports HTTP/2.
        try await core.connect(request, count: 1, isNew: false)
        // The proxy policy may have a closure, which must not run on the thread of the session.
        let url = try core.plannedURL(of: request)
        let missing = await missingConnections(to: url, of: connections)
        if missing > 0 { try await core.connect(request, count: missing, isNew: true) }
    }

    private func missingConnections(to url: PlannedURL, of wanted: Int) -> Int {
        guard let transport = core.share.loop.transport as? CurlTransport else { return 0 }
        let (idle, isShared) = transport.idleConnections(to: url)
        return isShared ? 0 : max(0, wanted - idle)
    }
}

extension Session.Pool.Server {
    init(_ counts: PoolCounts) {
        let server = "\(counts.isSecure ? "https" : "http")://\(authority(counts.host, counts.port))"
        (open, idle, running, queued) = (counts.open, counts.idle, counts.running, counts.queued)
        switch counts.route {
        case .proxy(let proxy):
            let url = "\(proxy.scheme.rawValue)://\(authority(proxy.host, proxy.port))"
            let forwards = proxy.isHTTP && !counts.isSecure && !proxy.tunnels
            (origin, via) = forwards ? (url, nil) : (server, url)
        case .socket, .server, nil: (origin, via) = (server, counts.socketName)
        }
    }
}

extension SessionCore {
    /// Opens connections for a request, but does not send the request.
    fileprivate func connect(_ request: Request, count: Int, isNew: Bool) async throws(NetworkError) {
        var bare = request
        bare.body = .none
        bare.method = .head
        var runs: [EngineTransfer] = []
        for _ in 0..<count {
            var plan = try plan(for: bare)
            plan.connectsOnly = true
            plan.needsNewConnection = isNew
            runs.append(EngineTransfer(plan, on: share.loop))
        }
        let all = runs
        await withTaskCancellationHandler {
            for run in all { run.startPrepared() }
            for run in all { _ = await run.waitForEndUncancelled() }
        } onCancel: {
            for run in all { run.cancel() }
        }
        for run in runs {
            guard let outcome = run.outcome, let failure = outcome.failure, !failure.isConnectedOnly else { continue }
            throw Attempt(bare, run, policy: nil).error(failure, outcome)
        }
    }
}
