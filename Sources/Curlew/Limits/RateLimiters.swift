// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import CurlewSupport

/// The queue of each origin, shared by all tasks.
final class RateLimiters: Sendable {
    let rule: RateLimiter.Rule
    private let time: @Sendable () -> Duration
    private let chance: @Sendable () -> Double
    private let state = Lock(OriginTable<RateLimiter>())

    init(_ rule: RateLimiter.Rule, time: @escaping @Sendable () -> Duration, chance: @escaping @Sendable () -> Double) {
        self.rule = rule
        self.time = time
        self.chance = chance
    }

    var now: Duration { time() }

    /// Returns the number of requests that wait for an origin.
    func count(at origin: String) -> Int { change(origin) { $0.count } }

    func enter(_ origin: String, limit: Duration) -> RateLimiter.Entry {
        let now = now
        return change(origin) { $0.enter(rule, limit: limit, now: now) }
    }

    /// Returns when the request is the first in the queue, or its task is cancelled.
    func turn(of ticket: UInt64, at origin: String) async {
        await withTaskCancellationHandler {
            await withUnsafeContinuation { (continuation: RateLimiter.Continuation) in
                let isOver = change(origin) { limiter in
                    if limiter.isFirst(ticket) || Task.isCancelled { return true }
                    limiter.leave(continuation, for: ticket)
                    return false
                }
                if isOver { continuation.resume() }
            }
        } onCancel: {
            change(origin) { $0.takeContinuation(of: ticket) }?.resume()
        }
    }

    /// Returns how long the first request in the queue waits before its next step.
    ///
    /// - Returns: The wait, or nil when the request may start and has left the queue.
    /// - Throws: ``TooLong`` when the wait ends after the deadline.
    func nextStep(_ ticket: UInt64, at origin: String, deadline: Duration) throws(TooLong) -> Duration? {
        let (chance, now) = (chance(), now)
        switch change(origin, { $0.nextStep(ticket, rule, deadline: deadline, now: now, chance: chance) }) {
        case .wait(let delay): return delay
        case .tooLong(let delay): throw TooLong(wait: delay)
        case .go(let continuation):
            continuation?.resume()
            return nil
        }
    }

    /// Removes a request from the queue.
    func leave(_ ticket: UInt64, at origin: String) { change(origin) { $0.leave(ticket) }?.resume() }

    func hold(_ origin: String, for wait: Duration) {
        let now = now
        change(origin) { $0.hold(for: wait, now: now) }
    }

    private func change<Value>(_ origin: String, _ body: (inout RateLimiter) -> Value) -> Value {
        state.withLock { $0.change(origin, body) }
    }

    /// A wait that is longer than a request can take.
    struct TooLong: Error { let wait: Duration }
}
