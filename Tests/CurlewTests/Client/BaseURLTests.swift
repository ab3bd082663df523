// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing

@testable import Curlew

/// Base URLs and the references that are resolved against them or joined to them.
@Suite(.timeLimit(.minutes(5)))
struct BaseURLTests {
    /// HS-04: the six rows of AFNetworking's table.
    @Test(arguments: [
        ("foo", "http://example.com/v1/foo"), ("foo?bar=baz", "http://example.com/v1/foo?bar=baz"),
        ("/foo", "http://example.com/foo"), ("foo/", "http://example.com/v1/foo/"),
        ("/foo/", "http://example.com/foo/"), ("http://example2.com/", "http://example2.com/"),
    ])
    func referencesAreResolved(_ path: String, _ url: String) {
        #expect(BaseURL("http://example.com/v1/").url(of: path).text == url)
        #expect(BaseURL("http://example.com/v1").url(of: path).text == url, "HS-03: the base URL gets its slash")
    }

    @Test(arguments: [
        ("", "http://example.com/v1/"), ("?a=b", "http://example.com/v1/?a=b"), ("../x", "http://example.com/x"),
        ("./x", "http://example.com/v1/x"), ("a/../b", "http://example.com/v1/b"),
        ("a:b", "http://example.com/v1/a:b"), ("users:batch?x=1", "http://example.com/v1/users:batch?x=1"),
        ("mailto:x", "http://example.com/v1/mailto:x"), ("http:x", "http://example.com/v1/http:x"),
        ("a:b/../c:d", "http://example.com/v1/c:d"), ("HTTPS://other.test/x", "HTTPS://other.test/x"),
        ("%2e%2e/x", "http://example.com/v1/%2e%2e/x"),
        ("a?b:c/../d", "http://example.com/v1/a?b:c/../d"), ("//other.test/x", "http://other.test/x"),
        ("a#b", "http://example.com/v1/a#b"), ("a//b", "http://example.com/v1/a//b"),
        (".hidden", "http://example.com/v1/.hidden"), ("a..b", "http://example.com/v1/a..b"),
    ])
    func otherReferencesAreResolved(_ path: String, _ url: String) {
        #expect(BaseURL("http://example.com/v1/").url(of: path).text == url)
    }

    @Test(arguments: [
        ("foo", "foo"), ("/foo", "foo"), ("/foo/", "foo/"), ("//other.test/x", "other.test/x"),
        ("x/../y?a=/../b", "y?a=/../b"), ("", ""), ("/", ""), ("?a=b", "?a=b"), ("/?a=b", "?a=b"),
        ("a/..", ""), ("a/./b", "a/b"), ("users:batch", "users:batch"), ("mailto:x", "mailto:x"),
        ("a/%2e%2E/b", "b"), ("%2E/a", "a"), ("a/b/.%2e", "a/"), ("%2e%2ex", "%2e%2ex"), ("%41", "%41"), ("...", "..."),
    ])
    func pathsAreJoined(_ path: String, _ normalizedBelowBase: String) throws {
        let base = try BaseURL("http://example.com/v1", joining: .joined)
        #expect(base.url(of: path).text == "http://example.com/v1/" + normalizedBelowBase)
        #expect(!base.url(of: path).isCrossOrigin && !base.excludes(path))
        #expect(!BaseURL("http://example.com/v1").excludes(path))
    }

    /// A percent-encoded dot is equivalent to a dot (RFC 3986 §6.2.2.2).
    @Test(arguments: [
        "../x", "%2e%2e/x", "%2E%2E/x", "%2e./x", ".%2e", "/..", "a/../../x", "a/%2e%2e/%2e%2e/x", "a//../../../x",
        "https://other.test/x", "HTTP://other.test/v1/x", "http://example.com/x", "https://example.com/v1/x",
        "http://example.com/v1", "http://example.com/v1x", "http://example.com/v1/../x",
        "http://example.com/v1/%2e%2e/x", "http://", "http://example.com:81/v1/x",
    ])
    func pathsThatLeaveAJoinedBaseAreRejected(_ path: String) throws {
        let base = try BaseURL("http://example.com/v1", joining: .joined)
        #expect(base.excludes(path) && !BaseURL("http://example.com/v1").excludes(path))
        let error = #expect(throws: NetworkError.self) {
            try Client(base).request(for: Call(.get, Path(raw: path)))
        }
        #expect(error?.kind == .invalidRequest && error?.phase == .preparing && error?.request != nil)
        #expect(error?.message.contains("leaves the base URL") == true)
    }

    @Test(arguments: ["http://example.com/v1/", "http://EXAMPLE.com:80/v1/a?b=../..", "http://example.com/v1/a/../b"])
    func absoluteURLsBelowAJoinedBaseAreAllowed(_ path: String) throws {
        let base = try BaseURL("http://example.com/v1", joining: .joined)
        #expect(!base.excludes(path) && !base.url(of: path).isCrossOrigin)
    }

    @Test(arguments: [
        ("http://example.com/x", false), ("http://EXAMPLE.com:80/x", false), ("/x", false), ("x", false),
        ("https://example.com/x", true), ("http://example.com:8080/x", true), ("http://example.org/x", true),
        ("//example.org/x", true), ("mailto:x", false), ("users:batch", false), ("http://example.com.evil.test/", true),
        ("http://example.com@evil.test/", true),
    ])
    func crossOriginReferencesAreDetected(_ path: String, _ isCrossOrigin: Bool) {
        #expect(BaseURL("http://example.com").url(of: path).isCrossOrigin == isCrossOrigin)
        #expect(BaseURL("http://u:p@example.com").url(of: path).isCrossOrigin == isCrossOrigin)
    }

    @Test(arguments: ["", "example.com", "ftp://example.com", "http://", "http://h?x", "http://h#x", "http://h/?"])
    func invalidBaseURLsAreRejected(_ text: String) {
        let error = #expect(throws: NetworkError.self) { try BaseURL(text) }
        #expect(error?.kind == .invalidRequest && error?.hint != nil)
    }

    @Test func descriptionsHideCredentials() throws {
        let error = #expect(throws: NetworkError.self) { try BaseURL("https://ada:secret@h/?token=secret" as String) }
        #expect(error?.detailedDescription.contains("secret") == false)
        let base: BaseURL = "https://ada:secret@h"
        var text = ""
        dump(base, to: &text)
        #expect("\(base)" == "https://h/" && !text.contains("secret"))
        let json = String(decoding: try JSONEncoder().encode(base), as: UTF8.self)
        #expect(!json.contains("secret"))
    }

    @Test func membersAreReadAndCoded() throws {
        let base: BaseURL = "https://H.test/a"
        #expect(base.isSecure && base.host == "h.test" && base.text == "https://h.test/a/")
        let joined = try BaseURL("http://h.test", joining: .joined)
        #expect(try JSONDecoder().decode(BaseURL.self, from: JSONEncoder().encode(joined)) == joined)
        #expect(try JSONDecoder().decode([BaseURL].self, from: Data(#"["https://h.test/a"]"#.utf8)) == [base])
        #expect(throws: DecodingError.self) { try JSONDecoder().decode([BaseURL].self, from: Data(#"["x"]"#.utf8)) }
        #expect(throws: DecodingError.self) {
            try JSONDecoder().decode(BaseURL.self, from: Data(#"{"url": "http://h?x"}"#.utf8))
        }
    }
}
