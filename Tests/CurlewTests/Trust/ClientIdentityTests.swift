// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewTesting
import FoundationEssentials
import Testing

@testable import Curlew

/// Client certificates for servers that request one.
@Suite(.timeLimit(.minutes(5)))
struct ClientIdentityTests {
    private let authority: TestAuthority
    private let client: TestIdentity

    init() throws {
        authority = try TestAuthority()
        client = try authority.issue(CertificateOptions(commonName: "client one", hosts: []))
    }

    private var trust: CustomRoots { get throws { try CustomRoots(pem: authority.certificatePEM) } }

    private func server(_ configure: (inout MockServer.TLSOptions) -> Void = { _ in }) throws -> MockServer {
        var options = MockServer.Options()
        options.tls.clientAuthority = authority
        configure(&options.tls)
        return try MockServer(tls: authority.issue(), options: options) { _ in .text("x") }
    }

    private func identity(_ made: TestIdentity) throws -> ClientIdentity {
        try ClientIdentity(certificates: made.chainPEM, key: made.privateKeyPEM)
    }

    private func session(
        _ identity: ClientIdentity?, _ version: Session.Configuration.TLS.Version = .v1_3
    ) throws -> Session {
        Session(trust: try trust, identities: identity.map { .always($0) } ?? .none) { $0.tls.maximumVersion = version }
    }

    // MARK: Forms

    @Test func identityFormatsAreRead() async throws {
        let server = try server()
        let folder = FileManager.default.temporaryDirectory.appending(path: "curlew-\(UUID())").path
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let pkcs12 = try client.pkcs12(passphrase: "secret")
        try Data(pkcs12).write(to: URL(filePath: folder + "/client.p12"))
        try Data(client.chainPEM.utf8).write(to: URL(filePath: folder + "/client.pem"))
        let encrypted = try client.privateKeyPEM(passphrase: "secret")
        try Data(encrypted.utf8).write(to: URL(filePath: folder + "/client.key"))
        let forms = [
            try identity(client),
            try ClientIdentity(certificates: client.chainPEM, key: encrypted, passphrase: "secret"),
            // The certificate of the key may be at any position.
            try ClientIdentity(certificates: authority.certificatePEM + client.chainPEM, key: client.privateKeyPEM),
            try ClientIdentity(pkcs12: pkcs12, passphrase: "secret"),
            try ClientIdentity(pkcs12File: folder + "/client.p12", passphrase: "secret"),
            try ClientIdentity(
                certificateFile: folder + "/client.pem", keyFile: folder + "/client.key", passphrase: "secret"),
        ]
        for (number, identity) in forms.enumerated() {
            #expect(try await session(identity).data(for: Request(server.url("/"))).1.status == .ok)
            #expect(identity.certificate.der == client.certificateDER, "\(number)")
            #expect(identity.description.contains("CN=client one"))
            #expect("\(Mirror(reflecting: identity).children.map(\.value))".contains("CN=client one"))
        }
        #expect(server.requests.map { $0.tls?.clientCommonName } == [String?](repeating: "client one", count: 6))
        #expect(forms[2].chain.map(\.der) == [authority.certificateDER] && forms[0].chain.isEmpty)
        #expect(forms[0] == forms[1] && forms[0] != forms[4] && Set(forms).count >= 3)
    }

