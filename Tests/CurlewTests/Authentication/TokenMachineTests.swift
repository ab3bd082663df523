// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing

@testable import Curlew

/// The rules by which tokens are given out, in any order that things can happen.
struct TokenMachineTests {
    private let start = Date(timeIntervalSince1970: 1_700_000_000)

    private func token(_ value: String, for seconds: Double? = nil) -> AccessToken {
        AccessToken(value, expiry: seconds.map { start.addingTimeInterval($0) })
    }

    private func machine(_ token: AccessToken?) -> TokenMachine {
        TokenMachine(token, skew: .seconds(30), now: start)
    }

    // MARK: One after the other

    @Test func aGoodTokenIsUsed() {
        var machine = machine(token("a", for: 100))
        guard case .use(let held) = machine.ask(1, now: start) else { return #expect(Bool(false)) }
        #expect(held.token.value == "a" && !machine.isFlying)
    }

    @Test(arguments: [(74.0, true, false), (75, true, true), (99, true, true), (100, false, true), (200, false, true)])
    func aTokenIsReplacedBeforeItExpires(seconds: Double, isUsed: Bool, flies: Bool) {
        // The skew is a quarter of its life here: 25 of 100 seconds.
        var machine = machine(token("a", for: 100))
        let now = start.addingTimeInterval(seconds)
        #expect((machine.ready(now) != nil) == (isUsed && !flies))
        switch machine.ask(1, now: now) {
        case .use: #expect(isUsed && !flies)
        case .useAndFly(let held): #expect(isUsed && flies && held.token.value == "a" && machine.waiting == 0)
        default: #expect(!isUsed && flies && machine.waiting == 1)
        }
        // Nobody else flies, or waits while the old one is good.
        #expect(!flies || (machine.ask(2, now: now) == .wait) == !isUsed)
    }

    @Test func whatFailsEarlyLeavesTheOldTokenInUse() {
        var machine = machine(token("a", for: 1000))
        let due = start.addingTimeInterval(980)
        guard case .useAndFly = machine.ask(1, now: due), case .use = machine.ask(2, now: due) else {
            return #expect(Bool(false))
        }
        #expect(machine.crash(now: due).waiters == [])
        // For a second nobody tries again, then the next does.
        guard case .use = machine.ask(3, now: due), case .useAndFly = machine.ask(4, now: due.addingTimeInterval(1.1))
        else { return #expect(Bool(false)) }
        // Expired, it is no use any more.
        #expect(machine.ask(5, now: start.addingTimeInterval(1001)) == .wait)
        let late = machine.crash(now: start.addingTimeInterval(1001))
        #expect(late.waiters == [5] && late.held == nil)
        #expect(machine.ask(5, now: start.addingTimeInterval(1003)) == .waitAndFly)
    }

    @Test func aRefusalOfAnOlderTokenFetchesNothing() {
        var machine = machine(token("a"))
        let first = machine.generation
        #expect(machine.refuse(first, now: start) == true)
        #expect(machine.ask(1, now: start) == .waitAndFly)
        let release = machine.land(token("b"), now: start)
        #expect(release.waiters == [1] && release.held?.token.value == "b")
        #expect(machine.refuse(first, now: start) == true)
        guard case .use(let held) = machine.ask(2, now: start) else { return #expect(Bool(false)) }
        #expect(held.token.value == "b")
    }

    @Test func aTokenThatWasRefusedIsNotGivenOutAgain() {
        var machine = machine(token("a", for: 1000))
        #expect(machine.refuse(machine.generation, now: start) == true)
        #expect(machine.ask(1, now: start) == .waitAndFly)
        #expect(machine.crash(now: start).held == nil)
        #expect(machine.ask(2, now: start) == .waitAndFly)
    }

    @Test func aTokenThatOthersHadTakenSurvivesAFetchThatFails() {
        var machine = machine(token("a", for: 1000))
        machine.accept(machine.generation)
        #expect(machine.ready(start)?.isAccepted == true)
        #expect(machine.refuse(machine.generation, now: start) == true)
        #expect(machine.ask(1, now: start) == .waitAndFly)
        // Who was refused fails; whoever comes then goes on with it, and is not believed for a while.
        #expect(machine.crash(now: start) == TokenMachine.Release(waiters: [1]))
        #expect(machine.ready(start)?.token.value == "a")
        #expect(machine.refuse(machine.generation, now: start) == false)
        #expect(machine.refuse(machine.generation, now: start.addingTimeInterval(1)) == true)
    }

    // MARK: Pauses

    @Test func fromTheSecondFailureOnThereIsAPause() {
        var machine = machine(nil)
        var now = start
        #expect(machine.ask(1, now: now) == .waitAndFly)
        _ = machine.crash(now: now)
        for seconds in [2, 4, 8, 16, 32, 60, 60] {
            #expect(machine.ask(1, now: now) == .waitAndFly)
            _ = machine.crash(now: now)
            #expect(machine.ask(1, now: now) == .pause(.seconds(seconds)))
            #expect(machine.ask(1, now: now.addingTimeInterval(1)) == .pause(.seconds(seconds - 1)))
            now.addTimeInterval(Double(seconds))
        }
        #expect(machine.ask(1, now: now) == .waitAndFly)
        _ = machine.land(token("a"), now: now)
        // A token ends it; the next failure is the first.
        #expect(machine.refuse(machine.generation, now: now) == true)
        #expect(machine.ask(1, now: now) == .waitAndFly)
        _ = machine.crash(now: now)
        #expect(machine.ask(1, now: now) == .waitAndFly)
    }

    @Test func aTokenPutInByHandEndsThePause() {
        var machine = machine(nil)
        for _ in 0..<2 {
            #expect(machine.ask(1, now: start) == .waitAndFly)
            _ = machine.crash(now: start)
        }
        #expect(machine.ask(1, now: start) == .pause(.seconds(2)))
        _ = machine.replace(token("mine"), now: start)
        guard case .use = machine.ask(1, now: start) else { return #expect(Bool(false)) }
    }

    @Test func aClockThatIsSetBackEndsThePause() {
        var machine = machine(nil)
        for _ in 0..<2 {
            #expect(machine.ask(1, now: start) == .waitAndFly)
            _ = machine.crash(now: start)
        }
        #expect(machine.ask(1, now: start.addingTimeInterval(-3600)) == .waitAndFly)
    }

    @Test func aServerThatRefusesEveryTokenGetsFewOfThem() {
        var machine = machine(token("0"))
        var now = start
        for seconds in [1, 2, 4, 8, 16, 32, 60, 60] {
            #expect(machine.refuse(machine.generation, now: now) == true)
            #expect(machine.ask(1, now: now) == .waitAndFly)
            _ = machine.land(token("next"), now: now)
            // Many were sent again with the new token, and all were refused: that counts once.
            for _ in 0..<10 { machine.judge(machine.generation, isRefused: true, now: now) }
            #expect(machine.refuse(machine.generation, now: now) == false)
            guard case .use = machine.ask(2, now: now) else { return #expect(Bool(false)) }
            #expect(machine.refuse(machine.generation, now: now.addingTimeInterval(Double(seconds) - 0.1)) == false)
            now.addTimeInterval(Double(seconds))
        }
        // One that is taken ends it, and so does one put in by hand.
        machine.judge(machine.generation, isRefused: false, now: now)
        #expect(machine.refuse(machine.generation, now: now) == true)
        #expect(machine.ask(1, now: now) == .waitAndFly)
        _ = machine.land(token("last"), now: now)
        let last = machine.generation
        machine.judge(last, isRefused: true, now: now)
        #expect(machine.refuse(last, now: now) == false)
        _ = machine.replace(token("mine"), now: now)
        machine.judge(last, isRefused: true, now: now)
        #expect(machine.refuse(machine.generation, now: now) == true)
    }

    // MARK: Slow flights, and tokens put in by hand

    @Test func aSlowFlightIsWaitedForByNobody() {
        var machine = machine(nil)
        #expect(machine.ask(1, now: start) == .waitAndFly)
        #expect(machine.isLate(now: start) == TokenMachine.Release(waiters: [1]))
        #expect(machine.ask(2, now: start) == .fail)
        // What it brings in the end is welcome.
        #expect(machine.land(token("a"), now: start).waiters.isEmpty)
        guard case .use = machine.ask(3, now: start) else { return #expect(Bool(false)) }
    }

    @Test func aTokenPutInByHandWins() {
        var machine = machine(nil)
        #expect(machine.ask(1, now: start) == .waitAndFly)
        let release = machine.replace(token("mine"), now: start)
        #expect(release.waiters == [1] && release.held?.token.value == "mine")
        #expect(machine.land(token("late"), now: start) == TokenMachine.Release())
        #expect(machine.token?.value == "mine" && !machine.isFlying)
    }

    @Test func whoComesAfterALogOutGetsAFlightOfHisOwn() {
        var machine = machine(nil)
        #expect(machine.ask(1, now: start) == .waitAndFly)
        #expect(machine.replace(nil, now: start) == TokenMachine.Release(waiters: [1]))
        #expect(machine.ask(2, now: start) == .wait)
        #expect(machine.land(token("of before"), now: start) == TokenMachine.Release(fliesAgain: true))
        #expect(machine.land(token("new"), now: start).waiters == [2])
    }

    @Test func aTokenThatNeverLastsIsUsedOnce() {
        var machine = machine(nil)
        #expect(machine.ask(1, now: start) == .waitAndFly)
        #expect(machine.land(token("a", for: 0), now: start).held?.token.value == "a")
        #expect(machine.ask(2, now: start) == .waitAndFly)
    }

    // MARK: In any order

    @Test func schedules() {
        for seed in UInt64(0)..<20_000 {
            var schedule = Schedule(seed) { $0.ask($1, now: $2) }
            if let finding = schedule.run() {
                Issue.record("seed \(seed): \(finding)")
                return
            }
        }
    }

    /// Whoever looks first and acts later lets two flights begin; the schedules see that.
    @Test func schedulesFindTwoFlights() {
        let seed = (UInt64(0)..<1000).first { seed in
            var schedule = Schedule(seed) { machine, id, now in
                let answer = machine.ask(id, now: now)
                return answer == .wait ? .waitAndFly : answer
            }
            return schedule.run() == "two flights at once"
        }
        #expect(seed != nil)
    }

    /// Whoever forgets one that waits lets it wait for ever; the schedules see that, too.
    @Test func schedulesFindTheForgotten() {
        let seed = (UInt64(0)..<1000).first { seed in
            var schedule = Schedule(seed) { machine, id, now in
                let answer = machine.ask(id, now: now)
                if answer == .wait { _ = machine.leave(id) }
                return answer
            }
            return schedule.run()?.contains("wait for nothing") == true
        }
        #expect(seed != nil)
    }
}

/// What happens to a machine in an order drawn by chance, and what must hold after each step.
private struct Schedule {
    typealias Ask = (inout TokenMachine, UInt64, Date) -> TokenMachine.Answer

    private let ask: Ask
    private var chance: SeededChance
    private var now = Date(timeIntervalSince1970: 1_700_000_000)
    private var machine: TokenMachine
    private var flights = 0
    private var failures = 0
    private var pending: Set<UInt64> = []
    private var holders: [TokenMachine.Held] = []
    private var refused: Set<UInt64> = []
    private var tickets: UInt64 = 0

    init(_ seed: UInt64, ask: @escaping Ask) {
        self.ask = ask
        chance = SeededChance(seed)
        machine = TokenMachine(nil, skew: .seconds(30), now: now)
        if Bool.random(using: &chance) { machine = TokenMachine(newToken(), skew: .seconds(30), now: now) }
    }

    /// What went wrong; nil for nothing.
    mutating func run() -> String? {
        for _ in 0..<40 {
            if let finding = step() { return finding }
            if !pending.isEmpty, flights != 1 { return "\(pending.count) wait for nothing" }
            if machine.waiting != pending.count { return "\(pending.count) wait for nothing it knows of" }
        }
        // In the end everybody goes on.
        if flights > 0 { _ = land() }
        if flights > 0 { _ = land() }
        return pending.isEmpty && flights == 0 ? nil : "\(pending.count) wait for nothing in the end"
    }

    private mutating func step() -> String? {
        switch Int.random(in: 0..<13, using: &chance) {
        case 0...4: return newAsk()
        case 5: now = now.addingTimeInterval(.random(in: 0...60, using: &chance))
        case 12: judge()
        case 6: leave()
        case 7, 8: return flights > 0 ? land() : nil
        case 9: return flights > 0 ? crash() : nil
        case 10: return Bool.random(using: &chance) ? release(machine.isLate(now: now)) : nil
        default: return Int.random(in: 0..<4, using: &chance) == 0 ? replace() : nil
        }
        return nil
    }

    private mutating func newAsk() -> String? {
        tickets += 1
        if Bool.random(using: &chance), let known = holders.randomElement(using: &chance) {
            guard machine.refuse(known.generation, now: now) else { return nil }
            refused.insert(known.generation)
        }
        switch ask(&machine, tickets, now) {
        case .use(let held): return use(held)
        case .useAndFly(let held):
            flights += 1
            return flights > 1 ? "two flights at once" : use(held)
        case .fail: return flights == 1 ? nil : "refused without a flight"
        case .pause(let left):
            if left > .seconds(60) { return "an endless pause" }
            return flights == 0 && failures > 1 ? nil : "a pause without two failures"
        case .wait: pending.insert(tickets)
        case .waitAndFly:
            pending.insert(tickets)
            flights += 1
            if flights > 1 { return "two flights at once" }
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

    private mutating func judge() {
        guard let held = holders.randomElement(using: &chance) else { return }
        if Bool.random(using: &chance) { machine.accept(held.generation) }
        machine.judge(held.generation, isRefused: Bool.random(using: &chance), now: now)
    }

    private mutating func leave() {
        guard let one = pending.sorted().randomElement(using: &chance) else { return }
        pending.remove(one)
        _ = machine.leave(one)
    }

    private mutating func land() -> String? {
        flights -= 1
        let release = machine.land(newToken(), now: now)
        return self.release(release)
    }

    private mutating func crash() -> String? {
        flights -= 1
        failures += 1
        let release = machine.crash(now: now)
        // What others had taken is given out again then.
        if !release.fliesAgain { refused.remove(machine.generation) }
        return self.release(release)
    }

    private mutating func replace() -> String? {
        release(machine.replace(Bool.random(using: &chance) ? newToken() : nil, now: now))
    }

    private mutating func release(_ release: TokenMachine.Release) -> String? {
        if !release.waiters.isSubset(of: pending) { return "somebody is released twice" }
        pending.subtract(release.waiters)
        if release.fliesAgain { flights += 1 }
        if flights > 1 { return "two flights at once" }
        guard !release.waiters.isEmpty, let held = release.held else { return nil }
        return use(held)
    }

    private mutating func newToken() -> AccessToken {
        let lifetimes: [Double?] = [nil, 20, 100, 1000]
        let lifetime = lifetimes.randomElement(using: &chance) ?? nil
        return AccessToken("t", expiry: lifetime.map { now.addingTimeInterval($0) })
    }
}
