// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Curlew

/// `RetryBudget` at times that the test chooses.
@Suite struct RetryBudgetTests {
    private func left(_ budget: RetryBudget, _ origin: String = "o", at time: Duration) -> Int {
        var count = 0
        while budget.withdraw(for: origin, at: time) { count += 1 }
        return count
    }

    @Test func reserveRefillsWithTime() {
        let budget = RetryBudget()
        #expect(left(budget, at: .zero) == 10)
        #expect(left(budget, at: .milliseconds(900)) == 0)
        #expect(left(budget, at: .milliseconds(1900)) == 1)
        #expect(left(budget, at: .seconds(1000)) == 10)
    }

    @Test func requestsEarnRetriesUpToTheCapacity() {
        let budget = RetryBudget()
        #expect(left(budget, at: .zero) == 10)
        for _ in 0..<40 { budget.deposit(0.25, for: "o", at: .zero) }
        #expect(left(budget, at: .zero) == 10)
        for _ in 0..<10_000 { budget.deposit(0.2, for: "o", at: .zero) }
        #expect(left(budget, at: .zero) == 100)
    }

    @Test func successesEarnRetriesOnAverage() {
        let budget = RetryBudget()
        let origins = ["a", "b", "c"]
        for origin in origins { #expect(left(budget, origin, at: .zero) == 10) }
        for _ in 0..<250 { for origin in origins { budget.earn(0.2, for: origin) } }
        for origin in origins {
            // About fifty each; chance and a slow machine change the number.
            let earned = left(budget, origin, at: .zero)
            #expect(earned > 25 && earned < 85, "\(origin): \(earned)")
        }
    }

    @Test func unusedRetriesAreRefunded() {
        let budget = RetryBudget()
        #expect(left(budget, at: .zero) == 10)
        for _ in 0..<3 { budget.refund("o", at: .zero) }
        #expect(left(budget, at: .zero) == 3)
    }

    @Test func earlierTimesEarnNothing() {
        let budget = RetryBudget()
        #expect(left(budget, at: .zero) == 10)
        #expect(left(budget, at: .seconds(3)) == 3)
        #expect(left(budget, at: .seconds(1)) == 0)
        #expect(left(budget, at: .seconds(3)) == 0)
    }

    @Test func originsHaveSeparateBudgets() {
        let budget = RetryBudget()
        #expect(left(budget, "a", at: .zero) == 10)
        #expect(left(budget, "b", at: .zero) == 10)
        #expect(left(budget, "a", at: .zero) == 0)
    }

    @Test func oldestOriginsAreForgotten() {
        let budget = RetryBudget()
        #expect(left(budget, "first", at: .zero) == 10)
        for number in 0..<256 { _ = budget.withdraw(for: "\(number)", at: .zero) }
        #expect(left(budget, "first", at: .zero) == 10, "the origin was forgotten, so it has a new reserve")
    }

    @Test func withdrawalsCanLeaveAReserve() {
        let budget = RetryBudget()
        for _ in 0..<5 { #expect(budget.withdraw(for: "a", leaving: 5, at: .zero)) }
        #expect(!budget.withdraw(for: "a", leaving: 5, at: .zero))
        #expect(budget.withdraw(for: "a", at: .zero), "the reserve is left for other requests")
    }
}
