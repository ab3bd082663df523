// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import FoundationEssentials
import Testing

@testable import Curlew

@Suite struct BackOffTests {
    @Test func itDoublesUpToTheLongest() {
        let backOff = BackOff(first: .milliseconds(500), longest: .seconds(3))
        let ceilings = (1...6).map { backOff.ceiling(after: $0) }
        #expect(
            ceilings == [
                .milliseconds(500), .seconds(1), .seconds(2), .seconds(3), .seconds(3), .seconds(3),
            ])
        #expect(backOff.ceiling(after: .max) == .seconds(3))
        #expect(backOff.ceiling(after: 0) == .milliseconds(500))
    }

    @Test func chanceTakesAPart() {
        let backOff = BackOff(first: .seconds(4), longest: .seconds(4))
        #expect(backOff.wait(after: 1, chance: 0) == .zero)
        #expect(backOff.wait(after: 1, chance: 0.25) == .seconds(1))
        #expect(backOff.wait(after: 1, chance: 1) == .seconds(4))
        #expect(backOff.wait(after: 1, chance: 7) == .seconds(4))
        #expect(backOff.wait(after: 1, chance: -1) == .zero)
    }

    @Test func chanceNeverGivesLessThanTheLeast() {
        let backOff = BackOff(first: .seconds(1), longest: .seconds(4), least: .milliseconds(200))
        #expect(backOff.wait(after: 1, chance: 0) == .milliseconds(200))
        #expect(backOff.wait(after: 1, chance: -1) == .milliseconds(200))
        #expect(backOff.wait(after: 1, chance: 0.5) == .milliseconds(600))
        #expect(backOff.wait(after: 1, chance: 1) == .seconds(1) && backOff.wait(after: 9, chance: 1) == .seconds(4))
        let high = BackOff(first: .milliseconds(10), longest: .seconds(4), least: .seconds(1))
        #expect(high.ceiling(after: 1) == .seconds(1) && high.wait(after: 1, chance: 0.3) == .seconds(1))
        #expect(high.wait(after: 9, chance: 0) == .seconds(1) && high.ceiling(after: 9) > .seconds(2))
        #expect(BackOff(first: .zero, least: .seconds(1)).wait(after: 3, chance: 0) == .seconds(1))
        #expect(BackOff(longest: .seconds(2), least: .seconds(9)).wait(after: 1, chance: 1) == .seconds(2))
        #expect(BackOff(least: .seconds(-1)).wait(after: 1, chance: 0) == .zero)
        #expect(BackOff.none.least == .zero && BackOff().least == .zero)
    }

    @Test func whatMakesNoSenseIsHarmless() {
        #expect(BackOff.none.ceiling(after: 3) == .zero)
        #expect(BackOff(first: .seconds(-1)).ceiling(after: 1) == .zero)
        for factor in [Double.nan, -Double.infinity, 0, -3] {
            #expect(BackOff(first: .seconds(1), factor: factor).ceiling(after: 9) == .seconds(1))
        }
        #expect(BackOff(first: .seconds(1), factor: 1).ceiling(after: .max) == .seconds(1), "it ends")
        #expect(BackOff(first: .seconds(1), factor: 1.0000001).ceiling(after: .max) == .seconds(30))
        #expect(BackOff(first: .seconds(9), longest: .seconds(3)).ceiling(after: 1) == .seconds(3))
    }

    @Test func itIsReadAndWritten() throws {
        let backOff = BackOff(first: .milliseconds(250), factor: 1.5, longest: .seconds(9), least: .milliseconds(20))
        let data = try JSONEncoder().encode(backOff)
        #expect(try JSONDecoder().decode(BackOff.self, from: data) == backOff)
        #expect(try JSONDecoder().decode(BackOff.self, from: Data("{}".utf8)) == BackOff())
        #expect(throws: DecodingError.self) {
            try JSONDecoder().decode(BackOff.self, from: Data(#"{"first":-1}"#.utf8))
        }
    }
}
