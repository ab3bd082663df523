// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing

@testable import Curlew

/// The rules of RFC 9842 about the dictionary of a request.
@Suite struct DictionaryRulesTests {
    private static let time = Date(timeIntervalSince1970: CacheCase.start)

    private static func entry(
        _ use: String, url: String = "https://example.com/app/v1.js", _ fields: HeaderFields = [:],
        received: Double = 0, size: Int64 = 100
    ) -> HTTPCache.Entry {
        var all: HeaderFields = [.useAsDictionary: use, .cacheControl: "max-age=60"]
        all.merge(fields)
        let received = time.addingTimeInterval(received)
        var entry = HTTPCache.Entry(
            key: url, url: url, head: ResponseHead(status: .ok), fields: all, requestedAt: received,
            receivedAt: received)
        entry.size = size
        return entry
    }

    private static func best(
        _ entries: [HTTPCache.Entry], for url: String = "https://example.com/app/v2.js",
        _ credentials: CacheRules.Credentials = .none, after seconds: Double = 1
    ) -> HTTPCache.Entry? {
        CacheRules().dictionary(
            for: CacheRequest(.get, url, credentials: credentials), among: entries,
            at: time.addingTimeInterval(seconds))?.entry
    }

    struct Field: Sendable, CustomTestStringConvertible {
        let value: String
        let match: String?
        var id = ""
        var testDescription: String { value }
    }

    @Test(arguments: [
        Field(value: "match=\"/x\"", match: "/x"),
        Field(value: "match=\"/x\", id=\"a\"", match: "/x", id: "a"),
        Field(value: "id=\"a\\\"b\", match=\"/x\", type=raw", match: "/x", id: "a\"b"),
        Field(value: "match=\"/x\", match-dest=(\"document\" \"script\")", match: "/x"),
        Field(value: "match=\"/x\", match-dest=7, other", match: "/x"),
        Field(
            value: "match=\"/x\";p=1, id=\"\(String(repeating: "i", count: 1_024))\"", match: "/x",
            id: String(repeating: "i", count: 1_024)),
        Field(value: "match=\"/x\", id=\"\(String(repeating: "i", count: 1_025))\"", match: nil),
        Field(value: "id=\"a\"", match: nil),
        Field(value: "match=/x", match: nil),
        Field(value: "match=x", match: nil),
        Field(value: "match=(\"/x\")", match: nil),
        Field(value: "match=\"/x\", type=other", match: nil),
        Field(value: "match=\"/x\", type=\"raw\"", match: nil),
        Field(value: "match=\"/x\", type=(raw)", match: nil),
        Field(value: "match=\"/x\", id=token", match: nil),
        Field(value: "match=\"/x\", id=(\"a\")", match: nil),
        Field(value: "match=\"/x", match: nil),
        Field(value: "", match: nil),
    ])
    func fieldIsRead(_ field: Field) {
        let use = DictionaryUse(of: [.useAsDictionary: field.value])
        #expect(use?.match == field.match)
        #expect(use?.id ?? "" == field.id)
    }

