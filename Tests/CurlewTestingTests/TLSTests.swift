// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewShims
import CurlewTesting
import Testing

@Suite(.timeLimit(.minutes(5)))
struct TLSTests {
    private func status(
        _ identity: TestIdentity, trusting pem: String, host: String = "localhost"
    ) throws -> Int {
        let server = try MockServer(tls: identity)
        let client = try WireClient(server, tls: SecureSettings(authorityPEM: pem, host: host))
        return try client.exchange("GET", "/").status
    }

    @Test func handshakeResultsAreRecorded() throws {
        let authority = try TestAuthority()
        let server = try MockServer(tls: authority.issue())
        #expect(server.origin == "https://localhost:\(server.port)")
        let client = try WireClient(server, tls: SecureSettings(authorityPEM: authority.certificatePEM))
        #expect(client.applicationProtocol == "http/1.1")
        _ = try client.exchange("GET", "/")
        let tls = try #require(server.requests.first?.tls)
        #expect(tls.version == "TLSv1.3" && !tls.isResumed && tls.serverName == "localhost")
        #expect(tls.applicationProtocol == "http/1.1" && tls.clientCertificate == nil)

        let plain = SecureSettings(authorityPEM: authority.certificatePEM, host: "127.0.0.1", offersHTTP: false)
        _ = try WireClient(server, tls: plain).exchange("GET", "/")
        let other = try #require(server.requests.last?.tls)
        #expect(other.serverName == nil && other.applicationProtocol == nil)
    }

    @Test(arguments: [TLS1_2_VERSION, TLS1_3_VERSION])
    func sessionResumptionFollowsTheOption(version: Int32) throws {
        let authority = try TestAuthority()
        for allows in [true, false] {
            var options = MockServer.Options()
            options.tls.allowsResumption = allows
            let server = try MockServer(tls: authority.issue(), options: options)
            var settings = SecureSettings(authorityPEM: authority.certificatePEM, maximumVersion: version)
            let client = try WireClient(server, tls: settings)
            _ = try client.exchange("GET", "/")
            settings.session = client.session
            _ = try WireClient(server, tls: settings).exchange("GET", "/")
            #expect(server.requests.map { $0.tls?.isResumed } == [false, allows])
        }
    }

    @Test func tlsVersionLimitsAreEnforced() throws {
        let authority = try TestAuthority()
        var options = MockServer.Options()
        options.tls.minimumVersion = .v1_3
        let modern = try MockServer(tls: authority.issue(), options: options)
        var settings = SecureSettings(authorityPEM: authority.certificatePEM, maximumVersion: TLS1_2_VERSION)
        #expect(throws: WireError.handshakeFailed) { try WireClient(modern, tls: settings) }

        options.tls.minimumVersion = .v1_0
        options.tls.maximumVersion = .v1_1
        let ancient = try MockServer(tls: authority.issue(), options: options)
        #expect(throws: WireError.handshakeFailed) { try WireClient(ancient, tls: settings) }
        settings.maximumVersion = TLS1_1_VERSION
        _ = try WireClient(ancient, tls: settings).exchange("GET", "/")
        #expect(ancient.requests.map { $0.tls?.version } == ["TLSv1.1"])
    }

    @Test func validCertificatesAreTrusted() throws {
        let root = try TestAuthority()
        #expect(try status(root.issue(), trusting: root.certificatePEM) == 404)
        #expect(try status(root.issue(), trusting: root.certificatePEM, host: "127.0.0.1") == 404)
        #expect(try status(root.issue(hosts: ["*.a.test"]), trusting: root.certificatePEM, host: "x.a.test") == 404)
        let deep = try root.intermediate().intermediate(commonName: "Second")
        #expect(try status(deep.issue(), trusting: root.certificatePEM) == 404)
        let own = try TestIdentity.selfSigned()
        #expect(try status(own, trusting: own.certificatePEM) == 404)
    }

