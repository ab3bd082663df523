// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting
import FoundationEssentials
import Testing

/// A clock that records its sleeps, each of which ends at once or never.
final class RecordingClock: Clock {
    struct Instant: InstantProtocol {
        var offset = Duration.zero
        func advanced(by duration: Duration) -> Instant { Instant(offset: offset + duration) }
        func duration(to other: Instant) -> Duration { other.offset - offset }
        static func < (lhs: Instant, rhs: Instant) -> Bool { lhs.offset < rhs.offset }
    }

    let notes = Notes<Duration>()
    private let isEndless: Bool

    /// - Parameter isEndless: Whether a sleep ends only when its task is cancelled.
    init(isEndless: Bool = false) { self.isEndless = isEndless }

    var now: Instant { Instant() }
    var minimumResolution: Duration { .nanoseconds(1) }

    func sleep(until deadline: Instant, tolerance: Duration?) async throws {
        notes.add(deadline.offset)
        try Task.checkCancellation()
        guard isEndless else { return }
        let (forever, end) = AsyncStream<Never>.makeStream()
        for await _ in forever {}
        end.finish()
        try Task.checkCancellation()
    }
}

/// A list of values that any thread can append to.
final class Notes<Value: Sendable>: Sendable {
    private let (stream, continuation) = AsyncStream<Value>.makeStream()

    func add(_ value: Value) { continuation.yield(value) }

    /// Ends the list and returns its values.
    func all() async -> [Value] {
        continuation.finish()
        return await stream.reduce(into: []) { $0.append($1) }
    }

    /// Waits for the next value.
    func next() async -> Value? { await stream.first { _ in true } }
}

/// A server with a fixed sequence of responses, and a client whose reconnections do not sleep.
struct EventSourceScene {
    let server: MockServer
    let api: JSONClient
    let clock: RecordingClock
    let states = Notes<String>()

    init(isEndless: Bool = false, _ answers: [MockResponse]) throws {
        server = try MockServer()
        server.on(nil, "/events", inOrder: answers)
        api = Client(try BaseURL(server.url("/")), session: Session())
        clock = RecordingClock(isEndless: isEndless)
    }

    func reconnection(delay: Duration = .seconds(3), attempts: Int? = nil) -> EventSource.Reconnection {
        EventSource.Reconnection(delay: delay, attempts: attempts, clock: clock, jitter: { 1 })
    }

    func source(
        _ method: Method = .get, _ body: Body? = nil, fields: HeaderChanges = [:], lastEventID: String = "",
        attempts: Int? = nil
    ) -> EventSource {
        api.eventSource(
            method, "events", body, fields: fields, lastEventID: lastEventID,
            reconnection: reconnection(attempts: attempts), onChange: { [states] in states.add(Self.text($0)) })
    }

    /// Returns the data of all events, and the error that ended the source.
    func read(_ source: EventSource) async -> ([String], NetworkError?) {
        var data: [String] = []
        do throws(NetworkError) {
            for try await event in source { data.append(event.data) }
        } catch {
            return (data, error)
        }
        return (data, nil)
    }

    /// The `Last-Event-ID` field of each request.
    var lastEventIDs: [String?] { server.requests.map { $0.field("Last-Event-ID") } }

    private static func text(_ state: EventSource.State) -> String {
        switch state {
        case .connecting: "connecting"
        case .open(let head): "open \(head.status.code)"
        case .waiting(let wait, let error): "waiting \(wait) after \(error.map { "\($0.kind)" } ?? "the end")"
        case .closed(let error): "closed by \(error.map { "\($0.kind)" } ?? "the server")"
        }
    }
}

extension MockResponse {
    /// A stream of events that ends.
    static func events(_ text: String) -> MockResponse {
        .status(200, [("Content-Type", "text/event-stream")], body: Array(text.utf8))
    }
}
