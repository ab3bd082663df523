// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing

@testable import Curlew

/// How responses of the server change stored responses (RFC 9111 §3.2, §4.3.4, §4.3.5), as tables.
struct CacheUpdatingTests {
    /// A stored response, a response of the server, and whether the second is about the first.
    struct Match: Sendable, CustomTestStringConvertible {
        let name: String
        let stored: HeaderFields
        let response: HeaderFields
        let isMatch: Bool

        init(_ name: String, _ stored: HeaderFields, _ response: HeaderFields, _ isMatch: Bool) {
            (self.name, self.stored, self.response, self.isMatch) = (name, stored, response, isMatch)
        }

        var testDescription: String { name }
    }

    /// A stored response, a response of the server, and the fields of the updated one in any order.
    struct Update: Sendable, CustomTestStringConvertible {
        let name: String
        let stored: HeaderFields
        let response: HeaderFields
        let isShared: Bool
        let result: HeaderFields

        init(
            _ name: String, _ stored: HeaderFields, _ response: HeaderFields, shared: Bool = false,
            _ result: HeaderFields
        ) {
            (self.name, self.stored, self.response) = (name, stored, response)
            (isShared, self.result) = (shared, result)
        }

        var testDescription: String { name }
    }

    /// Returns an entry that was received at `CacheCase.start`.
    static func entry(
        _ fields: HeaderFields, _ status: Status = 200, size: Int64 = 10, of total: Int64? = nil
    ) -> HTTPCache.Entry {
        let time = Date(timeIntervalSince1970: CacheCase.start)
        var entry = HTTPCache.Entry(
            key: CacheCase.url, url: CacheCase.url, head: ResponseHead(status: status, url: CacheCase.url),
            fields: fields, requestFields: [:], requestedAt: time, receivedAt: time)
        (entry.size, entry.completeSize) = (size, total)
        return entry
    }

    static let request = CacheRequest(.get, CacheCase.url)
    static let later = Date(timeIntervalSince1970: CacheCase.start + 100)

    @Test(arguments: confirmations) func confirmationIsAboutStoredResponse(_ row: Match) {
        let head = ResponseHead(status: 304, fields: row.response)
        #expect(CacheRules.confirms(head, Self.entry(row.stored)) == row.isMatch)
    }

    @Test(arguments: descriptions) func responseToHEADIsCompared(_ row: Match) {
        let head = ResponseHead(status: 200, fields: row.response)
        #expect(CacheRules.describes(head, Self.entry(row.stored)) == row.isMatch)
    }

    @Test(arguments: updates) func fieldsAreUpdated(_ row: Update) {
        let entry = Self.entry(row.stored)
        let head = ResponseHead(status: 304, fields: row.response)
        let updated = CacheRules(isShared: row.isShared).updated(
            entry, by: head, to: Self.request, requestedAt: Self.later, receivedAt: Self.later)
        #expect(Set(updated.fields) == Set(row.result))
    }

    @Test func updateKeepsTheBodyAndRenewsTheTimes() {
        let entry = Self.entry([.etag: "\"1\"", .cacheControl: "max-age=60"])
        let head = ResponseHead(status: 304, fields: [.etag: "\"1\""])
        let received = Self.later.addingTimeInterval(1)
        let updated = CacheRules().updated(
            entry, by: head, to: Self.request, requestedAt: Self.later, receivedAt: received)
        #expect(updated.id == entry.id && updated.size == 10 && updated.status == 200)
        #expect(updated.requestedAt == Self.later && updated.receivedAt == received)
        #expect(CacheRules().freshness(of: updated, at: received).timeToLive == .seconds(59))
    }

    @Test func entityTagIsComparedWithoutItsMark() {
        #expect(CacheRules.opaque("W/\"1\"") == Array("\"1\"".utf8))
        #expect(CacheRules.opaque(" \"1\" ") == Array("\"1\"".utf8))
    }

