// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewTesting
import FoundationEssentials
import Testing

@testable import Curlew

/// AFNetworking's truth table, with its unsafe rows corrected.
@Suite(.timeLimit(.minutes(5)))
struct SecurityPolicyTests {
    typealias Facts = SecurityPolicyTrust.Facts
    private let certificate: Certificate

    init() throws { certificate = try Certificate(TestAuthority().certificate) }

    private func policy(
        _ mode: SecurityPolicyTrust.PinningMode, allows: Bool = false, validates: Bool = true
    ) throws -> SecurityPolicyTrust {
        try SecurityPolicyTrust(
            pinningMode: mode, allowInvalidCertificates: allows, validatesDomainName: validates,
            certificates: mode == .none ? [] : [certificate])
    }

    /// All combinations of facts about a server.
    private var everyFacts: [Facts] {
        (0..<64).map { bits in
            func bit(_ number: Int) -> Bool { bits & 1 << number != 0 }
            return Facts(
                isSystemValid: bit(0), isPinnedValid: bit(1), isCurrent: bit(2), isHostNamed: bit(3),
                holdsKey: bit(4), isLeafPinned: bit(5))
        }
    }

    private struct Row {
        let name: String
        let mode: SecurityPolicyTrust.PinningMode
        var allows = false
        var validates = true
        let accepts: (Facts) -> Bool
    }

    /// SP-11, SP-12, SP-13 with SP-14 and SP-15, and SP-16 corrected.
    private let rows = [
        Row(name: "SP-11", mode: .none) { $0.isSystemValid && $0.isHostNamed },
        Row(name: "SP-11", mode: .none, validates: false) { $0.isSystemValid },
        Row(name: "SP-12", mode: .none, allows: true, validates: false) { _ in true },
        Row(name: "SP-13, SP-14", mode: .certificate) {
            $0.isSystemValid && $0.isPinnedValid && $0.isHostNamed
        },
        Row(name: "SP-14", mode: .certificate, validates: false) {
            $0.isSystemValid && $0.isPinnedValid
        },
        Row(name: "SP-14", mode: .certificate, allows: true) {
            $0.isPinnedValid && $0.isHostNamed
        },
        Row(name: "SP-14", mode: .certificate, allows: true, validates: false) {
            $0.isPinnedValid
        },
        Row(name: "SP-13, SP-15", mode: .publicKey) { $0.isSystemValid && $0.isHostNamed && $0.holdsKey },
        Row(name: "SP-15", mode: .publicKey, validates: false) { $0.isSystemValid && $0.holdsKey },
        Row(name: "SP-16", mode: .publicKey, allows: true) { $0.isCurrent && $0.isHostNamed && $0.isLeafPinned },
        Row(name: "SP-16", mode: .publicKey, allows: true, validates: false) { $0.isCurrent && $0.isLeafPinned },
    ]

    @Test func decisionsMatchTheTruthTable() throws {
        for row in rows {
            let policy = try policy(row.mode, allows: row.allows, validates: row.validates)
            for facts in everyFacts {
                #expect((policy.decide(facts) == nil) == row.accepts(facts), "\(row.name) \(facts)")
            }
        }
    }

    @Test func failureRulesAreReportedInOrder() throws {
        var facts = Facts()
        #expect(try policy(.certificate).decide(facts) == .chain)
        facts.isSystemValid = true
        #expect(try policy(.certificate).decide(facts) == .certificate)
        facts.isPinnedValid = true
        #expect(try policy(.certificate).decide(facts) == .hostName)
        facts.isHostNamed = true
        #expect(try policy(.certificate).decide(facts) == nil)
        #expect(try policy(.publicKey).decide(facts) == .pin)
        #expect(try policy(.publicKey, allows: true).decide(facts) == .validity)
    }

    /// SP-10, SP-17 and SP-18 are reported when the policy is created.
    @Test func policiesWithoutCertificatesThrow() {
        #expect(throws: TrustFailure.InvalidPolicy.self) { try SecurityPolicyTrust(allowInvalidCertificates: true) }
        for allows in [false, true] {
            for mode in [SecurityPolicyTrust.PinningMode.publicKey, .certificate] {
                let error = #expect(throws: TrustFailure.InvalidPolicy.self) {
                    try SecurityPolicyTrust(pinningMode: mode, allowInvalidCertificates: allows)
                }
                #expect(error?.message.contains("without certificates") == true)
            }
        }
    }

    @Test func pinnedKeyKeepsHostAndValidityChecks() throws {
        let scene = try TrustScene()
        let policy = try SecurityPolicyTrust(
            pinningMode: .publicKey, allowInvalidCertificates: true,
            certificates: [Certificate(scene.leaf.certificate)])
        #expect(try refusal(policy, scene.peer()) == nil)
        #expect(try refusal(policy, scene.peer("other.example.test")) == .hostName)
        let old = try TrustScene(CertificateOptions(hosts: ["api.example.test"], validity: .expired))
        let expired = try SecurityPolicyTrust(
            pinningMode: .publicKey, allowInvalidCertificates: true, certificates: [Certificate(old.leaf.certificate)])
        #expect(try refusal(expired, old.peer()) == .validity)
    }

    /// The recipe for self-signed servers (SP-08), and the policy that checks nothing (SP-12).
    @Test func policiesAreAppliedOverAConnection() async throws {
        let identity = try TestIdentity.selfSigned()
        let server = try MockServer(tls: identity) { _ in .text("x") }
        let own = try Certificate(identity.certificate)
        let recipe = try SecurityPolicyTrust(
            pinningMode: .certificate, allowInvalidCertificates: true, certificates: [own])
        let lax = try SecurityPolicyTrust(allowInvalidCertificates: true, validatesDomainName: false)
        for policy in [recipe, lax] {
            #expect(try await Session(trust: policy).data(for: Request(server.url("/"))).1.status == .ok)
        }
        let stranger = try SecurityPolicyTrust(
            pinningMode: .certificate, allowInvalidCertificates: true, certificates: [certificate])
        let strict: [(SecurityPolicyTrust, TrustFailure.Rule)] = [
            (try SecurityPolicyTrust(), .chain), (stranger, .certificate),
            (try SecurityPolicyTrust(pinningMode: .certificate, certificates: [own]), .chain),
        ]
        for (policy, rule) in strict {
            let error = try await networkError {
                try await Session(trust: policy).data(for: Request(server.url("/")))
            }
            #expect((error.cause as? TrustFailure)?.rule == rule, "\(error)")
        }
        #expect(server.requestCount == 2)
    }
}
