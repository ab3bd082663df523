// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewTesting
import FoundationEssentials
import Testing

@testable import Curlew

@Suite(.timeLimit(.minutes(5)))
struct PinningTests {
    private let scene: TrustScene

    init() throws { scene = try TrustScene() }

    private func keys(
        _ pins: [TestCertificate], chain: PinnedPublicKeys.Chain? = nil, expires: Date? = nil,
        enforcement: PinnedPublicKeys.Enforcement = .enforced
    ) throws -> PinnedPublicKeys {
        try PinnedPublicKeys(
            pins.map { try Certificate.PublicKeyHash($0) }, backup: .unknown, chain: chain ?? .required(scene.roots),
            expires: expires, enforcement: enforcement)
    }

    private func certificates(_ pins: [TestCertificate]) throws -> PinnedCertificates {
        try PinnedCertificates(pins.map { try Certificate($0) }, anchors: .roots(scene.roots))
    }

    private var stranger: TestCertificate { get throws { try TestAuthority().certificate } }

    @Test func pinnedKeysMatchTheVerifiedChain() throws {
        let peer = try scene.peer()
        for pin in [scene.leaf.certificate, scene.authority.certificate, scene.root.certificate] {
            #expect(try refusal(keys([pin]), peer) == nil)
            #expect(try refusal(keys([stranger, pin]), peer) == nil)
        }
        #expect(try refusal(keys([stranger]), peer) == .pin)
        // A backup pin is a full pin.
        let renewed = try PinnedPublicKeys(
            [Certificate.PublicKeyHash(stranger)], backup: Certificate.PublicKeyHash(scene.leaf.certificate),
            chain: .required(scene.roots))
        #expect(refusal(renewed, peer) == nil)
        #expect(try refusal(keys([scene.leaf.certificate]), scene.peer("other.example.test")) == .hostName)
        let system = try PinnedPublicKeys([Certificate.PublicKeyHash(scene.leaf.certificate)], withoutBackup: "test")
        #expect(refusal(system, peer) == .chain)
    }

    @Test func pinnedKeysWithoutChainMatchTheLeafOnly() throws {
        let unknown = try TrustScene()
        let peer = try unknown.peer()
        #expect(try refusal(keys([unknown.leaf.certificate], chain: .notRequired), peer) == nil)
        // The chain is not verified, so only the leaf's own key counts.
        #expect(try refusal(keys([unknown.authority.certificate], chain: .notRequired), peer) == .pin)
        #expect(try refusal(keys([stranger], chain: .notRequired), peer) == .pin)
        let other = try unknown.peer("other.example.test")
        #expect(try refusal(keys([unknown.leaf.certificate], chain: .notRequired), other) == .hostName)
        for validity in [CertificateValidity.expired, .notYetValid] {
            let old = try TrustScene(CertificateOptions(hosts: ["api.example.test"], validity: validity))
            #expect(try refusal(keys([old.leaf.certificate], chain: .notRequired), old.peer()) == .validity)
        }
        let peerWithoutCertificates = PeerIdentity(host: "api.example.test", certificates: [])
        #expect(try refusal(keys([stranger], chain: .notRequired), peerWithoutCertificates) == .chain)
    }

    @Test func pinnedCertificatesAreAccepted() throws {
        let peer = try scene.peer()
        for pin in [scene.leaf.certificate, scene.authority.certificate, scene.root.certificate] {
            #expect(try refusal(certificates([pin]), peer) == nil)
            let only = try PinnedCertificates([Certificate(pin)], anchors: .pinsOnly)
            #expect(refusal(only, peer) == nil)
            #expect(try refusal(only, scene.peer("other.example.test")) == .hostName)
        }
        #expect(try refusal(certificates([stranger]), peer) == .certificate)
        #expect(try refusal(PinnedCertificates([Certificate(stranger)], anchors: .pinsOnly), peer) == .certificate)
        #expect(try refusal(PinnedCertificates([Certificate(scene.root.certificate)]), peer) == .chain)
        // Certificates above a pinned anchor do not matter.
        let old = try TestAuthority(commonName: "Old", validity: .expired)
        let below = try old.issue(CertificateOptions(hosts: ["api.example.test"]))
        let chain = try [below.certificate, old.certificate].map { try Certificate($0) }
        let shown = PeerIdentity(host: "api.example.test", certificates: chain)
        #expect(try refusal(PinnedCertificates([chain[0]], anchors: .pinsOnly), shown) == nil)
        #expect(try refusal(PinnedCertificates([chain[1]], anchors: .pinsOnly), shown) == .validity)
        // A certificate pin does not match another certificate with the same key.
        let options = CertificateOptions(hosts: ["api.example.test"], privateKeyPEM: scene.leaf.privateKeyPEM)
        let renewed = try scene.authority.issue(options)
        let same = try PeerIdentity(host: "api.example.test", certificates: renewed.chain.map { try Certificate($0) })
        #expect(try refusal(certificates([scene.leaf.certificate]), same) == .certificate)
        #expect(try refusal(keys([scene.leaf.certificate]), same) == nil)
    }

