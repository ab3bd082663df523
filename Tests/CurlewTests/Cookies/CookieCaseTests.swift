// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing

@testable import Curlew

/// The rules of RFC 6265bis (draft 22) as a table, for a whole jar, with the public suffixes of the machine.
struct CookieCaseTests {
    @Test(arguments: parsing) func fieldIsParsed(_ row: CookieCase) throws { try row.check() }
    @Test(arguments: names) func nameAndValueAreChecked(_ row: CookieCase) throws { try row.check() }
    @Test(arguments: expiry) func expiryIsStored(_ row: CookieCase) throws { try row.check() }
    @Test(arguments: domains) func domainIsChecked(_ row: CookieCase) throws { try row.check() }
    @Test(arguments: paths) func pathIsMatched(_ row: CookieCase) throws { try row.check() }
    @Test(arguments: security) func secureCookiesAreProtected(_ row: CookieCase) throws { try row.check() }
    @Test(arguments: prefixes) func prefixRulesApply(_ row: CookieCase) throws { try row.check() }
    @Test(arguments: replacing) func cookiesAreReplacedAndOrdered(_ row: CookieCase) throws { try row.check() }

    static let parsing: [CookieCase] = [
        CookieCase("§5.6 name and value", "a=b", sends: "a=b"),
        CookieCase("§5.6 value with =", "a=b=c", sends: "a=b=c"),
        CookieCase("§5.6 spaces around name and value", " a \t= \tb ", sends: "a=b"),
        CookieCase("§5.6 spaces inside are kept", "a=b c", sends: "a=b c"),
        CookieCase("§5.6 tab inside is kept", "a=b\tc", sends: "a=b\tc"),
        CookieCase("§5.6 quotes are part of the value", "a=\"b c\"", sends: "a=\"b c\""),
        CookieCase("§5.6 quoted semicolon ends the value", "a=\"b;c\"", sends: "a=\"b"),
        CookieCase("§5.6 comma is part of the value", "a=b, c=d", sends: "a=b, c=d"),
        CookieCase("§5.6 no = is a value without a name", "abc", sends: "abc"),
        CookieCase("§5.6 empty name", "=abc", sends: "abc"),
        CookieCase("§5.6 two = at the start", "==abc", sends: "=abc"),
        CookieCase("§5.6 empty value", "a=", sends: "a="),
        CookieCase("§5.6 empty value before an attribute", "a=; Path=/", sends: "a="),
        CookieCase("§5.6 attribute without spaces", "a=b;Path=/x", to: "https://www.example.com/x", sends: "a=b"),
        CookieCase("§5.6 empty attributes are ignored", "a=b;;; ;Path=/", sends: "a=b"),
        CookieCase("§5.6 unknown attribute is ignored", "a=b; Priority=High; x", sends: "a=b"),
        CookieCase("§5.6 attribute names match any case", "a=b; pATH=/x; sECURE", sends: nil),
        CookieCase("§5.6 non-ASCII value", "a=ü", sends: "a=ü"),
        CookieCase("§5.6 non-ASCII name", "ü=1", sends: "ü=1"),
        CookieCase("§5.6 emoji of several scalars", "a=👩‍🚀", sends: "a=👩‍🚀"),
        CookieCase("§5.6 combining mark after =", "a=\u{301}b", sends: "a=\u{301}b"),
        CookieCase("§5.6 combining mark after ;", "a=b;\u{301}Path=/x", sends: "a=b"),
        CookieCase("§5.6 NUL", "a=b\u{0}c", sends: nil, refused: [.controlCharacter]),
        CookieCase("§5.6 control 0x08", "a=\u{8}", sends: nil, refused: [.controlCharacter]),
        CookieCase("§5.6 line feed", "a=b\nc", sends: nil, refused: [.controlCharacter]),
        CookieCase("§5.6 carriage return", "a=b\rc", sends: nil, refused: [.controlCharacter]),
        CookieCase("§5.6 control 0x1F", "a=b\u{1F}", sends: nil, refused: [.controlCharacter]),
        CookieCase("§5.6 delete", "a=\u{7F}", sends: nil, refused: [.controlCharacter]),
        CookieCase("§5.6 control in an attribute", "a=b; Path=/\u{1}", sends: nil, refused: [.controlCharacter]),
        CookieCase("§5.6 attribute of 1024 bytes", "a=b; Path=/" + String(repeating: "x", count: 1023), sends: nil),
        CookieCase(
            "§5.6 attribute of 1025 bytes is ignored", "a=b; Path=/" + String(repeating: "x", count: 1024), sends: "a=b"
        ),
        CookieCase("§5.6.4 path with = inside", "a=b; Path=/x=y", to: "https://www.example.com/x=y", sends: "a=b"),
        CookieCase("§5.6 equals without attribute name", "a=b; =/x", sends: "a=b"),
    ]

