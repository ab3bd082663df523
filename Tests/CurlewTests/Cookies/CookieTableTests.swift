// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing

@testable import Curlew

/// Limits, eviction and order of stored cookies.
struct CookieTableTests {
    private let now = CookieCase.start

    private func table(perOwner: Int = 3, total: Int = 5) -> CookieTable {
        CookieTable(limits: CookieTable.Limits(perOwner: perOwner, total: total))
    }

    private func cookie(
        _ name: String, _ domain: String = "a.test", isSecure: Bool = true, isHostOnly: Bool = true,
        path: String = "/", lives: TimeInterval? = nil
    ) -> Cookie {
        Cookie(
            name: name, value: "v", domain: domain, isHostOnly: isHostOnly, path: path, isSecure: isSecure,
            isHTTPOnly: false, sameSite: nil, expires: lives.map { now + $0 }, created: now)
    }

    private func site(_ url: String) throws -> CookieTarget { try #require(CookieTarget(url: url)) }

    private func names(_ table: CookieTable) -> [String] { table.all.map(\.cookie.name) }

    @Test func leastRecentlyUsedCookieOfTheDomainIsEvicted() throws {
        var table = table()
        for name in ["1", "2", "3"] { _ = try table.store(cookie(name), isSecure: true, at: now) }
        _ = table.cookies(for: try site("https://a.test/"), at: now)
        let effects = try table.store(cookie("4"), isSecure: true, at: now)
        #expect(effects.count == 2 && names(table) == ["2", "3", "4"])
        // A later use decides, not the creation.
        _ = try table.store(cookie("x", path: "/x"), isSecure: true, at: now)
        #expect(names(table) == ["3", "4", "x"])
        _ = table.cookies(for: try site("https://a.test/"), at: now)
        _ = try table.store(cookie("5"), isSecure: true, at: now)
        #expect(names(table) == ["3", "4", "5"])
    }

    @Test func insecureCookiesOfTheDomainAreEvictedFirst() throws {
        var table = table()
        for (name, isSecure) in [("1", true), ("2", false), ("3", true), ("4", true)] {
            _ = try table.store(cookie(name, isSecure: isSecure), isSecure: true, at: now)
        }
        #expect(names(table) == ["1", "3", "4"])
        let effects = try table.store(cookie("5", isSecure: false), isSecure: true, at: now)
        // The new cookie is the only insecure one.
        #expect(effects.last == .removed(cookie("5", isSecure: false), .evicted) && names(table) == ["1", "3", "4"])
    }

    @Test func expiredCookiesAreEvictedBeforeAllOthers() throws {
        var table = table()
        for (name, lives) in [("1", nil), ("2", 10), ("3", nil)] as [(String, TimeInterval?)] {
            _ = try table.store(cookie(name, lives: lives), isSecure: true, at: now)
        }
        let effects = try table.store(cookie("4"), isSecure: true, at: now + 10)
        #expect(effects.last == .removed(cookie("2", lives: 10), .expired) && names(table) == ["1", "3", "4"])
    }

    @Test func totalLimitEvictsTheLeastRecentlyUsedOfAll() throws {
        var table = table()
        for domain in ["a.test", "b.test", "c.test", "d.test", "e.test"] {
            _ = try table.store(cookie(domain, domain, lives: domain == "c.test" ? 10 : nil), isSecure: true, at: now)
        }
        _ = table.cookies(for: try site("https://a.test/"), at: now)
        _ = try table.store(cookie("f", "f.test"), isSecure: true, at: now)
        #expect(names(table).contains("a.test") && !names(table).contains("b.test") && table.count == 5)
        // Expired cookies of any domain go first.
        _ = try table.store(cookie("g", "g.test"), isSecure: true, at: now + 10)
        #expect(!names(table).contains("c.test") && names(table).contains("d.test") && table.count == 5)
    }

    /// A domain and its subdomains share the limit, so that their owner cannot evict the cookies of others.
    @Test func domainsOfAnOwnerShareALimit() throws {
        let limits = CookieTable.Limits(perOwner: 3, total: 5)
        var table = CookieTable(limits: limits) { $0.split(separator: ".").suffix(2).joined(separator: ".") }
        let domains = ["b.test", "1.a.test", "a.test", "2.a.test", "1.a.test", "3.a.test", "4.a.test"]
        for (number, domain) in domains.enumerated() {
            _ = try table.store(
                cookie("\(number)", domain, isSecure: number != 4), isSecure: true, at: now)
        }
        // The insecure cookie went first, then the oldest ones.
        #expect(names(table) == ["0", "3", "5", "6"])
        #expect(table.removeAll { $0.domain == "3.a.test" }.map(\.name) == ["5"])
        _ = try table.store(cookie("7", "5.a.test"), isSecure: true, at: now)
        #expect(names(table) == ["0", "3", "6", "7"])
    }

    @Test func defaultLimitsAreAtLeastThoseOfTheRFC() throws {
        var table = CookieTable()
        for number in 0..<200 { _ = try table.store(cookie("\(number)"), isSecure: true, at: now) }
        #expect(table.count == 180)
        for number in 0..<4000 { _ = try table.store(cookie("x", "d\(number).test"), isSecure: true, at: now) }
        #expect(table.count == 3000)
    }

    @Test func expiredCookieIsNeitherSentNorStored() throws {
        var table = table()
        #expect(try table.store(cookie("1", lives: 0), isSecure: true, at: now) == [])
        _ = try table.store(cookie("1", lives: 10), isSecure: true, at: now)
        let found = table.cookies(for: try site("https://a.test/"), at: now)
        #expect(found.cookies.map(\.name) == ["1"] && found.expiry == now + 10)
        #expect(table.cookies(for: try site("https://a.test/"), at: now + 10).cookies == [])
        let effects = try table.store(cookie("1", lives: 0), isSecure: true, at: now)
        #expect(effects == [.removed(cookie("1", lives: 10), .expired)] && table.count == 0)
    }

    /// An expired cookie neither protects its name nor keeps its place.
    @Test func expiredCookieHasNoEffectOnLaterOnes() throws {
        var table = table()
        _ = try table.store(cookie("1", lives: 10), isSecure: true, at: now)
        _ = try table.store(cookie("2"), isSecure: true, at: now)
        #expect(throws: Cookie.Refusal.Reason.hidesSecureCookie) {
            try table.store(cookie("1", isSecure: false), isSecure: false, at: now + 9)
        }
        let effects = try table.store(
            cookie("1", isSecure: false).with(created: now + 10), isSecure: false, at: now + 10)
        #expect(effects.first == .removed(cookie("1", lives: 10), .expired) && effects.count == 2)
        #expect(names(table) == ["2", "1"])
    }

