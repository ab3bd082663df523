// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Curlew

/// The rules of shared caches (RFC 9111) and targeted fields (RFC 9213), as a table.
struct CacheSharedTests {
    @Test(arguments: shared) func sharedCacheProtectsPrivateResponses(_ row: CacheCase) { row.check() }
    @Test(arguments: targeted) func targetedFieldReplacesCacheControl(_ row: CacheCase) { row.check() }

    static let shared: [CacheCase] = [
        CacheCase(
            "RFC 9111 §5.2.2.7 private in a shared cache", shared: true, [.cacheControl: "private"],
            .notStored(.isPrivate)),
        CacheCase(
            "RFC 9111 §5.2.2.7 private with max-age in a shared cache", shared: true,
            [.cacheControl: "private, max-age=60"], .notStored(.isPrivate)),
        CacheCase(
            "RFC 9111 §5.2.2.7 private wins over public in a shared cache", shared: true,
            [.cacheControl: "public, private, max-age=60"], .notStored(.isPrivate)),
        CacheCase(
            "RFC 9111 §5.2.2.7 private wins over s-maxage in a shared cache", shared: true,
            [.cacheControl: "s-maxage=60, private"], .notStored(.isPrivate)),
        CacheCase(
            "RFC 9111 §5.2.2.7 private with capitals in a shared cache", shared: true,
            [.cacheControl: "PRIVATE, max-age=60"], .notStored(.isPrivate)),
        CacheCase(
            "RFC 9111 §5.2.2.7 private with an empty list is about the response", shared: true,
            [.cacheControl: "private=\"\", max-age=60"], .notStored(.isPrivate)),
        CacheCase(
            "RFC 9111 §5.2.2.7 private with a field lets the rest be stored", shared: true,
            [.cacheControl: "private=\"X-A\", max-age=60", "X-A": "1"], age: 59, .hit()),
        CacheCase(
            "RFC 9111 §5.2.2.7 private with a list of fields", shared: true,
            [.cacheControl: "private=\"X-A, X-B\", max-age=60"], age: 59, .hit()),
        CacheCase(
            "RFC 9111 §5.2.2.7 private with a field as a token", shared: true,
            [.cacheControl: "private=X-A, max-age=60"], age: 59, .hit()),
        CacheCase(
            "RFC 9111 §5.2.2.7 private without fields wins over one with fields", shared: true,
            [.cacheControl: "private=\"X-A\", private, max-age=60"], .notStored(.isPrivate)),
        CacheCase(
            "RFC 9111 §5.2.2.7 private fields make no 302 storable", shared: true, status: 302,
            [.cacheControl: "private=\"X-A\""], .notStored(.status)),
        CacheCase(
            "RFC 9111 §5.2.2.10 s-maxage wins over max-age", shared: true, [.cacheControl: "max-age=10, s-maxage=60"],
            age: 59, .hit()),
        CacheCase(
            "RFC 9111 §5.2.2.10 a shorter s-maxage wins over max-age", shared: true,
            [.cacheControl: "max-age=60, s-maxage=10", .etag: "\"1\""], age: 10, .validate(.stale)),
        CacheCase(
            "RFC 9111 §5.2.2.10 s-maxage zero wins over max-age", shared: true,
            [.cacheControl: "max-age=60, s-maxage=0", .etag: "\"1\""], .validate(.stale)),
        CacheCase(
            "RFC 9111 §5.2.2.10 s-maxage wins over Expires", shared: true,
            [.cacheControl: "s-maxage=60", .expires: CacheCase.date(-60)], age: 59, .hit()),
        CacheCase(
            "RFC 9111 §5.2.2.10 s-maxage ends", shared: true, [.cacheControl: "s-maxage=60", .etag: "\"1\""], age: 60,
            .validate(.stale)),
        CacheCase(
            "RFC 9111 §5.2.2.10 an invalid s-maxage is stale", shared: true,
            [.cacheControl: "s-maxage=x, max-age=60", .etag: "\"1\""], .validate(.stale)),
        CacheCase(
            "RFC 9111 §5.2.2.10 s-maxage means nothing to a private cache",
            [.cacheControl: "max-age=10, s-maxage=60", .etag: "\"1\""], age: 10, .validate(.stale)),
        CacheCase(
            "RFC 9111 §5.2.2.10 s-maxage zero means nothing to a private cache",
            [.cacheControl: "max-age=60, s-maxage=0"], age: 59, .hit()),
        CacheCase(
            "RFC 9111 §5.2.2.10 s-maxage alone leaves a private cache the heuristic",
            [.cacheControl: "s-maxage=1", .lastModified: CacheCase.date(-600)], age: 59, .hit()),
        CacheCase(
            "RFC 9111 §5.2.2.10 s-maxage forbids stale use in a shared cache", shared: true,
            [.cacheControl: "s-maxage=60", .etag: "\"1\""], age: 61, request: [.cacheControl: "max-stale=100"],
            .validate(.stale)),
        CacheCase(
            "RFC 9111 §5.2.2.10 s-maxage allows stale use in a private cache",
            [.cacheControl: "s-maxage=60, max-age=60"], age: 61, request: [.cacheControl: "max-stale=100"],
            .hit(.acceptedStale)),
        CacheCase(
            "RFC 9111 §5.2.2.8 proxy-revalidate forbids stale use in a shared cache", shared: true,
            [.cacheControl: "max-age=60, proxy-revalidate", .etag: "\"1\""], age: 61,
            request: [.cacheControl: "max-stale"], .validate(.stale)),
        CacheCase(
            "RFC 9111 §5.2.2.8 proxy-revalidate means nothing to a private cache",
            [.cacheControl: "max-age=60, proxy-revalidate", .etag: "\"1\""], age: 61,
            request: [.cacheControl: "max-stale"], .hit(.acceptedStale)),
        CacheCase(
            "RFC 9111 §5.2.2.8 proxy-revalidate leaves a fresh response usable", shared: true,
            [.cacheControl: "max-age=60, proxy-revalidate"], age: 59, .hit()),
        CacheCase(
            "RFC 9111 §4.2.4 max-stale in a shared cache", shared: true, [.cacheControl: "max-age=60"], age: 61,
            request: [.cacheControl: "max-stale"], .hit(.acceptedStale)),
        CacheCase(
            "RFC 9111 §3.5 a shared cache refuses responses to credentials", shared: true,
            [.cacheControl: "max-age=60"], credentials: .known("x"), .notStored(.credentials)),
        CacheCase(
            "RFC 9111 §3.5 a shared cache refuses responses to added credentials", shared: true,
            [.cacheControl: "max-age=60"], credentials: .added, .notStored(.credentials)),
        CacheCase(
            "RFC 9111 §3.5 Expires allows no sharing", shared: true, [.expires: CacheCase.date(60)],
            credentials: .known("x"), .notStored(.credentials)),
        CacheCase(
            "RFC 9111 §3.5 public allows sharing", shared: true, [.cacheControl: "public, max-age=60"],
            credentials: .known("x"), age: 59, with: "y", .hit()),
        CacheCase(
            "RFC 9111 §3.5 must-revalidate allows sharing", shared: true,
            [.cacheControl: "must-revalidate, max-age=60"], credentials: .known("x"), age: 59, with: "y", .hit()),
        CacheCase(
            "RFC 9111 §3.5 s-maxage allows sharing", shared: true, [.cacheControl: "s-maxage=60"],
            credentials: .known("x"), age: 59, .hit()),
        CacheCase(
            "RFC 9111 §3.5 s-maxage zero allows storing", shared: true, [.cacheControl: "s-maxage=0", .etag: "\"1\""],
            credentials: .known("x"), .validate(.stale)),
        CacheCase(
            "RFC 9111 §3.5 public allows sharing with added credentials", shared: true,
            [.cacheControl: "public, max-age=60"], credentials: .added, age: 59, .hit()),
        CacheCase(
            "RFC 9111 §3.5 proxy-revalidate allows no sharing", shared: true,
            [.cacheControl: "proxy-revalidate, max-age=60"], credentials: .known("x"), .notStored(.credentials)),
        CacheCase(
            "RFC 9111 §3.5 immutable allows no sharing", shared: true, [.cacheControl: "immutable, max-age=60"],
            credentials: .known("x"), .notStored(.credentials)),
        CacheCase(
            "RFC 9111 §3.5 private wins over must-revalidate", shared: true,
            [.cacheControl: "private, must-revalidate"], credentials: .known("x"), .notStored(.isPrivate)),
        CacheCase(
            "RFC 9111 §7.3 Set-Cookie stops a shared cache", shared: true,
            [.cacheControl: "max-age=60", .setCookie: "a=b"], .notStored(.setCookie)),
        CacheCase(
            "RFC 9111 §7.3 Set-Cookie stops a shared cache even with public", shared: true,
            [.cacheControl: "public, max-age=60", .setCookie: "a=b"], .notStored(.setCookie)),
        CacheCase(
            "RFC 9111 §3 a shared cache stores other responses", shared: true, [.cacheControl: "max-age=60"], age: 59,
            .hit()),
    ]

