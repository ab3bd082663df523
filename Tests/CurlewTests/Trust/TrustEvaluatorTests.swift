// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import CurlewTesting
import FoundationEssentials
import Testing

@testable import Curlew
@testable import CurlewEngine

@Suite(.timeLimit(.minutes(5)))
struct TrustEvaluatorTests {
    private struct Never: TrustEvaluator {
        var rule = TrustFailure.Rule(rawValue: "never")
        func evaluate(_ peer: PeerIdentity) throws(TrustFailure) { throw TrustFailure(rule, "never") }
    }

    private struct Always: TrustEvaluator {
        var wantsOCSPResponse = false
        func evaluate(_ peer: PeerIdentity) {}
    }

    private let scene: TrustScene

    init() throws { scene = try TrustScene() }

    @Test func customTrustClosuresJudgeThePeer() throws {
        let roots = try scene.roots
        let trust = CustomTrust(id: "ours", roots: roots) { peer throws(TrustFailure) in
            try peer.requireValid()
            if peer.verifiedChain.count != 3 { throw TrustFailure(.chain, "too short") }
        }
        #expect(try refusal(trust, scene.peer()) == nil)
        #expect(try refusal(trust, scene.peer("other.example.test")) == .hostName)
        #expect(trust == CustomTrust(id: "ours", roots: roots) { _ in })
        #expect(trust != CustomTrust(id: "theirs", roots: roots) { _ in })
        #expect(trust != CustomTrust(id: "ours") { _ in })
        let secure = CustomTrust(id: "ours", roots: roots, allowsPlainHTTP: false) { _ in }
        #expect(trust != secure && trust.allowsPlainHTTP(to: "a") && !secure.allowsPlainHTTP(to: "a"))
        #expect(trust != CustomTrust(id: "ours", roots: roots, wantsOCSPResponse: true) { _ in })
        #expect(Set([trust, trust]).count == 1)
    }

