// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewTesting
import FoundationEssentials
import Testing

@testable import Curlew

/// The same jobs for each real proxy.
private struct ProxyJobs {
    let peer: ProxyPeer
    let authority: TestAuthority

    init(_ kind: ProxyPeer.Kind) throws {
        peer = try ProxyPeer(kind)
        authority = try TestAuthority()
    }

    func session(_ proxy: Proxy, observers: [any Session.Observer] = []) throws -> Session {
        try Session(trust: CustomRoots(pem: authority.certificatePEM), observers: observers) {
            $0.proxy = .always(proxy)
            // The default is too short while a proxy starts on a busy machine.
            $0.timeouts.connect = .seconds(50)
        }
    }

    /// Runs a request, again while the proxy is still starting.
    func data(_ session: Session, _ request: Request) async throws -> Data {
        var request = request
        let backoff = RetryPolicy.Backoff(first: .milliseconds(50), factor: 1)
        request.options.retry = RetryPolicy(limit: 200, backoff: backoff, budget: nil)
        return try await session.data(for: request).0
    }

    func runAll() async throws {
        let plain = try MockServer { .bytes($0.body + Array($0.target.utf8)) }
        let secure = try MockServer(tls: authority.issue()) { .bytes($0.body) }
        let modern = try HTTP2Server(tls: authority.issue()) { _ in .respond(200, text: "two") }
        let events = SessionEventRecorder()
        let session = try session(peer.proxy(), observers: [events])
        for number in 0..<3 {
            #expect(
                try await data(session, Request("http://localhost:\(plain.port)/\(number)?q"))
                    == Data("/\(number)?q".utf8))
        }
        let body = Data(repeating: 66, count: 300_000)
        let upload = Request(.post, "https://localhost:\(secure.port)/", body: .bytes(body))
        for _ in 0..<3 { #expect(try await data(session, upload) == body) }
        #expect(secure.connectionCount == 1, "the tunnel was not reused: \(events.transferEvents)")
        try await (0..<10).forEachConcurrent(limit: 10) { _ in
            let (_, head) = try await session.data(for: Request("https://localhost:\(modern.port)/"))
            #expect(head.version == .http2)
        }
        #expect(modern.connectionCount == 1 && modern.violations.isEmpty)
        let streamed = session.transfer(Request(.post, "http://localhost:\(plain.port)/s", body: .bytes(body)))
        #expect(try await streamed.value.count == body.count + 2)
        // A port at which no server listens.
        let unused = try { try MockServer().port }()
        let error = try await networkError { try await session.data(for: Request("https://localhost:\(unused)/")) }
        #expect([.cannotConnect, .connectionLost].contains(error.kind) && error.phase == .connecting, "\(error)")
    }

    /// - Parameter wrong: Credentials that the proxy refuses with 407; nil for a proxy that uses another status.
    func checkCredentials(_ right: Proxy.Credentials, _ wrong: Proxy.Credentials?) async throws {
        let plain = try MockServer { _ in .text("ok") }
        let secure = try MockServer(tls: authority.issue()) { _ in .text("ok") }
        let urls = ["http://localhost:\(plain.port)/", "https://localhost:\(secure.port)/"]
        for url in urls {
            let request = Request(url, fields: [.authorization: "Bearer for-the-server"])
            let session = try session(peer.proxy(right, isProtected: true))
            for _ in 0..<3 { #expect(try await data(session, request) == Data("ok".utf8)) }
            for credentials in [nil, wrong] {
                let session = try self.session(peer.proxy(credentials, isProtected: true))
                let error = try await networkError { try await session.data(for: request) }
                #expect(error.kind == .proxyAuthenticationRequired, "\(url) \(error)")
            }
        }
        for server in [plain, secure] {
            #expect(!server.requests.isEmpty && server.requests.allSatisfy { $0.field("Proxy-Authorization") == nil })
        }
    }

    /// Checks in the proxy's log that no tunnel carried the credentials of the server.
    func checkLog() {
        let tunnels = peer.log.split(separator: "\n").filter { $0.hasPrefix("CONNECT") }
        #expect(!tunnels.isEmpty && !tunnels.contains { $0.contains("for-the-server") })
        let forwarded = peer.log.split(separator: "\n").filter { $0.hasPrefix("GET") }
        #expect(forwarded.contains { $0.contains("for-the-server") })
    }
}

@Suite(.peer(.squid), .enabledIfInstalled(.squid), .timeLimit(.minutes(5)))
struct SquidTests {
    @Test func squidForwardsAndTunnels() async throws { try await ProxyJobs(.squid).runAll() }

    @Test func squidAcceptsBasicCredentials() async throws {
        let jobs = try ProxyJobs(.squid)
        try await jobs.checkCredentials(.basic("anna", "open sesame"), .basic("anna", "wrong"))
        jobs.checkLog()
    }

    @Test func squidAcceptsDigests() async throws {
        let jobs = try ProxyJobs(.squid)
        try await jobs.checkCredentials(.digest("anna", "open sesame"), .digest("anna", "wrong"))
        jobs.checkLog()
        #expect(!jobs.peer.log.contains("\"Basic"))
    }

