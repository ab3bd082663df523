// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The events of one response that is a `text/event-stream`, as they arrive (HTML §9.2.6).
///
/// It ends with the response; ``APIClient/eventSource(_:query:fields:options:lastEventID:limit:reconnection:onChange:)``
/// reconnects. An event that the response breaks off in is none.
///
/// ```swift
/// for try await event in api.stream(.post, "chat", .json(prompt), using: .serverSentEvents) {
///     print(event.type, event.data)
/// }
/// ```
public struct ServerSentEvents: StreamSerializer {
    private let limit: ByteCount

    /// Reads events.
    ///
    /// - Parameter limit: How many bytes a line, and the data of an event, may have, 1 MiB unless given; more is
    ///   `.bodyTooLarge`.
    public init(limit: ByteCount = .mebibytes(1)) { self.limit = limit }

    /// `text/event-stream`.
    public var accepts: [MediaType] { [.eventStream] }

    /// What is kept between chunks: the start of an event.
    public struct State: Sendable {
        fileprivate var parser: EventStreamParser
    }

    /// Begins with a response.
    public func begin(_ head: ResponseHead) -> State { State(parser: EventStreamParser(limit: limit)) }

    /// The events that a chunk completes.
    ///
    /// - Throws: `NetworkError` of kind `bodyTooLarge`.
    public func decode(_ chunk: ByteChunk?, _ state: inout State) throws -> [ServerSentEvent] {
        try elements(of: chunk, &state)
    }

    /// Adds the events that a chunk completes.
    ///
    /// - Throws: `NetworkError` of kind `bodyTooLarge`.
    public func decode(_ chunk: ByteChunk?, _ state: inout State, into events: inout [ServerSentEvent]) throws {
        try chunk?.withSpan { try state.parser.parse($0, into: &events) }
    }
}

/// What the `data` of server-sent events holds, as they arrive: JSON of one type, whatever the events' types.
///
/// ```swift
/// for try await price in api.stream("prices", using: .serverSentEvents(of: Price.self)) { print(price) }
/// ```
public struct ServerSentValues<Value: Decodable & Sendable>: StreamSerializer {
    private let format: JSON
    private let events: ServerSentEvents
    private let last: String?

    /// What is kept between chunks: the start of an event, and whether the last one has come.
    public struct State: Sendable {
        fileprivate var events: ServerSentEvents.State
        fileprivate var isOver = false
    }

    /// Reads events and their data.
    ///
    /// - Parameters:
    ///   - type: What the data holds.
    ///   - format: How the JSON is read.
    ///   - last: Data that is no JSON and says that no more values come, such as "[DONE]"; nothing unless given.
    ///   - limit: How many bytes a line, and the data of an event, may have; more is `.bodyTooLarge`.
    public init(
        _ type: Value.Type = Value.self, _ format: JSON = JSON(), until last: String? = nil,
        limit: ByteCount = .mebibytes(1)
    ) {
        self.format = format
        self.last = last
        events = ServerSentEvents(limit: limit)
    }

    /// `text/event-stream`.
    public var accepts: [MediaType] { events.accepts }

    /// Begins with a response.
    public func begin(_ head: ResponseHead) -> State { State(events: events.begin(head)) }

    /// The values of the events that a chunk completes.
    ///
    /// - Throws: `NetworkError`: `.decodingFailed` or `.bodyTooLarge`.
    public func decode(_ chunk: ByteChunk?, _ state: inout State) throws -> [Value] {
        try elements(of: chunk, &state)
    }

    /// Adds the values of the events that a chunk completes.
    ///
    /// - Throws: `NetworkError`: `.decodingFailed` or `.bodyTooLarge`.
    public func decode(
        _ chunk: ByteChunk?, _ state: inout State, into values: inout [Value]
    ) throws {
        if isOver(state) { return }
        var complete: [ServerSentEvent] = []
        var failure: (any Error)?
        do { try events.decode(chunk, &state.events, into: &complete) } catch { failure = error }
        for event in complete {
            if let last, event.data == last {
                state.isOver = true
                return
            }
            values.append(try event.decode(by: format))
        }
        if let failure { throw failure }
    }

    /// Whether the mark has come.
    public func isOver(_ state: State) -> Bool { state.isOver }
}

extension MediaType {
    /// `text/event-stream` (HTML §9.2).
    public static let eventStream: MediaType = "text/event-stream"
}

extension StreamSerializer where Self == ServerSentEvents {
    /// Server-sent events: at most 1 MiB each.
    public static var serverSentEvents: ServerSentEvents { ServerSentEvents() }

    /// Server-sent events.
    ///
    /// - Parameter limit: How many bytes a line, and the data of an event, may have; more is `.bodyTooLarge`.
    public static func serverSentEvents(limit: ByteCount) -> ServerSentEvents { ServerSentEvents(limit: limit) }
}

extension StreamSerializer {
    /// What the data of server-sent events holds.
    ///
    /// - Parameters:
    ///   - type: What the data of every event holds.
    ///   - format: How the JSON is read.
    ///   - last: Data that is no JSON and says that no more values come, such as "[DONE]"; nothing unless given.
    ///   - limit: How many bytes a line, and the data of an event, may have; more is `.bodyTooLarge`.
    public static func serverSentEvents<Value: Decodable & Sendable>(
        of type: Value.Type, _ format: JSON = JSON(), until last: String? = nil, limit: ByteCount = .mebibytes(1)
    ) -> ServerSentValues<Value> where Self == ServerSentValues<Value> {
        ServerSentValues(type, format, until: last, limit: limit)
    }
}