    @Test func invalidIdentitiesThrow() throws {
        let other = try authority.issue()
        let encrypted = try client.privateKeyPEM(passphrase: "secret")
        let keys = ["", "x", other.privateKeyPEM, encrypted, String(client.privateKeyPEM.dropLast(40))]
        for key in keys {
            let error = #expect(throws: TrustFailure.InvalidPolicy.self) {
                try ClientIdentity(certificates: client.chainPEM, key: key)
            }
            #expect(error?.hint != nil && error?.description.contains("secret") == false)
        }
        #expect(throws: TrustFailure.InvalidPolicy.self) {
            try ClientIdentity(certificates: client.chainPEM, key: encrypted, passphrase: "wrong")
        }
        #expect(throws: TrustFailure.InvalidPolicy.self) {
            try ClientIdentity(certificates: "", key: client.privateKeyPEM)
        }
        let weak = try authority.issue(CertificateOptions(hosts: [], key: .rsa(1024)))
        let refused = #expect(throws: TrustFailure.InvalidPolicy.self) { try identity(weak) }
        #expect(refused?.message.contains("too small") == true, "\(refused as Any)")
        let old = try TestAuthority().intermediate(CertificateOptions(commonName: "old", digest: .sha1))
        #expect(throws: TrustFailure.InvalidPolicy.self) { try identity(old.issue(CertificateOptions(hosts: []))) }
        #expect(throws: TrustFailure.InvalidPolicy.self) {
            try ClientIdentity(certificates: client.chainPEM, key: encrypted, passphrase: "secret\0x")
        }
        let pkcs12 = try client.pkcs12(passphrase: "secret")
        #expect(throws: TrustFailure.InvalidPolicy.self) { try ClientIdentity(pkcs12: pkcs12, passphrase: "secret\0") }
        for bytes in [[], [0x30], pkcs12 + [0], Array(pkcs12.dropLast())] as [[UInt8]] {
            #expect(throws: TrustFailure.InvalidPolicy.self) { try ClientIdentity(pkcs12: bytes, passphrase: "secret") }
        }
        #expect(throws: TrustFailure.InvalidPolicy.self) { try ClientIdentity(pkcs12: pkcs12, passphrase: "wrong") }
        #expect(throws: TrustFailure.InvalidPolicy.self) { try ClientIdentity(pkcs12: pkcs12) }
        #expect(throws: TrustFailure.InvalidPolicy.self) { try ClientIdentity(pkcs12File: "/no/such.p12") }
        #expect(throws: TrustFailure.InvalidPolicy.self) {
            try ClientIdentity(certificateFile: "/no/a", keyFile: "/no/b")
        }
    }

    // MARK: Servers that request a certificate

    @Test(arguments: [Session.Configuration.TLS.Version.v1_2, .v1_3])
    func requiredClientCertificateIsVerified(_ version: Session.Configuration.TLS.Version) async throws {
        let server = try server()
        let intermediate = try authority.intermediate(commonName: "Client Authority")
        let identity = try identity(intermediate.issue(CertificateOptions(commonName: "below", hosts: [])))
        #expect(try await session(identity, version).data(for: Request(server.url("/"))).1.status == .ok)
        #expect(server.requests.first?.tls?.clientCommonName == "below")

        let expired = try authority.issue(CertificateOptions(commonName: "old", hosts: [], validity: .expired))
        let stranger = try TestAuthority().issue(CertificateOptions(commonName: "stranger", hosts: []))
        let cases: [(identity: ClientIdentity?, words: String)] = [
            (nil, "no identity was given"), (try self.identity(expired), "expired"),
            (try self.identity(stranger), "does not know its authority"),
        ]
        for (identity, words) in cases {
            let request = Request(.post, server.url("/"), body: .text("x"))
            let error = try await networkError { try await session(identity, version).data(for: request) }
            #expect(error.kind == .tlsFailed && error.phase == .securing, "\(error)")
            #expect(error.message.contains(words), "\(error)")
            #expect(error.hint?.contains("CN=Test Root") == true, "\(error)")
            #expect(error.retriability == .never)
        }
        #expect(server.requestCount == 1)
    }

    @Test func optionalClientCertificateIsSentIfPresent() async throws {
        let server = try server { $0.requiresClientCertificate = false }
        #expect(try await session(nil).data(for: Request(server.url("/"))).1.status == .ok)
        #expect(try await session(identity(client)).data(for: Request(server.url("/"))).1.status == .ok)
        #expect(server.requests.map { $0.tls?.clientCommonName } == [nil, "client one"])
    }

    @Test func clientIdentityDependsOnTheHost() async throws {
        let server = try server { $0.requiresClientCertificate = false }
        let two = try authority.issue(CertificateOptions(commonName: "client two", hosts: []))
        let identities = try ClientIdentities(["localhost": identity(client)])
        let more = try ClientIdentities(["127.0.0.1": identity(two)])
        let session = Session(trust: try trust, identities: identities)
        let other = Session(trust: try trust, identities: more)
        for session in [session, other, session.copy()] {
            for host in ["localhost", "127.0.0.1"] {
                _ = try await session.data(for: Request("https://\(host):\(server.port)/"))
            }
        }
        let seen = server.requests.map { $0.tls?.clientCommonName }
        #expect(seen == ["client one", nil, nil, "client two", "client one", nil])
        #expect(ClientIdentities.none.isEmpty && ClientIdentities.none["localhost"] == nil)
    }

    // MARK: Reload

    /// A new certificate makes a new trust domain, which uses no connection or TLS session of the old one.
    @Test(arguments: [Session.Configuration.TLS.Version.v1_2, .v1_3])
    func changedIdentityFileIsReloaded(_ version: Session.Configuration.TLS.Version) async throws {
        let path = FileManager.default.temporaryDirectory.appending(path: "curlew-\(UUID()).pem").path
        defer { try? FileManager.default.removeItem(atPath: path) }
        func write(_ text: String) throws {
            // An atomic write, as a careful program does it: the file is complete or absent.
            try Data(text.utf8).write(to: URL(filePath: path), options: .atomic)
        }
        try write(client.chainPEM + client.privateKeyPEM)
        let server = try server()
        let session = try session(ClientIdentity(certificateFile: path, keyFile: path), version)
        var events = session.events.makeAsyncIterator()
        func get() async throws -> Bool {
            try await session.transfer(Request(server.url("/"))).response().metrics.isConnectionReused
        }
        #expect(try await !get())
        #expect(try await get())
        let two = try authority.issue(CertificateOptions(commonName: "client two", hosts: []))
        try write(two.chainPEM + two.privateKeyPEM)
        #expect(try await !get())
        #expect(try await get())
        try write("half of " + two.chainPEM.prefix(100))
        #expect(try await get())
        #expect(try await get())
        var complaints = 0
        try write(client.chainPEM + client.privateKeyPEM)
        #expect(try await get(), "the connection of the first identity is reused")
        try await session.shutdown()
        while let event = await events.next() {
            if case .identityNotReloaded(let error) = event {
                complaints += 1
                #expect(error.message.hasPrefix(path), "\(event)")
            }
        }
        #expect(complaints == 1)
        let names = server.requests.map { $0.tls?.clientCommonName }
        #expect(names == ["client one", "client one"] + [String?](repeating: "client two", count: 4) + ["client one"])
        #expect(server.requests.allSatisfy { $0.tls?.isResumed == false })
    }

    @Test(arguments: [Session.Configuration.TLS.Version.v1_2, .v1_3])
    func identitiesShareNoTLSSessions(_ version: Session.Configuration.TLS.Version) async throws {
        let one = try authority.issue(CertificateOptions(commonName: "one", hosts: []))
        var options = MockServer.Options()
        options.tls.clientAuthority = authority
        options.tls.requiresClientCertificate = false
        let server = try MockServer(tls: authority.issue(), options: options) { _ in .text("x").closing() }
        let domains = TrustDomains(own: try trust, identities: .always(try identity(one)))
        let first = domains.domain(for: nil, host: "localhost")
        #expect(first !== domains.own && domains.domain(for: nil, host: nil) === domains.own)
        #expect(first === domains.domain(for: try trust, host: "localhost"))
        let path = FileManager.default.temporaryDirectory.appending(path: "curlew-\(UUID()).pem").path
        defer { try? FileManager.default.removeItem(atPath: path) }
        let two = try authority.issue(CertificateOptions(commonName: "two", hosts: []))
        var names: [String?] = []
        try Data((one.chainPEM + one.privateKeyPEM).utf8).write(to: URL(filePath: path), options: .atomic)
        let session = try session(ClientIdentity(certificateFile: path, keyFile: path), version)
        for made in [one, one, two, two, one] {
            try Data((made.chainPEM + made.privateKeyPEM).utf8).write(to: URL(filePath: path), options: .atomic)
            let metrics = try await session.transfer(Request(server.url("/"))).response().metrics
            names.append("\(metrics.isTLSSessionResumed)")
        }
        // Each identity resumes its own TLS session only.
        #expect(names == ["false", "true", "false", "true", "true"])
    }
}
