// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Curlew

/// The responses that are stored (RFC 9111 §3), as a table.
struct CacheStoringTests {
    @Test(arguments: statuses) func statusDecides(_ row: CacheCase) { row.check() }
    @Test(arguments: freshStatuses) func explicitFreshnessAllowsOtherStatuses(_ row: CacheCase) { row.check() }
    @Test(arguments: directives) func directivesDecide(_ row: CacheCase) { row.check() }
    @Test(arguments: credentials) func credentialsAreKeptApart(_ row: CacheCase) { row.check() }

    static let statuses: [CacheCase] = [
        CacheCase(
            "RFC 9110 §15.1 status 200 is stored without explicit freshness", status: 200, [.etag: "\"1\""],
            .validate(.stale)),
        CacheCase(
            "RFC 9110 §15.1 status 203 is stored without explicit freshness", status: 203, [.etag: "\"1\""],
            .validate(.stale)),
        CacheCase(
            "RFC 9110 §15.1 status 204 is stored without explicit freshness", status: 204, [.etag: "\"1\""],
            .validate(.stale)),
        CacheCase(
            "RFC 9110 §15.1 status 300 is stored without explicit freshness", status: 300, [.etag: "\"1\""],
            .validate(.stale)),
        CacheCase(
            "RFC 9110 §15.1 status 301 is stored without explicit freshness", status: 301, [.etag: "\"1\""],
            .validate(.stale)),
        CacheCase(
            "RFC 9110 §15.1 status 308 is stored without explicit freshness", status: 308, [.etag: "\"1\""],
            .validate(.stale)),
        CacheCase(
            "RFC 9110 §15.1 status 404 is stored without explicit freshness", status: 404, [.etag: "\"1\""],
            .validate(.stale)),
        CacheCase(
            "RFC 9110 §15.1 status 405 is stored without explicit freshness", status: 405, [.etag: "\"1\""],
            .validate(.stale)),
        CacheCase(
            "RFC 9110 §15.1 status 410 is stored without explicit freshness", status: 410, [.etag: "\"1\""],
            .validate(.stale)),
        CacheCase(
            "RFC 9110 §15.1 status 414 is stored without explicit freshness", status: 414, [.etag: "\"1\""],
            .validate(.stale)),
        CacheCase(
            "RFC 9110 §15.1 status 501 is stored without explicit freshness", status: 501, [.etag: "\"1\""],
            .validate(.stale)),
        CacheCase(
            "RFC 9110 §15.1 status 201 needs explicit freshness", status: 201, [.etag: "\"1\""], .notStored(.status)),
        CacheCase(
            "RFC 9110 §15.1 status 202 needs explicit freshness", status: 202, [.etag: "\"1\""], .notStored(.status)),
        CacheCase(
            "RFC 9110 §15.1 status 205 needs explicit freshness", status: 205, [.etag: "\"1\""], .notStored(.status)),
        CacheCase(
            "RFC 9110 §15.1 status 226 needs explicit freshness", status: 226, [.etag: "\"1\""], .notStored(.status)),
        CacheCase(
            "RFC 9110 §15.1 status 302 needs explicit freshness", status: 302, [.etag: "\"1\""], .notStored(.status)),
        CacheCase(
            "RFC 9110 §15.1 status 303 needs explicit freshness", status: 303, [.etag: "\"1\""], .notStored(.status)),
        CacheCase(
            "RFC 9110 §15.1 status 307 needs explicit freshness", status: 307, [.etag: "\"1\""], .notStored(.status)),
        CacheCase(
            "RFC 9110 §15.1 status 400 needs explicit freshness", status: 400, [.etag: "\"1\""], .notStored(.status)),
        CacheCase(
            "RFC 9110 §15.1 status 401 needs explicit freshness", status: 401, [.etag: "\"1\""], .notStored(.status)),
        CacheCase(
            "RFC 9110 §15.1 status 403 needs explicit freshness", status: 403, [.etag: "\"1\""], .notStored(.status)),
        CacheCase(
            "RFC 9110 §15.1 status 409 needs explicit freshness", status: 409, [.etag: "\"1\""], .notStored(.status)),
        CacheCase(
            "RFC 9110 §15.1 status 412 needs explicit freshness", status: 412, [.etag: "\"1\""], .notStored(.status)),
        CacheCase(
            "RFC 9110 §15.1 status 416 needs explicit freshness", status: 416, [.etag: "\"1\""], .notStored(.status)),
        CacheCase(
            "RFC 9110 §15.1 status 421 needs explicit freshness", status: 421, [.etag: "\"1\""], .notStored(.status)),
        CacheCase(
            "RFC 9110 §15.1 status 429 needs explicit freshness", status: 429, [.etag: "\"1\""], .notStored(.status)),
        CacheCase(
            "RFC 9110 §15.1 status 451 needs explicit freshness", status: 451, [.etag: "\"1\""], .notStored(.status)),
        CacheCase(
            "RFC 9110 §15.1 status 500 needs explicit freshness", status: 500, [.etag: "\"1\""], .notStored(.status)),
        CacheCase(
            "RFC 9110 §15.1 status 502 needs explicit freshness", status: 502, [.etag: "\"1\""], .notStored(.status)),
        CacheCase(
            "RFC 9110 §15.1 status 503 needs explicit freshness", status: 503, [.etag: "\"1\""], .notStored(.status)),
        CacheCase(
            "RFC 9110 §15.1 status 504 needs explicit freshness", status: 504, [.etag: "\"1\""], .notStored(.status)),
    ]

