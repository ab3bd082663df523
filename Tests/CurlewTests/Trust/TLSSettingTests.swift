// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewTesting
import FoundationEssentials
import Glibc
import Testing

@testable import Curlew
@testable import CurlewEngine

/// TLS settings: ciphers, ALPN, SNI, key log, and required TLS.
@Suite(.timeLimit(.minutes(5)))
struct TLSSettingTests {
    private let authority: TestAuthority

    init() throws { authority = try TestAuthority() }

    private func server(_ configure: (inout MockServer.TLSOptions) -> Void = { _ in }) throws -> MockServer {
        var options = MockServer.Options()
        configure(&options.tls)
        return try MockServer(tls: authority.issue(), options: options) { _ in .text("x") }
    }

    private func session(_ configure: @Sendable (inout Session.Configuration) -> Void) throws -> Session {
        try Session(trust: CustomRoots(pem: authority.certificatePEM), configure)
    }

    @Test func tlsIsRequired() async throws {
        let plain = try MockServer { _ in .text("x") }
        let secure = try server()
        secure.on("GET", "/away", .redirect(to: plain.url("/")))
        let session = try session {
            $0.tls.isRequired = true
            $0.redirects = .follow(allowingDowngrade: true)
        }
        #expect(try await session.data(for: Request(secure.url("/"))).1.status == .ok)
        for url in [plain.url("/"), secure.url("/away")] {
            let error = try await networkError { try await session.data(for: Request(url)) }
            #expect(error.kind == .invalidRequest && error.message.contains("tls.isRequired"), "\(error)")
        }
        #expect(plain.connectionCount == 0)
    }

