// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// Writes a line for what goes out and what comes in, without secrets.
///
/// Credentials in fields, user-info and values of queries are redacted; bodies are shown only when asked for, and then
/// as they are. It runs in the transfer's task, and so does its sink.
///
/// ```swift
/// let session = Session(interceptors: [LoggingInterceptor(.fields, showingQueryOf: ["page"])])
/// // #1 → GET https://example.com/list?page=2&token=<redacted> {Accept: application/json}
/// // #1 ← 200 OK GET https://example.com/list?page=2&token=<redacted> in 12 ms, 1.2 KiB {Content-Type: …}
/// ```
public struct LoggingInterceptor: Interceptor {
    /// How much is said.
    public enum Level: Sendable, Hashable {
        /// One line each way: method, URL, status, duration and sizes.
        case basic
        /// The fields in the same lines, too.
        case fields
        /// A line more each way with the start of the body, at most so many bytes: of requests whose bytes are at hand,
        /// and of responses, when they have been read.
        ///
        /// Responses stream through as before.
        case bodies(upTo: ByteCount)
    }

    /// Whether each transfer or each attempt is logged.
    public let scope: InterceptorScope
    private let level: Level
    private let secretFields: Set<HeaderName>
    private let shownNames: Set<String>
    private let sink: @Sendable (LogEntry) -> Void

    /// An interceptor that logs.
    ///
    /// - Parameters:
    ///   - level: How much is said; `.basic` unless given.
    ///   - scope: `.transfer`, the default, for what the caller sees; `.attempt` for what goes over the wire.
    ///   - fields: Names of fields whose values are redacted beside those that are sensitive anyway.
    ///   - names: Names in queries whose values may be shown, as they are written in URLs; none unless given.
    ///   - sink: Gets the entries, in the transfer's task; by default each is a line on standard error, in one write.
    public init(
        _ level: Level = .basic, scope: InterceptorScope = .transfer, redacting fields: [HeaderName] = [],
        showingQueryOf names: [String] = [],
        sink: @escaping @Sendable (LogEntry) -> Void = LoggingInterceptor.writeToStandardError
    ) {
        self.level = level
        self.scope = scope
        self.secretFields = Set(fields)
        self.shownNames = Set(names)
        self.sink = sink
    }

    /// Writes an entry as one line to standard error, in one write.
    @Sendable public static func writeToStandardError(_ entry: LogEntry) {
        let line = Array("\(entry)\n".utf8)
        // What cannot be written is lost: there is nobody else to tell.
        _ = Glibc.write(STDERR_FILENO, line, line.count)
    }

    /// Sends the request and tells of it.
    /// - Throws: What `next` throws.
    public func intercept(_ request: Request, context: InterceptorContext, next: Next) async throws -> IncomingResponse
    {
        let start = ContinuousClock.now
        tellRequest(request, context)
        do throws(NetworkError) {
            let response = try await next(request)
            var entry = entry(.response, of: response.request, context)
            entry.status = response.head.status
            entry.duration = ContinuousClock.now - start
            entry.bodyBytes = response.head.contentLength
            if level != .basic { entry.fields = shown(response.head.fields) }
            sink(entry)
            guard case .bodies(let limit) = level else { return response }
            return watched(response, BodySample(limit: limit), entry, start)
        } catch {
            var entry = entry(.failure, of: request, context)
            entry.duration = ContinuousClock.now - start
            entry.error = error
            sink(entry)
            throw error
        }
    }

    private func tellRequest(_ request: Request, _ context: InterceptorContext) {
        var entry = entry(.request, of: request, context)
        entry.bodyBytes = request.body.isNone ? nil : request.body.length
        if level != .basic { entry.fields = shown(request.fields) }
        sink(entry)
        guard case .bodies(let limit) = level, case .bytes(let bytes) = request.body.content else { return }
        var sample = BodySample(limit: limit)
        sample.take(bytes)
        sink(with(sample, self.entry(.requestBody, of: request, context)))
    }

    private func entry(_ event: LogEntry.Event, of request: Request, _ context: InterceptorContext) -> LogEntry {
        LogEntry(
            event: event, transfer: context.transfer, method: request.method,
            url: redactedURL(request.urlText, showingQueryOf: shownNames))
    }

    private func shown(_ fields: HeaderFields) -> HeaderFields {
        HeaderFields(
            fields.map { field in
                secretFields.contains(field.name)
                    ? HeaderFields.Field(name: field.name, value: redaction) : field.redacted
            })
    }

    private func with(_ sample: BodySample, _ entry: LogEntry) -> LogEntry {
        var entry = entry
        entry.body = sample.text
        entry.bodyBytes = sample.count
        return entry
    }

    /// The response with a body that tells of itself when it has been read.
    private func watched(
        _ response: IncomingResponse, _ sample: BodySample, _ head: LogEntry, _ start: ContinuousClock.Instant
    ) -> IncomingResponse {
        let sink = sink
        let blank = LogEntry(event: .responseBody, transfer: head.transfer, method: head.method, url: head.url)
        return response.tapped(sample, { $0.take($1) }) { sample, error in
            var entry = with(sample, blank)
            entry.status = head.status
            entry.duration = ContinuousClock.now - start
            entry.error = error
            sink(entry)
        }
    }
}
