// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewSupport

/// A type that wraps requests: it inspects, changes, retries or responds to them, and bodies stream through it.
///
/// An interceptor receives a request and may change it; it calls `next` for the response and may change that, too. It
/// may also create the response itself, or call `next` several times. Curlew's own redirects, retries, logging and
/// tracing are interceptors.
///
/// Interceptors are nested. A request passes the interceptors of the request itself (``Request/interceptors``) first,
/// then those of the session, each list from its first to its last; the response passes them in the opposite order:
///
/// ```text
/// request ─►  request.interceptors  ─►  session's  ─►  retries  ─►  redirects  ─►  those with scope .attempt  ─►  wire
/// response ◄───────────────────────────────────────────────────────────────────────────────────────────────────────┘
/// ```
///
/// Interceptors run in the task that awaits `session.data(for:)`, or in a separate task if `timeouts.total` is set.
/// Interceptors of a ``Transfer``, which many tasks may await, run in a separate task that has the priority and the
/// task-local values of the task that started the transfer. Interceptors run on the session's loop only in a task that
/// prefers `session.executor`. Cancelling the transfer cancels the task.
///
/// ```swift
/// struct Signature: Interceptor {
///     let key: String
///
///     func intercept(
///         _ request: Request, context: Interception.Context, next: Interception.Next
///     ) async throws -> IncomingResponse {
///         var request = request
///         request.fields["X-Signature"] = key
///         return try await next(request)
///     }
/// }
/// ```
public protocol Interceptor: Sendable {
    /// Whether the interceptor surrounds a transfer or each of its attempts; the transfer unless implemented otherwise.
    var scope: Interception.Scope { get }

    /// Returns the response to a request, usually by calling `next`.
    ///
    /// Called once for each request that reaches the interceptor, concurrently for many requests.
    /// - Parameters:
    ///   - request: The request, as changed by the interceptors before this one.
    ///   - context: Information about the transfer.
    ///   - next: The rest of the chain behind this interceptor, which ends with the network.
    /// - Returns: The response: that of `next`, a changed one, or a new one. An unread body passes through without
    ///   being read.
    /// - Throws: Any error. A `NetworkError` is passed on unchanged, a `CancellationError` becomes `.cancelled`, and
    ///   any other error becomes the cause of `.interceptorFailed`.
    func intercept(_ request: Request, context: Interception.Context, next: Interception.Next) async throws
        -> IncomingResponse
}

extension Interceptor {
    /// `.transfer`.
    public var scope: Interception.Scope { .transfer }
}

extension Interception {
    /// The scope of an interceptor.
    public enum Scope: String, Sendable, Hashable, CaseIterable {
        /// A whole transfer: the interceptor receives one request, and the response after all redirects.
        case transfer
        /// Each request that is sent: the interceptor receives every redirect and every retry.
        ///
        /// A redirect to another origin has removed the request's credentials: an interceptor that adds credentials in
        /// this scope must check the request's URL first.
        case attempt
    }
}

extension Interception {
    /// Information for an interceptor about the transfer, besides its request.
    ///
    /// ```swift
    /// guard context.attempts == 0 else { return try await next(request) }
    /// ```
    public struct Context: Sendable {
        let run: TransferRun
        /// The request's `timeouts.total`; nil when it is unset.
        let total: Duration?

        init(_ run: TransferRun, total: Duration?) {
            self.run = run
            self.total = total
        }

        /// The transfer's id, the same as ``Transfer/id``.
        public var transfer: UInt64 { run.id }

        /// The number of requests that the transfer has sent so far.
        public var attempts: Int { run.attempts }

        /// Waits until the body of a response is collected: a failure before its end is a failure of the attempt.
        ///
        /// The body of a stream is not collected, because its reader cannot give chunks back.
        func waitUntilCollected(_ response: IncomingResponse) async throws(NetworkError) -> IncomingResponse {
            try await run.waitUntilCollected(response)
        }

        /// Records what the interceptor does next, and notifies observers.
        func announce(_ step: Interception.Step) { run.announce(step) }

        /// Whether the first attempt was sent without the chain, and `next` returns its response.
        var isFirstAttemptSent: Bool { run.isFirstAttemptSent }

        /// Returns the certificate error of an earlier attempt of the transfer to the same host, after which no attempt
        /// to it is sent; nil without such an error.
        func certificateError(for request: Request) -> NetworkError? { run.certificateError(for: request) }

        /// Returns a request that omits the fields that redirects to other origins have removed.
        func withholding(_ request: Request) -> Request { run.withholding(request) }

        /// Keeps a certificate error that no later attempt of the transfer may override.
        func keepCertificateError(_ error: NetworkError, of host: String) { run.keepCertificateError(error, of: host) }