    @Test func ciphersAndCipherSuitesAreUsed() async throws {
        let server = try server()
        let old = try session {
            $0.tls.maximumVersion = .v1_2
            $0.tls.ciphers = "ECDHE-ECDSA-AES256-GCM-SHA384"
        }
        let metrics = try await old.transfer(Request(server.url("/"))).response().metrics
        #expect(metrics.tlsCipher == "ECDHE-ECDSA-AES256-GCM-SHA384")
        let new = try session { $0.tls.cipherSuites = "TLS_AES_128_GCM_SHA256" }
        let others = try await new.transfer(Request(server.url("/"))).response().metrics
        #expect(others.tlsCipher == "TLS_AES_128_GCM_SHA256")
        let picky = try self.server {
            $0.cipherSuites = "TLS_AES_256_GCM_SHA384"; $0.minimumVersion = .v1_3
        }
        let error = try await networkError { try await new.data(for: Request(picky.url("/"))) }
        #expect(error.kind == .tlsFailed && picky.requestCount == 0)
        for wrong in ["", "NO-SUCH-CIPHER", "@@"] {
            let error = #expect(throws: NetworkError.self) {
                try Session.Configuration { $0.tls.ciphers = wrong }.validate()
            }
            #expect(error?.message.contains("tls.ciphers") == true)
        }
        #expect(throws: NetworkError.self) { try Session.Configuration { $0.tls.cipherSuites = "" }.validate() }
    }

    /// An anonymous server has no certificate, so the client refuses it even if the cipher list allows it.
    @Test func serverWithAnonymousCipherIsRefused() async throws {
        let server = try server {
            $0.maximumVersion = .v1_2
            $0.securityLevel = 0
            $0.ciphers = "aNULL@SECLEVEL=0"
        }
        for trust in [try CustomRoots(pem: authority.certificatePEM), InsecureTrust(reason: "test")]
            as [any TrustEvaluator]
        {
            let session = Session(trust: trust) {
                $0.tls.maximumVersion = .v1_2
                $0.tls.ciphers = "aNULL:ALL@SECLEVEL=0"
            }
            let error = try await networkError { try await session.data(for: Request(server.url("/"))) }
            #expect(error.kind == .tlsFailed || error.kind == .invalidRequest, "\(error)")
        }
        #expect(server.requestCount == 0)
    }

    @Test func alpnCanBeDisabled() async throws {
        let server = try server()
        let silent = try session { $0.tls.negotiatesProtocol = false }
        #expect(try await silent.data(for: Request(server.url("/"))).1.status == .ok)
        #expect(try await session { _ in }.data(for: Request(server.url("/"))).1.status == .ok)
        #expect(server.requests.map { $0.tls?.applicationProtocol } == [nil, "http/1.1"])
        let http2 = try HTTP2Server(tls: authority.issue())
        #expect(try await networkError { try await silent.data(for: Request(http2.url("/"))) }.isCancellation == false)
    }

    /// The client sends another SNI name, but verifies the certificate for the host of the URL.
    @Test func serverNamesReplaceTheSNI() async throws {
        let server = try server()
        let session = try session { $0.tls.serverNames = ["LocalHost.": "front.example.test"] }
        #expect(try await session.data(for: Request(server.url("/"))).1.status == .ok)
        let dotted = try self.session {
            $0.tls.serverNames = ["localhost": "other.example.test"]
            $0.tcp.addresses = ["localhost": ["127.0.0.1"]]
        }
        #expect(try await dotted.data(for: Request("https://localhost.:\(server.port)/")).1.status == .ok)
        let nameless = try self.session { $0.tls.serverNames = ["localhost": ""] }
        #expect(try await nameless.data(for: Request(server.url("/"))).1.status == .ok)
        #expect(server.requests.map { $0.tls?.serverName } == ["front.example.test", "other.example.test", nil])
        let wrong = try MockServer(tls: authority.issue(hosts: ["front.example.test"])) { _ in .text("x") }
        let error = try await networkError { try await session.data(for: Request(wrong.url("/"))) }
        #expect((error.cause as? TrustFailure)?.rule == .hostName && wrong.requestCount == 0)
        for names in [["a b": "x"], ["a": "b c"], ["": "a"], ["a": "10.0.0.1"], ["a": "::1"]] {
            #expect(throws: NetworkError.self) {
                try Session.Configuration { $0.tls.serverNames = names }.validate()
            }
        }
    }

    /// A configured address does not change the host name that the certificate must have.
    @Test func configuredAddressesKeepTheVerifiedHost() async throws {
        let server = try MockServer(tls: authority.issue(hosts: ["bank.example.test", "xn--bcher-kva.test"])) {
            request in
            .text(request.field("host") ?? "")
        }
        let session = try session {
            $0.tcp.addresses = [
                "Bank.example.test": ["127.0.0.1"], "bücher.test": ["127.0.0.1"], "evil.test": ["127.0.0.1"],
            ]
        }
        for (host, name) in [("bank.example.test", "bank.example.test"), ("bücher.test", "xn--bcher-kva.test")] {
            let (data, _) = try await session.data(for: Request("https://\(host):\(server.port)/"))
            #expect(String(decoding: data, as: UTF8.self) == "\(name):\(server.port)")
        }
        let error = try await networkError { try await session.data(for: Request("https://evil.test:\(server.port)/")) }
        #expect((error.cause as? TrustFailure)?.rule == .hostName)
        #expect(server.requests.map { $0.tls?.serverName } == ["bank.example.test", "xn--bcher-kva.test"])
        for addresses in [["a": []], ["a": ["b"]], ["a b": ["::1"]], ["a": ["127.0.0.1", "1"]]] {
            #expect(throws: NetworkError.self) {
                try Session.Configuration { $0.tcp.addresses = addresses }.validate()
            }
        }
        try Session.Configuration { $0.tcp.addresses = ["a": ["::1", "10.0.0.1"]] }.validate()
    }

    @Test func keyLogFileIsWritten() async throws {
        let path = FileManager.default.temporaryDirectory.appending(path: "curlew-\(UUID()).log").path
        defer { try? FileManager.default.removeItem(atPath: path) }
        let server = try server()
        let session = try session { $0.tls.keyLogFile = path }
        _ = try await session.data(for: Request(server.url("/")))
        // A thread of its own writes the lines in order, so the last job runs after all lines.
        await withCheckedContinuation { done in
            if !DiskThread.keys.run(at: path, { done.resume() }) { done.resume() }
        }
        let text = try String(decoding: Data(contentsOf: URL(filePath: path)), as: UTF8.self)
        let labels = Set(text.split(separator: "\n").map { $0.split(separator: " ")[0] })
        #expect(labels.isSuperset(of: ["CLIENT_HANDSHAKE_TRAFFIC_SECRET", "CLIENT_TRAFFIC_SECRET_0"]), "\(labels)")
        var facts = stat()
        #expect(stat(path, &facts) == 0 && facts.st_mode & 0o777 == 0o600)
        for path in ["", "a\u{0}b"] {
            #expect(throws: NetworkError.self) { try Session.Configuration { $0.tls.keyLogFile = path }.validate() }
        }
    }

    /// An obstacle to a key log.
    enum Obstacle: CaseIterable { case pipe, pipeWithReader, link, readable }

    /// An unusable file neither blocks nor fails the request; it stays unchanged, and an event reports it.
    @Test(arguments: Obstacle.allCases) func keyLogFileThatIsUnusableIsReported(_ obstacle: Obstacle) async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "curlew-\(UUID())").path
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let (path, body) = (folder + "/keys", folder + "/body")
        try Data("hello".utf8).write(to: URL(filePath: body))
        var reader: CInt = -1
        defer { if reader >= 0 { close(reader) } }
        switch obstacle {
        case .pipe: #expect(mkfifo(path, 0o600) == 0)
        case .pipeWithReader:
            #expect(mkfifo(path, 0o600) == 0)
            reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
        case .link: #expect(symlink(body, path) == 0)
        case .readable:
            try Data().write(to: URL(filePath: path))
            #expect(chmod(path, 0o644) == 0)
        }
        let reason =
            switch obstacle {
            case .pipe, .pipeWithReader: "it is not a regular file"
            case .link: "it is a symbolic link"
            case .readable: "other users can read or write it (chmod 600 it)"
            }
        let server = try server()
        let session = try session { $0.tls.keyLogFile = path }
        let reported = Task {
            for await case .keyLogNotWritten(path: path, let reason) in session.events { return reason }
            return ""
        }
        while session.core.relay.isObserved == false { await Task.yield() }
        var request = Request(.post, server.url("/"))
        request.body = .file(body)
        _ = try await session.data(for: request)
        #expect(await reported.value == reason)
        #expect(try Data(contentsOf: URL(filePath: body)) == Data("hello".utf8))
        // Foundation's Data(contentsOf:) leaks for an empty file.
        if obstacle == .readable { #expect(try DiskFile.contents(of: path, upTo: 100) == []) }
    }

    @Test func configurationRoundTripOmitsTheKeyLogFile() throws {
        let configuration = Session.Configuration {
            $0.tls = Session.Configuration.TLS(
                minimumVersion: .v1_3, isRequired: true, ciphers: "HIGH", cipherSuites: "TLS_AES_128_GCM_SHA256",
                negotiatesProtocol: false, serverNames: ["a": "b"], keyLogFile: "/x")
            $0.tcp.addresses = ["a": ["::1"]]
        }
        let data = try JSONEncoder().encode(configuration)
        var read = try JSONDecoder().decode(Session.Configuration.self, from: data)
        #expect(read.tls.keyLogFile == nil && !String(decoding: data, as: UTF8.self).contains("/x"))
        read.tls.keyLogFile = "/x"
        #expect(read == configuration)
    }

    @Test func metricsContainTheServerCertificate() async throws {
        let identity = try authority.issue()
        let server = try MockServer(tls: identity) { _ in .text("x") }
        server.on("GET", "/closing", .text("x").closing())
        let session = try session { _ in }
        for (path, isResumed) in [("/", false), ("/", false), ("/closing", false), ("/", true)] {
            let metrics = try await session.transfer(Request(server.url(path))).response().metrics
            #expect(metrics.serverCertificate?.der == identity.certificateDER)
            #expect(metrics.isTLSSessionResumed == isResumed)
        }
        server.on("GET", "/moved", .redirect(to: "/"))
        let head = try await session.data(for: Request(server.url("/moved"))).1
        #expect(head.history.first?.metrics.serverCertificate?.der == identity.certificateDER)
        let events = session.events
        _ = try await session.data(for: Request(server.url("/")))
        for await case .transfer(let event) in events {
            guard case .metrics(let metrics) = event.kind else { continue }
            #expect(metrics.serverCertificate?.der == identity.certificateDER)
            break
        }
        let plain = try MockServer { _ in .text("x") }
        let metrics = try await session.transfer(Request(plain.url("/"))).response().metrics
        #expect(metrics.serverCertificate == nil)
    }
}
