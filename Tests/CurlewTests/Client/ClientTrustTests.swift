// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewTesting
import FoundationEssentials
import Testing

@testable import Curlew

/// Trust evaluators of clients and sessions.
@Suite(.timeLimit(.minutes(5)))
struct ClientTrustTests {
    private let authority: TestAuthority
    private let server: MockServer
    private let roots: CustomRoots

    init() throws {
        authority = try TestAuthority()
        server = try MockServer(tls: authority.issue()) { _ in .text("judged") }
        roots = try CustomRoots(pem: authority.certificatePEM)
    }

    private func kind(_ api: some APIClient) async throws -> NetworkError.Kind {
        try await networkError { try await api.get("x", using: .text) }.kind
    }

    /// The client's evaluator overrides the session's; a client without an evaluator uses the session's.
    @Test func clientsEvaluatorOverridesTheSessions() async throws {
        let base = try BaseURL(server.origin)
        let withFixedAddresses = Session(trust: roots)
        let strange = try CustomRoots(pem: TestAuthority().certificatePEM)
        #expect(try await Client(base, session: withFixedAddresses).get("x", using: .text) == "judged")
        #expect(try await kind(Client(base, session: Session())) == .untrusted)
        #expect(try await Client(base, trust: roots, session: Session()).get("x", using: .text) == "judged")
        #expect(try await kind(Client(base, trust: strange, session: withFixedAddresses)) == .untrusted)
        #expect(try await kind(Client(base, trust: SystemTrust(), session: withFixedAddresses)) == .untrusted)
    }

    /// A client with pins rejects base URLs without TLS.
    @Test func pinningRequiresHTTPS() async throws {
        let own = try PinnedPublicKeys(
            [Certificate.PublicKeyHash(authority.certificate)], withoutBackup: "test",
            chain: .required(.only([Certificate(authority.certificate)])))
        let api = try Client(BaseURL(server.origin), trust: own, session: Session())
        #expect(try await api.get("x", using: .text) == "judged")
        for base: BaseURL in ["http://h.test", "http://user@h.test/x"] {
            let error = #expect(throws: NetworkError.self) { try Client(base, trust: own) }
            #expect(error?.kind == .invalidRequest && error?.hint?.contains("https") == true)
        }
        let plain = try MockServer { _ in .text("plain") }
        #expect(try await kind(api.with { $0.configuration.base = try BaseURL(plain.origin) }) != .decodingFailed)
        #expect(plain.requests.isEmpty)
    }
}
