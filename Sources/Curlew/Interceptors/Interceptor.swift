// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Wraps requests: sees, changes, answers or repeats them, with bodies that stream through it.
///
/// An interceptor gets a request, may change it, asks `next` for the response and may change that, too. It may also
/// answer by itself, and call `next` several times. Everything Curlew does above the wire (redirects, logging, tracing)
/// is done by interceptors.
///
/// Interceptors surround each other like the layers of an onion. A request passes those of the request itself
/// (``Request/interceptors``) first, then the session's, each list from its first to its last; the response passes them
/// in the opposite order:
///
/// ```text
/// request ─►  request.interceptors  ─►  session's  ─►  retries  ─►  redirects  ─►  those with scope .attempt  ─►  wire
/// response ◄───────────────────────────────────────────────────────────────────────────────────────────────────────┘
/// ```
///
/// They run in the task that awaits `session.data(for:)`; those of a ``Transfer``, which many tasks may await, run in a
/// task of its own that has the priority and the task-local values of whoever started it. Never on the session's loop.
/// When the transfer is cancelled, that task is.
///
/// ```swift
/// struct Signature: Interceptor {
///     let key: String
///
///     func intercept(
///         _ request: Request, context: InterceptorContext, next: Next
///     ) async throws -> IncomingResponse {
///         var request = request
///         request.fields["X-Signature"] = key
///         return try await next(request)
///     }
/// }
/// ```
public protocol Interceptor: Sendable {
    /// Whether it surrounds a transfer or each of its attempts; the transfer unless said otherwise.
    var scope: InterceptorScope { get }

    /// Gives the response to a request, mostly by asking `next` for it.
    ///
    /// Called once for each request that reaches it, for many requests at once.
    /// - Parameters:
    ///   - request: The request, as the interceptors before this one left it.
    ///   - context: What is known about the transfer.
    ///   - next: Everything behind this interceptor, the network in the end.
    /// - Returns: The response: `next`'s, a changed one, or one made by hand. A body that nobody has read passes through
    ///   unread.
    /// - Throws: Any error. A `NetworkError` passes as it is, a `CancellationError` becomes `.cancelled`, any other
    ///   becomes the cause of `.interceptorFailed`.
    func intercept(_ request: Request, context: InterceptorContext, next: Next) async throws -> IncomingResponse
}

extension Interceptor {
    /// `.transfer`.
    public var scope: InterceptorScope { .transfer }
}

/// What an interceptor surrounds.
public enum InterceptorScope: String, Sendable, Hashable, CaseIterable {
    /// A transfer as a whole: it sees one request, and the response after all redirects.
    case transfer
    /// Each request that goes out on the wire: it sees every redirect and every repetition.
    ///
    /// A redirect may lead to another origin, and left credentials behind for that: one that adds them here has to look
    /// at the request's URL first.
    case attempt
}

/// What an interceptor knows about the transfer beside its request.
///
/// ```swift
/// guard context.attempts == 0 else { return try await next(request) }
/// ```
public struct InterceptorContext: Sendable {
    let run: TransferRun
    /// The request's `timeouts.total`; nil when it has none.
    let total: Duration?

    init(_ run: TransferRun, total: Duration?) {
        self.run = run
        self.total = total
    }

    /// The transfer's id, the same as ``Transfer/id``.
    public var transfer: UInt64 { run.id }

    /// How many requests of the transfer were put on the wire so far.
    public var attempts: Int { run.attempts }

    /// Whether somebody reads the body step by step, so that what was read cannot be taken back.
    var isStreamed: Bool { run.isStreamed }

    /// The time since the transfer was started.
    public var elapsed: Duration { run.elapsed }

    /// Waits, but no longer than the session lets transfers go on.
    func pause(for wait: Duration, by clock: any Clock<Duration>) async throws {
        try await run.pause(for: wait, by: clock)
    }

    /// Waits until something has happened, at most so long, and no longer than the session lets transfers go on.
    ///
    /// - Parameters:
    ///   - limit: How long at most, by the clock; nil for as long as it takes.
    ///   - event: Returns when it has happened, and soon when its task is cancelled.
    /// - Returns: False when the time was over first.
    /// - Throws: `CancellationError` when the task is cancelled, and what the clock throws.
    func wait(
        atMost limit: Duration?, by clock: any Clock<Duration>, until event: @escaping @Sendable () async -> Void
    ) async throws -> Bool {
        let closing = run.host.closing
        let isInTime = try await withThrowingTaskGroup(of: Bool.self) { group in
            group.addTask {
                await event()
                return true
            }
            group.addTask {
                _ = await closing.wait(after: 0)
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

    /// Whether the session has closed and lets nothing go on.
    var isClosed: Bool { run.host.closing.rings > 0 }

    /// What is left of the request's `timeouts.total`; nil when it has none, zero when it is over.
    ///
    /// When it is over, requests on the wire end and the task in which interceptors run is cancelled; the transfer ends with
    /// `.timedOut` as soon as they have returned.
    public var remaining: Duration? { total.map { max($0 - run.elapsed, .zero) } }
}

/// An interceptor made of a closure.
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
    /// What the closure surrounds.
    public let scope: InterceptorScope
    private let body: @Sendable (Request, InterceptorContext, Next) async throws -> IncomingResponse

    /// Takes a closure with the meaning of ``Interceptor/intercept(_:context:next:)``.
    ///
    /// - Parameters:
    ///   - scope: What it surrounds; the transfer unless given.
    ///   - body: Gives the response.
    public init(
        scope: InterceptorScope = .transfer,
        _ body: @escaping @Sendable (Request, InterceptorContext, Next) async throws -> IncomingResponse
    ) {
        self.scope = scope
        self.body = body
    }

    /// Calls the closure.
    /// - Throws: What the closure throws.
    public func intercept(_ request: Request, context: InterceptorContext, next: Next) async throws -> IncomingResponse
    {
        try await body(request, context, next)
    }
}

extension Interceptor where Self == ClosureInterceptor {
    /// An interceptor made of a closure.
    ///
    /// - Parameters:
    ///   - scope: What it surrounds; the transfer unless given.
    ///   - body: Gives the response, with the meaning of ``Interceptor/intercept(_:context:next:)``.
    public static func intercept(
        scope: InterceptorScope = .transfer,
        _ body: @escaping @Sendable (Request, InterceptorContext, Next) async throws -> IncomingResponse
    ) -> ClosureInterceptor {
        ClosureInterceptor(scope: scope, body)
    }

    /// An interceptor that changes requests and leaves responses alone.
    ///
    /// - Parameters:
    ///   - scope: Whether it changes the request of a transfer or of each attempt; the transfer's unless given.
    ///   - change: Changes the request; an error it throws ends the transfer.
    public static func adapt(
        scope: InterceptorScope = .transfer, _ change: @escaping @Sendable (inout Request) async throws -> Void
    ) -> ClosureInterceptor {
        ClosureInterceptor(scope: scope) { request, _, next in
            var request = request
            try await change(&request)
            return try await next(request)
        }
    }
}