    @Test func allTrustAndAnyTrustCombineEvaluators() throws {
        let peer = try scene.peer()
        let roots = CustomRoots(try scene.roots)
        let pins = try PinnedPublicKeys(
            [Certificate.PublicKeyHash(scene.leaf.certificate)], withoutBackup: "test", chain: .required(scene.roots))
        #expect(refusal(AllTrust(roots, pins), peer) == nil)
        #expect(refusal(AllTrust(roots, Never(), pins), peer)?.rawValue == "never")
        #expect(refusal(AnyTrust(SystemTrust(), roots), peer) == nil)
        #expect(refusal(AnyTrust(SystemTrust()), peer) == .chain)
        #expect(refusal(AllTrust(AnyTrust(SystemTrust(), pins), roots), peer) == nil)
        let failure = #expect(throws: TrustFailure.self) { try AnyTrust(SystemTrust(), Never()).judge(peer) }
        #expect(failure?.rule == .noneAccepts && failure?.causes.map(\.rule.rawValue) == ["chain", "never"])
        #expect(failure?.details.first?.hasPrefix("chain: ") == true)
        // An empty list of evaluators accepts no server.
        #expect(refusal(AllTrust(), peer) == .noneAccepts)
        #expect(refusal(AnyTrust(), peer) == .noneAccepts)
        let trust: any TrustEvaluator = .all(of: SystemTrust(), Never())
        #expect(AnyHashable(trust) == AnyHashable(AllTrust(SystemTrust(), Never())))
        #expect(AllTrust(Never()) != AllTrust(Never(rule: .pin)) && AnyTrust(Never()) != AnyTrust(Never(rule: .pin)))
        #expect(Set([AnyTrust(Never()), AnyTrust(Never()), .any(of: Never(rule: .pin))]).count == 2)
        #expect(
            AllTrust(Always(), Always(wantsOCSPResponse: true)).wantsOCSPResponse
                && AnyTrust(Always(wantsOCSPResponse: true)).wantsOCSPResponse
        )
        #expect(!AllTrust(Always()).wantsOCSPResponse && !AnyTrust(Always()).wantsOCSPResponse)
    }

    /// The names are read from an unverified certificate, so they must not cost much.
    @Test func hostNameFailureListsOnlyTheFirstNames() throws {
        let names = (0..<20_000).map { CertificateOptions.AlternativeName.dns("a\($0)") }
        let leaf = try TestIdentity.selfSigned(CertificateOptions(hosts: [], alternativeNames: names))
        let peer = try PeerIdentity(host: "b", certificates: [Certificate(leaf.certificate)])
        let trust = try PinnedPublicKeys([.unknown], withoutBackup: "test", chain: .notRequired)
        let failure = #expect(throws: TrustFailure.self) { try trust.judge(peer) }
        #expect(failure?.message == "the certificate is for a0, a1, a2, a3, a4, a5, a6, a7, …, not for b")
        #expect(peer.certificates[0].names.count == 20_000)
    }

    @Test func hostTrustPatternsSelectTheEvaluator() throws {
        let trust = try HostTrust([
            "api.example.test": Never(rule: .init(rawValue: "exact")),
            "*.example.test": Never(rule: .init(rawValue: "child")),
            "**.example.test": Never(rule: .init(rawValue: "any")),
            "**.deep.example.test": Never(rule: .init(rawValue: "deep")),
            "*.deep.example.test": Never(rule: .init(rawValue: "deep child")),
            "10.0.0.1": Never(rule: .init(rawValue: "address")), "bücher.test": Never(rule: .init(rawValue: "idn")),
        ])
        let expected = [
            "api.example.test": "exact", "API": "unlistedHost", "www.example.test": "child",
            "www.example.test.": "child", "example.test": "any", "a.b.example.test": "any",
            "deep.example.test": "deep", "x.deep.example.test": "deep child", "y.x.deep.example.test": "deep",
            "myexample.test": "unlistedHost", "10.0.0.1": "address", "10.0.0.2": "unlistedHost",
            "xn--bcher-kva.test": "idn", "test": "unlistedHost",
        ]
        for (host, rule) in expected {
            #expect(try refusal(trust, scene.peer(host))?.rawValue == rule, "\(host)")
        }
        let lax = try HostTrust(["a.test": Always(wantsOCSPResponse: true)], otherwise: Never())
        #expect(
            try refusal(lax, scene.peer("a.test")) == nil && refusal(lax, scene.peer("b.test"))?.rawValue == "never")
        #expect(lax.wantsOCSPResponse && !trust.wantsOCSPResponse)
        #expect(try lax == HostTrust(["a.test": Always(wantsOCSPResponse: true)], otherwise: Never()))
        #expect(try lax != HostTrust(["a.test": Always(wantsOCSPResponse: true)]))
        #expect(
            try lax.hashValue == HostTrust(["A.test.": Always(wantsOCSPResponse: true)], otherwise: Never()).hashValue)
        let same: some TrustEvaluator = try .perHost(["a.test": .system])
        #expect(try AnyHashable(same) == AnyHashable(HostTrust(["a.test": SystemTrust()])))
    }

    @Test(arguments: [
        "", "*", "*.", "**", "a..test", "https://a.test", "a.test:443", "a.*.test", "*a.test", "*.::1", "a b",
        "*.127.0.0.1", "**.10.0.0.1",
    ])
    func invalidHostPatternsThrow(_ pattern: String) throws {
        let error = #expect(throws: TrustFailure.InvalidPolicy.self) {
            try HostTrust([HostTrust.Pattern(pattern): SystemTrust()])
        }
        #expect(error?.hint != nil)
        #expect(!HostTrust.Pattern(pattern).matches("a.test"))
        #expect(
            HostTrust.Pattern(pattern) == HostTrust.Pattern(pattern)
                && HostTrust.Pattern(pattern).description == pattern)
        #expect(throws: TrustFailure.InvalidPolicy.self) {
            try ClientIdentities([
                HostTrust.Pattern(pattern): ClientIdentity(
                    certificates: scene.leaf.certificatePEM, key: scene.leaf.privateKeyPEM)
            ])
        }
    }

    @Test func hostPatternsOfAddressesMatchEverySpelling() {
        #expect(HostTrust.Pattern("::1").matches("::1") && HostTrust.Pattern("0:0::1").matches("::1"))
        #expect(!HostTrust.Pattern("::1").matches("::2"))
        #expect(HostTrust.Pattern("A.Test").normal == HostTrust.Pattern("a.test.").normal)
        #expect(HostTrust.Pattern("*.a.test").normal != HostTrust.Pattern("**.a.test").normal)
        for twice in [["API.test", "api.test"], ["**.a.test", "**.A.test."], ["0:0::1", "::1"]] as [[HostTrust.Pattern]]
        {
            let entries = Dictionary(uniqueKeysWithValues: twice.map { ($0, SystemTrust() as any TrustEvaluator) })
            let error = #expect(throws: TrustFailure.InvalidPolicy.self) { try HostTrust(entries) }
            #expect(error?.message.contains("same hosts") == true)
        }
    }

    /// In a container without system roots, evaluators with their own roots still work.
    @Test func evaluatorWithoutRootsDoesNotBlockOthers() throws {
        struct Rootless: TrustEvaluator {
            let isReady = Lock(false)
            func prepare() throws(TrustFailure) {
                if !isReady.withLock({ $0 }) { throw TrustFailure(.roots, "none") }
            }
            /// Called before `prepare` succeeds, this would accept every server.
            func evaluate(_ peer: PeerIdentity) {}
            static func == (one: Rootless, other: Rootless) -> Bool { true }
            func hash(into hasher: inout Hasher) {}
        }
        let own = CustomRoots(try scene.roots)
        #expect(try refusal(AnyTrust(Rootless(), own), scene.peer()) == nil)
        #expect(try refusal(HostTrust(["api.example.test": own], otherwise: Rootless()), scene.peer()) == nil)
        #expect(try refusal(HostTrust(["api.example.test": own], otherwise: Rootless()), scene.peer("b")) == .roots)
        #expect(try refusal(AllTrust(own, Rootless()), scene.peer()) == .roots)
        #expect(try refusal(AnyTrust(Rootless()), scene.peer()) == .roots)
        // The domain retries `prepare` until it succeeds.
        let rootless = Rootless()
        let trust = try HostTrust(["api.example.test": rootless])
        let any = AnyTrust(rootless)
        #expect(try refusal(trust, scene.peer()) == .roots && refusal(any, scene.peer()) == .roots)
        #expect(trust.isIncomplete && any.isIncomplete)
        let domain = TrustDomains(own: trust).own
        try domain.prepare()
        rootless.isReady.withLock { $0 = true }
        try domain.prepare()
        #expect(trust.isIncomplete && any.isIncomplete, "the domain retries at most once a second")
        #expect(try refusal(trust, scene.peer()) == nil && refusal(any, scene.peer()) == nil)
        #expect(!trust.isIncomplete && !any.isIncomplete)
        // An evaluator stays prepared.
        rootless.isReady.withLock { $0 = false }
        #expect(try refusal(trust, scene.peer()) == nil)
        // Nested evaluators behave the same.
        let inner = try HostTrust(["api.example.test": Rootless()])
        let outer: [any TrustEvaluator] = [
            AllTrust(inner, own), AnyTrust(inner), try HostTrust(["**.test": inner]), inner.checkingRevocation(),
        ]
        for trust in outer {
            #expect(try refusal(trust, scene.peer()) != nil)
            #expect(trust.isIncomplete, "\(trust)")
        }
    }

    /// The pins and roots of an origin do not apply to a DNS resolver.
    @Test func resolversAreJudgedBySystemTrust() throws {
        let peer = try scene.peer()
        let resolver = PeerIdentity(host: peer.host, kind: .resolver, certificates: peer.certificates)
        let proxy = PeerIdentity(host: peer.host, kind: .proxy, certificates: peer.certificates)
        let roots = CustomRoots(try scene.roots)
        #expect(TrustDomains.refusal(of: peer, by: roots) == nil)
        #expect(TrustDomains.refusal(of: proxy, by: roots) == nil)
        #expect(TrustDomains.refusal(of: resolver, by: roots)?.rule == .chain)
        #expect(TrustDomains.refusal(of: resolver, by: Never())?.rule == .chain)
    }

    @Test func publicKeyHashRoundTripsThroughJSON() throws {
        let pins: Set = [Certificate.PublicKeyHash(number: 1), Certificate.PublicKeyHash(number: 2)]
        let data = try JSONEncoder().encode(pins)
        #expect(String(decoding: data, as: UTF8.self).contains("sha256"))
        #expect(try JSONDecoder().decode(Set<Certificate.PublicKeyHash>.self, from: data) == pins)
        for text in ["[\"sha256/x\"]", "[7]"] {
            #expect(throws: DecodingError.self) {
                try JSONDecoder().decode([Certificate.PublicKeyHash].self, from: Data(text.utf8))
            }
        }
    }

    @Test func trustRootsAreComparedByContent() throws {
        let (one, two) = (try Certificate(scene.root.certificate), try Certificate(scene.authority.certificate))
        #expect(TrustRoots.only([one]) == .only([one]) && TrustRoots.only([one]) != .only([two]))
        #expect(TrustRoots.only([one]) != .systemAnd([one]) && TrustRoots.systemAnd([one]) != .systemOr([one]))
        let (first, second) = (TrustRoots.only([one]), TrustRoots.only([one]))
        #expect(try first.store() === second.store(), "equal roots share one store")
        #expect(TrustRoots.only([one, two]).hashValue == TrustRoots.only([one, two]).hashValue)
        #expect(try refusal(CustomRoots(.systemAnd([one])), scene.peer()) == nil)
        #expect(try refusal(CustomRoots([two], addingToSystem: false), scene.peer()) == nil)
    }

    @Test func chainVerdictDependsOnTheRootsAndTheDate() throws {
        let peer = try scene.peer()
        #expect(peer.chainError == "the chain was not verified" && peer.verifiedChain.isEmpty)
        let verified = peer.verified(by: try scene.roots)
        #expect(verified.chainError == nil && verified.verifiedChain.count == 3)
        #expect(verified.verified(by: .only([])).chainError != nil)
        let later = PeerIdentity(
            host: peer.host, certificates: peer.certificates, now: Date(timeIntervalSinceNow: 400 * 86_400))
        #expect(try refusal(CustomRoots(scene.roots), later) == .validity)
        let never = PeerIdentity(host: peer.host, certificates: peer.certificates, now: .distantPast)
        #expect(try refusal(CustomRoots(scene.roots), never) == .validity)
    }
}
