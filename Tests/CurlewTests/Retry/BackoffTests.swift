// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import FoundationEssentials
import Testing

@testable import Curlew

@Suite struct BackoffTests {
    @Test func backoffDoublesUpToTheLongestWait() {
        let backoff = RetryPolicy.Backoff(first: .milliseconds(500), longest: .seconds(3))
        let ceilings = (1...6).map { backoff.ceiling(after: $0) }
        #expect(
            ceilings == [
                .milliseconds(500), .seconds(1), .seconds(2), .seconds(3), .seconds(3), .seconds(3),
            ])
        #expect(backoff.ceiling(after: .max) == .seconds(3))
        #expect(backoff.ceiling(after: 0) == .milliseconds(500))
    }

    @Test func jitterScalesTheWait() {
        let backoff = RetryPolicy.Backoff(first: .seconds(4), longest: .seconds(4))
        #expect(backoff.wait(after: 1, chance: 0) == .zero)
        #expect(backoff.wait(after: 1, chance: 0.25) == .seconds(1))
        #expect(backoff.wait(after: 1, chance: 1) == .seconds(4))
        #expect(backoff.wait(after: 1, chance: 7) == .seconds(4))
        #expect(backoff.wait(after: 1, chance: -1) == .zero)
    }

    @Test func jitterNeverGivesLessThanTheLeastWait() {
        let backoff = RetryPolicy.Backoff(first: .seconds(1), longest: .seconds(4), least: .milliseconds(200))
        #expect(backoff.wait(after: 1, chance: 0) == .milliseconds(200))
        #expect(backoff.wait(after: 1, chance: -1) == .milliseconds(200))
        #expect(backoff.wait(after: 1, chance: 0.5) == .milliseconds(600))
        #expect(backoff.wait(after: 1, chance: 1) == .seconds(1) && backoff.wait(after: 9, chance: 1) == .seconds(4))
        let high = RetryPolicy.Backoff(first: .milliseconds(10), longest: .seconds(4), least: .seconds(1))
        #expect(high.ceiling(after: 1) == .seconds(1) && high.wait(after: 1, chance: 0.3) == .seconds(1))
        #expect(high.wait(after: 9, chance: 0) == .seconds(1) && high.ceiling(after: 9) > .seconds(2))
        #expect(RetryPolicy.Backoff(first: .zero, least: .seconds(1)).wait(after: 3, chance: 0) == .seconds(1))
        #expect(RetryPolicy.Backoff(longest: .seconds(2), least: .seconds(9)).wait(after: 1, chance: 1) == .seconds(2))
        #expect(RetryPolicy.Backoff(least: .seconds(-1)).wait(after: 1, chance: 0) == .zero)
        #expect(RetryPolicy.Backoff.none.least == .zero && RetryPolicy.Backoff().least == .zero)
    }

    @Test func invalidBackoffValuesAreClamped() {
        #expect(RetryPolicy.Backoff.none.ceiling(after: 3) == .zero)
        #expect(RetryPolicy.Backoff(first: .seconds(-1)).ceiling(after: 1) == .zero)
        for factor in [Double.nan, -Double.infinity, 0, -3] {
            #expect(RetryPolicy.Backoff(first: .seconds(1), factor: factor).ceiling(after: 9) == .seconds(1))
        }
        #expect(
            RetryPolicy.Backoff(first: .seconds(1), factor: 1).ceiling(after: .max) == .seconds(1),
            "the computation ends")
        #expect(RetryPolicy.Backoff(first: .seconds(1), factor: 1.0000001).ceiling(after: .max) == .seconds(30))
        #expect(RetryPolicy.Backoff(first: .seconds(9), longest: .seconds(3)).ceiling(after: 1) == .seconds(3))
    }

    @Test func backoffRoundTripsThroughJSON() throws {
        let backoff = RetryPolicy.Backoff(
            first: .milliseconds(250), factor: 1.5, longest: .seconds(9), least: .milliseconds(20))
        let data = try JSONEncoder().encode(backoff)
        #expect(try JSONDecoder().decode(RetryPolicy.Backoff.self, from: data) == backoff)
        #expect(try JSONDecoder().decode(RetryPolicy.Backoff.self, from: Data("{}".utf8)) == RetryPolicy.Backoff())
        #expect(throws: DecodingError.self) {
            try JSONDecoder().decode(RetryPolicy.Backoff.self, from: Data(#"{"first":-1}"#.utf8))
        }
    }
}
