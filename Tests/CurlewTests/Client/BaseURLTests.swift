// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing

@testable import Curlew

/// Base URLs and what is put below them.
@Suite(.timeLimit(.minutes(5)))
struct BaseURLTests {
    /// HS-04: the six rows of AFNetworking's table.
    @Test(arguments: [
        ("foo", "http://example.com/v1/foo"), ("foo?bar=baz", "http://example.com/v1/foo?bar=baz"),
        ("/foo", "http://example.com/foo"), ("foo/", "http://example.com/v1/foo/"),
        ("/foo/", "http://example.com/foo/"), ("http://example2.com/", "http://example2.com/"),
    ])
    func resolved(_ path: String, _ url: String) {
        #expect(BaseURL("http://example.com/v1/").url(of: path).text == url)
        #expect(BaseURL("http://example.com/v1").url(of: path).text == url, "HS-03: the slash is added")
    }

    @Test(arguments: [
        ("", "http://example.com/v1/"), ("?a=b", "http://example.com/v1/?a=b"), ("../x", "http://example.com/x"),
        ("./x", "http://example.com/v1/x"), ("a/../b", "http://example.com/v1/b"), ("a:b", "a:b"),
        ("a?b:c/../d", "http://example.com/v1/a?b:c/../d"), ("//other.test/x", "http://other.test/x"),
        ("a#b", "http://example.com/v1/a#b"), ("a//b", "http://example.com/v1/a//b"),
        (".hidden", "http://example.com/v1/.hidden"), ("a..b", "http://example.com/v1/a..b"),
    ])
    func otherReferences(_ path: String, _ url: String) {
        #expect(BaseURL("http://example.com/v1/").url(of: path).text == url)
    }

    @Test(arguments: [
        ("foo", "foo"), ("/foo", "foo"), ("/foo/", "foo/"), ("//other.test/x", "other.test/x"), ("../x", "x"),
        ("../../x/../y?a=/../b", "y?a=/../b"), ("", ""), ("/", ""), ("?a=b", "?a=b"), ("/?a=b", "?a=b"),
        ("a/..", ""), ("a/./b", "a/b"),
    ])
    func joined(_ path: String, _ below: String) throws {
        let base = try BaseURL("http://example.com/v1", joining: .joined)
        #expect(base.url(of: path).text == "http://example.com/v1/" + below)
        #expect(!base.url(of: path).isElsewhere)
    }

    @Test func absoluteURLsWinAlsoWhenJoined() throws {
        let base = try BaseURL("http://example.com/v1", joining: .joined)
        #expect(base.url(of: "https://other.test/x") == ("https://other.test/x", true))
    }

    @Test(arguments: [
        ("http://example.com/x", false), ("http://EXAMPLE.com:80/x", false), ("/x", false), ("x", false),
        ("https://example.com/x", true), ("http://example.com:8080/x", true), ("http://example.org/x", true),
        ("//example.org/x", true), ("mailto:x", true), ("http://example.com.evil.test/", true),
        ("http://example.com@evil.test/", true),
    ])
    func otherOrigins(_ path: String, _ isElsewhere: Bool) {
        #expect(BaseURL("http://example.com").url(of: path).isElsewhere == isElsewhere)
        #expect(BaseURL("http://u:p@example.com").url(of: path).isElsewhere == isElsewhere)
    }

    @Test(arguments: ["", "example.com", "ftp://example.com", "http://", "http://h?x", "http://h#x", "http://h/?"])
    func invalid(_ text: String) {
        let error = #expect(throws: NetworkError.self) { try BaseURL(text) }
        #expect(error?.kind == .invalidRequest && error?.hint != nil)
    }

    @Test func credentialsAreNotShown() throws {
        let error = #expect(throws: NetworkError.self) { try BaseURL("https://ada:secret@h/?token=secret" as String) }
        #expect(error?.detailedDescription.contains("secret") == false)
        let base: BaseURL = "https://ada:secret@h"
        var text = ""
        dump(base, to: &text)
        #expect("\(base)" == "https://h/" && !text.contains("secret"))
        let json = String(decoding: try JSONEncoder().encode(base), as: UTF8.self)
        #expect(!json.contains("secret"))
    }

    @Test func membersAndCoding() throws {
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
