// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import CurlewTesting
import FoundationEssentials
import Testing

@testable import Curlew
@testable import CurlewEngine

/// Look-ups by DNS over HTTPS, with real sockets.
@Suite("DNS over HTTPS", .timeLimit(.minutes(5)))
struct DNSOverHTTPSTests {
    private typealias Record = DNSZone.Record

    private let authority: TestAuthority
    private let roots: CustomRoots

    init() throws {
        authority = try TestAuthority()
        roots = try CustomRoots(pem: authority.certificatePEM)
    }

    private func dnsServer(_ respond: @escaping @Sendable (RecordedRequest) -> MockResponse) throws -> MockServer {
        try MockServer(tls: authority.issue(), respond)
    }

    private func dnsServer(_ records: Record...) throws -> MockServer {
        let zone = DNSZone(records)
        return try dnsServer { Self.response(zone, $0) }
    }

    private static func response(_ zone: DNSZone, _ request: RecordedRequest) -> MockResponse {
        guard let question = DNSZone.question(in: request.query) else { return .status(400) }
        return message(zone.response(to: question))
    }

    private static func message(_ bytes: [UInt8]) -> MockResponse {
        .status(200, [("Content-Type", "application/dns-message")], body: bytes)
    }

    private func session(_ dns: MockServer) throws -> Session {
        let own = Session(trust: roots, cookies: nil, hsts: nil)
        return Session(trust: roots, resolver: try .overHTTPS(dns.url("/dns-query"), session: own))
    }

    /// The names and types that a server was asked for.
    private func questions(_ server: MockServer) -> [String] {
        server.requests.compactMap { DNSZone.question(in: $0.query) }.map {
            let (name, type) = DNSZone.read($0)
            return "\(name) \(type.map { "\($0)" } ?? "?")"
        }.sorted()
    }

    @Test func namesAreLookedUp() async throws {
        let server = try MockServer { _ in .text("ok") }
        let dns = try dnsServer(.alias("name.test", "other.test"), .a("other.test", "127.0.0.1"))
        let second = try dnsServer(.a("name.test", "127.0.0.1"))
        let session = try session(second)
        for _ in 0..<2 {
            #expect(try await session.data(for: Request("http://Name.test.:\(server.port)/")).1.status == .ok)
        }
        #expect(questions(second) == ["name.test a", "name.test aaaa", "name.test https"], "the addresses are kept")
        #expect(second.requests.allSatisfy { $0.method == "GET" && $0.path == "/dns-query" })
        #expect(second.requests.allSatisfy { $0.field("Accept") == "application/dns-message" })
        #expect(second.requests.allSatisfy { $0.field("Cookie") == nil })
        // The DNS server must follow aliases (RFC 1034 §4.3.2); the resolver does not ask about the target of an alias.
        let error = try await networkError {
            try await self.session(dns).data(for: Request("http://name.test:\(server.port)/"))
        }
        #expect(error.kind == .cannotResolve && error.message.contains("no address"))
    }

    @Test func portOfAnHTTPSRecordIsUsedForTheDefaultPort() async throws {
        let server = try MockServer(tls: authority.issue(hosts: ["name.test"])) { _ in .text("record") }
        let other = try MockServer(tls: authority.issue(hosts: ["name.test"])) { _ in .text("port") }
        let dns = try dnsServer(
            .a("name.test", "127.0.0.1"), .https("name.test", 1, ".", [.alpn("h2"), .port(server.port)]))
        let session = try session(dns)
        let response = try await session.transfer("https://name.test/").response()
        #expect(response.value == Data("record".utf8))
        #expect(response.metrics.remoteAddress == "127.0.0.1:\(server.port)")
        #expect(server.requests[0].field("Host") == "name.test", "the origin stays the same")
        let (data, _) = try await session.data(for: Request("https://name.test:\(other.port)/"))
        #expect(data == Data("port".utf8), "the record is only for port 443")
    }

