// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Whether requests go to an origin: *closed*, they do; *open*, none does for a while; *half-open*, one tries.
///
/// closed → open after enough failures; open → half-open when the rest is over and a request comes; half-open → closed
/// when that one went well, → open when it failed; it stays half-open, for another to try, when nothing was learnt or
/// when that one takes longer than the rest. Time counts from any fixed point.
struct Circuit: OriginRecord {
    /// When it opens, and for how long.
    struct Rule: Sendable {
        /// So many failures in a row open it.
        var failures: Int
        /// So large a part of the last `window` requests, if any, opens it too.
        var failureRate: Double?
        var window: Int
        var rest: Duration
        /// As many outcomes as are remembered.
        static let longestWindow = 64
    }

    enum Admission: Sendable, Equatable {
        /// It goes, as any other; in which period of the circuit.
        case pass(period: UInt64)
        /// It goes alone, and what becomes of it decides.
        case probe(period: UInt64)
        /// It does not go: for how long nothing will, zero while another one tries; after what.
        case refused(rest: Duration, after: String)
    }

    enum Outcome: Sendable, Equatable {
        case success
        /// And what it was, in words without secrets.
        case failure(String)
        /// Nothing was learnt of the server.
        case unknown
    }

    private enum State {
        case closed
        case open(until: Duration)
        /// One tries; after so long another may. Nil: nobody does.
        case halfOpen(probedUntil: Duration?)
    }

    private var state = State.closed
    /// Grows with each change that makes what is under way say nothing about the new state.
    private var period: UInt64 = 0
    private var failuresInARow = 0
    /// The last outcomes, the latest in the lowest bit, 1 for a failure.
    private var outcomes: UInt64 = 0
    private var count = 0
    private var reason = ""
    /// How long it was open last.
    private var rest = Duration.zero

    init() {}

    /// While one tries: it has to find its circuit again.
    var isInUse: Bool { if case .halfOpen(_?) = state { true } else { false } }

    mutating func admit(now: Duration) -> Admission {
        switch state {
        case .closed: return .pass(period: period)
        case .open(let end) where now < end: return .refused(rest: end - now, after: reason)
        case .halfOpen(let end?) where now < end: return .refused(rest: .zero, after: reason)
        case .open, .halfOpen:
            // What becomes of one that took too long is not waited for.
            if case .halfOpen(_?) = state { period += 1 }
            state = .halfOpen(probedUntil: now + rest)
            return .probe(period: period)
        }
    }

    /// Takes note of what became of a request; to be called once for each that went.
    mutating func settle(_ admission: Admission, _ outcome: Outcome, _ rule: Rule, now: Duration) {
        switch admission {
        case .pass(period): note(outcome, rule, now)
        case .probe(period): decide(outcome, rule, now)
        default: break
        }
    }

    private mutating func note(_ outcome: Outcome, _ rule: Rule, _ now: Duration) {
        switch outcome {
        case .unknown: return
        case .success:
            failuresInARow = 0
            outcomes <<= 1
        case .failure(let reason):
            failuresInARow += 1
            outcomes = outcomes << 1 | 1
            self.reason = reason
        }
        count += 1
        if outcome != .success, failuresInARow >= rule.failures || isAboveRate(rule) { open(rule, now) }
    }

    private func isAboveRate(_ rule: Rule) -> Bool {
        guard let rate = rule.failureRate, count >= rule.window else { return false }
        let latest = rule.window >= Rule.longestWindow ? outcomes : outcomes & ((1 << UInt64(rule.window)) - 1)
        return Double(latest.nonzeroBitCount) >= rate * Double(rule.window)
    }

    private mutating func decide(_ outcome: Outcome, _ rule: Rule, _ now: Duration) {
        switch outcome {
        case .success:
            self = Circuit(period: period + 1)
        case .failure(let reason):
            self.reason = reason
            open(rule, now)
        case .unknown: state = .halfOpen(probedUntil: nil)
        }
    }

    private mutating func open(_ rule: Rule, _ now: Duration) {
        let reason = reason
        self = Circuit(period: period + 1)
        self.reason = reason
        rest = rule.rest
        state = .open(until: now + rest)
    }

    private init(period: UInt64) { self.period = period }
}
