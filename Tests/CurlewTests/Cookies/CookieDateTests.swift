// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing

@testable import Curlew

/// The date parser of RFC 6265bis §5.1.1.
struct CookieDateTests {
    /// 2026-01-02 03:04:05 UTC.
    private static let expected: Int64 = 1_767_323_045

    @Test(arguments: [
        "Fri, 02 Jan 2026 03:04:05 GMT", "Friday, 02-Jan-26 03:04:05 GMT", "Fri Jan  2 03:04:05 2026",
        "2 Jan 2026 3:4:5", "03:04:05 2 january 2026", "2 JAN 26 03:04:05", "jan-2-2026-03:04:05",
        "2026 Jan 2 03:04:05", "2th Jan 2026x 03:04:05x", "x;2,Jan/2026 03:04:05 PST", "02 Janx 2026 03:04:05",
        "\t2\tJan\t2026\t03:04:05", "3:04:05 2 Jan 2026 23:59:59",
    ])
    func partsMayHaveAnyOrder(_ text: String) {
        #expect(CookieDate.seconds(text) == Self.expected)
    }

    @Test(arguments: [
        ("1 Jan 69 00:00:00", 2069), ("1 Jan 70 00:00:00", 1970), ("1 Jan 99 00:00:00", 1999),
        ("1 Jan 00 00:00:00", 2000), ("1 Jan 1601 00:00:00", 1601), ("1 Jan 9999 00:00:00", 9999),
        ("1 Jan 100 00:00:00", nil), ("1 Jan 1600 00:00:00", nil), ("1 Jan 10000 00:00:00", nil),
    ])
    func yearHasTwoToFourDigits(_ text: String, _ year: Int?) {
        let expected = year.flatMap { HTTPDate.seconds(year: $0, month: 1, day: 1) }
        #expect(CookieDate.seconds(text) == expected)
    }

    @Test(arguments: [
        "", " ", "soon", "Jan", "2 Jan 2026", "Jan 2026 03:04:05", "2 2026 03:04:05", "2 Jan 03:04:05",
        "0 Jan 2026 03:04:05", "32 Jan 2026 03:04:05", "30 Feb 2026 03:04:05", "29 Feb 2026 03:04:05",
        "31 Apr 2026 03:04:05", "2 Jan 2026 24:04:05", "2 Jan 2026 03:60:05", "2 Jan 2026 03:04:60",
        "2 Jan 2026 03:04", "2 Jan 2026 03:04:", "2 Jan 2026 03::05", "2 Jan 2026 003:04:05", "2 Jan 2026 03:004:05",
        "2 Jan 2026 03:04:005", "2 Ja 2026 03:04:05", "2 Jän 2026 03:04:05", "222 Jan 2026 03:04:05",
        "２ Jan 2026 03:04:05",
    ])
    func otherTextsAreNoDates(_ text: String) { #expect(CookieDate.seconds(text) == nil) }

    @Test func leapDaysExistInLeapYears() {
        #expect(CookieDate.seconds("29 Feb 2024 00:00:00") == 1_709_164_800)
        #expect(CookieDate.seconds("29 Feb 2000 00:00:00") == 951_782_400)
        #expect(CookieDate.seconds("29 Feb 1900 00:00:00") == nil)
    }

    /// Each date that HTTP allows has the same value for cookies.
    @Test func httpDatesAreCookieDates() {
        var chance = SeededChance(25)
        for _ in 0..<1000 {
            let seconds = Int64.random(in: -1_000_000_000...7_000_000_000, using: &chance)
            #expect(CookieDate.seconds(HTTPDate(seconds: seconds).description) == seconds)
        }
    }
}