    static let names: [CookieCase] = [
        CookieCase("§5.7 empty field", "", sends: nil, refused: [.empty]),
        CookieCase("§5.7 only =", "=", sends: nil, refused: [.empty]),
        CookieCase("§5.7 only spaces", "  ", sends: nil, refused: [.empty]),
        CookieCase("§5.7 only ;", ";", sends: nil, refused: [.empty]),
        CookieCase("§5.7 only attributes", "; Path=/", sends: nil, refused: [.empty]),
        CookieCase(
            "§5.7 4096 bytes", "a=" + String(repeating: "x", count: 4095),
            sends: "a=" + String(repeating: "x", count: 4095)),
        CookieCase("§5.7 4097 bytes", "a=" + String(repeating: "x", count: 4096), sends: nil, refused: [.tooLong]),
        CookieCase(
            "§5.7 the name counts", String(repeating: "n", count: 4096) + "=x", sends: nil, refused: [.tooLong]),
        CookieCase(
            "§5.7 a long name without a value", String(repeating: "n", count: 4096) + "=",
            sends: String(repeating: "n", count: 4096) + "="),
        CookieCase(
            "§5.7 bytes count, not characters", "a=" + String(repeating: "ü", count: 2048), sends: nil,
            refused: [.tooLong]),
        CookieCase(
            "§5.7 attributes do not count", "a=b; x=" + String(repeating: "x", count: 8000), sends: "a=b"),
        CookieCase("§5.7 names match case", "a=1", "A=2", sends: "a=1; A=2"),
        CookieCase("§5.7 nameless cookies replace each other", "one", "two", sends: "two"),
        CookieCase("§5.7 nameless and named are different", "one", "one=1", sends: "one; one=1"),
        CookieCase(
            "§5.7 canonically equal names are different", "\u{E9}=1", "e\u{301}=2", sends: "\u{E9}=1; e\u{301}=2"),
    ]

