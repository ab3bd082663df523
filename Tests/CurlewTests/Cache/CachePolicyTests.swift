// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing

@testable import Curlew

/// Policies, methods, preconditions and parts (RFC 9111 §3.4, §4, §4.3.2), as a table.
struct CachePolicyTests {
    @Test(arguments: policies) func policyDecides(_ row: CacheCase) { row.check() }
    @Test(arguments: methods) func methodDecides(_ row: CacheCase) { row.check() }
    @Test(arguments: conditions) func conditionsAndPartsAreHandled(_ row: CacheCase) { row.check() }

    static let policies: [CacheCase] = [
        CacheCase(
            "RFC 9111 §4 the standard policy uses a fresh response", [.cacheControl: "max-age=60", .etag: "\"1\""],
            age: 59, policy: .standard, .hit()),
        CacheCase(
            "RFC 9111 §4 the standard policy validates a stale response",
            [.cacheControl: "max-age=60", .etag: "\"1\""],
            age: 60, policy: .standard, .validate(.stale)),
        CacheCase(
            "RFC 9111 §4 the reload policy ignores a fresh response", [.cacheControl: "max-age=60", .etag: "\"1\""],
            policy: .reload, .forward(.request)),
        CacheCase(
            "RFC 9111 §4 the reload policy ignores max-stale", [.cacheControl: "max-age=60", .etag: "\"1\""],
            request: [.cacheControl: "max-stale"], policy: .reload, .forward(.request)),
        CacheCase(
            "RFC 9111 §4 the reload policy from the origin ignores a fresh response",
            [.cacheControl: "max-age=60", .etag: "\"1\""], policy: .reloadFromOrigin, .forward(.request)),
        CacheCase(
            "RFC 9111 §4 the reload policy with a part", [.cacheControl: "max-age=60", .etag: "\"1\""],
            part: (size: 5, of: 10), policy: .reload, .forward(.request)),
        CacheCase(
            "RFC 9111 §4.2.4 preferCache uses a fresh response", [.cacheControl: "max-age=60", .etag: "\"1\""], age: 59,
            policy: .preferCache, .hit()),
        CacheCase(
            "RFC 9111 §4.2.4 preferCache uses a stale response", [.cacheControl: "max-age=60", .etag: "\"1\""],
            age: 1_000_000, policy: .preferCache, .hit(.acceptedStale)),
        CacheCase(
            "RFC 9111 §4.2.4 preferCache after a step back of the clock",
            [.cacheControl: "max-age=60", .etag: "\"1\""],
            age: -1_000, policy: .preferCache, .hit(.acceptedStale)),
        CacheCase(
            "RFC 9111 §5.2.2.2 preferCache does not override must-revalidate",
            [.cacheControl: "max-age=60, must-revalidate", .etag: "\"1\""], age: 61, policy: .preferCache,
            .validate(.stale)),
        CacheCase(
            "RFC 9111 §5.2.2.4 preferCache does not override no-cache",
            [.cacheControl: "max-age=60, no-cache", .etag: "\"1\""], policy: .preferCache, .validate(.miss)),
        CacheCase(
            "RFC 9111 §5.2.2.10 preferCache does not override s-maxage in a shared cache", shared: true,
            [.cacheControl: "s-maxage=60", .etag: "\"1\""], age: 61, policy: .preferCache, .validate(.stale)),
        CacheCase(
            "RFC 9111 §5.2.1.4 preferCache does not override no-cache of the request",
            [.cacheControl: "max-age=60", .etag: "\"1\""], request: [.cacheControl: "no-cache"], policy: .preferCache,
            .validate(.request)),
        CacheCase(
            "RFC 9111 §4.2.4 preferCache without validators", [:], age: 100, policy: .preferCache, .hit(.acceptedStale)
        ),
        CacheCase(
            "RFC 5861 §3 preferCache needs no validation in the background",
            [.cacheControl: "max-age=60, stale-while-revalidate=30", .etag: "\"1\""], age: 61, policy: .preferCache,
            .hit(.acceptedStale)),
        CacheCase(
            "RFC 9111 §4.2.4 onlyIfCached uses a fresh response", [.cacheControl: "max-age=60", .etag: "\"1\""],
            age: 59, policy: .onlyIfCached, .hit()),
        CacheCase(
            "RFC 9111 §4.2.4 onlyIfCached uses a stale response", [.cacheControl: "max-age=60", .etag: "\"1\""],
            age: 1_000_000, policy: .onlyIfCached, .hit(.acceptedStale)),
        CacheCase(
            "RFC 9111 §5.2.2.2 onlyIfCached does not override must-revalidate",
            [.cacheControl: "max-age=60, must-revalidate", .etag: "\"1\""], age: 61, policy: .onlyIfCached, .unavailable
        ),
        CacheCase(
            "RFC 9111 §5.2.2.2 onlyIfCached uses a fresh response with must-revalidate",
            [.cacheControl: "max-age=60, must-revalidate", .etag: "\"1\""], age: 59, policy: .onlyIfCached, .hit()),
        CacheCase(
            "RFC 9111 §5.2.2.4 onlyIfCached does not override no-cache",
            [.cacheControl: "max-age=60, no-cache", .etag: "\"1\""], policy: .onlyIfCached, .unavailable),
        CacheCase(
            "RFC 9111 §4.1 onlyIfCached does not override Vary", first: [.accept: "a"],
            [.cacheControl: "max-age=60", .vary: "Accept"], policy: .onlyIfCached, .unavailable),
        CacheCase(
            "RFC 9111 §3.3 onlyIfCached cannot complete a part", [.cacheControl: "max-age=60", .etag: "\"1\""],
            part: (size: 5, of: 10), policy: .onlyIfCached, .unavailable),
        CacheCase(
            "RFC 9111 §4.3 revalidate validates a fresh response", [.cacheControl: "max-age=60", .etag: "\"1\""],
            policy: .revalidate, .validate(.request)),
        CacheCase(
            "RFC 9111 §4.3 revalidate validates a stale response", [.cacheControl: "max-age=60", .etag: "\"1\""],
            age: 61, policy: .revalidate, .validate(.request)),
        CacheCase(
            "RFC 9111 §4.3 revalidate without validators", [.cacheControl: "max-age=60"], policy: .revalidate,
            .forward(.request)),
        CacheCase(
            "RFC 9111 §4.3 revalidate with max-stale", [.cacheControl: "max-age=60", .etag: "\"1\""], age: 61,
            request: [.cacheControl: "max-stale"], policy: .revalidate, .validate(.request)),
        CacheCase(
            "RFC 5861 §3 revalidate waits for the validation",
            [.cacheControl: "max-age=60, stale-while-revalidate=30", .etag: "\"1\""], age: 61, policy: .revalidate,
            .validate(.request)),
        CacheCase(
            "RFC 9111 §5.2.1.7 reload with only-if-cached",
            [.cacheControl: "max-age=60, must-revalidate", .etag: "\"1\""], age: 61,
            request: [.cacheControl: "only-if-cached"], policy: .reload, .unavailable),
        CacheCase(
            "RFC 9111 §5.2.1.7 onlyIfCached with no-store",
            [.cacheControl: "max-age=60, must-revalidate", .etag: "\"1\""], age: 61,
            request: [.cacheControl: "no-store"], policy: .onlyIfCached, .unavailable),
        CacheCase(
            "RFC 9111 §5.2.1.7 revalidate with only-if-cached", [.cacheControl: "max-age=60", .etag: "\"1\""],
            request: [.cacheControl: "only-if-cached"], policy: .revalidate, .unavailable),
    ]

