// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import Curlew
import CurlewEngine
import CurlewTesting
import FoundationEssentials
import Testing

extension TransferEvent {
    /// A short name of the event, with its status or kind of error.
    var word: String {
        switch kind {
        case .state(let state): "is \(state.rawValue)"
        case .routed(let choice): "routed \(choice)"
        case .queued: "queued"
        case .resolved: "resolved"
        case .connected(_, let isReused): isReused ? "reused" : "connected"
        case .secured: "secured"
        case .sent: "sent"
        case .informational(let head): "informational \(head.status.code)"
        case .head(let head): "head \(head.status.code)"
        case .received: "received"
        case .paused: "paused"
        case .resumed: "resumed"
        case .restarted: "restarted"
        case .redirected(let status, _): "redirected \(status.code)"
        case .waiting: "waiting"
        case .cached: "cached"
        case .retried: "retried"
        case .fileReady(let path): "file \(path)"
        case .metrics: "metrics"
        case .finished(nil): "finished"
        case .finished(let error?): "finished: \(error.kind.rawValue)"
        case .dropped(let count): "dropped \(count)"
        }
    }
}

/// A session observer that records events and lets tests wait for some of them.
final class SessionEventRecorder: Session.Observer {
    private struct State {
        var events: [Session.Event] = []
        var waiters: [(isThere: @Sendable ([Session.Event]) -> Bool, continuation: CheckedContinuation<Void, Never>)] =
            []
    }

    private let state = Lock(State())

    func observe(_ event: Session.Event) async {
        let ready = state.withLock { state in
            state.events.append(event)
            let events = state.events
            let ready = state.waiters.filter { $0.isThere(events) }
            state.waiters.removeAll { $0.isThere(events) }
            return ready
        }
        for waiter in ready { waiter.continuation.resume() }
    }

    var events: [Session.Event] { state.withLock { $0.events } }

    /// The events of transfers.
    var transferEvents: [TransferEvent] {
        events.compactMap { if case .transfer(let event) = $0 { event } else { nil } }
    }

    /// The words of each transfer's events, ordered by the transfer's ID.
    var words: [[String]] {
        Dictionary(grouping: transferEvents, by: \.transfer).sorted { $0.key < $1.key }.map { $0.value.map(\.word) }
    }

    var isClosed: Bool { if case .closed = events.last { true } else { false } }

    /// Waits until the recorded events satisfy a condition.
    func wait(until isThere: @escaping @Sendable ([Session.Event]) -> Bool) async {
        await withCheckedContinuation { continuation in
            let isReady = state.withLock { state in
                if isThere(state.events) { return true }
                state.waiters.append((isThere, continuation))
                return false
            }
            if isReady { continuation.resume() }
        }
    }

    func waitUntilClosed() async {
        await wait { if case .closed = $0.last { true } else { false } }
    }
}

extension [Session.Event] {
    /// The words of the events of transfers.
    var words: [String] { compactMap { if case .transfer(let event) = $0 { event.word } else { nil } } }
}

/// The APIs that run a request.
enum CallStyle: String, CaseIterable, Sendable {
    case data, value, response, stream, bytes, progress, events, start

    /// Runs a request to its end with this API.
    ///
    /// - Returns: The error, or nil if the request succeeded.
    func run(_ request: Request, on session: Session) async -> NetworkError? {
        do {
            switch self {
            case .data: _ = try await session.data(for: request)
            case .value: _ = try await session.transfer(request).value
            case .response: _ = try await session.transfer(request).response()
            case .stream: for try await _ in session.transfer(request).stream {}
            case .bytes: for try await _ in session.transfer(request).bytes {}
            case .progress: for await _ in session.transfer(request).progress {}
            case .events: for await _ in session.transfer(request).events {}
            case .start:
                session.transfer(request).start()
                try await session.idle()
            }
            return nil
        } catch {
            return error as? NetworkError
        }
    }
}

/// Runs requests one after the other and returns the words of each transfer's events.
///
/// - Parameter make: Creates the session with the given observer.
func wordsHeard(
    of requests: [Request], _ style: CallStyle, make: (any Session.Observer) -> Session
) async throws -> [[String]] {
    let notes = SessionEventRecorder()
    let session = make(notes)
    for request in requests { _ = await style.run(request, on: session) }
    try await session.shutdown()
    await notes.waitUntilClosed()
    return notes.words
}

extension Transfer<Data> {
    /// Returns all events of an observer that subscribed before the start.
    func notes(_ use: @Sendable (Transfer<Data>) async throws -> Void = { _ = try await $0.value }) async
        -> [TransferEvent]
    {
        let stream = events
        try? await use(self)
        var events: [TransferEvent] = []
        for await event in stream { events.append(event) }
        return events
    }
}

/// Returns the next words of an event stream, up to and including `last`.
func words(_ iterator: inout AsyncStream<TransferEvent>.Iterator, upTo last: String) async -> [String] {
    var words: [String] = []
    while let event = await iterator.next() {
        words.append(event.word)
        if event.word == last { break }
    }
    return words
}