    static let expiry: [CookieCase] = [
        CookieCase("§5.6.2 Max-Age above zero", "a=b; Max-Age=10", sends: "a=b", after: 9),
        CookieCase("§5.6.2 Max-Age has passed", "a=b; Max-Age=10", sends: nil, after: 10),
        CookieCase("§5.6.2 Max-Age zero", "a=b; Max-Age=0", sends: nil),
        CookieCase("§5.6.2 Max-Age below zero", "a=b; Max-Age=-1", sends: nil),
        CookieCase("§5.6.2 Max-Age far below zero", "a=b; Max-Age=-99999999999999999999", sends: nil),
        CookieCase("§5.6.2 Max-Age with +", "a=b; Max-Age=+1", sends: "a=b", after: 100),
        CookieCase("§5.6.2 Max-Age with a fraction", "a=b; Max-Age=1.5", sends: "a=b", after: 100),
        CookieCase("§5.6.2 Max-Age with text", "a=b; Max-Age=1s", sends: "a=b", after: 100),
        CookieCase("§5.6.2 Max-Age empty", "a=b; Max-Age=", sends: "a=b", after: 100),
        CookieCase("§5.6.2 Max-Age is only -", "a=b; Max-Age=-", sends: "a=b", after: 100),
        CookieCase("§5.6.2 Max-Age in quotes", "a=b; Max-Age=\"1\"", sends: "a=b", after: 100),
        CookieCase("§5.6.2 last Max-Age counts", "a=b; Max-Age=1; Max-Age=100", sends: "a=b", after: 50),
        CookieCase("§5.6.2 invalid Max-Age after a valid one", "a=b; Max-Age=1; Max-Age=x", sends: nil, after: 1),
        CookieCase(
            "§5.5 Max-Age beyond 400 days", "a=b; Max-Age=99999999999999999999", sends: "a=b", after: 34_559_999),
        CookieCase(
            "§5.5 Max-Age ends after 400 days", "a=b; Max-Age=99999999999999999999", sends: nil, after: 34_560_000),
        CookieCase("§5.5 Expires beyond 400 days", "a=b; Expires=1 Jan 2099 00:00:00", sends: "a=b", after: 34_559_999),
        CookieCase(
            "§5.5 Expires ends after 400 days", "a=b; Expires=1 Jan 2099 00:00:00", sends: nil, after: 34_560_000),
        CookieCase(
            "§5.6.1 Expires in the future", "a=b; Expires=Thu, 01 Jan 2026 00:00:10 GMT", sends: "a=b", after: 9),
        CookieCase("§5.6.1 Expires has come", "a=b; Expires=Thu, 01 Jan 2026 00:00:10 GMT", sends: nil, after: 10),
        CookieCase("§5.6.1 Expires in the past", "a=b; Expires=Thu, 01 Jan 1970 00:00:00 GMT", sends: nil),
        CookieCase("§5.6.1 Expires is no date", "a=b; Expires=soon", sends: "a=b", after: 1e6),
        CookieCase("§5.6.1 Expires is empty", "a=b; Expires=", sends: "a=b", after: 1e6),
        CookieCase("§5.6.1 Expires with hyphens", "a=b; Expires=Thu, 01-Jan-2026 00:00:10 GMT", sends: nil, after: 10),
        CookieCase("§5.6.1 Expires with two digits", "a=b; Expires=Thu, 01-Jan-26 00:00:10 GMT", sends: nil, after: 10),
        CookieCase("§5.7 Max-Age wins over Expires", "a=b; Max-Age=100; Expires=1 Jan 1999 00:00:00", sends: "a=b"),
        CookieCase("§5.7 Max-Age wins in either order", "a=b; Expires=1 Jan 1999 00:00:00; Max-Age=100", sends: "a=b"),
        CookieCase("§5.7 Max-Age 0 wins over Expires", "a=b; Expires=1 Jan 2027 00:00:00; Max-Age=0", sends: nil),
        CookieCase("§5.7 invalid Max-Age leaves Expires", "a=b; Max-Age=x; Expires=1 Jan 1999 00:00:00", sends: nil),
        CookieCase("§5.7 session cookie", "a=b", sends: "a=b", after: 1e9),
        CookieCase("§5.7 expired cookie removes", "a=b", "a=; Max-Age=0", sends: nil),
        CookieCase(
            "§5.7 expired cookie of another path removes nothing", "a=b", "a=; Path=/x; Max-Age=0", sends: "a=b"),
        CookieCase("§5.7 expired cookie of another name", "a=b", "c=; Max-Age=0", sends: "a=b"),
    ]

