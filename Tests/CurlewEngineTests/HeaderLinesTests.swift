// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import CurlewShims
import Glibc
import Testing

@testable import CurlewEngine

@Suite("HeaderLines")
struct HeaderLinesTests {
    private func lines(_ lines: HeaderLines) -> [String] {
        var texts: [String] = []
        var item = lines.list
        while let line = item {
            texts.append(String(cString: line.pointee.data))
            item = line.pointee.next
        }
        return texts
    }

    @Test func linesFollowLibcurlsSyntaxInOrder() {
        let fields = [("Accept", "text/html"), ("X-Empty", ""), ("accept", "b"), ("X-Utf8", "ä")]
        let made = HeaderLines(fields, suppressing: ["Content-Type", "Expect"])
        #expect(lines(made) == ["Accept: text/html", "X-Empty;", "accept: b", "X-Utf8: ä", "Content-Type:", "Expect:"])
    }

    @Test func noFieldsGiveAnEmptyList() {
        #expect(HeaderLines([]).list == nil)
        #expect(lines(HeaderLines([], suppressing: ["Accept"])) == ["Accept:"])
    }
}

@Suite("CurlVersion")
struct CurlVersionTests {
    @Test func currentVersionMatchesLibcurl() {
        let version = CurlVersion.current
        #expect(version.isSupported)
        #expect(version.number >= 0x075800)
        let parts = [version.number >> 16, version.number >> 8 & 0xFF, version.number & 0xFF]
        #expect(version.text.hasPrefix(parts.map(String.init).joined(separator: ".")))
        #expect(version.tls.hasPrefix("OpenSSL/"))
        #expect(version.hasHTTP2)
        #expect(version.hasThreadSafeInit)
    }

    @Test func monotonicClockNeverGoesBack() {
        let start = Monotonic.now()
        let after = Monotonic.now()
        #expect(start > 0)
        #expect(after >= start)
        #expect(after < Monotonic.never)
    }
}

@Suite("Origins")
struct OriginsTests {
    private func target(
        _ url: String, host: String = "a.test", port: UInt16 = 80, isSecure: Bool = false
    ) -> PlannedURL {
        PlannedURL(url, host: host, port: port, isSecure: isSecure)
    }

    /// A class around `Origins`, because `#require` cannot call mutating methods.
    private final class Cache {
        private var origins = Origins()
        func url(for target: PlannedURL) -> ParsedURL? { origins.url(for: target) }
    }

    @Test func sameURLIsParsedOnce() throws {
        let cache = Cache()
        let known = target("http://a.test/1")
        let first = try #require(cache.url(for: known))
        let again = try #require(cache.url(for: known))
        #expect(first === again)
        let other = try #require(cache.url(for: target("http://a.test/2")))
        #expect(other !== first)
        #expect(other.origin === first.origin)
    }

    @Test func originsDifferByHostPortAndSecurity() throws {
        let cache = Cache()
        let plain = try #require(cache.url(for: target("http://a.test/")))
        let port = try #require(cache.url(for: target("http://a.test:81/", port: 81)))
        let host = try #require(cache.url(for: target("http://b.test/", host: "b.test")))
        let secure = try #require(cache.url(for: target("https://a.test:80/", isSecure: true)))
        let origins = [plain, port, host, secure].map { ObjectIdentifier($0.origin) }
        #expect(Set(origins).count == 4)
    }

    @Test func invalidURLIsNil() {
        let cache = Cache()
        #expect(cache.url(for: target("http://a b/")) == nil)
        #expect(cache.url(for: target("")) == nil)
    }

    @Test func originOutlivesItsEvictedURL() throws {
        let cache = Cache()
        let origin = try #require(cache.url(for: target("http://a.test/"))).origin
        for number in 0..<2000 { _ = cache.url(for: target("http://a.test/\(number)")) }
        #expect(try #require(cache.url(for: target("http://a.test/"))).origin === origin)
    }

    @Test func unusedOriginsAreEvicted() throws {
        let cache = Cache()
        weak var first = cache.url(for: target("http://h0.test/", host: "h0.test"))?.origin
        for number in 1..<5000 { _ = cache.url(for: target("http://h\(number).test/", host: "h\(number).test")) }
        #expect(first == nil, "the unused origin was evicted by other URLs")
        first = cache.url(for: target("http://h0.test/", host: "h0.test"))?.origin
        #expect(first != nil)
    }

    @Test func parsedHandleKeepsThePortOfTheURL() throws {
        let cache = Cache()
        let url = try #require(cache.url(for: target("http://a.test:8080/p?q#f", port: 8080)))
        var port: UnsafeMutablePointer<CChar>?
        #expect(curl_url_get(url.handle, CURLUPART_PORT, &port, 0) == CURLUE_OK)
        #expect(port.map { String(cString: $0) } == "8080")
        curl_free(port)
    }
}
