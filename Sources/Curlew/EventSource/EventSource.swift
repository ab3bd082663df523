// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The events of a server that go on when a connection does not (HTML §9.2): made by
/// ``APIClient/eventSource(_:query:fields:options:lastEventID:limit:reconnection:onChange:)``.
///
/// Each iterator has a connection of its own, which is made with its first step. Leaving the loop ends it, also in the
/// middle of a wait; a cancelled task gets `NetworkError(kind: .cancelled)`, never a silent end.
///
/// - A stream that the server ends, or that breaks off, is asked for again, with `Last-Event-ID`. So is one whose request
///   failed for a reason that may pass: whatever ``NetworkError/retriability-swift.property`` does not call `never`, such
///   as network errors, timeouts, 408, 429, 500, 502, 503 and 504. Whether the method is idempotent does not matter: who
///   asks for an event source wants it asked for again. An `id` of more than 4 KiB is ignored.
/// - Everything else ends it with its error: another status that is not acceptable, another media type than
///   `text/event-stream`, trust, an event beyond the limit, a body that cannot be sent again (`.bodyNotReplayable`).
/// - 204 (and 205) ends it without an error: the server's way to say that there will be no more.
///
/// The idle limit of the options, 60 s unless set, is how long a server may say nothing at all; comments count, which
/// servers send for that reason. Neither the default limit of the response's head nor a minimum rate holds.
public struct EventSource: AsyncSequence, Sendable {
    /// What it yields.
    public typealias Element = ServerSentEvent
    /// What it throws.
    public typealias Failure = NetworkError

    /// Where an event source stands.
    public enum State: Sendable {
        /// A request is made, the first or another one.
        case connecting
        /// The server has agreed; events may come.
        case open(ResponseHead)
        /// The connection is over, and another one is made after so long.
        ///
        /// Without an error the server has ended the stream.
        case waiting(Duration, after: NetworkError?)
        /// It is over: without an error by the server's 204.
        case closed(NetworkError?)
    }

    private let makeReader: @Sendable () -> EventSourceReader

    init(_ makeReader: @escaping @Sendable () -> EventSourceReader) { self.makeReader = makeReader }

    /// Makes an iterator with a connection of its own.
    public func makeAsyncIterator() -> Iterator { Iterator(makeReader()) }

    /// Reads the events; dropping it ends the connection.
    public struct Iterator: AsyncIteratorProtocol {
        private var reader: EventSourceReader

        fileprivate init(_ reader: EventSourceReader) { self.reader = reader }

        /// The next event, nil when the server wants no more connections; the same error again after an error.
        ///
        /// - Throws: `NetworkError`: whatever ends the source for good.
        public mutating func next() async throws(NetworkError) -> ServerSentEvent? { try await reader.next() }

        /// The next event, nil at the end, in the caller's isolation.
        ///
        /// - Throws: As `next()` does.
        public mutating func next(
            isolation actor: isolated (any Actor)?
        ) async throws(NetworkError) -> ServerSentEvent? {
            try await reader.next()
        }
    }
}

extension APIClient {
    /// The events of a GET request's `text/event-stream`, which is asked for again when it ends or breaks off.
    ///
    /// ```swift
    /// for try await event in api.eventSource("prices") {
    ///     let price = try event.decode(Price.self)
    ///     print(event.id, price)
    /// }
    /// ```
    ///
    /// For the events of one response alone there is `stream(…, using: .serverSentEvents)`.
    /// - Parameters:
    ///   - path: Where it goes, below the base URL.
    ///   - query: Joins the client's query.
    ///   - fields: What differs from the client's fields; `Cache-Control: no-store` is sent unless they say otherwise.
    ///   - options: What differs from the client's options; timeouts are those of each connection.
    ///   - lastEventID: Where to go on, such as the last event's `id` of an earlier run; empty for the start.
    ///   - limit: How many bytes a line, and the data of an event, may have; more is `.bodyTooLarge`.
    ///   - reconnection: When it connects again.
    ///   - onChange: Told where it stands, in the task that iterates.
    public func eventSource(
        _ path: Path, query: Query = [:], fields: HeaderChanges = [:], options: Request.Options = [],
        lastEventID: String = "", limit: ByteCount = .mebibytes(1), reconnection: Reconnection = Reconnection(),
        onChange: (@Sendable (EventSource.State) -> Void)? = nil
    ) -> EventSource {
        eventSource(
            Call(.get, path, query: query, fields: fields, options: options), lastEventID: lastEventID, limit: limit,
            reconnection: reconnection, onChange: onChange)
    }

    /// The events of a request's `text/event-stream`, which is made again when it ends or breaks off.
    ///
    /// ```swift
    /// for try await event in api.eventSource(.post, "search", .json(["words": "snow"])) { print(event.data) }
    /// ```
    ///
    /// A body that can be read only once makes the reconnection `.bodyNotReplayable`. What answers once and is done, as
    /// language models do, is better read by `stream(.post, …, using: .serverSentEvents)`.
    /// - Parameters:
    ///   - method: The method.
    ///   - path: Where it goes, below the base URL.
    ///   - body: What is sent each time; nothing unless given.
    ///   - query: Joins the client's query.
    ///   - fields: What differs from the client's fields; `Cache-Control: no-store` is sent unless they say otherwise.
    ///   - options: What differs from the client's options; timeouts are those of each connection.
    ///   - lastEventID: Where to go on, such as the last event's `id` of an earlier run; empty for the start.
    ///   - limit: How many bytes a line, and the data of an event, may have; more is `.bodyTooLarge`.
    ///   - reconnection: When it connects again.
    ///   - onChange: Told where it stands, in the task that iterates.
    public func eventSource(
        _ method: Method, _ path: Path, _ body: Body? = nil, query: Query = [:], fields: HeaderChanges = [:],
        options: Request.Options = [], lastEventID: String = "", limit: ByteCount = .mebibytes(1),
        reconnection: Reconnection = Reconnection(), onChange: (@Sendable (EventSource.State) -> Void)? = nil
    ) -> EventSource {
        eventSource(
            Call(method, path, body, query: query, fields: fields, options: options), lastEventID: lastEventID,
            limit: limit, reconnection: reconnection, onChange: onChange)
    }

    /// The events of a call's `text/event-stream`, which is made again when it ends or breaks off.
    ///
    /// - Parameters:
    ///   - call: What is asked for.
    ///   - lastEventID: Where to go on, such as the last event's `id` of an earlier run; empty for the start.
    ///   - limit: How many bytes a line, and the data of an event, may have; more is `.bodyTooLarge`.
    ///   - reconnection: When it connects again.
    ///   - onChange: Told where it stands, in the task that iterates.
    public func eventSource(
        _ call: Call, lastEventID: String = "", limit: ByteCount = .mebibytes(1),
        reconnection: Reconnection = Reconnection(), onChange: (@Sendable (EventSource.State) -> Void)? = nil
    ) -> EventSource {
        EventSource {
            EventSourceReader(
                self, call, lastEventID: lastEventID, limit: limit, reconnection: reconnection, onChange: onChange)
        }
    }
}
