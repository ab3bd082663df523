// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Curlew

/// The directives of requests and responses (RFC 9111 §5.2), as a table.
struct CacheDecidingTests {
    @Test(arguments: requests) func requestDirectivesAreObeyed(_ row: CacheCase) { row.check() }
    @Test(arguments: responses) func responseDirectivesAreObeyed(_ row: CacheCase) { row.check() }

    static let requests: [CacheCase] = [
        CacheCase(
            "RFC 9111 §5.2.1.1 max-age accepts a younger response", [.cacheControl: "max-age=60", .etag: "\"1\""],
            age: 20, request: [.cacheControl: "max-age=30"], .hit()),
        CacheCase(
            "RFC 9111 §5.2.1.1 max-age accepts an equal age", [.cacheControl: "max-age=60", .etag: "\"1\""], age: 30,
            request: [.cacheControl: "max-age=30"], .hit()),
        CacheCase(
            "RFC 9111 §5.2.1.1 max-age refuses an older response", [.cacheControl: "max-age=60", .etag: "\"1\""],
            age: 31, request: [.cacheControl: "max-age=30"], .validate(.request)),
        CacheCase(
            "RFC 9111 §5.2.1.1 max-age refuses an older response without validators", [.cacheControl: "max-age=60"],
            age: 31, request: [.cacheControl: "max-age=30"], .forward(.request)),
        CacheCase(
            "RFC 9111 §5.2.1.1 max-age counts Age", [.cacheControl: "max-age=60", .age: "31", .etag: "\"1\""],
            request: [.cacheControl: "max-age=30"], .validate(.request)),
        CacheCase(
            "RFC 9111 §5.2.1.1 max-age zero validates", [.cacheControl: "max-age=60", .etag: "\"1\""], age: 1,
            request: [.cacheControl: "max-age=0"], .validate(.request)),
        CacheCase(
            "RFC 9111 §5.2.1.1 a longer max-age prolongs nothing", [.cacheControl: "max-age=60", .etag: "\"1\""],
            age: 61, request: [.cacheControl: "max-age=100"], .validate(.stale)),
        CacheCase(
            "RFC 9111 §5.2.1.1 an invalid max-age accepts no age", [.cacheControl: "max-age=60", .etag: "\"1\""],
            age: 1, request: [.cacheControl: "max-age=x"], .validate(.request)),
        CacheCase(
            "RFC 9111 §5.2.1.1 max-age with public changes nothing",
            [.cacheControl: "public, max-age=60", .etag: "\"1\""], age: 31, request: [.cacheControl: "max-age=30"],
            .validate(.request)),
        CacheCase(
            "RFC 9111 §5.2.1.3 min-fresh accepts a response that stays fresh",
            [.cacheControl: "max-age=60", .etag: "\"1\""], age: 20, request: [.cacheControl: "min-fresh=30"], .hit()),
        CacheCase(
            "RFC 9111 §5.2.1.3 min-fresh accepts an equal rest", [.cacheControl: "max-age=60", .etag: "\"1\""], age: 30,
            request: [.cacheControl: "min-fresh=30"], .hit()),
        CacheCase(
            "RFC 9111 §5.2.1.3 min-fresh refuses a shorter rest", [.cacheControl: "max-age=60", .etag: "\"1\""],
            age: 31, request: [.cacheControl: "min-fresh=30"], .validate(.request)),
        CacheCase(
            "RFC 9111 §5.2.1.3 min-fresh zero", [.cacheControl: "max-age=60", .etag: "\"1\""], age: 59,
            request: [.cacheControl: "min-fresh=0"], .hit()),
        CacheCase(
            "RFC 9111 §5.2.1.3 min-fresh above the lifetime", [.cacheControl: "max-age=60", .etag: "\"1\""],
            request: [.cacheControl: "min-fresh=61"], .validate(.request)),
        CacheCase(
            "RFC 9111 §5.2.1.3 an invalid min-fresh refuses", [.cacheControl: "max-age=60", .etag: "\"1\""],
            request: [.cacheControl: "min-fresh=x"], .validate(.request)),
        CacheCase(
            "RFC 9111 §5.2.1.3 min-fresh without a value refuses", [.cacheControl: "max-age=60", .etag: "\"1\""],
            request: [.cacheControl: "min-fresh"], .validate(.request)),
        CacheCase(
            "RFC 9111 §5.2.1.3 min-fresh with a stale response", [.cacheControl: "max-age=60", .etag: "\"1\""], age: 61,
            request: [.cacheControl: "min-fresh=1"], .validate(.stale)),
        CacheCase(
            "RFC 9111 §5.2.1.1 max-age and min-fresh accept", [.cacheControl: "max-age=60", .etag: "\"1\""], age: 20,
            request: [.cacheControl: "max-age=30, min-fresh=30"], .hit()),
        CacheCase(
            "RFC 9111 §5.2.1.1 max-age refuses what min-fresh accepts", [.cacheControl: "max-age=60", .etag: "\"1\""],
            age: 20, request: [.cacheControl: "max-age=10, min-fresh=30"], .validate(.request)),
        CacheCase(
            "RFC 9111 §5.2.1.3 min-fresh refuses what max-age accepts", [.cacheControl: "max-age=60", .etag: "\"1\""],
            age: 20, request: [.cacheControl: "max-age=30, min-fresh=50"], .validate(.request)),
        CacheCase(
            "RFC 9111 §5.2.1.2 max-stale accepts a shorter staleness", [.cacheControl: "max-age=60", .etag: "\"1\""],
            age: 80, request: [.cacheControl: "max-stale=30"], .hit(.acceptedStale)),
        CacheCase(
            "RFC 9111 §5.2.1.2 max-stale accepts an equal staleness", [.cacheControl: "max-age=60", .etag: "\"1\""],
            age: 90, request: [.cacheControl: "max-stale=30"], .hit(.acceptedStale)),
        CacheCase(
            "RFC 9111 §5.2.1.2 max-stale refuses a longer staleness", [.cacheControl: "max-age=60", .etag: "\"1\""],
            age: 91, request: [.cacheControl: "max-stale=30"], .validate(.stale)),
        CacheCase(
            "RFC 9111 §5.2.1.2 max-stale without a value accepts anything",
            [.cacheControl: "max-age=60", .etag: "\"1\""], age: 1_000_000_000, request: [.cacheControl: "max-stale"],
            .hit(.acceptedStale)),
        CacheCase(
            "RFC 9111 §5.2.1.2 max-stale zero", [.cacheControl: "max-age=60", .etag: "\"1\""], age: 61,
            request: [.cacheControl: "max-stale=0"], .validate(.stale)),
        CacheCase(
            "RFC 9111 §5.2.1.2 an invalid max-stale accepts nothing", [.cacheControl: "max-age=60", .etag: "\"1\""],
            age: 61, request: [.cacheControl: "max-stale=x"], .validate(.stale)),
        CacheCase(
            "RFC 9111 §5.2.1.2 an empty max-stale accepts nothing", [.cacheControl: "max-age=60", .etag: "\"1\""],
            age: 61, request: [.cacheControl: "max-stale="], .validate(.stale)),
        CacheCase(
            "RFC 9111 §5.2.1.2 max-stale with a fresh response", [.cacheControl: "max-age=60", .etag: "\"1\""], age: 59,
            request: [.cacheControl: "max-stale=30"], .hit()),
        CacheCase(
            "RFC 9111 §5.2.1.2 max-stale without a lifetime", [.etag: "\"1\""], age: 20,
            request: [.cacheControl: "max-stale=30"], .hit(.acceptedStale)),
        CacheCase(
            "RFC 9111 §5.2.1.2 a quoted max-stale", [.cacheControl: "max-age=60", .etag: "\"1\""], age: 80,
            request: [.cacheControl: "max-stale=\"30\""], .hit(.acceptedStale)),
        CacheCase(
            "RFC 9111 §5.2.1.2 max-stale with a longer max-age accepts", [.cacheControl: "max-age=60", .etag: "\"1\""],
            age: 80, request: [.cacheControl: "max-age=100, max-stale=30"], .hit(.acceptedStale)),
        CacheCase(
            "RFC 9111 §5.2.1.2 max-stale with a longer max-age refuses", [.cacheControl: "max-age=60", .etag: "\"1\""],
            age: 91, request: [.cacheControl: "max-age=100, max-stale=30"], .validate(.stale)),
        CacheCase(
            "RFC 9111 §5.2.1.2 max-stale does not override must-revalidate",
            [.cacheControl: "max-age=60, must-revalidate", .etag: "\"1\""], age: 61,
            request: [.cacheControl: "max-stale=30"], .validate(.stale)),
        CacheCase(
            "RFC 9111 §5.2.1.2 max-stale does not override no-cache",
            [.cacheControl: "max-age=60, no-cache", .etag: "\"1\""], request: [.cacheControl: "max-stale"],
            .validate(.miss)),
        CacheCase(
            "RFC 9111 §5.2.1.4 no-cache in the request validates", [.cacheControl: "max-age=60", .etag: "\"1\""],
            request: [.cacheControl: "no-cache"], .validate(.request)),
        CacheCase(
            "RFC 9111 §5.2.1.4 no-cache in the request without validators", [.cacheControl: "max-age=60"],
            request: [.cacheControl: "no-cache"], .forward(.request)),
        CacheCase(
            "RFC 9111 §5.2.1.4 no-cache in the request with a stale response",
            [.cacheControl: "max-age=60", .lastModified: CacheCase.date(-60)], age: 61,
            request: [.cacheControl: "no-cache, max-stale"], .validate(.request)),
        CacheCase(
            "RFC 9111 §5.2.1.4 no-cache with capitals", [.cacheControl: "max-age=60", .etag: "\"1\""],
            request: [.cacheControl: "No-Cache"], .validate(.request)),
        CacheCase(
            "RFC 9111 §5.2.1.5 no-store in the later request", [.cacheControl: "max-age=60", .etag: "\"1\""],
            request: [.cacheControl: "no-store"], .forward(.request)),
        CacheCase(
            "RFC 9111 §5.2.1.6 no-transform changes nothing", [.cacheControl: "max-age=60"],
            request: [.cacheControl: "no-transform"], .hit()),
        CacheCase(
            "RFC 9111 §5.2.1.7 only-if-cached with a fresh response", [.cacheControl: "max-age=60"], age: 59,
            request: [.cacheControl: "only-if-cached"], .hit()),
        CacheCase(
            "RFC 9111 §5.2.1.7 only-if-cached with a stale response", [.cacheControl: "max-age=60", .etag: "\"1\""],
            age: 60, request: [.cacheControl: "only-if-cached"], .unavailable),
        CacheCase(
            "RFC 9111 §5.2.1.7 only-if-cached with max-stale", [.cacheControl: "max-age=60", .etag: "\"1\""], age: 61,
            request: [.cacheControl: "only-if-cached, max-stale"], .hit(.acceptedStale)),
        CacheCase(
            "RFC 9111 §5.2.1.7 only-if-cached with max-age", [.cacheControl: "max-age=60", .etag: "\"1\""], age: 31,
            request: [.cacheControl: "only-if-cached, max-age=30"], .unavailable),
        CacheCase(
            "RFC 9111 §5.2.1.7 only-if-cached with no-cache", [.cacheControl: "max-age=60", .etag: "\"1\""],
            request: [.cacheControl: "only-if-cached, no-cache"], .unavailable),
        CacheCase(
            "RFC 9111 §5.2.1.7 only-if-cached with no-cache in the response",
            [.cacheControl: "no-cache", .etag: "\"1\""], request: [.cacheControl: "only-if-cached"], .unavailable),
        CacheCase(
            "RFC 9111 §5.2.1.7 only-if-cached with must-revalidate",
            [.cacheControl: "max-age=60, must-revalidate", .etag: "\"1\""], age: 61,
            request: [.cacheControl: "only-if-cached, max-stale"], .unavailable),
        CacheCase(
            "RFC 9111 §5.2.1.7 only-if-cached with another Vary", first: [.accept: "a"],
            [.cacheControl: "max-age=60", .vary: "Accept"], request: [.cacheControl: "only-if-cached"], .unavailable),
        CacheCase(
            "RFC 9111 §5.2.1.7 only-if-cached with a part", [.cacheControl: "max-age=60", .etag: "\"1\""],
            part: (size: 5, of: 10), request: [.cacheControl: "only-if-cached"], .unavailable),
        CacheCase(
            "RFC 9111 §5.2.1.7 only-if-cached with an encoded response",
            [.cacheControl: "max-age=60", .contentEncoding: "gzip"], request: [.cacheControl: "only-if-cached"],
            .unavailable),
        CacheCase(
            "RFC 9111 §5.2.1.7 only-if-cached with no-store",
            [.cacheControl: "max-age=60, must-revalidate", .etag: "\"1\""], age: 61,
            request: [.cacheControl: "no-store, only-if-cached"], .unavailable),
        CacheCase(
            "RFC 9111 §5.4 Pragma validates", [.cacheControl: "max-age=60", .etag: "\"1\""],
            request: ["Pragma": "no-cache"], .validate(.request)),
        CacheCase(
            "RFC 9111 §5.4 Pragma with capitals validates", [.cacheControl: "max-age=60", .etag: "\"1\""],
            request: ["pragma": "No-Cache"], .validate(.request)),
        CacheCase(
            "RFC 9111 §5.4 another Pragma means nothing", [.cacheControl: "max-age=60", .etag: "\"1\""],
            request: ["Pragma": "x"], .hit()),
        CacheCase(
            "RFC 9111 §5.4 Pragma means nothing beside Cache-Control", [.cacheControl: "max-age=60", .etag: "\"1\""],
            request: ["Pragma": "no-cache", .cacheControl: "max-age=30"], .hit()),
        CacheCase(
            "RFC 9111 §5.2 unknown directives in a request are ignored", [.cacheControl: "max-age=60"],
            request: [.cacheControl: "x, y=1"], .hit()),
        CacheCase(
            "RFC 9111 §5.2 directives of responses mean nothing in a request", [.cacheControl: "max-age=60"], age: 59,
            request: [.cacheControl: "s-maxage=0, private, must-revalidate"], .hit()),
    ]

