// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Curlew

/// How long responses are fresh (RFC 9111 §4.2), as a table.
struct CacheFreshnessTests {
    @Test(arguments: maxAge) func maxAgeDecides(_ row: CacheCase) { row.check() }
    @Test(arguments: expires) func expiresDecides(_ row: CacheCase) { row.check() }
    @Test(arguments: heuristics) func heuristicIsUsedWithoutExplicitFreshness(_ row: CacheCase) { row.check() }

    static let maxAge: [CacheCase] = [
        CacheCase("RFC 9111 §4.2 a response is fresh at once", [.cacheControl: "max-age=60"], .hit()),
        CacheCase(
            "RFC 9111 §4.2 a response is fresh before its lifetime ends", [.cacheControl: "max-age=60"], age: 59, .hit()
        ),
        CacheCase(
            "RFC 9111 §4.2 a response is fresh half a second before its end", [.cacheControl: "max-age=60"], age: 59.5,
            .hit()),
        CacheCase(
            "RFC 9111 §4.2 a response is stale when age and lifetime are equal",
            [.cacheControl: "max-age=60", .etag: "\"1\""], age: 60, .validate(.stale)),
        CacheCase(
            "RFC 9111 §4.2 a response is stale after its lifetime", [.cacheControl: "max-age=60", .etag: "\"1\""],
            age: 61, .validate(.stale)),
        CacheCase(
            "RFC 9111 §4.2 a stale response without validators is requested anew", [.cacheControl: "max-age=60"],
            age: 61, .forward(.stale)),
        CacheCase("RFC 9111 §5.2.2.1 max-age zero", [.cacheControl: "max-age=0", .etag: "\"1\""], .validate(.stale)),
        CacheCase("RFC 9111 §5.2.2.1 max-age with leading zeros", [.cacheControl: "max-age=0060"], age: 59, .hit()),
        CacheCase("RFC 9111 §5.2 directive names match any case", [.cacheControl: "MAX-Age=60"], age: 59, .hit()),
        CacheCase("RFC 9111 §5.2.2.1 a quoted max-age is accepted", [.cacheControl: "max-age=\"60\""], age: 59, .hit()),
        CacheCase(
            "RFC 9111 §5.2.2.1 a quoted max-age ends", [.cacheControl: "max-age=\"60\"", .etag: "\"1\""], age: 60,
            .validate(.stale)),
        CacheCase(
            "RFC 9111 §4.2.1 an empty max-age is stale", [.cacheControl: "max-age=", .etag: "\"1\""], .validate(.stale)
        ),
        CacheCase(
            "RFC 9111 §4.2.1 max-age without a value is stale", [.cacheControl: "max-age", .etag: "\"1\""],
            .validate(.stale)),
        CacheCase(
            "RFC 9111 §4.2.1 a negative max-age is stale", [.cacheControl: "max-age=-60", .etag: "\"1\""],
            .validate(.stale)),
        CacheCase(
            "RFC 9111 §4.2.1 a max-age with a plus sign is stale", [.cacheControl: "max-age=+60", .etag: "\"1\""],
            .validate(.stale)),
        CacheCase(
            "RFC 9111 §4.2.1 a max-age with a fraction is stale", [.cacheControl: "max-age=60.0", .etag: "\"1\""],
            .validate(.stale)),
        CacheCase(
            "RFC 9111 §4.2.1 a max-age with letters is stale", [.cacheControl: "max-age=60s", .etag: "\"1\""],
            .validate(.stale)),
        CacheCase(
            "RFC 9111 §4.2.1 a hexadecimal max-age is stale", [.cacheControl: "max-age=0x3C", .etag: "\"1\""],
            .validate(.stale)),
        CacheCase(
            "RFC 9111 §4.2.1 a max-age with an exponent is stale", [.cacheControl: "max-age=6e1", .etag: "\"1\""],
            .validate(.stale)),
        CacheCase(
            "RFC 9111 §4.2.1 a max-age in apostrophes is stale", [.cacheControl: "max-age='60'", .etag: "\"1\""],
            .validate(.stale)),
        CacheCase(
            "RFC 9111 §4.2.1 a max-age with other digits is stale", [.cacheControl: "max-age=６０", .etag: "\"1\""],
            .validate(.stale)),
        CacheCase(
            "RFC 9111 §4.2.1 an invalid max-age wins over Expires",
            [.cacheControl: "max-age=x", .expires: CacheCase.date(60), .etag: "\"1\""], .validate(.stale)),
        CacheCase(
            "RFC 9111 §4.2.1 an invalid max-age leaves no heuristic",
            [.cacheControl: "max-age=x", .lastModified: CacheCase.date(-600)], .validate(.stale)),
        CacheCase(
            "RFC 9111 §4.2.1 the first of repeated directives counts", [.cacheControl: "max-age=60, max-age=10"],
            age: 59, .hit()),
        CacheCase(
            "RFC 9111 §4.2.1 the first of repeated directives ends",
            [.cacheControl: "max-age=10, max-age=60", .etag: "\"1\""], age: 10, .validate(.stale)),
        CacheCase(
            "RFC 9111 §4.2.1 the first of repeated fields counts",
            [.cacheControl: "max-age=60", .cacheControl: "max-age=10"], age: 59, .hit()),
        CacheCase(
            "RFC 9111 §4.2.1 repeated directives match any case",
            [.cacheControl: "max-age=10, Max-Age=60", .etag: "\"1\""], age: 10, .validate(.stale)),
        CacheCase(
            "RFC 9111 §4.2.1 no-cache wins over max-age", [.cacheControl: "max-age=60, no-cache", .etag: "\"1\""],
            .validate(.miss)),
        CacheCase(
            "RFC 9111 §1.2.2 a max-age above 32 bits is very long", [.cacheControl: "max-age=2147483649"],
            age: 2_000_000_000, .hit()),
        CacheCase(
            "RFC 9111 §1.2.2 a max-age above 64 bits is very long", [.cacheControl: "max-age=99999999999999999999"],
            age: 2_000_000_000, .hit()),
        CacheCase(
            "RFC 9111 §1.2.2 a max-age of forty digits is very long",
            [.cacheControl: "max-age=9999999999999999999999999999999999999999"], age: 86_400, .hit()),
        CacheCase("RFC 9111 §5.2 empty members are skipped", [.cacheControl: ",, ,max-age=60,"], age: 59, .hit()),
        CacheCase("RFC 9111 §5.2 an invalid member is skipped", [.cacheControl: "@, max-age=60"], age: 59, .hit()),
        CacheCase(
            "RFC 9111 §5.2 a directive in a quoted value does not count",
            [.cacheControl: "x=\"max-age=60\", max-age=10", .etag: "\"1\""], age: 10, .validate(.stale)),
        CacheCase(
            "RFC 9111 §5.2 an escaped quote does not end a quoted value",
            [.cacheControl: "x=\"a\\\", max-age=60\", max-age=10", .etag: "\"1\""], age: 10, .validate(.stale)),
        CacheCase(
            "RFC 9111 §5.2 a directive whose name ends with max-age is another",
            [.cacheControl: "x-max-age=60", .etag: "\"1\""], .validate(.stale)),
        CacheCase(
            "RFC 9111 §5.2 a semicolon separates nothing", [.cacheControl: "max-age=60; public", .etag: "\"1\""],
            .validate(.stale)),
        CacheCase(
            "RFC 9111 §4.2.1 max-age wins over a later Expires",
            [.cacheControl: "max-age=10", .expires: CacheCase.date(60), .etag: "\"1\""], age: 10, .validate(.stale)),
        CacheCase(
            "RFC 9111 §5.3 max-age wins over an earlier Expires",
            [.cacheControl: "max-age=60", .expires: CacheCase.date(10)], age: 59, .hit()),
        CacheCase(
            "RFC 9111 §5.3 max-age wins over an invalid Expires", [.cacheControl: "max-age=60", .expires: "0"], age: 59,
            .hit()),
        CacheCase(
            "RFC 9111 §5.3 max-age zero wins over Expires",
            [.cacheControl: "max-age=0", .expires: CacheCase.date(60), .etag: "\"1\""], .validate(.stale)),
    ]

