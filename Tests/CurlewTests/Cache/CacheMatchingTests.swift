// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Curlew

/// Ages (RFC 9111 §4.2.3) and the fields that `Vary` lists (RFC 9111 §4.1), as a table.
struct CacheMatchingTests {
    @Test(arguments: ages) func ageIsCalculated(_ row: CacheCase) { row.check() }
    @Test(arguments: varying) func varyingFieldsAreCompared(_ row: CacheCase) { row.check() }

    /// RFC 9110 §12.5.5: a 304 can bring the asterisk, so a stored response can have it.
    @Test func storedAsteriskMatchesNothing() {
        let entry = CacheUpdatingTests.entry([.cacheControl: "max-age=60", .vary: "Accept, *"])
        #expect(!CacheRules().matches(entry, CacheUpdatingTests.request))
    }

    static let ages: [CacheCase] = [
        CacheCase(
            "RFC 9111 §4.2.3 Age adds to the time in the cache", [.cacheControl: "max-age=60", .age: "50"], age: 9,
            .hit()),
        CacheCase(
            "RFC 9111 §4.2.3 Age and the time in the cache reach the lifetime",
            [.cacheControl: "max-age=60", .age: "50", .etag: "\"1\""], age: 10, .validate(.stale)),
        CacheCase(
            "RFC 9111 §4.2.3 Age equal to the lifetime", [.cacheControl: "max-age=60", .age: "60", .etag: "\"1\""],
            .validate(.stale)),
        CacheCase(
            "RFC 9111 §4.2.3 Age above the lifetime", [.cacheControl: "max-age=60", .age: "61", .etag: "\"1\""],
            .validate(.stale)),
        CacheCase("RFC 9111 §4.2.3 Age zero", [.cacheControl: "max-age=60", .age: "0"], age: 59, .hit()),
        CacheCase(
            "RFC 9111 §4.2.3 Age with Expires", [.expires: CacheCase.date(60), .age: "50", .etag: "\"1\""], age: 10,
            .validate(.stale)),
        CacheCase(
            "RFC 9111 §4.2.3 Age with the heuristic", [.lastModified: CacheCase.date(-600), .age: "50"], age: 10,
            .validate(.stale)),
        CacheCase(
            "RFC 9111 §4.2.3 Age with s-maxage", shared: true,
            [.cacheControl: "s-maxage=60", .age: "50", .etag: "\"1\""], age: 10, .validate(.stale)),
        CacheCase(
            "RFC 9111 §4.2.3 the delay of the response adds to Age", [.cacheControl: "max-age=60", .age: "50"], age: 4,
            delay: 5, .hit()),
        CacheCase(
            "RFC 9111 §4.2.3 the delay of the response counts",
            [.cacheControl: "max-age=60", .age: "50", .etag: "\"1\""], age: 5, delay: 5, .validate(.stale)),
        CacheCase(
            "RFC 9111 §4.2.3 the delay counts without Age", [.cacheControl: "max-age=60", .etag: "\"1\""], age: 50,
            delay: 10, .validate(.stale)),
        CacheCase(
            "RFC 9111 §4.2.3 a delay longer than the lifetime", [.cacheControl: "max-age=60", .etag: "\"1\""],
            delay: 60, .validate(.stale)),
        CacheCase(
            "RFC 9111 §4.2.3 a negative delay does not count", [.cacheControl: "max-age=60"], age: 59, delay: -30,
            .hit()),
        CacheCase(
            "RFC 9111 §4.2.3 a Date in the past makes an apparent age",
            [.cacheControl: "max-age=60", .date: CacheCase.date(-50)], age: 9, .hit()),
        CacheCase(
            "RFC 9111 §4.2.3 the apparent age counts",
            [.cacheControl: "max-age=60", .date: CacheCase.date(-50), .etag: "\"1\""], age: 10, .validate(.stale)),
        CacheCase(
            "RFC 9111 §4.2.3 a larger Age wins over the apparent age",
            [.cacheControl: "max-age=60", .date: CacheCase.date(-10), .age: "50", .etag: "\"1\""], age: 10,
            .validate(.stale)),
        CacheCase(
            "RFC 9111 §4.2.3 a larger apparent age wins over Age",
            [.cacheControl: "max-age=60", .date: CacheCase.date(-50), .age: "10", .etag: "\"1\""], age: 10,
            .validate(.stale)),
        CacheCase(
            "RFC 9111 §4.2.3 Age and apparent age are not added",
            [.cacheControl: "max-age=60", .date: CacheCase.date(-30), .age: "30"], age: 29, .hit()),
        CacheCase(
            "RFC 9111 §4.2.3 the delay is not added to the apparent age",
            [.cacheControl: "max-age=60", .date: CacheCase.date(-50)], age: 9, delay: 10, .hit()),
        CacheCase(
            "RFC 9111 §4.2.3 a Date in the future has no apparent age",
            [.cacheControl: "max-age=60", .date: CacheCase.date(100)], age: 59, .hit()),
        CacheCase(
            "RFC 9111 §4.2.3 a Date in the future does not prolong max-age",
            [.cacheControl: "max-age=60", .date: CacheCase.date(100), .etag: "\"1\""], age: 60, .validate(.stale)),
        CacheCase(
            "RFC 9111 §4.2.3 an invalid Date has no apparent age", [.cacheControl: "max-age=60", .date: "0"], age: 59,
            .hit()),
        CacheCase(
            "RFC 9111 §5.1 a negative Age is ignored", [.cacheControl: "max-age=60", .age: "-50"], age: 59, .hit()),
        CacheCase(
            "RFC 9111 §5.1 an Age with a fraction is ignored", [.cacheControl: "max-age=60", .age: "50.0"], age: 59,
            .hit()),
        CacheCase(
            "RFC 9111 §5.1 an Age with letters is ignored", [.cacheControl: "max-age=60", .age: "50s"], age: 59, .hit()
        ),
        CacheCase("RFC 9111 §5.1 an empty Age is ignored", [.cacheControl: "max-age=60", .age: ""], age: 59, .hit()),
        CacheCase(
            "RFC 9111 §5.1 a quoted Age is ignored", [.cacheControl: "max-age=60", .age: "\"50\""], age: 59, .hit()),
        CacheCase(
            "RFC 9111 §5.1 the first of a list of Ages counts",
            [.cacheControl: "max-age=60", .age: "50, 0", .etag: "\"1\""], age: 10, .validate(.stale)),
        CacheCase(
            "RFC 9111 §5.1 only the first of a list of Ages counts", [.cacheControl: "max-age=60", .age: "0, 100"],
            age: 59, .hit()),
        CacheCase(
            "RFC 9111 §5.1 the first of repeated Age fields counts",
            [.cacheControl: "max-age=60", .age: "50", .age: "0", .etag: "\"1\""], age: 10, .validate(.stale)),
        CacheCase(
            "RFC 9111 §5.1 an invalid first Age is ignored with the rest",
            [.cacheControl: "max-age=60", .age: "x, 100"], age: 59, .hit()),
        CacheCase(
            "RFC 9111 §5.1 white space around Age", [.cacheControl: "max-age=60", .age: " 50\t", .etag: "\"1\""],
            age: 10, .validate(.stale)),
        CacheCase(
            "RFC 9111 §1.2.2 an Age above 64 bits is very old",
            [.cacheControl: "max-age=60", .age: "99999999999999999999", .etag: "\"1\""], .validate(.stale)),
        CacheCase(
            "RFC 9111 §1.2.2 the longest Age reaches the longest lifetime",
            [.cacheControl: "max-age=2147483648", .age: "2147483648", .etag: "\"1\""], .validate(.stale)),
        CacheCase(
            "RFC 9111 §4.2.3 a small step back of the clock is corrected", [.cacheControl: "max-age=60"], age: -30,
            .hit()),
        CacheCase(
            "RFC 9111 §4.2.3 a step back of a minute is the largest one", [.cacheControl: "max-age=60"], age: -60,
            .hit()),
        CacheCase(
            "RFC 9111 §4.2.3 a step back does not hide Age", [.cacheControl: "max-age=60", .age: "60", .etag: "\"1\""],
            age: -30, .validate(.stale)),
        CacheCase(
            "RFC 9111 §4.2.3 after a large step back nothing is fresh", [.cacheControl: "max-age=60", .etag: "\"1\""],
            age: -61, .validate(.stale)),
        CacheCase(
            "RFC 9111 §4.2.3 after a step back of years nothing is fresh",
            [.cacheControl: "max-age=2147483648", .etag: "\"1\""], age: -1_000_000_000, .validate(.stale)),
        CacheCase(
            "RFC 9111 §4.2.3 after a large step back a limited max-stale fails",
            [.cacheControl: "max-age=60", .etag: "\"1\""], age: -61, request: [.cacheControl: "max-stale=1000000"],
            .validate(.stale)),
        CacheCase(
            "RFC 9111 §4.2.3 after a large step back max-stale accepts anything",
            [.cacheControl: "max-age=60", .etag: "\"1\""], age: -61, request: [.cacheControl: "max-stale"],
            .hit(.acceptedStale)),
        CacheCase(
            "RFC 9111 §4.2.3 after a large step back no revalidation in the background",
            [.cacheControl: "max-age=60, stale-while-revalidate=999", .etag: "\"1\""], age: -61, .validate(.stale)),
    ]

