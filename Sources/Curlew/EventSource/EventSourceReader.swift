// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Reads one event source: connection after connection, and the waits between.
struct EventSourceReader {
    private let client: any APIClient
    private let call: Call
    private let limit: ByteCount
    private let reconnection: Reconnection
    private let onChange: (@Sendable (EventSource.State) -> Void)?
    private var connection: TransferSequence<EventConnection.Element>.Iterator?
    /// The last event ID string (HTML §9.2.2).
    private var lastEventID: String
    /// The reconnection time that the server asked for.
    private var retry: Duration?
    /// Whether the connection has brought a byte of a stream.
    private var isLive = false
    /// How many attempts in a row have brought nothing.
    private var failures = 0
    private var end: Result<Void, NetworkError>?

    init(
        _ client: any APIClient, _ call: Call, lastEventID: String, limit: ByteCount, reconnection: Reconnection,
        onChange: (@Sendable (EventSource.State) -> Void)?
    ) {
        self.client = client
        self.call = call
        self.lastEventID = lastEventID
        self.limit = limit
        self.reconnection = reconnection
        self.onChange = onChange
    }

    nonisolated(nonsending) mutating func next() async throws(NetworkError) -> ServerSentEvent? {
        while true {
            if let end {
                try end.get()
                return nil
            }
            do throws(NetworkError) {
                var connection = self.connection ?? connect()
                // Held once, since what is shared is copied when it changes.
                self.connection = nil
                let element = try await connection.next(isolation: #isolation)
                self.connection = connection
                switch element {
                case .event(let event): return event
                case .moved(let id, let time):
                    (lastEventID, retry, isLive) = (id, time ?? retry, true)
                case .done: close(nil)
                case nil: await settle(nil)
                }
            } catch {
                await settle(error)
            }
        }
    }

    private mutating func connect() -> TransferSequence<EventConnection.Element>.Iterator {
        onChange?(.connecting)
        var call = call
        if call.fields[.cacheControl] == nil, !call.fields.removed.contains(.cacheControl) {
            call.fields[.cacheControl] = "no-store"
        }
        if !lastEventID.isEmpty, HeaderFields.isValidValue(lastEventID) { call.fields[.lastEventID] = lastEventID }
        isLive = false
        let parser = EventStreamParser(limit: limit, lastEventID: lastEventID)
        return client.stream(call, using: EventConnection(parser: parser, onChange: onChange)).makeAsyncIterator()
    }

    /// Decides what follows a connection, and waits if that is another one.
    ///
    /// - Parameter failure: Nil when the server has ended the stream.
    private nonisolated(nonsending) mutating func settle(_ failure: NetworkError?) async {
        connection = nil
        failures = isLive ? 0 : failures + 1
        if let failure, failure.retriability == .never { return close(failure) }
        if let body = call.body, !body.canBeSentAgain { return close(.unrepeatable(cause: failure)) }
        if let most = reconnection.attempts, failures >= max(most, 1) { return close(.exhausted(failures, failure)) }
        let wait = reconnection.wait(after: failures, retry: retry, retryAfter: failure?.retryAfter)
        onChange?(.waiting(wait, after: failure))
        do { try await reconnection.pause(for: wait) } catch {
            let isCancelled = error is CancellationError || Task.isCancelled
            close(
                isCancelled
                    ? NetworkError(.cancelled, phase: .preparing, "The task was cancelled between two connections.")
                    : NetworkError(
                        .internal, phase: .preparing, "The clock of the event source failed: \(type(of: error)).",
                        cause: error))
        }
    }

    private mutating func close(_ error: NetworkError?) {
        connection = nil
        end = error.map { .failure($0) } ?? .success(())
        onChange?(.closed(error))
    }
}

/// Reads one connection: its events, and how far the source has come with them.
struct EventConnection: StreamSerializer {
    enum Element: Sendable {
        case event(ServerSentEvent)
        /// Bytes have come; the last event ID string, and the last `retry` there was.
        case moved(to: String, retry: Duration?)
        /// The server wants no more connections.
        case done
    }

    struct State: Sendable {
        let head: ResponseHead
        var parser: EventStreamParser
        var isEmpty = true
    }

    let parser: EventStreamParser
    let onChange: (@Sendable (EventSource.State) -> Void)?

    var accepts: [MediaType] { [.eventStream] }

    func begin(_ head: ResponseHead) -> State {
        if !head.wantsNoMore { onChange?(.open(head)) }
        return State(head: head, parser: parser)
    }

    func decode(_ chunk: ByteChunk?, _ state: inout State) throws -> [Element] { try elements(of: chunk, &state) }

    func decode(_ chunk: ByteChunk?, _ state: inout State, into elements: inout [Element]) throws {
        guard let chunk else {
            if state.head.wantsNoMore { return elements.append(.done) }
            return try checkEnd(state)
        }
        state.isEmpty = false
        var events: [ServerSentEvent] = []
        defer {
            elements += events.lazy.map { .event($0) }
            elements.append(.moved(to: state.parser.lastEventID, retry: state.parser.reconnectionTime))
        }
        try chunk.withSpan { try state.parser.parse($0, into: &events) }
    }

    /// An empty body is acceptable whatever its type, but one that is no stream of events will never be one.
    private func checkEnd(_ state: State) throws(NetworkError) {
        guard state.isEmpty, state.head.mediaType?.matches(.eventStream) != true else { return }
        throw NetworkError(
            .unacceptableContentType, phase: .validating,
            "The response is empty and no text/event-stream.", hint: "A server that has no events to send says 204.")
    }
}

extension ResponseHead {
    /// Whether an event source that gets it is over (HTML §9.2.1).
    fileprivate var wantsNoMore: Bool { status == .noContent || status == .resetContent }
}

extension Body {
    /// Whether the next request can send it, too.
    fileprivate var canBeSentAgain: Bool {
        guard case .made(let body, _) = content else { return true }
        return body.canReplay || !body.isSpent && !body.mustBeKept
    }
}

extension NetworkError {
    fileprivate static func unrepeatable(cause: NetworkError?) -> NetworkError {
        NetworkError(
            .bodyNotReplayable, phase: .preparing,
            "The event stream has to be asked for again, and the request's body can be read only once.",
            hint: "Give a body that can be replayed, or read one response by `using: .serverSentEvents`.", cause: cause,
            request: cause?.request)
    }

    /// - Parameter failure: The last attempt's; nil when the server has ended it.
    fileprivate static func exhausted(_ attempts: Int, _ failure: NetworkError?) -> NetworkError {
        failure?.with(attempts: attempts)
            ?? NetworkError(
                .connectionLost, phase: .receiving,
                "The server has ended the event stream \(attempts) times without sending anything.",
                hint: "A server that has no events to send says 204.", attempts: attempts)
    }
}
