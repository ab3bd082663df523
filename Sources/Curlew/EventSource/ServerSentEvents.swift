// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension Streams {
    /// A serializer that reads the events of one `text/event-stream` response as they arrive (HTML §9.2.6).
    ///
    /// The stream ends with the response; use
    /// ``APIClient/eventSource(_:query:fields:options:lastEventID:limit:reconnection:onChange:)`` to reconnect. An
    /// event that is incomplete at the end of the response is discarded.
    ///
    /// ```swift
    /// for try await event in api.stream(.post, "chat", .json(prompt), using: .serverSentEvents) {
    ///     print(event.type, event.data)
    /// }
    /// ```
    public struct ServerSentEvents: StreamSerializer {
        private let limit: ByteCount

        /// Creates a serializer of events.
        ///
        /// - Parameter limit: The maximum size of a line, and of the data of an event, 1 MiB by default; more is
        ///   `.bodyTooLarge`.
        public init(limit: ByteCount = .mebibytes(1)) { self.limit = limit }

        /// `text/event-stream`.
        public var accepts: [MediaType] { [.eventStream] }

        /// The state between chunks: the start of an event.
        public struct State: Sendable {
            fileprivate var parser: EventStreamParser
        }

        /// Creates the state for a response.
        public func begin(_ head: ResponseHead) -> State { State(parser: EventStreamParser(limit: limit)) }

        /// Returns the events that a chunk completes.
        ///
        /// - Throws: `NetworkError` of kind `bodyTooLarge`.
        public func decode(_ chunk: ByteChunk?, _ state: inout State) throws -> [ServerSentEvent] {
            try elements(of: chunk, &state)
        }

        /// Appends the events that a chunk completes.
        ///
        /// - Throws: `NetworkError` of kind `bodyTooLarge`.
        public func decode(_ chunk: ByteChunk?, _ state: inout State, into events: inout [ServerSentEvent]) throws {
            try chunk?.withSpan { try state.parser.parse($0, into: &events) }
        }
    }
}

extension Streams {
    /// A serializer that decodes the `data` of server-sent events as they arrive: JSON of one type, for all event
    /// types.
    ///
    /// ```swift
    /// for try await price in api.stream("prices", using: .serverSentEvents(of: Price.self)) { print(price) }
    /// ```
    public struct ServerSentValues<Value: Decodable & Sendable>: StreamSerializer {
        private let format: JSON
        private let events: Streams.ServerSentEvents
        private let last: String?

        /// The state between chunks: the start of an event, and whether the end mark has arrived.
        public struct State: Sendable {
            fileprivate var events: Streams.ServerSentEvents.State
            fileprivate var isOver = false
        }

        /// Creates a serializer of the events' data.
        ///
        /// - Parameters:
        ///   - type: The type of the data.
        ///   - format: The JSON decoder.
        ///   - last: Data that marks the end of the values and is not JSON, such as "[DONE]"; no mark by default.
        ///   - limit: The maximum size of a line, and of the data of an event; more is `.bodyTooLarge`.
        public init(
            _ type: Value.Type = Value.self, _ format: JSON = JSON(), until last: String? = nil,
            limit: ByteCount = .mebibytes(1)
        ) {
            self.format = format
            self.last = last
            events = Streams.ServerSentEvents(limit: limit)
        }

        /// `text/event-stream`.
        public var accepts: [MediaType] { events.accepts }

        /// Creates the state for a response.
        public func begin(_ head: ResponseHead) -> State { State(events: events.begin(head)) }

        /// Returns the values of the events that a chunk completes.
        ///
        /// - Throws: `NetworkError`: `.decodingFailed` or `.bodyTooLarge`.
        public func decode(_ chunk: ByteChunk?, _ state: inout State) throws -> [Value] {
            try elements(of: chunk, &state)
        }

        /// Appends the values of the events that a chunk completes.
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

        /// Whether the end mark has arrived.
        public func isOver(_ state: State) -> Bool { state.isOver }
    }
}

extension MediaType {
    /// `text/event-stream` (HTML §9.2).
    public static let eventStream: MediaType = "text/event-stream"
}

extension StreamSerializer where Self == Streams.ServerSentEvents {
    /// Server-sent events: at most 1 MiB each.
    public static var serverSentEvents: Streams.ServerSentEvents { Streams.ServerSentEvents() }

    /// Server-sent events with a size limit.
    ///
    /// - Parameter limit: The maximum size of a line, and of the data of an event; more is `.bodyTooLarge`.
    public static func serverSentEvents(limit: ByteCount) -> Streams.ServerSentEvents {
        Streams.ServerSentEvents(limit: limit)
    }
}

extension StreamSerializer {
    /// Server-sent events whose data is decoded as JSON.
    ///
    /// - Parameters:
    ///   - type: The type of every event's data.
    ///   - format: The JSON decoder.
    ///   - last: Data that marks the end of the values and is not JSON, such as "[DONE]"; no mark by default.
    ///   - limit: The maximum size of a line, and of the data of an event; more is `.bodyTooLarge`.
    public static func serverSentEvents<Value: Decodable & Sendable>(
        of type: Value.Type, _ format: JSON = JSON(), until last: String? = nil, limit: ByteCount = .mebibytes(1)
    ) -> Streams.ServerSentValues<Value> where Self == Streams.ServerSentValues<Value> {
        Streams.ServerSentValues(type, format, until: last, limit: limit)
    }
}
