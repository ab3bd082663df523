// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import Curlew
import CurlewEngine
import CurlewTesting
import FoundationEssentials
import Testing

extension TransferEvent {
    /// What happened, in one or two short words.
    var word: String {
        switch kind {
        case .state(let state): "is \(state.rawValue)"
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
        case .retried: "retried"
        case .fileReady(let path): "file \(path)"
        case .metrics: "metrics"
        case .finished(nil): "finished"
        case .finished(let error?): "finished: \(error.kind.rawValue)"
        case .dropped(let count): "dropped \(count)"
        }
    }
}

/// An observer of a session that keeps what it is told, for tests that wait for some of it.
final class SessionNotes: SessionObserver {
    private struct State {
        var events: [SessionEvent] = []
        var waiters: [(isThere: @Sendable ([SessionEvent]) -> Bool, continuation: CheckedContinuation<Void, Never>)] =
            []
    }

    private let state = Lock(State())

    func observe(_ event: SessionEvent) async {
        let ready = state.withLock { state in
            state.events.append(event)
            let events = state.events
            let ready = state.waiters.filter { $0.isThere(events) }
            state.waiters.removeAll { $0.isThere(events) }
            return ready
        }
        for waiter in ready { waiter.continuation.resume() }
    }

    var events: [SessionEvent] { state.withLock { $0.events } }

    /// Those about transfers.
    var transferEvents: [TransferEvent] {
        events.compactMap { if case .transfer(let event) = $0 { event } else { nil } }
    }

    /// The words about each transfer, the oldest first.
    var words: [[String]] {
        Dictionary(grouping: transferEvents, by: \.transfer).sorted { $0.key < $1.key }.map { $0.value.map(\.word) }
    }

    var isClosed: Bool { if case .closed = events.last { true } else { false } }

    /// Waits until what was told is as wanted.
    func wait(until isThere: @escaping @Sendable ([SessionEvent]) -> Bool) async {
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

extension [SessionEvent] {
    /// The words about transfers.
    var words: [String] { compactMap { if case .transfer(let event) = $0 { event.word } else { nil } } }
}

/// Every way to make a request.
enum CallStyle: String, CaseIterable, Sendable {
    case data, value, response, stream, bytes, progress, events, start

    /// Runs a request to its end in this way; its error is the caller's.
    ///
    /// - Returns: The error.
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

/// What a session's observer hears of requests made in one way, transfer by transfer.
///
/// - Parameter make: Makes the session, with the observer.
func wordsHeard(
    of requests: [Request], _ style: CallStyle, make: (any SessionObserver) -> Session
) async throws -> [[String]] {
    let notes = SessionNotes()
    let session = make(notes)
    for request in requests { _ = await style.run(request, on: session) }
    try await session.shutdown()
    await notes.waitUntilClosed()
    return notes.words
}

extension Transfer<Data> {
    /// Everything an observer from before the start hears.
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

/// The first words of an event stream, to one of them and including it.
func words(_ iterator: inout AsyncStream<TransferEvent>.Iterator, upTo last: String) async -> [String] {
    var words: [String] = []
    while let event = await iterator.next() {
        words.append(event.word)
        if event.word == last { break }
    }
    return words
}
