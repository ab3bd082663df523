// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewTesting
import FoundationEssentials
import Testing

@testable import Curlew

/// Pinned keys, OCSP responses, revocation lists and client certificates with nginx.
@Suite(.enabledIfInstalled(.nginx), .peer(.nginx), .timeLimit(.minutes(5)))
struct NginxTrustTests {
    private let server: NginxServer
    private let client: ClientIdentity

    init() throws {
        server = try NginxServer(.init(isStrict: true))
        let made = try server.authority.issue(CertificateOptions(commonName: "client", hosts: []))
        client = try ClientIdentity(certificates: made.chainPEM, key: made.privateKeyPEM)
    }

    private static let versions: [Session.Configuration.TLS.Version] = [.v1_2, .v1_3]

    private func pins(_ pin: Certificate.PublicKeyHash) throws -> PinnedPublicKeys {
        try PinnedPublicKeys(
            [pin], withoutBackup: "test",
            chain: .required(.only([Certificate(server.authority.certificate)])))
    }

    private func text(
        _ trust: any TrustEvaluator, _ version: Session.Configuration.TLS.Version, isHTTP2: Bool = true
    ) async throws -> String {
        let session = Session(trust: trust, identities: .always(client)) {
            $0.tls.maximumVersion = version
            $0.http.version = isHTTP2 ? .automatic : .http1Only
        }
        let (data, head) = try await session.data(for: Request(server.url(.secure, "/who")))
        return "\(head.status.code) \(String(decoding: data, as: UTF8.self))"
    }

    @Test(arguments: versions)
    func pinnedKeysAndClientCertificatesAreAccepted(_ version: Session.Configuration.TLS.Version) async throws {
        let own = try pins(Certificate.PublicKeyHash(server.authority.certificate))
        for isHTTP2 in [false, true] {
            let text = try await text(own, version, isHTTP2: isHTTP2)
            #expect(text == "200 CN=client,O=Test Certificates TLSv\(version.rawValue)")
        }
        let error = try await networkError { try await self.text(pins(.unknown), version) }
        #expect(error.kind == .untrusted && (error.cause as? TrustFailure)?.rule == .pin)
        // nginx completes the handshake without a client certificate and rejects the request with a 400 response.
        let anonymous = Session(trust: own)
        let (_, head) = try await anonymous.data(for: Request(server.url(.secure, "/who")))
        #expect(head.status == .badRequest)
    }

    @Test(arguments: versions)
    func requiredOCSPResponseAndRevocationListAreAccepted(_ version: Session.Configuration.TLS.Version) async throws {
        let own = try pins(Certificate.PublicKeyHash(server.authority.certificate))
        let text = try await text(own.checkingRevocation(ocspResponse: .required), version)
        #expect(text.hasPrefix("200 "))
        let list = try Certificate.RevocationList(der: server.authority.revocationList().der)
        #expect(try await self.text(own.checkingRevocation(lists: [list]), version).hasPrefix("200 "))
    }
}
