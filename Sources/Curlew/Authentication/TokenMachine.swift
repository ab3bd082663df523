// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import FoundationEssentials

/// Who may go on with which token, who has to wait, and when a new one is fetched: the rules alone, without tasks and time.
///
/// At most one *flight*, a fetch of a new token, is in the air. Whoever needs a new token while there is one waits for it.
/// It ends once, for all who wait, with a token or with an error; whoever comes later begins a new one. Where flights fail
/// again and again, or bring what the server refuses as well, there are pauses between them.
struct TokenMachine {
    /// A token and how many there were before it, by which a refusal of an older one is known.
    struct Held: Hashable {
        let token: AccessToken
        let generation: UInt64
        /// Whether a server has taken it before.
        var isAccepted = false
    }

    enum Answer: Hashable {
        case use(Held)
        /// As `use`, and whoever asked has to begin a flight that nobody waits for.
        case useAndFly(Held)
        /// A flight is in the air; its end tells.
        case wait
        /// As `wait`, and whoever asked has to begin the flight.
        case waitAndFly
        /// The flight in the air takes too long.
        case fail
        /// The last flights failed, and for so long there is no other.
        case pause(Duration)
    }

    /// Who waits no longer, and what becomes of them.
    struct Release: Hashable {
        var waiters: Set<UInt64> = []
        /// Nil: there is no token for them.
        var held: Held?
        /// The flight brought nothing for those who wait now, and another has to begin.
        var fliesAgain = false
    }

    private struct Flight {
        /// The token it is to replace.
        let generation: UInt64
        var isOverdue = false
    }

    /// Failures in a row, and the pause after the last of them.
    private struct Setbacks {
        /// The pauses, each twice as long as the one before.
        private static let backOff = BackOff(first: .seconds(1), longest: .seconds(60))
        private(set) var count = 0
        private var began = Date.distantPast

        mutating func add(_ now: Date) {
            count += 1
            began = now
        }

        /// What is left of the pause; nil when it is over, or when the time was set back to before it.
        func pause(_ now: Date) -> Duration? {
            guard count > 0, now >= began else { return nil }
            let left = Setbacks.backOff.ceiling(after: count) - .seconds(now.timeIntervalSince(began))
            return left > .zero ? left : nil
        }
    }

    /// How long before its expiry a token is replaced.
    let skew: Duration

    private(set) var token: AccessToken?
    private(set) var generation: UInt64 = 0
    private var flight: Flight?
    private var waiters: Set<UInt64> = []
    /// The generation that the server has refused.
    private var refused: UInt64?
    /// When the token is to be replaced.
    private var dueAt: Date?
    /// Flights that failed.
    private var failures = Setbacks()
    /// Flights whose token was refused like the one before it.
    private var disappointments = Setbacks()
    /// The generation that a server has taken.
    private var accepted: UInt64?
    /// The generation that was the last to be judged.
    private var judged: UInt64?

    init(_ token: AccessToken?, skew: Duration, now: Date) {
        self.skew = skew
        adopt(token, now)
    }

    var isFlying: Bool { flight != nil }
    var waiting: Int { waiters.count }

    /// The token for one who needs it now; nil when one may have to wait, or to fly.
    func ready(_ now: Date) -> Held? {
        guard let held = usable(now), !isDue(now) || flight != nil || failures.pause(now) != nil else { return nil }
        return held
    }

    /// Answers one who needs a token; `waiter` is a number of its own.
    mutating func ask(_ waiter: UInt64, now: Date) -> Answer {
        if let held = ready(now) { return .use(held) }
        if let held = usable(now) {
            flight = Flight(generation: generation)
            return .useAndFly(held)
        }
        if let flight {
            if flight.isOverdue { return .fail }
            waiters.insert(waiter)
            return .wait
        }
        // One failure may be an accident.
        if failures.count > 1, let pause = failures.pause(now) { return .pause(pause) }
        flight = Flight(generation: generation)
        waiters.insert(waiter)
        return .waitAndFly
    }

    /// Takes note that the server refused a token; false when another one would not help, as far as one knows.
    mutating func refuse(_ generation: UInt64, now: Date) -> Bool {
        guard generation == self.generation else { return true }
        guard disappointments.pause(now) == nil else { return false }
        refused = generation
        return true
    }

    /// Takes note that a server took a token.
    mutating func accept(_ generation: UInt64) { if generation == self.generation { accepted = generation } }

    /// Takes note of what the server said to a request whose first token it had refused.
    mutating func judge(_ generation: UInt64, isRefused: Bool, now: Date) {
        guard generation == self.generation else { return }
        if !isRefused {
            disappointments = Setbacks()
            accepted = generation
        } else if judged != generation {
            disappointments.add(now)
        }
        judged = generation
    }

    /// Lets one go who waits no longer, while the flight goes on; false when the one does not wait.
    mutating func leave(_ waiter: UInt64) -> Bool { waiters.remove(waiter) != nil }

    /// Ends the flight with a token.
    mutating func land(_ token: AccessToken, now: Date) -> Release {
        guard isAwaited else { return turnBack() }
        flight = nil
        adopt(token, now)
        return everybody(Held(token: token, generation: generation))
    }

    /// Ends the flight without a token; who waited goes on with the old one while that is good.
    mutating func crash(now: Date) -> Release {
        guard isAwaited else { return turnBack() }
        flight = nil
        failures.add(now)
        defer {
            // It may have been refused for what one request wanted: others, which come now, had it taken.
            if refused == generation, accepted == generation {
                refused = nil
                disappointments.add(now)
            }
        }
        return everybody(usable(now))
    }

    /// Takes note that the flight takes too long: nobody waits for it any more.
    mutating func isLate(now: Date) -> Release {
        guard flight != nil else { return Release() }
        flight?.isOverdue = true
        return everybody(usable(now))
    }

    /// Puts a token into the place of the one there is, or none: who waits goes on with it, or has none.
    ///
    /// What a flight in the air brings is not wanted any more.
    mutating func replace(_ token: AccessToken?, now: Date) -> Release {
        adopt(token, now)
        disappointments = Setbacks()
        return everybody(token.map { Held(token: $0, generation: generation) })
    }

    /// Whether the flight is to replace the token there is.
    var isAwaited: Bool { flight?.generation == generation }

    /// Ends a flight that brings nothing any more: who came after it needs another.
    private mutating func turnBack() -> Release {
        flight = waiters.isEmpty ? nil : Flight(generation: generation)
        return Release(fliesAgain: flight != nil)
    }

    private mutating func adopt(_ token: AccessToken?, _ now: Date) {
        generation += 1
        self.token = token
        refused = nil
        accepted = nil
        failures = Setbacks()
        dueAt = token?.expiry.map { expiry in
            // A token that lasts for less than the skew is not replaced at once, or every request would.
            let lifetime = max(0, expiry.timeIntervalSince(now))
            return expiry.addingTimeInterval(-min(skew.inSeconds, lifetime / 4))
        }
    }

    private func isDue(_ now: Date) -> Bool { dueAt.map { now >= $0 } ?? false }

    /// The token while the server is likely to take it.
    private func usable(_ now: Date) -> Held? {
        guard let token, refused != generation, token.expiry.map({ now < $0 }) ?? true else { return nil }
        return Held(token: token, generation: generation, isAccepted: accepted == generation)
    }

    private mutating func everybody(_ held: Held?) -> Release {
        defer { waiters = [] }
        return Release(waiters: waiters, held: held)
    }
}