    static let varying: [CacheCase] = [
        CacheCase(
            "RFC 9111 §4.1 a response without Vary", first: [.accept: "a"], [.cacheControl: "max-age=60"],
            request: [.accept: "b"], .hit()),
        CacheCase(
            "RFC 9111 §4.1 an equal field matches", first: [.accept: "a"],
            [.cacheControl: "max-age=60", .vary: "Accept"], request: [.accept: "a"], .hit()),
        CacheCase(
            "RFC 9111 §4.1 another value does not match", first: [.accept: "a"],
            [.cacheControl: "max-age=60", .vary: "Accept"], request: [.accept: "b"], .forward(.varyMiss)),
        CacheCase(
            "RFC 9111 §4.1 a missing field does not match", first: [.accept: "a"],
            [.cacheControl: "max-age=60", .vary: "Accept"], .forward(.varyMiss)),
        CacheCase(
            "RFC 9111 §4.1 a new field does not match", [.cacheControl: "max-age=60", .vary: "Accept"],
            request: [.accept: "a"], .forward(.varyMiss)),
        CacheCase(
            "RFC 9111 §4.1 a field that both lack matches", [.cacheControl: "max-age=60", .vary: "Accept"], .hit()),
        CacheCase(
            "RFC 9111 §4.1 an empty field does not match a missing one",
            [.cacheControl: "max-age=60", .vary: "Accept"],
            request: [.accept: ""], .forward(.varyMiss)),
        CacheCase(
            "RFC 9111 §4.1 a missing field does not match an empty one", first: [.accept: ""],
            [.cacheControl: "max-age=60", .vary: "Accept"], .forward(.varyMiss)),
        CacheCase(
            "RFC 9111 §4.1 empty fields match", first: [.accept: ""], [.cacheControl: "max-age=60", .vary: "Accept"],
            request: [.accept: ""], .hit()),
        CacheCase(
            "RFC 9111 §4.1 names match any case", first: ["accept": "a"],
            [.cacheControl: "max-age=60", .vary: "ACCEPT"], request: ["Accept": "a"], .hit()),
        CacheCase(
            "RFC 9111 §4.1 names of any case separate", first: ["accept": "a"],
            [.cacheControl: "max-age=60", .vary: "ACCEPT"], request: ["Accept": "b"], .forward(.varyMiss)),
        CacheCase(
            "RFC 9111 §4.1 values match case", first: [.accept: "a"], [.cacheControl: "max-age=60", .vary: "Accept"],
            request: [.accept: "A"], .forward(.varyMiss)),
        CacheCase(
            "RFC 9111 §4.1 all of several fields match", first: [.accept: "a", .acceptLanguage: "de"],
            [.cacheControl: "max-age=60", .vary: "Accept, Accept-Language"],
            request: [.acceptLanguage: "de", .accept: "a"], .hit()),
        CacheCase(
            "RFC 9111 §4.1 the second of several fields differs", first: [.accept: "a", .acceptLanguage: "de"],
            [.cacheControl: "max-age=60", .vary: "Accept, Accept-Language"],
            request: [.accept: "a", .acceptLanguage: "en"], .forward(.varyMiss)),
        CacheCase(
            "RFC 9111 §4.1 the first of several fields differs", first: [.accept: "a", .acceptLanguage: "de"],
            [.cacheControl: "max-age=60", .vary: "Accept, Accept-Language"],
            request: [.accept: "b", .acceptLanguage: "de"], .forward(.varyMiss)),
        CacheCase(
            "RFC 9111 §4.1 two Vary fields count", first: [.accept: "a", .acceptLanguage: "de"],
            [.cacheControl: "max-age=60", .vary: "Accept", .vary: "Accept-Language"],
            request: [.accept: "a", .acceptLanguage: "en"], .forward(.varyMiss)),
        CacheCase(
            "RFC 9111 §4.1 two Vary fields match", first: [.accept: "a", .acceptLanguage: "de"],
            [.cacheControl: "max-age=60", .vary: "Accept", .vary: "Accept-Language"],
            request: [.accept: "a", .acceptLanguage: "de"], .hit()),
        CacheCase(
            "RFC 9111 §4.1 a name that Vary repeats matches", first: [.accept: "a"],
            [.cacheControl: "max-age=60", .vary: "Accept, accept"], request: [.accept: "a"], .hit()),
        CacheCase(
            "RFC 9111 §4.1 a name in two Vary fields matches", first: [.accept: "a"],
            [.cacheControl: "max-age=60", .vary: "Accept", .vary: "Accept"], request: [.accept: "a"], .hit()),
        CacheCase(
            "RFC 9111 §4.1 a name that Vary repeats separates", first: [.accept: "a"],
            [.cacheControl: "max-age=60", .vary: "Accept, Accept"], request: [.accept: "b"], .forward(.varyMiss)),
        CacheCase(
            "RFC 9111 §4.1 an empty Vary", first: [.accept: "a"], [.cacheControl: "max-age=60", .vary: ""],
            request: [.accept: "b"], .hit()),
        CacheCase(
            "RFC 9111 §4.1 empty members of Vary", first: [.accept: "a"],
            [.cacheControl: "max-age=60", .vary: ", ,Accept,"], request: [.accept: "a"], .hit()),
        CacheCase(
            "RFC 9111 §4.1 Vary without space", first: [.accept: "a"],
            [.cacheControl: "max-age=60", .vary: "X,Accept"],
            request: [.accept: "b"], .forward(.varyMiss)),
        CacheCase(
            "RFC 9111 §4.1 Vary with tabs", first: [.accept: "a"],
            [.cacheControl: "max-age=60", .vary: "X\t,\tAccept"],
            request: [.accept: "b"], .forward(.varyMiss)),
        CacheCase(
            "RFC 9111 §4.1 other fields do not count", first: [.accept: "a"],
            [.cacheControl: "max-age=60", .vary: "Accept"], request: [.accept: "a", .acceptLanguage: "en"], .hit()),
        CacheCase(
            "RFC 9111 §4.1 space after a comma does not count", first: [.accept: "a, b"],
            [.cacheControl: "max-age=60", .vary: "Accept"], request: [.accept: "a,b"], .hit()),
        CacheCase(
            "RFC 9111 §4.1 space before a comma does not count", first: [.accept: "a ,\tb"],
            [.cacheControl: "max-age=60", .vary: "Accept"], request: [.accept: "a, b"], .hit()),
        CacheCase(
            "RFC 9111 §4.1 space around a value does not count", first: [.accept: " a "],
            [.cacheControl: "max-age=60", .vary: "Accept"], request: [.accept: "a"], .hit()),
        CacheCase(
            "RFC 9111 §4.1 space inside of a member counts", first: [.accept: "a b"],
            [.cacheControl: "max-age=60", .vary: "Accept"], request: [.accept: "a  b"], .forward(.varyMiss)),
        CacheCase(
            "RFC 9111 §4.1 space in a quoted string counts", first: ["X-Q": "\"a , b\""],
            [.cacheControl: "max-age=60", .vary: "X-Q"], request: ["X-Q": "\"a,b\""], .forward(.varyMiss)),
        CacheCase(
            "RFC 9111 §4.1 repeated fields equal a list", first: [.accept: "a", .accept: "b"],
            [.cacheControl: "max-age=60", .vary: "Accept"], request: [.accept: "a, b"], .hit()),
        CacheCase(
            "RFC 9111 §4.1 repeated fields in another order", first: [.accept: "a", .accept: "b"],
            [.cacheControl: "max-age=60", .vary: "Accept"], request: [.accept: "b", .accept: "a"], .forward(.varyMiss)),
        CacheCase(
            "RFC 9111 §4.1 one of repeated fields is missing", first: [.accept: "a", .accept: "b"],
            [.cacheControl: "max-age=60", .vary: "Accept"], request: [.accept: "a"], .forward(.varyMiss)),
        CacheCase(
            "RFC 9111 §4.1 canonically equal values are different", first: ["X-Q": "\u{E9}"],
            [.cacheControl: "max-age=60", .vary: "X-Q"], request: ["X-Q": "e\u{301}"], .forward(.varyMiss)),
        CacheCase(
            "RFC 9111 §4.1 no-cache with the name of Vary does not end the comparison", first: [.accept: "a"],
            [.cacheControl: "no-cache=\"Vary\", max-age=60", .vary: "Accept"], request: [.accept: "b"],
            .forward(.varyMiss)),
        CacheCase(
            "RFC 9111 §4.1 equal cookies match", first: [.cookie: "a=1"],
            [.cacheControl: "max-age=60", .vary: "Cookie"], request: [.cookie: "a=1"], .hit()),
        CacheCase(
            "RFC 9111 §4.1 other cookies do not match", first: [.cookie: "a=1"],
            [.cacheControl: "max-age=60", .vary: "Cookie"], request: [.cookie: "a=2"], .forward(.varyMiss)),
        CacheCase(
            "RFC 9111 §4.1 a stale response for another field is not validated", first: [.accept: "a"],
            [.cacheControl: "max-age=60", .etag: "\"1\"", .vary: "Accept"], age: 61, request: [.accept: "b"],
            .forward(.varyMiss)),
        CacheCase(
            "RFC 9111 §4.1 a stale response for an equal field is validated", first: [.accept: "a"],
            [.cacheControl: "max-age=60", .etag: "\"1\"", .vary: "Accept"], age: 61, request: [.accept: "a"],
            .validate(.stale)),
        CacheCase(
            "RFC 9111 §4.1 HEAD is matched, too", first: [.accept: "a"],
            [.cacheControl: "max-age=60", .vary: "Accept"],
            method: .head, request: [.accept: "b"], .forward(.varyMiss)),
        CacheCase(
            "RFC 9111 §4.1 a shared cache matches in the same way", shared: true, first: [.accept: "a"],
            [.cacheControl: "max-age=60", .vary: "Accept"], request: [.accept: "b"], .forward(.varyMiss)),
    ]
}
