// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine

/// Something worth knowing about a session as a whole.
public enum SessionEvent: Sendable, Hashable {
    /// A turn of the loop took longer than 100 ms, so every transfer waited: a trust evaluator or code that runs on
    /// `session.executor` is too slow, or the machine is overloaded.
    case slowTurn(Duration)
    /// The session was shut down; nothing more comes.
    case closed
}

/// Hands events to any number of observers, each with its own bounded buffer.
final class SessionEventRelay: Sendable {
    private struct State {
        var observers: [UInt64: AsyncStream<SessionEvent>.Continuation] = [:]
        var last: UInt64 = 0
        var isClosed = false
    }

    private let state = Lock(State())

    func stream() -> AsyncStream<SessionEvent> {
        let (stream, continuation) = AsyncStream<SessionEvent>.makeStream(bufferingPolicy: .bufferingNewest(64))
        let number = state.withLock { state -> UInt64? in
            if state.isClosed { return nil }
            state.last += 1
            state.observers[state.last] = continuation
            return state.last
        }
        guard let number else {
            continuation.yield(.closed)
            continuation.finish()
            return stream
        }
        continuation.onTermination = { [weak self] _ in
            self?.state.withLock { state in _ = state.observers.removeValue(forKey: number) }
        }
        return stream
    }

    func send(_ event: SessionEvent) {
        for observer in state.withLock({ Array($0.observers.values) }) { observer.yield(event) }
    }

    func close() {
        let observers = state.withLock { state in
            state.isClosed = true
            return Array(state.observers.values)
        }
        for observer in observers {
            observer.yield(.closed)
            observer.finish()
        }
    }

    deinit { close() }
}
