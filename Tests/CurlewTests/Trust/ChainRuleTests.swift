// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewTesting
import FoundationEssentials
import Testing

@testable import Curlew
@testable import CurlewEngine

/// Chain rules beyond the table of trust scenarios.
@Suite(.timeLimit(.minutes(5)))
struct ChainRuleTests {
    /// RFC 5280 §4.2.1.10 for DNS names and addresses, by the certificate of an authority.
    @Test func nameConstraintsOfAHostAreJudged() throws {
        let authority = try TestAuthority().intermediate(
            CertificateOptions(
                permittedNames: [.dns("example.test"), .dns(".sub.test"), .ip("10.0.0.0/255.0.0.0")],
                excludedNames: [.dns("no.example.test"), .ip("10.1.0.0/255.255.0.0"), .ip("::/::")]))
        let constrained = try Certificate(authority.certificate).x509
        let expected: [String: X509Certificate.Constraint] = [
            "example.test": .met, "a.b.EXAMPLE.test": .met, "example.test.": .met, "badexample.test": .permitsOthers,
            "test": .permitsOthers, "a.sub.test": .met, "sub.test": .permitsOthers, "no.example.test": .excludes,
            "a.No.example.test": .excludes, "know.example.test": .met, "10.2.3.4": .met, "11.2.3.4": .permitsOthers,
            "10.1.3.4": .excludes, "::1": .excludes,
        ]
        for (host, constraint) in expected {
            #expect(constrained.constraint(on: host) == constraint, "\(host)")
        }
        let free = try Certificate(TestAuthority().certificate).x509
        #expect(free.constraint(on: "example.test") == .met && free.constraint(on: "::1") == .met)
        let namesAlone = try TestAuthority().intermediate(CertificateOptions(excludedNames: [.dns("")]))
        let nameless = try Certificate(namesAlone.certificate).x509
        #expect(nameless.constraint(on: "example.test") == .excludes && nameless.constraint(on: "10.0.0.1") == .met)
        let unreadable = try TestAuthority().intermediate(
            CertificateOptions(extensions: [CertificateOptions.Extension("2.5.29.30", isCritical: true)]))
        #expect(try Certificate(unreadable.certificate).x509.constraint(on: "example.test") == .unreadable)
    }

    @Test func nameConstraintFailureNamesTheAuthority() throws {
        let root = try TestAuthority(commonName: "Narrow Root").intermediate(
            CertificateOptions(commonName: "Narrow", excludedNames: [.dns("secret.example.test")]))
        let leaf = try root.issue(hosts: ["*.example.test"])
        let peer = try PeerIdentity(
            host: "secret.example.test", certificates: leaf.chain.map { try Certificate($0) })
        let trust = CustomRoots(.only([try Certificate(root.certificate)]))
        let failure = #expect(throws: TrustFailure.self) { try trust.judge(peer) }
        #expect(failure?.rule == .hostName && failure?.certificate?.der == root.certificateDER)
        #expect(failure?.message.contains("CN=Narrow") == true, "\(failure?.message ?? "")")
        #expect(failure?.message.hasSuffix("exclude secret.example.test") == true)
        #expect(!peer.verified(by: trust.roots).isHostNamed && peer.isHostNamed)
    }

    /// Every top-level domain is a public suffix, known or not; without libpsl there are no others.
    @Test func publicSuffixesIncludeEveryTopLevelDomain() {
        #expect(PublicSuffixes(library: "libcurlew-has-no-such.so") == nil)
        let missing: PublicSuffixes? = nil
        #expect(missing.contains("uk") && !missing.contains("co.uk") && missing.contains("nowhere"))
        let system = PublicSuffixes.system
        #expect(system.contains("uk") && system.contains("nowhere") && !system.contains("github.io"))
        #expect(system == nil || system.contains("co.uk") && system.contains("xn--55qx5d.cn"))
        #expect(!system.contains("shop.co.uk") && !system.contains("example.test"))
    }

    @Test func strictRulesApplyThroughWrappers() throws {
        let root = try TestAuthority()
        let leaf = try root.issue(CertificateOptions(hosts: ["api.example.test"], hasKeyIdentifiers: false))
        let peer = try PeerIdentity(host: "api.example.test", certificates: leaf.chain.map { try Certificate($0) })
        let roots = CustomRoots(.only([try Certificate(root.certificate)]))
        #expect(refusal(roots, peer) == nil)
        // The cache keeps the verdicts for different rules apart, even for the same peer and roots.
        #expect(refusal(roots.applying(.strict), peer) == .chain && refusal(roots, peer) == nil)
        let lists = try [Certificate.RevocationList(der: root.revocationList().der)]
        let strict: [any TrustEvaluator] = [
            AnyTrust(roots, roots).applying(.strict), roots.checkingRevocation(lists: lists).applying(.strict),
            roots.applying(.strict).checkingRevocation(lists: lists), roots.applying(.strict).applying([]),
        ]
        for trust in strict { #expect(refusal(trust, peer) != nil, "\(trust)") }
        #expect(refusal(roots.checkingRevocation(lists: lists), peer) == nil)
    }

    /// Rules apply to the chains of all evaluators inside `applying`, and to no others.
    @Test func chainRulesApplyToNestedEvaluatorsOnly() throws {
        let options = CertificateOptions(
            hosts: ["api.example.test"], basicConstraints: .authority, keyUsages: [.digitalSignature, .keyCertSign])
        let device = try Certificate(TestIdentity.selfSigned(options).certificate)
        let peer = PeerIdentity(host: "api.example.test", certificates: [device])
        let roots = CustomRoots(.only([device]))
        let failure = #expect(throws: TrustFailure.self) { try roots.judge(peer) }
        #expect(failure?.rule == .chain && failure?.hint?.contains("authoritiesAsServers") == true)
        let inner = roots.applying(.authoritiesAsServers)
        let inside: [any TrustEvaluator] = [
            inner, AllTrust(inner), AnyTrust(roots, inner), inner.checkingRevocation(),
            AllTrust(roots).applying(.authoritiesAsServers),
            try HostTrust(["api.example.test": roots]).applying(.authoritiesAsServers),
            roots.checkingRevocation().applying(.authoritiesAsServers),
        ]
        for trust in inside { #expect(refusal(trust, peer) == nil, "\(trust)") }
        // The rules of one evaluator do not apply to the evaluator beside it.
        #expect(refusal(AllTrust(inner, roots), peer) == .chain)
        let pins = try PinnedPublicKeys(
            [device.publicKeyHash], withoutBackup: "test", chain: .required(.only([device])))
        #expect(refusal(pins, peer) == .chain && refusal(pins.applying(.authoritiesAsServers), peer) == nil)
        #expect(!pins.applying([]).allowsPlainHTTP(to: "a") && inner.allowsPlainHTTP(to: "a"))
        #expect(inner != roots.applying([]) && inner == roots.applying(.authoritiesAsServers))
        #expect(CustomTrust(id: "x", wantsOCSPResponse: true) { _ in }.applying([]).wantsOCSPResponse)
    }
}
