// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewTesting
import FoundationEssentials
import Testing

@testable import Curlew

@Suite(.timeLimit(.minutes(5)))
struct RevocationTests {
    private let scene: TrustScene

    init() throws { scene = try TrustScene() }

    private func lists(_ all: TestRevocationList...) throws -> [Certificate.RevocationList] {
        try all.map { try Certificate.RevocationList(der: $0.der) }
    }

    private func trust(
        _ lists: [Certificate.RevocationList] = [], scope: Revocation<CustomRoots>.Scope = .leaf,
        ocspResponse: Revocation<CustomRoots>.OCSPResponsePolicy = .ignored
    ) throws -> Revocation<CustomRoots> {
        CustomRoots(try scene.roots).checkingRevocation(lists: lists, scope: scope, ocspResponse: ocspResponse)
    }

    private func peer(stapling ocspResponse: [UInt8]?) throws -> PeerIdentity {
        let peer = try scene.peer()
        return PeerIdentity(host: peer.host, certificates: peer.certificates, ocspResponse: ocspResponse)
    }

    @Test func revocationListsOfTheLeafAreChecked() throws {
        let peer = try scene.peer()
        let good = try scene.authority.revocationList()
        #expect(try refusal(trust(lists(good)), peer) == nil)
        #expect(try refusal(trust(lists(good)), scene.peer("other.example.test")) == .hostName)
        let revoked = try scene.authority.revocationList(revoking: [scene.leaf.certificate])
        let failure = #expect(throws: TrustFailure.self) { try trust(lists(revoked)).judge(peer) }
        #expect(failure?.rule == .revocation && failure?.message.contains("revoked") == true)
        #expect(failure?.certificate?.der == scene.leaf.certificateDER)
        let stale = try scene.authority.revocationList(thisUpdate: .seconds(-9000), nextUpdate: .seconds(-5000))
        let forged = try scene.authority.revocationList(signer: .forger)
        let others = try scene.root.revocationList()
        for list in [stale, forged, others] {
            let failure = #expect(throws: TrustFailure.self) { try trust(lists(list)).judge(peer) }
            #expect(failure?.rule == .revocation && failure?.hint != nil, "\(failure as Any)")
        }
    }

    @Test func revocationListsOfTheChainAreChecked() throws {
        let peer = try scene.peer()
        let leaf = try scene.authority.revocationList()
        let root = try scene.root.revocationList()
        #expect(try refusal(trust(lists(leaf), scope: .chain), peer) == .revocation)
        #expect(try refusal(trust(lists(leaf, root), scope: .chain), peer) == nil)
        let revoking = try scene.root.revocationList(revoking: [scene.authority.certificate])
        #expect(try refusal(trust(lists(leaf, revoking), scope: .chain), peer) == .revocation)
        #expect(try refusal(trust(lists(leaf, revoking)), peer) == nil)
    }

