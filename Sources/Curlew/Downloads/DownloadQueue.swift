// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine

/// Lets only so many downloads run at once; the others wait, and nothing is asked for meanwhile.
///
/// ```swift
/// let queue = DownloadQueue(atMost: 2)
/// var options = DownloadOptions()
/// options.queue = queue
/// ```
///
/// When a place is free, the waiting download of the highest ``Transfer/priority`` gets it, read at that moment; among equal
/// ones the first or the last that came. One that is paused is passed over, and one that is paused for longer than
/// ``DownloadOptions/pauseGrace`` gives its place away. A place is kept for all attempts of a download.
public final class DownloadQueue: Sendable {
    /// Who is next among downloads of equal priority.
    public enum Order: String, Sendable, Hashable, CaseIterable {
        /// The one that has waited longest.
        case firstInFirstOut
        /// The one that came last.
        case lastInFirstOut
    }

    fileprivate struct State {
        var atMost: Int
        var running = 0
        var waiters = Waiters()
        /// Those that may go and do not know it yet.
        var admitted: Set<UInt64> = []
    }

    /// Who is next among downloads of equal priority.
    public let order: Order
    private let state: Lock<State>

    /// A queue that nothing waits in.
    ///
    /// - Parameters:
    ///   - atMost: How many may run at once; 3 unless given, at least 1.
    ///   - order: Who is next; the one that has waited longest, unless given.
    public init(atMost: Int = 3, order: Order = .firstInFirstOut) {
        self.order = order
        state = Lock(State(atMost: max(atMost, 1)))
    }

    /// How many downloads may run at once; at least 1.
    ///
    /// More places are taken at once; with fewer, those that run go on, and the next waits until there is one.
    public var atMost: Int {
        get { state.withLock { $0.atMost } }
        set {
            state.withLock { $0.atMost = max(newValue, 1) }
            advance()
        }
    }

    /// How many downloads have a place now.
    public var running: Int { state.withLock { $0.running } }

    /// How many wait for one.
    public var waiting: Int { state.withLock { $0.waiters.count } }

    /// Waits for a place.
    ///
    /// - Throws: `CancellationError` when the task was cancelled first; then there is no place to be given back.
    func enter(_ run: TransferRun) async throws(CancellationError) {
        let ticket = state.withLock { $0.waiters.append(run) }
        advance()
        while true {
            let rings = run.bell.rings
            if state.withLock({ $0.admitted.remove(ticket) != nil }) { return }
            if await run.bell.wait(after: rings), !Task.isCancelled { continue }
            let wasAdmitted = state.withLock { state in
                state.waiters.remove(ticket)
                return state.admitted.remove(ticket) != nil
            }
            if wasAdmitted { leave() }
            throw CancellationError()
        }
    }

    /// Gives a place back.
    func leave() {
        state.withLock { $0.running -= 1 }
        advance()
    }

    /// Takes note that a transfer was paused, goes on, or has another priority.
    func standingChanged(_ run: TransferRun) { state.withLock { $0.waiters.standingChanged(run) } }

    /// How often runs were asked for how they stand.
    var visits: Int { state.withLock { $0.waiters.visits } }

    /// Lets in as many as there are places for.
    func advance() {
        while let next = state.withLock({ $0.admit(order) }) { next.ring() }
    }
}

extension DownloadQueue.State {
    fileprivate mutating func admit(_ order: DownloadQueue.Order) -> TransferRun? {
        guard running < atMost else { return nil }
        guard let next = waiters.takeNext(order) else { return nil }
        admitted.insert(next.ticket)
        running += 1
        return next.run
    }
}

extension DownloadQueue: Hashable {
    /// Whether two names are those of one queue.
    public static func == (left: DownloadQueue, right: DownloadQueue) -> Bool { left === right }

    /// Hashes which queue it is.
    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
