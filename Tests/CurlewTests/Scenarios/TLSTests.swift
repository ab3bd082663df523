// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting
import FoundationEssentials
import Testing

/// Trusted and refused servers; a refusal precedes the first byte of the request.
@Suite(.timeLimit(.minutes(5)))
struct TLSTests {
    /// A root, a server with a certificate of the root, and an evaluator that trusts the root.
    private struct Secured {
        let authority: TestAuthority
        let server: MockServer
        var roots: CustomRoots { get throws { try CustomRoots(pem: authority.certificatePEM) } }

        init(_ issue: (TestAuthority) throws -> TestIdentity = { try $0.issue() }) throws {
            authority = try TestAuthority()
            server = try MockServer(tls: issue(authority)) { request in .text("secure \(request.path)") }
        }
    }

    private func expectRefusal(
        _ server: MockServer, by trust: any TrustEvaluator, rule: TrustFailure.Rule,
        _ location: SourceLocation = #_sourceLocation
    ) async throws -> NetworkError {
        var request = Request(.post, server.url("/secret?q=1"), body: .text("secret"))
        request.trust = trust
        let error = try await networkError(location) { try await Session().data(for: request) }
        #expect(error.kind == .untrusted && error.phase == .securing, "\(error)", sourceLocation: location)
        let cause = try #require(error.cause as? TrustFailure, "\(error)", sourceLocation: location)
        #expect(cause.rule == rule, sourceLocation: location)
        #expect(error.exitCode == 77 && error.retriability == .never, sourceLocation: location)
        #expect(error.code == "curlew.untrusted.securing", sourceLocation: location)
        #expect(error.response == nil, sourceLocation: location)
        await server.waitUntil(openConnections: 0)
        #expect(server.requestCount == 0, sourceLocation: location)
        return error
    }

    @Test(arguments: [false, true]) func customRootsAreTrusted(_ addingToSystem: Bool) async throws {
        let secured = try Secured()
        let trust = try CustomRoots(pem: secured.authority.certificatePEM, addingToSystem: addingToSystem)
        let response = try await Session(trust: trust).transfer(Request(secured.server.url("/a"))).response()
        #expect(response.value == Data("secure /a".utf8))
        #expect(response.metrics.tlsVersion == "TLSv1.3")
        #expect(secured.server.requests.first?.tls?.version == "TLSv1.3")
        #expect(secured.server.requests.first?.tls?.serverName == "localhost")
    }

    @Test func customRootsFromDERAreTrusted() async throws {
        let secured = try Secured()
        let session = try Session(trust: CustomRoots(Certificate.all(in: secured.authority.certificateDER)))
        #expect(try await session.data(for: Request(secured.server.url("/"))).1.status == .ok)
    }

    @Test func chainWithIntermediateIsTrusted() async throws {
        let secured = try Secured { try $0.intermediate().issue() }
        let session = try Session(trust: secured.roots)
        #expect(try await session.data(for: Request(secured.server.url("/"))).1.status == .ok)
    }

    @Test func ipAddressInCertificateIsMatched() async throws {
        let secured = try Secured { try $0.issue(hosts: ["127.0.0.1"]) }
        let session = try Session(trust: secured.roots)
        let url = "https://127.0.0.1:\(secured.server.port)/"
        #expect(try await session.data(for: Request(url)).1.status == .ok)
        #expect(secured.server.requests.first?.tls?.serverName == nil)
        let other = try Secured { try $0.issue(hosts: ["127.0.0.1"]) }
        _ = try await expectRefusal(other.server, by: other.roots, rule: .hostName)
    }

    @Test func unknownRootIsRefused() async throws {
        let secured = try Secured()
        let error = try await expectRefusal(secured.server, by: SystemTrust(), rule: .chain)
        #expect(error.message.contains("not trusted"))
        let other = try TestAuthority()
        _ = try await expectRefusal(secured.server, by: try CustomRoots(pem: other.certificatePEM), rule: .chain)
        let both = try CustomRoots(pem: other.certificatePEM, addingToSystem: true)
        _ = try await expectRefusal(secured.server, by: both, rule: .chain)
    }

