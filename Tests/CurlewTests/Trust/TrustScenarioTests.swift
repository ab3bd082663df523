// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewEngine
import CurlewTesting
import Foundation
import Testing

@testable import Curlew

/// Runs every scenario of the table with every policy that it has a verdict for, as a value and against a server.
@Suite("Trust scenarios by RFC 5280 and other rules", .timeLimit(.minutes(5)))
struct TrustScenarioTests {
    @Test(arguments: TrustScenario.all)
    func trustScenariosGetTheExpectedVerdicts(_ scenario: TrustScenario) async throws {
        let chain = try TrustScenarioChain(scenario)
        let policies = try TrustScenarioPolicies(chain)
        try judge(chain, policies)
        try await serve(chain, policies)
    }

    /// Checks all columns without a connection.
    private func judge(_ chain: TrustScenarioChain, _ policies: TrustScenarioPolicies) throws {
        for (column, expected) in chain.scenario.expect where expected != .failInTLS {
            // A new peer each time, so that no policy sees a cached verdict.
            let verdict = verdict(of: try policies.evaluator(column), on: try chain.peer())
            #expect(expected.allows(verdict), "\(column) as a value: \(verdict)")
        }
        let stranger = verdict(of: try TrustScenarioPolicies.knowingNobody(), on: try chain.peer())
        #expect(TrustScenario.Expectation.refuse(["chain"]).allows(stranger), "unknown roots: \(stranger)")
    }

    private func verdict(of evaluator: any TrustEvaluator, on peer: PeerIdentity) -> TrustVerdict {
        do throws(TrustFailure) {
            try evaluator.judge(peer)
            return .accepted
        } catch {
            return .refused(error.rule, error.message)
        }
    }

    /// Checks roots, pins and revocation over a real handshake; a refused server gets no request.
    private func serve(_ chain: TrustScenarioChain, _ policies: TrustScenarioPolicies) async throws {
        let scenario = chain.scenario
        let isV6 = scenario.host.contains(":")
        let server = try MockServer(
            tls: chain.identity, address: isV6 ? .v6 : .v4, options: chain.serverOptions()
        ) { _ in .text("here").closing() }
        let session = Session(Session.Configuration(), resolver: Resolver { _ in .success(["127.0.0.1"]) })
        var welcome: [String] = []
        for column in TrustColumn.allCases where column == .roots || !TrustColumn.common.contains(column) {
            guard let expected = scenario.expect[column] else { continue }
            let host = isV6 ? "[\(scenario.host)]" : scenario.host
            var request = Request(.post, "https://\(host):\(server.port)/\(column)", body: .text("secret"))
            request.trust = try policies.evaluator(column)
            let verdict = await verdict(of: session, on: request)
            #expect(expected.allows(verdict), "\(column) over a connection: \(verdict)")
            if expected == .accept { welcome.append("/\(column)") }
        }
        await server.waitUntil(openConnections: 0)
        #expect(server.requests.map(\.path) == welcome)
    }

    private func verdict(of session: Session, on request: Request) async -> TrustVerdict {
        do throws(NetworkError) {
            let (body, head) = try await session.data(for: request)
            return head.status == .ok && body == Data("here".utf8) ? .accepted : .strange("\(head)")
        } catch {
            let isInTLS = error.response == nil && [.tlsFailed, .connectionLost].contains(error.kind)
            if isInTLS { return .failedInTLS }
            guard error.kind == .untrusted, error.phase == .securing, let cause = error.cause as? TrustFailure else {
                return .strange("\(error)")
            }
            return .refused(cause.rule, cause.message)
        }
    }
}

/// The soundness of the table.
@Suite(.timeLimit(.minutes(5)))
struct TrustScenarioTableTests {
    @Test func tableIsConsistent() throws {
        let rows = try TrustScenario.table.get()
        #expect(rows.count >= 100)
        #expect(Set(rows.map(\.id)).count == rows.count)
        #expect(Set(rows.flatMap { $0.expect.keys }) == Set(TrustColumn.allCases))
        for row in rows {
            #expect(row.follows.hasPrefix("RFC ") || row.follows.hasPrefix("SP-"), "\(row.id): \(row.follows)")
            #expect(TrustColumn.common.isSubset(of: row.expect.keys), "\(row.id) lacks a column")
            let pinned = row.expect.keys.contains { "\($0)".hasPrefix("pinned") }
            #expect(pinned == (row.pins != nil), "\(row.id): pins and columns")
            #expect((row.expect[.revocationCRL] != nil) == (row.crls != nil), "\(row.id): lists and columns")
            #expect(row.ocspResponse == nil || row.expect[.revocationOCSPIfPresent] != nil, "\(row.id): no OCSP column")
        }
    }

    /// A member that the test does not read would suggest coverage that does not exist.
    @Test func tableHasNoUnknownMembers() throws {
        let table = try JSONSerialization.jsonObject(with: Data(contentsOf: TrustScenario.file)) as? [String: Any]
        let rows = try #require(table?["scenarios"] as? [[String: Any]])
        let known: [String: Set<String>] = [
            "pins": ["keys", "certificates"],
            "crls": ["issuer", "revokes", "thisUpdate", "nextUpdate", "signedBy"],
            "ocspResponse": ["issuer", "for", "status", "thisUpdate", "nextUpdate", "signer"],
            "server": ["minimum", "maximum", "securityLevel", "clientCertificate"],
            "certificates": Set(TrustScenario.Recipe.CodingKeys.allCases.map(\.stringValue)),
        ]
        let plain: Set = ["id", "title", "host", "served", "roots", "expect", "follows", "note", "differs"]
        for row in rows {
            let id = "\(row["id"] ?? "no id")"
            #expect(Set(row.keys).isSubset(of: plain.union(known.keys)), "\(id)")
            for (member, names) in known {
                for value in values(row[member], isByID: member == "certificates") {
                    #expect(Set(value.keys).isSubset(of: names), "\(id): \(member)")
                }
            }
        }
    }

    private func values(_ member: Any?, isByID: Bool) -> [[String: Any]] {
        if let list = member as? [[String: Any]] { return list }
        guard let value = member as? [String: Any] else { return [] }
        return isByID ? value.values.compactMap { $0 as? [String: Any] } : [value]
    }
}