    static let domains: [CookieCase] = [
        CookieCase("§5.1.3 host only", "a=b", to: "https://example.com/", sends: nil),
        CookieCase("§5.1.3 host only, not subdomains", "a=b", to: "https://x.www.example.com/", sends: nil),
        CookieCase("§5.1.3 same host in capitals", "a=b", to: "https://WWW.EXAMPLE.COM/", sends: "a=b"),
        CookieCase("§5.1.3 other port", "a=b", to: "https://www.example.com:8443/", sends: "a=b"),
        CookieCase("§5.6.3 domain of the host", "a=b; Domain=www.example.com", sends: "a=b"),
        CookieCase(
            "§5.6.3 domain reaches subdomains", "a=b; Domain=www.example.com", to: "https://x.www.example.com/",
            sends: "a=b"),
        CookieCase("§5.6.3 domain above the host", "a=b; Domain=example.com", to: "https://example.com/", sends: "a=b"),
        CookieCase(
            "§5.6.3 domain reaches siblings", "a=b; Domain=example.com", to: "https://api.example.com/", sends: "a=b"),
        CookieCase("§5.6.3 dot at the start", "a=b; Domain=.example.com", to: "https://api.example.com/", sends: "a=b"),
        CookieCase(
            "§5.6.3 domain in capitals", "a=b; Domain=EXAMPLE.com", to: "https://api.example.com/", sends: "a=b"),
        CookieCase("§5.6.3 two dots at the start", "a=b; Domain=..example.com", sends: nil, refused: [.invalidDomain]),
        CookieCase("§5.6.3 empty domain", "a=b; Domain=", to: "https://www.example.com/", sends: "a=b"),
        CookieCase("§5.6.3 empty domain is host only", "a=b; Domain=", to: "https://x.www.example.com/", sends: nil),
        CookieCase("§5.6.3 only a dot", "a=b; Domain=.", to: "https://www.example.com/", sends: "a=b"),
        CookieCase("§5.6.3 last domain counts", "a=b; Domain=example.org; Domain=example.com", sends: "a=b"),
        CookieCase(
            "§5.6.3 last domain is foreign", "a=b; Domain=example.com; Domain=example.org", sends: nil,
            refused: [.foreignDomain]),
        CookieCase("§5.7 foreign domain", "a=b; Domain=example.org", sends: nil, refused: [.foreignDomain]),
        CookieCase("§5.7 subdomain", "a=b; Domain=x.www.example.com", sends: nil, refused: [.foreignDomain]),
        CookieCase("§5.7 sibling", "a=b; Domain=api.example.com", sends: nil, refused: [.foreignDomain]),
        CookieCase("§5.7 suffix without a dot", "a=b; Domain=ample.com", sends: nil, refused: [.foreignDomain]),
        CookieCase("§5.7 suffix of a label", "a=b; Domain=w.example.com", sends: nil, refused: [.foreignDomain]),
        CookieCase("§5.7 dot at the end", "a=b; Domain=example.com.", sends: nil, refused: [.foreignDomain]),
        CookieCase("§5.7 space inside", "a=b; Domain=exam ple.com", sends: nil, refused: [.invalidDomain]),
        CookieCase("§5.7 port in the domain", "a=b; Domain=example.com:80", sends: nil, refused: [.invalidDomain]),
        CookieCase("§5.7 URL as the domain", "a=b; Domain=https://example.com", sends: nil, refused: [.invalidDomain]),
        CookieCase("§5.7 non-ASCII domain", "a=b; Domain=exämple.com", sends: nil, refused: [.invalidDomain]),
        CookieCase(
            "§5.7 A-label", from: "https://www.xn--bcher-kva.example/", "a=b; Domain=xn--bcher-kva.example",
            to: "https://bücher.example/", sends: "a=b"),
        CookieCase("§5.7 top-level domain", "a=b; Domain=com", sends: nil, refused: [.publicSuffix]),
        CookieCase(
            "§5.7 suffix of two labels", from: "https://www.example.co.uk/", "a=b; Domain=co.uk", sends: nil,
            refused: [.publicSuffix]),
        CookieCase(
            "§5.7 below a suffix of two labels", from: "https://www.example.co.uk/", "a=b; Domain=example.co.uk",
            to: "https://example.co.uk/", sends: "a=b"),
        CookieCase(
            "§5.7 suffix of a company", from: "https://me.github.io/", "a=b; Domain=github.io", sends: nil,
            refused: [.publicSuffix]),
        CookieCase("§5.7 suffix that is the host", from: "https://github.io/", "a=b; Domain=github.io", sends: "a=b"),
        CookieCase(
            "§5.7 suffix that is the host is host only", from: "https://github.io/", "a=b; Domain=github.io",
            to: "https://me.github.io/", sends: nil),
        CookieCase(
            "§5.7 wildcard suffix", from: "https://a.b.ck/", "a=b; Domain=b.ck", sends: nil, refused: [.publicSuffix]),
        CookieCase(
            "§5.7 exception of a wildcard", from: "https://a.www.ck/", "a=b; Domain=www.ck", to: "https://www.ck/",
            sends: "a=b"),
        CookieCase(
            "§5.7 unlisted top-level domain", from: "https://a.internal-x/", "a=b; Domain=internal-x", sends: nil,
            refused: [.publicSuffix]),
        CookieCase("§5.7 name of one label", from: "http://intranet/", "a=b; Domain=intranet", sends: "a=b"),
        CookieCase("§5.7 localhost", from: "http://localhost:8080/", "a=b; Domain=localhost", sends: "a=b"),
        CookieCase("§5.1.3 IPv4 address", from: "http://127.0.0.1/", "a=b", sends: "a=b"),
        CookieCase("§5.1.3 IPv4 address as the domain", from: "http://10.1.2.3/", "a=b; Domain=10.1.2.3", sends: "a=b"),
        CookieCase(
            "§5.1.3 part of an IPv4 address", from: "http://10.1.2.3/", "a=b; Domain=2.3", sends: nil,
            refused: [.invalidDomain]),
        CookieCase(
            "§5.1.3 last number of an IPv4 address", from: "http://10.1.2.3/", "a=b; Domain=3", sends: nil,
            refused: [.invalidDomain]),
        CookieCase("§5.1.3 IPv6 address", from: "http://[::1]/", "a=b", to: "http://[0:0::1]/", sends: "a=b"),
        CookieCase("§5.1.3 other address", from: "http://127.0.0.1/", "a=b", to: "http://127.0.0.2/", sends: nil),
    ]

