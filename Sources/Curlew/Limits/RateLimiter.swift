// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The queue of requests that wait for their turn at one origin, first in first out, with the time when the next may
/// start.
///
/// Time counts from any fixed point. Only the first request in the queue waits for a time. The others are resumed when
/// they become the first, and a request that leaves the queue costs the others nothing.
struct RateLimiter: OriginRecord {
    typealias Continuation = UnsafeContinuation<Void, Never>

    /// The rate of requests: one each `interval` on average, `burst` at once (the generic cell rate algorithm).
    struct Pace: Sendable, Hashable {
        var interval: Duration
        var burst: Int

        /// How long before its regular time a request may start; limited to about 31 years.
        var credit: Duration {
            let most = Duration.seconds(Duration.maximumAccepted)
            return interval.inSeconds * Double(burst - 1) < most.inSeconds ? interval * (burst - 1) : most
        }
    }

    /// The settings of a queue.
    struct Rule: Sendable {
        var pace: Pace?
        /// Without a pace: the average distance of requests that waited for the same moment.
        static let spacing = Duration.milliseconds(10)
        /// The longest wait that a server can request; the next request then finds out whether the limit still holds.
        static let longestHold = Duration.seconds(3600)
    }

    enum Entry {
        case go
        case wait(ticket: UInt64)
        /// The request would have to wait this long.
        case tooLong(Duration)
    }

    enum Step {
        /// The request may start, and has left the queue; the caller resumes the continuation, which belongs to the new
        /// first request.
        case go(Continuation?)
        case wait(Duration)
        case tooLong(Duration)
    }

    /// The time until which the server accepts no requests.
    private var heldUntil = Duration.zero
    /// The time until which the last request that waited delays the next one.
    private var spacedUntil = Duration.zero
    /// The time when the rate has made up for all requests that started.
    private var chargedUntil = Duration.zero
    /// The waiting requests by ticket; with a continuation if the request is suspended until it is the first.
    private var waiting: [UInt64: Continuation?] = [:]
    private var first: UInt64 = 0
    private var next: UInt64 = 0

    init() {}

    var isInUse: Bool { !waiting.isEmpty }

    /// The number of waiting requests.
    var count: Int { waiting.count }

    /// Lets a request start, or appends it to the queue unless it would wait longer than `limit`.
    mutating func enter(_ rule: Rule, limit: Duration, now: Duration) -> Entry {
        let delay = delay(rule, now)
        if waiting.isEmpty, delay == .zero {
            charge(rule, now)
            return .go
        }
        let expected = delay + (rule.pace?.interval ?? Rule.spacing) * waiting.count
        guard expected <= limit else { return .tooLong(expected) }
        defer { next += 1 }
        waiting.updateValue(nil, forKey: next)
        return .wait(ticket: next)
    }

    /// Returns the next step of the first request in the queue; call it only for that request.
    ///
    /// - Parameter chance: A number from 0 to 1, which sets how long the next request is delayed.
    mutating func nextStep(_ ticket: UInt64, _ rule: Rule, deadline: Duration, now: Duration, chance: Double) -> Step {
        let delay = delay(rule, now)
        if delay > .zero { return now + delay > deadline ? .tooLong(delay) : .wait(delay) }
        charge(rule, now)
        if rule.pace == nil { spacedUntil = now + Rule.spacing * (2 * min(max(chance, 0), 1)) }
        return .go(leave(ticket))
    }

    /// Removes a request from the queue, at any position; the caller resumes the returned continuation of the new first
    /// request.
    mutating func leave(_ ticket: UInt64) -> Continuation? {
        guard waiting.removeValue(forKey: ticket) != nil, ticket == first else { return nil }
        while first < next, waiting[first] == nil { first += 1 }
        return takeContinuation(of: first)
    }

    /// Whether the request is the first, or not in the queue at all.
    func isFirst(_ ticket: UInt64) -> Bool { ticket == first || waiting[ticket] == nil }

    /// Stores the continuation of a request that is not the first.
    mutating func leave(_ continuation: Continuation, for ticket: UInt64) {
        waiting.updateValue(continuation, forKey: ticket)
    }

    /// Removes and returns the continuation of a request.
    mutating func takeContinuation(of ticket: UInt64) -> Continuation? {
        guard case .some(.some(let continuation)) = waiting[ticket] else { return nil }
        waiting.updateValue(nil, forKey: ticket)
        return continuation
    }

    /// Delays all requests by a wait, unless an earlier hold lasts longer.
    mutating func hold(for wait: Duration, now: Duration) {
        heldUntil = max(heldUntil, now + min(wait, Rule.longestHold))
    }

    /// Returns the time until a request may start.
    private func delay(_ rule: Rule, _ now: Duration) -> Duration {
        var opening = max(heldUntil, spacedUntil)
        if let pace = rule.pace { opening = max(opening, chargedUntil - pace.credit) }
        return max(opening - now, .zero)
    }

    private mutating func charge(_ rule: Rule, _ now: Duration) {
        if let pace = rule.pace { chargedUntil = max(chargedUntil, now) + pace.interval }
    }
}
