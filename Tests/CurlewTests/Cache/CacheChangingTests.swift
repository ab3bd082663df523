// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing

@testable import Curlew

/// Parts (RFC 9111 §3.4), invalidation (§4.4), and responses instead of errors (RFC 5861 §4), as tables.
struct CacheChangingTests {
    /// A response of the server to a request for the rest of ten bytes whose first five are stored.
    struct Rest: Sendable, CustomTestStringConvertible {
        let name: String
        let stored: HeaderFields
        let status: Status
        let response: HeaderFields
        let isCombined: Bool

        init(
            _ name: String, stored: HeaderFields = [.etag: "\"1\""], status: Status = 206, _ response: HeaderFields,
            _ isCombined: Bool
        ) {
            (self.name, self.stored, self.status) = (name, stored, status)
            (self.response, self.isCombined) = (response, isCombined)
        }

        var testDescription: String { name }
    }

    /// A response, and the size of its body if its start may be stored.
    struct Start: Sendable, CustomTestStringConvertible {
        let name: String
        let status: Status
        let response: HeaderFields
        let size: Int64?

        init(_ name: String, status: Status = 200, _ response: HeaderFields, _ size: Int64?) {
            (self.name, self.status, self.response, self.size) = (name, status, response, size)
        }

        var testDescription: String { name }
    }

    /// A response to a request for `CacheCase.url`, and the paths and groups that it invalidates.
    struct Change: Sendable, CustomTestStringConvertible {
        let name: String
        let method: Curlew.Method
        let status: Status
        let fields: HeaderFields
        let invalidations: [CacheRules.Invalidation]

        init(
            _ name: String, _ method: Curlew.Method, _ status: Status, fields: HeaderFields = [:], _ paths: [String],
            groups: [String] = []
        ) {
            (self.name, self.method, self.status, self.fields) = (name, method, status, fields)
            let origin = "https://example.com"
            invalidations =
                paths.map { CacheRules.Invalidation.url(origin + $0) }
                + groups.map { CacheRules.Invalidation.group($0, origin: origin) }
        }

        var testDescription: String { name }
    }

    /// A stored response, and whether it is used instead of an error some seconds after its receipt.
    struct Failure: Sendable, CustomTestStringConvertible {
        let name: String
        let isShared: Bool
        let stored: HeaderFields
        let total: Int64?
        let age: Double
        let request: HeaderFields
        let isReplaced: Bool

        init(
            _ name: String, shared: Bool = false, _ stored: HeaderFields, of total: Int64? = nil, age: Double,
            request: HeaderFields = [:], _ isReplaced: Bool
        ) {
            (self.name, isShared, self.stored, self.total) = (name, shared, stored, total)
            (self.age, self.request, self.isReplaced) = (age, request, isReplaced)
        }

        var testDescription: String { name }
    }

    @Test(arguments: rests) func restIsCombinedWithTheStart(_ row: Rest) {
        let entry = CacheUpdatingTests.entry(row.stored, size: 5, of: 10)
        let head = ResponseHead(status: row.status, fields: row.response)
        let later = CacheUpdatingTests.later
        let combined = CacheRules().combined(
            entry, with: head, to: CacheUpdatingTests.request, requestedAt: later, receivedAt: later)
        #expect((combined != nil) == row.isCombined)
    }

