// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewEngine
import CurlewSupport
import CurlewTesting
import FoundationEssentials
import Testing

@testable import Curlew

/// The policies that a store learns from responses.
extension HSTSTests {
    @Test(arguments: ["https", "http"], ["site.test", "127.0.0.1"])
    func policyNeedsTLSAndAHostName(_ scheme: String, _ host: String) async throws {
        let plain = try MockServer { _ in .text("x").field("Strict-Transport-Security", "max-age=1000") }
        let session = try session()
        let port = scheme == "https" ? server.port : plain.port
        _ = try await session.data(for: Request("\(scheme)://\(host):\(port)/policy"))
        #expect(session.hsts?.hosts.count == (scheme == "https" && host == "site.test" ? 1 : 0))
    }

    /// Other programs on this machine use the name for other ports.
    @Test func policyOfLocalhostIsIgnored() async throws {
        let session = try session()
        _ = try await session.data(for: Request(url("https", "localhost", "/policy")))
        for host in ["localhost", "localhost.", "x.localhost."] {
            session.hsts?.receive("max-age=1000", from: "https://\(host)/")
        }
        #expect(session.hsts?.hosts == [])
    }

    /// The head is authentic, even if the body breaks off.
    @Test(arguments: [Taking.data, .value, .started, .bytes])
    func policyOfAnIncompleteResponseCounts(_ way: Taking) async throws {
        server.on("GET", "/broken") { _ in
            .text("broken").field("Strict-Transport-Security", "max-age=1000").fault(.close, at: .body(1))
        }
        let session = try session()
        _ = try await networkError { _ = try await way(Request(url("https", "site.test", "/broken")), by: session) }
        #expect(session.hsts?.hosts.map(\.name) == ["site.test"])
    }

    /// RFC 6797 §8.1.1.
    @Test(arguments: ["192.0.2.1", "[2001:db8::1]"])
    func policyOfAnAddressIsIgnored(_ address: String) {
        let store = HSTSStore()
        store.receive("max-age=1000", from: "https://\(address)/")
        #expect(store.hosts == [] && store.revision.changes == 0)
    }

    @Test func shortPolicyIsRenewed() {
        let now = Lock(Date(timeIntervalSince1970: 1_800_000_000))
        let store = HSTSStore(nil, now: { now.withLock(\.self) })
        for _ in 0..<4 {
            store.receive("max-age=30", from: "https://h.test/")
            now.withLock { $0 += 20 }
            #expect(store.isKnown("h.test"))
        }
        now.withLock { $0 += 20 }
        store.receive("max-age=30; x=\(String(repeating: "x", count: 2000))", from: "https://h.test/")
        #expect(!store.isKnown("h.test"))
    }

    /// Any machine on the network can send a policy if the certificate is not checked.
    @Test func policyIsIgnoredWithoutAnIdentityCheck() async throws {
        let insecure = InsecureTrust(reason: "test")
        let roots = try CustomRoots([Certificate(pem: authority.certificatePEM)])
        let careless: [any TrustEvaluator] = [
            insecure, AnyTrust(roots, insecure), try HostTrust(["site.test": insecure], otherwise: SystemTrust()),
            try SecurityPolicyTrust(allowInvalidCertificates: true, validatesDomainName: false),
            CustomTrust(id: "all") { _ in }, ChainTrust(insecure, rules: []), AllTrust(insecure),
        ]
        for trust in careless {
            let session = try session(trust: trust)
            _ = try await session.data(for: Request(url("https", "site.test", "/policy")))
            #expect(session.hsts?.hosts == [], "\(type(of: trust))")
        }
        let careful: [any TrustEvaluator] = [
            roots, AnyTrust(roots, SystemTrust()), AllTrust(insecure, roots), ChainTrust(roots, rules: []),
            try HostTrust(["site.test": roots], otherwise: insecure),
        ]
        for trust in careful {
            let session = try session(trust: trust)
            var request = Request(url("https", "site.test", "/policy"))
            request.trust = insecure
            _ = try await session.data(for: request)
            #expect(session.hsts?.hosts == [])
            request.trust = nil
            _ = try await session.data(for: request)
            #expect(session.hsts?.hosts.count == 1, "\(type(of: trust))")
        }
    }

    @Test func maxAgeZeroEndsThePolicy() async throws {
        let session = try session()
        try session.hsts?.set(HSTSStore.Host("site.test"))
        server.on("GET", "/end") { _ in .text("x").field("Strict-Transport-Security", "max-age=0") }
        _ = try await session.data(for: Request(url("http", "site.test", "/end")))
        #expect(session.hsts?.hosts == [] && session.hsts?.isKnown("site.test") == false)
    }

    /// Only the first field counts (RFC 6797 §8.1).
    @Test func firstFieldCounts() async throws {
        let session = try session()
        server.on("GET", "/two") { _ in
            .text("x").field("Strict-Transport-Security", "max-age=10").field("Strict-Transport-Security", "max-age=0")
        }
        _ = try await session.data(for: Request(url("https", "site.test", "/two")))
        #expect(session.hsts?.hosts.count == 1)
    }

    @Test(arguments: [301, 401, 503])
    func policyOfAnyStatusCounts(_ status: Int) async throws {
        let session = try session()
        server.on("GET", "/status") { _ in
            .text("x", status: status).field("Strict-Transport-Security", "max-age=10").field("Location", "/x")
        }
        _ = try await session.data(for: Request(url("https", "site.test", "/status")))
        #expect(session.hsts?.hosts.count == 1)
    }

    @Test func repeatedPolicyIsExtended() throws {
        let time = TestTime(Date(timeIntervalSince1970: 1_767_225_600))
        let store = HSTSStore(nil, now: { time.now })
        store.receive("max-age=100", from: "https://h.test/")
        let changes = store.revision.changes
        store.receive("max-age=100", from: "https://h.test/other")
        #expect(store.revision.changes == changes)
        time.advance(by: 61)
        store.receive("max-age=100", from: "https://h.test/")
        #expect(store.hosts.map(\.expires) == [time.now + 100])
        // Hosts that alternate do not count as changes.
        store.receive("max-age=100", from: "https://other.test/")
        let alternating = store.revision.changes
        for host in ["h.test", "other.test"] { store.receive("max-age=100", from: "https://\(host)/") }
        #expect(store.revision.changes == alternating)
        store.receive("max-age=0", from: "https://h.test/")
        store.receive("max-age=100", from: "https://h.test/")
        #expect(store.isKnown("H.TEST"))
        time.advance(by: 100)
        #expect(!store.isKnown("h.test") && store.upgraded("http://h.test/") == nil)
    }

    /// A response with a policy does not cost a run of the chain.
    @Test func policyIsLearnedWithoutTheChain() throws {
        let session = try session()
        let folded = try #require(session.core.chain(for: "https://site.test/").fold("https://site.test/"))
        #expect(!folded.interest.values.includes(status: 200, .strictTransportSecurity))
    }

    @Test func sessionWithoutAStoreIgnoresPolicies() async throws {
        let session = try session(hsts: nil)
        _ = try await session.data(for: Request(url("https", "site.test", "/policy")))
        #expect(session.hsts == nil)
        #expect(try await networkError { _ = try await session.data(for: Request(url("http"))) }.kind != .untrusted)
    }
}
