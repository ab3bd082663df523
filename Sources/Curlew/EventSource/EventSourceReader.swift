// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewSupport

/// A reader of one event source: it opens connections one after another and waits between them.
struct EventSourceReader {
    private let client: any APIClient
    private let call: Call
    private let limit: ByteCount
    private let reconnection: EventSource.Reconnection
    private let onChange: (@Sendable (EventSource.State) -> Void)?
    private var connection: TransferSequence<EventConnection.Element>.Iterator?
    /// The last event ID string (HTML §9.2.2).
    private var lastEventID: String
    /// The reconnection time that the server set with `retry`.
    private var retry: Duration?
    /// Whether the connection has received a byte of a stream.
    private var hasReceivedBytes = false
    /// The consecutive attempts that received no byte of a stream.
    private var schedule: RetrySchedule
    private var end: Result<Void, NetworkError>?

    init(
        _ client: any APIClient, _ call: Call, lastEventID: String, limit: ByteCount,
        reconnection: EventSource.Reconnection,
        onChange: (@Sendable (EventSource.State) -> Void)?
    ) {
        self.client = client
        self.call = call
        self.lastEventID = lastEventID
        self.limit = limit
        self.reconnection = reconnection
        schedule = RetrySchedule(reconnection.policy)
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
                // Clearing the member makes the iterator uniquely referenced, so that `next` changes it without a copy.
                self.connection = nil
                let element = try await connection.next(isolation: #isolation)
                self.connection = connection
                switch element {
                case .event(let event): return event
                case .position(let id, let time):
                    (lastEventID, retry, hasReceivedBytes) = (id, time ?? retry, true)
                case .done: close(nil)
                case nil: await handleEnd(nil)
                }
            } catch {
                await handleEnd(error)
            }
        }
    }

    private mutating func connect() -> TransferSequence<EventConnection.Element>.Iterator {
        onChange?(.connecting)
        var call = call
        if call.fields[.cacheControl] == nil, !call.fields.removed.contains(.cacheControl) {
            call.fields[.cacheControl] = "no-store"
        }
        // The source reconnects by itself; retries of the session would multiply with its own.
        if call.options.retry == nil { call.options.retry = .never }
        if !lastEventID.isEmpty, HeaderFields.isValidValue(lastEventID) { call.fields[.lastEventID] = lastEventID }
        hasReceivedBytes = false
        let parser = EventStreamParser(limit: limit, lastEventID: lastEventID)
        return client.stream(call, using: EventConnection(parser: parser, onChange: onChange)).makeAsyncIterator()
    }

    /// Closes the source after a connection has ended, or waits before the next connection.
    ///
    /// - Parameter failure: The error of the connection; nil if the server ended the stream.
    private nonisolated(nonsending) mutating func handleEnd(_ failure: NetworkError?) async {
        connection = nil
        if hasReceivedBytes { schedule.recordProgress() }
        let mayRetry = hasReceivedBytes || schedule.recordFailure()
        if let failure, failure.retriability == .never { return close(failure) }
        if let body = call.body, !body.canResend { return close(.notReplayable(cause: failure)) }
        guard mayRetry else { return close(.exhausted(schedule.failures, failure)) }
        let wait = reconnection.wait(after: schedule.failures, retry: retry, retryAfter: failure?.retryAfter)
        onChange?(.waiting(wait, after: failure))
        do { try await reconnection.pause(for: wait) } catch {
            let isCancelled = error is CancellationError || Task.isCancelled
            close(
                isCancelled
                    ? NetworkError(.cancelled, phase: .preparing, "The task was cancelled while waiting to reconnect.")
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

/// A serializer for one connection: it yields its events and the source's position after each chunk.
struct EventConnection: StreamSerializer {
    enum Element: Sendable {
        case event(ServerSentEvent)
        /// Bytes have arrived; carries the last event ID string, and the last valid `retry`.
        case position(id: String, retry: Duration?)
        /// The server does not want another connection.
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
        if !head.endsEventSource { onChange?(.open(head)) }
        return State(head: head, parser: parser)
    }

    func decode(_ chunk: ByteChunk?, _ state: inout State) throws -> [Element] { try elements(of: chunk, &state) }

    func decode(_ chunk: ByteChunk?, _ state: inout State, into elements: inout [Element]) throws {
        guard let chunk else {
            if state.head.endsEventSource { return elements.append(.done) }
            return try checkEnd(state)
        }
        state.isEmpty = false
        var events: [ServerSentEvent] = []
        defer {
            elements += events.lazy.map { .event($0) }
            elements.append(.position(id: state.parser.lastEventID, retry: state.parser.reconnectionTime))
        }
        try chunk.withSpan { try state.parser.parse($0, into: &events) }
    }

    /// Throws an error at the end of an empty body whose type is not `text/event-stream`.
    ///
    /// The validator accepts an empty body of any type, but such a response can never become an event stream.
    private func checkEnd(_ state: State) throws(NetworkError) {
        guard state.isEmpty, state.head.mediaType?.matches(.eventStream) != true else { return }
        throw NetworkError(
            .unacceptableContentType, phase: .validating,
            "The response is empty and is not a text/event-stream.", hint: "A server without events should send 204.")
    }
}

extension ResponseHead {
    /// Whether the status ends the event source (HTML §9.2.1).
    fileprivate var endsEventSource: Bool { status == .noContent || status == .resetContent }
}

extension Body {
    /// Whether the next request can send the body too.
    fileprivate var canResend: Bool {
        guard case .raw(let body, _) = content else { return true }
        return body.canReplay || !body.isConsumed && !body.needsOwnDescriptor
    }
}

extension NetworkError {
    fileprivate static func notReplayable(cause: NetworkError?) -> NetworkError {
        NetworkError(
            .bodyNotReplayable, phase: .preparing,
            "The event source must repeat its request, but the request's body can be read only once.",
            hint: "Use a replayable body, or read a single response with `using: .serverSentEvents`.", cause: cause,
            request: cause?.request)
    }

    /// - Parameter failure: The error of the last attempt; nil if the server ended the stream.
    fileprivate static func exhausted(_ attempts: Int, _ failure: NetworkError?) -> NetworkError {
        failure?.with(attempts: attempts)
            ?? NetworkError(
                .connectionLost, phase: .receiving,
                "The server ended the event stream \(attempts) times without sending any bytes.",
                hint: "A server without events should send 204.", attempts: attempts)
    }
}