    static let paths: [CookieCase] = [
        CookieCase("§5.1.4 default path of /", "a=b", to: "https://www.example.com/x/y", sends: "a=b"),
        CookieCase("§5.1.4 default path of /x", from: "https://h.test/x", "a=b", to: "https://h.test/", sends: "a=b"),
        CookieCase(
            "§5.1.4 default path of /x/", from: "https://h.test/x/", "a=b", to: "https://h.test/x/y", sends: "a=b"),
        CookieCase(
            "§5.1.4 default path of /x/ without slash", from: "https://h.test/x/", "a=b", to: "https://h.test/x",
            sends: "a=b"),
        CookieCase(
            "§5.1.4 default path excludes above", from: "https://h.test/x/", "a=b", to: "https://h.test/", sends: nil),
        CookieCase(
            "§5.1.4 default path of /x/y", from: "https://h.test/x/y", "a=b", to: "https://h.test/x", sends: "a=b"),
        CookieCase(
            "§5.1.4 default path excludes siblings", from: "https://h.test/x/y", "a=b", to: "https://h.test/z",
            sends: nil),
        CookieCase(
            "§5.1.4 the query is no path", from: "https://h.test/x?y/z", "a=b", to: "https://h.test/", sends: "a=b"),
        CookieCase("§5.1.4 URL without a path", from: "https://h.test", "a=b", to: "https://h.test/x", sends: "a=b"),
        CookieCase("§5.1.4 equal path", "a=b; Path=/x", to: "https://www.example.com/x", sends: "a=b"),
        CookieCase("§5.1.4 path below", "a=b; Path=/x", to: "https://www.example.com/x/y", sends: "a=b"),
        CookieCase("§5.1.4 query after an equal path", "a=b; Path=/x", to: "https://www.example.com/x?y", sends: "a=b"),
        CookieCase("§5.1.4 longer segment", "a=b; Path=/x", to: "https://www.example.com/xy", sends: nil),
        CookieCase("§5.1.4 path above", "a=b; Path=/x/y", to: "https://www.example.com/x", sends: nil),
        CookieCase("§5.1.4 slash at the end", "a=b; Path=/x/", to: "https://www.example.com/x/y", sends: "a=b"),
        CookieCase(
            "§5.1.4 slash at the end excludes the segment", "a=b; Path=/x/", to: "https://www.example.com/x", sends: nil
        ),
        CookieCase("§5.1.4 paths match case", "a=b; Path=/X", to: "https://www.example.com/x", sends: nil),
        CookieCase("§5.1.4 escapes are not decoded", "a=b; Path=/%78", to: "https://www.example.com/x", sends: nil),
        CookieCase(
            "§5.6.4 relative path", from: "https://h.test/x/y", "a=b; Path=z", to: "https://h.test/x/", sends: "a=b"),
        CookieCase(
            "§5.6.4 empty path", from: "https://h.test/x/y", "a=b; Path=", to: "https://h.test/x/", sends: "a=b"),
        CookieCase("§5.6.4 last path counts", "a=b; Path=/x; Path=/", sends: "a=b"),
        CookieCase(
            "§5.6.4 last path is invalid", from: "https://h.test/x/y", "a=b; Path=/; Path=z", to: "https://h.test/",
            sends: nil),
        CookieCase(
            "§5.6.4 path elsewhere may be set", "a=b; Path=/other", to: "https://www.example.com/other", sends: "a=b"),
    ]

