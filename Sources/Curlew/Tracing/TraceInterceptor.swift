// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials

/// Continues a distributed trace: each attempt is a span of its own, which the server receives as its parent.
///
/// The interceptor sets `traceparent` and `tracestate` (W3C Trace Context) to a child of the context in which the
/// transfer was started, and reports each span. It does not change a request that has a `traceparent`.
///
/// ```swift
/// let session = Session(interceptors: [TraceInterceptor { span in print(span) }])
/// ```
public struct TraceInterceptor: Interceptor {
    private let startsTraces: Bool
    private let context: @Sendable (Request) -> TraceContext?
    private let sink: @Sendable (TraceInterceptor.Span) -> Void

    /// `.attempt`: redirects and retries are spans of their own.
    public var scope: Interception.Scope { .attempt }

    /// Creates an interceptor that continues the trace of the running code.
    ///
    /// - Parameters:
    ///   - startsTraces: Whether a request without a context begins a new trace, sampled; by default it is sent without
    ///     one.
    ///   - sink: Receives each span, in the transfer's task, when its response's head has arrived or it has failed;
    ///     ignores spans by default.
    ///   - context: Returns the parent of a request's spans; `TraceContext.current` by default.
    public init(
        startsTraces: Bool = false, sink: @escaping @Sendable (TraceInterceptor.Span) -> Void = { _ in },
        context: @escaping @Sendable (Request) -> TraceContext? = { _ in .current }
    ) {
        self.startsTraces = startsTraces
        self.context = context
        self.sink = sink
    }

    /// Sends the request as a span.
    /// - Throws: The errors of `next`.
    public func intercept(
        _ request: Request, context transfer: Interception.Context, next: Interception.Next
    ) async throws -> IncomingResponse {
        let parent = context(request)
        guard !request.fields.contains("traceparent"), let own = parent?.child() ?? (startsTraces ? .random() : nil)
        else { return try await next(request) }
        var request = request
        request.fields["traceparent"] = own.traceparent
        if let state = own.tracestate, !request.fields.contains("tracestate") { request.fields["tracestate"] = state }

        let (date, start) = (Date(), ContinuousClock.now)
        func report(_ result: Result<Status, NetworkError>) {
            sink(
                TraceInterceptor.Span(
                    context: own, parent: parent?.spanID, transfer: transfer.transfer, method: request.method,
                    url: redactedURL(request.url), start: date, duration: ContinuousClock.now - start,
                    result: result))
        }
        do throws(NetworkError) {
            let response = try await next(request)
            report(.success(response.head.status))
            return response
        } catch {
            report(.failure(error))
            throw error
        }
    }
}

extension TraceInterceptor {
    /// One attempt of a transfer, as a span of a distributed trace.
    public struct Span: Sendable {
        /// The trace and the span itself, as sent to the server.
        public let context: TraceContext
        /// The parent span; nil when this span began the trace.
        public let parent: TraceContext.SpanID?
        /// The transfer of the attempt, as in ``Transfer/id``.
        public let transfer: UInt64
        /// The request's method.
        public let method: Method
        /// The request's URL, without user-info and values of the query.
        public let url: String
        /// The time when the request was passed to the network.
        public let start: Date
        /// The time until the response's head arrived, or the attempt failed.
        public let duration: Duration
        /// The response's status, or the reason for a missing response.
        public let result: Result<Status, NetworkError>
    }
}

extension TraceInterceptor.Span: CustomStringConvertible {
    /// One line: "00-4bf9…-00f0…-01 GET https://example.com/ 200 OK in 12 ms".
    public var description: String {
        let end =
            switch result {
            case .success(let status): "\(status)"
            case .failure(let error): "\(error.kind)"
            }
        return "\(context.traceparent) \(method) \(url) \(end) in \(duration.brief)".escapingControls
    }
}
