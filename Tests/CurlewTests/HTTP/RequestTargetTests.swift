// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Curlew

@Suite("RequestTarget, RFC 3986 and the WHATWG URL standard")
struct RequestTargetTests {
    @Test(arguments: [
        "http://example.com/", "https://example.com/a/b?c=d&e=%20", "http://127.0.0.1:8080/", "http://[::1]:8080/x",
        "https://user:pa%40ss@example.com/", "http://a_b-c.example.com./", "http://h/?", "http://h//a/../b/./c;d=1,2",
        "http://h/a[1]@:!$&'()*+?x=/?@:[]", "http://xn--bcher-kva.example/",
        "http://localhost:65535/", "http://[2001:db8::1]/", "http://1.2.3.4.example/", "http://0x7g/",
    ])
    func normalURLsAreUnchanged(text: String) throws {
        #expect(try RequestTarget(text).text == text)
    }

    static let normalisedRows: [(String, String)] = [
        ("HTTP://EXAMPLE.com", "http://example.com/"),
        ("hTTps://Example.COM:443?a", "https://example.com/?a"),
        ("http://h:80/", "http://h/"),
        ("https://h:80/", "https://h:80/"),
        ("http://h:/", "http://h/"),
        ("http://h:0080", "http://h/"),
        ("http://h:008080/", "http://h:8080/"),
        ("http://h/a b\"<>\\^`{|}", "http://h/a%20b%22%3C%3E%5C%5E%60%7B%7C%7D"),
        ("http://h/a?b c\\d{}|", "http://h/a?b%20c%5Cd%7B%7D%7C"),
        ("http://h/é?ü=€", "http://h/%C3%A9?%C3%BC=%E2%82%AC"),
        ("http://h/%", "http://h/%25"),
        ("http://h/%zz%4?%", "http://h/%25zz%254?%25"),
        ("http://h/%4", "http://h/%254"),
        ("http://h/ %2f%2g", "http://h/%20%2f%252g"),
        ("http://h/%2f%2F", "http://h/%2f%2F"),
        ("http://h/%?20", "http://h/%25?20"),
        ("http://h/a#b?c", "http://h/a"),
        ("http://h/a?b#c#d", "http://h/a?b"),
        ("http://h#", "http://h/"),
        ("http://@h/", "http://h/"),
        ("http://a b:c@d@h/", "http://a%20b:c%40d@h/"),
        ("http://ü@h/", "http://%C3%BC@h/"),
        ("http://[0:0:0:0:0:0:0:1]/", "http://[::1]/"),
        ("http://[2001:DB8:0:0:1:0:0:1]", "http://[2001:db8::1:0:0:1]/"),
        ("http://[::FFFF:127.0.0.1]/", "http://[::ffff:7f00:1]/"),
        ("http://[1:2:3:4:5:6:7::]/", "http://[1:2:3:4:5:6:7:0]/"),
        ("http://[1:2:3:4:5:6:1.2.3.4]/", "http://[1:2:3:4:5:6:102:304]/"),
        ("http://[0001:0::0]:81/", "http://[1::]:81/"),
        ("http://[::]/", "http://[::]/"),
        ("http://bücher.example/", "http://xn--bcher-kva.example/"),
        ("http://BÜCHER.example:81/ü", "http://xn--bcher-kva.example:81/%C3%BC"),
        ("http://faß.de/", "http://xn--fa-hia.de/"),
        ("http://例え。テスト/", "http://xn--r8jz45g.xn--zckzah/"),
        ("http://１２７.0.0.1/", "http://127.0.0.1/"),
    ]

    @Test(arguments: normalisedRows)
    func urlsAreNormalised(text: String, expected: String) throws {
        let target = try RequestTarget(text)
        #expect(target.text == expected)
        #expect(try RequestTarget(target.text).text == expected)
        #expect(try RequestTarget(target.text) == target)
    }