    static let security: [CookieCase] = [
        CookieCase("§5.7 Secure over https", "a=b; Secure", sends: "a=b"),
        CookieCase("§5.8.3 Secure is not sent over http", "a=b; Secure", to: "http://www.example.com/", sends: nil),
        CookieCase("§5.8.3 insecure is sent over both", "a=b", to: "http://www.example.com/", sends: "a=b"),
        CookieCase(
            "§5.7 Secure from http", from: "http://www.example.com/", "a=b; Secure", sends: nil,
            refused: [.insecureOrigin]),
        CookieCase("§5.7 Secure from localhost", from: "http://localhost/", "a=b; Secure", sends: "a=b"),
        CookieCase("§5.7 Secure from x.localhost", from: "http://x.localhost/", "a=b; Secure", sends: "a=b"),
        CookieCase("§5.7 Secure from 127.0.0.1", from: "http://127.0.0.1/", "a=b; Secure", sends: "a=b"),
        CookieCase("§5.7 Secure from ::1", from: "http://[::1]/", "a=b; Secure", sends: "a=b"),
        CookieCase(
            "§5.7 Secure from localhost.example", from: "http://localhost.example/", "a=b; Secure", sends: nil,
            refused: [.insecureOrigin]),
        CookieCase(
            "§5.7 Secure from 127.example", from: "http://127.example.com/", "a=b; Secure", sends: nil,
            refused: [.insecureOrigin]),
        CookieCase("§5.6.5 Secure with a value", "a=b; Secure=no", to: "http://www.example.com/", sends: nil),
        CookieCase("§5.6.6 HttpOnly is sent", "a=b; HttpOnly", sends: "a=b"),
        CookieCase(
            "§5.7 http does not replace a secure cookie", "a=1; Secure", "http://www.example.com/ | a=2", sends: "a=1",
            refused: [.hidesSecureCookie]),
        CookieCase(
            "§5.7 http does not hide a secure cookie below", "a=1; Secure; Path=/x",
            "http://www.example.com/x/y | a=2; Path=/x/y",
            to: "https://www.example.com/x/y", sends: "a=1", refused: [.hidesSecureCookie]),
        CookieCase(
            "§5.7 http may set a cookie above", "a=1; Secure; Path=/x", "http://www.example.com/ | a=2; Path=/",
            to: "https://www.example.com/x", sends: "a=1; a=2"),
        CookieCase(
            "§5.7 http does not hide a secure cookie of the domain", "a=1; Secure; Domain=example.com",
            "http://www.example.com/ | a=2", sends: "a=1", refused: [.hidesSecureCookie]),
        CookieCase(
            "§5.7 http does not hide a secure cookie of a subdomain", "a=1; Secure",
            "http://www.example.com/ | a=2; Domain=example.com", sends: "a=1", refused: [.hidesSecureCookie]),
        CookieCase(
            "§5.7 http does not end a secure cookie", "a=1; Secure", "http://www.example.com/ | a=; Max-Age=0",
            sends: "a=1", refused: [.hidesSecureCookie]),
        CookieCase(
            "§5.7 http may set another name", "a=1; Secure", "http://www.example.com/ | b=2", sends: "a=1; b=2"),
        CookieCase(
            "§5.7 http may set a sibling's cookie", "a=1; Secure", "http://api.example.com/ | a=2",
            to: "https://api.example.com/", sends: "a=2"),
        CookieCase(
            "§5.7 https replaces a secure cookie", "a=1; Secure", "a=2", to: "http://www.example.com/", sends: "a=2"),
        CookieCase("§5.6.7 SameSite=Strict restricts nothing", "a=b; SameSite=Strict", sends: "a=b"),
        CookieCase("§5.6.7 SameSite=Lax restricts nothing", "a=b; SameSite=Lax", sends: "a=b"),
        CookieCase("§5.6.7 unknown SameSite", "a=b; SameSite=x", sends: "a=b"),
        CookieCase("§5.7 SameSite=None with Secure", "a=b; SameSite=None; Secure", sends: "a=b"),
        CookieCase(
            "§5.7 SameSite=None without Secure", "a=b; SameSite=None", sends: nil, refused: [.insecureSameSiteNone]),
        CookieCase("§5.6.7 last SameSite counts", "a=b; SameSite=None; SameSite=Lax", sends: "a=b"),
    ]