    @Test func certificateForAnotherHostIsRefused() async throws {
        let secured = try Secured { try $0.issue(hosts: ["elsewhere.test", "10.0.0.1"]) }
        let error = try await expectRefusal(secured.server, by: secured.roots, rule: .hostName)
        #expect(error.message.contains("localhost"))
    }

    @Test func commonNameIsNotAHostName() async throws {
        let secured = try Secured { try $0.issue(hosts: [], commonName: "localhost") }
        _ = try await expectRefusal(secured.server, by: secured.roots, rule: .hostName)
    }

    @Test(arguments: [CertificateValidity.expired, .notYetValid])
    func expiredAndFutureCertificatesAreRefused(_ validity: CertificateValidity) async throws {
        let secured = try Secured { try $0.issue(validity: validity) }
        let error = try await expectRefusal(secured.server, by: secured.roots, rule: .validity)
        #expect(error.message.contains(validity == .expired ? "expired" : "not yet valid"))
    }

    @Test func selfSignedCertificateIsTrustedOnlyAsCustomRoot() async throws {
        let identity = try TestIdentity.selfSigned()
        let server = try MockServer(tls: identity) { _ in .text("x") }
        _ = try await expectRefusal(server, by: SystemTrust(), rule: .chain)
        let session = try Session(trust: CustomRoots(pem: identity.certificatePEM))
        #expect(try await session.data(for: Request(server.url("/"))).1.status == .ok)
    }

    @Test func insecureTrustAcceptsEveryCertificate() async throws {
        let authority = try TestAuthority()
        let session = Session(trust: InsecureTrust(reason: "test"))
        for identity in [
            try TestIdentity.selfSigned(), try authority.issue(validity: .expired),
            try authority.issue(hosts: ["elsewhere.test"]),
        ] {
            let server = try MockServer(tls: identity) { _ in .text("x") }
            #expect(try await session.data(for: Request(server.url("/"))).1.status == .ok)
        }
    }

    @Test(arguments: [
        "", "garbage", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "\u{30}\u{1}",
    ])
    func invalidPEMThrowsInvalidTrust(_ pem: String) {
        let error = #expect(throws: TrustFailure.InvalidPolicy.self) { try CustomRoots(pem: pem) }
        #expect(error?.message.contains("certificate") == true)
        #expect(throws: TrustFailure.InvalidPolicy.self) { try CustomRoots([]) }
    }

    @Test func emptyRootsRefuseEveryServer() async throws {
        let secured = try Secured()
        _ = try await expectRefusal(secured.server, by: CustomRoots(.only([])), rule: .chain)
        let session = Session(trust: CustomRoots(.only([])))
        let plain = try MockServer { _ in .text("x") }
        #expect(try await session.data(for: Request(plain.url("/"))).1.status == .ok)
    }

    @Test func requestTrustOverridesSessionTrust() async throws {
        let secured = try Secured()
        let lax = try Session(trust: secured.roots)
        var request = Request(secured.server.url("/"))
        #expect(try await lax.data(for: request).1.status == .ok)
        request.trust = SystemTrust()
        #expect(try await networkError { try await lax.data(for: request) }.kind == .untrusted)
        let strict = Session()
        #expect(try await networkError { try await strict.data(for: request) }.kind == .untrusted)
        request.trust = try secured.roots
        #expect(try await strict.data(for: request).1.status == .ok)
        request.trust = nil
        #expect(try await networkError { try await strict.data(for: request) }.kind == .untrusted)
    }

    @Test func incompatibleTLSVersionsThrowTLSFailed() async throws {
        let authority = try TestAuthority()
        var options = MockServer.Options()
        options.tls.maximumVersion = .v1_2
        let server = try MockServer(tls: authority.issue(), options: options) { _ in .text("x") }
        let trust = try CustomRoots(pem: authority.certificatePEM)
        let modern = Session(trust: trust) { $0.tls.minimumVersion = .v1_3 }
        let error = try await networkError { try await modern.data(for: Request(server.url("/"))) }
        #expect(error.kind == .tlsFailed && error.phase == .securing)
        #expect(error.exitCode == 76 && error.engineCode == 35)
        #expect(server.requestCount == 0)
        let response = try await Session(trust: trust).transfer(Request(server.url("/"))).response()
        #expect(response.metrics.tlsVersion == "TLSv1.2")
    }