    /// Random steps keep the limits, the order of sending, and the matching of hosts and paths.
    @Test(arguments: 0..<20)
    func randomStepsKeepTheRules(_ seed: Int) throws {
        var chance = SeededChance(UInt64(seed))
        var table = CookieTable(limits: CookieTable.Limits(perOwner: 6, total: 15))
        let hosts = ["a.test", "b.a.test", "c.b.a.test", "d.test", "127.0.0.1"]
        let paths = ["/", "/x", "/x/", "/x/y"]
        for step in 0..<500 {
            let time = now + Double(step)
            let domain = hosts[Int.random(in: 0..<hosts.count, using: &chance)]
            let cookie = cookie(
                "n\(Int.random(in: 0..<8, using: &chance))", domain,
                isSecure: Int.random(in: 0..<2, using: &chance) == 0,
                isHostOnly: domain.hasPrefix("1") || Int.random(in: 0..<2, using: &chance) == 0,
                path: paths[Int.random(in: 0..<paths.count, using: &chance)],
                lives: Int.random(in: 0..<3, using: &chance) == 0 ? Double(step) + 20 : nil)
            _ = try? table.store(cookie, isSecure: Int.random(in: 0..<2, using: &chance) == 0, at: time)
            #expect(table.count == table.all.count && table.count <= 15)
            #expect(Dictionary(grouping: table.all, by: \.cookie.domain).values.allSatisfy { $0.count <= 6 })
            #expect(Set(table.all.map(\.cookie.key)).count == table.count)
            let isSecure = Int.random(in: 0..<2, using: &chance) == 0
            let url =
                "\(isSecure ? "https" : "http")://\(hosts[Int.random(in: 0..<5, using: &chance)])\(paths[Int.random(in: 0..<4, using: &chance)])"
            let site = try site(url)
            let sent = table.cookies(for: site, at: time).cookies
            let expected = table.all.map(\.cookie).filter { cookie in
                let isBelow = !cookie.isHostOnly && site.host.hasSuffix("." + cookie.domain)
                let folder = cookie.path.hasSuffix("/") ? cookie.path : cookie.path + "/"
                let isPath = site.path == cookie.path || site.path.hasPrefix(folder)
                let isCurrent = cookie.expires.map { $0 > time } ?? true
                return (site.host == cookie.domain || isBelow) && isPath && (site.isSecure || !cookie.isSecure)
                    && isCurrent
            }
            #expect(Set(sent.map(\.key)) == Set(expected.map(\.key)), "\(url)")
            for (one, next) in zip(sent, sent.dropFirst()) {
                let (first, second) = (one.path.utf8.count, next.path.utf8.count)
                #expect(first > second || first == second && one.created <= next.created)
            }
        }
    }
}
