// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewEngine
import CurlewSupport
import CurlewTesting
import FoundationEssentials
import Testing

@testable import Curlew

/// The alternative services (RFC 7838) that a session learns from responses.
@Suite(.timeLimit(.minutes(5)))
struct AlternativeServiceTests {
    private let authority: TestAuthority
    private let server: MockServer

    init() throws {
        authority = try TestAuthority()
        server = try MockServer(tls: try authority.issue(hosts: ["site.test", "127.0.0.1"])) { _ in .text("none") }
        server.on(nil, "/h3", .text("h3").field("Alt-Svc", "h3=\":443\""))
    }

    private func session(
        _ interceptors: [any Interceptor] = [], trust: (any TrustEvaluator)? = nil,
        _ configure: @Sendable (inout Session.Configuration) -> Void = { _ in }
    ) throws -> Session {
        let roots = try Certificate(pem: authority.certificatePEM)
        return try Session(trust: trust ?? CustomRoots([roots]), interceptors: interceptors) {
            $0.tcp.addresses = ["site.test": ["127.0.0.1"]]
            configure(&$0)
        }
    }

    private func url(_ path: String = "/h3", host: String = "site.test") -> String {
        "https://\(host):\(server.port)\(path)"
    }

    private func shown(_ session: Session, _ url: String) -> [String] {
        session.alternativeServices(of: url).map(\.description)
    }

    // MARK: Learning

    @Test(arguments: Taking.allCases)
    func servicesAreKeptForTheirOrigin(_ way: Taking) async throws {
        let session = try session()
        server.on("GET", "/two") { _ in
            .text("x").field("Alt-Svc", "h3=\":443\"; ma=3600; persist=1").field("alt-svc", "h2=\"Alt.test:8\"; ma=60")
        }
        let start = Date()
        _ = try await way(Request(url("/two")), by: session)
        let services = session.alternativeServices(of: url("/other?x"))
        #expect(services.map(\.description) == ["h3 site.test:443", "h2 alt.test:8"])
        #expect(services.map(\.isPersistent) == [true, false])
        let lifetimes = services.map { $0.expires.timeIntervalSince(start) }
        #expect(lifetimes.count == 2 && 3600..<3900 ~= lifetimes[0] && 60..<360 ~= lifetimes[1])
        #expect(shown(session, "https://site.test/") == [] && shown(session, url(host: "127.0.0.1")) == [])
        #expect(shown(session, url().replacing("https", with: "http")) == [] && shown(session, "no URL") == [])
        #expect(shown(session.copy(), url()) == [])
    }

    /// With an interceptor, the chain runs for each response.
    @Test(arguments: [false, true])
    func fieldReplacesEarlierServices(_ runsChain: Bool) async throws {
        let session = try session(runsChain ? [.intercept(scope: .attempt) { try await $2($0) }] : [])
        let fields = ["h3=\":1\", h2=\":2\"", "h3=\":3\"", "clear", "h3=\":1\"", "nonsense", "h2=\":4\"; ma=0"]
        server.on("GET", "/x", inOrder: fields.map { .text("x").field("Alt-Svc", $0) })
        var seen: [[String]] = []
        for _ in fields {
            _ = try await session.data(for: Request(url("/x")))
            seen.append(shown(session, url()))
            // A response without the field changes nothing.
            _ = try await session.data(for: Request(url("/other")))
            #expect(shown(session, url()) == seen.last)
        }
        let first = ["h3 site.test:1"]
        #expect(seen == [first + ["h2 site.test:2"], ["h3 site.test:3"], [], first, first, []])
    }

    @Test func fieldOverHTTPIsIgnored() async throws {
        let plain = try MockServer { _ in .text("x").field("Alt-Svc", "h3=\":443\"") }
        let session = try session()
        _ = try await session.data(for: Request(plain.url("/")))
        #expect(shown(session, plain.url("/")) == [])
        #expect(shown(session, plain.url("/").replacing("http", with: "https")) == [])
    }

    /// Any machine on the network can send the field if the certificate is not checked (RFC 7838 §2.1).
    @Test func fieldIsIgnoredWithoutAnIdentityCheck() async throws {
        let insecure = InsecureTrust(reason: "test")
        let careless = try session(trust: insecure)
        _ = try await careless.data(for: Request(url()))
        #expect(shown(careless, url()) == [])
        let careful = try session()
        var request = Request(url())
        request.trust = insecure
        _ = try await careful.data(for: request)
        #expect(shown(careful, url()) == [])
        request.trust = nil
        _ = try await careful.data(for: request)
        #expect(shown(careful, url()) == ["h3 site.test:443"])
    }

