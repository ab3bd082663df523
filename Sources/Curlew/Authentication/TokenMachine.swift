// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import FoundationEssentials

/// The rules of token refresh, without tasks and time: which token a request uses, which requests wait, and when a new
/// token is fetched.
///
/// At most one *refresh*, a fetch of a new token, is in progress. Requests that need a new token during a refresh wait
/// for it. A refresh ends once for all waiting requests, with a token or with an error; a later request starts a new
/// refresh. The machine pauses between refreshes that fail repeatedly or that fetch tokens which the server refuses.
struct TokenMachine {
    /// A token and its generation, the number of tokens before it, which identifies a refusal of an older token.
    struct Held: Hashable {
        let token: AccessToken
        let generation: UInt64
        /// Whether a server has accepted the token.
        var isAccepted = false
    }

    enum Decision: Hashable {
        case use(Held)
        /// The caller uses the token and starts a refresh, for which no request waits.
        case useAndRefresh(Held)
        /// A refresh is in progress, and its end resumes the waiter.
        case wait
        /// The caller starts a refresh, and its end resumes the waiter.
        case waitAndRefresh
        /// The refresh in progress takes too long.
        case fail
        /// The last refreshes failed, and no refresh starts for this duration.
        case pause(Duration)
    }

    /// The waiters that stop waiting, and their outcome.
    struct Release: Hashable {
        var waiters: Set<UInt64> = []
        /// The token for the waiters; nil when there is no token for them.
        var held: Held?
        /// Whether the refresh brought no token for the current waiters, so that another refresh has to start.
        var restartsRefresh = false
    }

    private struct PendingRefresh {
        /// The generation of the token that the refresh replaces.
        let generation: UInt64
        var isOverdue = false
    }

    /// The number of consecutive failures, and the pause after the last of them.
    private struct FailureStreak {
        /// The pauses, each twice as long as the previous one.
        private static let backoff = RetryPolicy.Backoff(first: .seconds(1), longest: .seconds(60))
        private(set) var count = 0
        private var began = Date.distantPast

        mutating func add(_ now: Date) {
            count += 1
            began = now
        }

        /// Returns the rest of the pause; nil when the pause is over, or when the clock was set back to before its
        /// start.
        func pause(_ now: Date) -> Duration? {
            guard count > 0, now >= began else { return nil }
            let left = FailureStreak.backoff.ceiling(after: count) - .seconds(now.timeIntervalSince(began))
            return left > .zero ? left : nil
        }
    }

    /// The time before its expiry at which a token is replaced.
    let skew: Duration

    private(set) var token: AccessToken?
    private(set) var generation: UInt64 = 0
    private var refresh: PendingRefresh?
    private var waiters: Set<UInt64> = []
    /// The generation that the server has refused.
    private var refused: UInt64?
    /// The time at which the token has to be replaced.
    private var dueAt: Date?
    /// The refreshes that failed.
    private var failures = FailureStreak()
    /// The refreshes whose token was refused like the token before it.
    private var refusedRefreshes = FailureStreak()
    /// The generation that a server has accepted.
    private var accepted: UInt64?
    /// The generation that was judged last.
    private var lastJudged: UInt64?

    init(_ token: AccessToken?, skew: Duration, now: Date) {
        self.skew = skew
        adopt(token, now)
    }

    var isRefreshing: Bool { refresh != nil }
    var waiting: Int { waiters.count }

    /// Returns the token for immediate use; nil when the caller may have to wait or to start a refresh.
    func ready(_ now: Date) -> Held? {
        guard let held = usable(now), !isDue(now) || refresh != nil || failures.pause(now) != nil else { return nil }
        return held
    }

    /// Returns what a request that needs a token has to do; `waiter` is a unique number.
    mutating func ask(_ waiter: UInt64, now: Date) -> Decision {
        if let held = ready(now) { return .use(held) }
        if let held = usable(now) {
            refresh = PendingRefresh(generation: generation)
            return .useAndRefresh(held)
        }
        if let refresh {
            if refresh.isOverdue { return .fail }
            waiters.insert(waiter)
            return .wait
        }
        // A single failure may be temporary: pause only from the second one on.
        if failures.count > 1, let pause = failures.pause(now) { return .pause(pause) }
        refresh = PendingRefresh(generation: generation)
        waiters.insert(waiter)
        return .waitAndRefresh
    }