    static let expires: [CacheCase] = [
        CacheCase("RFC 9111 §5.3 Expires in the future", [.expires: CacheCase.date(60)], age: 59, .hit()),
        CacheCase(
            "RFC 9111 §5.3 Expires has come", [.expires: CacheCase.date(60), .etag: "\"1\""], age: 60, .validate(.stale)
        ),
        CacheCase(
            "RFC 9111 §5.3 Expires in the past", [.expires: CacheCase.date(-60), .etag: "\"1\""], .validate(.stale)),
        CacheCase(
            "RFC 9111 §5.3 Expires equal to Date", [.expires: CacheCase.date(0), .etag: "\"1\""], .validate(.stale)),
        CacheCase("RFC 9111 §5.3 Expires is zero", [.expires: "0", .etag: "\"1\""], .validate(.stale)),
        CacheCase("RFC 9111 §5.3 Expires is minus one", [.expires: "-1", .etag: "\"1\""], .validate(.stale)),
        CacheCase("RFC 9111 §5.3 Expires is empty", [.expires: "", .etag: "\"1\""], .validate(.stale)),
        CacheCase("RFC 9111 §5.3 Expires is a number", [.expires: "1767225660", .etag: "\"1\""], .validate(.stale)),
        CacheCase("RFC 9111 §5.3 Expires is no date", [.expires: "tomorrow", .etag: "\"1\""], .validate(.stale)),
        CacheCase(
            "RFC 9111 §5.3 an invalid Expires leaves no heuristic",
            [.expires: "0", .lastModified: CacheCase.date(-600)], .validate(.stale)),
        CacheCase(
            "RFC 9111 §5.3 Expires in the past leaves no heuristic",
            [.expires: CacheCase.date(-60), .lastModified: CacheCase.date(-600)], .validate(.stale)),
        CacheCase(
            "RFC 9111 §4.2 Expires with a time zone", [.expires: "Thu, 01 Jan 2026 00:01:00 EST", .etag: "\"1\""],
            .validate(.stale)),
        CacheCase(
            "RFC 9111 §4.2 Expires with a numeric time zone",
            [.expires: "Thu, 01 Jan 2026 00:01:00 +0000", .etag: "\"1\""], .validate(.stale)),
        CacheCase(
            "RFC 9111 §4.2 Expires without a time zone", [.expires: "Thu, 01 Jan 2026 00:01:00", .etag: "\"1\""],
            .validate(.stale)),
        CacheCase("RFC 9111 §4.2 dates match any case", [.expires: "thu, 01 jan 2026 00:01:00 gmt"], age: 59, .hit()),
        CacheCase("RFC 9111 §4.2 dates match capitals", [.expires: "THU, 01 JAN 2026 00:01:00 GMT"], age: 59, .hit()),
        CacheCase(
            "RFC 9110 §5.6.7 Expires in the form of RFC 850", [.expires: "Thursday, 01-Jan-26 00:01:00 GMT"], age: 59,
            .hit()),
        CacheCase(
            "RFC 9110 §5.6.7 Expires in the form of asctime", [.expires: "Thu Jan  1 00:01:00 2026"], age: 59, .hit()),
        CacheCase(
            "RFC 9110 §5.6.7 Expires with a day that does not exist",
            [.expires: "Mon, 30 Feb 2026 00:00:00 GMT", .etag: "\"1\""], .validate(.stale)),
        CacheCase(
            "RFC 9110 §5.6.7 Expires with an hour that does not exist",
            [.expires: "Thu, 01 Jan 2026 24:01:00 GMT", .etag: "\"1\""], .validate(.stale)),
        CacheCase(
            "RFC 9110 §5.6.7 Expires with an unknown month",
            [.expires: "Fri, 01 Foo 2027 00:01:00 GMT", .etag: "\"1\""], .validate(.stale)),
        CacheCase(
            "RFC 9111 §5.3 Expires far in the future", [.expires: "Fri, 31 Dec 9999 23:59:59 GMT"], age: 1_000_000_000,
            .hit()),
        CacheCase(
            "RFC 9111 §4.2.1 the first of repeated Expires counts",
            [.expires: CacheCase.date(60), .expires: CacheCase.date(10)], age: 59, .hit()),
        CacheCase(
            "RFC 9111 §4.2.1 the first of repeated Expires ends",
            [.expires: CacheCase.date(10), .expires: CacheCase.date(60), .etag: "\"1\""], age: 10, .validate(.stale)),
        CacheCase(
            "RFC 9111 §4.2.1 an invalid first Expires counts",
            [.expires: "0", .expires: CacheCase.date(60), .etag: "\"1\""], .validate(.stale)),
        CacheCase(
            "RFC 9111 §4.2.1 Expires counts from Date", [.expires: CacheCase.date(130), .date: CacheCase.date(100)],
            age: 29, .hit()),
        CacheCase(
            "RFC 9111 §4.2.1 Expires counts from Date and ends",
            [.expires: CacheCase.date(130), .date: CacheCase.date(100), .etag: "\"1\""], age: 30, .validate(.stale)),
        CacheCase(
            "RFC 9111 §4.2.1 Expires before a Date in the past",
            [.expires: CacheCase.date(-70), .date: CacheCase.date(-60), .etag: "\"1\""], .validate(.stale)),
        CacheCase(
            "RFC 9111 §4.2.1 Expires after a Date in the past",
            [.expires: CacheCase.date(10), .date: CacheCase.date(-60)], age: 9, .hit()),
        CacheCase(
            "RFC 9110 §6.6.1 an invalid Date is the time of receipt", [.expires: CacheCase.date(60), .date: "x"],
            age: 59, .hit()),
        CacheCase(
            "RFC 9110 §6.6.1 an empty Date is the time of receipt",
            [.expires: CacheCase.date(60), .date: "", .etag: "\"1\""], age: 60, .validate(.stale)),
        CacheCase(
            "RFC 9110 §6.6.1 the first of repeated Dates counts",
            [.expires: CacheCase.date(60), .date: CacheCase.date(0), .date: CacheCase.date(-60)], age: 59, .hit()),
    ]