    static let prefixes: [CookieCase] = [
        CookieCase("§4.1.3.1 __Secure- with Secure", "__Secure-a=b; Secure", sends: "__Secure-a=b"),
        CookieCase("§4.1.3.1 __Secure- without Secure", "__Secure-a=b", sends: nil, refused: [.brokenPrefix]),
        CookieCase("§4.1.3.1 __secure- in lower case", "__secure-a=b", sends: nil, refused: [.brokenPrefix]),
        CookieCase("§4.1.3.1 __SECURE- in capitals", "__SECURE-a=b", sends: nil, refused: [.brokenPrefix]),
        CookieCase(
            "§4.1.3.1 __Secure- with a domain", "__Secure-a=b; Secure; Domain=example.com", to: "https://example.com/",
            sends: "__Secure-a=b"),
        CookieCase("§4.1.3.2 __Host- complete", "__Host-a=b; Secure; Path=/", sends: "__Host-a=b"),
        CookieCase("§4.1.3.2 __Host- without Secure", "__Host-a=b; Path=/", sends: nil, refused: [.brokenPrefix]),
        CookieCase("§4.1.3.2 __Host- without Path", "__Host-a=b; Secure", sends: nil, refused: [.brokenPrefix]),
        CookieCase(
            "§4.1.3.2 __Host- with another path", "__Host-a=b; Secure; Path=/x", sends: nil, refused: [.brokenPrefix]),
        CookieCase(
            "§4.1.3.2 __Host- with a domain", "__Host-a=b; Secure; Path=/; Domain=www.example.com", sends: nil,
            refused: [.brokenPrefix]),
        CookieCase("§4.1.3.2 __host- in lower case", "__host-a=b; Path=/", sends: nil, refused: [.brokenPrefix]),
        CookieCase(
            "§4.1.3.2 __Host- with an empty domain", "__Host-a=b; Secure; Path=/; Domain=", sends: "__Host-a=b"),
        CookieCase("§4.1.3 __Http- complete", "__Http-a=b; Secure; HttpOnly", sends: "__Http-a=b"),
        CookieCase("§4.1.3 __Http- without HttpOnly", "__Http-a=b; Secure", sends: nil, refused: [.brokenPrefix]),
        CookieCase("§4.1.3 __Http- without Secure", "__Http-a=b; HttpOnly", sends: nil, refused: [.brokenPrefix]),
        CookieCase(
            "§4.1.3 __Host-Http- complete", "__Host-Http-a=b; Secure; HttpOnly; Path=/", sends: "__Host-Http-a=b"),
        CookieCase(
            "§4.1.3 __Host-Http- without HttpOnly", "__Host-Http-a=b; Secure; Path=/", sends: nil,
            refused: [.brokenPrefix]),
        CookieCase(
            "§4.1.3 __Host-Http- without Path", "__Host-Http-a=b; Secure; HttpOnly", sends: nil,
            refused: [.brokenPrefix]),
        CookieCase("§4.1.3 prefix alone is a name", "__Secure-=b", sends: nil, refused: [.brokenPrefix]),
        CookieCase("§4.1.3 one underscore is no prefix", "_Secure-a=b", sends: "_Secure-a=b"),
        CookieCase("§4.1.3 prefix in the middle", "a__Host-=b", sends: "a__Host-=b"),
        CookieCase("§5.7 nameless __Secure-", "=__Secure-a=b", sends: nil, refused: [.brokenPrefix]),
        CookieCase(
            "§5.7 nameless __Host- with attributes", "=__Host-a=b; Secure; Path=/", sends: nil, refused: [.brokenPrefix]
        ),
        CookieCase("§5.7 nameless __Http-", "=__hTTP-a", sends: nil, refused: [.brokenPrefix]),
        CookieCase("§5.7 nameless other value", "=__x", sends: "__x"),
        CookieCase(
            "§5.7 prefix from http", from: "http://www.example.com/", "__Secure-a=b; Secure", sends: nil,
            refused: [.insecureOrigin]),
    ]

