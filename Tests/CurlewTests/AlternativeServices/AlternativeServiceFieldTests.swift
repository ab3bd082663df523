// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewEngine
import FoundationEssentials
import Testing

@testable import Curlew

/// The field of RFC 7838 §3, and the table of services.
struct AlternativeServiceFieldTests {
    /// Returns one line for a field: "-" stands for the host of the origin, "+" for `persist`.
    private func line(_ text: String) -> String {
        switch AlternativeServiceField(text) {
        case nil: "invalid"
        case .clear: "clear"
        case .alternatives(let all):
            all.map { "\($0.protocolID) \($0.host ?? "-") \($0.port) \($0.maxAge)\($0.isPersistent ? "+" : "")" }
                .joined(separator: ", ")
        }
    }

    /// Fields of RFC 7838 §3, and the names of protocols in its first table.
    @Test(arguments: [
        ("h2=\":8000\"", "h2 - 8000 86400"), ("h2=\"new.example.org:80\"", "h2 new.example.org 80 86400"),
        ("h2=\"alt.example.com:8000\", h2=\":443\"", "h2 alt.example.com 8000 86400, h2 - 443 86400"),
        ("h2=\":443\"; ma=3600", "h2 - 443 3600"), ("h2=\":443\"; ma=2592000; persist=1", "h2 - 443 2592000+"),
        ("w%3Dx%3Ay#z=\":1\"", "w=x:y#z - 1 86400"), ("x%25y=\":1\"", "x%y - 1 86400"), ("clear", "clear"),
    ])
    func fieldOfTheRFCIsParsed(_ text: String, _ expected: String) { #expect(line(text) == expected) }

    /// A list with "clear" is invalid, but removes all alternatives, also its own (RFC 7838 §3).
    @Test(arguments: [
        ("clear, h3=\":1\"", "clear"), ("h3=\":1\",clear", "clear"), ("\tclear ", "clear"), (",clear,", "clear"),
        ("x, clear", "clear"), ("\"clear\"", "invalid"), ("Clear", "invalid"), ("clear; ma=1", "invalid"),
        ("clear x", "invalid"), ("clear=\":1\"", "clear - 1 86400"), ("clear =\":1\"", "invalid"),
        ("x=\"clear, h3=\", clear", "clear"), ("x=\", clear", "invalid"), ("h3=\":1\", Clear", "h3 - 1 86400"),
    ])
    func clearIsAWholeMember(_ text: String, _ expected: String) { #expect(line(text) == expected) }

    @Test(arguments: [
        // White space and empty members (RFC 9110 §5.6.1, §5.6.3).
        (" h3=\":1\"\t;\tma=2 , ,,h2=\":3\" ,", "h3 - 1 2, h2 - 3 86400"), ("h3=\":1\";ma=2", "h3 - 1 2"),
        ("h3 =\":1\"", "invalid"), ("h3= \":1\"", "invalid"), ("h3=\":1\"; ma =2", "invalid"),
        ("h3=\":1\"; ma= 2", "invalid"), ("h3=\":1\" h2=\":2\"", "invalid"),
        // Names of protocols, with one spelling each.
        ("h%33=\":1\"", "invalid"), ("w%23=\":1\"", "invalid"), ("x%3dy=\":1\"", "invalid"), ("x%=\":1\"", "invalid"),
        ("x%2=\":1\"", "invalid"),
        ("%C3%A9=\":1\"", "é - 1 86400"), ("%E9=\":1\"", "invalid"), ("é=\":1\"", "invalid"), ("=\":1\"", "invalid"),
        ("h3-29=\":1\"", "h3-29 - 1 86400"), ("H3=\":1\"", "H3 - 1 86400"), ("a+b=\":1\"", "a+b - 1 86400"),
        // Hosts.
        ("h3=\"ALT.Example.com:1\"", "h3 alt.example.com 1 86400"),
        ("h3=\"[2001:DB8::0:1]:1\"", "h3 2001:db8::1 1 86400"),
        ("h3=\"192.0.2.1:1\"", "h3 192.0.2.1 1 86400"), ("h3=\"2001:db8::1:1\"", "invalid"),
        ("h3=\"[::1:1\"", "invalid"), ("h3=\"::1]:1\"", "invalid"), ("h3=\"[]:1\"", "invalid"),
        ("h3=\"a_b.c-d~:1\"", "h3 a_b.c-d~ 1 86400"), ("h3=\"é.example:1\"", "invalid"), ("h3=\"a b:1\"", "invalid"),
        ("h3=\"u@a:1\"", "invalid"), ("h3=\"a/:1\"", "invalid"), ("h3=\"a%41:1\"", "invalid"),
        ("h3=\"a..b:1\"", "invalid"),
        ("h3=\"1.2.3:1\"", "invalid"),
        // Ports.
        ("h3=\":65535\"", "h3 - 65535 86400"), ("h3=\":0443\"", "h3 - 443 86400"), ("h3=\":65536\"", "invalid"),
        ("h3=\":0\"", "invalid"), ("h3=\":\"", "invalid"), ("h3=\"\"", "invalid"), ("h3=\"443\"", "invalid"),
        ("h3=\"a\"", "invalid"), ("h3=\":+1\"", "invalid"), ("h3=\":1x\"", "invalid"), ("h3=\": 1\"", "invalid"),
        ("h3=\":99999999999999999999\"", "invalid"), ("h3=:1", "invalid"), ("h3", "invalid"), ("h3=", "invalid"),
        // Quoted strings (RFC 9110 §5.6.4).
        ("h3=\"\\a\\:\\1\"", "h3 a 1 86400"), ("h3=\":1", "invalid"), ("h3=\":1\\", "invalid"),
        ("h3=\":1\"; x=\"\u{1}\"", "invalid"), ("h3=\":1\"; x=\"\\\u{7F}\"", "invalid"),
        ("h3=\":1\"; x=\"\t é\\\"\\\\\"; ma=2", "h3 - 1 2"),
    ])
    func grammarIsKept(_ text: String, _ expected: String) { #expect(line(text) == expected) }

    @Test(
        arguments: [
            ("ma=0", "0"), ("ma=\"60\"", "60"), ("MA=60", "60"), ("ma=060", "60"), ("ma=31536000", "31536000"),
            ("ma=31536001", "31536000"), ("ma=99999999999999999999999", "31536000"), ("ma=60; ma=90", "60"),
            ("ma=", nil), ("ma", nil), ("ma=\"\"", nil), ("ma=-1", nil), ("ma=+1", nil), ("ma=1.5", nil), ("ma=x", nil),
            ("ma=\"1 \"", nil), ("ma=1 x", nil), ("ma=1; ma", nil), ("ma=1; ma=x", "1"),
            ("persist=1", "86400+"), ("persist=\"1\"", "86400+"), ("Persist=1", "86400+"), ("persist=0", "86400"),
            ("persist=01", "86400"), ("persist=true", "86400"), ("persist=0; persist=1", "86400+"), ("persist", nil),
            ("x=y; ma=2", "2"), ("x=\"a;b, c=\\\"\"; ma=2", "2"), ("x=\"\"", "86400"), ("x=", nil), ("x", nil),
            ("=1", nil), ("", "86400"), ("; ;ma=2;", "2"), ("x=y z", nil), ("x=y, z", "86400"),
        ] as [(String, String?)])
    func parametersAreParsed(_ parameters: String, _ expected: String?) {
        #expect(line("h3=\":1\"; \(parameters)") == expected.map { "h3 - 1 \($0)" } ?? "invalid")
    }

    /// Commas within quotes do not end a malformed member.
    @Test(arguments: [
        "x", "x=y", "x=\":0\"", "h3=\":1\" \"a,b=\\\"\"", "x=\":0\"; y=\", h2=\"", "@@@", ";", "h3=\":1\"; ma=x",
        "%zz=\":1\"",
    ])
    func malformedMemberIsDropped(_ member: String) {
        #expect(line(member) == "invalid")
        let both = "h3 - 1 86400, h2 - 2 86400"
        #expect(line("h3=\":1\", \(member), h2=\":2\"") == both && line("\(member),h3=\":1\",h2=\":2\"") == both)
    }

    @Test(arguments: ["", " ", ",", " , ,"])
    func emptyFieldIsInvalid(_ text: String) { #expect(line(text) == "invalid") }

    @Test func fieldIsBounded() throws {
        let long = "h3=\":1\"; x=\(String(repeating: "x", count: 4085))"
        #expect(long.utf8.count == 4096 && line(long) == "h3 - 1 86400" && line(long + "x") == "invalid")
        let many = (1...20).map { "h3=\":\($0)\"" }.joined(separator: ",")
        guard case .alternatives(let all)? = AlternativeServiceField(many) else {
            Issue.record("no alternatives")
            return
        }
        #expect(all.map(\.port) == Array(1...16) && line(many + ",clear") == "clear")
        let name = String(repeating: "x", count: 255)
        #expect(line("\(name)=\":1\"") == "\(name) - 1 86400" && line("x\(name)=\":1\"") == "invalid")
    }

    // MARK: The table

    private let now = Date(timeIntervalSince1970: 1_767_225_600)

    private func origin(_ host: String, _ port: UInt16 = 443) throws -> AlternativeServiceTable.Origin {
        try #require(AlternativeServiceTable.Origin(host: host, port: port, isSecure: true))
    }

    private func receive(
        _ text: String, from host: String, age: Double = 0, at time: Date, in table: inout AlternativeServiceTable
    ) throws {
        let field = try #require(AlternativeServiceField(text))
        table.receive(field, text, from: try origin(host), age: age, at: time)
    }

    private func shown(_ table: AlternativeServiceTable, _ host: String, at time: Date) throws -> [String] {
        table.services(of: try origin(host), at: time).map(\.description)
    }

    @Test func servicesExpireOneByOne() throws {
        var table = AlternativeServiceTable()
        try receive("h3=\":443\";ma=10, h2=\"[::1]:8\";ma=20, h3=\":9\";ma=0", from: "a.test", at: now, in: &table)
        #expect(try shown(table, "a.test", at: now) == ["h3 a.test:443", "h2 [::1]:8"])
        #expect(try table.services(of: origin("a.test"), at: now).map(\.expires) == [now + 10, now + 20])
        #expect(try shown(table, "a.test", at: now + 9) == ["h3 a.test:443", "h2 [::1]:8"])
        #expect(try shown(table, "a.test", at: now + 10) == ["h2 [::1]:8"])
        #expect(try shown(table, "a.test", at: now + 20) == [])
        #expect(try shown(table, "b.test", at: now) == [])
        #expect(try table.services(of: origin("a.test", 8443), at: now) == [])
    }

    @Test func fieldReplacesAllServicesOfItsOrigin() throws {
        var table = AlternativeServiceTable()
        for host in ["a.test", "b.test"] { try receive("h3=\":1\", h2=\":2\"", from: host, at: now, in: &table) }
        try receive("h3=\":3\"", from: "a.test", at: now, in: &table)
        #expect(try shown(table, "a.test", at: now) == ["h3 a.test:3"])
        for removal in ["clear", "h3=\":3\"; ma=0"] {
            try receive("h3=\":3\"", from: "a.test", at: now, in: &table)
            try receive(removal, from: "a.test", at: now, in: &table)
            #expect(try shown(table, "a.test", at: now) == [] && table.count == 1)
        }
        #expect(try shown(table, "b.test", at: now) == ["h3 b.test:1", "h2 b.test:2"])
    }

    /// RFC 7838 §3.1.
    @Test func ageShortensTheLifetime() throws {
        var table = AlternativeServiceTable()
        try receive("h3=\":1\"; ma=100, h2=\":2\"; ma=30", from: "a.test", age: 30, at: now, in: &table)
        #expect(try table.services(of: origin("a.test"), at: now).map(\.expires) == [now + 70])
    }

    @Test func repeatedFieldIsNotParsed() throws {
        var table = AlternativeServiceTable()
        let (long, short) = ("h3=\":1\"", "h3=\":1\"; ma=50, h2=\":2\"")
        func isRepeated(_ text: String, _ host: String, after seconds: Double) throws -> Bool {
            table.isRepeated(text, of: try origin(host), at: now + seconds)
        }
        #expect(try !isRepeated(long, "a.test", after: 0))
        try receive(long, from: "a.test", at: now, in: &table)
        #expect(try isRepeated(long, "a.test", after: 0) && isRepeated(long, "a.test", after: 59))
        #expect(try !isRepeated(long, "a.test", after: 60) && !isRepeated(long, "b.test", after: 0))
        #expect(try !isRepeated(short, "a.test", after: 0))
        // The clock may be set back.
        #expect(try !isRepeated(long, "a.test", after: -1))
        // A tenth of the shortest lifetime.
        try receive(short, from: "a.test", at: now, in: &table)
        #expect(try isRepeated(short, "a.test", after: 4) && !isRepeated(short, "a.test", after: 5))
        // After a change of the network, a repeated field counts at once.
        try receive("h3=\":1\"; persist=1", from: "a.test", at: now, in: &table)
        table.forgetNetworkSpecific()
        #expect(try !isRepeated("h3=\":1\"; persist=1", "a.test", after: 0))
    }

    @Test func onlyPersistentServicesRemainAfterAChangeOfTheNetwork() throws {
        var table = AlternativeServiceTable()
        try receive("h3=\":1\"; persist=1, h2=\":2\"", from: "a.test", at: now, in: &table)
        try receive("h2=\":2\"", from: "b.test", at: now, in: &table)
        table.forgetNetworkSpecific()
        #expect(try shown(table, "a.test", at: now) == ["h3 a.test:1"] && table.count == 1)
    }

    @Test func tableIsBounded() throws {
        var table = AlternativeServiceTable()
        // The service of h0 expires last, and that of h1 expires first.
        for number in 0..<1000 {
            let age = number == 0 ? 5000 : 1000 + number
            try receive("h3=\":1\"; ma=\(age)", from: "h\(number)", at: now, in: &table)
        }
        #expect(table.count == 1000)
        // A new origin stays, even if its service expires first.
        try receive("h3=\":1\"; ma=1", from: "new", at: now, in: &table)
        #expect(try table.count == 1000 && shown(table, "h1", at: now) == [])
        #expect(try ["h0", "h2", "h999", "new"].allSatisfy { try shown(table, $0, at: now) == ["h3 \($0):1"] })
        // Later it is the first origin to be removed.
        try receive("h3=\":1\"; ma=9000", from: "newer", at: now + 2, in: &table)
        #expect(try table.count == 1000 && shown(table, "new", at: now) == [] && !shown(table, "h2", at: now).isEmpty)
        // A known origin does not need another entry.
        try receive("h3=\":1\"; ma=9000", from: "h2", at: now, in: &table)
        #expect(try table.count == 1000 && !shown(table, "h3", at: now).isEmpty)
    }

    @Test func httpOriginHasNoServices() {
        #expect(AlternativeServiceTable.Origin(host: "a.test", port: 443, isSecure: false) == nil)
    }

    @Test(arguments: [
        ("h3=\":443\"", true), ("h3=\"a.test:443\"", true), ("h2=\":443\", h3=\":443\"; ma=1", true),
        ("h2=\":443\"", false), ("h3-29=\":443\"", false), ("h3=\":8443\"", false), ("h3=\"b.test:443\"", false),
    ])
    func http3OfTheOriginIsFound(_ text: String, _ expected: Bool) throws {
        var table = AlternativeServiceTable()
        #expect(try !table.offersHTTP3(origin("a.test"), at: now))
        try receive(text, from: "a.test", at: now, in: &table)
        #expect(try table.offersHTTP3(origin("a.test"), at: now) == expected)
        #expect(try !table.offersHTTP3(origin("a.test"), at: now + 86_400))
    }

    @Test func descriptionIsOneLine() {
        let service = Session.AlternativeService(
            protocolID: "\n", host: "2001:db8::1", port: 8443, expires: now, isPersistent: false)
        #expect(service.description == "\\n [2001:db8::1]:8443")
    }
}
