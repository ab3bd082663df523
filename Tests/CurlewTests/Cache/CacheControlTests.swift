// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Curlew

/// The directives of `Cache-Control` (RFC 9111 §5.2), as tables.
struct CacheControlTests {
    typealias Change = @Sendable (inout CacheControl) -> Void

    /// The text of a field, and the directives that it has.
    struct Row: Sendable, CustomTestStringConvertible {
        let name: String
        let text: String
        let directives: CacheControl

        init(_ name: String, _ text: String, _ change: Change) {
            (self.name, self.text, directives) = (name, text, CacheControl(change))
        }

        var testDescription: String { name }
    }

    /// Directives, and the text that describes them.
    struct Written: Sendable, CustomTestStringConvertible {
        let name: String
        let directives: CacheControl
        let text: String

        init(_ name: String, _ change: Change, _ text: String) {
            (self.name, directives, self.text) = (name, CacheControl(change), text)
        }

        var testDescription: String { name }
    }

    @Test(arguments: parsed) func fieldIsParsed(_ row: Row) { #expect(CacheControl(row.text) == row.directives) }

    @Test(arguments: written) func directivesAreWritten(_ row: Written) {
        #expect(row.directives.description == row.text)
    }

    @Test(arguments: [
        "public, max-age=60", "private=\"A, b\", no-cache=\"C\", s-maxage=2147483648", "max-stale, min-fresh=5",
        "no-store, only-if-cached, no-transform, must-revalidate, proxy-revalidate, must-understand, immutable",
        "stale-while-revalidate=1, stale-if-error=2, x=\"a, \\\"b\", y",
    ])
    func writtenFieldIsReadAgain(_ text: String) {
        #expect(CacheControl(text).description == text)
        #expect(CacheControl(CacheControl(text).description) == CacheControl(text))
    }

    @Test func headJoinsItsFields() {
        let head = ResponseHead(status: 200, fields: [.cacheControl: "max-age=60", .cacheControl: "public"])
        #expect(head.cacheControl == CacheControl("max-age=60, public"))
        #expect(ResponseHead(status: 200).cacheControl == CacheControl())
    }

    @Test func requestReadsPragmaOnlyWithoutCacheControl() {
        func directives(_ fields: HeaderFields) -> CacheControl {
            CacheRequest(.get, CacheCase.url, fields: fields).directives
        }
        #expect(directives(["Pragma": "no-cache"]).noCache)
        #expect(!directives(["Pragma": "no-cache", .cacheControl: "max-age=1"]).noCache)
        #expect(!directives(["Pragma": "x"]).noCache && directives([:]) == CacheControl())
    }

    static let parsed: [Row] = [
        Row("RFC 9111 §5.2 nothing", "", { _ in }),
        Row("RFC 9111 §5.2 only commas", ", ,,", { _ in }),
        Row("RFC 9111 §5.2.1.1 max-age", "max-age=60", { $0.maxAge = .seconds(60) }),
        Row("RFC 9111 §5.2.1.1 max-age of zero", "max-age=0", { $0.maxAge = .zero }),
        Row("RFC 9111 §5.2 capitals", "MAX-AGE=60, No-Store", { ($0.maxAge, $0.noStore) = (.seconds(60), true) }),
        Row("RFC 9111 §5.2 no space", "max-age=60,no-store", { ($0.maxAge, $0.noStore) = (.seconds(60), true) }),
        Row("RFC 9111 §5.2 much space", "max-age=60  ,   no-store", { ($0.maxAge, $0.noStore) = (.seconds(60), true) }),
        Row("RFC 9111 §5.2 a quoted number", "max-age=\"60\"", { $0.maxAge = .seconds(60) }),
        Row("RFC 9111 §5.2 a quoted number with a backslash", "max-age=\"6\\0\"", { $0.maxAge = .seconds(60) }),
        Row("RFC 9111 §5.2 a quoted number without its end", "max-age=\"60", { $0.maxAge = .seconds(60) }),
        Row("RFC 9111 §4.2.1 no number", "max-age", { $0.maxAge = .zero }),
        Row("RFC 9111 §4.2.1 an empty number", "max-age=", { $0.maxAge = .zero }),
        Row("RFC 9111 §4.2.1 an empty quoted number", "max-age=\"\"", { $0.maxAge = .zero }),
        Row("RFC 9111 §4.2.1 a negative number", "max-age=-1", { $0.maxAge = .zero }),
        Row("RFC 9111 §4.2.1 a number with a fraction", "max-age=1.5", { $0.maxAge = .zero }),
        Row("RFC 9111 §4.2.1 a number with letters", "max-age=1h", { $0.maxAge = .zero }),
        Row("RFC 9111 §1.2.2 the largest number", "max-age=2147483648", { $0.maxAge = CacheControl.unlimited }),
        Row(
            "RFC 9111 §1.2.2 the largest number of 32 bits", "max-age=2147483647",
            { $0.maxAge = .seconds(2_147_483_647) }),
        Row("RFC 9111 §1.2.2 a number above 32 bits", "max-age=4294967296", { $0.maxAge = CacheControl.unlimited }),
        Row(
            "RFC 9111 §1.2.2 a number above 64 bits", "max-age=99999999999999999999",
            { $0.maxAge = CacheControl.unlimited }),
        Row("RFC 9111 §4.2.1 the first number", "max-age=1, max-age=2", { $0.maxAge = .seconds(1) }),
        Row("RFC 9111 §4.2.1 the first number even if it is invalid", "max-age=x, max-age=2", { $0.maxAge = .zero }),
        Row("RFC 9111 §5.2.2.10 s-maxage", "s-maxage=5", { $0.sharedMaxAge = .seconds(5) }),
        Row("RFC 9111 §5.2.2.10 an invalid s-maxage", "s-maxage=five", { $0.sharedMaxAge = .zero }),
        Row("RFC 9111 §5.2.1.2 max-stale with a number", "max-stale=5", { $0.maxStale = .seconds(5) }),
        Row("RFC 9111 §5.2.1.2 max-stale without a number", "max-stale", { $0.maxStale = CacheControl.unlimited }),
        Row("RFC 9111 §5.2.1.2 max-stale with an invalid number", "max-stale=x", { $0.maxStale = .zero }),
        Row("RFC 9111 §5.2.1.3 min-fresh", "min-fresh=5", { $0.minFresh = .seconds(5) }),
        Row(
            "RFC 9111 §5.2.1.3 an invalid min-fresh accepts no response", "min-fresh=x",
            { $0.minFresh = CacheControl.unlimited }),
        Row(
            "RFC 5861 §3 stale-while-revalidate", "stale-while-revalidate=5", { $0.staleWhileRevalidate = .seconds(5) }
        ),
        Row(
            "RFC 5861 §3 an invalid stale-while-revalidate", "stale-while-revalidate",
            { $0.staleWhileRevalidate = .zero }),
        Row("RFC 5861 §4 stale-if-error", "stale-if-error=5", { $0.staleIfError = .seconds(5) }),
        Row("RFC 5861 §4 an invalid stale-if-error", "stale-if-error=-5", { $0.staleIfError = .zero }),
        Row("RFC 9111 §5.2.2.4 no-cache", "no-cache", { $0.noCache = true }),
        Row(
            "RFC 9111 §5.2.2.4 no-cache with a field", "no-cache=\"Set-Cookie\"", { $0.noCacheFields = ["Set-Cookie"] }
        ),
        Row("RFC 9111 §5.2.2.4 no-cache with two fields", "no-cache=\"a, B\"", { $0.noCacheFields = ["a", "B"] }),
        Row("RFC 9111 §5.2.2.4 no-cache with a token", "no-cache=a", { $0.noCacheFields = ["a"] }),
        Row("RFC 9111 §5.2.2.4 no-cache with an empty text", "no-cache=\"\"", { $0.noCache = true }),
        Row("RFC 9111 §5.2.2.4 no-cache with only commas", "no-cache=\" , \"", { $0.noCache = true }),
        Row(
            "RFC 9111 §5.2.2.4 no-cache with and without fields", "no-cache=\"a\", no-cache",
            { ($0.noCache, $0.noCacheFields) = (true, ["a"]) }),
        Row(
            "RFC 9111 §5.2.2.4 no-cache with fields twice", "no-cache=\"a\", no-cache=\"b\"",
            { $0.noCacheFields = ["a", "b"] }),
        Row("RFC 9111 §5.2.2.7 private without fields", "private", { $0.isPrivate = true }),
        Row("RFC 9111 §5.2.2.7 private with two fields", "private=\"a,b\"", { $0.privateFields = ["a", "b"] }),
        Row("RFC 9111 §5.2.2.7 private with an empty text", "private=\"\"", { $0.isPrivate = true }),
        Row(
            "RFC 9111 §5.2.2.7 private with fields twice", "private=\"a\", private=\"b\"",
            { $0.privateFields = ["a", "b"] }),
        Row("RFC 9111 §5.2.2.5 no-store alone", "no-store", { $0.noStore = true }),
        Row("RFC 9111 §5.2.2.5 no-store with a value", "no-store=\"x\"", { $0.noStore = true }),
        Row("RFC 9111 §5.2.1.7 only-if-cached", "only-if-cached", { $0.onlyIfCached = true }),
        Row("RFC 9111 §5.2.1.6 no-transform", "no-transform", { $0.noTransform = true }),
        Row("RFC 9111 §5.2.2.2 must-revalidate", "must-revalidate", { $0.mustRevalidate = true }),
        Row("RFC 9111 §5.2.2.8 proxy-revalidate", "proxy-revalidate", { $0.proxyRevalidate = true }),
        Row("RFC 9111 §5.2.2.3 must-understand", "must-understand", { $0.mustUnderstand = true }),
        Row("RFC 9111 §5.2.2.9 public", "public", { $0.isPublic = true }),
        Row("RFC 8246 §2 immutable", "immutable", { $0.isImmutable = true }),
        Row("RFC 9111 §5.2.3 unknown directives", "a, b=1, C=\"x, y\"", { $0.others = ["a", "b=1", "C=\"x, y\""] }),
        Row("RFC 9111 §5.2.3 an unknown directive twice", "a=1, A=2", { $0.others = ["a=1"] }),
        Row("RFC 9111 §5.2 members that are not directives", "@, =1, \"a\", max age, (b", { _ in }),
        Row(
            "RFC 9111 §5.2 a comma in a quoted value", "a=\"x, no-store\", public",
            { ($0.isPublic, $0.others) = (true, ["a=\"x, no-store\""]) }),
        Row(
            "RFC 9111 §5.2 a quote after a backslash", "a=\"\\\", no-store\", public",
            { ($0.isPublic, $0.others) = (true, ["a=\"\\\", no-store\""]) }),
        Row(
            "RFC 9111 §5.2 two backslashes before a quote", "a=\"\\\\\", no-store",
            { ($0.noStore, $0.others) = (true, ["a=\"\\\\\""]) }),
        Row(
            "RFC 9111 §5.2 a backslash outside of quotes", "a=\\, no-store",
            { ($0.noStore, $0.others) = (true, ["a=\\"]) }),
        Row(
            "RFC 9111 §5.2 a quote without its end hides the rest", "a=\"x, no-store",
            { $0.others = ["a=\"x, no-store"] }),
        Row("RFC 9111 §5.2 a backslash at the end", "a=\"x\\", { $0.others = ["a=\"x\\"] }),
    ]

    static let written: [Written] = [
        Written("nothing", { _ in }, ""),
        Written("public and max-age", { ($0.isPublic, $0.maxAge) = (true, .seconds(60)) }, "public, max-age=60"),
        Written("private", { $0.isPrivate = true }, "private"),
        Written("private fields", { $0.privateFields = ["A", "b"] }, "private=\"A, b\""),
        Written(
            "private with and without fields", { ($0.isPrivate, $0.privateFields) = (true, ["A"]) },
            "private, private=\"A\""),
        Written("no-cache", { $0.noCache = true }, "no-cache"),
        Written("no-cache fields", { $0.noCacheFields = ["A"] }, "no-cache=\"A\""),
        Written(
            "no-cache with and without fields", { ($0.noCache, $0.noCacheFields) = (true, ["A"]) },
            "no-cache, no-cache=\"A\""),
        Written("a fraction is cut off", { $0.maxAge = .milliseconds(1_999) }, "max-age=1"),
        Written("a negative time is zero", { $0.maxAge = .seconds(-5) }, "max-age=0"),
        Written("the longest time", { $0.sharedMaxAge = .seconds(Int64.max) }, "s-maxage=2147483648"),
        Written("unlimited max-stale", { $0.maxStale = CacheControl.unlimited }, "max-stale"),
        Written("limited max-stale", { $0.maxStale = .seconds(5) }, "max-stale=5"),
        Written(
            "the other times", { ($0.minFresh, $0.staleIfError) = (.seconds(1), .seconds(2)) },
            "min-fresh=1, stale-if-error=2"),
        Written(
            "the other switches of requests", { ($0.onlyIfCached, $0.noTransform, $0.noStore) = (true, true, true) },
            "no-store, only-if-cached, no-transform"),
        Written(
            "the other switches of responses",
            { ($0.mustRevalidate, $0.proxyRevalidate, $0.mustUnderstand) = (true, true, true) },
            "must-revalidate, proxy-revalidate, must-understand"),
        Written(
            "immutable with stale-while-revalidate",
            { ($0.isImmutable, $0.staleWhileRevalidate) = (true, .seconds(9)) }, "immutable, stale-while-revalidate=9"),
        Written("unknown directives", { ($0.noStore, $0.others) = (true, ["a=\"b\"", "c"]) }, "no-store, a=\"b\", c"),
    ]
}
