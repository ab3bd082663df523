// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewTesting
import FoundationEssentials
import Testing

@testable import Curlew

/// Requests through proxies on real sockets.
///
/// `server.test` has no address, so only a proxy reaches it.
@Suite(.timeLimit(.minutes(5)))
struct ProxyTests {
    private func session(
        _ proxy: Proxy, except: String = "", trust: any TrustEvaluator = SystemTrust(),
        identities: ClientIdentities = .none
    ) -> Session {
        Session(trust: trust, identities: identities) { $0.proxy = .always(proxy, except: except) }
    }

    private func text(_ session: Session, _ request: Request) async throws -> String {
        let (data, _) = try await session.data(for: request)
        return String(decoding: data, as: UTF8.self)
    }

    // MARK: HTTP proxies

    @Test func plainRequestIsForwarded() async throws {
        let server = try MockServer { .text("hello from \($0.target)") }
        let proxy = try MockProxy(.http)
        let session = try session(Proxy(proxy.url))
        let url = "http://server.test:\(server.port)/a?b=c"
        let response = try await session.transfer(Request(url)).response()
        #expect(String(decoding: response.value, as: UTF8.self) == "hello from /a?b=c")
        #expect(proxy.requests.map(\.target) == [url])
        #expect(response.metrics.proxy?.proxy?.url == proxy.url && response.metrics.proxy?.reason == .policy)
        #expect(response.metrics.remoteAddress == "127.0.0.1:\(proxy.port)")
        // No field of libcurl's own.
        #expect(proxy.requests[0].field("Proxy-Connection") == nil)
    }

    @Test func forwardedRequestsToSeveralServersShareOneConnection() async throws {
        let servers = try (0..<3).map { number in try MockServer { _ in .text("\(number)") } }
        let proxy = try MockProxy(.http)
        let session = try session(Proxy(proxy.url))
        for round in 0..<2 {
            for (number, server) in servers.enumerated() {
                let url = "http://server\(number).test:\(server.port)/\(round)"
                #expect(try await text(session, Request(url)) == "\(number)")
            }
        }
        #expect(proxy.requests.count == 6 && proxy.connectionCount == 1)
    }

    @Test func bodiesAreForwarded() async throws {
        let server = try MockServer { .bytes($0.body) }
        let proxy = try MockProxy(.http)
        let session = try session(Proxy(proxy.url))
        for size in [10, 100_000] {
            let body = Data(repeating: 7, count: size)
            let request = Request(.post, "http://server.test:\(server.port)/", body: .bytes(body))
            #expect(try await session.data(for: request).0 == body)
        }
    }

