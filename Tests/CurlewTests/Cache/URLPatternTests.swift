// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Curlew

/// Patterns of the URL Pattern Standard, as far as RFC 9842 §2.1.1 allows them, relative to a base URL.
@Suite(.timeLimit(.minutes(5)))
struct URLPatternTests {
    struct Row: Sendable, CustomTestStringConvertible {
        let pattern: String
        let url: String
        let isMatch: Bool

        init(_ pattern: String, _ url: String, _ isMatch: Bool) {
            (self.pattern, self.isMatch) = (pattern, isMatch)
            self.url = url.hasPrefix("/") ? "https://example.com" + url : url
        }

        var testDescription: String { "\(pattern) \(isMatch ? "matches" : "does not match") \(url)" }
    }

    private static let base = "https://example.com/app/v1/main.js?a=1"

    static let rows: [Row] = [
        // Literal paths.
        Row("/app/main.js", "/app/main.js", true),
        Row("/app/main.js", "/app/main.jsx", false),
        Row("/app/main.js", "/app/main.j", false),
        Row("/app/main.js", "/App/main.js", false),
        Row("/app/main.js", "/app/main.js?x=1", true),
        Row("/a b", "/a%20b", true),
        Row("/a%20b", "/a b", true),
        Row("/a%b", "/a%b", true),
        Row("/a%b", "/a%25b", true),
        Row("/a{%b}?", "/a%25b", true),
        Row("/a{%41}", "/a%41", true),
        Row("/", "/", true),
        // Wildcards.
        Row("/*", "/any/thing?at=all", true),
        Row("*", "/app/v1/any/thing?at=all", true),
        Row("*", "/app/v2", false),
        Row("/app/*", "/app/", true),
        Row("/app/*", "/app/v2/main.js", true),
        Row("/app/*", "/app", false),
        Row("/app/*/main.js", "/app/v2/main.js", true),
        Row("/app/*/main.js", "/app/v2/x/main.js", true),
        Row("/app/*/main.js", "/app/main.js", false),
        Row("/*.js", "/app/main.js", true),
        Row("/*.js", "/app/main.css", false),
        Row("/a*a", "/aa", true),
        Row("/a*a", "/a", false),
        Row("/**", "/x", true),
        Row("/x/*?", "/x", true),
        Row("/x/*?", "/x/y", true),
        // Names.
        Row("/app/:version/main.js", "/app/v2/main.js", true),
        Row("/app/:version/main.js", "/app/v2/x/main.js", false),
        Row("/app/:version/main.js", "/app//main.js", false),
        Row("/app/main-:hash.js", "/app/main-1f.js", true),
        Row("/app/main-:hash.js", "/app/main-.js", false),
        Row("/app/:a/:b", "/app/1/2", true),
        // Modifiers.
        Row("/app/:v?", "/app", true),
        Row("/app/:v?", "/app/1", true),
        Row("/app/:v?", "/app/", false),
        Row("/app/:v+", "/app/1/2/3", true),
        Row("/app/:v+", "/app", false),
        Row("/app/:v*", "/app", true),
        Row("/app/:v*", "/app/1/2", true),
        Row("/app/:v*", "/app/1//2", false),
        // Groups.
        Row("/app{/v1}?/main.js", "/app/main.js", true),
        Row("/app{/v1}?/main.js", "/app/v1/main.js", true),
        Row("/app{/v1}?/main.js", "/app/v1/v1/main.js", false),
        Row("/app{/v1}+/main.js", "/app/v1/v1/main.js", true),
        Row("/app{/v1}*/main.js", "/app/main.js", true),
        Row("/app/{main}.js", "/app/main.js", true),
        Row("/app/{v:version-}?main.js", "/app/v2-main.js", true),
        Row("/app/{v:version-}?main.js", "/app/main.js", true),
        Row("/app/{v:version-}?main.js", "/app/v-main.js", false),
        Row("{/app}/x", "/app/x", true),
        Row("/a{}b", "/ab", true),
        // Escapes.
        Row("/a\\*b", "/a*b", true),
        Row("/a\\*b", "/axb", false),
        Row("/a\\:b", "/a:b", true),
        Row("/a:1", "/a:1", true),
        // Relative paths.
        Row("other.js", "/app/v1/other.js", true),
        Row("other.js", "/other.js", false),
        Row("*.js", "/app/v1/x/y.js", true),
        Row("*.js", "/app/v2/y.js", false),
        // Queries.
        Row("/s\\?q=*", "/s?q=x", true),
        Row("/s\\?q=*", "/s?p=x", false),
        Row("/s\\?q=*", "/s", false),
        Row("/s?q=:word", "/s?q=x/y", true),
        Row("?b=*", "/app/v1/main.js?b=2", true),
        Row("?b=*", "/app/v2/main.js?b=2", false),
        Row("/s?q=a b", "/s?q=a b", true),
        Row("", "/app/v1/main.js?a=1", true),
        Row("", "/app/v1/main.js", false),
        // Fragments, which requests do not have.
        Row("/x#", "/x", true),
        Row("/x#*", "/x", true),
        Row("/x#*", "/x?y", false),
        Row("/x#y", "/x", false),
        Row("#y", "/app/v1/main.js?a=1", false),
        // Absolute patterns.
        Row("https://example.com/x", "/x", true),
        Row("HTTPS://EXAMPLE.com/x", "/x", true),
        Row("https://example.com/x", "https://example.org/x", false),
        Row("https://example.com", "/x/y?z", true),
        Row("https://example.com?q", "/?q", true),
        Row("https://example.com?q", "/x?q", false),
        Row("https://example.com#*", "/", true),
        Row("http{s}?://example.com/x", "/x", true),
        Row("http://example.com/x", "/x", false),
        Row("https://*.example.com/x", "https://a.b.example.com/x", true),
        Row("https://:sub.example.com/x", "https://a.b.example.com/x", false),
        Row("https://:sub.example.com/x", "https://a.example.com/x", true),
        Row("https://*.example.com/x", "/x", false),
        Row("https://example.com:8443/x", "https://example.com:8443/x", true),
        Row("https://example.com:8443/x", "/x", false),
        Row("https://example.com/x", "https://example.com:8443/x", false),
        Row("https://example.com:*/x", "https://example.com:8443/x", true),
        Row("https://[\\:\\:1]/x", "https://[::1]/x", true),
        Row("https://[\\:\\:1]:8443/x", "https://[::1]:8443/x", true),
    ]

    @Test(arguments: rows) func patternIsCompared(_ row: Row) throws {
        let pattern = try #require(URLPattern(row.pattern, base: RequestTarget(Self.base)))
        #expect(try pattern.matches(RequestTarget(row.url)) == row.isMatch)
    }

    @Test(arguments: [
        "/(\\d+)", "/a\\", "/{a", "/a}", "/{a{b}}", "/a?/{", "/:a/:a", "/{:a}/:a", "/+", "https://user@example.com/x",
        "https://{/x", "/x?:a:a", String(repeating: "a", count: 257),
    ])
    func invalidPatternIsRefused(_ text: String) throws {
        #expect(try URLPattern(text, base: RequestTarget(Self.base)) == nil)
    }

    /// A backtracking matcher would need exponential time.
    @Test func hostilePatternTakesLittleTime() throws {
        let pattern = try #require(
            URLPattern("/" + String(repeating: "{*a}*", count: 50) + "b", base: RequestTarget(Self.base)))
        let path = String(repeating: "a", count: 8_000)
        #expect(try !pattern.matches(RequestTarget("https://example.com/\(path)")))
        #expect(try pattern.matches(RequestTarget("https://example.com/\(path)b")))
    }
}
