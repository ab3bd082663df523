// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import CurlewSupport

/// The bounded queue of events for one observer, which drops and counts the oldest events when it is full.
final class EventBuffer<Event: Sendable>: Sendable {
    private struct State {
        /// A ring buffer with `count` events, beginning at `first`.
        var events: [Event?] = []
        var first = 0
        var count = 0
        var dropped = 0
        var isFinished = false
        /// The waiting tasks; more than one only when several tasks share one stream.
        var readers: [(ticket: UInt64, continuation: UnsafeContinuation<Event?, Never>)] = []
        var lastTicket: UInt64 = 0
    }

    /// The default capacity, enough for a few dozen transfers while an observer writes a line.
    static var usualCapacity: Int { 256 }

    private let capacity: Int
    private let report: @Sendable (Int) -> Event
    private let state = Lock(State())

    /// Creates an empty buffer.
    ///
    /// - Parameter report: Makes the event that an observer gets instead of a number of dropped events.
    init(capacity: Int = usualCapacity, report: @escaping @Sendable (Int) -> Event) {
        self.capacity = capacity
        self.report = report
    }

    /// A waiting task that must be resumed with its event, or with nil at the end.
    struct Wake {
        fileprivate let continuation: UnsafeContinuation<Event?, Never>
        fileprivate let event: Event?

        /// Resumes the task; the caller must hold no lock, since the task may continue at once on this thread.
        func callAsFunction() { continuation.resume(returning: event) }
    }

    func append(_ event: Event, isLast: Bool = false) {
        for wake in push(event, isLast: isLast) { wake() }
    }

    /// Appends an event, and ends the buffer in the same step if it is the last one.
    ///
    /// Use this method while holding a lock that keeps events in order.
    ///
    /// - Returns: The tasks to resume after that lock is released.
    func push(_ event: Event, isLast: Bool = false) -> [Wake] {
        state.withLock { state in
            guard !state.isFinished else { return [] }
            var wakes = place(event, in: &state).map { [Wake(continuation: $0, event: event)] } ?? []
            if isLast { wakes += end(&state) }
            return wakes
        }
    }

    /// Ends the buffer after the events it has.
    func finish() {
        for wake in state.withLock({ end(&$0) }) { wake() }
    }

    private func end(_ state: inout State) -> [Wake] {
        state.isFinished = true
        defer { state.readers = [] }
        return state.readers.map { Wake(continuation: $0.continuation, event: nil) }
    }

    /// Stores an event, or returns the waiting task that must get it.
    private func place(_ event: Event, in state: inout State) -> UnsafeContinuation<Event?, Never>? {
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

    /// Waits for the next event; nil at the end, or when the task is cancelled.
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

    /// The number of waiting tasks.
    var waitingReaders: Int { state.withLock { $0.readers.count } }

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
