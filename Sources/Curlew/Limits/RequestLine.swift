// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The requests that wait for their turn at one origin, first come first served, and when the next one may go.
///
/// Time counts from any fixed point. Only the first in line looks at it; the others are called when they are first, and
/// whoever leaves the line costs the others nothing.
struct RequestLine: OriginRecord {
    typealias Call = UnsafeContinuation<Void, Never>

    /// How fast requests may go: one each `interval` on average, `burst` at once (the generic cell rate algorithm).
    struct Pace: Sendable, Hashable {
        var interval: Duration
        var burst: Int

        /// How long before its time a request may go; what exceeds 31 years makes no difference.
        var credit: Duration {
            let most = Duration.seconds(Duration.longestAccepted)
            return interval.inSeconds * Double(burst - 1) < most.inSeconds ? interval * (burst - 1) : most
        }
    }

    /// What requests go by.
    struct Rule: Sendable {
        var pace: Pace?
        /// Where requests have no pace: how far those are apart, on average, who waited for the same moment.
        static let spacing = Duration.milliseconds(10)
        /// What a server can ask for at most: afterwards it is asked whether it still means it.
        static let longestHold = Duration.seconds(3600)
    }

    enum Entry {
        case go
        case wait(ticket: UInt64)
        /// It would have to wait so long.
        case tooLong(Duration)
    }

    enum Step {
        /// It may go, and has left the line; who is first now is to be called.
        case go(Call?)
        case wait(Duration)
        case tooLong(Duration)
    }

    /// Until when the server wants nothing.
    private var heldUntil = Duration.zero
    /// Until when the latest who waited keeps the next one back.
    private var spacedUntil = Duration.zero
    /// When all that went is paid for.
    private var paidAt = Duration.zero
    /// Who waits; those who are called when they are first have left a continuation.
    private var waiting: [UInt64: Call?] = [:]
    private var first: UInt64 = 0
    private var next: UInt64 = 0

    init() {}

    var isInUse: Bool { !waiting.isEmpty }

    /// How many wait.
    var count: Int { waiting.count }

    /// Lets a request go, or gives it the last place in line, unless it would wait there longer than it can.
    mutating func enter(_ rule: Rule, limit: Duration, now: Duration) -> Entry {
        let rest = rest(rule, now)
        if waiting.isEmpty, rest == .zero {
            pay(rule, now)
            return .go
        }
        let expected = rest + (rule.pace?.interval ?? Rule.spacing) * waiting.count
        guard expected <= limit else { return .tooLong(expected) }
        defer { next += 1 }
        waiting.updateValue(nil, forKey: next)
        return .wait(ticket: next)
    }

    /// What the first in line does now; everybody else is told to wait for nothing.
    ///
    /// - Parameter chance: From 0 to 1: how far behind it the next one is kept.
    mutating func step(_ ticket: UInt64, _ rule: Rule, deadline: Duration, now: Duration, chance: Double) -> Step {
        let rest = rest(rule, now)
        if rest > .zero { return now + rest > deadline ? .tooLong(rest) : .wait(rest) }
        pay(rule, now)
        if rule.pace == nil { spacedUntil = now + Rule.spacing * (2 * min(max(chance, 0), 1)) }
        return .go(leave(ticket))
    }

    /// Takes a request out of the line, wherever it stands; who is first now is to be called.
    mutating func leave(_ ticket: UInt64) -> Call? {
        guard waiting.removeValue(forKey: ticket) != nil, ticket == first else { return nil }
        while first < next, waiting[first] == nil { first += 1 }
        return takeCall(of: first)
    }

    /// Whether it is first, or in no line at all.
    func isFirst(_ ticket: UInt64) -> Bool { ticket == first || waiting[ticket] == nil }

    /// Leaves word how to call somebody who is not first.
    mutating func leave(_ call: Call, for ticket: UInt64) { waiting.updateValue(call, forKey: ticket) }

    /// Takes back how to call somebody.
    mutating func takeCall(of ticket: UInt64) -> Call? {
        guard case .some(.some(let call)) = waiting[ticket] else { return nil }
        waiting.updateValue(nil, forKey: ticket)
        return call
    }

    /// Lets nobody go before a time; what was asked for before stays, if it is longer.
    mutating func hold(for wait: Duration, now: Duration) {
        heldUntil = max(heldUntil, now + min(wait, Rule.longestHold))
    }

    /// How long nobody may go.
    private func rest(_ rule: Rule, _ now: Duration) -> Duration {
        var opening = max(heldUntil, spacedUntil)
        if let pace = rule.pace { opening = max(opening, paidAt - pace.credit) }
        return max(opening - now, .zero)
    }

    private mutating func pay(_ rule: Rule, _ now: Duration) {
        if let pace = rule.pace { paidAt = max(paidAt, now) + pace.interval }
    }
}