    static let confirmations: [Match] = [
        Match("RFC 9111 §4.3.4 an equal strong entity tag", [.etag: "\"1\""], [.etag: "\"1\""], true),
        Match("RFC 9111 §4.3.4 another strong entity tag", [.etag: "\"1\""], [.etag: "\"2\""], false),
        Match("RFC 9111 §4.3.4 a weak entity tag for a strong one", [.etag: "\"1\""], [.etag: "W/\"1\""], true),
        // nginx weakens the tag of a response that it compresses, but not that of the 304.
        Match("RFC 9111 §4.3.4 a strong entity tag for a weak one", [.etag: "W/\"1\""], [.etag: "\"1\""], true),
        Match("RFC 9111 §4.3.4 an equal weak entity tag", [.etag: "W/\"1\""], [.etag: "W/\"1\""], true),
        Match("RFC 9111 §4.3.4 another weak entity tag", [.etag: "W/\"1\""], [.etag: "W/\"2\""], false),
        Match(
            "RFC 9111 §4.3.4 an equal entity tag with another date",
            [.etag: "\"1\"", .lastModified: CacheCase.date(-60)], [.etag: "\"1\"", .lastModified: CacheCase.date(-50)],
            true),
        Match(
            "RFC 9111 §4.3.4 another entity tag with an equal date",
            [.etag: "\"1\"", .lastModified: CacheCase.date(-60)], [.etag: "\"2\"", .lastModified: CacheCase.date(-60)],
            false),
        Match(
            "RFC 9111 §4.3.4 an entity tag for a response that has only a date", [.lastModified: CacheCase.date(-60)],
            [.etag: "\"1\""], false),
        Match(
            "RFC 9111 §4.3.4 an equal date", [.lastModified: CacheCase.date(-60)], [.lastModified: CacheCase.date(-60)],
            true),
        Match(
            "RFC 9111 §4.3.4 another date", [.lastModified: CacheCase.date(-60)], [.lastModified: CacheCase.date(-50)],
            false),
        Match(
            "RFC 9111 §4.3.4 an equal date for a response that has an entity tag, too",
            [.etag: "\"1\"", .lastModified: CacheCase.date(-60)], [.lastModified: CacheCase.date(-60)], true),
        Match("RFC 9111 §4.3.4 no validator on either side", [:], [.date: CacheCase.date(0)], true),
        Match("RFC 9110 §8.8.3 an empty entity tag", [.etag: "\"\""], [.etag: "\"\""], true),
        Match("RFC 9110 §8.8.3 entity tags match case", [.etag: "\"a\""], [.etag: "\"A\""], false),
        Match("RFC 9110 §8.8.3 the mark for weakness matches case", [.etag: "\"1\""], [.etag: "w/\"1\""], false),
        Match("RFC 9110 §5.5 space around an entity tag", [.etag: "\"1\""], [.etag: " \"1\"\t"], true),
    ]

    static let descriptions: [Match] = [
        Match("RFC 9111 §4.3.5 HEAD without validators", [.etag: "\"1\""], [.date: CacheCase.date(0)], true),
        Match("RFC 9111 §4.3.5 HEAD with an equal entity tag", [.etag: "\"1\""], [.etag: "\"1\""], true),
        Match("RFC 9111 §4.3.5 HEAD with another entity tag", [.etag: "\"1\""], [.etag: "\"2\""], false),
        // nginx weakens the tag of a response that it compresses, but not that of a 304, which the entry may have.
        Match("RFC 9111 §4.3.5 HEAD with a weak entity tag", [.etag: "\"1\""], [.etag: "W/\"1\""], true),
        Match(
            "RFC 9111 §4.3.5 HEAD with an equal date", [.lastModified: CacheCase.date(-60)],
            [.lastModified: CacheCase.date(-60)], true),
        Match(
            "RFC 9111 §4.3.5 HEAD with another date", [.lastModified: CacheCase.date(-60)],
            [.lastModified: CacheCase.date(-50)], false),
        Match(
            "RFC 9111 §4.3.5 HEAD with an equal entity tag and another date",
            [.etag: "\"1\"", .lastModified: CacheCase.date(-60)], [.etag: "\"1\"", .lastModified: CacheCase.date(-50)],
            false),
        Match(
            "RFC 9111 §4.3.5 HEAD with an entity tag that the response lacks", [.lastModified: CacheCase.date(-60)],
            [.etag: "\"1\""], false),
        Match(
            "RFC 9111 §4.3.5 HEAD with a date that the response lacks", [.etag: "\"1\""],
            [.lastModified: CacheCase.date(-60)], false),
        Match(
            "RFC 9111 §4.3.5 HEAD with an equal length", [.etag: "\"1\"", .contentLength: "5"],
            [.etag: "\"1\"", .contentLength: "5"], true),
        Match(
            "RFC 9111 §4.3.5 HEAD with another length", [.etag: "\"1\"", .contentLength: "5"],
            [.etag: "\"1\"", .contentLength: "6"], false),
        Match("RFC 9111 §4.3.5 HEAD without a length", [.etag: "\"1\"", .contentLength: "5"], [.etag: "\"1\""], true),
        Match("RFC 9111 §4.3.5 HEAD with another length alone", [.contentLength: "5"], [.contentLength: "6"], false),
        Match(
            "RFC 9111 §4.3.5 HEAD with the length of the encoded body", [.etag: "\"1\"", .contentLength: "5"],
            [.etag: "\"1\"", .contentLength: "9", .contentEncoding: "gzip"], true),
    ]