    @Test func componentsAreParsed() throws {
        let target = try RequestTarget("HTTPS://u:p@Bücher.example:8443/a b?c=d#e")
        #expect(target.scheme == .https)
        #expect(target.host == "xn--bcher-kva.example")
        #expect(target.port == 8443)
        #expect(target.userInfo == "u:p")
        #expect(target.path == "/a%20b")
        #expect(target.query == "c=d")
        #expect(!target.isIPv6)
        #expect(target.description == "https://xn--bcher-kva.example:8443/a%20b?c=<redacted>")

        let address = try RequestTarget("http://[::1]")
        #expect(address.host == "::1" && address.isIPv6 && address.port == 80 && address.path == "/")
        #expect(address.userInfo == nil && address.query == nil)
        #expect(try RequestTarget("https://h/").port == 443)
    }

    static let refusedRows: [(String, InvalidURL.Reason)] = [
        ("", InvalidURL.Reason.empty), ("example.com", .noScheme), ("/path", .noScheme), ("://h/", .noScheme),
        (" http://h/", .noScheme), ("1http://h/", .noScheme), ("http", .noScheme), ("é://h", .noScheme),
        ("ftp://h/", .unsupportedScheme("ftp")), ("localhost:8080/x", .unsupportedScheme("localhost")),
        ("file:///etc/passwd", .unsupportedScheme("file")), ("HTTPX://h", .unsupportedScheme("httpx")),
        ("http:", .noHost), ("http:/h", .noHost), ("http://", .noHost), ("http:///x", .noHost),
        ("http://?x", .noHost), ("http://#x", .noHost), ("http://u@/", .noHost), ("http://:80/", .noHost),
        ("http:h/", .noHost), ("http:\\\\h", .noHost),
        ("http://a b/", .forbiddenInHost(" ")), ("http://a<b/", .forbiddenInHost("<")),
        ("http://a|b/", .forbiddenInHost("|")), ("http://a^b/", .forbiddenInHost("^")),
        ("http://good.example\\evil/", .forbiddenInHost("\\")), ("http://a]b/", .forbiddenInHost("]")),
        ("http://a[b/", .forbiddenInHost("[")), ("http://a{b/", .forbiddenInHost("{")),
        ("http://é b/", .forbiddenInHost(" ")), ("http://a／b/", .forbiddenInHost("/")),
        ("http://good.example\\@evil/", .forbiddenInUserInfo),
        ("http://a%41b/", .percentEscapeInHost), ("http://a％41/", .percentEscapeInHost),
        ("http://h\r\n/", .controlCharacter), ("http://h/\r\nX: y", .controlCharacter),
        ("http://h/a\tb", .controlCharacter),
        ("http://h/?\u{0}", .controlCharacter), ("http://h/#\u{7F}", .controlCharacter),
        ("\nhttp://h/", .controlCharacter),
        ("http://u\n@h/", .controlCharacter), ("http://h:8\n0/", .controlCharacter),
        ("http://h:0/", .invalidPort), ("http://h:65536/", .invalidPort),
        ("http://h:99999999999999999999/", .invalidPort),
        ("http://h:80a/", .invalidPort), ("http://h:-1/", .invalidPort), ("http://h:1:2/", .invalidPort),
        ("http://[::1]x/", .invalidPort), ("http://::1/", .noHost), ("http://h:000/", .invalidPort),
        ("http://a..b/", .emptyLabel), ("http://.a/", .emptyLabel), ("http://./", .emptyLabel),
        ("http://a../", .emptyLabel),
    ]

    @Test(arguments: refusedRows)
    func invalidURLsAreRejected(text: String, reason: InvalidURL.Reason) {
        #expect(throws: InvalidURL(text: text, reason: reason)) { try RequestTarget(text) }
    }