    static let freshStatuses: [CacheCase] = [
        CacheCase(
            "RFC 9111 §3 status 201 with max-age is stored", status: 201, [.cacheControl: "max-age=60"], age: 59, .hit()
        ),
        CacheCase(
            "RFC 9111 §3 status 205 with max-age is stored", status: 205, [.cacheControl: "max-age=60"], age: 59, .hit()
        ),
        CacheCase(
            "RFC 9111 §3 status 302 with max-age is stored", status: 302, [.cacheControl: "max-age=60"], age: 59, .hit()
        ),
        CacheCase(
            "RFC 9111 §3 status 303 with max-age is stored", status: 303, [.cacheControl: "max-age=60"], age: 59, .hit()
        ),
        CacheCase(
            "RFC 9111 §3 status 307 with max-age is stored", status: 307, [.cacheControl: "max-age=60"], age: 59, .hit()
        ),
        CacheCase(
            "RFC 9111 §3 status 400 with max-age is stored", status: 400, [.cacheControl: "max-age=60"], age: 59, .hit()
        ),
        CacheCase(
            "RFC 9111 §3 status 401 with max-age is stored", status: 401, [.cacheControl: "max-age=60"], age: 59, .hit()
        ),
        CacheCase(
            "RFC 9111 §3 status 403 with max-age is stored", status: 403, [.cacheControl: "max-age=60"], age: 59, .hit()
        ),
        CacheCase(
            "RFC 9111 §3 status 412 with max-age is stored", status: 412, [.cacheControl: "max-age=60"], age: 59, .hit()
        ),
        CacheCase(
            "RFC 9111 §3 status 416 with max-age is stored", status: 416, [.cacheControl: "max-age=60"], age: 59, .hit()
        ),
        CacheCase(
            "RFC 9111 §3 status 429 with max-age is stored", status: 429, [.cacheControl: "max-age=60"], age: 59, .hit()
        ),
        CacheCase(
            "RFC 9111 §3 status 451 with max-age is stored", status: 451, [.cacheControl: "max-age=60"], age: 59, .hit()
        ),
        CacheCase(
            "RFC 9111 §3 status 500 with max-age is stored", status: 500, [.cacheControl: "max-age=60"], age: 59, .hit()
        ),
        CacheCase(
            "RFC 9111 §3 status 503 with max-age is stored", status: 503, [.cacheControl: "max-age=60"], age: 59, .hit()
        ),
        CacheCase(
            "RFC 9111 §3 status 504 with max-age is stored", status: 504, [.cacheControl: "max-age=60"], age: 59, .hit()
        ),
        CacheCase(
            "RFC 9111 §3 Expires makes a 302 storable", status: 302, [.expires: CacheCase.date(60)], age: 59, .hit()),
        CacheCase(
            "RFC 9111 §3 an Expires in the past makes a 302 storable, too", status: 302,
            [.expires: CacheCase.date(-60), .etag: "\"1\""], .validate(.stale)),
        CacheCase(
            "RFC 9111 §3 public makes a 302 storable", status: 302, [.cacheControl: "public", .etag: "\"1\""],
            .validate(.stale)),
        CacheCase(
            "RFC 9111 §3 private makes a 302 storable in a private cache", status: 302,
            [.cacheControl: "private", .etag: "\"1\""], .validate(.stale)),
        CacheCase(
            "RFC 9111 §3 s-maxage makes no 302 storable in a private cache", status: 302,
            [.cacheControl: "s-maxage=60"], .notStored(.status)),
        CacheCase(
            "RFC 9111 §3 s-maxage makes a 302 storable in a shared cache", shared: true, status: 302,
            [.cacheControl: "s-maxage=60"], age: 59, .hit()),
        CacheCase(
            "RFC 9111 §3 a validator makes no 403 storable", status: 403,
            [.etag: "\"1\"", .lastModified: CacheCase.date(-1000)], .notStored(.status)),
        CacheCase(
            "RFC 9111 §3 no-cache makes no 302 storable", status: 302, [.cacheControl: "no-cache", .etag: "\"1\""],
            .notStored(.status)),
        CacheCase(
            "RFC 9111 §3 must-revalidate makes no 302 storable", status: 302,
            [.cacheControl: "must-revalidate", .etag: "\"1\""], .notStored(.status)),
        CacheCase(
            "RFC 9111 §3 206 is not stored by itself", status: 206,
            [.cacheControl: "max-age=60", .contentRange: "bytes 0-1/9"], .notStored(.range)),
        CacheCase(
            "RFC 9111 §3 206 without directives", status: 206, [.contentRange: "bytes 0-1/9"], .notStored(.range)),
        CacheCase(
            "RFC 9111 §3 304 is not stored", status: 304, [.cacheControl: "max-age=60", .etag: "\"1\""],
            .notStored(.status)),
        CacheCase(
            "RFC 9111 §3 a status that is not final is not stored", status: 103, [.cacheControl: "max-age=60"],
            .notStored(.status)),
        CacheCase(
            "RFC 9111 §3 an unregistered status may be left out", status: 299, [.cacheControl: "max-age=60"],
            .notStored(.status)),
        CacheCase(
            "RFC 9111 §3 an unused status may be left out", status: 306, [.cacheControl: "public, max-age=60"],
            .notStored(.status)),
        CacheCase(
            "RFC 9111 §3 a status outside of the classes is not stored", status: 799, [.cacheControl: "max-age=60"],
            .notStored(.status)),
    ]

