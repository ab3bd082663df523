// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine

/// What waits for one observer: at most so many events, of which the oldest are dropped and counted.
final class EventBuffer<Event: Sendable>: Sendable {
    private struct State {
        /// A ring: `count` events from `first` on.
        var events: [Event?] = []
        var first = 0
        var count = 0
        var dropped = 0
        var isFinished = false
        /// Tasks that wait; more than one only when several share one stream.
        var readers: [(ticket: UInt64, continuation: UnsafeContinuation<Event?, Never>)] = []
        var lastTicket: UInt64 = 0
    }

    /// Enough for a few dozen transfers while an observer writes a line.
    static var usualCapacity: Int { 256 }

    private let capacity: Int
    private let report: @Sendable (Int) -> Event
    private let state = Lock(State())

    /// - Parameter report: What an observer gets in the place of so many events that were dropped.
    init(capacity: Int = usualCapacity, report: @escaping @Sendable (Int) -> Event) {
        self.capacity = capacity
        self.report = report
    }

    func append(_ event: Event) {
        let reader = state.withLock { state -> UnsafeContinuation<Event?, Never>? in
            if state.isFinished { return nil }
            if !state.readers.isEmpty { return state.readers.removeFirst().continuation }
            if state.count == capacity {
                state.first = (state.first + 1) % capacity
                state.count -= 1
                state.dropped += 1
            }
            let place = (state.first + state.count) % capacity
            if place < state.events.count { state.events[place] = event } else { state.events.append(event) }
            state.count += 1
            return nil
        }
        reader?.resume(returning: event)
    }

    /// Nothing comes after what waits.
    func finish() {
        let readers = state.withLock { state in
            state.isFinished = true
            defer { state.readers = [] }
            return state.readers
        }
        for reader in readers { reader.continuation.resume(returning: nil) }
    }

    /// The next event; nil at the end, or when the task is cancelled.
    func next() async -> Event? {
        let ticket = state.withLock { state in
            state.lastTicket += 1
            return state.lastTicket
        }
        return await withTaskCancellationHandler {
            await withUnsafeContinuation { continuation in
                let answer = state.withLock { state -> Event?? in
                    if Task.isCancelled { return .some(nil) }
                    if let event = take(&state) { return event }
                    if state.isFinished { return .some(nil) }
                    state.readers.append((ticket, continuation))
                    return nil
                }
                if let answer { continuation.resume(returning: answer) }
            }
        } onCancel: {
            let reader = state.withLock { state in
                state.readers.firstIndex { $0.ticket == ticket }.map { state.readers.remove(at: $0).continuation }
            }
            reader?.resume(returning: nil)
        }
    }

    private func take(_ state: inout State) -> Event? {
        if state.dropped > 0 {
            defer { state.dropped = 0 }
            return report(state.dropped)
        }
        guard state.count > 0 else { return nil }
        let event = state.events[state.first]
        state.events[state.first] = nil
        state.first = (state.first + 1) % capacity
        state.count -= 1
        return event
    }
}