    @Test func outdatedTLSVersionsAreRefused() async throws {
        var options = MockServer.Options()
        options.tls.minimumVersion = .v1_0
        options.tls.maximumVersion = .v1_1
        let server = try MockServer(tls: TestIdentity.selfSigned(), options: options) { _ in .text("x") }
        let session = Session(trust: InsecureTrust(reason: "test"))
        let error = try await networkError { try await session.data(for: Request(server.url("/"))) }
        #expect(error.kind == .tlsFailed && error.phase == .securing)
    }

    @Test func maximumTLSVersionLimitsTheConnection() async throws {
        let secured = try Secured()
        let session = try Session(trust: secured.roots) { $0.tls.maximumVersion = .v1_2 }
        let response = try await session.transfer(Request(secured.server.url("/"))).response()
        #expect(response.metrics.tlsVersion == "TLSv1.2")
        #expect(secured.server.requests.first?.tls?.version == "TLSv1.2")
    }

    @Test func serverWithoutTLSThrowsTLSFailed() async throws {
        var options = MockServer.Options()
        options.onAccept = { _ in [.send(Array("HTTP/1.1 400 Bad Request\r\n\r\n".utf8)), .close] }
        let server = try MockServer(options: options)
        let session = Session(trust: InsecureTrust(reason: "test"))
        let url = "https://127.0.0.1:\(server.port)/"
        let error = try await networkError { try await session.data(for: Request(url)) }
        #expect(error.kind == .tlsFailed && error.phase == .securing)
        #expect(server.requestCount == 0)
    }

    @Test(arguments: [SocketFault.reset, .close]) func interruptedTLSHandshakeFails(_ fault: SocketFault) async throws {
        var options = MockServer.Options()
        options.onAccept = { _ in [fault] }
        let server = try MockServer(tls: TestIdentity.selfSigned(), options: options)
        let session = Session(trust: InsecureTrust(reason: "test"))
        let error = try await networkError { try await session.data(for: Request(server.url("/"))) }
        // The reset may arrive before the connection is established.
        let wasEarly = error.kind == .cannotConnect && error.phase == .connecting
        let wasLate = error.kind == .connectionLost && error.phase == .securing
        #expect(wasLate || wasEarly, "\(error)")
        #expect(server.requestCount == 0)
    }

    @Test(arguments: [SocketFault.cut, .close]) func truncatedBodyThrowsConnectionLost(_ fault: SocketFault)
        async throws
    {
        let identity = try TestIdentity.selfSigned()
        let body = PatternBody(seed: 1, length: 50_000)
        let server = try MockServer(tls: identity) { _ in .pattern(body).fault(fault, at: .body(20_000)) }
        let session = Session(trust: InsecureTrust(reason: "test"))
        let error = try await networkError { try await session.data(for: Request(server.url("/"))) }
        #expect(error.kind == .connectionLost && error.phase == .receiving)
        #expect(error.response?.status == .ok && error.body == body.bytes(in: 0..<4096))
    }

    @Test func truncatedBodyWithoutLengthThrowsConnectionLost() async throws {
        let server = try MockServer(tls: TestIdentity.selfSigned()) { _ in
            .pattern(PatternBody(seed: 1, length: 50_000)).untilClose().fault(.cut, at: .body(20_000))
        }
        let session = Session(trust: InsecureTrust(reason: "test"))
        // Without close_notify, an attacker on the network may have truncated the body (RFC 8446 §6.1, RFC 9112 §9.8).
        let error = try await networkError { try await session.data(for: Request(server.url("/"))) }
        #expect(error.kind == .connectionLost && error.phase == .receiving)
    }

    @Test func largeBodiesPassInBothDirections() async throws {
        let secured = try Secured()
        let body = PatternBody(seed: 1, length: 5 << 20)
        secured.server.on("POST", "/") { _ in .pattern(body) }
        let session = try Session(trust: secured.roots)
        let source = ChunkSource(body: body)
        let request = Request(.post, secured.server.url("/"), body: .stream(source))
        let record = try await StreamRecord(session.transfer(request))
        #expect(record.body.sha256 == body.sha256)
        #expect(secured.server.digests == [body.sha256])
    }
}