    @Test(arguments: [
        "1", "127.1", "256.1.1.1", "1.2.3", "1.2.3.4.5", "01.2.3.4", "1.2.3.04", "0x7f.0.0.1", "0x7f000001", "0x",
        "example.1", "1.2.3.4.", "a.0x1F", "1.2.3.1234", "2130706433", "０x7f.1",
    ])
    func invalidIPv4AddressesAreRejected(host: String) {
        #expect(throws: InvalidURL(text: "http://\(host)/", reason: .invalidIPv4)) {
            try RequestTarget("http://\(host)/")
        }
    }

    @Test(arguments: [
        "", "::1", ":::", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "1::2::3", "12345::", "g::", ":1:2:3:4:5:6:7",
        "1:2:3:4:5:6:7:", "::1.2.3", "::1.2.3.256", "1.2.3.4::", "fe80::1%25eth0", "fe80::1%eth0", "1:2:3:4:5:6:7:8::",
        "1:2:3:4:5:6:7:1.2.3.4", "+1::", "::+1", "1.2.3.4",
    ])
    func invalidIPv6AddressesAreRejected(address: String) {
        let text = address == "::1" ? "http://[::1/" : "http://[\(address)]/"
        #expect(throws: InvalidURL(text: text, reason: .invalidIPv6)) { try RequestTarget(text) }
    }

    @Test func hostNameLengthIsLimited() throws {
        let label = String(repeating: "a", count: 63)
        let name = [label, label, label, String(repeating: "b", count: 61)].joined(separator: ".")
        #expect(try RequestTarget("http://\(name)/").host == name)
        #expect(try RequestTarget("http://\(name)./").host == name + ".")
        #expect(throws: InvalidURL(text: "http://a\(label)/", reason: .labelTooLong)) {
            try RequestTarget("http://a\(label)/")
        }
        #expect(throws: InvalidURL(text: "http://\(name)b/", reason: .nameTooLong)) {
            try RequestTarget("http://\(name)b/")
        }
    }

    @Test func internationalNamesNeedLibidn2() {
        #expect(throws: InvalidURL(text: "http://ü/", reason: .namesLibraryMissing)) {
            try RequestTarget("http://ü/", names: nil)
        }
        let error = #expect(throws: InvalidURL.self) { try RequestTarget("http://\u{200D}/") }
        #expect(error?.description.contains("not a valid international name") == true)
    }

    static let reasonRows: [(InvalidURL.Reason, String)] = [
        (InvalidURL.Reason.empty, "empty"), (.noScheme, "http://"), (.unsupportedScheme("ftp"), "ftp"),
        (.noHost, "no host"),
        (.controlCharacter, "control"), (.percentEscapeInHost, "percent"), (.forbiddenInHost("<"), "<"),
        (.forbiddenInUserInfo, "backslash"), (.emptyLabel, "empty label"), (.labelTooLong, "63"), (.nameTooLong, "253"),
        (.invalidIPv4, "IPv4"), (.invalidIPv6, "IPv6"), (.invalidPort, "65535"), (.namesLibraryMissing, "libidn2"),
        (.nameRefused("why"), "why"),
    ]

    @Test(arguments: reasonRows)
    func reasonsHaveDescriptions(reason: InvalidURL.Reason, part: String) {
        #expect(reason.description.contains(part))
        #expect("\(InvalidURL(text: "http://u:p@h/", reason: reason))".contains("http://h/"))
        #expect("\(InvalidURL(text: "", reason: reason))" == reason.description)
    }
}

