// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing

@testable import Curlew

@Suite struct HTTPDateTests {
    /// The three date formats of the example in RFC 9110 §5.6.7.
    @Test(arguments: [
        "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994",
    ])
    func rfc9110FormatsAreParsed(text: String) {
        #expect(HTTPDate(text)?.seconds == 784_111_777)
        #expect(HTTPDate(text)?.description == "Sun, 06 Nov 1994 08:49:37 GMT")
    }

    @Test(arguments: [
        "", "GMT", "Sun, 06 Nov 1994 08:49:37", "Sun, 06 Nov 1994 08:49:37 UTC", "Sun, 6 Nov 1994 08:49:37 GMT",
        "Sun, 31 Nov 1994 08:49:37 GMT", "Sun, 29 Feb 1900 00:00:00 GMT", "Sun, 06 nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 24:00:00 GMT", "Sun, 06 Nov 1994 08:60:00 GMT", "Sun, 06 Nov 1994 08:49:61 GMT",
        "Sun, 06 Nov 1994 8:49:37 GMT", "Sun, 06 Nov 94 08:49:37 GMT", "Xyz, 06 Nov 1994 08:49:37 GMT",
        "Sun, 00 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49 GMT", "Sunday, 06-Nov-1994 08:49:37 GMT",
        "Sunday, 06-Nov 08:49:37 GMT", "Sunday, 31-Feb-94 08:49:37 GMT", "Sun Nov 006 08:49:37 1994",
        "Sun Nov 6 08:49:37 94", "Sun, 06 Nov ١٩٩٤ 08:49:37 GMT", "-1", "784111777",
    ])
    func invalidDatesAreRejected(text: String) { #expect(HTTPDate(text) == nil) }

    @Test func leapSecondIsTheNextSecond() {
        #expect(HTTPDate("Sat, 31 Dec 2016 23:59:60 GMT") == HTTPDate("Sun, 01 Jan 2017 00:00:00 GMT"))
    }

    @Test func twoDigitYearsMoreThanFiftyYearsAheadArePast() throws {
        let now = try #require(HTTPDate("Sun, 22 Nov 2026 00:00:00 GMT"))
        #expect(HTTPDate("Sunday, 06-Nov-94 08:49:37 GMT", now: now)?.description == "Sun, 06 Nov 1994 08:49:37 GMT")
        #expect(HTTPDate("Friday, 06-Nov-26 08:49:37 GMT", now: now)?.description == "Fri, 06 Nov 2026 08:49:37 GMT")
        #expect(HTTPDate("Friday, 06-Nov-76 08:49:37 GMT", now: now)?.description == "Fri, 06 Nov 2076 08:49:37 GMT")
        #expect(HTTPDate("Sunday, 06-Nov-77 08:49:37 GMT", now: now)?.description == "Sun, 06 Nov 1977 08:49:37 GMT")
    }

    @Test func randomDatesRoundTrip() {
        var chance = SeededChance(9)
        for _ in 0..<3000 {
            let date = HTTPDate(seconds: Int64.random(in: -60_000_000_000...250_000_000_000, using: &chance))
            let text = date.description
            #expect(HTTPDate(text) == date, "\(text)")
        }
        #expect(HTTPDate(seconds: 0).description == "Thu, 01 Jan 1970 00:00:00 GMT")
        #expect(HTTPDate(seconds: -1).description == "Wed, 31 Dec 1969 23:59:59 GMT")
        #expect(HTTPDate(Date(timeIntervalSince1970: 951_782_400.9)).description == "Tue, 29 Feb 2000 00:00:00 GMT")
    }

    @Test func calendarEqualsFoundations() {
        var chance = SeededChance(10)
        for _ in 0..<1000 {
            let seconds = Int64.random(in: 0...4_000_000_000, using: &chance)
            let iso = Date(timeIntervalSince1970: Double(seconds)).formatted(.iso8601)
            let written = HTTPDate(seconds: seconds).description.split(separator: " ")
            #expect(iso.hasPrefix(written[3]) && iso.hasSuffix("-\(written[1])T\(written[4])Z"), "\(iso)")
        }
    }
}
