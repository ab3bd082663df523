// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import FoundationEssentials
import Testing

@testable import Curlew

/// Inspecting and editing a jar, its changes, and its descriptions.
@Suite(.timeLimit(.minutes(5)))
struct CookieJarTests {
    private let jar = CookieJar()
    private let url = "https://www.example.com/a"

    private func reason(_ body: () throws(Cookie.Refusal) -> Void) -> Cookie.Refusal.Reason? {
        do throws(Cookie.Refusal) { try body() } catch { return error.reason }
        return nil
    }

    @Test func programSetsListsAndRemovesCookies() throws {
        let theme = Cookie("theme", "dark", host: "WWW.example.com")
        let site = Cookie("site", "1", domain: ".example.com", path: "/a", isSecure: false)
        try jar.set(theme)
        try jar.set(site)
        #expect(jar.cookies.map(\.name) == ["theme", "site"])
        #expect(jar.cookies(for: url).map(\.name) == ["site", "theme"])
        #expect(jar.cookies(for: "http://example.com/a").map(\.name) == ["site"])
        #expect(jar.cookies(for: "not a URL") == [] && jar.cookies(for: "ftp://example.com/") == [])
        #expect(jar.remove(theme) && !jar.remove(theme))
        #expect(jar.cookies.map(\.name) == ["site"])
        jar.removeAll()
        #expect(jar.cookies == [] && jar.cookies(for: url) == [])
    }

    @Test func cookiesAreRemovedByDomainAndSession() throws {
        for domain in ["example.com", "www.example.com", "ample.com", "example.org"] {
            try jar.set(Cookie("s", "1", host: domain))
            try jar.set(Cookie("p", "1", host: domain, expires: Date(timeIntervalSinceNow: 1000)))
        }
        jar.removeSessionCookies()
        #expect(jar.cookies.map(\.name) == ["p", "p", "p", "p"])
        jar.removeAll(ofDomain: ".Example.com")
        #expect(jar.cookies.map(\.domain).sorted() == ["ample.com", "example.org"])
    }

    @Test(arguments: [
        (Cookie("a\u{0}", "b", host: "h.test"), Cookie.Refusal.Reason.controlCharacter),
        (Cookie("a", "b\n", host: "h.test"), .controlCharacter), (Cookie("a", "b;c", host: "h.test"), .separator),
        (Cookie("a=", "b", host: "h.test"), .separator), (Cookie("", "b=c", host: "h.test"), .separator),
        (Cookie("a", " b", host: "h.test"), .separator), (Cookie("a", "b", host: "h.test", path: "x"), .invalidPath),
        (Cookie("a", "b", host: "h.test", path: "/;"), .separator), (Cookie("", "", host: "h.test"), .empty),
        (Cookie("a", String(repeating: "b", count: 4096), host: "h.test"), .tooLong),
        (Cookie("a", "b", host: ""), .invalidDomain), (Cookie("a", "b", host: "h test"), .invalidDomain),
        (Cookie("a", "b", domain: "co.uk"), .publicSuffix), (Cookie("a", "b", domain: "127.0.0.1"), .invalidDomain),
        (Cookie("__Host-a", "b", domain: "h.test"), .brokenPrefix),
        (Cookie("__Secure-a", "b", host: "h.test", isSecure: false), .brokenPrefix),
        (Cookie("a", "b", host: "h.test", isSecure: false, sameSite: .unrestricted), .insecureSameSiteNone),
    ])
    func invalidCookieOfTheProgramIsRefused(_ cookie: Cookie, _ reason: Cookie.Refusal.Reason) {
        #expect(self.reason { () throws(Cookie.Refusal) in try jar.set(cookie) } == reason)
        #expect(jar.cookies == [])
    }

    @Test func validCookiesOfTheProgramAreAccepted() throws {
        try jar.set(Cookie("__Host-a", "b", host: "h.test"))
        try jar.set(Cookie("", "value", host: "h.test"))
        try jar.set(Cookie("a", "b c", host: "bücher.example"))
        try jar.set(Cookie("v6", "1", host: "::1", isSecure: false))
        #expect(jar.cookies(for: "https://xn--bcher-kva.example/").map(\.value) == ["b c"])
        #expect(jar.cookies(for: "http://[::1]/").map(\.value) == ["1"])
        #expect(jar.cookies(for: "https://h.test/").map(\.pair) == ["__Host-a=b", "value"])
    }

