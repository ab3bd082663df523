// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing

@testable import Curlew

/// The state machine of token refreshes, with fixed sequences and with random schedules.
struct TokenMachineTests {
    private let start = Date(timeIntervalSince1970: 1_700_000_000)

    private func token(_ value: String, for seconds: Double? = nil) -> AccessToken {
        AccessToken(value, expiry: seconds.map { start.addingTimeInterval($0) })
    }

    private func machine(_ token: AccessToken?) -> TokenMachine {
        TokenMachine(token, skew: .seconds(30), now: start)
    }

    // MARK: Sequences

    @Test func validTokenIsUsed() {
        var machine = machine(token("a", for: 100))
        guard case .use(let held) = machine.ask(1, now: start) else { return #expect(Bool(false)) }
        #expect(held.token.value == "a" && !machine.isRefreshing)
    }

    @Test(arguments: [(74.0, true, false), (75, true, true), (99, true, true), (100, false, true), (200, false, true)])
    func tokenIsRefreshedBeforeItExpires(seconds: Double, isUsed: Bool, flies: Bool) {
        // The skew is a quarter of the token's lifetime here: 25 of 100 seconds.
        var machine = machine(token("a", for: 100))
        let now = start.addingTimeInterval(seconds)
        #expect((machine.ready(now) != nil) == (isUsed && !flies))
        switch machine.ask(1, now: now) {
        case .use: #expect(isUsed && !flies)
        case .useAndRefresh(let held): #expect(isUsed && flies && held.token.value == "a" && machine.waiting == 0)
        default: #expect(!isUsed && flies && machine.waiting == 1)
        }
        // A second caller starts no refresh, and does not wait while the old token is valid.
        #expect(!flies || (machine.ask(2, now: now) == .wait) == !isUsed)
    }

    @Test func failedEarlyRefreshKeepsTheOldTokenInUse() {
        var machine = machine(token("a", for: 1000))
        let due = start.addingTimeInterval(980)
        guard case .useAndRefresh = machine.ask(1, now: due), case .use = machine.ask(2, now: due) else {
            return #expect(Bool(false))
        }
        #expect(machine.failRefresh(now: due).waiters == [])
        // For one second no caller starts a refresh; afterwards the next caller does.
        guard case .use = machine.ask(3, now: due),
            case .useAndRefresh = machine.ask(4, now: due.addingTimeInterval(1.1))
        else { return #expect(Bool(false)) }
        // The old token has expired and is not used any more.
        #expect(machine.ask(5, now: start.addingTimeInterval(1001)) == .wait)
        let late = machine.failRefresh(now: start.addingTimeInterval(1001))
        #expect(late.waiters == [5] && late.held == nil)
        #expect(machine.ask(5, now: start.addingTimeInterval(1003)) == .waitAndRefresh)
    }

    @Test func refusalOfAnOlderTokenStartsNoRefresh() {
        var machine = machine(token("a"))
        let first = machine.generation
        #expect(machine.refuse(first, now: start) == true)
        #expect(machine.ask(1, now: start) == .waitAndRefresh)
        let release = machine.finishRefresh(token("b"), now: start)
        #expect(release.waiters == [1] && release.held?.token.value == "b")
        #expect(machine.refuse(first, now: start) == true)
        guard case .use(let held) = machine.ask(2, now: start) else { return #expect(Bool(false)) }
        #expect(held.token.value == "b")
    }

    @Test func refusedTokenIsNotReused() {
        var machine = machine(token("a", for: 1000))
        #expect(machine.refuse(machine.generation, now: start) == true)
        #expect(machine.ask(1, now: start) == .waitAndRefresh)
        #expect(machine.failRefresh(now: start).held == nil)
        #expect(machine.ask(2, now: start) == .waitAndRefresh)
    }

    @Test func acceptedTokenIsReusedAfterAFailedRefresh() {
        var machine = machine(token("a", for: 1000))
        machine.accept(machine.generation)
        #expect(machine.ready(start)?.isAccepted == true)
        #expect(machine.refuse(machine.generation, now: start) == true)
        #expect(machine.ask(1, now: start) == .waitAndRefresh)
        // The refused caller fails. Later callers use the old token, and for a second their refusals cause no refresh.
        #expect(machine.failRefresh(now: start) == TokenMachine.Release(waiters: [1]))
        #expect(machine.ready(start)?.token.value == "a")
        #expect(machine.refuse(machine.generation, now: start) == false)
        #expect(machine.refuse(machine.generation, now: start.addingTimeInterval(1)) == true)
    }

    // MARK: Pauses

    @Test func refreshPausesDoubleFromTheSecondFailure() {
        var machine = machine(nil)
        var now = start
        #expect(machine.ask(1, now: now) == .waitAndRefresh)
        _ = machine.failRefresh(now: now)
        for seconds in [2, 4, 8, 16, 32, 60, 60] {
            #expect(machine.ask(1, now: now) == .waitAndRefresh)
            _ = machine.failRefresh(now: now)
            #expect(machine.ask(1, now: now) == .pause(.seconds(seconds)))
            #expect(machine.ask(1, now: now.addingTimeInterval(1)) == .pause(.seconds(seconds - 1)))
            now.addTimeInterval(Double(seconds))
        }
        #expect(machine.ask(1, now: now) == .waitAndRefresh)
        _ = machine.finishRefresh(token("a"), now: now)
        // A new token ends the pause and resets the count of failures.
        #expect(machine.refuse(machine.generation, now: now) == true)
        #expect(machine.ask(1, now: now) == .waitAndRefresh)
        _ = machine.failRefresh(now: now)
        #expect(machine.ask(1, now: now) == .waitAndRefresh)
    }

    @Test func replacedTokenEndsThePause() {
        var machine = machine(nil)
        for _ in 0..<2 {
            #expect(machine.ask(1, now: start) == .waitAndRefresh)
            _ = machine.failRefresh(now: start)
        }
        #expect(machine.ask(1, now: start) == .pause(.seconds(2)))
        _ = machine.replace(token("mine"), now: start)
        guard case .use = machine.ask(1, now: start) else { return #expect(Bool(false)) }
    }

    @Test func clockSetBackEndsThePause() {
        var machine = machine(nil)
        for _ in 0..<2 {
            #expect(machine.ask(1, now: start) == .waitAndRefresh)
            _ = machine.failRefresh(now: start)
        }
        #expect(machine.ask(1, now: start.addingTimeInterval(-3600)) == .waitAndRefresh)
    }

    @Test func repeatedRefusalsLimitRefreshes() {
        var machine = machine(token("0"))
        var now = start
        for seconds in [1, 2, 4, 8, 16, 32, 60, 60] {
            #expect(machine.refuse(machine.generation, now: now) == true)
            #expect(machine.ask(1, now: now) == .waitAndRefresh)
            _ = machine.finishRefresh(token("next"), now: now)
            // Many requests were resent with the new token and all were refused: that counts once.
            for _ in 0..<10 { machine.recordSecondResponse(machine.generation, isRefused: true, now: now) }
            #expect(machine.refuse(machine.generation, now: now) == false)
            guard case .use = machine.ask(2, now: now) else { return #expect(Bool(false)) }
            #expect(machine.refuse(machine.generation, now: now.addingTimeInterval(Double(seconds) - 0.1)) == false)
            now.addTimeInterval(Double(seconds))
        }
        // An accepted token ends the pause, and so does a replaced token.
        machine.recordSecondResponse(machine.generation, isRefused: false, now: now)
        #expect(machine.refuse(machine.generation, now: now) == true)
        #expect(machine.ask(1, now: now) == .waitAndRefresh)
        _ = machine.finishRefresh(token("last"), now: now)
        let last = machine.generation
        machine.recordSecondResponse(last, isRefused: true, now: now)
        #expect(machine.refuse(last, now: now) == false)
        _ = machine.replace(token("mine"), now: now)
        machine.recordSecondResponse(last, isRefused: true, now: now)
        #expect(machine.refuse(machine.generation, now: now) == true)
    }

    // MARK: Slow refreshes and replaced tokens

    @Test func overdueRefreshReleasesItsWaiters() {
        var machine = machine(nil)
        #expect(machine.ask(1, now: start) == .waitAndRefresh)
        #expect(machine.markOverdue(now: start) == TokenMachine.Release(waiters: [1]))
        #expect(machine.ask(2, now: start) == .fail)
        // The late token is used.
        #expect(machine.finishRefresh(token("a"), now: start).waiters.isEmpty)
        guard case .use = machine.ask(3, now: start) else { return #expect(Bool(false)) }
    }

    @Test func replacedTokenWinsOverTheRefresh() {
        var machine = machine(nil)
        #expect(machine.ask(1, now: start) == .waitAndRefresh)
        let release = machine.replace(token("mine"), now: start)
        #expect(release.waiters == [1] && release.held?.token.value == "mine")
        #expect(machine.finishRefresh(token("late"), now: start) == TokenMachine.Release())
        #expect(machine.token?.value == "mine" && !machine.isRefreshing)
    }

    @Test func logoutDuringARefreshRestartsItForLaterCallers() {
        var machine = machine(nil)
        #expect(machine.ask(1, now: start) == .waitAndRefresh)
        #expect(machine.replace(nil, now: start) == TokenMachine.Release(waiters: [1]))
        #expect(machine.ask(2, now: start) == .wait)
        #expect(machine.finishRefresh(token("of before"), now: start) == TokenMachine.Release(restartsRefresh: true))
        #expect(machine.finishRefresh(token("new"), now: start).waiters == [2])
    }

    @Test func expiredNewTokenIsUsedOnce() {
        var machine = machine(nil)
        #expect(machine.ask(1, now: start) == .waitAndRefresh)
        #expect(machine.finishRefresh(token("a", for: 0), now: start).held?.token.value == "a")
        #expect(machine.ask(2, now: start) == .waitAndRefresh)
    }

    // MARK: Random schedules

    @Test func randomSchedulesKeepAllInvariants() {
        for seed in UInt64(0)..<20_000 {
            var schedule = Schedule(seed) { $0.ask($1, now: $2) }
            if let finding = schedule.run() {
                Issue.record("seed \(seed): \(finding)")
                return
            }
        }
    }

    /// A machine that starts a refresh for every waiting caller runs two refreshes at once; the schedules detect that.
    @Test func schedulesDetectTwoRefreshesAtOnce() {
        let seed = (UInt64(0)..<1000).first { seed in
            var schedule = Schedule(seed) { machine, id, now in
                let answer = machine.ask(id, now: now)
                return answer == .wait ? .waitAndRefresh : answer
            }
            return schedule.run() == "two refreshes at once"
        }
        #expect(seed != nil)
    }

    /// A machine that forgets a waiting caller never releases it; the schedules detect that.
    @Test func schedulesDetectForgottenWaiters() {
        let seed = (UInt64(0)..<1000).first { seed in
            var schedule = Schedule(seed) { machine, id, now in
                let answer = machine.ask(id, now: now)
                if answer == .wait { _ = machine.leave(id) }
                return answer
            }
            return schedule.run()?.contains("callers wait") == true
        }
        #expect(seed != nil)
    }
}

/// Random events for a machine, and the invariants that are checked after each event.
private struct Schedule {
    typealias Ask = (inout TokenMachine, UInt64, Date) -> TokenMachine.Decision

    private let ask: Ask
    private var chance: SeededChance
    private var now = Date(timeIntervalSince1970: 1_700_000_000)
    private var machine: TokenMachine
    private var refreshes = 0
    private var failures = 0
    private var pending: Set<UInt64> = []
    private var holders: [TokenMachine.Held] = []
    private var refused: Set<UInt64> = []
    private var sequenceNumbers: UInt64 = 0

    init(_ seed: UInt64, ask: @escaping Ask) {
        self.ask = ask
        chance = SeededChance(seed)
        machine = TokenMachine(nil, skew: .seconds(30), now: now)
        if Bool.random(using: &chance) { machine = TokenMachine(newToken(), skew: .seconds(30), now: now) }
    }

    /// Runs the schedule and returns the first violated invariant, or nil.
    mutating func run() -> String? {
        for _ in 0..<40 {
            if let finding = step() { return finding }
            if !pending.isEmpty, refreshes != 1 { return "\(pending.count) callers wait without a refresh" }
            if machine.waiting != pending.count { return "\(pending.count) callers wait, not \(machine.waiting)" }
        }
        // The last refreshes must release all waiting callers.
        if refreshes > 0 { _ = finishRefresh() }
        if refreshes > 0 { _ = finishRefresh() }
        return pending.isEmpty && refreshes == 0 ? nil : "\(pending.count) callers wait at the end"
    }

    private mutating func step() -> String? {
        switch Int.random(in: 0..<13, using: &chance) {
        case 0...4: return newAsk()
        case 5: now = now.addingTimeInterval(.random(in: 0...60, using: &chance))
        case 12: recordSecondResponse()
        case 6: leave()
        case 7, 8: return refreshes > 0 ? finishRefresh() : nil
        case 9: return refreshes > 0 ? failRefresh() : nil
        case 10: return Bool.random(using: &chance) ? release(machine.markOverdue(now: now)) : nil
        default: return Int.random(in: 0..<4, using: &chance) == 0 ? replace() : nil
        }
        return nil
    }

    private mutating func newAsk() -> String? {
        sequenceNumbers += 1
        if Bool.random(using: &chance), let known = holders.randomElement(using: &chance) {
            guard machine.refuse(known.generation, now: now) else { return nil }
            refused.insert(known.generation)
        }
        switch ask(&machine, sequenceNumbers, now) {
        case .use(let held): return use(held)
        case .useAndRefresh(let held):
            refreshes += 1
            return refreshes > 1 ? "two refreshes at once" : use(held)
        case .fail: return refreshes == 1 ? nil : "refused without a refresh"
        case .pause(let left):
            if left > .seconds(60) { return "an endless pause" }
            return refreshes == 0 && failures > 1 ? nil : "a pause without two failures"
        case .wait: pending.insert(sequenceNumbers)
        case .waitAndRefresh:
            pending.insert(sequenceNumbers)
            refreshes += 1
            if refreshes > 1 { return "two refreshes at once" }
        }
        return nil
    }

    private mutating func use(_ held: TokenMachine.Held) -> String? {
        holders.append(held)
        if held.generation != machine.generation { return "an old token is given out" }
        if refused.contains(held.generation) { return "a refused token is given out" }
        if let expiry = held.token.expiry, now >= expiry { return "an expired token is given out" }
        return nil
    }

    private mutating func recordSecondResponse() {
        guard let held = holders.randomElement(using: &chance) else { return }
        if Bool.random(using: &chance) { machine.accept(held.generation) }
        machine.recordSecondResponse(held.generation, isRefused: Bool.random(using: &chance), now: now)
    }

    private mutating func leave() {
        guard let one = pending.sorted().randomElement(using: &chance) else { return }
        pending.remove(one)
        _ = machine.leave(one)
    }

    private mutating func finishRefresh() -> String? {
        refreshes -= 1
        let release = machine.finishRefresh(newToken(), now: now)
        return self.release(release)
    }

    private mutating func failRefresh() -> String? {
        refreshes -= 1
        failures += 1
        let release = machine.failRefresh(now: now)
        // A token that other requests had used successfully is used again after the failure.
        if !release.restartsRefresh { refused.remove(machine.generation) }
        return self.release(release)
    }

    private mutating func replace() -> String? {
        release(machine.replace(Bool.random(using: &chance) ? newToken() : nil, now: now))
    }

    private mutating func release(_ release: TokenMachine.Release) -> String? {
        if !release.waiters.isSubset(of: pending) { return "a caller is released twice" }
        pending.subtract(release.waiters)
        if release.restartsRefresh { refreshes += 1 }
        if refreshes > 1 { return "two refreshes at once" }
        guard !release.waiters.isEmpty, let held = release.held else { return nil }
        return use(held)
    }

    private mutating func newToken() -> AccessToken {
        let lifetimes: [Double?] = [nil, 20, 100, 1000]
        let lifetime = lifetimes.randomElement(using: &chance) ?? nil
        return AccessToken("t", expiry: lifetime.map { now.addingTimeInterval($0) })
    }
}
