// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import CurlewSupport

/// The queue of each origin, shared by all tasks.
final class RequestLines: Sendable {
    let rule: RequestLine.Rule
    private let time: @Sendable () -> Duration
    private let chance: @Sendable () -> Double
    private let state = Lock(OriginTable<RequestLine>())

    init(_ rule: RequestLine.Rule, time: @escaping @Sendable () -> Duration, chance: @escaping @Sendable () -> Double) {
        self.rule = rule
        self.time = time
        self.chance = chance
    }

    var now: Duration { time() }

    /// Returns the number of requests that wait for an origin.
    func count(at origin: String) -> Int { change(origin) { $0.count } }

    func enter(_ origin: String, limit: Duration) -> RequestLine.Entry {
        let now = now
        return change(origin) { $0.enter(rule, limit: limit, now: now) }
    }

    /// Returns when the request is the first in the queue, or its task is cancelled.
    func turn(of ticket: UInt64, at origin: String) async {
        await withTaskCancellationHandler {
            await withUnsafeContinuation { (call: RequestLine.Call) in
                let isOver = change(origin) { line in
                    if line.isFirst(ticket) || Task.isCancelled { return true }
                    line.leave(call, for: ticket)
                    return false
                }
                if isOver { call.resume() }
            }
        } onCancel: {
            change(origin) { $0.takeCall(of: ticket) }?.resume()
        }
    }

    /// Returns how long the first request in the queue waits before its next step.
    ///
    /// - Returns: The wait, or nil when the request may start and has left the queue.
    /// - Throws: ``TooLong`` when the wait ends after the deadline.
    func step(_ ticket: UInt64, at origin: String, deadline: Duration) throws(TooLong) -> Duration? {
        let (chance, now) = (chance(), now)
        switch change(origin, { $0.step(ticket, rule, deadline: deadline, now: now, chance: chance) }) {
        case .wait(let rest): return rest
        case .tooLong(let rest): throw TooLong(wait: rest)
        case .go(let call):
            call?.resume()
            return nil
        }
    }

    /// Removes a request from the queue.
    func leave(_ ticket: UInt64, at origin: String) { change(origin) { $0.leave(ticket) }?.resume() }

    func hold(_ origin: String, for wait: Duration) {
        let now = now
        change(origin) { $0.hold(for: wait, now: now) }
    }

    private func change<Value>(_ origin: String, _ body: (inout RequestLine) -> Value) -> Value {
        state.withLock { $0.change(origin, body) }
    }

    /// A wait that is longer than a request can take.
    struct TooLong: Error { let wait: Duration }
}
