// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewEngine
import CurlewSupport
import CurlewTesting
import FoundationEssentials
import Testing

@testable import Curlew

/// HTTP Strict Transport Security (RFC 6797) of whole transfers.
@Suite(.timeLimit(.minutes(5)))
struct HSTSTests {
    let authority: TestAuthority
    let server: MockServer

    init() throws {
        authority = try TestAuthority()
        server = try MockServer(
            tls: try authority.issue(hosts: ["site.test", "*.site.test", "localhost", "127.0.0.1"])
        ) {
            .text("\($0.method) \($0.target) \($0.field("Authorization") ?? "-")")
        }
        server.on(nil, "/policy") { _ in
            .text("policy").field("Strict-Transport-Security", "max-age=1000; includeSubDomains")
        }
    }

    func session(
        _ interceptors: [any Interceptor] = [], trust: (any TrustEvaluator)? = nil, hsts: HSTSStore? = HSTSStore(),
        _ configure: @Sendable (inout Session.Configuration) -> Void = { _ in }
    ) throws -> Session {
        let roots = try Certificate(pem: authority.certificatePEM)
        return try Session(trust: trust ?? CustomRoots([roots]), interceptors: interceptors, hsts: hsts) {
            $0.tcp.addresses = [
                "site.test": ["127.0.0.1"], "a.site.test": ["127.0.0.1"], "other.test": ["127.0.0.1"],
            ]
            configure(&$0)
        }
    }

    func url(_ scheme: String, _ host: String = "site.test", _ path: String = "/x?y=1") -> String {
        "\(scheme)://\(host):\(server.port)\(path)"
    }

    @Test(arguments: Taking.allCases)
    func requestToAKnownHostIsSentOverTLS(_ way: Taking) async throws {
        let session = try session()
        _ = try await way(Request(url("https", "site.test", "/policy")), by: session)
        #expect(session.hsts?.hosts.map(\.name) == ["site.test"])
        for host in ["site.test", "a.site.test"] {
            var request = Request(.put, url("http", host), fields: [.authorization: "Bearer x"], body: .text("body"))
            request.options.redirects = .never
            let taken = try await way(request, by: session)
            #expect(taken.body == Data("PUT /x?y=1 Bearer x".utf8))
            #expect(server.requests.last?.bodyText == "body")
            guard let head = taken.head else { continue }
            #expect(head.url == url("https", host) && head.status == .ok)
            let hop = try #require(head.history.first)
            #expect(head.history.count == 1 && hop.url == url("http", host) && hop.head.status == .temporaryRedirect)
            #expect(hop.head[.location] == url("https", host) && hop.head["Non-Authoritative-Reason"] == "HSTS")
        }
        #expect(server.violations == [])
    }

    /// A transfer that was planned before the host became known is sent over TLS, too.
    @Test func transferThatWaitsForItsStartIsSentOverTLS() async throws {
        let session = try session()
        let transfer = session.transfer(Request(url("http")))
        _ = try await session.data(for: Request(url("https", "site.test", "/policy")))
        let response = try await transfer.response()
        #expect(response.head.url == url("https") && response.head.history.count == 1)
    }

    @Test func observersSeeTheChangeAsARedirect() async throws {
        let session = try session()
        try session.hsts?.set(HSTSStore.Host("site.test"))
        var redirects: [String] = []
        let transfer = session.transfer(Request(url("http")))
        for await event in transfer.events {
            if case .redirected(let status, let url) = event.kind { redirects.append("\(status.code) \(url)") }
        }
        #expect(redirects == ["307 \(url("https"))"])
        let metrics = try await transfer.response().metrics
        #expect(metrics.tlsVersion != nil)
    }

    @Test func redirectToAKnownHostIsSentOverTLS() async throws {
        let session = try session()
        try session.hsts?.set(HSTSStore.Host("site.test"))
        server.on("GET", "/from", .redirect(to: url("http")))
        let plain = try MockServer { _ in .redirect(to: "http://site.test:\(self.server.port)/from") }
        let head = try await session.data(for: Request(plain.url("/"))).1
        #expect(head.url == url("https"))
        #expect(head.history.map(\.head.status.code) == [302, 307, 302, 307])
        #expect(plain.requestCount == 1)
    }