        /// The time since the transfer was started.
        public var elapsed: Duration { run.elapsed }

        /// Waits for a time; the wait ends early when the session closes.
        func pause(for wait: Duration, by clock: any Clock<Duration>) async throws {
            let closed = run.session.closed
            _ = try await self.wait(atMost: wait, by: clock) { _ = await closed.wait(after: 0) }
        }

        /// Waits for an event, at most for a time; the wait ends early when the session closes.
        ///
        /// - Parameters:
        ///   - limit: The longest wait, by the clock; nil for no limit.
        ///   - event: Returns when the event has happened, and soon when its task is cancelled.
        /// - Returns: False when the time passed first.
        /// - Throws: `CancellationError` when the task is cancelled, and the errors of the clock.
        func wait(
            atMost limit: Duration?, by clock: any Clock<Duration>, until event: @escaping @Sendable () async -> Void
        ) async throws -> Bool {
            let closed = run.session.closed
            let isInTime = try await withThrowingTaskGroup(of: Bool.self) { group in
                group.addTask {
                    await event()
                    return true
                }
                group.addTask {
                    _ = await closed.wait(after: 0)
                    return true
                }
                if let limit {
                    group.addTask {
                        try await clock.wait(for: limit)
                        return false
                    }
                }
                defer { group.cancelAll() }
                return try await group.next() ?? true
            }
            try Task.checkCancellation()
            return isInTime
        }

        /// Whether the transfer can use the collected body of another transfer.
        var canShare: Bool { !run.isStreamed && run.download == nil && !run.isFirstAttemptSent }

        /// Returns a new transfer of a request that has passed the interceptors of the transfer.
        func sharedRun(of request: Request) -> TransferRun {
            TransferRun(request, by: run.session.sharedChain(for: request), on: run.session)
        }

        /// Whether the session has closed and no transfer may continue.
        var isClosed: Bool { run.session.closed.count > 0 }

        /// The remaining part of the request's `timeouts.total`; nil without such a limit, zero when the time has
        /// passed.
        ///
        /// When the time has passed, requests in progress end and the task of the interceptors is cancelled; the
        /// transfer ends with `.timedOut` as soon as the interceptors have returned.
        public var remaining: Duration? { total.map { max($0 - run.elapsed, .zero) } }
    }
}

/// An interceptor that calls a closure.
///
/// ```swift
/// var request: Request = "https://example.com/"
/// request.interceptors = [
///     .intercept { request, context, next in
///         let response = try await next(request)
///         print(context.elapsed, response.head.status)
///         return response
///     }
/// ]
/// ```
public struct ClosureInterceptor: Interceptor {
    /// The scope of the interceptor.
    public let scope: Interception.Scope
    private let body: @Sendable (Request, Interception.Context, Interception.Next) async throws -> IncomingResponse

    /// Creates an interceptor from a closure with the semantics of ``Interceptor/intercept(_:context:next:)``.
    ///
    /// - Parameters:
    ///   - scope: The scope of the interceptor; the transfer unless given.
    ///   - body: Returns the response.
    public init(
        scope: Interception.Scope = .transfer,
        _ body: @escaping @Sendable (Request, Interception.Context, Interception.Next) async throws -> IncomingResponse
    ) {
        self.scope = scope
        self.body = body
    }

    /// Calls the closure.
    /// - Throws: The error of the closure.
    public func intercept(_ request: Request, context: Interception.Context, next: Interception.Next) async throws
        -> IncomingResponse
    {
        try await body(request, context, next)
    }
}

extension Interceptor where Self == ClosureInterceptor {
    /// An interceptor that calls a closure.
    ///
    /// - Parameters:
    ///   - scope: The scope of the interceptor; the transfer unless given.
    ///   - body: Returns the response, with the semantics of ``Interceptor/intercept(_:context:next:)``.
    public static func intercept(
        scope: Interception.Scope = .transfer,
        _ body: @escaping @Sendable (Request, Interception.Context, Interception.Next) async throws -> IncomingResponse
    ) -> ClosureInterceptor {
        ClosureInterceptor(scope: scope, body)
    }

    /// Creates an interceptor that changes requests and passes responses on unchanged.
    ///
    /// - Parameters:
    ///   - scope: Whether it changes the request of a transfer or of each attempt; the transfer's unless given.
    ///   - change: Changes the request; an error it throws ends the transfer.
    public static func adapt(
        scope: Interception.Scope = .transfer, _ change: @escaping @Sendable (inout Request) async throws -> Void
    ) -> ClosureInterceptor {
        ClosureInterceptor(scope: scope) { request, _, next in
            var request = request
            try await change(&request)
            return try await next(request)
        }
    }
}