    static let replacing: [CookieCase] = [
        CookieCase("§5.7 same name, domain and path", "a=1", "a=2", sends: "a=2"),
        CookieCase(
            "§5.7 other path is another cookie", "a=1", "a=2; Path=/x", to: "https://www.example.com/x",
            sends: "a=2; a=1"),
        CookieCase("§5.7 host only is another cookie", "a=1", "a=2; Domain=www.example.com", sends: "a=1; a=2"),
        CookieCase("§5.7 replaced cookie keeps its place", "a=1", "b=2", "a=3", sends: "a=3; b=2"),
        CookieCase(
            "§5.7 expired cookie gives its place to no other", "a=1; Max-Age=0", "b=2", "a=3", sends: "b=2; a=3"),
        CookieCase("§5.7 removed cookie loses its place", "a=1", "b=2", "a=; Max-Age=0", "a=3", sends: "b=2; a=3"),
        CookieCase("§5.8.3 older first", "b=1", "a=2", "c=3", sends: "b=1; a=2; c=3"),
        CookieCase(
            "§5.8.3 longer path first", "a=1", "b=2; Path=/x/y", "c=3; Path=/x", to: "https://www.example.com/x/y",
            sends: "b=2; c=3; a=1"),
        CookieCase(
            "§5.8.3 domain does not order", "a=1; Domain=example.com", "b=2", "c=3; Domain=example.com",
            sends: "a=1; b=2; c=3"),
        CookieCase("§5.8.3 nameless among others", "a=1", "x", "b=2", sends: "a=1; x; b=2"),
        CookieCase("§5.8.3 empty value among others", "a=", "b=2", sends: "a=; b=2"),
    ]

    /// The table must not shrink unnoticed.
    @Test func tableHasAtLeastTwoHundredRows() {
        let all = [
            Self.parsing, Self.names, Self.expiry, Self.domains, Self.paths, Self.security, Self.prefixes,
            Self.replacing,
        ].flatMap(\.self)
        #expect(all.count >= 200)
        #expect(all.allSatisfy { $0.name.hasPrefix("§") } && Set(all.map(\.name)).count == all.count)
    }
}

/// Vectors of the public suffix list (`test_psl.txt` of publicsuffix.org), for the list of the machine.
struct PublicSuffixTests {
    @Test(arguments: [
        ("com", true), ("example.com", false), ("biz", true), ("domain.biz", false), ("uk.com", true),
        ("example.uk.com", false), ("ac", true), ("com.ac", true), ("test.ac", false), ("jp", true), ("ac.jp", true),
        ("kyoto.jp", true), ("ide.kyoto.jp", true), ("b.ide.kyoto.jp", false), ("c.kobe.jp", true),
        ("b.c.kobe.jp", false), ("city.kobe.jp", false), ("ck", true), ("test.ck", true), ("b.test.ck", false),
        ("www.ck", false), ("us", true), ("ak.us", true), ("test.ak.us", false), ("k12.ak.us", true),
        ("test.k12.ak.us", false), ("xn--55qx5d.cn", true), ("xn--85x722f.xn--55qx5d.cn", false), ("xn--fiqs8s", true),
        ("xn--85x722f.xn--fiqs8s", false), ("example", true), ("example.example", false),
    ])
    func suffixSeparatesOwners(_ domain: String, _ separates: Bool) throws {
        let suffixes = try #require(PublicSuffixes.system)
        #expect(suffixes.separatesOwners(domain) == separates)
        let reason: Cookie.Refusal.Reason? = separates ? .publicSuffix : nil
        let row = CookieCase(
            "", from: "https://www.x.\(domain)/", "a=b; Domain=\(domain)", sends: separates ? nil : "a=b",
            refused: reason.map { [$0] } ?? [])
        try row.check()
    }
}