    /// The internal redirects do not count.
    @Test func upgradesDoNotCountAsRedirects() async throws {
        let session = try session()
        try session.hsts?.set(HSTSStore.Host("site.test"))
        server.on("GET", "/from", .redirect(to: url("http")))
        var request = Request(url("http", "site.test", "/from"))
        request.options.redirects = .follow(max: 1)
        #expect(try await session.data(for: request).1.history.count == 3)
        request.options.redirects = .follow(max: 0)
        #expect(try await networkError { _ = try await session.data(for: request) }.kind == .tooManyRedirects)
    }

    /// The redirect was no downgrade when it was followed, and its request keeps the credentials.
    @Test(arguments: [false, true])
    func policyThatEndsAfterTheDecisionStillCounts(_ rewrites: Bool) async throws {
        let session = try session()
        try session.hsts?.set(HSTSStore.Host("site.test"))
        server.on("GET", "/from", .redirect(to: url("http")))
        var request = Request(url("https", "site.test", "/from"), fields: [.authorization: "Bearer x"])
        request.options.redirects = .custom { redirect in
            #expect(redirect.isSameOrigin && !redirect.isDowngrade)
            session.hsts?.removeAll()
            return rewrites ? .rewrite(redirect.proposed) : .follow
        }
        let (body, head) = try await session.data(for: request)
        #expect(body == Data("GET /x?y=1 Bearer x".utf8) && head.url == url("https"))
    }

    @Test func retryAfterTheChangeIsReported() async throws {
        let session = try session { $0.retry = RetryPolicy(limit: 1, backoff: .none) }
        try session.hsts?.set(HSTSStore.Host("site.test"))
        let isFirst = Lock(true)
        server.on("GET", "/x") { _ in
            let isFirst = isFirst.withLock { isFirst in
                defer { isFirst = false }
                return isFirst
            }
            return isFirst ? .status(503) : .text("done")
        }
        let transfer = session.transfer(Request(url("http")))
        var steps: [String] = []
        for await event in transfer.events {
            switch event.kind {
            case .redirected: steps.append("redirected")
            case .retried: steps.append("retried")
            default: break
            }
        }
        #expect(steps == ["redirected", "redirected", "retried"])
    }

    @Test(arguments: ["127.0.0.1", "::1", "a b", "https://h.test", ""])
    func storeRefusesWhatIsNoName(_ name: String) {
        let store = HSTSStore()
        let error = #expect(throws: NetworkError.self) { try store.set(HSTSStore.Host(name)) }
        #expect(error?.kind == .invalidRequest && error?.requestFlaw == .host && store.hosts == [])
    }

    @Test func portIsChangedFrom80Only() throws {
        let store = HSTSStore()
        try store.set(HSTSStore.Host("h.test", includesSubdomains: true))
        #expect(store.upgraded("http://h.test") == "https://h.test/")
        #expect(store.upgraded("http://h.test:80/a?b#c") == "https://h.test/a?b#c")
        #expect(store.upgraded("http://h.test:8080/a") == "https://h.test:8080/a")
        #expect(store.upgraded("http://h.test:443/a") == "https://h.test:443/a")
        #expect(store.upgraded("HTTP://u:p@A.H.TEST/a") == "https://u:p@a.h.test/a")
        for url in ["https://h.test/", "http://x.test/", "http://127.0.0.1/", "http://[::1]/", "ftp://h.test/", ""] {
            #expect(store.upgraded(url) == nil, "\(url)")
        }
    }

    // MARK: Errors and credentials

    private struct Stubborn: Interceptor {
        let scope: Interception.Scope

        func intercept(
            _ request: Request, context: Interception.Context, next: Interception.Next
        ) async throws -> IncomingResponse {
            do throws(NetworkError) { return try await next(request) } catch {
                guard error.kind == .untrusted else { throw error }
                var again = request
                again.trust = InsecureTrust(reason: "test")
                return try await next(again)
            }
        }
    }

    /// A certificate error of a known host is final for the transfer (RFC 6797 §8.4, §12.1).
    @Test(arguments: Interception.Scope.allCases)
    func certificateErrorOfAKnownHostIsFinal(_ scope: Interception.Scope) async throws {
        let session = try session([Stubborn(scope: scope)], trust: SystemTrust())
        #expect(try await session.data(for: Request(url("https"))).1.status == .ok)
        try session.hsts?.set(HSTSStore.Host("site.test"))
        for scheme in ["https", "http"] {
            let error = try await networkError { _ = try await session.data(for: Request(url(scheme))) }
            #expect(error.kind == .untrusted)
            #expect((error.hint?.contains("HSTS") == true) == (scheme == "http"))
        }
        #expect(server.requestCount == 1)
    }