    static let responses: [CacheCase] = [
        CacheCase(
            "RFC 9111 §5.2.2.2 must-revalidate leaves a fresh response usable",
            [.cacheControl: "max-age=60, must-revalidate"], age: 59, .hit()),
        CacheCase(
            "RFC 9111 §5.2.2.2 must-revalidate with a stale response",
            [.cacheControl: "max-age=60, must-revalidate", .etag: "\"1\""], age: 60, .validate(.stale)),
        CacheCase(
            "RFC 9111 §5.2.2.2 must-revalidate with a stale response without validators",
            [.cacheControl: "max-age=60, must-revalidate"], age: 60, .forward(.stale)),
        CacheCase(
            "RFC 9111 §5.2.2.2 must-revalidate wins over stale-while-revalidate",
            [.cacheControl: "max-age=60, must-revalidate, stale-while-revalidate=30", .etag: "\"1\""], age: 61,
            .validate(.stale)),
        CacheCase(
            "RFC 9111 §5.2.2.4 no-cache validates a fresh response",
            [.cacheControl: "no-cache, max-age=60", .etag: "\"1\""], .validate(.miss)),
        CacheCase(
            "RFC 9111 §5.2.2.4 no-cache with Last-Modified",
            [.cacheControl: "no-cache", .lastModified: CacheCase.date(-60)], .validate(.miss)),
        CacheCase(
            "RFC 9111 §5.2.2.4 no-cache without validators", [.cacheControl: "no-cache, max-age=60"], .forward(.miss)),
        CacheCase(
            "RFC 9111 §5.2.2.4 no-cache wins over stale-while-revalidate",
            [.cacheControl: "no-cache, max-age=0, stale-while-revalidate=30", .etag: "\"1\""], age: 1, .validate(.miss)
        ),
        CacheCase(
            "RFC 9111 §5.2.2.4 no-cache with a field is not about the response",
            [.cacheControl: "no-cache=\"X-A\", max-age=60", "X-A": "1"], age: 59, .hit()),
        CacheCase(
            "RFC 9111 §5.2.2.4 no-cache with several fields", [.cacheControl: "no-cache=\"X-A, X-B\", max-age=60"],
            age: 59, .hit()),
        CacheCase(
            "RFC 9111 §5.2.2.4 no-cache with a field as a token", [.cacheControl: "no-cache=X-A, max-age=60"], age: 59,
            .hit()),
        CacheCase(
            "RFC 9111 §5.2.2.4 no-cache with an empty list is about the response",
            [.cacheControl: "no-cache=\"\", max-age=60", .etag: "\"1\""], .validate(.miss)),
        CacheCase(
            "RFC 9111 §5.2.2.4 no-cache without fields wins over one with fields",
            [.cacheControl: "no-cache=\"X-A\", no-cache, max-age=60", .etag: "\"1\""], .validate(.miss)),
        CacheCase(
            "RFC 9111 §5.2.2.4 no-cache with fields does not weaken one without",
            [.cacheControl: "no-cache, no-cache=\"X-A\", max-age=60", .etag: "\"1\""], .validate(.miss)),
        CacheCase(
            "RFC 9111 §5.2.2.4 a field that is no validator any more",
            [.cacheControl: "no-cache=\"ETag\", max-age=60", .etag: "\"1\""], age: 60, .forward(.stale)),
        CacheCase(
            "RFC 9111 §5.2.2.6 no-transform in a response changes nothing", [.cacheControl: "no-transform, max-age=60"],
            age: 59, .hit()),
        CacheCase(
            "RFC 9111 §4.3.1 a stale response with an entity tag", [.cacheControl: "max-age=0", .etag: "\"1\""], age: 1,
            .validate(.stale)),
        CacheCase(
            "RFC 9111 §4.3.1 a stale response with a weak entity tag", [.cacheControl: "max-age=0", .etag: "W/\"1\""],
            age: 1, .validate(.stale)),
        CacheCase(
            "RFC 9111 §4.3.1 a stale response with Last-Modified",
            [.cacheControl: "max-age=0", .lastModified: CacheCase.date(-60)], age: 1, .validate(.stale)),
        CacheCase(
            "RFC 9111 §4.3.1 a stale 404 is validated", status: 404, [.cacheControl: "max-age=0", .etag: "\"1\""],
            age: 1, .validate(.stale)),
        CacheCase(
            "RFC 8246 §2 immutable does not prolong the lifetime",
            [.cacheControl: "max-age=60, immutable", .etag: "\"1\""], age: 60, .validate(.stale)),
        CacheCase(
            "RFC 8246 §2 immutable alone gives no lifetime", [.cacheControl: "immutable", .etag: "\"1\""],
            .validate(.stale)),
        CacheCase(
            "RFC 8246 §2 immutable is fresh as long as others",
            [.cacheControl: "max-age=60, immutable", .etag: "\"1\""], age: 59, .hit()),
        CacheCase(
            "RFC 8246 §2 immutable is not validated on a reload",
            [.cacheControl: "max-age=60, immutable", .etag: "\"1\""], age: 59, policy: .revalidate, .hit()),
        CacheCase(
            "RFC 8246 §2 a stale immutable response is validated on a reload",
            [.cacheControl: "max-age=60, immutable", .etag: "\"1\""], age: 60, policy: .revalidate, .validate(.request)
        ),
        CacheCase(
            "RFC 8246 §2 a forced reload ignores immutable", [.cacheControl: "max-age=60, immutable", .etag: "\"1\""],
            request: [.cacheControl: "no-cache"], .validate(.request)),
        CacheCase(
            "RFC 8246 §2 the reload policy ignores immutable",
            [.cacheControl: "max-age=60, immutable", .etag: "\"1\""],
            policy: .reload, .forward(.request)),
        CacheCase(
            "RFC 8246 §2 no-cache wins over immutable",
            [.cacheControl: "max-age=60, immutable, no-cache", .etag: "\"1\""], policy: .revalidate, .validate(.miss)),
        CacheCase(
            "RFC 8246 §2 an argument of immutable is ignored",
            [.cacheControl: "max-age=60, immutable=1", .etag: "\"1\""], policy: .revalidate, .hit()),
        CacheCase(
            "RFC 5861 §3 a fresh response is used as usual",
            [.cacheControl: "max-age=60, stale-while-revalidate=30", .etag: "\"1\""], age: 59, .hit()),
        CacheCase(
            "RFC 5861 §3 a stale response is used and validated",
            [.cacheControl: "max-age=60, stale-while-revalidate=30", .etag: "\"1\""], age: 60, .refresh),
        CacheCase(
            "RFC 5861 §3 a response is used until the end of its time",
            [.cacheControl: "max-age=60, stale-while-revalidate=30", .etag: "\"1\""], age: 89, .refresh),
        CacheCase(
            "RFC 5861 §3 a response is validated first after its time",
            [.cacheControl: "max-age=60, stale-while-revalidate=30", .etag: "\"1\""], age: 91, .validate(.stale)),
        CacheCase(
            "RFC 5861 §3 no validator is needed", [.cacheControl: "max-age=60, stale-while-revalidate=30"], age: 61,
            .refresh),
        CacheCase(
            "RFC 5861 §3 a time of zero", [.cacheControl: "max-age=60, stale-while-revalidate=0", .etag: "\"1\""],
            age: 61, .validate(.stale)),
        CacheCase(
            "RFC 5861 §3 an invalid time", [.cacheControl: "max-age=60, stale-while-revalidate=x", .etag: "\"1\""],
            age: 61, .validate(.stale)),
        CacheCase(
            "RFC 5861 §3 no time", [.cacheControl: "max-age=60, stale-while-revalidate", .etag: "\"1\""], age: 61,
            .validate(.stale)),
        CacheCase(
            "RFC 5861 §3 Expires gives the lifetime, too",
            [.cacheControl: "stale-while-revalidate=30", .expires: CacheCase.date(60), .etag: "\"1\""], age: 61,
            .refresh),
        CacheCase(
            "RFC 5861 §3 max-age in the request wants a fresh response",
            [.cacheControl: "max-age=60, stale-while-revalidate=30", .etag: "\"1\""], age: 61,
            request: [.cacheControl: "max-age=100"], .validate(.stale)),
        CacheCase(
            "RFC 5861 §3 min-fresh in the request wants a fresh response",
            [.cacheControl: "max-age=60, stale-while-revalidate=30", .etag: "\"1\""], age: 61,
            request: [.cacheControl: "min-fresh=1"], .validate(.stale)),
        CacheCase(
            "RFC 5861 §3 no-cache in the request validates first",
            [.cacheControl: "max-age=60, stale-while-revalidate=30", .etag: "\"1\""], age: 61,
            request: [.cacheControl: "no-cache"], .validate(.request)),
        CacheCase(
            "RFC 5861 §3 only-if-cached uses the response",
            [.cacheControl: "max-age=60, stale-while-revalidate=30", .etag: "\"1\""], age: 61,
            request: [.cacheControl: "only-if-cached"], .hit(.acceptedStale)),
        CacheCase(
            "RFC 5861 §3 proxy-revalidate forbids it in a shared cache", shared: true,
            [.cacheControl: "max-age=60, proxy-revalidate, stale-while-revalidate=30", .etag: "\"1\""], age: 61,
            .validate(.stale)),
        CacheCase(
            "RFC 5861 §3 s-maxage forbids it in a shared cache", shared: true,
            [.cacheControl: "s-maxage=60, stale-while-revalidate=30", .etag: "\"1\""], age: 61, .validate(.stale)),
        CacheCase(
            "RFC 5861 §3 it works in a shared cache", shared: true,
            [.cacheControl: "max-age=60, stale-while-revalidate=30", .etag: "\"1\""], age: 61, .refresh),
        CacheCase(
            "RFC 5861 §4 stale-if-error changes no request",
            [.cacheControl: "max-age=60, stale-if-error=30", .etag: "\"1\""], age: 61, .validate(.stale)),
    ]
}
