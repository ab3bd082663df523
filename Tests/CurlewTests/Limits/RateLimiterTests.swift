// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Curlew

/// The queue of `RateLimiter` at times that the test chooses.
@Suite struct RateLimiterTests {
    private let tenASecond = RateLimiter.Rule(pace: RateLimiter.Pace(interval: .milliseconds(100), burst: 3))
    private let hour = Duration.seconds(3600)

    /// Whether a request may be sent at once.
    private func goes(_ limiter: inout RateLimiter, _ rule: RateLimiter.Rule, at time: Duration) -> Bool {
        if case .go = limiter.enter(rule, limit: .zero, now: time) { true } else { false }
    }

    @Test func burstIsFollowedByOneRequestPerInterval() {
        var limiter = RateLimiter()
        let times = (0..<1000).filter { goes(&limiter, tenASecond, at: .milliseconds($0)) }
        #expect(times == [0, 1, 2] + (1...9).map { $0 * 100 })
        #expect(
            (0..<5).filter { _ in goes(&limiter, tenASecond, at: .seconds(60)) }.count == 3, "a pause earns a burst")
    }

    @Test func requestsWithoutPaceAreNotLimited() {
        var limiter = RateLimiter()
        #expect((0..<100).allSatisfy { _ in goes(&limiter, RateLimiter.Rule(), at: .zero) })
        #expect(!limiter.isInUse)
    }

    @Test func holdsDoNotShrinkAndAreBounded() {
        var limiter = RateLimiter()
        limiter.hold(for: .seconds(9), now: .zero)
        limiter.hold(for: .seconds(3), now: .seconds(1))
        #expect(!goes(&limiter, RateLimiter.Rule(), at: .seconds(8)))
        #expect(goes(&limiter, RateLimiter.Rule(), at: .seconds(9)))
        limiter.hold(for: .seconds(1 << 40), now: .zero)
        guard case .tooLong(let wait) = limiter.enter(RateLimiter.Rule(), limit: .seconds(60), now: .zero) else {
            Issue.record("the hold has no upper bound")
            return
        }
        #expect(wait == hour)
    }

    @Test func requestWithTooLongAWaitIsRejected() {
        var limiter = RateLimiter()
        for _ in 0..<3 { #expect(goes(&limiter, tenASecond, at: .zero)) }
        var waiting = 0
        while case .wait = limiter.enter(tenASecond, limit: .seconds(1), now: .zero) { waiting += 1 }
        #expect(
            waiting == 10 && limiter.count == 10, "the queue accepts only requests that can be sent within the limit")
    }

    /// Checks the invariants while requests enter, leave and are sent in random order.
    @Test(arguments: 0..<50) func randomRequestsKeepTheRateAndTheOrder(seed: UInt64) {
        var chance = SeededChance(seed)
        let pace = RateLimiter.Pace(
            interval: .milliseconds(Int.random(in: 1...50, using: &chance)),
            burst: Int.random(in: 1...4, using: &chance))
        let rule = RateLimiter.Rule(pace: Bool.random(using: &chance) ? pace : nil)
        var (limiter, now, heldUntil) = (RateLimiter(), Duration.zero, Duration.zero)
        var waiting: [UInt64] = []
        var went: [Duration] = []
        for _ in 0..<2000 {
            switch Int.random(in: 0..<10, using: &chance) {
            case 0..<4:
                let isFree = waiting.isEmpty
                switch limiter.enter(rule, limit: hour, now: now) {
                case .go:
                    #expect(isFree, "no request overtakes the queue")
                    went.append(now)
                    #expect(now >= heldUntil)
                case .wait(let ticket): waiting.append(ticket)
                case .tooLong: Issue.record("the limit of an hour was exceeded")
                }
            case 4 where !waiting.isEmpty:
                _ = limiter.leave(waiting.remove(at: Int.random(in: 0..<waiting.count, using: &chance)))
            case 5 where Int.random(in: 0..<20, using: &chance) == 0:
                limiter.hold(for: .milliseconds(300), now: now)
                heldUntil = max(heldUntil, now + .milliseconds(300))
            case 6..<10 where !waiting.isEmpty:
                #expect(limiter.isFirst(waiting[0]) && !waiting.dropFirst().contains(where: limiter.isFirst))
                let luck = Double.random(in: 0...1, using: &chance)
                switch limiter.nextStep(waiting[0], rule, deadline: now + hour, now: now, chance: luck) {
                case .go:
                    went.append(now)
                    waiting.removeFirst()
                    #expect(now >= heldUntil)
                case .wait(let delay): now += min(delay, .milliseconds(Int.random(in: 1...60, using: &chance)))
                case .tooLong: Issue.record("the limit of an hour was exceeded")
                }
            default: now += .milliseconds(Int.random(in: 0...5, using: &chance))
            }
            #expect(limiter.count == waiting.count && limiter.isInUse == !waiting.isEmpty)
        }
        #expect(went.count > 50)
        if let pace = rule.pace {
            for (index, time) in went.enumerated() where index >= pace.burst {
                // In any burst + 1 requests in a row, the last waits for the interval of the first.
                #expect(time - went[index - pace.burst] >= pace.interval, "\(pace) at \(index)")
            }
        }
    }

    @Test func idleOriginsAreForgottenAtCapacity() {
        var table = OriginTable<RateLimiter>()
        guard case .go = table.change("held", { $0.enter(RateLimiter.Rule(), limit: hour, now: .zero) }) else {
            Issue.record("the first request was held")
            return
        }
        table.change("held") { $0.hold(for: .seconds(9), now: .zero) }
        _ = table.change("held") { $0.enter(RateLimiter.Rule(), limit: hour, now: .zero) }
        table.change("old") { $0.hold(for: .seconds(9), now: .zero) }
        for number in 0..<1000 { table.change("\(number)") { $0.hold(for: .seconds(1), now: .zero) } }
        #expect(table.count == OriginTable<RateLimiter>.capacity)
        #expect(table.change("held") { $0.count } == 1, "the origin has a waiting request")
        var old = table.change("old") { $0 }
        #expect(goes(&old, RateLimiter.Rule(), at: .zero), "the origin was forgotten, so its hold is gone")
    }

    @Test func newestOriginIsKeptAtCapacity() {
        var table = OriginTable<RateLimiter>()
        let rule = RateLimiter.Rule(pace: RateLimiter.Pace(interval: .seconds(1), burst: 1))
        for number in 0..<OriginTable<RateLimiter>.capacity {
            for _ in 0..<2 { _ = table.change("\(number)") { $0.enter(rule, limit: hour, now: .zero) } }
        }
        guard case .go = table.change("new", { $0.enter(rule, limit: hour, now: .zero) }),
            case .wait = table.change("new", { $0.enter(rule, limit: hour, now: .zero) })
        else { return #expect(Bool(false), "the second request is not limited") }
    }
}