    @Test func squidRefusesByItsRules() async throws {
        let jobs = try ProxyJobs(.squid)
        let session = try jobs.session(jobs.peer.proxy())
        _ = try await jobs.data(session, Request("http://forbidden.test/"))
        let error = try await networkError { try await session.data(for: Request("https://forbidden.test/")) }
        #expect(error.kind == .proxyRefused && error.message.contains("status 403"), "\(error)")
        // Without TLS, the response of the proxy is the result.
        #expect(try await session.data(for: Request("http://forbidden.test/")).1.status == 403)
    }
}

@Suite(.peer(.tinyproxy), .enabledIfInstalled(.tinyproxy), .timeLimit(.minutes(5)))
struct TinyproxyTests {
    @Test func tinyproxyForwardsAndTunnels() async throws { try await ProxyJobs(.tinyproxy).runAll() }

    @Test func tinyproxyAcceptsBasicCredentials() async throws {
        try await ProxyJobs(.tinyproxy).checkCredentials(.basic("anna", "sesame"), nil)
    }
}

@Suite(.peer(.apache2), .enabledIfInstalled(.apache2), .timeLimit(.minutes(5)))
struct ApacheProxyTests {
    @Test func apacheForwardsAndTunnels() async throws { try await ProxyJobs(.apache).runAll() }

    @Test func apacheAcceptsBasicCredentials() async throws {
        let jobs = try ProxyJobs(.apache)
        try await jobs.checkCredentials(.basic("anna", "open sesame"), .basic("anna", "wrong"))
        jobs.checkLog()
    }

    @Test func apacheIsAnHTTPSProxy() async throws {
        let jobs = try ProxyJobs(.apache)
        let server = try MockServer(tls: jobs.authority.issue()) { _ in .text("ok") }
        let roots = try CustomRoots(pem: jobs.peer.authority.certificatePEM)
        let proxy = try Proxy("https://localhost:\(jobs.peer.instance.ports[.secure] ?? 0)", trust: roots)
        let session = try jobs.session(proxy)
        for _ in 0..<2 {
            #expect(try await session.data(for: Request("https://localhost:\(server.port)/")).0 == Data("ok".utf8))
        }
        #expect(server.connectionCount == 1)
        let other = try jobs.session(Proxy(proxy.url))
        let error = try await networkError { try await other.data(for: Request("https://localhost:\(server.port)/")) }
        #expect(error.kind == .untrusted && error.message.contains("The proxy"))
    }
}

@Suite(.peer(.microsocks), .enabledIfInstalled(.microsocks), .timeLimit(.minutes(5)))
struct MicrosocksTests {
    @Test func microsocksTunnels() async throws { try await ProxyJobs(.microsocks).runAll() }

    @Test func microsocksAcceptsCredentials() async throws {
        let jobs = try ProxyJobs(.microsocks)
        try await jobs.checkCredentials(.basic("anna", "open sesame"), .basic("anna", "wrong"))
    }
}

@Suite(.peer(.danted), .enabledIfInstalled(.danted), .timeLimit(.minutes(5)))
struct DanteTests {
    @Test func danteTunnels() async throws { try await ProxyJobs(.dante).runAll() }

    @Test(arguments: ["socks4", "socks5"]) func danteSpeaksOtherVersions(_ scheme: String) async throws {
        let jobs = try ProxyJobs(.dante)
        let server = try MockServer { _ in .text("ok") }
        let session = try jobs.session(Proxy("\(scheme)://127.0.0.1:\(jobs.peer.instance.ports[.plain] ?? 0)"))
        #expect(try await jobs.data(session, Request(server.url())) == Data("ok".utf8))
    }
}

/// A proxy that opens TLS itself: the pins and the roots of the session must refuse its certificates.
@Suite(.peer(.mitmdump), .enabledIfInstalled(.mitmdump), .timeLimit(.minutes(5)))
struct MitmproxyTests {
    @Test func interceptingProxyIsRefusedByTheEvaluatorOfTheServer() async throws {
        let instance = try PeerInstance(.mitmdump, [.plain], hasLargeFile: false, mark: "listening") {
            executable, folder, ports in
            [
                executable, "--listen-host", "127.0.0.1", "--listen-port", "\(ports[.plain] ?? 0)", "--set",
                "confdir=\(folder)/temporary", "--set", "ssl_insecure=true", "--set", "termlog_verbosity=info",
            ]
        }
        let authority = try TestAuthority()
        let server = try MockServer(tls: authority.issue()) { _ in .text("ok") }
        let proxy = try Proxy("http://127.0.0.1:\(instance.ports[.plain] ?? 0)")
        let url = Request("https://localhost:\(server.port)/")
        let session = try Session(trust: CustomRoots(pem: authority.certificatePEM)) { $0.proxy = .always(proxy) }
        let error = try await networkError { try await session.data(for: url) }
        #expect(error.kind == .untrusted && !error.message.contains("The proxy") && server.requests.isEmpty)
        // A program that trusts the proxy's authority accepts it.
        let roots = try CustomRoots(file: "\(instance.folder)/temporary/mitmproxy-ca-cert.pem")
        let open = Session(trust: roots) { $0.proxy = .always(proxy) }
        #expect(try await open.data(for: url).0 == Data("ok".utf8))
    }
}
