// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Curlew

@Suite("URLReference, RFC 3986 §5")
struct URLReferenceTests {
    private static let base = "http://a/b/c/d;p?q"

    private func resolve(_ reference: String, _ base: String = base) throws -> String {
        URLReference.resolve(reference, against: try RequestTarget(base))
    }

    /// RFC 3986 §5.4.1.
    static let normalExamples: [(String, String)] = [
        ("g:h", "g:h"), ("g", "http://a/b/c/g"), ("./g", "http://a/b/c/g"), ("g/", "http://a/b/c/g/"),
        ("/g", "http://a/g"), ("//g", "http://g"), ("?y", "http://a/b/c/d;p?y"), ("g?y", "http://a/b/c/g?y"),
        ("#s", "http://a/b/c/d;p?q#s"), ("g#s", "http://a/b/c/g#s"), ("g?y#s", "http://a/b/c/g?y#s"),
        (";x", "http://a/b/c/;x"), ("g;x", "http://a/b/c/g;x"), ("g;x?y#s", "http://a/b/c/g;x?y#s"),
        ("", "http://a/b/c/d;p?q"), (".", "http://a/b/c/"), ("./", "http://a/b/c/"), ("..", "http://a/b/"),
        ("../", "http://a/b/"), ("../g", "http://a/b/g"), ("../..", "http://a/"), ("../../", "http://a/"),
        ("../../g", "http://a/g"),
    ]

    /// RFC 3986 §5.4.2.
    static let abnormalExamples: [(String, String)] = [
        ("../../../g", "http://a/g"), ("../../../../g", "http://a/g"), ("/./g", "http://a/g"), ("/../g", "http://a/g"),
        ("g.", "http://a/b/c/g."), (".g", "http://a/b/c/.g"), ("g..", "http://a/b/c/g.."), ("..g", "http://a/b/c/..g"),
        ("./../g", "http://a/b/g"), ("./g/.", "http://a/b/c/g/"), ("g/./h", "http://a/b/c/g/h"),
        ("g/../h", "http://a/b/c/h"), ("g;x=1/./y", "http://a/b/c/g;x=1/y"), ("g;x=1/../y", "http://a/b/c/y"),
        ("g?y/./x", "http://a/b/c/g?y/./x"), ("g?y/../x", "http://a/b/c/g?y/../x"),
        ("g#s/./x", "http://a/b/c/g#s/./x"), ("g#s/../x", "http://a/b/c/g#s/../x"), ("http:g", "http:g"),
    ]

    @Test(arguments: normalExamples + abnormalExamples)
    func rfc3986ExamplesAreResolved(reference: String, expected: String) throws {
        #expect(try resolve(reference) == expected)
    }

    /// References of real servers that the standard has no example of.
    static let otherRows: [(String, String, String)] = [
        ("http://u:p@h:81/x/y?z", "w", "http://u:p@h:81/x/w"),
        ("http://u:p@h:81/x/y?z", "//g/w", "http://g/w"),
        ("https://h/", "//g:8443", "https://g:8443"),
        ("http://h", "g", "http://h/g"),
        ("http://h", "", "http://h/"),
        ("http://h?q", "", "http://h/?q"),
        ("http://h/a/../b?q", "", "http://h/a/../b?q"),
        ("http://h/a/../b?q", "?", "http://h/a/../b?"),
        ("http://h/a/../b/c", "d", "http://h/b/d"),
        ("http://h/a//b/c", "../d", "http://h/a//d"),
        ("http://h/a//", "../d", "http://h/a/d"),
        ("http://h/a", "#", "http://h/a#"),
        ("http://h/a", "?#", "http://h/a?#"),
        ("http://h/a", "a b", "http://h/a b"),
        ("http://h/a", "é/ü", "http://h/é/ü"),
        ("http://h/a", "\\\\evil\\x", "http://h/\\\\evil\\x"),
        ("http://h/a", "/\\evil", "http://h/\\evil"),
        ("http://h/a", "1x:y", "http://h/1x:y"),
        ("http://h/a", ":y", "http://h/:y"),
        ("http://h/a", "x y://z", "http://h/x y://z"),
        ("http://h/a", "./x:y", "http://h/x:y"),
        ("http://h/a", "/x:y", "http://h/x:y"),
        ("http://h/a", "?x:y", "http://h/a?x:y"),
        ("http://h/a", "/.//evil", "http://h//evil"),
        ("http://h/a", "/..//evil", "http://h//evil"),
        ("http://h/a", "http:/.//u@evil/", "http:/.//u@evil/"),
        ("http://h/a", "http:///x", "http:///x"),
        ("http://h/a", "HTTP://G/../x/./y", "HTTP://G/x/y"),
        ("http://h/a", "urn:../x", "urn:x"),
        ("http://h/a", "a:", "a:"),
        ("http://h/a", "a:.", "a:"),
        ("http://h/a", "a:..", "a:"),
        ("http://h/a", "a:b/../c", "a:/c"),
        ("http://h/a", "%2e%2e/x", "http://h/%2e%2e/x"),
        ("http://h/a", "...", "http://h/..."),
        ("http://h/a/b", "./.", "http://h/a/"),
        ("http://h/a/b", "../..", "http://h/"),
        ("http://h/a/b/c", "x/../..", "http://h/a/"),
    ]

    @Test(arguments: otherRows.indices)
    func otherReferencesAreResolved(index: Int) throws {
        let (base, reference, expected) = Self.otherRows[index]
        #expect(try resolve(reference, base) == expected)
    }

    @Test func componentsAreSplit() {
        let whole = URLReference("s:/p#f?g")
        #expect(whole.scheme.map(Array.init) == Array("s".utf8) && whole.authority == nil && whole.query == nil)
        #expect(whole.fragment.map(Array.init) == Array("f?g".utf8))
        #expect(URLReference("//u:p@h/x@y").hasUserInfo && URLReference("http://@h").hasUserInfo)
        #expect(!URLReference("http://h/x@y").hasUserInfo && !URLReference("u@h").hasUserInfo)
        #expect(!URLReference("//h?u@h").hasUserInfo && !URLReference("//h#u@h").hasUserInfo)
    }

    /// References without a leading "//" and without a scheme always stay within the origin.
    @Test func relativeReferencesStayWithinTheOrigin() throws {
        let base = try RequestTarget("https://u@h:8443/a/b/../c?d")
        let pieces = ["/", "/", ".", "..", ":", "?", "#", "@", "\\", " ", "a", "é", "%2f", "%", "http", "[", "]"]
        var state: UInt64 = 42
        var judged = 0
        for _ in 0..<20_000 {
            var text = ""
            for _ in 0..<8 {
                state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
                text += pieces[Int(state >> 33) % pieces.count]
            }
            let resolved = URLReference.resolve(text, against: base)
            guard !text.hasPrefix("//"), URLReference(text).scheme == nil else { continue }
            judged += 1
            let target = try RequestTarget(resolved)
            #expect(target.isSameOrigin(as: base) && target.userInfo == "u", "\(text)")
            #expect(URLReference.resolve(resolved, against: base) == resolved || target.path.contains("."), "\(text)")
        }
        #expect(judged > 10_000)
    }
}