    @Test func secureRequestPassesThroughATunnelWhichIsReused() async throws {
        let authority = try TestAuthority()
        let server = try MockServer(tls: authority.issue(hosts: ["server.test"])) { _ in .text("secret") }
        let proxy = try MockProxy(.http)
        let session = try session(Proxy(proxy.url), trust: CustomRoots(pem: authority.certificatePEM))
        for _ in 0..<3 { #expect(try await text(session, Request("https://server.test:\(server.port)/")) == "secret") }
        #expect(proxy.requests.map(\.method) == ["CONNECT"])
        #expect(proxy.requests[0].target == "server.test:\(server.port)")
        #expect(server.requests.allSatisfy { $0.field("Proxy-Authorization") == nil })
    }

    @Test func http2WorksThroughATunnel() async throws {
        let authority = try TestAuthority()
        let server = try HTTP2Server(tls: authority.issue(hosts: ["server.test"])) { _ in .respond(200, text: "two") }
        let proxy = try MockProxy(.http)
        let session = try session(Proxy(proxy.url), trust: CustomRoots(pem: authority.certificatePEM))
        try await (0..<8).forEachConcurrent(limit: 8) { _ in
            let (_, head) = try await session.data(for: Request("https://server.test:\(server.port)/"))
            #expect(head.version == .http2)
        }
        #expect(proxy.requests.count == 1)
    }

    @Test func plainRequestsAreTunnelledOnDemand() async throws {
        let server = try MockServer { .text($0.target) }
        let mock = try MockProxy(.http)
        var proxy = try Proxy(mock.url)
        proxy.tunnelsPlainHTTP = true
        #expect(try await text(session(proxy), Request("http://server.test:\(server.port)/x")) == "/x")
        #expect(mock.requests.map(\.method) == ["CONNECT"])
    }

    // MARK: SOCKS

    @Test(arguments: [Proxy.Scheme.socks4a, .socks5h])
    func socksProxyLooksUpTheName(_ scheme: Proxy.Scheme) async throws {
        let server = try MockServer { _ in .text("ok") }
        let proxy = try MockProxy(.socks)
        let session = try session(Proxy("\(scheme.rawValue)://127.0.0.1:\(proxy.port)"))
        for _ in 0..<2 { #expect(try await text(session, Request("http://server.test:\(server.port)/")) == "ok") }
        #expect(proxy.requests.map(\.target) == ["server.test:\(server.port)"])
        #expect(proxy.requests[0].method == (scheme == .socks4a ? "SOCKS4a" : "SOCKS5"))
    }

    @Test(arguments: [Proxy.Scheme.socks4, .socks5])
    func sessionLooksUpTheNameForOldSocks(_ scheme: Proxy.Scheme) async throws {
        let server = try MockServer { _ in .text("ok") }
        let mock = try MockProxy(.socks)
        let proxy = try Proxy("\(scheme.rawValue)://127.0.0.1:\(mock.port)")
        let session = Session {
            $0.proxy = .always(proxy)
            $0.tcp.addresses = ["server.test": ["127.0.0.9"]]
        }
        #expect(try await text(session, Request("http://server.test:\(server.port)/")) == "ok")
        #expect(mock.requests.map(\.target) == ["127.0.0.9:\(server.port)"])
    }

    @Test func socksCredentialsAreSent() async throws {
        let server = try MockServer { _ in .text("ok") }
        let proxy = try MockProxy(.socks, credentials: ("anna", "secret"))
        let url = Request("http://server.test:\(server.port)/")
        #expect(try await text(session(Proxy(proxy.url, .basic("anna", "secret"))), url) == "ok")
        #expect(proxy.requests[0].user == "anna" && proxy.requests[0].password == "secret")
        for credentials in [nil, Proxy.Credentials.basic("anna", "wrong")] {
            let error = try await networkError { try await session(Proxy(proxy.url, credentials)).data(for: url) }
            #expect(error.kind == .proxyAuthenticationRequired && error.phase == .connecting)
        }
    }

    // MARK: https proxies

    @Test(arguments: [true, false])
    func httpsProxyIsJudgedByItsOwnEvaluator(isSecure: Bool) async throws {
        let (ours, theirs) = (try TestAuthority(), try TestAuthority())
        let server = try MockServer(tls: isSecure ? theirs.issue(hosts: ["server.test"]) : nil) { _ in .text("ok") }
        let mock = try MockProxy(.http, tls: ours.issue())
        let url = "\(isSecure ? "https" : "http")://server.test:\(server.port)/"
        let (own, other) = try (CustomRoots(pem: ours.certificatePEM), CustomRoots(pem: theirs.certificatePEM))
        let good = try session(Proxy(mock.url, trust: own), trust: other)
        for _ in 0..<2 { #expect(try await text(good, Request(url)) == "ok") }
        #expect(mock.connectionCount == 1)
        // The evaluator of the session does not judge the proxy, and that of the proxy does not judge the server.
        let error = try await networkError {
            try await session(Proxy(mock.url, trust: other), trust: other).data(for: Request(url))
        }
        #expect(error.kind == .untrusted && error.phase == .securing && error.message.contains("proxy"))
        guard isSecure else { return }
        let swapped = try await networkError {
            try await session(Proxy(mock.url, trust: own), trust: own).data(for: Request(url))
        }
        #expect(swapped.kind == .untrusted && !swapped.message.contains("The proxy"))
    }

    @Test func identityOfTheProxyIsNotShownToTheServer() async throws {
        let authority = try TestAuthority()
        var options = MockServer.Options()
        options.tls.clientAuthority = authority
        options.tls.requiresClientCertificate = false
        let server = try MockServer(tls: authority.issue(hosts: ["server.test"]), options: options) { _ in .text("ok") }
        options.tls.requiresClientCertificate = true
        let mock = try MockProxy(.http, tls: authority.issue(), options: options)
        let roots = try CustomRoots(pem: authority.certificatePEM)
        let mine = try authority.issue(hosts: ["client"])
        let identity = try ClientIdentity(certificates: mine.certificatePEM, key: mine.privateKeyPEM)
        let url = Request("https://server.test:\(server.port)/")
        #expect(try await text(session(Proxy(mock.url, trust: roots, identity: identity), trust: roots), url) == "ok")
        #expect(server.requests.last?.tls?.clientCertificate == nil)
        // The identity for servers is not shown to the proxy.
        let error = try await networkError {
            try await session(Proxy(mock.url, trust: roots), trust: roots, identities: .always(identity)).data(for: url)
        }
        #expect(error.kind == .tlsFailed || error.kind == .connectionLost)
    }

    // MARK: Authentication

    private static func basic(_ request: MockProxy.Request) -> MockProxy.Answer {
        let right = "Basic " + Data("anna:secret".utf8).base64EncodedString()
        let isRight = request.field("Proxy-Authorization") == right
        return isRight ? .accept : .status(407, ["Proxy-Authenticate: Basic realm=\"p\""])
    }

    @Test(arguments: [true, false])
    func basicCredentialsReachOnlyTheProxy(isSecure: Bool) async throws {
        let authority = try TestAuthority()
        let server = try MockServer(tls: isSecure ? authority.issue(hosts: ["server.test"]) : nil) { _ in .text("ok") }
        let proxy = try MockProxy(.http, Self.basic)
        let request = Request(
            "\(isSecure ? "https" : "http")://server.test:\(server.port)/", fields: [.authorization: "Bearer origin"])
        let roots = try CustomRoots(pem: authority.certificatePEM)
        #expect(try await text(session(Proxy(proxy.url, .basic("anna", "secret")), trust: roots), request) == "ok")
        #expect(proxy.requests.count == 1)
        #expect((proxy.requests[0].field("Authorization") == nil) == isSecure)
        #expect(server.requests.allSatisfy { $0.field("Proxy-Authorization") == nil })
        for credentials in [nil, Proxy.Credentials.basic("anna", "wrong")] {
            let error = try await networkError {
                try await session(Proxy(proxy.url, credentials), trust: roots).data(for: request)
            }
            #expect(error.kind == .proxyAuthenticationRequired)
            #expect(error.phase == (isSecure ? .connecting : .receiving))
            #expect(!"\(error)".contains("wrong"))
        }
    }

    /// Checks a digest by RFC 7616 §3.4.1 with SHA-256.
    private static func digest(_ request: MockProxy.Request) -> MockProxy.Answer {
        let challenge = "Proxy-Authenticate: Digest realm=\"p\", nonce=\"n1\", qop=\"auth\", algorithm=SHA-256"
        guard let value = request.field("Proxy-Authorization") else { return .status(407, [challenge]) }
        let parts = ChallengeParser.parameters(in: String(value.dropFirst("Digest ".count)))
        func hash(_ text: String) -> String { MessageDigest.digest(.sha256, of: text.utf8)?.hexadecimal ?? "" }
        let (first, second) = (hash("anna:p:secret"), hash("\(request.method):\(parts["uri"] ?? "")"))
        let middle = ["nonce", "nc", "cnonce", "qop"].map { parts[$0] ?? "" }.joined(separator: ":")
        return parts["response"] == hash("\(first):\(middle):\(second)") ? .accept : .status(407, [challenge])
    }

    @Test(arguments: [true, false])
    func digestIsSentAfterAChallenge(isSecure: Bool) async throws {
        let authority = try TestAuthority()
        let server = try MockServer(tls: isSecure ? authority.issue(hosts: ["server.test"]) : nil) { .bytes($0.body) }
        let proxy = try MockProxy(.http, Self.digest)
        let roots = try CustomRoots(pem: authority.certificatePEM)
        let session = try session(Proxy(proxy.url, .digest("anna", "secret")), trust: roots)
        let url = "\(isSecure ? "https" : "http")://server.test:\(server.port)/"
        for number in 0..<3 {
            #expect(try await text(session, Request(.post, url, body: .text("body \(number)"))) == "body \(number)")
        }
        // One challenge: later requests carry a digest from the start, and the tunnel is reused.
        #expect(proxy.requests.count == (isSecure ? 2 : 4))
        #expect(server.requests.count == 3)
        #expect(server.requests.allSatisfy { $0.field("Proxy-Authorization") == nil })
        let count = proxy.requests.count
        let error = try await networkError {
            try await self.session(Proxy(proxy.url, .digest("anna", "wrong")), trust: roots).data(for: Request(url))
        }
        #expect(error.kind == .proxyAuthenticationRequired)
        #expect(proxy.requests.count == count + 2, "a wrong password is sent once")
    }

    @Test func fieldsForTheProxyDoNotReachTheServer() async throws {
        let authority = try TestAuthority()
        let server = try MockServer(tls: authority.issue(hosts: ["server.test"])) { _ in .text("ok") }
        let mock = try MockProxy(.http)
        var proxy = try Proxy(mock.url)
        proxy.fields = ["X-Proxy-Key": "for the proxy"]
        let request = Request("https://server.test:\(server.port)/", fields: ["X-Server-Key": "for the server"])
        let session = try session(proxy, trust: CustomRoots(pem: authority.certificatePEM))
        #expect(try await text(session, request) == "ok")
        #expect(mock.requests[0].field("X-Proxy-Key") == "for the proxy")
        #expect(mock.requests[0].field("X-Server-Key") == nil && mock.requests[0].field("User-Agent") == nil)
        #expect(server.requests[0].field("X-Proxy-Key") == nil)
        let error = try await networkError {
            try await session.data(for: Request("https://server.test/", fields: [.proxyAuthorization: "Basic x"]))
        }
        #expect(error.requestFlaw == .field)
    }

    @Test func serverMaySend407() async throws {
        let server = try MockServer { _ in .status(407).field("Proxy-Authenticate", "Basic realm=\"s\"") }
        let mock = try MockProxy(.http)
        var proxy = try Proxy(mock.url)
        proxy.tunnelsPlainHTTP = true
        for session in [session(proxy), Session { $0.proxy = .none }] {
            let (_, head) = try await session.data(for: Request("http://localhost:\(server.port)/"))
            #expect(head.status == 407)
        }
    }

    // MARK: Routing

    @Test func eachProxyHasItsOwnConnections() async throws {
        let server = try MockServer { _ in .text("ok") }
        let proxies = try (0..<2).map { _ in try MockProxy(.http) }
        let session = Session { $0.proxy = .none }
        for _ in 0..<2 {
            for mock in proxies {
                var proxy = try Proxy(mock.url)
                proxy.tunnelsPlainHTTP = true
                let request = Request("http://localhost:\(server.port)/", options: [.proxy(.always(proxy))])
                #expect(try await text(session, request) == "ok")
            }
            #expect(try await text(session, Request("http://localhost:\(server.port)/")) == "ok")
        }
        #expect(proxies.map(\.requests.count) == [1, 1] && server.connectionCount == 3)
    }

    @Test func closureRoutesEachRequest() async throws {
        let server = try MockServer { _ in .text("ok") }
        let mock = try MockProxy(.http)
        let proxy = try Proxy(mock.url)
        struct Forbidden: Error {}
        let session = Session {
            $0.proxy = .custom { request in
                if request.url.contains("forbidden") { throw Forbidden() }
                return request.url.contains("server.test") ? proxy : nil
            }
        }
        let through = try await session.transfer(Request("http://server.test:\(server.port)/")).response()
        #expect(through.metrics.proxy == Proxy.Choice(proxy: proxy, reason: .closure))
        let direct = try await session.transfer(Request("http://localhost:\(server.port)/")).response()
        #expect(direct.metrics.proxy == Proxy.Choice(proxy: nil, reason: .closure))
        #expect(mock.requests.count == 1)
        let error = try await networkError { try await session.data(for: Request("http://forbidden.test/")) }
        #expect(error.kind == .interceptorFailed && error.cause is Forbidden)
    }

    @Test func redirectIsRoutedAnew() async throws {
        let target = try MockServer { _ in .text("end") }
        let server = try MockServer { _ in .status(302).field("Location", "http://localhost:\(target.port)/") }
        let mock = try MockProxy(.http)
        let session = try session(Proxy(mock.url), except: "localhost")
        let transfer = session.transfer(Request("http://server.test:\(server.port)/"))
        let events = transfer.events
        #expect(try await transfer.value == Data("end".utf8))
        #expect(mock.requests.count == 1)
        var choices: [String] = []
        for await event in events { if case .routed(let choice) = event.kind { choices.append(choice.description) } }
        #expect(choices == ["\(mock.url) (policy)", "direct (“localhost” in except)"])
    }

    // MARK: Faults

    @Test(arguments: [403, 502, 503])
    func refusedTunnelHasTheStatusOfTheProxy(status: Int) async throws {
        let proxy = try MockProxy(.http) { _ in .status(status) }
        let session = try session(Proxy(proxy.url))
        let error = try await networkError { try await session.data(for: Request("https://server.test:444/")) }
        #expect(error.kind == (status < 500 ? .proxyRefused : .cannotConnect) && error.phase == .connecting)
        #expect(
            error.message
                == "The proxy \(proxy.url) (policy) did not open a tunnel to server.test:444: status \(status).")
    }

    @Test(arguments: [1, 2, 3, 4, 5, 6, 7, 8, 91])
    func refusalOfSocksNamesTheReason(code: Int) async throws {
        let proxy = try MockProxy(.socks) { _ in .code(UInt8(code)) }
        let session = try session(Proxy("\(code > 90 ? "socks4a" : "socks5h")://127.0.0.1:\(proxy.port)"))
        let error = try await networkError { try await session.data(for: Request("http://server.test:444/")) }
        let isRule = [2, 7, 8].contains(code)
        #expect(error.kind == (isRule ? .proxyRefused : .cannotConnect) && error.phase == .connecting)
        #expect(error.message.contains("server.test"))
    }

    @Test func brokenProxiesAreErrorsOfTheConnection() async throws {
        let halves = [
            MockProxy.Answer.reset, .close, .bytes(Array("HTTP/1.1 2".utf8)), .bytes(Array("SSH-2.0-x\r\n".utf8)),
            .bytes(Array("HTTP/1.1 200 OK\r\n".utf8)),
        ]
        for answer in halves {
            let proxy = try MockProxy(.http) { _ in answer }
            let session = try session(Proxy(proxy.url))
            let error = try await networkError { try await session.data(for: Request("https://server.test:444/")) }
            #expect(error.phase == .connecting && error.kind != .internal, "\(answer): \(error)")
            #expect("\(error)".contains(proxy.url) || error.hint?.contains(proxy.url) == true, "\(answer): \(error)")
        }
    }

    @Test func absentProxyIsNamed() async throws {
        let port = try { try MockProxy(.http).port }()
        let session = try session(Proxy("http://127.0.0.1:\(port)"))
        let error = try await networkError { try await session.data(for: Request("http://server.test/")) }
        #expect(error.kind == .cannotConnect && error.hint?.contains("127.0.0.1:\(port) (policy)") == true)
        let unknown = try await networkError {
            try await self.session(Proxy("http://proxy.invalid")).data(for: Request("http://server.test/"))
        }
        #expect(unknown.kind == .cannotResolve && unknown.hint?.contains("http://proxy.invalid:1080 (policy)") == true)
    }

    /// Cancels a request while the proxy withholds its answer, and expects the end of its connection.
    @Test(arguments: [MockProxy.Kind.http, .socks])
    func cancellationClosesTheTunnelInProgress(_ kind: MockProxy.Kind) async throws {
        let gate = Gate()
        let proxy = try MockProxy(kind) { _ in .wait(gate) }
        let session = try session(Proxy(proxy.url))
        let task = Task { try await session.data(for: Request("https://server.test:444/")) }
        await proxy.waitForRequests(1)
        task.cancel()
        let error = await #expect(throws: NetworkError.self) { try await task.value }
        #expect(error?.isCancellation == true && error?.phase == .connecting)
        await proxy.waitUntilIdle()
    }

    @Test func slowTunnelCountsForTheConnectTimeout() async throws {
        let gate = Gate()
        let proxy = try MockProxy(.http) { _ in .wait(gate) }
        let session = try session(Proxy(proxy.url))
        let request = Request(
            "https://server.test:444/", options: [.timeouts(Timeouts(connect: .milliseconds(300)))])
        let error = try await networkError { try await session.data(for: request) }
        #expect(error.kind == .timedOut && error.phase == .connecting)
        #expect(error.hint?.contains(proxy.url) == true)
    }

    // MARK: Unix sockets

    @Test(arguments: [false, true])
    func unixSocketReachesTheServer(isAbstract: Bool) async throws {
        let server = try MockServer { .text("\($0.field("Host") ?? "") \($0.target)") }
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("curlew-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let path = isAbstract ? "@curlew-\(UUID().uuidString)" : folder.appendingPathComponent("s").path
        let relay = try MockProxy(unixSocket: path, to: server.port)
        let api = Client("http://docker").with { $0.options = [.unixSocket(path)] }
        for _ in 0..<3 { #expect(try await api.get("info", using: .text) == "docker /info") }
        let request = Request("http://docker/", options: [.unixSocket(path)])
        #expect(try await Session().transfer(request).response().metrics.remoteAddress == path)
        #expect(relay.connectionCount == 4)
        await relay.waitUntilIdle()
    }

    @Test func unixSocketBypassesTheCache() async throws {
        let servers = try ["one", "two"].map { text in
            try MockServer { _ in .text(text).field("Cache-Control", "max-age=60") }
        }
        let names = (0..<2).map { _ in "@curlew-\(UUID().uuidString)" }
        let relays = try zip(names, servers).map { try MockProxy(unixSocket: $0, to: $1.port) }
        let session = Session(cache: HTTPCache())
        for name in names + names {
            let request = Request("http://localhost/", options: [.unixSocket(name)])
            let expected = name == names[0] ? "one" : "two"
            #expect(try await text(session, request) == expected)
        }
        #expect(relays.map(\.connectionCount) == [2, 2])
    }

    @Test func missingUnixSocketIsAnError() async throws {
        for (path, flaw) in [
            ("/nonexistent/socket", false), ("", true), ("@", true), (String(repeating: "x", count: 108), true),
        ] {
            let request = Request("http://localhost/", options: [.unixSocket(path)])
            let error = try await networkError { try await Session.shared.data(for: request) }
            #expect(error.kind == (flaw ? .invalidRequest : .cannotConnect), "\(path): \(error)")
        }
    }
}