    static let methods: [CacheCase] = [
        CacheCase(
            "RFC 9111 §4 HEAD is answered by a response to GET", [.cacheControl: "max-age=60"], age: 59, method: .head,
            .hit()),
        CacheCase(
            "RFC 9111 §4 a stale response to HEAD is requested anew", [.cacheControl: "max-age=60", .etag: "\"1\""],
            age: 60, method: .head, .forward(.stale)),
        CacheCase(
            "RFC 9111 §4 HEAD with no-cache", [.cacheControl: "max-age=60", .etag: "\"1\""], method: .head,
            request: [.cacheControl: "no-cache"], .forward(.request)),
        CacheCase(
            "RFC 9111 §4 HEAD with only-if-cached and a stale response", [.cacheControl: "max-age=60", .etag: "\"1\""],
            age: 60, method: .head, request: [.cacheControl: "only-if-cached"], .unavailable),
        CacheCase(
            "RFC 9111 §4 HEAD with max-stale", [.cacheControl: "max-age=60", .etag: "\"1\""], age: 61, method: .head,
            request: [.cacheControl: "max-stale"], .hit(.acceptedStale)),
        CacheCase(
            "RFC 9111 §3.3 HEAD with a part", [.cacheControl: "max-age=60", .etag: "\"1\""], part: (size: 5, of: 10),
            method: .head, .forward(.partial)),
        CacheCase("RFC 9111 §4 POST is forwarded", [.cacheControl: "max-age=60"], method: .post, .forward(.method)),
        CacheCase("RFC 9111 §4 PUT is forwarded", [.cacheControl: "max-age=60"], method: .put, .forward(.method)),
        CacheCase("RFC 9111 §4 PATCH is forwarded", [.cacheControl: "max-age=60"], method: .patch, .forward(.method)),
        CacheCase("RFC 9111 §4 DELETE is forwarded", [.cacheControl: "max-age=60"], method: .delete, .forward(.method)),
        CacheCase(
            "RFC 9111 §4 OPTIONS is forwarded", [.cacheControl: "max-age=60"], method: .options, .forward(.method)),
        CacheCase("RFC 9111 §4 TRACE is forwarded", [.cacheControl: "max-age=60"], method: .trace, .forward(.method)),
        CacheCase(
            "RFC 9111 §4 an unknown method is forwarded", [.cacheControl: "max-age=60"], method: "QUERY",
            .forward(.method)),
        CacheCase("RFC 9110 §9.1 methods match case", [.cacheControl: "max-age=60"], method: "get", .forward(.method)),
        CacheCase(
            "RFC 9111 §4 POST is forwarded with preferCache", [.cacheControl: "max-age=60"], method: .post,
            policy: .preferCache, .forward(.method)),
        CacheCase("RFC 9110 §15.5.5 a fresh 404 is used", status: 404, [.cacheControl: "max-age=60"], age: 59, .hit()),
        CacheCase(
            "RFC 9110 §8.4 an encoded response is no decoded one",
            [.cacheControl: "max-age=60", .contentEncoding: "gzip"], .forward(.miss)),
    ]

