// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The state of one origin: *closed* lets all requests pass, *open* refuses all for a while, *half-open* lets one probe
/// pass.
///
/// closed → open after enough failures; open → half-open when the cooldown is over and a request arrives; half-open →
/// closed when the probe succeeds, → open when it fails. The circuit stays half-open, and admits another probe, when
/// the outcome says nothing about the server or when the probe takes longer than the cooldown. Time counts from any
/// fixed point.
struct Circuit: OriginRecord {
    /// The failures that open the circuit, and the time for which it stays open.
    struct Rule: Sendable {
        /// The number of failures in a row that opens the circuit.
        var failures: Int
        /// The share of failures in the last `window` requests that also opens the circuit; nil for no such rule.
        var failureRate: Double?
        var window: Int
        var cooldown: Duration
        /// The number of outcomes that a circuit remembers.
        static let longestWindow = 64
    }

    enum Admission: Sendable, Equatable {
        /// The request passes, in this period of the circuit.
        case pass(period: UInt64)
        /// The request passes alone, and its outcome decides.
        case probe(period: UInt64)
        /// The request is refused, with the remaining cooldown (zero while a probe is running) and the last failure.
        case refused(cooldown: Duration, after: String)
    }

    enum Outcome: Sendable, Equatable {
        case success
        /// A failure, described without secrets.
        case failure(String)
        /// The outcome says nothing about the server.
        case unknown
    }

    private enum State {
        case closed
        case open(until: Duration)
        /// A probe may run until this time, when another may start; nil when no probe is running.
        case halfOpen(probedUntil: Duration?)
    }

    private var state = State.closed
    /// Grows with each change of state after which the outcomes of running requests no longer count.
    private var period: UInt64 = 0
    private var failuresInARow = 0
    /// The latest outcomes, the last one in the lowest bit; 1 is a failure.
    private var outcomes: UInt64 = 0
    private var count = 0
    private var reason = ""
    /// The length of the last cooldown.
    private var cooldown = Duration.zero

    init() {}

    /// True while a probe is running, because the probe must find its circuit again.
    var isInUse: Bool { if case .halfOpen(_?) = state { true } else { false } }

    mutating func admit(now: Duration) -> Admission {
        switch state {
        case .closed: return .pass(period: period)
        case .open(let end) where now < end: return .refused(cooldown: end - now, after: reason)
        case .halfOpen(let end?) where now < end: return .refused(cooldown: .zero, after: reason)
        case .open, .halfOpen:
            // The new period discards the outcome of a probe that took too long.
            if case .halfOpen(_?) = state { period += 1 }
            state = .halfOpen(probedUntil: now + cooldown)
            return .probe(period: period)
        }
    }

    /// Records the outcome of a request; call it once for each admitted request.
    mutating func record(_ admission: Admission, _ outcome: Outcome, _ rule: Rule, now: Duration) {
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
        cooldown = rule.cooldown
        state = .open(until: now + cooldown)
    }

    private init(period: UInt64) { self.period = period }
}
