// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import CurlewSupport

extension DownloadOptions {
    /// A queue that limits how many downloads run at once; a waiting download sends no request.
    ///
    /// ```swift
    /// let queue = DownloadOptions.Queue(atMost: 2)
    /// var options = DownloadOptions()
    /// options.queue = queue
    /// ```
    ///
    /// When a slot is free, the waiting download with the highest ``Transfer/priority`` at that moment gets it;
    /// ``order`` decides among equal priorities. Paused downloads are skipped. A download that is paused for longer
    /// than ``DownloadOptions/pauseGrace`` releases its slot. A download keeps its slot across all of its attempts.
    public final class Queue: Sendable {
        /// The order of downloads with equal priority.
        public enum Order: String, Sendable, Hashable, CaseIterable {
            /// The download that has waited longest starts first.
            case firstInFirstOut
            /// The download that was added last starts first.
            case lastInFirstOut
        }

        fileprivate struct State {
            var atMost: Int
            var running = 0
            var waiters = Waiters()
            /// The sequence numbers of downloads that have a slot and have not noticed it yet.
            var admitted: Set<UInt64> = []
        }

        /// The order of downloads with equal priority.
        public let order: Order
        private let state: Lock<State>

        /// Creates an empty queue.
        ///
        /// - Parameters:
        ///   - atMost: The maximum number of running downloads; 3 by default, at least 1.
        ///   - order: The order of downloads with equal priority; by default, the one that has waited longest starts
        ///     first.
        public init(atMost: Int = 3, order: Order = .firstInFirstOut) {
            self.order = order
            state = Lock(State(atMost: max(atMost, 1)))
        }

        /// The maximum number of running downloads; at least 1.
        ///
        /// A higher value starts waiting downloads at once. A lower value does not stop running downloads; the next
        /// download waits until a slot is free.
        public var atMost: Int {
            get { state.withLock { $0.atMost } }
            set {
                state.withLock { $0.atMost = max(newValue, 1) }
                advance()
            }
        }

        /// The number of downloads that have a slot now.
        public var running: Int { state.withLock { $0.running } }

        /// The number of downloads that wait for a slot.
        public var waiting: Int { state.withLock { $0.waiters.count } }

        /// Waits for a slot.
        ///
        /// - Throws: `CancellationError` when the task is cancelled first; the caller has no slot to release then.
        func enter(_ run: TransferRun) async throws(CancellationError) {
            let sequenceNumber = state.withLock { $0.waiters.append(run) }
            advance()
            while true {
                let seen = run.signal.count
                if state.withLock({ $0.admitted.remove(sequenceNumber) != nil }) { return }
                if await run.signal.wait(after: seen), !Task.isCancelled { continue }
                let wasAdmitted = state.withLock { state in
                    state.waiters.remove(sequenceNumber)
                    return state.admitted.remove(sequenceNumber) != nil
                }
                if wasAdmitted { leave() }
                throw CancellationError()
            }
        }

        /// Releases a slot.
        func leave() {
            state.withLock { $0.running -= 1 }
            advance()
        }

        /// Notifies the queue that a transfer was paused or resumed, or has another priority.
        func priorityOrPauseChanged(_ run: TransferRun) { state.withLock { $0.waiters.priorityOrPauseChanged(run) } }

        /// The number of times that the state of a run was read so far; tests use it.
        var visits: Int { state.withLock { $0.waiters.visits } }

        /// Gives the free slots to waiting downloads.
        func advance() {
            while let next = state.withLock({ $0.admit(order) }) { next.notify() }
        }
    }
}

extension DownloadOptions.Queue.State {
    fileprivate mutating func admit(_ order: DownloadOptions.Queue.Order) -> TransferRun? {
        guard running < atMost else { return nil }
        guard let next = waiters.takeNext(order) else { return nil }
        admitted.insert(next.sequenceNumber)
        running += 1
        return next.run
    }
}

extension DownloadOptions.Queue: Hashable {
    /// Returns whether two references are to the same queue.
    public static func == (left: DownloadOptions.Queue, right: DownloadOptions.Queue) -> Bool { left === right }

    /// Hashes the identity of the queue.
    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