    static let conditions: [CacheCase] = [
        CacheCase(
            "RFC 9111 §4.3.2 a fresh response answers If-None-Match", [.cacheControl: "max-age=60", .etag: "\"1\""],
            age: 59, request: [.ifNoneMatch: "\"1\""], .hit()),
        CacheCase(
            "RFC 9111 §4.3.2 a fresh response answers If-Modified-Since",
            [.cacheControl: "max-age=60", .lastModified: CacheCase.date(-60)], age: 59,
            request: [.ifModifiedSince: CacheCase.date(0)], .hit()),
        CacheCase(
            "RFC 9111 §4.3.2 a stale response leaves If-None-Match to the server",
            [.cacheControl: "max-age=60", .etag: "\"1\""], age: 60, request: [.ifNoneMatch: "\"2\""], .forward(.stale)),
        CacheCase(
            "RFC 9111 §4.3.2 a stale response leaves If-Modified-Since to the server",
            [.cacheControl: "max-age=60", .lastModified: CacheCase.date(-60)], age: 60,
            request: [.ifModifiedSince: CacheCase.date(0)], .forward(.stale)),
        CacheCase(
            "RFC 9111 §4.3.2 a stale response leaves If-Match to the server",
            [.cacheControl: "max-age=60", .etag: "\"1\""], age: 60, request: [.ifMatch: "\"1\""], .forward(.stale)),
        CacheCase(
            "RFC 9111 §4.3.2 a stale response leaves If-Unmodified-Since to the server",
            [.cacheControl: "max-age=60", .etag: "\"1\""], age: 60, request: [.ifUnmodifiedSince: CacheCase.date(0)],
            .forward(.stale)),
        CacheCase(
            "RFC 9111 §4.3.2 no-cache leaves If-None-Match to the server", [.cacheControl: "no-cache", .etag: "\"1\""],
            request: [.ifNoneMatch: "\"1\""], .forward(.miss)),
        CacheCase(
            "RFC 9111 §4.3.2 a precondition with only-if-cached", [.cacheControl: "max-age=60", .etag: "\"1\""],
            age: 60, request: [.ifNoneMatch: "\"1\"", .cacheControl: "only-if-cached"], .unavailable),
        CacheCase(
            "RFC 9111 §4.3.2 a precondition with max-stale", [.cacheControl: "max-age=60", .etag: "\"1\""], age: 61,
            request: [.ifNoneMatch: "\"1\"", .cacheControl: "max-stale"], .hit(.acceptedStale)),
        CacheCase(
            "RFC 9110 §14.2 a fresh response answers Range", [.cacheControl: "max-age=60", .etag: "\"1\""], age: 59,
            request: [.range: "bytes=0-1"], .hit()),
        CacheCase(
            "RFC 9110 §14.2 a stale response leaves Range to the server",
            [.cacheControl: "max-age=60", .etag: "\"1\""],
            age: 60, request: [.range: "bytes=0-1"], .forward(.stale)),
        CacheCase(
            "RFC 9110 §14.2 a stale response leaves If-Range to the server",
            [.cacheControl: "max-age=60", .etag: "\"1\""], age: 60, request: [.range: "bytes=0-1", .ifRange: "\"1\""],
            .forward(.stale)),
        CacheCase(
            "RFC 9111 §3.4 a part is completed", [.cacheControl: "max-age=60", .etag: "\"1\""], part: (size: 5, of: 10),
            .complete),
        CacheCase(
            "RFC 9111 §3.4 a stale part is completed", [.cacheControl: "max-age=60", .etag: "\"1\""],
            part: (size: 5, of: 10), age: 100, .complete),
        CacheCase(
            "RFC 9111 §3.4 a part with a weak entity tag is not completed",
            [.cacheControl: "max-age=60", .etag: "W/\"1\""], part: (size: 5, of: 10), .forward(.partial)),
        CacheCase(
            "RFC 9111 §3.4 a part with a strong last change is completed",
            [.cacheControl: "max-age=60", .lastModified: CacheCase.date(-60)], part: (size: 5, of: 10), .complete),
        CacheCase(
            "RFC 9110 §8.8.2.2 a change in the second of Date is weak",
            [.cacheControl: "max-age=60", .lastModified: CacheCase.date(0)], part: (size: 5, of: 10), .forward(.partial)
        ),
        CacheCase(
            "RFC 9110 §8.8.2.2 a change without a valid Date is weak",
            [.cacheControl: "max-age=60", .lastModified: CacheCase.date(-60), .date: "x"], part: (size: 5, of: 10),
            .forward(.partial)),
        CacheCase(
            "RFC 9110 §13.1.5 a weak entity tag hides the last change",
            [.cacheControl: "max-age=60", .lastModified: CacheCase.date(-60), .etag: "W/\"1\""],
            part: (size: 5, of: 10), .forward(.partial)),
        CacheCase(
            "RFC 9111 §3.4 a part without validators is not completed", [.cacheControl: "max-age=60"],
            part: (size: 5, of: 10), .forward(.partial)),
        CacheCase(
            "RFC 9111 §3.4 an empty part is not completed", [.cacheControl: "max-age=60", .etag: "\"1\""],
            part: (size: 0, of: 10), .forward(.partial)),
        CacheCase(
            "RFC 9111 §3.3 a part answers no Range by itself", [.cacheControl: "max-age=60", .etag: "\"1\""],
            part: (size: 5, of: 10), request: [.range: "bytes=0-1"], .forward(.partial)),
        CacheCase(
            "RFC 9111 §3.4 a part leaves If-None-Match to the server", [.cacheControl: "max-age=60", .etag: "\"1\""],
            part: (size: 5, of: 10), request: [.ifNoneMatch: "\"1\""], .forward(.partial)),
        CacheCase(
            "RFC 9111 §3.4 a part with no-store in the request", [.cacheControl: "max-age=60", .etag: "\"1\""],
            part: (size: 5, of: 10), request: [.cacheControl: "no-store"], .forward(.request)),
        CacheCase(
            "RFC 9111 §3.3 a part is not used with preferCache", [.cacheControl: "max-age=60", .etag: "\"1\""],
            part: (size: 5, of: 10), policy: .preferCache, .complete),
        CacheCase(
            "RFC 9111 §3.4 a part for another Vary is not completed", first: [.accept: "a"],
            [.cacheControl: "max-age=60", .etag: "\"1\"", .vary: "Accept"], part: (size: 5, of: 10), .forward(.varyMiss)
        ),
    ]