    @Test func settingAnExpiredCookieRemovesTheStoredOne() throws {
        try jar.set(Cookie("a", "b", host: "h.test"))
        try jar.set(Cookie("a", "", host: "h.test", expires: .distantPast))
        #expect(jar.cookies == [])
    }

    @Test(arguments: [Double.infinity, -.infinity, .nan, 1e300, -1e300])
    func impossibleExpiryIsLimited(_ time: Double) throws {
        let cookie = Cookie("a", "b", host: "h.test", expires: Date(timeIntervalSince1970: time))
        try jar.set(cookie)
        #expect(jar.cookies.isEmpty == (time < 0) && "\(cookie)".contains("Expires="))
        if let expires = jar.cookies.first?.expires {
            #expect(
                expires < Date(timeIntervalSinceNow: 34_560_002) && expires > Date(timeIntervalSinceNow: 34_559_000))
        }
    }

    @Test func ownerOfManyHostsCannotEvictTheCookiesOfOthers() throws {
        try #require(PublicSuffixes.system != nil)
        try jar.set(Cookie("s", "1", host: "other.co.uk"))
        for number in 0..<200 {
            for name in ["a", "b"] { try jar.set(field: name, from: "https://h\(number).evil.co.uk/") }
        }
        #expect(jar.cookies.count == 181 && jar.cookies.first?.name == "s")
        // The hosts of a company's customers and addresses have different owners.
        for host in ["a.github.io", "b.github.io", "127.0.0.1", "128.0.0.1"] {
            for number in 0..<100 { try jar.set(Cookie("\(number)", "1", host: host)) }
        }
        #expect(jar.cookies.count == 581)
    }

    @Test func cookieIsFoundByItsName() throws {
        try jar.set(Cookie("token", "all", domain: "example.com"))
        try jar.set(Cookie("token", "a", host: "www.example.com", path: "/a"))
        #expect(jar.cookie(named: "token", for: url)?.value == "a")
        #expect(jar.cookie(named: "token", for: "https://example.com")?.value == "all")
        #expect(jar.cookie(named: "Token", for: url) == nil)
    }

    @Test func latestRefusalsAreKept() {
        for number in 0..<150 { try? jar.set(field: "n\(number)=1; Domain=foreign.test", from: url) }
        #expect(jar.refusals.map(\.name) == (50..<150).map { "n\($0)" })
    }

    @Test func finalDotDoesNotHideAPublicSuffix() throws {
        try #require(PublicSuffixes.system != nil)
        let refusal = #expect(throws: Cookie.Refusal.self) {
            try jar.set(field: "a=1; Domain=co.uk.", from: "https://evil.co.uk./")
        }
        #expect(refusal?.reason == .publicSuffix)
    }

    @Test func refusalNamesACookieWithControlCharacters() {
        let refusal = #expect(throws: Cookie.Refusal.self) { try jar.set(field: " sid = \u{1}; Path=/", from: url) }
        #expect(refusal?.reason == .controlCharacter && refusal?.name == "sid")
    }

    @Test func invalidURLIsRefused() {
        #expect(reason { () throws(Cookie.Refusal) in try jar.set(field: "a=b", from: "nonsense") } == .invalidDomain)
    }

    /// Without the list of public suffixes no cookie reaches another host.
    @Test func domainCookieIsHostOnlyWithoutTheSuffixList() throws {
        let jar = CookieJar(suffixes: { nil })
        #expect(reason { () throws(Cookie.Refusal) in try jar.set(Cookie("a", "b", domain: "com")) } == .publicSuffix)
        try jar.set(field: "a=b; Domain=example.com", from: url)
        try jar.set(field: "c=d; Domain=com", from: url)
        #expect(jar.cookies(for: url).map(\.name) == ["a", "c"] && jar.cookies(for: "https://example.com/") == [])
        #expect(
            reason { () throws(Cookie.Refusal) in try jar.set(field: "a=b; Domain=x.org", from: url) } == .foreignDomain
        )
    }

    // MARK: Changes

    @Test func observersGetEachChange() async throws {
        var (first, second) = (jar.changes.makeAsyncIterator(), jar.changes.makeAsyncIterator())
        try jar.set(field: "a=1; Path=/", from: url)
        try jar.set(field: "a=2; Path=/", from: url)
        try? jar.set(field: "b=1; Domain=example.org", from: url)
        try jar.set(field: "a=; Path=/; Max-Age=0", from: url)
        try jar.set(field: "c=3; Path=/", from: url)
        jar.removeAll()
        for _ in 0..<2 {
            var seen: [String] = []
            for _ in 0..<6 {
                switch await first.next() {
                case .stored(let cookie, let old)?: seen.append("\(old?.value ?? "")>\(cookie.value)")
                case .removed(let cookie, let reason)?: seen.append("\(reason) \(cookie.name)")
                case .refused(let refusal)?: seen.append("\(refusal.reason) \(refusal.name) \(refusal.host)")
                default: break
                }
            }
            #expect(seen == [">1", "1>2", "foreignDomain b www.example.com", "expired a", ">3", "removed c"])
            swap(&first, &second)
        }
    }

    @Test func slowObserverLosesTheOldestChanges() async throws {
        var changes = jar.changes.makeAsyncIterator()
        for number in 0..<300 { try jar.set(Cookie("n", "\(number)", host: "h.test")) }
        guard case .dropped(let count)? = await changes.next() else {
            Issue.record("no report of dropped changes")
            return
        }
        #expect(count == 44)
        guard case .stored(let cookie, _)? = await changes.next() else {
            Issue.record("no change")
            return
        }
        #expect(cookie.value == "44")
    }

    @Test func changesEndWithTheJar() async throws {
        var jar: CookieJar? = CookieJar()
        var changes = try #require(jar).changes.makeAsyncIterator()
        try jar?.set(Cookie("a", "b", host: "h.test"))
        jar = nil
        #expect(await changes.next() != nil)
        #expect(await changes.next() == nil)
    }

    @Test func releasedObserversAreForgotten() throws {
        for _ in 0..<10 { _ = jar.changes.makeAsyncIterator() }
        #expect(jar.state.withLock { $0.observers.count } == 0)
    }

    // MARK: Descriptions

    @Test func descriptionsShowNoValues() throws {
        let cookie = Cookie(
            "name", "hush", domain: "example.com", path: "/p", sameSite: .lax,
            expires: Date(timeIntervalSince1970: 1_767_225_600))
        try jar.set(Cookie("name", "hush", host: "example.com"))
        let jar = jar
        var dumped = ""
        dump(cookie, to: &dumped)
        dump(jar, to: &dumped)
        dump(CookieJar.Change.stored(cookie, replaced: cookie), to: &dumped)
        let refusal = Cookie.Refusal(.tooLong, name: "name\u{1B}", host: "h.test")
        let texts = [
            "\(cookie)", String(reflecting: cookie), "\(jar)", dumped, "\(CookieJar.Change.refused(refusal))",
            "\(CookieJar.Change.stored(cookie, replaced: cookie))", "\(CookieJar.Change.removed(cookie, .evicted))",
            "\(CookieJar.Change.dropped(3)) \(CookieJar.Change.fileFailed(path: "/x\n", reason: "full"))",
        ]
        for text in texts { #expect(!text.contains("hush") && !text.utf8.contains(0x1B), "\(text)") }
        #expect(
            "\(cookie)"
                == "name=<redacted>; Domain=example.com; Path=/p; Expires=Thu, 01 Jan 2026 00:00:00 GMT; Secure; HttpOnly; SameSite=lax"
        )
        #expect("\(jar)" == "CookieJar(1 cookies of example.com)")
        for reason in Cookie.Refusal.Reason.allCases {
            let refusal = Cookie.Refusal(reason, name: "n", host: "h")
            #expect(refusal.errorDescription == "\(refusal)" && "\(refusal)".hasSuffix("."))
        }
    }
}

/// The look-up that a jar keeps for the next request to the same URL.
struct CookieCacheTests {
    @Test func latestLookUpEndsAtItsFirstExpiry() throws {
        let time = TestTime(CookieCase.start)
        let jar = CookieJar(now: { time.now })
        let url = "https://h.test/"
        try jar.set(field: "a=1; Max-Age=10", from: url)
        try jar.set(field: "b=2", from: url)
        #expect(jar.lookUp(url)?.field == "a=1; b=2" && jar.lookUp(url)?.field == "a=1; b=2")
        time.advance(by: 10)
        #expect(jar.lookUp(url)?.field == "b=2")
    }

    @Test func changeEndsTheLatestLookUp() throws {
        let jar = CookieJar()
        let url = "https://h.test/"
        try jar.set(Cookie("x", "1", host: "other.test"))
        #expect(jar.lookUp(url) == nil && jar.lookUp(url) == nil)
        try jar.set(field: "a=1", from: url)
        #expect(jar.lookUp(url)?.field == "a=1")
        jar.removeAll(ofDomain: "h.test")
        #expect(jar.lookUp(url) == nil)
    }
}