    static let heuristics: [CacheCase] = [
        CacheCase(
            "RFC 9111 §4.2.2 private allows no heuristic for a 302", status: 302,
            [.cacheControl: "private", .lastModified: CacheCase.date(-600)], .validate(.stale)),
        CacheCase(
            "RFC 9111 §4.2.2 a tenth of the time since the last change", [.lastModified: CacheCase.date(-600)], age: 59,
            .hit()),
        CacheCase(
            "RFC 9111 §4.2.2 a tenth of the time has passed", [.lastModified: CacheCase.date(-600)], age: 60,
            .validate(.stale)),
        CacheCase(
            "RFC 9111 §4.2.2 a heuristic lifetime of at most a day", [.lastModified: CacheCase.date(-8_640_000)],
            age: 86_399, .hit()),
        CacheCase(
            "RFC 9111 §4.2.2 a heuristic lifetime ends after a day", [.lastModified: CacheCase.date(-8_640_000)],
            age: 86_400, .validate(.stale)),
        CacheCase(
            "RFC 9111 §4.2.2 a last change at the time of Date", [.lastModified: CacheCase.date(0)], .validate(.stale)),
        CacheCase(
            "RFC 9111 §4.2.2 a last change in the future", [.lastModified: CacheCase.date(60)], .validate(.stale)),
        CacheCase("RFC 9111 §4.2.2 an invalid Last-Modified", [.lastModified: "yesterday"], .validate(.stale)),
        CacheCase(
            "RFC 9111 §4.2.2 the heuristic counts from Date",
            [.lastModified: CacheCase.date(-700), .date: CacheCase.date(-100)], .validate(.stale)),
        CacheCase(
            "RFC 9111 §4.2.2 the heuristic counts from Date with its age",
            [.lastModified: CacheCase.date(-700), .date: CacheCase.date(-50)], age: 14, .hit()),
        CacheCase("RFC 9111 §4.2.2 the heuristic with no other information", [.etag: "\"1\""], .validate(.stale)),
        CacheCase("RFC 9111 §4.2.2 neither validator nor lifetime", [:], .forward(.stale)),
        CacheCase(
            "RFC 9111 §4.2.2 the heuristic of a 404", status: 404, [.lastModified: CacheCase.date(-600)], age: 59,
            .hit()),
        CacheCase(
            "RFC 9111 §4.2.2 the heuristic of a 301", status: 301, [.lastModified: CacheCase.date(-600)], age: 59,
            .hit()),
        CacheCase(
            "RFC 9111 §4.2.2 the heuristic of a 410", status: 410, [.lastModified: CacheCase.date(-600)], age: 59,
            .hit()),
        CacheCase(
            "RFC 9111 §4.2.2 public allows the heuristic for a 302", status: 302,
            [.cacheControl: "public", .lastModified: CacheCase.date(-600)], age: 59, .hit()),
        CacheCase(
            "RFC 9111 §4.2.2 public allows the heuristic for a 403", status: 403,
            [.cacheControl: "public", .lastModified: CacheCase.date(-600)], age: 60, .validate(.stale)),
        CacheCase(
            "RFC 9111 §4.2.2 must-revalidate leaves the heuristic",
            [.cacheControl: "must-revalidate", .lastModified: CacheCase.date(-600)], age: 59, .hit()),
        CacheCase(
            "RFC 9111 §4.2.2 no-cache leaves no heuristic",
            [.cacheControl: "no-cache", .lastModified: CacheCase.date(-600)], .validate(.miss)),
        CacheCase(
            "RFC 9111 §4.2.2 the heuristic in a shared cache", shared: true, [.lastModified: CacheCase.date(-600)],
            age: 59, .hit()),
        CacheCase(
            "RFC 9111 §4.2.2 max-age zero leaves no heuristic",
            [.cacheControl: "max-age=0", .lastModified: CacheCase.date(-600)], .validate(.stale)),
        CacheCase(
            "RFC 9111 §4.2.4 a stale heuristic response with max-stale", [.lastModified: CacheCase.date(-600)], age: 60,
            request: [.cacheControl: "max-stale=10"], .hit(.acceptedStale)),
    ]
}