    @Test func combinedResponseIsNewAndWhole() throws {
        let entry = CacheUpdatingTests.entry([.etag: "\"1\"", .contentLength: "10"], size: 5, of: 10)
        let fields: HeaderFields = [
            .etag: "\"1\"", .contentRange: "bytes 5-9/10", .contentLength: "5", .cacheControl: "max-age=60",
        ]
        let head = ResponseHead(status: 206, fields: fields)
        let later = CacheUpdatingTests.later
        let combined = try #require(
            CacheRules().combined(
                entry, with: head, to: CacheUpdatingTests.request, requestedAt: later, receivedAt: later))
        #expect(combined.id != entry.id && combined.isComplete && combined.size == 0 && combined.status == 200)
        #expect(combined.fields[.contentLength] == "10" && combined.fields[.contentRange] == nil)
        #expect(combined.fields[.cacheControl] == "max-age=60" && combined.receivedAt == later)
    }

    @Test(arguments: starts) func startMayBeStored(_ row: Start) {
        let head = ResponseHead(status: row.status, fields: row.response)
        #expect(CacheRules.completeSize(of: head) == row.size)
    }

    @Test(arguments: changes) func responseInvalidates(_ row: Change) {
        let head = ResponseHead(status: row.status, fields: row.fields)
        let request = CacheRequest(row.method, CacheCase.url)
        #expect(CacheRules.invalidated(by: head, to: request) == row.invalidations)
    }

    @Test(arguments: failures) func staleResponseReplacesAnError(_ row: Failure) {
        let entry = CacheUpdatingTests.entry(row.stored, of: row.total)
        let request = CacheRequest(.get, CacheCase.url, fields: row.request)
        let now = Date(timeIntervalSince1970: CacheCase.start + row.age)
        #expect(CacheRules(isShared: row.isShared).mayReplaceError(entry, request, at: now) == row.isReplaced)
    }

    /// RFC 9111 §4.3.1.
    @Test func validatorsBecomePreconditions() {
        let date = CacheCase.date(-60)
        func preconditions(_ fields: HeaderFields) -> HeaderFields {
            CacheRules.preconditions(for: CacheUpdatingTests.entry(fields))
        }
        #expect(preconditions([:]).isEmpty)
        #expect(preconditions([.etag: "W/\"1\""]) == [.ifNoneMatch: "W/\"1\""])
        #expect(preconditions([.lastModified: date]) == [.ifModifiedSince: date])
        #expect(
            preconditions([.lastModified: date, .etag: "\"1\""]) == [.ifNoneMatch: "\"1\"", .ifModifiedSince: date])
    }

    /// RFC 9111 §3.4 and RFC 9110 §13.1.5.
    @Test func strongValidatorCompletesAStart() {
        let date = CacheCase.date(-60)
        func completion(_ fields: HeaderFields) -> HeaderFields? {
            CacheRules.completion(of: CacheUpdatingTests.entry(fields, size: 5, of: 10))
        }
        #expect(completion([.etag: "\"1\""]) == [.range: "bytes=5-", .ifRange: "\"1\""])
        #expect(completion([.lastModified: date, .date: CacheCase.date(0)]) == [.range: "bytes=5-", .ifRange: date])
        #expect(completion([.lastModified: date, .date: date]) == nil)
        #expect(completion([.etag: "W/\"1\"", .lastModified: date, .date: CacheCase.date(0)]) == nil)
        #expect(completion([:]) == nil)
    }

    static let rests: [Rest] = [
        Rest("RFC 9111 §3.4 the rest", [.etag: "\"1\"", .contentRange: "bytes 5-9/10"], true),
        Rest("RFC 9111 §3.4 the rest with another entity tag", [.etag: "\"2\"", .contentRange: "bytes 5-9/10"], false),
        Rest(
            "RFC 9111 §3.4 the rest with a weak entity tag", [.etag: "W/\"1\"", .contentRange: "bytes 5-9/10"], false),
        Rest("RFC 9111 §3.4 the rest of a larger body", [.etag: "\"1\"", .contentRange: "bytes 5-9/11"], false),
        Rest(
            "RFC 9111 §3.4 the rest of a body of unknown size", [.etag: "\"1\"", .contentRange: "bytes 5-9/*"], false),
        Rest("RFC 9111 §3.4 a rest that begins too late", [.etag: "\"1\"", .contentRange: "bytes 6-9/10"], false),
        Rest("RFC 9111 §3.4 a rest that begins too early", [.etag: "\"1\"", .contentRange: "bytes 4-9/10"], false),
        Rest("RFC 9111 §3.4 a rest that ends too early", [.etag: "\"1\"", .contentRange: "bytes 5-8/10"], false),
        Rest("RFC 9111 §3.4 no Content-Range", [.etag: "\"1\""], false),
        Rest("RFC 9111 §3.4 an invalid Content-Range", [.etag: "\"1\"", .contentRange: "bytes 5-10/10"], false),
        Rest("RFC 9111 §3.4 a Content-Range without bytes", [.etag: "\"1\"", .contentRange: "bytes */10"], false),
        Rest("RFC 9110 §14.4 another unit", [.etag: "\"1\"", .contentRange: "items 5-9/10"], false),
        Rest(
            "RFC 9111 §3.4 an encoded rest", [.etag: "\"1\"", .contentRange: "bytes 5-9/10", .contentEncoding: "gzip"],
            false),
        Rest("RFC 9111 §3.4 a whole response", status: 200, [.etag: "\"1\"", .contentRange: "bytes 5-9/10"], false),
        Rest(
            "RFC 9111 §3.4 a start with a weak entity tag", stored: [.etag: "W/\"1\""],
            [.etag: "W/\"1\"", .contentRange: "bytes 5-9/10"], false),
        Rest("RFC 9111 §3.4 a start without validators", stored: [:], [.contentRange: "bytes 5-9/10"], false),
        Rest(
            "RFC 9111 §3.4 a start with a strong last change",
            stored: [.lastModified: CacheCase.date(-60), .date: CacheCase.date(0)],
            [.lastModified: CacheCase.date(-60), .contentRange: "bytes 5-9/10"], true),
        Rest(
            "RFC 9111 §3.4 a start with another last change",
            stored: [.lastModified: CacheCase.date(-60), .date: CacheCase.date(0)],
            [.lastModified: CacheCase.date(-50), .contentRange: "bytes 5-9/10"], false),
    ]

    static let starts: [Start] = [
        Start("RFC 9111 §3.3 a start with a strong entity tag", [.etag: "\"1\"", .contentLength: "10"], 10),
        Start(
            "RFC 9111 §3.3 a start with a strong change",
            [.lastModified: CacheCase.date(-60), .date: CacheCase.date(0), .contentLength: "10"], 10),
        Start(
            "RFC 9111 §3.3 a start with units for ranges",
            [.etag: "\"1\"", .acceptRanges: "bytes", .contentLength: "10"], 10),
        Start(
            "RFC 9110 §14.3 a start without ranges", [.etag: "\"1\"", .acceptRanges: "none", .contentLength: "10"], nil
        ),
        Start(
            "RFC 9110 §14.3 a start without ranges in capitals",
            [.etag: "\"1\"", .acceptRanges: "None", .contentLength: "10"], nil),
        Start("RFC 9111 §3.3 a start without a length", [.etag: "\"1\""], nil),
        Start("RFC 9111 §3.3 a start with an invalid length", [.etag: "\"1\"", .contentLength: "ten"], nil),
        Start("RFC 9111 §3.4 a start with a tag that is weak", [.etag: "W/\"1\"", .contentLength: "10"], nil),
        Start("RFC 9110 §8.8.3 a start with a tag without quotes", [.etag: "1", .contentLength: "10"], nil),
        Start("RFC 9111 §3.4 a start without a validator", [.contentLength: "10"], nil),
        Start("RFC 9111 §3.3 an encoded start", [.etag: "\"1\"", .contentEncoding: "gzip", .contentLength: "10"], nil),
        Start("RFC 9111 §3.3 a start of another status", status: 404, [.etag: "\"1\"", .contentLength: "10"], nil),
    ]

    static let changes: [Change] = [
        Change("RFC 9111 §4.4 POST invalidates the URL", .post, 200, ["/a"]),
        Change("RFC 9111 §4.4 PUT invalidates the URL", .put, 204, ["/a"]),
        Change("RFC 9111 §4.4 DELETE invalidates the URL", .delete, 200, ["/a"]),
        Change("RFC 9111 §4.4 PATCH invalidates the URL", .patch, 200, ["/a"]),
        Change("RFC 9111 §4.4 an unknown method invalidates the URL", "PURGE", 200, ["/a"]),
        Change("RFC 9111 §4.4 a redirect of POST invalidates the URL", .post, 303, ["/a"]),
        Change("RFC 9111 §4.4 the last status without an error", .post, 399, ["/a"]),
        Change("RFC 9111 §4.4 GET invalidates nothing", .get, 200, []),
        Change("RFC 9111 §4.4 HEAD invalidates nothing", .head, 200, []),
        Change("RFC 9111 §4.4 OPTIONS invalidates nothing", .options, 200, []),
        Change("RFC 9111 §4.4 TRACE invalidates nothing", .trace, 200, []),
        Change("RFC 9111 §4.4 a client error invalidates nothing", .post, 404, []),
        Change("RFC 9111 §4.4 a server error invalidates nothing", .delete, 500, []),
        Change("RFC 9111 §4.4 an informational response invalidates nothing", .post, 101, []),
        Change(
            "RFC 9111 §4.4 a Location of the origin", .post, 201, fields: [.location: "https://example.com/b"],
            ["/a", "/b"]),
        Change("RFC 9111 §4.4 a relative Location", .post, 201, fields: [.location: "b?c"], ["/a", "/b?c"]),
        Change(
            "RFC 9111 §4.4 a Location with the default port", .post, 201,
            fields: [.location: "https://example.com:443/b"], ["/a", "/b"]),
        Change(
            "RFC 9111 §4.4 a Location with another case", .post, 201, fields: [.location: "HTTPS://EXAMPLE.com/b"],
            ["/a", "/b"]),
        Change(
            "RFC 9111 §4.4 a Location of another host", .post, 201, fields: [.location: "https://example.org/b"], ["/a"]
        ),
        Change(
            "RFC 9111 §4.4 a Location of a subdomain", .post, 201, fields: [.location: "https://www.example.com/b"],
            ["/a"]),
        Change(
            "RFC 9111 §4.4 a Location of another scheme", .post, 201, fields: [.location: "http://example.com/b"],
            ["/a"]),
        Change(
            "RFC 9111 §4.4 a Location of another port", .post, 201, fields: [.location: "https://example.com:444/b"],
            ["/a"]),
        Change("RFC 9111 §4.4 an invalid Location", .post, 201, fields: [.location: "https://[/b"], ["/a"]),
        Change("RFC 9111 §4.4 a Content-Location", .put, 200, fields: [.contentLocation: "/c"], ["/a", "/c"]),
        Change(
            "RFC 9111 §4.4 Location and Content-Location", .post, 201,
            fields: [.contentLocation: "/c", .location: "/b"], ["/a", "/b", "/c"]),
        Change("RFC 9111 §4.4 a Location in an error", .post, 409, fields: [.location: "/b"], []),
        Change("RFC 9111 §4.4 a Content-Location of GET", .get, 200, fields: [.contentLocation: "/c"], []),
        Change(
            "RFC 9875 §3 groups", .post, 200, fields: ["Cache-Group-Invalidation": "\"x\", \"y\""], ["/a"],
            groups: ["x", "y"]),
        Change("RFC 9875 §3 groups of a safe method", .get, 200, fields: ["Cache-Group-Invalidation": "\"x\""], []),
        Change("RFC 9875 §3 groups of an error", .post, 500, fields: ["Cache-Group-Invalidation": "\"x\""], []),
        Change(
            "RFC 9875 §3 an invalid list of groups", .post, 200, fields: ["Cache-Group-Invalidation": "\"x\", y"],
            ["/a"]),
    ]

    static let failures: [Failure] = [
        Failure(
            "RFC 5861 §4 within the time of the response", [.cacheControl: "max-age=60, stale-if-error=30"], age: 89,
            true),
        Failure(
            "RFC 5861 §4 after the time of the response", [.cacheControl: "max-age=60, stale-if-error=30"], age: 91,
            false),
        Failure(
            "RFC 5861 §4 within the time of the request", [.cacheControl: "max-age=60"], age: 89,
            request: [.cacheControl: "stale-if-error=30"], true),
        Failure(
            "RFC 5861 §4 after the time of the request", [.cacheControl: "max-age=60"], age: 91,
            request: [.cacheControl: "stale-if-error=30"], false),
        Failure("RFC 5861 §4 without a time", [.cacheControl: "max-age=60"], age: 61, false),
        Failure("RFC 5861 §4 with an invalid time", [.cacheControl: "max-age=60, stale-if-error=x"], age: 61, false),
        Failure("RFC 5861 §4 with a time of zero", [.cacheControl: "max-age=60, stale-if-error=0"], age: 61, false),
        Failure("RFC 5861 §4 a fresh response", [.cacheControl: "max-age=60, stale-if-error=30"], age: 10, true),
        Failure(
            "RFC 9111 §5.2.2.2 must-revalidate forbids errors to be replaced",
            [.cacheControl: "max-age=60, must-revalidate, stale-if-error=30"], age: 61, false),
        Failure(
            "RFC 9111 §5.2.2.2 the request does not override must-revalidate",
            [.cacheControl: "max-age=60, must-revalidate"], age: 61, request: [.cacheControl: "stale-if-error=30"],
            false),
        Failure(
            "RFC 9111 §5.2.2.4 no-cache forbids errors to be replaced",
            [.cacheControl: "no-cache, max-age=60, stale-if-error=30"], age: 61, false),
        Failure(
            "RFC 9111 §5.2.1.4 no-cache of the request forbids errors to be replaced",
            [.cacheControl: "max-age=60, stale-if-error=30"], age: 61, request: [.cacheControl: "no-cache"], false),
        Failure(
            "RFC 9111 §5.2.2.8 proxy-revalidate in a private cache",
            [.cacheControl: "max-age=60, proxy-revalidate, stale-if-error=30"], age: 61, true),
        Failure(
            "RFC 9111 §5.2.2.8 proxy-revalidate forbids errors to be replaced", shared: true,
            [.cacheControl: "max-age=60, proxy-revalidate, stale-if-error=30"], age: 61, false),
        Failure(
            "RFC 9111 §5.2.2.10 s-maxage forbids errors to be replaced", shared: true,
            [.cacheControl: "s-maxage=60, stale-if-error=30"], age: 61, false),
        Failure(
            "RFC 9111 §3.3 a part replaces no error", [.cacheControl: "max-age=60, stale-if-error=30"], of: 10, age: 61,
            false),
        Failure(
            "RFC 9111 §4.2.3 a step back of the clock", [.cacheControl: "max-age=60, stale-if-error=30"], age: -100,
            false),
    ]
}