    @Test func missingFieldGivesNil() { #expect(DictionaryUse(of: [.etag: "\"a\""]) == nil) }

    /// RFC 9842 §2.2.3.
    @Test func longestPatternWinsAndThenTheMostRecentResponse() {
        let short = Self.entry("match=\"/app/*\"", received: 0.5)
        let long = Self.entry("match=\"/app/*.js\"")
        let recent = Self.entry("match=\"/app/v*js\"", received: 0.2)
        #expect(Self.best([short, long])?.id == long.id)
        #expect(Self.best([long, short])?.id == long.id)
        #expect(Self.best([long, recent, short])?.id == recent.id)
        #expect(Self.best([recent, long])?.id == recent.id)
        #expect(Self.best([short])?.id == short.id)
        #expect(Self.best([]) == nil)
    }

    struct Rule: Sendable, CustomTestStringConvertible {
        let name: String
        let isDictionary: Bool
        let entry: HTTPCache.Entry
        var url = "https://example.com/app/v2.js"
        var credentials = CacheRules.Credentials.none
        var after: Double = 1
        var testDescription: String { name }
    }

    static let rules: [Rule] = {
        let use = "match=\"/app/*\""
        var other = entry(use), part = entry(use), secret = entry(use), own = entry(use)
        let vary: HeaderFields = [.vary: "Cookie, Accept"]
        var user = entry(use, vary)
        user.requestFields = [.cookie: "digest", .accept: "text/html"]
        var plain = entry(use, vary)
        plain.requestFields = [.accept: "text/html"]
        other.status = .notFound
        part.completeSize = 1_000
        secret.credentials = "digest"
        own.credentials = ""
        let http = "http://example.com/app/v1.js"
        let stale: HeaderFields = [.cacheControl: "max-age=10, stale-while-revalidate=20"]
        let strict: HeaderFields = [.cacheControl: "max-age=10, stale-while-revalidate=20, must-revalidate"]
        return [
            Rule(name: "§2.2.2 a URL that matches", isDictionary: true, entry: entry(use)),
            Rule(name: "§2.2.2 another path", isDictionary: false, entry: entry(use), url: "https://example.com/x"),
            Rule(
                name: "§2.2.2 another origin", isDictionary: false, entry: entry("match=\"https://*/app/*\""),
                url: "https://example.org/app/v2.js"),
            Rule(
                name: "§2.2.2 another port", isDictionary: false, entry: entry("match=\"https://*:*/app/*\""),
                url: "https://example.com:8443/app/v2.js"),
            Rule(
                name: "§9 a request by http", isDictionary: false, entry: entry(use, url: http),
                url: "http://example.com/app/v2.js"),
            Rule(name: "§2.1.1 an invalid pattern", isDictionary: false, entry: entry("match=\"/app/(.*)\"")),
            Rule(name: "§2.1 an invalid field", isDictionary: false, entry: entry("match=/app/*")),
            Rule(name: "§2.2.1 a stale response", isDictionary: false, entry: entry(use), after: 60),
            Rule(
                name: "§2.2.1 a response that is fresh for another second", isDictionary: true, entry: entry(use),
                after: 59),
            Rule(name: "§2.2.1 stale-while-revalidate", isDictionary: true, entry: entry(use, stale), after: 29),
            Rule(name: "§2.2.1 after stale-while-revalidate", isDictionary: false, entry: entry(use, stale), after: 30),
            Rule(name: "§2.2.1 must-revalidate", isDictionary: false, entry: entry(use, strict), after: 20),
            Rule(
                name: "§2.2.1 no-cache", isDictionary: false,
                entry: entry(use, [.cacheControl: "max-age=60, no-cache"])),
            Rule(name: "another status", isDictionary: false, entry: other),
            Rule(name: "an incomplete body", isDictionary: false, entry: part),
            Rule(name: "an empty body", isDictionary: false, entry: entry(use, size: 0)),
            Rule(name: "a body of the maximum size", isDictionary: true, entry: entry(use, size: 16 << 20)),
            Rule(name: "a larger body", isDictionary: false, entry: entry(use, size: 16 << 20 + 1)),
            Rule(name: "an encoded body", isDictionary: false, entry: entry(use, [.contentEncoding: "gzip"])),
            Rule(name: "§10 credentials of others", isDictionary: false, entry: secret, credentials: .known("other")),
            Rule(name: "§10 a cookie of another user", isDictionary: false, entry: user),
            Rule(name: "§10 another value of a field without secrets", isDictionary: true, entry: plain),
            Rule(name: "§10 the same credentials", isDictionary: true, entry: secret, credentials: .known("digest")),
            Rule(name: "§10 credentials that are added later", isDictionary: false, entry: own, credentials: .added),
        ]
    }()

    @Test(arguments: rules) func responseIsADictionaryOrNot(_ rule: Rule) {
        let found = Self.best([rule.entry], for: rule.url, rule.credentials, after: rule.after)
        #expect((found != nil) == rule.isDictionary)
    }

    private func made(_ size: Int) throws -> CompressionDictionary {
        try #require(CompressionDictionary(Data(repeating: 1, count: size)))
    }

    /// Loads a dictionary; returns the sizes of those that it replaces.
    private func load(_ id: UInt64, _ size: Int, _ loaded: inout LoadedDictionaries) throws -> [Int] {
        guard let number = begin(id, &loaded) else { return [-1] }
        return try loaded.end(number, of: id, with: made(size)).map(\.bytes.count)
    }

    /// Begins a load and returns its number; nil for a known dictionary.
    private func begin(_ id: UInt64, _ loaded: inout LoadedDictionaries) -> UInt64? {
        var number: UInt64?
        _ = loaded.next(for: id) { begun in
            number = begun
            return Task { nil }
        }
        return number
    }

    private func isKnown(_ id: UInt64, _ loaded: inout LoadedDictionaries) -> Bool {
        guard let number = begin(id, &loaded) else { return true }
        _ = loaded.end(number, of: id, with: nil)
        return false
    }

    /// The 17th dictionary replaces the least recently used one, and a large one all that it must.
    @Test func dictionariesInMemoryAreBounded() throws {
        var loaded = LoadedDictionaries()
        for id in 1...16 { #expect(try load(UInt64(id), 10, &loaded) == []) }
        #expect(isKnown(1, &loaded))
        #expect(try load(17, 10, &loaded) == [10])
        #expect(isKnown(1, &loaded) && !isKnown(2, &loaded))
        #expect(try load(18, 16 << 20, &loaded) == [10])
        #expect(try load(19, 16 << 20, &loaded).count == 15)
        #expect(isKnown(18, &loaded) && isKnown(19, &loaded) && !isKnown(17, &loaded))
    }

    @Test func removedDictionariesAreForgotten() throws {
        var loaded = LoadedDictionaries()
        #expect(loaded.remove([1]).isEmpty)
        #expect(try load(1, 10, &loaded) == [] && load(2, 20, &loaded) == [])
        #expect(loaded.remove([1, 7]).map(\.bytes.count) == [10])
        #expect(!isKnown(1, &loaded) && isKnown(2, &loaded))
        // One that is removed while it is read is not kept, also if a later load of it runs.
        let first = try #require(begin(3, &loaded))
        #expect(loaded.remove([3]).isEmpty)
        #expect(try loaded.end(first, of: 3, with: made(5)).isEmpty)
        let second = try #require(begin(3, &loaded))
        #expect(try loaded.end(first, of: 3, with: made(5)).isEmpty)
        #expect(try loaded.end(second, of: 3, with: made(6)).isEmpty && isKnown(3, &loaded))
    }

    @Test func laterRequestsWaitForTheFirstLoad() throws {
        var loaded = LoadedDictionaries()
        #expect(begin(1, &loaded) == 1 && begin(1, &loaded) == nil && begin(2, &loaded) == 2)
        #expect(try loaded.end(1, of: 1, with: made(5)).isEmpty)
        #expect(begin(1, &loaded) == nil)
    }

    /// Each fourth use is one for the store, too.
    @Test func storeIsToldAboutUses() throws {
        var loaded = LoadedDictionaries()
        #expect(try load(1, 10, &loaded) == [])
        var touches: [Int] = []
        for use in 1...9 { if case .touch = loaded.next(for: 1, { _ in Task { nil } }) { touches.append(use) } }
        #expect(touches == [4, 8])
    }

    /// The order of the entries does not matter.
    @Test func onlyTheLongestPatternsAreCompared() {
        let others = (0..<256).map { _ in Self.entry("match=\"/another/*\"") }
        let entry = Self.entry("match=\"/app/*\"")
        #expect(Self.best(others.dropLast() + [entry])?.id == entry.id)
        #expect(Self.best([entry] + others) == nil)
        let unusable = (0..<256).map { _ in Self.entry("match=\"/another/*\"", size: 0) }
        #expect(Self.best(unusable + [entry])?.id == entry.id)
    }

    @Test func emptyDictionaryIsRefused() { #expect(CompressionDictionary(Data()) == nil) }
}