    static let directives: [CacheCase] = [
        CacheCase("RFC 9111 §5.2.2.5 no-store in a response", [.cacheControl: "no-store"], .notStored(.noStore)),
        CacheCase(
            "RFC 9111 §5.2.2.5 no-store wins over max-age", [.cacheControl: "max-age=60, no-store"],
            .notStored(.noStore)),
        CacheCase(
            "RFC 9111 §5.2.2.5 no-store wins over public", [.cacheControl: "public, no-store, max-age=60"],
            .notStored(.noStore)),
        CacheCase("RFC 9111 §5.2.2.5 no-store with capitals", [.cacheControl: "No-Store"], .notStored(.noStore)),
        CacheCase(
            "RFC 9111 §5.2.2.5 no-store in a second field", [.cacheControl: "max-age=60", .cacheControl: "no-store"],
            .notStored(.noStore)),
        CacheCase("RFC 9111 §5.2.2.5 no-store with an argument", [.cacheControl: "no-store=1"], .notStored(.noStore)),
        CacheCase(
            "RFC 9111 §5.2.2.5 no-store between white space", [.cacheControl: "max-age=60 ,\tno-store\t"],
            .notStored(.noStore)),
        CacheCase(
            "RFC 9111 §5.2.2.5 no-store in a quoted value is no directive",
            [.cacheControl: "x=\"no-store\", max-age=60"], age: 59, .hit()),
        CacheCase(
            "RFC 9111 §5.2.2.5 no-storex is another directive", [.cacheControl: "no-storex, max-age=60"], age: 59,
            .hit()),
        CacheCase(
            "RFC 9111 §5.2.1.5 no-store in the request", first: [.cacheControl: "no-store"],
            [.cacheControl: "max-age=60"], .notStored(.requestNoStore)),
        CacheCase(
            "RFC 9111 §5.2.1.5 no-store in the request counts with others",
            first: [.cacheControl: "max-age=0, NO-STORE"], [.cacheControl: "max-age=60"], .notStored(.requestNoStore)),
        CacheCase(
            "RFC 9111 §5.2.1.5 Pragma in the request is not no-store", first: ["Pragma": "no-cache"],
            [.cacheControl: "max-age=60"], age: 59, .hit()),
        CacheCase(
            "RFC 9111 §5.2.1.4 no-cache in the request lets the response be stored", first: [.cacheControl: "no-cache"],
            [.cacheControl: "max-age=60"], age: 59, .hit()),
        CacheCase(
            "RFC 9111 §5.2.1.7 only-if-cached in the first request changes nothing",
            first: [.cacheControl: "only-if-cached"], [.cacheControl: "max-age=60"], age: 59, .hit()),
        CacheCase(
            "RFC 9111 §5.2.2.3 must-understand overrides no-store",
            [.cacheControl: "must-understand, no-store, max-age=60"], age: 59, .hit()),
        CacheCase(
            "RFC 9111 §5.2.2.3 must-understand overrides no-store in any order",
            [.cacheControl: "max-age=60, no-store, must-understand"], age: 59, .hit()),
        CacheCase(
            "RFC 9111 §5.2.2.3 must-understand with an unknown status", status: 299,
            [.cacheControl: "must-understand, max-age=60"], .notStored(.status)),
        CacheCase(
            "RFC 9111 §5.2.2.3 no-store counts for an unknown status", status: 299,
            [.cacheControl: "must-understand, no-store, max-age=60"], .notStored(.noStore)),
        CacheCase(
            "RFC 9111 §5.2.2.3 must-understand does not override the request", first: [.cacheControl: "no-store"],
            [.cacheControl: "must-understand, no-store, max-age=60"], .notStored(.requestNoStore)),
        CacheCase(
            "RFC 9111 §5.2.2.3 must-understand alone makes no 302 storable", status: 302,
            [.cacheControl: "must-understand, no-store"], .notStored(.status)),
        CacheCase(
            "RFC 9111 §5.2.2.3 must-understand alone changes nothing", [.cacheControl: "must-understand, max-age=60"],
            age: 59, .hit()),
        CacheCase(
            "RFC 9111 §5.2.2.7 private in a private cache", [.cacheControl: "private, max-age=60"], age: 59, .hit()),
        CacheCase(
            "RFC 9111 §5.2.2.9 public in a private cache", [.cacheControl: "public, max-age=60"], age: 59, .hit()),
        CacheCase(
            "RFC 9111 §5.2.3 unknown directives are ignored", [.cacheControl: "x-y=1, z, max-age=60"], age: 59, .hit()),
        CacheCase(
            "RFC 9111 §5.2.3 unknown directives alone", [.cacheControl: "x-y=1", .etag: "\"1\""], .validate(.stale)),
        CacheCase(
            "RFC 9111 §5.4 Pragma in a response means nothing", [.cacheControl: "max-age=60", "Pragma": "no-cache"],
            age: 59, .hit()),
        CacheCase(
            "RFC 9111 §4.1 Vary with an asterisk", [.cacheControl: "max-age=60", .vary: "*"], .notStored(.varyAll)),
        CacheCase(
            "RFC 9111 §4.1 Vary with an asterisk in a list", [.cacheControl: "max-age=60", .vary: "Accept, *"],
            .notStored(.varyAll)),
        CacheCase(
            "RFC 9111 §4.1 Vary with an asterisk in a second field",
            [.cacheControl: "max-age=60", .vary: "Accept", .vary: "*"], .notStored(.varyAll)),
        CacheCase(
            "RFC 9111 §3 a stream of events never ends",
            [.cacheControl: "max-age=60", .contentType: "text/event-stream; charset=utf-8"], .notStored(.eventStream)),
        CacheCase(
            "RFC 9111 §3 an empty response may be stored", status: 204, [.cacheControl: "max-age=60"], age: 59, .hit()),
        CacheCase(
            "RFC 9111 §3.1 Set-Cookie does not stop a private cache", [.cacheControl: "max-age=60", .setCookie: "a=b"],
            age: 59, .hit()),
    ]

