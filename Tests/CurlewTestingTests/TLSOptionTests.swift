// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewShims
import CurlewTesting
import Testing

@Suite(.timeLimit(.minutes(5)))
struct TLSOptionTests {
    @Test(arguments: [TLS1_2_VERSION, TLS1_3_VERSION])
    func ocspResponseIsStapledOnRequest(version: Int32) throws {
        let root = try TestAuthority()
        let identity = try root.issue()
        var options = MockServer.Options()
        options.tls.ocspResponse = try root.ocspResponse(for: identity.certificate)
        let server = try MockServer(tls: identity, options: options)
        var settings = SecureSettings(authorityPEM: root.certificatePEM, maximumVersion: version)
        for asks in [true, false] {
            settings.requestsOCSPResponse = asks
            let client = try WireClient(server, tls: settings)
            _ = try client.exchange("GET", "/")
            #expect(client.ocspResponse == (asks ? options.tls.ocspResponse : nil))
        }
        settings.requestsOCSPResponse = true
        let bare = try MockServer(tls: identity)
        let client = try WireClient(bare, tls: settings)
        _ = try client.exchange("GET", "/")
        #expect(client.ocspResponse == nil)
        #expect((server.requests + bare.requests).map { $0.tls?.requestedOCSPResponse } == [true, false, true])
    }