    @Test func invalidCertificatesAreRejected() throws {
        let root = try TestAuthority()
        let bad = try [
            root.issue(validity: .expired), root.issue(validity: .notYetValid), root.issue(hosts: ["wrong.test"]),
            TestAuthority().issue(), TestIdentity.selfSigned(),
        ]
        for identity in bad {
            #expect(throws: WireError.handshakeFailed) { try status(identity, trusting: root.certificatePEM) }
        }
        let named = try root.issue(hosts: [], commonName: "localhost")
        #expect(throws: WireError.handshakeFailed) {
            try status(named, trusting: root.certificatePEM, host: "127.0.0.1")
        }
    }

    @Test func identityPropertiesMatchTheCertificate() throws {
        let root = try TestAuthority()
        let middle = try root.intermediate()
        let identity = try middle.issue()
        #expect(identity.chainPEM == identity.certificatePEM + middle.certificatePEM)
        #expect(identity.privateKeyPEM.hasPrefix("-----BEGIN PRIVATE KEY-----"))
        #expect(identity.certificateDER.starts(with: [0x30, 0x82]) && root.certificateDER.starts(with: [0x30, 0x82]))
        #expect(identity.publicKeySHA256.count == 32 && identity.publicKeySHA256 != middle.publicKeySHA256)
        #expect(try middle.issue().publicKeySHA256 != identity.publicKeySHA256)
        // A P-256 key has a SubjectPublicKeyInfo of 91 bytes, which the certificate contains unchanged.
        let der = identity.certificateDER
        let found = (0..<(der.count - 91)).contains { start in
            SHA256Stream.hex(of: der[start..<(start + 91)]) == hex(identity.publicKeySHA256)
        }
        #expect(found)
    }

    private func hex(_ bytes: [UInt8]) -> String {
        bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }

    @Test func requiredClientCertificateIsVerified() throws {
        let (root, clients) = (try TestAuthority(), try TestAuthority(commonName: "Clients"))
        var options = MockServer.Options()
        options.tls.clientAuthority = clients
        let server = try MockServer(tls: root.issue(), options: options)
        let identity = try clients.issue(hosts: [], commonName: "Ada")
        var settings = SecureSettings(authorityPEM: root.certificatePEM, identity: identity)
        _ = try WireClient(server, tls: settings).exchange("GET", "/")
        #expect(server.requests.map { $0.tls?.clientCertificate } == [identity.certificateDER])
        for stranger in [nil, try root.issue()] {
            settings.identity = stranger
            #expect(throws: WireError.self) { try WireClient(server, tls: settings).exchange("GET", "/") }
        }
        #expect(server.requests.count == 1)
    }

    @Test(arguments: [(SocketFault.close, Ending.closeNotify), (.cut, .fin), (.reset, .reset)])
    func faultsEndTheTLSConnection(fault: SocketFault, ending: Ending) throws {
        let authority = try TestAuthority()
        let server = try MockServer(tls: authority.issue())
        server.on("GET", "/", .text("0123456789").fault(fault, at: .body(4)))
        let client = try WireClient(server, tls: SecureSettings(authorityPEM: authority.certificatePEM))
        try client.request("GET", "/")
        _ = try client.head()
        #expect(try client.rest() == (Array("0123".utf8), ending))
    }

    @Test func stalledHandshakeEndsWithStop() async throws {
        let gate = Gate()
        var options = MockServer.Options()
        options.onAccept = { _ in [.stall(gate)] }
        let authority = try TestAuthority()
        let server = try MockServer(tls: authority.issue(), options: options)
        // The server does not respond to the client's hello, so a plain connection is enough for this test.
        let client = try WireClient(server)
        try client.send([22, 3, 1])
        await gate.waitUntilReached()
        #expect(client.isQuiet)
        server.stop()
        #expect(server.openConnections == 0)
    }

    @Test func plainClientDoesNotStopTheServer() async throws {
        let authority = try TestAuthority()
        let server = try MockServer(tls: authority.issue())
        let client = try WireClient(server)
        try client.request("GET", "/")
        _ = try client.rest()
        #expect(await server.waitUntil(openConnections: 0))
        let settings = SecureSettings(authorityPEM: authority.certificatePEM)
        #expect(try WireClient(server, tls: settings).exchange("GET", "/").status == 404)
    }

    @Test func largeBodiesPassInBothDirections() throws {
        let pattern = PatternBody(seed: 5, length: 5_000_000)
        let authority = try TestAuthority()
        let server = try MockServer(tls: authority.issue())
        server.on("PUT", "/", .pattern(pattern))
        let client = try WireClient(server, tls: SecureSettings(authorityPEM: authority.certificatePEM))
        try client.send("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: \(pattern.length)\r\n\r\n")
        try client.send(pattern.bytes)
        #expect(SHA256Stream.hex(of: try client.response().body) == pattern.sha256)
        #expect(server.requests.map(\.bodySHA256) == [pattern.sha256])
    }
}