    /// Records that the server refused a token; returns false when a new token is unlikely to help.
    mutating func refuse(_ generation: UInt64, now: Date) -> Bool {
        guard generation == self.generation else { return true }
        guard refusedRefreshes.pause(now) == nil else { return false }
        refused = generation
        return true
    }

    /// Records that a server accepted a token.
    mutating func accept(_ generation: UInt64) { if generation == self.generation { accepted = generation } }

    /// Records whether the server refused the second token of a request whose first token it had refused.
    mutating func recordSecondResponse(_ generation: UInt64, isRefused: Bool, now: Date) {
        guard generation == self.generation else { return }
        if !isRefused {
            refusedRefreshes = FailureStreak()
            accepted = generation
        } else if lastJudged != generation {
            refusedRefreshes.add(now)
        }
        lastJudged = generation
    }

    /// Removes a waiter while the refresh continues; returns false when there is no such waiter.
    mutating func leave(_ waiter: UInt64) -> Bool { waiters.remove(waiter) != nil }

    /// Ends the refresh with a token.
    mutating func finishRefresh(_ token: AccessToken, now: Date) -> Release {
        guard isAwaited else { return restartRefresh() }
        refresh = nil
        adopt(token, now)
        return releaseWaiters(with: Held(token: token, generation: generation))
    }

    /// Ends the refresh without a token; waiters continue with the old token while it is usable.
    mutating func failRefresh(now: Date) -> Release {
        guard isAwaited else { return restartRefresh() }
        refresh = nil
        failures.add(now)
        defer {
            // The server may have refused the token for one particular request: it has accepted it for others, which
            // continue to use it.
            if refused == generation, accepted == generation {
                refused = nil
                refusedRefreshes.add(now)
            }
        }
        return releaseWaiters(with: usable(now))
    }

    /// Records that the refresh takes too long; no request waits for it from then on.
    mutating func markOverdue(now: Date) -> Release {
        guard refresh != nil else { return Release() }
        refresh?.isOverdue = true
        return releaseWaiters(with: usable(now))
    }

    /// Replaces the token, or removes it for nil; waiters continue with the new token, or without one.
    ///
    /// The result of a refresh in progress is discarded.
    mutating func replace(_ token: AccessToken?, now: Date) -> Release {
        adopt(token, now)
        refusedRefreshes = FailureStreak()
        return releaseWaiters(with: token.map { Held(token: $0, generation: generation) })
    }

    /// Whether the refresh in progress is to replace the current token.
    var isAwaited: Bool { refresh?.generation == generation }

    /// Ends a refresh whose result is discarded; later waiters need another refresh.
    private mutating func restartRefresh() -> Release {
        refresh = waiters.isEmpty ? nil : PendingRefresh(generation: generation)
        return Release(restartsRefresh: refresh != nil)
    }

    private mutating func adopt(_ token: AccessToken?, _ now: Date) {
        generation += 1
        self.token = token
        refused = nil
        accepted = nil
        failures = FailureStreak()
        dueAt = token?.expiry.map { expiry in
            // A token with a lifetime shorter than the skew is not replaced at once; otherwise every request would
            // replace it.
            let lifetime = max(0, expiry.timeIntervalSince(now))
            return expiry.addingTimeInterval(-min(skew.inSeconds, lifetime / 4))
        }
    }

    private func isDue(_ now: Date) -> Bool { dueAt.map { now >= $0 } ?? false }

    /// Returns the token while the server is likely to accept it.
    private func usable(_ now: Date) -> Held? {
        guard let token, refused != generation, token.expiry.map({ now < $0 }) ?? true else { return nil }
        return Held(token: token, generation: generation, isAccepted: accepted == generation)
    }

    private mutating func releaseWaiters(with held: Held?) -> Release {
        defer { waiters = [] }
        return Release(waiters: waiters, held: held)
    }
}