    /// A pinned certificate is no secret: a server with a certificate of any authority can append it.
    @Test func appendedCertificatesAreIgnored() throws {
        let pinned = try TestAuthority().certificate
        let peer = try scene.peer(also: [pinned])
        #expect(peer.certificates.count == 3)
        #expect(try refusal(keys([pinned]), peer) == .pin)
        #expect(try refusal(keys([pinned], chain: .notRequired), peer) == .pin)
        #expect(try refusal(certificates([pinned]), peer) == .certificate)
        let policy = try SecurityPolicyTrust(
            pinningMode: .publicKey, certificates: [Certificate(pinned)], roots: scene.roots)
        #expect(refusal(policy, peer) == .pin)
    }

    @Test func expiredPinsAreNotEnforced() throws {
        let peer = try scene.peer()
        let hour = Date(timeIntervalSinceNow: 3600)
        let past = Date(timeIntervalSinceNow: -1)
        #expect(try refusal(keys([stranger], expires: hour), peer) == .pin)
        #expect(try refusal(keys([stranger], expires: past), peer) == nil)
        #expect(try refusal(keys([stranger], expires: past), scene.peer("other.example.test")) == .hostName)
        // Without a chain, the pins are the only check, so they must not expire or only report.
        #expect(throws: TrustFailure.InvalidPolicy.self) { try keys([stranger], chain: .notRequired, expires: hour) }
        #expect(throws: TrustFailure.InvalidPolicy.self) {
            try keys([stranger], chain: .notRequired, enforcement: .reportOnly)
        }
    }

    @Test func reportOnlyPinsReportInsteadOfRefusing() async throws {
        let authority = try TestAuthority()
        let identity = try authority.issue()
        let server = try MockServer(tls: identity) { _ in .text("x") }
        let roots = try TrustRoots.only([Certificate(authority.certificate)])
        let trust = try PinnedPublicKeys(
            [.unknown], withoutBackup: "test", chain: .required(roots), enforcement: .reportOnly)
        let session = Session(trust: trust)
        var events = session.events.makeAsyncIterator()
        #expect(try await session.data(for: Request(server.url("/"))).1.status == .ok)
        var report: TrustFailure?
        while report == nil, let event = await events.next() {
            if case .trustReport(let failure) = event {
                report = failure
                #expect(event.description.hasPrefix("would have refused localhost: pin: "))
            }
        }
        #expect(report?.rule == .pin && report?.host == "localhost")
        #expect(try report?.presentedPins == [Certificate.PublicKeyHash(identity.certificate)])
        // Report-only mode does not apply to other rules.
        let wrong = try MockServer(tls: authority.issue(hosts: ["elsewhere.test"])) { _ in .text("x") }
        let error = try await networkError { try await session.data(for: Request(wrong.url("/"))) }
        #expect((error.cause as? TrustFailure)?.rule == .hostName)
        #expect(wrong.requestCount == 0)
    }

    @Test func invalidPinsThrow() throws {
        let good = "sha256/" + Data([UInt8](repeating: 7, count: 32)).base64EncodedString()
        let spare = "sha256/" + Data([UInt8](repeating: 8, count: 32)).base64EncodedString()
        #expect(try Certificate.PublicKeyHash(good).description == good)
        for bad in ["", "sha256/", "sha1/AAAA", "sha256/AAAA", String(good.dropFirst(7)), good + "A", good + "\n"] {
            let error = #expect(throws: TrustFailure.InvalidPolicy.self) { try Certificate.PublicKeyHash(bad) }
            #expect(error?.hint != nil)
            #expect(throws: TrustFailure.InvalidPolicy.self) { try PinnedPublicKeys([bad], backup: spare) }
            #expect(throws: TrustFailure.InvalidPolicy.self) { try PinnedPublicKeys([good], backup: bad) }
        }
        #expect(throws: TrustFailure.InvalidPolicy.self) { try Certificate.PublicKeyHash(sha256: [1, 2, 3]) }
        #expect(throws: TrustFailure.InvalidPolicy.self) { try PinnedPublicKeys([good], backup: good) }
        #expect(throws: TrustFailure.InvalidPolicy.self) { try PinnedPublicKeys([] as [String], backup: spare) }
        #expect(throws: TrustFailure.InvalidPolicy.self) {
            try PinnedPublicKeys([] as [Certificate.PublicKeyHash], withoutBackup: "test")
        }
        #expect(throws: TrustFailure.InvalidPolicy.self) { try PinnedPublicKeys(["x"], withoutBackup: "test") }
        #expect(try PinnedPublicKeys([good], withoutBackup: "test").pins == [Certificate.PublicKeyHash(good)])
        #expect(throws: TrustFailure.InvalidPolicy.self) { try PinnedCertificates([]) }
        let both: Set = [try Certificate.PublicKeyHash(good), try Certificate.PublicKeyHash(spare)]
        #expect(try PinnedPublicKeys([good], backup: spare).pins == both)
        let trust: some TrustEvaluator = try .pinned(keys: [good], backup: spare)
        #expect(trust.roots == .system)
    }

    /// Evaluators with pins, alone and inside of others, forbid plain HTTP; evaluators without pins allow it.
    @Test func pinsForbidPlainHTTP() async throws {
        let server = try MockServer { _ in .text("x") }
        let keys = try keys([scene.leaf.certificate])
        let certificates = try certificates([scene.leaf.certificate])
        let hosts = try HostTrust(["localhost": keys, "127.0.0.1": SystemTrust()])
        let policy = try SecurityPolicyTrust(
            pinningMode: .certificate, certificates: [Certificate(scene.leaf.certificate)])
        let strict: [any TrustEvaluator] = [
            keys, certificates, policy, keys.checkingRevocation(), AllTrust(SystemTrust(), keys), AnyTrust(keys),
            hosts, try HostTrust([:]),
        ]
        for trust in strict {
            var request = Request("http://localhost:\(server.port)/")
            request.trust = trust
            let error = try await networkError { try await Session().data(for: request) }
            #expect(error.kind == .invalidRequest && error.phase == .preparing, "\(trust)")
            #expect(error.message.contains("without TLS"))
            let session = try await networkError { try await Session(trust: trust).data(for: "http://localhost:1/") }
            #expect(session.kind == .invalidRequest)
        }
        #expect(server.connectionCount == 0)
        let free = try SecurityPolicyTrust()
        for trust in [AnyTrust(SystemTrust(), keys), hosts, free, SystemTrust()] as [any TrustEvaluator] {
            var request = Request("http://127.0.0.1:\(server.port)/")
            request.trust = trust
            #expect(try await Session().data(for: request).1.status == .ok)
        }
    }

    @Test func pinsForbidRedirectsToPlainHTTP() async throws {
        let plain = try MockServer { _ in .text("x") }
        let authority = try TestAuthority()
        let server = try MockServer(tls: authority.issue())
        server.on("GET", "/", .redirect(to: plain.url("/")))
        let roots = try TrustRoots.only([Certificate(authority.certificate)])
        let trust = try PinnedPublicKeys(
            [Certificate.PublicKeyHash(authority.certificate)], withoutBackup: "test", chain: .required(roots))
        let error = try await networkError {
            let session = Session(trust: trust) { $0.redirects = .follow(allowingDowngrade: true) }
            return try await session.data(for: Request(server.url("/")))
        }
        #expect(error.kind == .invalidRequest && plain.connectionCount == 0, "\(error)")
        let lax = Session(trust: CustomRoots(roots)) { $0.redirects = .follow(allowingDowngrade: true) }
        #expect(try await lax.data(for: Request(server.url("/"))).1.status == .ok)
    }

    @Test func pinFailureShowsThePresentedPins() async throws {
        let authority = try TestAuthority()
        let identity = try authority.issue()
        let server = try MockServer(tls: identity) { _ in .text("x") }
        let roots = try TrustRoots.only([Certificate(authority.certificate)])
        let trust = try PinnedPublicKeys([.unknown], withoutBackup: "test", chain: .required(roots))
        let error = try await networkError {
            try await Session(trust: trust).data(for: Request(server.url("/")))
        }
        let pin = try Certificate.PublicKeyHash(identity.certificate).description
        #expect(error.message.contains(pin) && error.detailedDescription.contains("shown 0: \(pin)"))
        #expect(error.detailedDescription.contains("certificate: O=Test Certificates, issued by"))
        let failure = try #require(error.cause as? TrustFailure)
        #expect(failure.presentedPins.map(\.description) == [pin])
        #expect(failure.certificate?.der == identity.certificateDER)
        // The pins of the error make the connection succeed.
        let pinned = try PinnedPublicKeys(failure.presentedPins, withoutBackup: "test", chain: .required(roots))
        #expect(try await Session(trust: pinned).data(for: Request(server.url("/"))).1.status == .ok)
    }
}