    @Test(arguments: [true, false])
    func recordMayNameAnotherHost(hasHint: Bool) async throws {
        let server = try MockServer(tls: authority.issue(hosts: ["name.test"])) { _ in .text("ok") }
        let hints: [DNSZone.Parameter] = hasHint ? [.hint("127.0.0.1")] : []
        let dns = try dnsServer(
            .https("name.test", 0, "pool.test"), .https("pool.test", 1, "host.test", [.port(server.port)] + hints),
            .a("host.test", "127.0.0.1"))
        let session = try session(dns)
        #expect(try await session.data(for: "https://name.test/").0 == Data("ok".utf8))
        #expect(questions(dns).contains("host.test a") == !hasHint)
        let error = try await networkError { try await session.data(for: "http://name.test/") }
        #expect(error.kind == .cannotResolve && error.message.contains("for this port"))
    }

    @Test func hostFollowsItsServices() throws {
        var lookUp = DNSLookUp("name.test")
        let zone = DNSZone([
            .a("name.test", "127.0.0.1"), .https("name.test", 1, ".", [.port(8443)]),
        ])
        try answer(&lookUp, zone)
        let found = try lookUp.outcome.get()
        #expect(
            found.endpoints == [
                SocketAddress("127.0.0.1", port: 8443, isForDefaultPort: true), SocketAddress("127.0.0.1"),
            ])
    }

    @Test(arguments: [true, false])
    func lateAnswersDelayTheConnectionOnlyForATime(isOnlyTheRecord: Bool) async throws {
        let server = try MockServer { _ in .text("ok") }
        let zone = DNSZone([.a("name.test", "127.0.0.1")])
        let never = Gate()
        let dns = try dnsServer { request in
            let type = DNSZone.question(in: request.query).flatMap { DNSZone.read($0).type }
            let isAnswered = type == .a || type == .aaaa && isOnlyTheRecord
            return isAnswered ? Self.response(zone, request) : .status(200).fault(.stall(never), at: .start)
        }
        let response = try await session(dns).transfer(Request("http://name.test:\(server.port)/")).response()
        let least = isOnlyTheRecord ? Duration.milliseconds(40) : .milliseconds(990)
        #expect(response.metrics.resolve >= least && response.metrics.resolve < .seconds(30))
    }

    @Test func ageShortensTheLifetime() async throws {
        let zone = DNSZone([.a("name.test", "192.0.2.1", lifetime: 60)])
        let dns = try dnsServer { Self.response(zone, $0).field("Age", "20") }
        let resolver = DNSOverHTTPS(
            url: dns.url("/dns-query"), host: "localhost", session: Session(trust: roots, cookies: nil))
        #expect(try await resolver.lookUp("name.test").get().lifetime == 40_000_000_000)
    }

    @Test(arguments: ["server", "printer.local", "app.localhost.", "db.internal", "nas.home.arpa"])
    func privateNamesAreNotSent(name: String) async throws {
        let dns = try dnsServer(.a(name, "127.0.0.1"))
        // No server listens at port 1.
        let error = try await networkError { try await session(dns).data(for: Request("http://\(name):1/")) }
        #expect([.cannotResolve, .cannotConnect].contains(error.kind) && dns.requests.isEmpty)
    }

    @Test func onionNamesAreRefused() async throws {
        let dns = try dnsServer(.a("service.onion", "127.0.0.1"))
        let error = try await networkError { try await session(dns).data(for: "http://service.onion/") }
        #expect(error.kind == .cannotResolve && error.message.contains("Tor") && dns.requests.isEmpty)
    }

    @Test func failuresAreCannotResolve() async throws {
        let zone = DNSZone([.a("name.test", "127.0.0.1")])
        let dns = try dnsServer { request in
            guard let question = DNSZone.question(in: request.query) else { return .status(400) }
            switch DNSZone.read(question).name {
            case "status.test": return .status(503)
            case "type.test": return .text("hello")
            case "cut.test": return Self.message([0, 0, 0x81])
            case "servfail.test": return Self.message(zone.response(to: question, code: 2))
            case "other.test": return Self.message(zone.response(to: DNSMessage.question("name.test", .a) ?? []))
            case "long.test": return Self.message([UInt8](repeating: 0, count: 70_000))
            default: return Self.message(zone.response(to: question))
            }
        }
        let session = try session(dns)
        for (name, words) in [
            ("none.test", "does not exist"), ("status.test", "status 503"), ("type.test", "not of type"),
            ("cut.test", "ends early"), ("servfail.test", "code 2"), ("other.test", "another question"),
            ("long.test", "more than 64 KiB (DNS"),
        ] {
            let error = try await networkError { try await session.data(for: Request("http://\(name)/")) }
            #expect(error.kind == .cannotResolve && error.phase == .resolving, "\(error)")
            #expect(error.message.contains(words) && error.message.contains("localhost"), "\(error)")
        }
        dns.stop()
        let error = try await networkError { try await session.data(for: "http://away.test/") }
        #expect(error.kind == .cannotResolve && error.message.contains("connect"), "\(error)")
    }

    @Test func cancellationEndsTheQuestions() async throws {
        let gate = Gate()
        let dns = try dnsServer { _ in .status(200).fault(.stall(gate), at: .start) }
        let session = try session(dns)
        let task = Task { try await session.data(for: "http://name.test/") }
        #expect(await gate.waitUntilReached(times: 3))
        task.cancel()
        let error = await #expect(throws: NetworkError.self) { try await task.value }
        #expect(error?.isCancellation == true && error?.phase == .resolving)
    }

    @Test func otherURLsAreRefused() throws {
        for url in ["http://dns.test/dns-query", "dns.test", "https://", "ftp://dns.test/", "https://dns.test/{dns}"] {
            let error = #expect(throws: NetworkError.self) { try Session.Resolver.overHTTPS(url) }
            #expect(error?.kind == .invalidRequest)
        }
    }

    @Test(arguments: ["/dns-query{?dns}", "/dns-query#part"])
    func templateAndFragmentAreLeftOut(path: String) async throws {
        let server = try MockServer { _ in .text("ok") }
        let dns = try dnsServer(.a("name.test", "127.0.0.1"))
        let own = Session(trust: roots, cookies: nil, hsts: nil)
        let session = Session(resolver: try .overHTTPS(dns.url("/").dropLast() + path, session: own))
        _ = try await session.data(for: Request("http://name.test:\(server.port)/"))
        #expect(dns.requests.allSatisfy { $0.path == "/dns-query" })
    }

    // MARK: Look-ups

    /// Answers all questions of a look-up and returns their number.
    @discardableResult
    private func answer(_ lookUp: inout DNSLookUp, _ zone: DNSZone, age: UInt32 = 0) throws -> Int {
        var questions = lookUp.begin()
        var count = 0
        while let question = questions.popLast() {
            count += 1
            let bytes = try #require(DNSMessage.question(question.name, question.type))
            var message = try DNSMessage(response: zone.response(to: bytes), to: question.name, question.type)
            message.shortenLifetimes(by: age)
            questions += lookUp.receive(.success(message), to: question)
        }
        #expect(lookUp.isComplete)
        return count
    }

    @Test(arguments: [(0, 20), (5, 15), (100, 0)] as [(UInt32, UInt64)])
    func lifetimeIsTheShortestOne(age: UInt32, seconds: UInt64) throws {
        var lookUp = DNSLookUp("name.test")
        let zone = DNSZone([.a("name.test", "192.0.2.1", lifetime: 60), .a("name.test", "2001:db8::1", lifetime: 20)])
        try answer(&lookUp, zone, age: age)
        let found = try lookUp.outcome.get()
        #expect(found.endpoints.map(\.ip) == ["2001:db8::1", "192.0.2.1"])
        #expect(found.lifetime == seconds * 1_000_000_000, "the absence of HTTPS records counts for a minute")
    }

    @Test func missingAnswerShortensTheLifetime() throws {
        var lookUp = DNSLookUp("name.test")
        let first = lookUp.begin()
        let question = try #require(first.first { $0.type == .a })
        let bytes = try #require(DNSMessage.question("name.test", .a))
        let zone = DNSZone([.a("name.test", "192.0.2.1")])
        let message = try DNSMessage(response: zone.response(to: bytes), to: "name.test", .a)
        #expect(!lookUp.hasAddresses)
        #expect(lookUp.receive(.success(message), to: question).isEmpty)
        #expect(lookUp.hasAddresses && !lookUp.isComplete)
        #expect(try lookUp.outcome.get().lifetime == 1_000_000_000)
        for question in first.dropFirst() { _ = lookUp.receive(.failure(.init(text: "late")), to: question) }
        #expect(lookUp.isComplete)
        #expect(try lookUp.outcome.get().lifetime == 1_000_000_000, "a failure does not prove that there is no address")
    }

    @Test(arguments: [(0x80 | 2, 0x81, "code 2"), (0x80, 0x83, "truncated")] as [(UInt8, UInt8, String)])
    func failedAnswerIsNoProofOfAbsence(low: UInt8, high: UInt8, words: String) throws {
        let zone = DNSZone([.a("name.test", "2001:db8::1", lifetime: 86_400)])
        for failed in [[DNSMessage.RecordType.a], [.https], [.a, .aaaa]] {
            var lookUp = DNSLookUp("name.test")
            for question in lookUp.begin() {
                let bytes = try #require(DNSMessage.question("name.test", question.type))
                var response = zone.response(to: bytes)
                if failed.contains(question.type) { (response[2], response[3]) = (high, low) }
                let message = try DNSMessage(response: response, to: "name.test", question.type)
                _ = lookUp.receive(.success(message), to: question)
            }
            switch lookUp.outcome {
            case .success(let found):
                #expect(found.lifetime == (failed == [.https] ? 60_000_000_000 : 1_000_000_000))
            case .failure(let failure): #expect(failed.count == 2 && "\(failure)".contains(words))
            }
        }
    }

    @Test func recordsThatReferToEachOtherEnd() throws {
        var lookUp = DNSLookUp("a.test")
        let names = ["a.test", "b.test", "c.test", "d.test", "e.test", "f.test", "g.test"]
        let circle = zip(names, names.dropFirst() + ["a.test"]).map { Record.https($0, 0, $1) }
        #expect(try answer(&lookUp, DNSZone(circle)) == 3 * (DNSLookUp.maximumTargets + 1))
        #expect(throws: Resolver.Failure.unknown("the name has no address")) { try lookUp.outcome.get() }
    }

    @Test func manyRecordsAreBounded() throws {
        var lookUp = DNSLookUp("name.test")
        let aliases = (0..<100).flatMap { _ in
            [
                DNSZone.Record.https("name.test", 0, "a.test"), .https("a.test", 0, "b.test"),
                .https("b.test", 0, "a.test"),
            ]
        }
        let addresses = (0..<100).map { DNSZone.Record.a("b.test", "192.0.2.\($0)") }
        try answer(&lookUp, DNSZone(aliases + addresses))
        let found = try lookUp.outcome.get().endpoints
        #expect(found.count == DNSLookUp.maximumEndpoints && Set(found).count == found.count)
    }

    @Test func servicesWithoutTCPAreLeftOut() throws {
        var lookUp = DNSLookUp("name.test")
        let zone = DNSZone([
            .a("name.test", "192.0.2.1"), .https("name.test", 1, ".", [.alpn("h3"), .noDefaultALPN, .port(9)]),
            .https("name.test", 2, ".", [.port(8443)]), .https("name.test", 3, "."),
        ])
        try answer(&lookUp, zone)
        let found = try lookUp.outcome.get().endpoints
        #expect(found == [SocketAddress("192.0.2.1", port: 8443, isForDefaultPort: true), SocketAddress("192.0.2.1")])
    }
}
