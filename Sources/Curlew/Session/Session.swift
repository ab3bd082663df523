// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// This folder holds the session, which owns the sockets. The actor's executor is the loop thread, so isolated code sees
// all connections at one instant. Frequently used or constant members are nonisolated and use the loop's inbox.

package import CurlewEngine
public import FoundationEssentials
internal import CurlewSupport

/// An actor that owns connections and runs transfers on them.
///
/// A session has one loop thread, and a set of libcurl's connection pools for each trust evaluator. Create one session
/// for a program and share it, because connections are reused only within a session. The session starts its thread when
/// it is first used. Releasing it without `shutdown` is fine: transfers that are still referenced keep it alive, and
/// detached transfers finish first.
///
/// ```swift
/// let (data, head) = try await Session.shared.data(for: "https://example.com/users/42")
/// ```
public actor Session {
    nonisolated let core: SessionCore
    private nonisolated let isShared: Bool

    /// The session with the default configuration for the whole process; it cannot be shut down.
    public static let shared = Session(core: SessionCore(Session.Configuration(), trust: SystemTrust()), isShared: true)

    /// Creates a session; it opens no connection before the first transfer.
    ///
    /// With an invalid configuration every transfer fails with `.invalidRequest`; `validate()` reports the error
    /// earlier.
    /// - Parameters:
    ///   - configuration: Timeouts, limits and so on; all defaults unless given.
    ///   - trust: Evaluates the servers of requests without an evaluator of their own; the system's roots by default.
    ///   - identities: The client certificates for servers that demand one; empty by default.
    ///   - interceptors: The interceptors of every request, the first one outermost; empty by default.
    ///   - observers: The observers of all events of the session; empty by default.
    ///   - downloads: The destination of downloads without a destination of their own; nil by default.
    ///   - cookies: The jar of all requests; a new one in memory by default, nil to handle no cookies.
    ///   - hsts: The hosts that require https; a new store in memory by default, nil to ignore HSTS.
    ///   - cache: The cache of all requests; nil by default.
    ///   - resolver: Looks up host names; the system's name service by default.
    ///   - path: The monitor for ``path`` and for retries that wait for connectivity. Nil by default: ``path`` is then
    ///     `PathMonitor.shared`, and a retry waits for a route to the host of its request or proxy.
    public init(
        _ configuration: Session.Configuration = Session.Configuration(), trust: any TrustEvaluator = SystemTrust(),
        identities: ClientIdentities = .none, interceptors: [any Interceptor] = [],
        observers: [any Session.Observer] = [], downloads: DownloadDestination? = nil,
        cookies: CookieJar? = CookieJar(), hsts: HSTSStore? = HSTSStore(),
        cache: HTTPCache? = nil, resolver: Session.Resolver = .system, path: PathMonitor? = nil
    ) {
        self.init(
            core: SessionCore(
                configuration, trust: trust, identities: identities, interceptors: interceptors, observers: observers,
                downloads: downloads, cookies: cookies, hsts: hsts, cache: cache, resolver: resolver.engine, path: path),
            isShared: false)
        for observer in observers { core.relay.serve(observer) }
    }

    /// Creates a session from the default configuration, changed by a closure.
    ///
    /// - Parameters:
    ///   - trust: Evaluates the servers of requests without an evaluator of their own; the system's roots by default.
    ///   - identities: The client certificates for servers that demand one; empty by default.
    ///   - interceptors: The interceptors of every request, the first one outermost; empty by default.
    ///   - observers: The observers of all events of the session; empty by default.
    ///   - downloads: The destination of downloads without a destination of their own; nil by default.
    ///   - cookies: The jar of all requests; a new one in memory by default, nil to handle no cookies.
    ///   - hsts: The hosts that require https; a new store in memory by default, nil to ignore HSTS.
    ///   - cache: The cache of all requests; nil by default.
    ///   - resolver: Looks up host names; the system's name service by default.
    ///   - path: The monitor for ``path`` and for retries that wait for connectivity. Nil by default: ``path`` is then
    ///     `PathMonitor.shared`, and a retry waits for a route to the host of its request or proxy.
    ///   - configure: Changes the default configuration, at once.
    /// - Throws: The error of the closure.
    public init(
        trust: any TrustEvaluator = SystemTrust(), identities: ClientIdentities = .none,
        interceptors: [any Interceptor] = [], observers: [any Session.Observer] = [],
        downloads: DownloadDestination? = nil, cookies: CookieJar? = CookieJar(), hsts: HSTSStore? = HSTSStore(),
        cache: HTTPCache? = nil, resolver: Session.Resolver = .system, path: PathMonitor? = nil,
        _ configure: @Sendable (inout Session.Configuration) throws -> Void
    ) rethrows {
        self.init(
            try Session.Configuration(configure), trust: trust, identities: identities, interceptors: interceptors,
            observers: observers, downloads: downloads, cookies: cookies, hsts: hsts, cache: cache, resolver: resolver,
            path: path)
    }

    /// Creates a session with another resolver of the engine.
    package init(_ configuration: Session.Configuration = Session.Configuration(), resolver: EngineResolver) {
        self.init(core: SessionCore(configuration, trust: SystemTrust(), resolver: resolver), isShared: false)
    }

    init(core: SessionCore, isShared: Bool = false) {
        self.core = core
        self.isShared = isShared
    }

    /// The loop thread, on which all code isolated to the session runs.
    public nonisolated var unownedExecutor: UnownedSerialExecutor { core.share.loop.asUnownedSerialExecutor() }

    /// The configuration that the session was created with.
    public nonisolated var configuration: Session.Configuration { core.configuration }

    /// The cookies of the session; nil when it handles no cookies.
    public nonisolated var cookies: CookieJar? { core.cookies }

    /// The hosts that require https; nil when the session ignores HSTS.
    public nonisolated var hsts: HSTSStore? { core.hsts }

    /// The cache of the session; nil when it has none.
    public nonisolated var cache: HTTPCache? { core.cache }

    /// Creates a session with the same configuration, identities, interceptors, resolver, path monitor and download
    /// destination, but without observers.
    ///
    /// The two sessions share the cookies, the hosts that require https and the cache, but no connection.
    ///
    /// - Parameter trust: Evaluates the servers of requests without an evaluator of their own; this session's unless
    ///   given.
    /// - Returns: A new session.
    public nonisolated func copy(trust: (any TrustEvaluator)? = nil) -> Session {
        copy(trust: trust) { _ in }
    }

    /// Creates a session with the same identities, interceptors and resolver, and the same configuration changed by a
    /// closure.
    ///
    /// The two sessions share the cookies, the hosts that require https and the cache, but no connection. An ephemeral
    /// copy of a session that is not ephemeral has a new jar, a new store and a new cache in memory.
    ///
    /// - Parameters:
    ///   - trust: Evaluates the servers of requests without an evaluator of their own; this session's unless given.
    ///   - configure: Changes the copy of the configuration.
    /// - Returns: A new session.
    /// - Throws: The error of the closure.
    public nonisolated func copy(
        trust: (any TrustEvaluator)? = nil, _ configure: (inout Session.Configuration) throws -> Void
    ) rethrows -> Session {
        var configuration = core.configuration
        try configure(&configuration)
        let isSeparate = configuration.isEphemeral && !core.configuration.isEphemeral
        return Session(
            configuration, trust: trust ?? core.trust, identities: core.identities, interceptors: core.interceptors,
            downloads: core.downloads, cookies: isSeparate ? core.cookies.map { _ in CookieJar() } : core.cookies,
            hsts: isSeparate ? core.hsts.map { _ in HSTSStore() } : core.hsts,
            cache: isSeparate ? core.cache.map { HTTPCache($0.options) } : core.cache,
            resolver: Session.Resolver(engine: core.resolver), path: core.path)
    }

    // MARK: Transfers

    /// Runs a request and collects its body.
    ///
    /// Every status is a result, except that redirects are followed by the ``RedirectPolicy``; the session validates
    /// neither status nor content. Cancelling the task cancels the transfer. Interceptors run in the calling
    /// task, or in a separate one if `timeouts.total` is set.
    /// - Parameter request: A request, or a URL as a string literal.
    /// - Returns: The body, decoded and at most `limits.responseBody` bytes, and the response's head.
    /// - Throws: `NetworkError`: `.invalidRequest` before anything is sent, `.cancelled`, `.sessionClosed`,
    ///   `.timedOut`, `.cannotResolve`, `.cannotConnect`, `.tlsFailed`, `.untrusted`, `.connectionLost`,
    ///   `.invalidResponse`, `.bodyTooLarge`, `.bodyFailed`, `.truncatedEncoding`, `.corruptEncoding`, `.unsupported`,
    ///   each with the phase in which it happened.
    public nonisolated(nonsending) func data(for request: Request) async throws(NetworkError) -> (Data, ResponseHead) {
        try await core.data(for: request)
    }

    /// Creates a cold transfer, which starts when it is first awaited, iterated or `start()`ed.
    ///
    /// - Parameter request: A request, or a URL as a string literal; with an invalid request the transfer throws when
    ///   it is used.
    /// - Returns: The transfer.
    public nonisolated func transfer(_ request: Request) -> Transfer<Data> {
        Transfer(core.transfer(request)) { response throws(NetworkError) in response.value }
    }

    /// The transfers that are queued, running or paused at this instant, the oldest first.
    public var transfers: [Session.TransferSnapshot] {
        var attempts: [UInt64: EngineTransfer.Snapshot] = [:]
        // The later ones of the attempts of a transfer are the last.
        for snapshot in core.share.loop.snapshots where !snapshot.run.isAbandoned {
            attempts[snapshot.id] = snapshot
        }
        return attempts.values.sorted { $0.id < $1.id }.map { Session.TransferSnapshot($0) }
    }

    /// The events of the session and its transfers from now on, for any number of observers.
    ///
    /// For each observer up to 256 events are buffered; after that the oldest are dropped and counted. An observer
    /// first receives the current state of running transfers. Observing starts nothing and keeps nothing alive. Without
    /// observers no event is created.
    public nonisolated var events: AsyncStream<Session.Event> {
        let reader = SessionEventReader(core.relay)
        return AsyncStream { await reader.next() }
    }

    /// Waits until no transfer is queued, running, paused or between two of its attempts.
    ///
    /// Other code may start another transfer right after the return.
    /// - Throws: `NetworkError` of kind `.cancelled` when the task is cancelled during the wait.
    public nonisolated func idle() async throws(NetworkError) {
        guard await core.share.loop.idle() else {
            throw NetworkError(.cancelled, phase: .waiting, "The wait for an idle session was cancelled.")
        }
        await core.recorder?.waitUntilRecorded()
    }

    /// Reports whether and how the machine is connected: the monitor that the session was created with, by default
    /// `PathMonitor.shared`.
    public nonisolated var path: PathMonitor { core.path ?? .shared }

    /// The loop thread as a task executor: a task that prefers it makes requests without a single thread switch.
    ///
    /// Code that runs on it must not block or compute for long, since every transfer of the session waits for it.
    public nonisolated var executor: any TaskExecutor { LoopTaskExecutor(core.share) }

    // MARK: Shutdown

    /// A way to shut down a session.
    public enum Shutdown: Sendable, Hashable {
        /// Running transfers may finish within a time; the remaining ones then end with `.sessionClosed`.
        case graceful(within: Duration)
        /// Running transfers end with `.sessionClosed` at once.
        case immediate
    }

    /// Refuses new transfers, ends the running ones according to `mode`, and closes every connection.
    ///
    /// Then it writes the files of the session's ``CookieJar`` and ``HSTSStore``, if they have files. While other
    /// processes lock the files, this takes up to 40 seconds longer.
    ///
    /// A second call waits for the end, too.
    ///
    /// The call is optional, because a released session closes itself, but a program that ends right after a response
    /// needs it or ``CookieJar/save()`` to keep the last cookies. Cancellation does not interrupt the shutdown.
    /// The time of `mode` bounds the wait for running transfers, but not the writing of the files.
    /// - Parameter mode: How running transfers end; within 30 seconds by default.
    /// - Throws: `NetworkError` of kind `.invalidRequest` for `Session.shared`; of kind `.destinationFailed` when a
    ///   file cannot be written, after the session has shut down.
    public nonisolated func shutdown(_ mode: Shutdown = .graceful(within: .seconds(30))) async throws(NetworkError) {
        guard !isShared else {
            throw NetworkError(
                invalid: .usage, "Session.shared cannot be shut down.",
                hint: "Other code in the process uses it; create a Session of your own.")
        }
        let limit: UInt64 =
            switch mode {
            case .graceful(let time): time.engineTime
            case .immediate: 0
            }
        await core.share.loop.shutDown(within: limit)
        core.closed.send()
        core.relay.close()
        await core.recorder?.waitUntilRecorded()
        try await core.saveState()
    }

    /// The state that `reset` discards.
    public enum Reset: Sendable, Hashable {
        /// Idle connections, resumable TLS sessions, and alternative services that are not persistent. The connection
        /// of a running transfer closes when the transfer ends.
        case connections
    }

    /// Discards state that the session keeps between transfers.
    ///
    /// - Parameter what: The state to discard.
    public func reset(_ what: Reset) {
        core.forgetHeaderLines()
        core.alternativeServices.forgetNetworkSpecific()
        core.share.loop.transport?.resetConnections()
    }
}

extension Session: CustomStringConvertible, CustomReflectable {
    /// Only the description: other threads must not inspect the state of the loop.
    public nonisolated var customMirror: Mirror { Mirror(self, children: ["description": description]) }

    /// A description with the session's limits.
    public nonisolated var description: String {
        let limits = configuration.limits
        return "Session(\(limits.connectionsPerHost) connections a host, \(limits.transfersPerHost) transfers a host)"
    }
}