    @Test func stapledOCSPResponsesAreJudged() throws {
        let leaf = scene.leaf.certificate
        let authority = scene.authority
        let good = try authority.ocspResponse(for: leaf)
        for ocspResponse in [good, try authority.ocspResponse(for: leaf, signer: .delegate)] {
            #expect(try refusal(trust(ocspResponse: .required), peer(stapling: ocspResponse)) == nil)
            #expect(try refusal(trust(ocspResponse: .ifPresent), peer(stapling: ocspResponse)) == nil)
        }
        let other = try authority.issue().certificate
        let bad = [
            try authority.ocspResponse(for: leaf, status: .revoked),
            try authority.ocspResponse(for: leaf, status: .unknown),
            try authority.ocspResponse(for: leaf, thisUpdate: .seconds(-9000), nextUpdate: .seconds(-5000)),
            try authority.ocspResponse(for: leaf, thisUpdate: .seconds(5000), nextUpdate: .seconds(9000)),
            try authority.ocspResponse(for: leaf, nextUpdate: nil),
            try authority.ocspResponse(for: leaf, signer: .delegateWithoutUsage),
            try authority.ocspResponse(for: leaf, signer: .stranger),
            try authority.ocspResponse(for: leaf, signer: .forger),
            try authority.ocspResponse(for: other), try TestAuthority().ocspResponse(for: leaf),
            TestAuthority.ocspTryLater, [], [0x30], good + [0], Array(good.dropLast()),
        ]
        for (number, ocspResponse) in bad.enumerated() {
            #expect(
                try refusal(trust(ocspResponse: .required), peer(stapling: ocspResponse)) == .revocation, "\(number)")
            #expect(
                try refusal(trust(ocspResponse: .ifPresent), peer(stapling: ocspResponse)) == .revocation, "\(number)")
            #expect(try refusal(trust(), peer(stapling: ocspResponse)) == nil)
        }
        #expect(try refusal(trust(ocspResponse: .required), peer(stapling: nil)) == .revocation)
        #expect(try refusal(trust(ocspResponse: .ifPresent), peer(stapling: nil)) == nil)
        // A chain of one certificate has no issuer that could sign the response.
        let alone = PeerIdentity(host: "api.example.test", certificates: [try Certificate(leaf)], ocspResponse: good)
        let own = try CustomRoots([Certificate(leaf)]).checkingRevocation(ocspResponse: .required)
        let failure = #expect(throws: TrustFailure.self) { try own.judge(alone) }
        #expect(failure?.message.contains("no issuer") == true)
    }

    /// A certificate with the TLS feature extension is valid only together with a stapled response (RFC 7633).
    @Test func mustStapleCertificateRequiresOCSPResponse() throws {
        let scene = try TrustScene(CertificateOptions(hosts: ["api.example.test"], mustStaple: true))
        let soft = CustomRoots(try scene.roots).checkingRevocation(ocspResponse: .ifPresent)
        #expect(try refusal(soft, scene.peer()) == .revocation)
        let peer = try scene.peer()
        let ocspResponse = try scene.authority.ocspResponse(for: scene.leaf.certificate)
        #expect(
            refusal(soft, PeerIdentity(host: peer.host, certificates: peer.certificates, ocspResponse: ocspResponse))
                == nil)
        #expect(refusal(CustomRoots(try scene.roots), peer) == nil)
    }

    /// Without a verified chain, a revocation check cannot succeed.
    @Test func revocationWithoutVerifiedChainIsRefused() throws {
        let demand = InsecureTrust(reason: "test").checkingRevocation(
            lists: try lists(scene.authority.revocationList()))
        #expect(try refusal(demand, scene.peer()) == .revocation)
        let composed = AnyTrust(CustomRoots(try scene.roots)).checkingRevocation(ocspResponse: .ifPresent)
        let failure = #expect(throws: TrustFailure.self) { try composed.judge(scene.peer()) }
        #expect(failure?.rule == .revocation && failure?.hint != nil)
        #expect(try refusal(AnyTrust(trust(ocspResponse: .ifPresent)), scene.peer()) == nil)
        #expect(try refusal(InsecureTrust(reason: "test").checkingRevocation(), scene.peer()) == nil)
    }

    /// The verdict by the roots of one evaluator does not apply to the roots of another.
    @Test func verdictsAreNotSharedBetweenRoots() throws {
        struct Wrapper: TrustEvaluator {
            let inner: Revocation<CustomRoots>
            func evaluate(_ peer: PeerIdentity) throws(TrustFailure) { try inner.evaluate(peer) }
        }
        let inner = try trust(lists(scene.authority.revocationList()))
        #expect(try refusal(Wrapper(inner: inner), scene.peer()) == nil)
        #expect(try refusal(AllTrust(Wrapper(inner: inner), SystemTrust()), scene.peer()) == .chain)
        #expect(try refusal(AllTrust(SystemTrust(), Wrapper(inner: inner)), scene.peer()) == .chain)
    }

    @Test func invalidRevocationListsThrow() throws {
        let (one, two) = (try scene.authority.revocationList(), try scene.root.revocationList())
        #expect(try Certificate.RevocationList(pem: one.pem) == Certificate.RevocationList(der: one.der))
        #expect(try Certificate.RevocationList(pem: one.pem).issuer == "CN=Scene Authority,O=Test Certificates")
        #expect(
            try Set([Certificate.RevocationList(pem: one.pem), Certificate.RevocationList(der: one.der)]).count == 1)
        for wrong in ["", "x", one.pem + two.pem, scene.root.certificatePEM] {
            #expect(throws: TrustFailure.InvalidPolicy.self) { try Certificate.RevocationList(pem: wrong) }
        }
        for wrong in [[], [0x30], one.der + [0], scene.root.certificateDER] as [[UInt8]] {
            #expect(throws: TrustFailure.InvalidPolicy.self) { try Certificate.RevocationList(der: wrong) }
        }
        let path = FileManager.default.temporaryDirectory.appending(path: "curlew-\(UUID()).crl").path
        defer { try? FileManager.default.removeItem(atPath: path) }
        try Data((one.pem + two.pem).utf8).write(to: URL(filePath: path))
        #expect(try Certificate.RevocationList.all(file: path).map(\.der) == [one.der, two.der])
        #expect(throws: TrustFailure.InvalidPolicy.self) { try Certificate.RevocationList.all(file: path + "x") }
        for wrong in ["x", one.pem + two.pem.split(separator: "M").joined(separator: "!")] {
            try Data(wrong.utf8).write(to: URL(filePath: path))
            #expect(throws: TrustFailure.InvalidPolicy.self) { try Certificate.RevocationList.all(file: path) }
        }
    }

    // MARK: Over a connection

    private enum Version: CaseIterable {
        case old, new

        var limit: Session.Configuration.TLS.Version { self == .old ? .v1_2 : .v1_3 }
    }

    private func server(_ identity: TestIdentity, _ ocspResponse: [UInt8]?) throws -> MockServer {
        var options = MockServer.Options()
        options.tls.ocspResponse = ocspResponse
        return try MockServer(tls: identity, options: options) { _ in .text("x").closing() }
    }

    /// In TLS 1.2, the stapled response follows the certificates; the client judges both before it sends a request.
    @Test(arguments: Version.allCases)
    private func stapledOCSPResponsesAreJudgedOverAConnection(_ version: Version) async throws {
        let identity = try scene.authority.issue()
        let certificate = identity.certificate
        let revoked = try scene.authority.ocspResponse(for: certificate, status: .revoked)
        let cases: [(ocspResponse: [UInt8]?, isAccepted: Bool, isAcceptedSoftly: Bool)] = [
            (try scene.authority.ocspResponse(for: certificate), true, true), (revoked, false, false),
            (nil, false, true),
        ]
        for (ocspResponse, isAccepted, isAcceptedSoftly) in cases {
            let server = try server(identity, ocspResponse)
            for (demand, accepts) in [(true, isAccepted), (false, isAcceptedSoftly)] {
                let trust = try trust(ocspResponse: demand ? .required : .ifPresent)
                let session = Session(trust: trust) { $0.tls.maximumVersion = version.limit }
                let before = server.requestCount
                if accepts {
                    // The second request resumes the TLS session of the first, which needs no new proof.
                    for isResumed in [false, true] {
                        let metrics = try await session.transfer(Request(server.url("/"))).response().metrics
                        #expect(metrics.isTLSSessionResumed == isResumed)
                    }
                    #expect(server.requests[before].tls?.requestedOCSPResponse == true)
                } else {
                    for _ in 0..<2 {
                        let error = try await networkError { try await session.data(for: Request(server.url("/"))) }
                        #expect(error.kind == .untrusted && error.phase == .securing)
                        #expect((error.cause as? TrustFailure)?.rule == .revocation)
                    }
                    #expect(server.requestCount == before)
                }
            }
        }
    }

    /// The evaluator is called once, with the certificates and the stapled response that follows them.
    @Test(arguments: Version.allCases) private func evaluatorIsCalledOnceWithOCSPResponse(_ version: Version)
        async throws
    {
        let identity = try scene.authority.issue()
        let ocspResponse = try scene.authority.ocspResponse(for: identity.certificate)
        let server = try server(identity, ocspResponse)
        let (peers, seen) = AsyncStream<PeerIdentity>.makeStream()
        let trust = CustomTrust(id: "watching", roots: try scene.roots, wantsOCSPResponse: true) { seen.yield($0) }
        let session = Session(trust: trust) { $0.tls.maximumVersion = version.limit }
        for _ in 0..<2 { _ = try await session.data(for: Request(server.url("/"))) }
        seen.finish()
        let all = await peers.reduce(into: [PeerIdentity]()) { $0.append($1) }
        #expect(all.count == 1 && all.first?.ocspResponse == ocspResponse && all.first?.verifiedChain.count == 3)
        #expect(server.requests.map { $0.tls?.isResumed } == [false, true])
    }

    @Test func ocspResponseIsNotRequestedWithoutNeed() async throws {
        let server = try server(scene.authority.issue(), nil)
        _ = try await Session(trust: CustomRoots(scene.roots)).data(for: Request(server.url("/")))
        #expect(server.requests.first?.tls?.requestedOCSPResponse == false)
    }
}