@Suite("URL redaction")
struct RedactionTests {
    @Test(arguments: [
        ("https://h/p", "https://h/p"),
        ("https://u:p@h:1/p?a=1&b&c=2=3;d#frag", "https://h:1/p?a=<redacted>&<redacted>&c=<redacted>#<redacted>"),
        ("https://h/@me?x=a@b", "https://h/@me?x=<redacted>"),
        ("https://h:80/@me", "https://h:80/@me"),
        ("https://h#f?x=1", "https://h#<redacted>"),
        ("https://u:p/w@h/", "https://h/"),
        ("https://u:p?w@h/x", "https://h/x"),
        ("https://[::1]:8/@x", "https://[::1]:8/@x"),
        ("https://h:x/y", "https://h:x/y"),
        ("u:p@h/x?y=z", "h/x?y=<redacted>"),
        ("/relative?y=z", "/relative?y=<redacted>"),
        ("https://h/\r\nX?é=ü&=", "https://h/\\r\\nX?é=<redacted>&=<redacted>"),
        ("https://h?&a=", "https://h?&a=<redacted>"),
        ("", ""),
        ("http:/user:SECRET@h/", "http:/h/"), ("http:///user:SECRET@h/", "http:///h/"),
        ("//user:SECRET@h/", "//h/"), ("http//user:SECRET@h/", "http//h/"), ("http:/\\user:SECRET@h/", "http:/\\h/"),
        ("http:user:SECRET@h/", "http:h/"), (" HTTP : // user:SECRET@h/", " HTTP : // h/"),
        ("\\\\user:SECRET@h/", "\\\\h/"), ("htp//user:SECRET@h/", "htp//h/"), ("ftp:/u:SECRET@h/", "ftp:/h/"),
        ("http/user:SECRET@h/", "http/h/"), ("/user:SECRET@h/", "/h/"), ("htp/user:SECRET@h/", "htp/h/"),
        ("http://http://user:SECRET@h/", "http://h/"), ("http://[u:SECRET/x@h/", "http://h/"),
        ("https://h/http://u:SECRET@x/y", "https://h/http://x/y"), ("http://u:SEC\\RET@h/", "http://h/"),
        ("/@me", "/@me"), ("users/@me", "users/@me"), ("/a/b:c@d", "/a/b:c@d"),
        ("https://h/?SECRET", "https://h/?<redacted>"), ("?SECRET&&a=b", "?<redacted>&&a=<redacted>"),
        ("https://h/a;token=SECRET://u@x/b", "https://h/a;token=<redacted>//x/b"),
        ("https://h/a;token=SECRET/b;SECRET;?x", "https://h/a;token=<redacted>/b;<redacted>;?<redacted>"),
    ])
    func urlsAreRedacted(text: String, shown: String) {
        #expect(redactedURL(text) == shown)
    }

    @Test(arguments: [
        "http:/user:SECRET@h/", "http:///user:SECRET@h/", "//user:SECRET@h/", "http//user:SECRET@h/",
        "http:/\\user:SECRET@h/", "user:SECRET@h", "http:user:SECRET@h",
    ])
    func passwordsOfMalformedURLsAreHidden(text: String) {
        if let target = try? RequestTarget(text) { #expect(!"\(target)".contains("SECRET")) }
        do {
            _ = try RequestTarget(text)
        } catch {
            #expect(!"\(error)".contains("SECRET"))
        }
        #expect(!"\(Request(text))".contains("SECRET"))
    }

    @Test func hostNameKeysAndAddressesAreNormalised() {
        let keys = [
            "Example.TEST.": "example.test", "bücher.test": "xn--bcher-kva.test", "0:0::1": "::1",
            "10.0.0.1": "10.0.0.1",
        ]
        for (written, key) in keys { #expect(HostName.key(written) == key) }
        for wrong in ["", ".", "a b", "1:2", "127.1", "*.test", "a..b"] { #expect(HostName.key(wrong) == nil) }
        #expect(HostName.isAddress("127.0.0.1") && HostName.isAddress("::1") && !HostName.isAddress("a.test"))
        #expect(HostName.address([127, 0, 0, 1]) == "127.0.0.1")
        #expect(HostName.address([UInt8](repeating: 0, count: 15) + [1]) == "::1")
        #expect(HostName.address([1, 2, 3]) == nil && HostName.address([]) == nil)
    }
}