    /// The error of one host does not replace that of another.
    @Test func certificateErrorsOfSeveralHostsAreFinal() async throws {
        let hosts = ["site.test", "a.site.test"].map { url("https", $0) }
        let session = try session(
            [
                .intercept(scope: .attempt) { request, _, next in
                    for url in hosts {
                        await #expect(throws: NetworkError.self) { _ = try await next(Request(url)) }
                    }
                    var insecure = request
                    insecure.trust = InsecureTrust(reason: "test")
                    return try await next(insecure)
                }
            ], trust: SystemTrust())
        try session.hsts?.set(HSTSStore.Host("site.test", includesSubdomains: true))
        let error = try await networkError { _ = try await session.data(for: Request(hosts[0])) }
        #expect(error.kind == .untrusted && server.requestCount == 0)
    }

    /// An interceptor of attempts is inside the first change to https.
    @Test func requestOfAnAttemptInterceptorIsSentOverTLS() async throws {
        let plain = url("http")
        let session = try session([
            .intercept(scope: .attempt) { _, _, next in try await next(Request(plain)) }
        ])
        try session.hsts?.set(HSTSStore.Host("site.test"))
        let head = try await session.data(for: Request(url("https", "a.site.test"))).1
        #expect(head.url == url("https") && head.history.map(\.head.status.code) == [307])
    }

    @Test func credentialsAreSentAfterTheUpgrade() async throws {
        let session = try session([.basic("anna", "sesame")])
        try session.hsts?.set(HSTSStore.Host("site.test"))
        let body = try await session.data(for: Request(url("http"))).0
        #expect(String(decoding: body, as: UTF8.self).hasSuffix("Basic YW5uYTpzZXNhbWU="))
        // Another host, although it is known.
        try session.hsts?.set(HSTSStore.Host("a.site.test"))
        server.on("GET", "/out", .redirect(to: url("http", "a.site.test")))
        let other = try await session.data(for: Request(url("http", "site.test", "/out"))).0
        #expect(String(decoding: other, as: UTF8.self) == "GET /x?y=1 -")
    }

    // MARK: Files

    /// A server sends policies of many hosts while the file cannot be written.
    @Test func hostsThatWaitForTheFileAreBounded() async throws {
        let folder = try Folder()
        let store = try await HSTSStore(file: folder("hsts"))
        folder.write("hsts", Array("Dear diary".utf8))
        for number in 0..<21_000 { store.receive("max-age=1000", from: "https://h\(number).test/") }
        #expect(store.unsavedCount <= 10_000 && store.hosts.count <= 10_000)
        folder.write("hsts", [])
        try await store.save()
        #expect(store.unsavedCount == 0 && store.isKnown("h20999.test"))
    }

    @Test func storeKeepsItsHostsInAFile() async throws {
        let folder = try Folder()
        let (one, other) = (try await HSTSStore(file: folder("hsts")), try await HSTSStore(file: folder("hsts")))
        try one.set(HSTSStore.Host("one.test"))
        try other.set(HSTSStore.Host("two.test", includesSubdomains: true))
        try await one.save()
        try await other.save()
        #expect(other.hosts.map(\.name) == ["one.test", "two.test"])
        other.remove("one.test")
        try await other.save()
        try await one.save()
        #expect(one.hosts.map(\.name) == ["two.test"] && one.file == folder("hsts"))
        folder.write("hsts", [])
        try await one.save()
        #expect(one.hosts.map(\.name) == ["two.test"])
        one.removeAll()
        try await one.save()
        #expect(try await HSTSStore(file: folder("hsts")).hosts == [])
        let attributes = try FileManager.default.attributesOfItem(atPath: folder("hsts"))
        #expect(attributes[.posixPermissions] as? Int == 0o600)
        folder.write("diary", Array("Dear diary".utf8))
        let error = try await networkError { _ = try await HSTSStore(file: folder("diary")) }
        #expect(error.kind == .destinationFailed && "\(one)" == "HSTSStore(0 hosts)")
    }

    @Test func shutdownWritesTheFile() async throws {
        let folder = try Folder()
        let session = try session(hsts: try await HSTSStore(file: folder("hsts")))
        _ = try await session.data(for: Request(url("https", "site.test", "/policy")))
        try await session.shutdown()
        #expect(String(decoding: folder.bytes("hsts") ?? [], as: UTF8.self).contains(".site.test \""))
    }
}