    static let credentials: [CacheCase] = [
        CacheCase(
            "RFC 9111 §3.5 a private cache may store a response to credentials", [.cacheControl: "max-age=60"],
            credentials: .known("x"), age: 59, with: "x", .hit()),
        CacheCase(
            "RFC 9111 §3.5 other credentials miss", [.cacheControl: "max-age=60"], credentials: .known("x"), age: 59,
            with: "y", .forward(.miss)),
        CacheCase(
            "RFC 9111 §3.5 no credentials miss", [.cacheControl: "max-age=60"], credentials: .known("x"), age: 59,
            .forward(.miss)),
        CacheCase(
            "RFC 9111 §3.5 private with other credentials", [.cacheControl: "private, max-age=60"],
            credentials: .known("x"), with: "y", .forward(.miss)),
        CacheCase(
            "RFC 9111 §3.5 public is for any credentials", [.cacheControl: "public, max-age=60"],
            credentials: .known("x"), age: 59, with: "y", .hit()),
        CacheCase(
            "RFC 9111 §3.5 public is for requests without credentials", [.cacheControl: "public, max-age=60"],
            credentials: .known("x"), age: 59, .hit()),
        CacheCase(
            "RFC 9111 §3.5 must-revalidate opens no private response", [.cacheControl: "must-revalidate, max-age=60"],
            credentials: .known("x"), with: "y", .forward(.miss)),
        CacheCase(
            "RFC 9111 §3.5 s-maxage opens no private response", [.cacheControl: "s-maxage=60, max-age=60"],
            credentials: .known("x"), with: "y", .forward(.miss)),
        CacheCase(
            "RFC 9111 §3.5 a response without credentials is not for requests with some", [.cacheControl: "max-age=60"],
            age: 59, with: "y", .forward(.miss)),
        CacheCase(
            "RFC 9111 §3.5 a stale response to credentials is validated",
            [.cacheControl: "max-age=60", .etag: "\"1\""],
            credentials: .known("x"), age: 60, with: "x", .validate(.stale)),
        CacheCase(
            "RFC 9111 §3.5 a stale response to other credentials is not validated",
            [.cacheControl: "max-age=60", .etag: "\"1\""], credentials: .known("x"), age: 60, with: "y",
            .forward(.miss)),
        CacheCase(
            "RFC 9111 §3.5 only-if-cached with other credentials", [.cacheControl: "max-age=60"],
            credentials: .known("x"), request: [.cacheControl: "only-if-cached"], with: "y", .unavailable),
        CacheCase(
            "RFC 9111 §3.5 credentials that were added behind the cache", [.cacheControl: "max-age=60"],
            credentials: .added, .notStored(.credentials)),
        CacheCase(
            "RFC 9111 §3.5 added credentials with private", [.cacheControl: "private, max-age=60"], credentials: .added,
            .notStored(.credentials)),
        CacheCase(
            "RFC 9111 §3.5 added credentials with public", [.cacheControl: "public, max-age=60"], credentials: .added,
            age: 59, .hit()),
        CacheCase(
            "RFC 9111 §3.5 no-store wins over added credentials", [.cacheControl: "no-store"], credentials: .added,
            .notStored(.noStore)),
    ]
}
