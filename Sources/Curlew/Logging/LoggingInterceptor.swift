// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// Writes a line for each request and each response, without secrets.
///
/// Credentials in fields, user-info and values of queries are redacted; bodies are shown only at the level `.bodies`,
/// and then without redaction. The interceptor and its sink run in the transfer's task.
///
/// ```swift
/// let session = Session(interceptors: [LoggingInterceptor(.fields, showingQueryOf: ["page"])])
/// // #1 → GET https://example.com/list?page=2&token=<redacted> {Accept: application/json}
/// // #1 ← 200 OK GET https://example.com/list?page=2&token=<redacted> in 12 ms, 1.2 KiB {Content-Type: …}
/// ```
public struct LoggingInterceptor: Interceptor {
    /// The amount of detail in the log.
    public enum Level: Sendable, Hashable {
        /// One line for the request and one for the response: method, URL, status, duration and sizes.
        case basic
        /// The lines of `.basic`, with the fields.
        case fields
        /// Additional lines with the start of the bodies, up to a number of bytes: of requests whose body is bytes in
        /// memory, and of responses after they have been read.
        ///
        /// Responses are still streamed.
        case bodies(upTo: ByteCount)
    }

    /// Whether each transfer or each attempt is logged.
    public let scope: Interception.Scope
    private let level: Level
    private let secretFields: Set<HeaderName>
    private let shownNames: Set<String>
    private let sink: @Sendable (LoggingInterceptor.Entry) -> Void

    /// Creates an interceptor that logs.
    ///
    /// - Parameters:
    ///   - level: The amount of detail; `.basic` unless given.
    ///   - scope: `.transfer`, the default, logs the requests and responses of the caller; `.attempt` logs each request
    ///     that is sent.
    ///   - fields: Names of fields whose values are redacted, in addition to the sensitive fields.
    ///   - names: Names in queries whose values may be shown, as written in URLs; empty unless given.
    ///   - sink: Receives the entries, in the transfer's task; by default each is a line on standard error, in one
    ///     write.
    public init(
        _ level: Level = .basic, scope: Interception.Scope = .transfer, redacting fields: [HeaderName] = [],
        showingQueryOf names: [String] = [],
        sink: @escaping @Sendable (LoggingInterceptor.Entry) -> Void = LoggingInterceptor.writeToStandardError
    ) {
        self.level = level
        self.scope = scope
        self.secretFields = Set(fields)
        self.shownNames = Set(names)
        self.sink = sink
    }

    /// Writes an entry as one line to standard error, in one write.
    @Sendable public static func writeToStandardError(_ entry: LoggingInterceptor.Entry) {
        let line = Array("\(entry)\n".utf8)
        // A failed write is ignored, because no other place for the entry exists.
        _ = Glibc.write(STDERR_FILENO, line, line.count)
    }

    /// Sends the request and logs it with its response.
    /// - Throws: The errors of `next`.
    public func intercept(_ request: Request, context: Interception.Context, next: Interception.Next) async throws
        -> IncomingResponse
    {
        let start = ContinuousClock.now
        logRequest(request, context)
        do throws(NetworkError) {
            let response = try await next(request)
            var entry = entry(.response, of: response.request, context)
            entry.status = response.head.status
            entry.duration = ContinuousClock.now - start
            entry.bodyBytes = response.head.contentLength
            if level != .basic { entry.fields = shown(response.head.fields) }
            sink(entry)
            guard case .bodies(let limit) = level else { return response }
            return logged(response, BodySample(limit: limit), entry, start)
        } catch {
            var entry = entry(.failure, of: request, context)
            entry.duration = ContinuousClock.now - start
            entry.error = error
            sink(entry)
            throw error
        }
    }

    private func logRequest(_ request: Request, _ context: Interception.Context) {
        var entry = entry(.request, of: request, context)
        entry.bodyBytes = request.body.isNone ? nil : request.body.length
        if level != .basic { entry.fields = shown(request.fields) }
        sink(entry)
        guard case .bodies(let limit) = level, let bytes = request.body.bytes else { return }
        var sample = BodySample(limit: limit)
        sample.take(bytes)
        sink(with(sample, self.entry(.requestBody, of: request, context)))
    }

    private func entry(_ event: LoggingInterceptor.Entry.Event, of request: Request, _ context: Interception.Context)
        -> LoggingInterceptor.Entry
    {
        LoggingInterceptor.Entry(
            event: event, transfer: context.transfer, method: request.method,
            url: redactedURL(request.url, showingQueryOf: shownNames))
    }

    private func shown(_ fields: HeaderFields) -> HeaderFields {
        HeaderFields(
            fields.map { field in
                secretFields.contains(field.name)
                    ? HeaderFields.Field(name: field.name, value: redaction) : field.redacted
            })
    }

    private func with(_ sample: BodySample, _ entry: LoggingInterceptor.Entry) -> LoggingInterceptor.Entry {
        var entry = entry
        entry.body = sample.text
        entry.bodyBytes = sample.count
        return entry
    }

    /// Returns the response with a body that is logged after it was read.
    private func logged(
        _ response: IncomingResponse, _ sample: BodySample, _ head: LoggingInterceptor.Entry,
        _ start: ContinuousClock.Instant
    ) -> IncomingResponse {
        let sink = sink
        let blank = LoggingInterceptor.Entry(
            event: .responseBody, transfer: head.transfer, method: head.method, url: head.url)
        return response.tapped(sample, { $0.take($1) }) { sample, error in
            var entry = with(sample, blank)
            entry.status = head.status
            entry.duration = ContinuousClock.now - start
            entry.error = error
            sink(entry)
        }
    }
}
