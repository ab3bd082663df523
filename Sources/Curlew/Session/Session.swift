// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// Session: owns sockets. The actor's executor is the loop thread, so what is isolated to it sees the wire at one
// instant; what is hot or constant is nonisolated and goes through the loop's inbox.

package import CurlewEngine
public import FoundationEssentials

/// Owns connections and runs transfers on them: one loop thread, libcurl's connection pools, one set for each trust.
///
/// Make one for a program and share it: connections are reused within a session only. It starts its thread when it
/// is first used. Letting it go without `shutdown` is fine: transfers that somebody holds keep it alive, detached ones
/// finish first.
///
/// ```swift
/// let (data, head) = try await Session.shared.data(for: "https://example.com/users/42")
/// ```
public actor Session {
    nonisolated let core: SessionCore
    private nonisolated let isShared: Bool

    /// A session with the default configuration for the whole process; it cannot be shut down.
    public static let shared = Session(core: SessionCore(SessionConfiguration(), trust: SystemTrust()), isShared: true)

    /// Makes a session; nothing is opened before the first transfer.
    ///
    /// A configuration that makes no sense makes every transfer fail with `.invalidRequest`; `validate()` tells before.
    /// - Parameters:
    ///   - configuration: Timeouts, limits and so on; all defaults unless given.
    ///   - trust: Judges the servers of requests that name no evaluator of their own; the system's roots by default.
    ///   - identities: Who we are to servers that demand a certificate; nobody by default.
    ///   - interceptors: Surround every request, the first one outermost; none by default.
    ///   - observers: Hear of everything that happens in the session; none by default.
    ///   - downloads: Where downloads go that do not say so themselves; nowhere by default.
    public init(
        _ configuration: SessionConfiguration = SessionConfiguration(), trust: any TrustEvaluator = SystemTrust(),
        identities: ClientIdentities = .none, interceptors: [any Interceptor] = [],
        observers: [any SessionObserver] = [], downloads: DownloadDestination? = nil
    ) {
        self.init(
            core: SessionCore(
                configuration, trust: trust, identities: identities, interceptors: interceptors, observers: observers,
                downloads: downloads),
            isShared: false)
        for observer in observers { core.relay.serve(observer) }
    }

    /// Makes a session from the default configuration, changed by a closure.
    ///
    /// - Parameters:
    ///   - trust: Judges the servers of requests that name no evaluator of their own; the system's roots by default.
    ///   - identities: Who we are to servers that demand a certificate; nobody by default.
    ///   - interceptors: Surround every request, the first one outermost; none by default.
    ///   - observers: Hear of everything that happens in the session; none by default.
    ///   - downloads: Where downloads go that do not say so themselves; nowhere by default.
    ///   - configure: Changes the default configuration, at once.
    /// - Throws: What the closure throws.
    public init(
        trust: any TrustEvaluator = SystemTrust(), identities: ClientIdentities = .none,
        interceptors: [any Interceptor] = [], observers: [any SessionObserver] = [],
        downloads: DownloadDestination? = nil, _ configure: @Sendable (inout SessionConfiguration) throws -> Void
    ) rethrows {
        self.init(
            try SessionConfiguration(configure), trust: trust, identities: identities, interceptors: interceptors,
            observers: observers, downloads: downloads)
    }

    /// A session that asks another name service.
    package init(_ configuration: SessionConfiguration = SessionConfiguration(), resolver: Resolver) {
        self.init(core: SessionCore(configuration, trust: SystemTrust(), resolver: resolver), isShared: false)
    }

    init(core: SessionCore, isShared: Bool = false) {
        self.core = core
        self.isShared = isShared
    }

    /// The loop thread, on which everything isolated to the session runs.
    public nonisolated var unownedExecutor: UnownedSerialExecutor { core.share.loop.asUnownedSerialExecutor() }

    /// What the session was made with.
    public nonisolated var configuration: SessionConfiguration { core.configuration }

    /// Makes another session with the same configuration, identities, interceptors and place of downloads, without observers; no connection is shared.
    ///
    /// - Parameter trust: Judges the servers of requests that name no evaluator of their own; this session's unless given.
    /// - Returns: A new session.
    public nonisolated func copy(trust: (any TrustEvaluator)? = nil) -> Session {
        copy(trust: trust) { _ in }
    }

    /// Makes another session with the same configuration, changed by a closure, and the same identities and interceptors; no connection
    /// is shared.
    ///
    /// - Parameters:
    ///   - trust: Judges the servers of requests that name no evaluator of their own; this session's unless given.
    ///   - configure: Changes the copy of the configuration.
    /// - Returns: A new session.
    /// - Throws: What the closure throws.
    public nonisolated func copy(
        trust: (any TrustEvaluator)? = nil, _ configure: (inout SessionConfiguration) throws -> Void
    ) rethrows -> Session {
        var configuration = core.configuration
        try configure(&configuration)
        return Session(
            configuration, trust: trust ?? core.trust, identities: core.identities, interceptors: core.interceptors,
            downloads: core.downloads)
    }

    // MARK: Transfers

    /// Runs a request and collects its body.
    ///
    /// Any status is a result but for redirects, which are followed as ``RedirectPolicy`` says; nothing is judged but the
    /// wire. Cancelling the task cancels the transfer. Interceptors run in the calling task.
    /// - Parameter request: A request, or a URL as a string literal.
    /// - Returns: The body, decoded and at most `limits.responseBody` bytes, and the response's head.
    /// - Throws: `NetworkError`: `.invalidRequest` before anything is sent, `.cancelled`, `.sessionClosed`, `.timedOut`,
    ///   `.cannotResolve`, `.cannotConnect`, `.tlsFailed`, `.untrusted`, `.connectionLost`, `.invalidResponse`,
    ///   `.bodyTooLarge`, `.bodyFailed`, `.truncatedEncoding`, `.corruptEncoding`, `.unsupported`, each with the phase it happened in.
    public nonisolated(nonsending) func data(for request: Request) async throws(NetworkError) -> (Data, ResponseHead) {
        try await core.collect(request)
    }

    /// Makes a cold transfer, which starts when it is first awaited, iterated or `start()`ed.
    ///
    /// - Parameter request: A request, or a URL as a string literal; a bad one makes the transfer throw when it is used.
    /// - Returns: The transfer.
    public nonisolated func transfer(_ request: Request) -> Transfer<Data> {
        Transfer(core.transfer(request)) { response throws(NetworkError) in response.value }
    }

    /// The transfers queued, running and paused at this instant, the oldest first.
    public var transfers: [TransferSnapshot] {
        (core.share.loop.transport?.snapshots ?? []).map { snapshot in
            TransferSnapshot(
                id: snapshot.id, kind: snapshot.isSaved ? .download : snapshot.hasBody ? .upload : .data,
                state: Transfer<Void>.State(snapshot.state), label: snapshot.label,
                progress: TransferProgress(snapshot.counters, rate: 0))
        }
    }

    /// What happens to the session and to its transfers, from now on: any number of observers, each with up to 256 events
    /// that wait, then the oldest are dropped and counted.
    ///
    /// Of transfers on their way an observer hears first how they stand. Observing starts nothing and keeps nothing
    /// alive. Without observers no event is made.
    public nonisolated var events: AsyncStream<SessionEvent> {
        let reader = SessionEventReader(core.relay)
        return AsyncStream { await reader.next() }
    }

    /// Waits until no transfer is queued, running or paused, also none between two of its attempts.
    ///
    /// Nobody is kept from starting another one right after.
    /// - Throws: `NetworkError` of kind `.cancelled` when the task is cancelled before.
    public nonisolated func idle() async throws(NetworkError) {
        guard await core.share.loop.idle() else {
            throw NetworkError(.cancelled, phase: .waiting, "The wait for an idle session was cancelled.")
        }
        await core.recorder?.settled()
    }

    /// Whether and how the machine is connected; nothing is watched until somebody iterates it.
    public nonisolated var path: PathMonitor { PathMonitor() }

    /// The loop thread as a task executor: a task that prefers it makes requests without a single thread switch.
    ///
    /// Code that runs there must not block or compute for long, since every transfer of the session waits for it.
    public nonisolated var executor: any TaskExecutor { LoopTaskExecutor(core.share) }

    // MARK: The end

    /// How a session is shut down.
    public enum Shutdown: Sendable, Hashable {
        /// Running transfers may finish, for a time; what is left then ends with `.sessionClosed`.
        case graceful(within: Duration)
        /// Running transfers end with `.sessionClosed` at once.
        case immediate
    }

    /// Refuses new transfers, ends the running ones as told and closes every connection.
    ///
    /// Calling it again waits too.
    ///
    /// Optional: a session that is let go closes itself. Not interrupted by cancellation; the time given bounds it.
    /// - Parameter mode: Within 30 seconds by default.
    /// - Throws: `NetworkError` of kind `.invalidRequest` for `Session.shared`.
    public nonisolated func shutdown(_ mode: Shutdown = .graceful(within: .seconds(30))) async throws(NetworkError) {
        guard !isShared else {
            throw NetworkError(
                invalid: .usage, "Session.shared cannot be shut down.",
                hint: "Other code in the process uses it; make a Session of your own.")
        }
        let limit: UInt64 =
            switch mode {
            case .graceful(let time): time.engineTime
            case .immediate: 0
            }
        await core.share.loop.shutDown(within: limit)
        core.closed.ring()
        core.relay.close()
        await core.recorder?.settled()
    }

    /// What `reset` drops.
    public enum Reset: Sendable, Hashable {
        /// Idle connections, and TLS sessions to resume; a running transfer's connection closes when it ends.
        case connections
    }

    /// Drops what the session keeps from transfer to transfer; the next one starts afresh.
    ///
    /// - Parameter what: What to drop.
    public func reset(_ what: Reset) {
        core.forgetLines()
        core.share.loop.transport?.resetConnections()
    }
}

extension Session: CustomStringConvertible, CustomReflectable {
    /// The description alone: what the loop owns is not for other threads to look into.
    public nonisolated var customMirror: Mirror { Mirror(self, children: ["description": description]) }

    /// The session's limits.
    public nonisolated var description: String {
        let limits = configuration.limits
        return "Session(\(limits.connectionsPerHost) connections a host, \(limits.transfersPerHost) transfers a host)"
    }
}
