// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

@testable import Curlew

/// Paths: interpolated values stay in their segment.
@Suite(.timeLimit(.minutes(5)))
struct PathTests {
    private enum Kind: String { case odd = "a/b" }
    private enum Number: Int { case seven = 7 }

    @Test func literalsAreNotEscaped() {
        #expect(("users/42?a=b&c#d" as Path).text == "users/42?a=b&c#d")
        #expect(Path(raw: "a b/../c").text == "a b/../c")
    }

    @Test func interpolationAcceptsEveryType() throws {
        let id = try #require(UUID(uuidString: "E621E1F8-C36C-495A-93FC-0C247A3E6E5F"))
        #expect(("a/\(7)/b" as Path).text == "a/7/b")
        #expect(("a/\(-7 as Int64)" as Path).text == "a/-7")
        #expect(("a/\(id)" as Path).text == "a/E621E1F8-C36C-495A-93FC-0C247A3E6E5F")
        #expect(("a/\(Kind.odd)/\(Number.seven)" as Path).text == "a/a%2Fb/7")
        #expect(("a/\("bcd".dropFirst())" as Path).text == "a/cd")
        #expect(("\(path: "x y/z:1/")" as Path).text == "x%20y/z%3A1/")
        #expect(("f/\(path: "a/b")" as Path).misleading == nil && ("f/\(path: "a/")" as Path).misleading == nil)
    }

    @Test(arguments: [
        ("../admin?x", "..%2Fadmin%3Fx"), ("...", "..."), ("..;", "..%3B"), ("a#b", "a%23b"),
        ("a%2Fb", "a%252Fb"), ("javascript:x", "javascript%3Ax"), ("//evil.test", "%2F%2Fevil.test"),
        ("ä 👴🏻", "%C3%A4%20%F0%9F%91%B4%F0%9F%8F%BB"), ("a\r\nb\0", "a%0D%0Ab%00"), ("-._~", "-._~"),
        ("!$&'()*+,;=@", "%21%24%26%27%28%29%2A%2B%2C%3B%3D%40"), ("a\\b", "a%5Cb"),
    ])
    func valuesStayInTheirSegment(_ value: String, _ escaped: String) throws {
        #expect(("users/\(value)" as Path).text == "users/\(escaped)")
        #expect(("\(value)/x" as Path).text == "\(escaped)/x")
        // In the resolved URL, the host, the number of segments and the value's segment are right.
        let base: BaseURL = "http://h.test/v1"
        let url = base.url(of: ("users/\(value)/x" as Path).text)
        #expect(!url.isCrossOrigin)
        let target = try RequestTarget(url.text)
        #expect(target.host == "h.test" && target.query == nil)
        let segments = target.path.split(separator: "/")
        #expect(segments.count == 4)
        #expect(segments.count > 2 && String(segments[2]).removingPercentEncoding == value)
    }

    /// Encoded dot segments are dot segments (RFC 3986 §6.2.2.2), and literals and values can form one together.
    @Test func misleadingSegmentsAreDetected() {
        func refused(_ path: Path) -> [String] { path.misleading.map { ["\($0.number)", $0.segment] } ?? [] }
        let (dot, none) = (".", "")
        #expect(refused("users/\("..")") == ["1", ".."] && refused("users/\(dot)/x") == ["1", "."])
        #expect(refused("a/\(dot)\(dot)/b") == ["2", ".."] && refused("a/.\(dot)/b") == ["1", ".."])
        #expect(refused("a/\(dot).?q") == ["1", ".."] && refused("a/\(dot)#") == ["1", "."])
        #expect(refused("a/x\(dot)\(dot)").isEmpty && refused("../\(dot)x").isEmpty && refused("s?q=\("..")").isEmpty)
        #expect(refused("users/\(none)") == ["1", ""] && refused("users/\(1)/\(none)/x") == ["2", ""])
        #expect(refused("\(none)/x") == ["1", ""] && refused("\(none)?x") == ["1", ""])
        #expect(refused("users/a\(none)").isEmpty && refused("users//x").isEmpty && refused("").isEmpty)
        #expect(refused("s?q=\(none)").isEmpty)
        // A value of several segments can neither name a host nor leave the base URL's path.
        for several in ["", "/", "//evil.test/x", "/admin", "a//b", "a/../b", ".."] {
            #expect(!refused("\(path: several)").isEmpty, "\(several)")
            #expect(!refused("x/\(path: several)/y").isEmpty, "\(several)")
        }
    }

    /// Interpolated values can form neither a scheme nor an absolute URL.
    @Test func interpolatedValuesFormNoScheme() {
        let (kind, id, scheme) = ("users", 7, "https")
        for base in ["http://h.test/v1" as BaseURL, (try? BaseURL("http://h.test/v1", joining: .joined))] {
            #expect(base?.url(of: ("\(kind):\(id)" as Path).text).text == "http://h.test/v1/users:7")
            let url = base?.url(of: ("\(scheme)://evil.test/x" as Path).text)
            #expect(url?.text == "http://h.test/v1/https://evil.test/x" && url?.isCrossOrigin == false)
        }
        #expect(("\(scheme)://\(kind)" as Path).text == "./https://users")
        #expect(("\(kind):\(id)" as Path).text == "users:7")
        #expect(("https://\(kind).test/x" as Path).text == "https://users.test/x")
        #expect(("HTTP://h.test/\(id)" as Path).text == "HTTP://h.test/7")
    }

    @Test func interpolatedQueryValuesAreEscaped() {
        let value = "a&b=c d#e+/?ü"
        #expect(("s?q=\(value)&n=\(2)" as Path).text == "s?q=a%26b%3Dc%20d%23e%2B%2F%3F%C3%BC&n=2")
        #expect(("s?q=\("..")" as Path).text == "s?q=..")
        #expect(("s#\("a b")" as Path).text == "s#a%20b")
    }

    @Test func descriptionsHideTheQuery() {
        let path: Path = "a/\(1)?token=\("secret")"
        var text = ""
        dump(path, to: &text)
        #expect("\(path)" == "a/1?token=<redacted>" && !text.contains("secret"))
    }

    /// Random interpolated values are recovered from the URL, and the other segments do not change.
    @Test func randomValuesStayInTheirSegment() throws {
        var chance = SeededChance(5)
        let alphabet = Array("ab./?#%:@&=+ \\\u{0}\n~é👴🏻[]{}|^`\"<>")
        let base: BaseURL = "https://h.test:8443/v1/x"
        for _ in 0..<2000 {
            let value = String(
                (0..<Int.random(in: 1...6, using: &chance)).compactMap { _ in
                    alphabet.randomElement(using: &chance)
                })
            let path: Path = "a/\(value)/b?q=\(value)"
            guard value != "." && value != ".." else { continue }
            #expect(path.misleading == nil)
            let (text, isCrossOrigin) = base.url(of: path.text)
            #expect(!isCrossOrigin)
            let target = try RequestTarget(text)
            let segments = target.path.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
            #expect(segments.count == 6 && segments[4].removingPercentEncoding == value, "\(value.debugDescription)")
            #expect(target.query?.dropFirst(2).removingPercentEncoding == value, "\(value.debugDescription)")
        }
    }
}