    static let updates: [Update] = [
        Update(
            "RFC 9111 §3.2 the type of the stored body stays", [.contentType: "text/plain"],
            [.contentType: "text/html"],
            [.contentType: "text/plain"]),
        Update(
            "RFC 9211 §2 the report of another cache is not added", [.etag: "\"1\""], ["Cache-Status": "other; hit"],
            [.etag: "\"1\""]),
        Update(
            "RFC 9111 §3.2 a field is replaced", [.cacheControl: "max-age=60", .etag: "\"1\""],
            [.cacheControl: "max-age=10"], [.cacheControl: "max-age=10", .etag: "\"1\""]),
        Update("RFC 9111 §3.2 a field is added", [.etag: "\"1\""], ["X-A": "1"], [.etag: "\"1\"", "X-A": "1"]),
        Update(
            "RFC 9111 §3.2 a field that is not sent stays", ["X-A": "1", .etag: "\"1\""], [.etag: "\"1\""],
            ["X-A": "1", .etag: "\"1\""]),
        Update(
            "RFC 9111 §3.2 all values of a name are replaced", ["X-A": "1", "X-A": "2", .etag: "\"1\""], ["x-a": "3"],
            [.etag: "\"1\"", "x-a": "3"]),
        Update(
            "RFC 9111 §3.2 several values are added", [.etag: "\"1\""], ["X-A": "1", "X-A": "2"],
            [.etag: "\"1\"", "X-A": "1", "X-A": "2"]),
        Update("RFC 9111 §3.2 the entity tag is replaced", [.etag: "\"1\""], [.etag: "W/\"1\""], [.etag: "W/\"1\""]),
        Update(
            "RFC 9111 §3.2 Date is replaced", [.date: CacheCase.date(0), .etag: "\"1\""], [.date: CacheCase.date(60)],
            [.etag: "\"1\"", .date: CacheCase.date(60)]),
        Update(
            "RFC 9111 §3.2 an old Date does not stay", [.date: CacheCase.date(0), .etag: "\"1\""], [:], [.etag: "\"1\""]
        ),
        Update(
            "RFC 9111 §4.2.3 an old Age does not stay", [.age: "50", .etag: "\"1\""], [.date: CacheCase.date(0)],
            [.etag: "\"1\"", .date: CacheCase.date(0)]),
        Update(
            "RFC 9111 §4.2.3 a new Age is stored", [.age: "50", .etag: "\"1\""], [.age: "5"],
            [.etag: "\"1\"", .age: "5"]),
        Update(
            "RFC 9111 §3.2 Expires is replaced", [.expires: CacheCase.date(60), .etag: "\"1\""],
            [.expires: CacheCase.date(120)], [.etag: "\"1\"", .expires: CacheCase.date(120)]),
        Update(
            "RFC 9111 §3.2 Vary is replaced", [.vary: "Accept"], [.vary: "Accept, Accept-Language"],
            [.vary: "Accept, Accept-Language"]),
        Update(
            "RFC 9111 §3.2 Content-Length stays", [.contentLength: "5"], [.contentLength: "0"], [.contentLength: "5"]),
        Update("RFC 9111 §3.2 Content-Length is not added", [.etag: "\"1\""], [.contentLength: "0"], [.etag: "\"1\""]),
        Update(
            "RFC 9111 §3.2 the coding of a decoded body stays", [.etag: "\"1\""], [.contentEncoding: "gzip"],
            [.etag: "\"1\""]),
        Update(
            "RFC 9111 §3.2 Content-Range is not added", [.etag: "\"1\""], [.contentRange: "bytes 5-9/10"],
            [.etag: "\"1\""]),
        Update(
            "RFC 9111 §3.1 fields of the connection are not added", [.etag: "\"1\""],
            [.connection: "close", "Keep-Alive": "1", .transferEncoding: "chunked", .upgrade: "h2c"], [.etag: "\"1\""]),
        Update(
            "RFC 9111 §3.1 fields that Connection names are not added", [.etag: "\"1\""],
            [.connection: "X-A, X-B", "X-A": "1", "X-B": "2", "X-C": "3"], [.etag: "\"1\"", "X-C": "3"]),
        Update(
            "RFC 9111 §3.1 fields of a proxy are not added", [.etag: "\"1\""],
            [.proxyAuthenticate: "Basic", "Proxy-Authentication-Info": "x", "Proxy-Connection": "close"],
            [.etag: "\"1\""]),
        Update(
            "RFC 9111 §3.1 trailer fields are not added", [.etag: "\"1\""],
            [.trailer: "X-A", "TE": "trailers", .proxyAuthorization: "x"], [.etag: "\"1\""]),
        Update("RFC 9111 §7.3 Set-Cookie is not added", [.etag: "\"1\""], [.setCookie: "a=b"], [.etag: "\"1\""]),
        Update(
            "RFC 9111 §5.2.2.4 a field that no-cache names is not added", [.etag: "\"1\""],
            [.cacheControl: "no-cache=\"X-A\"", "X-A": "1"], [.etag: "\"1\"", .cacheControl: "no-cache=\"X-A\""]),
        Update(
            "RFC 9111 §5.2.2.4 a field that no-cache names now does not stay", ["X-A": "1", .etag: "\"1\""],
            [.cacheControl: "no-cache=\"X-A\"", "X-A": "2"], [.etag: "\"1\"", .cacheControl: "no-cache=\"X-A\""]),
        Update(
            "RFC 9111 §5.2.2.4 a field that the stored no-cache names is not added",
            [.cacheControl: "no-cache=\"X-A\"", .etag: "\"1\""], ["X-A": "1"],
            [.cacheControl: "no-cache=\"X-A\"", .etag: "\"1\""]),
        Update(
            "RFC 9111 §5.2.2.7 a private cache adds the fields of private", [.etag: "\"1\""],
            [.cacheControl: "private=\"X-A\"", "X-A": "1"],
            [.etag: "\"1\"", .cacheControl: "private=\"X-A\"", "X-A": "1"]),
        Update(
            "RFC 9111 §5.2.2.7 a shared cache adds no field of private", [.etag: "\"1\""],
            [.cacheControl: "private=\"X-A\"", "X-A": "1"], shared: true,
            [.etag: "\"1\"", .cacheControl: "private=\"X-A\""]),
        Update(
            "RFC 9111 §5.2.2.7 all private directives with fields count", [.etag: "\"1\""],
            [.cacheControl: "private=\"X-A\", private=\"X-B\"", "X-A": "1", "X-B": "2"], shared: true,
            [.etag: "\"1\"", .cacheControl: "private=\"X-A\", private=\"X-B\""]),
        Update(
            "RFC 9111 §5.2.2.7 two fields with private count", [.etag: "\"1\""],
            [.cacheControl: "private=\"X-A\"", .cacheControl: "private=\"X-B\"", "X-B": "2"], shared: true,
            [.etag: "\"1\"", .cacheControl: "private=\"X-A\"", .cacheControl: "private=\"X-B\""]),
    ]
}
