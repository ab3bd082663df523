// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewTesting
import FoundationEssentials
import Testing

/// The default trust, in child processes whose environment names the file with the system's roots.
///
/// The roots are loaded once per process, so a test cannot replace those of its own process.
@Suite(.timeLimit(.minutes(5)))
struct SystemTrustTests {
    private struct Outcomes: Decodable, Equatable {
        var session: [String]
        var shared: [String]
        var request: [String]

        /// The same outcomes from every session.
        init(_ outcomes: [String]) { (session, shared, request) = (outcomes, outcomes, outcomes) }
    }

    /// Runs a process whose only system roots are those of an authority, with requests to all servers.
    private func outcomes(_ servers: [MockServer], trusting authority: TestAuthority) async throws -> Outcomes {
        let roots = try ScratchFile(authority.certificatePEM.utf8)
        defer { withExtendedLifetime(roots) {} }
        return try await SoakProcess.run(
            ["trust"] + servers.map(\.origin), environment: ["SSL_CERT_FILE": roots.path], as: Outcomes.self)
    }

    @Test func systemTrustAcceptsOnlyServersWithASystemRootAndTheRightHost() async throws {
        let first = try TestAuthority(commonName: "First Root")
        let second = try TestAuthority(commonName: "Second Root")
        let identities = [
            try first.issue(), try first.intermediate().issue(), try first.issue(hosts: ["elsewhere.test"]),
            try second.issue(), try TestIdentity.selfSigned(),
        ]
        let servers = try identities.map { try MockServer(tls: $0) { _ in .text("hello") } }
        let trusted = try await outcomes(servers, trusting: first)
        #expect(trusted == Outcomes(["200", "200", "hostName", "chain", "chain"]))
        #expect(servers.map(\.requestCount) == [3, 3, 0, 0, 0], "a refused server receives no request")
        // The same servers with the other root: only the file decides.
        let swapped = try await outcomes(servers, trusting: second)
        #expect(swapped == Outcomes(["chain", "chain", "chain", "200", "chain"]))
        #expect(servers.map(\.requestCount) == [3, 3, 0, 3, 0])
    }
}