    /// Returns an entry that was received some seconds after the start.
    private static func entry(_ fields: HeaderFields, after offset: Double = 0) -> HTTPCache.Entry {
        let time = Date(timeIntervalSince1970: CacheCase.start + offset)
        return HTTPCache.Entry(
            key: CacheCase.url, url: CacheCase.url, head: ResponseHead(status: 200, url: CacheCase.url), fields: fields,
            requestFields: [:], requestedAt: time, receivedAt: time)
    }

    private static func decision(_ entries: [HTTPCache.Entry], _ request: CacheRequest) -> CacheDecision {
        CacheRules().decide(request, entries, at: Date(timeIntervalSince1970: CacheCase.start))
    }

    @Test func nothingStoredIsAMissOfTheURL() {
        let request = CacheRequest(.get, CacheCase.url)
        #expect(Self.decision([], request) == .forward(.init(.uriMiss)))
    }

    @Test func nothingStoredIsUnavailableOffline() {
        let request = CacheRequest(.get, CacheCase.url, policy: .onlyIfCached)
        #expect(Self.decision([], request) == .unavailable(.init(.uriMiss, reason: .onlyIfCached)))
    }

    /// RFC 9111 §4: the response with the most recent Date is used, or the one that arrived last.
    @Test func mostRecentResponseIsUsed() {
        let request = CacheRequest(.get, CacheCase.url)
        let old = Self.entry([.date: CacheCase.date(-20), .cacheControl: "max-age=60"], after: -5)
        let new = Self.entry([.date: CacheCase.date(-10), .cacheControl: "max-age=60"], after: -10)
        #expect(Self.decision([old, new], request) == .serve(new, .init(hit: .seconds(50))))
        #expect(Self.decision([new, old], request) == .serve(new, .init(hit: .seconds(50))))
        let late = Self.entry([.date: CacheCase.date(-10), .cacheControl: "max-age=60"], after: -4)
        #expect(Self.decision([late, new], request) == .serve(late, .init(hit: .seconds(50))))
    }