    @Test(arguments: [301, 401, 404, 503])
    func fieldOfAnyStatusCounts(_ status: Int) async throws {
        let session = try session()
        server.on("GET", "/status") { _ in
            .text("x", status: status).field("Alt-Svc", "h3=\":443\"").field("Location", "/x")
        }
        _ = try await session.data(for: Request(url("/status")))
        #expect(shown(session, url()) == ["h3 site.test:443"])
    }

    /// RFC 7838 §6.
    @Test func fieldOfAMisdirectedRequestIsIgnored() async throws {
        let session = try session()
        server.on("GET", "/421") { _ in .text("x", status: 421).field("Alt-Svc", "h3=\":443\"") }
        _ = try await session.data(for: Request(url("/421")))
        #expect(shown(session, url()) == [])
    }

    /// The head is authentic, even if the body breaks off.
    @Test(arguments: [Taking.data, .value, .bytes])
    func fieldOfAnIncompleteResponseCounts(_ way: Taking) async throws {
        server.on("GET", "/broken") { _ in
            .text("broken").field("Alt-Svc", "h3=\":443\"").fault(.close, at: .body(1))
        }
        let session = try session()
        _ = try await networkError { _ = try await way(Request(url("/broken")), by: session) }
        #expect(shown(session, url()) == ["h3 site.test:443"])
    }

    /// A response with the field does not cost a run of the chain.
    @Test func fieldIsLearnedWithoutTheChain() throws {
        let session = try session()
        let folded = try #require(session.core.chain(for: "https://site.test/").fold("https://site.test/"))
        #expect(!folded.interest.values.includes(status: 200, .alternativeServices))
    }

    // MARK: Forgetting

    @Test func resetRemovesServicesThatAreNotPersistent() async throws {
        let session = try session()
        server.on("GET", "/x", .text("x").field("Alt-Svc", "h3=\":1\", h3=\":2\"; persist=1"))
        _ = try await session.data(for: Request(url("/x")))
        #expect(shown(session, url()) == ["h3 site.test:1", "h3 site.test:2"])
        await session.reset(.connections)
        #expect(shown(session, url()) == ["h3 site.test:2"])
        // The repeated field counts at once.
        _ = try await session.data(for: Request(url("/x")))
        #expect(shown(session, url()) == ["h3 site.test:1", "h3 site.test:2"])
    }

    /// A repeated field does not even need a check of the identity.
    @Test func repeatedFieldExtendsTheLifetimeAfterAMinute() {
        let time = TestTime(Date(timeIntervalSince1970: 1_767_225_600))
        let services = AlternativeServices(now: { time.now })
        var hosts: [String] = []
        func receive(age: Int) {
            let head = ResponseHead(status: .ok, fields: [.altSvc: "h3=\":1\"; ma=1000", .age: "\(age)"])
            services.receive(head, from: "https://a.test/x") { host in
                hosts.append(host)
                return true
            }
        }
        receive(age: 100)
        let first = time.now + 900
        #expect(services.services(of: "https://a.test").map(\.expires) == [first])
        time.advance(by: 59)
        receive(age: 0)
        #expect(services.services(of: "https://a.test").map(\.expires) == [first] && hosts == ["a.test"])
        time.advance(by: 1)
        receive(age: 0)
        #expect(services.services(of: "https://a.test").map(\.expires) == [time.now + 1000])
        #expect(hosts == ["a.test", "a.test"])
        time.advance(by: 1000)
        #expect(services.services(of: "https://a.test") == [])
    }

    @Test func http3IsFoundForAPlannedURL() throws {
        let services = AlternativeServices()
        func isOffered(_ url: String) throws -> Bool { services.offersHTTP3(PlannedURL(try RequestTarget(url))) }
        services.receive(ResponseHead(status: .ok, fields: [.altSvc: "h3=\":443\""]), from: "https://A.test/")
        #expect(try isOffered("https://a.test/x") && !isOffered("https://b.test/") && !isOffered("http://a.test:443/"))
    }
}
