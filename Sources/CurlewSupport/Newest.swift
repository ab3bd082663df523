// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The newest value for one reader; the reader never receives the same value twice in a row.
package final class Newest<Value: Sendable & Equatable>: Sendable {
    private struct State {
        /// The value that the reader has not received.
        var next: Value?
        var received: Value?
        var isFinished = false
    }

    private let state = Lock(State())
    private let signal = Signal()

    package init() {}

    /// Replaces the value that the reader has not received yet.
    package func send(_ value: Value) {
        state.withLock { state in
            if !state.isFinished { state.next = value == state.received ? nil : value }
        }
        signal.send()
    }

    /// Ends the values after the last one that was sent.
    package func finish() {
        state.withLock { $0.isFinished = true }
        signal.send()
    }

    /// Waits for a value that differs from the last one; returns nil at the end, or when the task is cancelled.
    package func next() async -> Value? {
        while true {
            let seen = signal.count
            let (value, isFinished) = state.withLock { state in
                defer { if let next = state.next { (state.received, state.next) = (next, nil) } }
                return (state.next, state.isFinished)
            }
            if let value { return Task.isCancelled ? nil : value }
            if isFinished { return nil }
            guard await signal.wait(after: seen) else { return nil }
        }
    }
}

extension AsyncStream where Element: Sendable & Equatable {
    /// Returns a stream of the newest values of a subscription.
    ///
    /// - Parameter subscribe: Starts the subscription, and returns a function that ends it; the stream calls this
    ///   function once, when its reader has ended.
    package static func newest(_ subscribe: (Newest<Element>) -> @Sendable () -> Void) -> AsyncStream {
        let newest = Newest<Element>()
        let subscription = Subscription(subscribe(newest))
        return AsyncStream {
            defer { withExtendedLifetime(subscription) {} }
            return await newest.next()
        }
    }
}

/// Calls a function when it is released.
private final class Subscription: Sendable {
    private let end: @Sendable () -> Void

    init(_ end: @escaping @Sendable () -> Void) { self.end = end }

    deinit { end() }
}