    @Test func givenChainIsServedUnchanged() throws {
        let root = try TestAuthority()
        let identity = try root.intermediate().intermediate().issue()
        let stranger = try TestAuthority().certificate
        let orders = [
            identity.intermediates, identity.intermediates.reversed(),
            [stranger] + identity.intermediates + [root.certificate],
        ]
        for order in orders {
            let shown = identity.serving(intermediates: order)
            let client = try WireClient(
                MockServer(tls: shown), tls: SecureSettings(authorityPEM: root.certificatePEM))
            #expect(client.servedChain == [identity.certificateDER] + order.map(\.der))
        }
        var options = MockServer.Options()
        // By default, OpenSSL completes the chain from the store of this authority.
        options.tls.clientAuthority = root
        options.tls.requiresClientCertificate = false
        let incomplete = try MockServer(tls: identity.serving(intermediates: []), options: options)
        #expect(throws: WireError.handshakeFailed) {
            try WireClient(incomplete, tls: SecureSettings(authorityPEM: root.certificatePEM))
        }
        let direct = try MockServer(tls: root.issue(), options: options)
        #expect(try WireClient(direct, tls: SecureSettings(authorityPEM: root.certificatePEM)).servedChain.count == 1)
    }

    @Test(arguments: [
        CertificateOptions(key: .rsa(1024)), CertificateOptions(digest: .sha1),
        CertificateOptions(key: .rsa(2048), digest: .md5),
    ])
    func weakCertificatesNeedALowerSecurityLevel(weak: CertificateOptions) throws {
        let root = try TestAuthority(key: .rsa(2048))
        let identity = try root.intermediate(weak).issue(weak)
        #expect(throws: TestingError.self) { try MockServer(tls: identity) }
        var options = MockServer.Options()
        options.tls.securityLevel = 0
        let server = try MockServer(tls: identity, options: options)
        var settings = SecureSettings(authorityPEM: root.certificatePEM)
        #expect(throws: WireError.handshakeFailed) { try WireClient(server, tls: settings) }
        settings.securityLevel = 0
        #expect(try WireClient(server, tls: settings).exchange("GET", "/").status == 404)
    }

    @Test func cipherOptionsLimitTheHandshake() throws {
        let root = try TestAuthority()
        var options = MockServer.Options()
        options.tls.ciphers = "ECDHE-ECDSA-AES128-GCM-SHA256"
        options.tls.cipherSuites = "TLS_AES_128_GCM_SHA256"
        let server = try MockServer(tls: root.issue(), options: options)
        var settings = SecureSettings(authorityPEM: root.certificatePEM)
        _ = try WireClient(server, tls: settings).exchange("GET", "/")
        settings.maximumVersion = TLS1_2_VERSION
        _ = try WireClient(server, tls: settings).exchange("GET", "/")
        #expect(server.requests.map { $0.tls?.cipher } == ["TLS_AES_128_GCM_SHA256", "ECDHE-ECDSA-AES128-GCM-SHA256"])
        settings.ciphers = "ECDHE-ECDSA-AES256-GCM-SHA384"
        #expect(throws: WireError.handshakeFailed) { try WireClient(server, tls: settings) }
        options.tls.ciphers = "NO-SUCH-CIPHER"
        #expect(throws: TestingError.self) { try MockServer(tls: root.issue(), options: options) }
    }

    @Test func optionalClientCertificateIsReported() throws {
        let (root, clients) = (try TestAuthority(), try TestAuthority(commonName: "Clients").intermediate())
        var options = MockServer.Options()
        options.tls.clientAuthority = clients
        options.tls.requiresClientCertificate = false
        let server = try MockServer(tls: root.issue(), options: options)
        let team = try clients.intermediate(commonName: "Team")
        let identity = try team.issue(CertificateOptions(commonName: "Ada", hosts: []))
        let shown = identity.serving(intermediates: [team.certificate])
        var settings = SecureSettings(authorityPEM: root.certificatePEM)
        for one in [nil, shown, try clients.issue()] {
            settings.identity = one
            _ = try WireClient(server, tls: settings).exchange("GET", "/")
        }
        let tls = server.requests.compactMap(\.tls)
        #expect(tls.map(\.clientCommonName) == [nil, "Ada", nil])
        #expect(tls.map { $0.clientCertificate == nil } == [true, false, false])
        #expect(tls.map { $0.clientIntermediates.first } == [nil, team.certificateDER, clients.certificateDER])
        settings.identity = try root.issue()
        #expect(throws: WireError.self) { try WireClient(server, tls: settings).exchange("GET", "/") }
    }

    @Test(arguments: [TLS1_2_VERSION, TLS1_3_VERSION])
    func rejectedClientCertificatesGetAnAlert(version: Int32) async throws {
        let (root, clients) = (try TestAuthority(), try TestAuthority(commonName: "Clients"))
        let revoked = try clients.issue()
        var options = MockServer.Options()
        options.tls.clientAuthority = clients
        options.tls.clientRevocationLists = [try clients.revocationList(revoking: [revoked.certificate])]
        let server = try MockServer(tls: root.issue(), options: options)
        let purpose = CertificateOptions(extendedKeyUsages: [.serverAuth])
        let missing = version == TLS1_3_VERSION ? "tlsv13 alert certificate required" : "sslv3 alert handshake failure"
        let cases: [(TestIdentity?, alert: String, failure: String)] = [
            (revoked, "sslv3 alert certificate revoked", "certificate revoked"),
            (try clients.issue(validity: .expired), "sslv3 alert certificate expired", "certificate has expired"),
            (try TestAuthority().issue(), "tlsv1 alert unknown ca", "unable to get local issuer certificate"),
            (try clients.issue(purpose), "sslv3 alert unsupported certificate", "unsuitable certificate purpose"),
            (nil, missing, "peer did not return a certificate"),
        ]
        for (index, (identity, alert, failure)) in cases.enumerated() {
            var settings = SecureSettings(authorityPEM: root.certificatePEM, maximumVersion: version)
            settings.identity = identity
            settings.reasons = Reasons()
            #expect(throws: WireError.self) { try WireClient(server, tls: settings).exchange("GET", "/") }
            #expect(settings.reasons?.list.first == alert)
            #expect(await server.waitUntil(tlsFailureCount: index + 1))
            #expect(server.tlsFailures.last?.hasSuffix(failure) == true)
        }
        var settings = SecureSettings(authorityPEM: root.certificatePEM, maximumVersion: version)
        settings.identity = try clients.issue()
        #expect(try WireClient(server, tls: settings).exchange("GET", "/").status == 404)
        #expect(server.tlsFailures.count == cases.count && server.requests.count == 1)
    }

    @Test func alertsOfClientsAreRecorded() async throws {
        let root = try TestAuthority()
        let server = try MockServer(tls: root.issue(validity: .expired))
        let second = try HTTP2Server(tls: root.issue())
        let stranger = try TestAuthority().certificatePEM
        _ = try? WireClient(port: server.port, tls: SecureSettings(authorityPEM: root.certificatePEM))
        #expect(await server.waitUntil(tlsFailureCount: 1))
        _ = try? WireClient(port: second.port, tls: SecureSettings(authorityPEM: stranger))
        #expect(await second.waitUntil(tlsFailureCount: 1))
        try WireClient(port: server.port).close()
        #expect(await server.waitUntil(tlsFailureCount: 2))
        #expect(server.tlsFailures == ["sslv3 alert certificate expired", "unexpected eof while reading"])
        #expect(second.tlsFailures == ["tlsv1 alert unknown ca"])
    }

    @Test func recordedTLSFailuresAreLimitedToAHundred() async throws {
        let server = try MockServer(tls: TestIdentity.selfSigned())
        for _ in 0..<120 { try WireClient(port: server.port).close() }
        #expect(await server.waitUntil(tlsFailureCount: 120))
        #expect(server.tlsFailures.count == 100)
    }
}
