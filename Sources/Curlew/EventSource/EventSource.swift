// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// A sequence of server-sent events that reconnects (HTML §9.2), created by
/// ``APIClient/eventSource(_:query:fields:options:lastEventID:limit:reconnection:onChange:)``.
///
/// Each iterator has its own connection, which its first step opens. Leaving the loop closes the connection, even
/// during a wait. A cancelled task gets `NetworkError(kind: .cancelled)`, never a silent end.
///
/// - A stream that the server ends, or that breaks off, is requested again with `Last-Event-ID`. A request that failed
///   for a temporary reason is also retried: for any reason whose ``NetworkError/retriability-swift.property`` is not
///   `never`, such as network errors, timeouts, 408, 429, 500, 502, 503 and 504. The source retries even if the method
///   is not idempotent, because its caller expects reconnections. It ignores an `id` of more than 4 KiB.
/// - Any other failure ends the source with its error: another unacceptable status, a media type other than
///   `text/event-stream`, a trust failure, an event beyond the limit, or a body that cannot be sent again
///   (`.bodyNotReplayable`).
/// - 204 (and 205) ends the source without an error: the server has no more events.
///
/// The idle timeout of the options, 60 s by default, limits the time without any received bytes. Comments count as
/// bytes; servers send them to keep the connection alive. The default timeout of the response head and the minimum rate
/// do not apply.
public struct EventSource: AsyncSequence, Sendable {
    /// The element type.
    public typealias Element = ServerSentEvent
    /// The error type.
    public typealias Failure = NetworkError

    /// The state of an event source.
    public enum State: Sendable {
        /// The source sends a request: the first one, or one to reconnect.
        case connecting
        /// The server has accepted the request; events may arrive.
        case open(ResponseHead)
        /// The connection has ended, and the source reconnects after the duration.
        ///
        /// The error is nil if the server ended the stream.
        case waiting(Duration, after: NetworkError?)
        /// The source has ended; the error is nil after a 204 or 205 response.
        case closed(NetworkError?)
    }

    private let makeReader: @Sendable () -> EventSourceReader

    init(_ makeReader: @escaping @Sendable () -> EventSourceReader) { self.makeReader = makeReader }

    /// Creates an iterator with its own connection.
    public func makeAsyncIterator() -> Iterator { Iterator(makeReader()) }

    /// An iterator over the events; releasing it closes the connection.
    public struct Iterator: AsyncIteratorProtocol {
        private var reader: EventSourceReader

        fileprivate init(_ reader: EventSourceReader) { self.reader = reader }

        /// Returns the next event, or nil after the server has ended the source; after an error, throws the same error
        /// again.
        ///
        /// - Throws: The `NetworkError` that ends the source permanently.
        public mutating func next() async throws(NetworkError) -> ServerSentEvent? { try await reader.next() }

        /// Returns the next event in the caller's isolation, or nil at the end.
        ///
        /// - Throws: The same errors as `next()`.
        public mutating func next(
            isolation actor: isolated (any Actor)?
        ) async throws(NetworkError) -> ServerSentEvent? {
            try await reader.next()
        }
    }
}

extension APIClient {
    /// Returns the events of a GET request's `text/event-stream`; the source reconnects when the stream ends or breaks
    /// off.
    ///
    /// ```swift
    /// for try await event in api.eventSource("prices") {
    ///     let price = try event.decode(Price.self)
    ///     print(event.id, price)
    /// }
    /// ```
    ///
    /// Use `stream(…, using: .serverSentEvents)` for the events of a single response.
    /// - Parameters:
    ///   - path: The path below the base URL.
    ///   - query: Parameters to add to the client's query; they replace client parameters of the same name.
    ///   - fields: Changes to the client's fields; `Cache-Control: no-store` is sent unless they set or remove that
    ///     field.
    ///   - options: Options that override the client's options; timeouts apply to each connection.
    ///   - lastEventID: The ID after which to resume, such as the last event's `id` of an earlier run; empty for the
    ///     start.
    ///   - limit: The maximum size of a line, and of the data of an event; more is `.bodyTooLarge`.
    ///   - reconnection: When the source reconnects.
    ///   - onChange: A callback that receives each new state, in the task that iterates.
    public func eventSource(
        _ path: Path, query: Request.Query = [:], fields: HeaderChanges = [:], options: Request.Options = [],
        lastEventID: String = "", limit: ByteCount = .mebibytes(1),
        reconnection: EventSource.Reconnection = EventSource.Reconnection(),
        onChange: (@Sendable (EventSource.State) -> Void)? = nil
    ) -> EventSource {
        eventSource(
            Call(.get, path, query: query, fields: fields, options: options), lastEventID: lastEventID, limit: limit,
            reconnection: reconnection, onChange: onChange)
    }

    /// Returns the events of a request's `text/event-stream`; the source repeats the request when the stream ends or
    /// breaks off.
    ///
    /// ```swift
    /// for try await event in api.eventSource(.post, "search", .json(["words": "snow"])) { print(event.data) }
    /// ```
    ///
    /// A body that can be read only once makes a reconnection fail with `.bodyNotReplayable`. For a server that sends
    /// one finite response, such as a language model, use `stream(.post, …, using: .serverSentEvents)`.
    /// - Parameters:
    ///   - method: The method.
    ///   - path: The path below the base URL.
    ///   - body: The body to send with each request; no body by default.
    ///   - query: Parameters to add to the client's query; they replace client parameters of the same name.
    ///   - fields: Changes to the client's fields; `Cache-Control: no-store` is sent unless they set or remove that
    ///     field.
    ///   - options: Options that override the client's options; timeouts apply to each connection.
    ///   - lastEventID: The ID after which to resume, such as the last event's `id` of an earlier run; empty for the
    ///     start.
    ///   - limit: The maximum size of a line, and of the data of an event; more is `.bodyTooLarge`.
    ///   - reconnection: When the source reconnects.
    ///   - onChange: A callback that receives each new state, in the task that iterates.
    public func eventSource(
        _ method: Method, _ path: Path, _ body: Body? = nil, query: Request.Query = [:], fields: HeaderChanges = [:],
        options: Request.Options = [], lastEventID: String = "", limit: ByteCount = .mebibytes(1),
        reconnection: EventSource.Reconnection = EventSource.Reconnection(),
        onChange: (@Sendable (EventSource.State) -> Void)? = nil
    ) -> EventSource {
        eventSource(
            Call(method, path, body, query: query, fields: fields, options: options), lastEventID: lastEventID,
            limit: limit, reconnection: reconnection, onChange: onChange)
    }

    /// Returns the events of a call's `text/event-stream`; the source repeats the call when the stream ends or breaks
    /// off.
    ///
    /// - Parameters:
    ///   - call: The call to make.
    ///   - lastEventID: The ID after which to resume, such as the last event's `id` of an earlier run; empty for the
    ///     start.
    ///   - limit: The maximum size of a line, and of the data of an event; more is `.bodyTooLarge`.
    ///   - reconnection: When the source reconnects.
    ///   - onChange: A callback that receives each new state, in the task that iterates.
    public func eventSource(
        _ call: Call, lastEventID: String = "", limit: ByteCount = .mebibytes(1),
        reconnection: EventSource.Reconnection = EventSource.Reconnection(),
        onChange: (@Sendable (EventSource.State) -> Void)? = nil
    ) -> EventSource {
        EventSource {
            EventSourceReader(
                self, call, lastEventID: lastEventID, limit: limit, reconnection: reconnection, onChange: onChange)
        }
    }
}