    static let targeted: [CacheCase] = [
        CacheCase(
            "RFC 9213 §2.1 a targeted switch with a number is ignored", targeted: ["CDN-Cache-Control"],
            ["CDN-Cache-Control": "no-store=1, max-age=60"], age: 59, .hit()),
        CacheCase(
            "RFC 9213 §2.1 a targeted time without a number is ignored", targeted: ["CDN-Cache-Control"],
            ["CDN-Cache-Control": "max-age", .lastModified: CacheCase.date(-600)], age: 59, .hit()),
        CacheCase(
            "RFC 9213 §2.2 a targeted field wins over Cache-Control", shared: true, targeted: ["CDN-Cache-Control"],
            [.cacheControl: "no-store", "CDN-Cache-Control": "max-age=60"], age: 59, .hit()),
        CacheCase(
            "RFC 9213 §2.2 a shorter targeted lifetime wins", shared: true, targeted: ["CDN-Cache-Control"],
            [.cacheControl: "max-age=60", "CDN-Cache-Control": "max-age=10", .etag: "\"1\""], age: 10, .validate(.stale)
        ),
        CacheCase(
            "RFC 9213 §2.2 a targeted no-store wins", shared: true, targeted: ["CDN-Cache-Control"],
            [.cacheControl: "max-age=60", "CDN-Cache-Control": "no-store"], .notStored(.noStore)),
        CacheCase(
            "RFC 9213 §2.2 a targeted private wins", shared: true, targeted: ["CDN-Cache-Control"],
            [.cacheControl: "max-age=60", "CDN-Cache-Control": "private"], .notStored(.isPrivate)),
        CacheCase(
            "RFC 9213 §2.2 a targeted no-cache wins", targeted: ["CDN-Cache-Control"],
            [.cacheControl: "max-age=60", "CDN-Cache-Control": "no-cache", .etag: "\"1\""], .validate(.miss)),
        CacheCase(
            "RFC 9213 §2.2 s-maxage in Cache-Control is ignored", shared: true, targeted: ["CDN-Cache-Control"],
            [.cacheControl: "s-maxage=60", "CDN-Cache-Control": "max-age=10", .etag: "\"1\""], age: 10,
            .validate(.stale)),
        CacheCase(
            "RFC 9213 §2.2 must-revalidate in Cache-Control is ignored", targeted: ["CDN-Cache-Control"],
            [.cacheControl: "must-revalidate", "CDN-Cache-Control": "max-age=60"], age: 61,
            request: [.cacheControl: "max-stale"], .hit(.acceptedStale)),
        CacheCase(
            "RFC 9213 §2.2 Expires is ignored", targeted: ["CDN-Cache-Control"],
            [.expires: CacheCase.date(60), "CDN-Cache-Control": "must-revalidate", .etag: "\"1\""], .validate(.stale)),
        CacheCase(
            "RFC 9213 §2.2 the heuristic is left", targeted: ["CDN-Cache-Control"],
            [
                .expires: CacheCase.date(-60), "CDN-Cache-Control": "must-revalidate",
                .lastModified: CacheCase.date(-600),
            ],
            age: 59, .hit()),
        CacheCase(
            "RFC 9213 §2.2 an ignored Expires makes no 302 storable", targeted: ["CDN-Cache-Control"], status: 302,
            [.expires: CacheCase.date(60), "CDN-Cache-Control": "must-revalidate"], .notStored(.status)),
        CacheCase(
            "RFC 9213 §2.2 an ignored max-age makes no 302 storable", targeted: ["CDN-Cache-Control"], status: 302,
            [.cacheControl: "max-age=60", "CDN-Cache-Control": "must-revalidate"], .notStored(.status)),
        CacheCase(
            "RFC 9213 §2.2 a targeted max-age makes a 302 storable", targeted: ["CDN-Cache-Control"], status: 302,
            ["CDN-Cache-Control": "max-age=60"], age: 59, .hit()),
        CacheCase(
            "RFC 9213 §2.2 the first name of the list has precedence",
            targeted: ["A-Cache-Control", "B-Cache-Control"],
            ["B-Cache-Control": "max-age=10", "A-Cache-Control": "max-age=60"], age: 59, .hit()),
        CacheCase(
            "RFC 9213 §2.2 the second name counts without the first", targeted: ["A-Cache-Control", "B-Cache-Control"],
            [.cacheControl: "max-age=10", "B-Cache-Control": "max-age=60"], age: 59, .hit()),
        CacheCase(
            "RFC 9213 §2.2 an invalid first field gives way to the second",
            targeted: ["A-Cache-Control", "B-Cache-Control"],
            ["A-Cache-Control": "max-age=", "B-Cache-Control": "max-age=60"], age: 59, .hit()),
        CacheCase(
            "RFC 9213 §2.2 fields that the cache does not know are ignored", targeted: ["CDN-Cache-Control"],
            [.cacheControl: "max-age=60", "Other-Cache-Control": "no-store"], age: 59, .hit()),
        CacheCase(
            "RFC 9213 §2.2 a cache without a list ignores targeted fields",
            [.cacheControl: "max-age=60", "CDN-Cache-Control": "no-store"], age: 59, .hit()),
        CacheCase(
            "RFC 9213 §2.2 a cache with a list falls back to Cache-Control", targeted: ["CDN-Cache-Control"],
            [.cacheControl: "max-age=60"], age: 59, .hit()),
        CacheCase(
            "RFC 9213 §2.1 an empty field is ignored", targeted: ["CDN-Cache-Control"],
            [.cacheControl: "max-age=60", "CDN-Cache-Control": ""], age: 59, .hit()),
        CacheCase(
            "RFC 9213 §2.1 an invalid field is ignored", targeted: ["CDN-Cache-Control"],
            [.cacheControl: "max-age=60", "CDN-Cache-Control": "no-store, &"], age: 59, .hit()),
        CacheCase(
            "RFC 9213 §2.1 a comma at the end is invalid", targeted: ["CDN-Cache-Control"],
            [.cacheControl: "max-age=60", "CDN-Cache-Control": "no-store,"], age: 59, .hit()),
        CacheCase(
            "RFC 9213 §2.1 capitals are invalid", targeted: ["CDN-Cache-Control"],
            [.cacheControl: "max-age=60", "CDN-Cache-Control": "No-Store"], age: 59, .hit()),
        CacheCase(
            "RFC 9213 §2.1 parameters of a directive are ignored", targeted: ["CDN-Cache-Control"],
            ["CDN-Cache-Control": "max-age=60;x=1"], age: 59, .hit()),
        CacheCase(
            "RFC 9213 §2.1 the last of repeated members counts", targeted: ["CDN-Cache-Control"],
            ["CDN-Cache-Control": "max-age=10, max-age=60"], age: 59, .hit()),
        CacheCase(
            "RFC 9213 §2.1 several fields form one dictionary", targeted: ["CDN-Cache-Control"],
            ["CDN-Cache-Control": "max-age=60", "CDN-Cache-Control": "must-revalidate", .etag: "\"1\""], age: 61,
            request: [.cacheControl: "max-stale"], .validate(.stale)),
        CacheCase(
            "RFC 9213 §2.1 a targeted list of fields is a string", shared: true, targeted: ["CDN-Cache-Control"],
            ["CDN-Cache-Control": "private=\"X-A\", max-age=60"], age: 59, .hit()),
    ]
}