    @Test func encodedResponseIsUsedWithoutDecoding() {
        let request = CacheRequest(.get, CacheCase.url, decodes: false)
        let entry = Self.entry([
            .date: CacheCase.date(0), .cacheControl: "max-age=60", .contentEncoding: "gzip",
        ])
        #expect(Self.decision([entry], request) == .serve(entry, .init(hit: .seconds(60))))
    }

    @Test func reasonsAreReported() {
        let stale: HeaderFields = [.date: CacheCase.date(0), .cacheControl: "max-age=0"]
        let entry = Self.entry(stale)
        let request = CacheRequest(.get, CacheCase.url)
        #expect(Self.decision([entry], request) == .forward(.init(.stale, reason: .noValidator), instead: entry))
        let uncached = Self.entry([.date: CacheCase.date(0), .cacheControl: "no-cache"])
        #expect(Self.decision([uncached], request) == .forward(.init(.miss, reason: .noCache), instead: uncached))
        let unstored = CacheRequest(.get, CacheCase.url, fields: [.cacheControl: "no-store"])
        #expect(Self.decision([entry], unstored) == .forward(.init(.request, reason: .requestNoStore)))
    }

    /// The session's own fields count like those of the request (RFC 9111 §4.1).
    @Test func defaultFieldsAreMatched() {
        var entry = Self.entry([.date: CacheCase.date(0), .cacheControl: "max-age=60", .vary: "Accept"])
        entry.requestFields = [.accept: "a"]
        let same = CacheRequest(.get, CacheCase.url, defaults: [.accept: "a"])
        #expect(Self.decision([entry], same) == .serve(entry, .init(hit: .seconds(60))))
        let other = CacheRequest(.get, CacheCase.url, fields: [.accept: "b"], defaults: [.accept: "a"])
        #expect(Self.decision([entry], other) == .forward(.init(.varyMiss)))
    }

    /// RFC 9110 §6.6.1: a response without `Date` was made when it arrived.
    @Test func missingDateIsTheTimeOfReceipt() {
        let entry = Self.entry([.expires: CacheCase.date(60)])
        let request = CacheRequest(.get, CacheCase.url)
        #expect(CacheRules.date(of: entry) == CacheCase.start)
        #expect(Self.decision([entry], request) == .serve(entry, .init(hit: .seconds(60))))
    }

    /// The tables must not shrink unnoticed.
    @Test func tablesHaveAtLeastFourHundredRows() {
        let all = [
            CacheStoringTests.statuses, CacheStoringTests.freshStatuses, CacheStoringTests.directives,
            CacheStoringTests.credentials, CacheSharedTests.shared, CacheSharedTests.targeted,
            CacheFreshnessTests.maxAge, CacheFreshnessTests.expires, CacheFreshnessTests.heuristics,
            CacheMatchingTests.ages, CacheMatchingTests.varying, CacheDecidingTests.requests,
            CacheDecidingTests.responses, Self.policies, Self.methods, Self.conditions,
        ].flatMap(\.self)
        #expect(all.count >= 400)
        #expect(all.allSatisfy { $0.name.hasPrefix("RFC ") } && Set(all.map(\.name)).count == all.count)
    }
}
