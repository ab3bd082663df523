// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Curlew

@Suite("Protection spaces (RFC 7617 §2.2, RFC 7616 §3.3)", .timeLimit(.minutes(5)))
struct ProtectionSpacesTests {
    private let spaces = ProtectionSpaces { "mine" }

    private func resource(_ url: String) throws -> ProtectedResource { ProtectedResource(try RequestTarget(url)) }

    private func challenge(_ realm: String, _ nonce: String, _ more: [String: String] = [:]) throws -> DigestChallenge {
        let parameters = ["realm": realm, "nonce": nonce].merging(more) { $1 }
        return try #require(DigestChallenge(ChallengeAuthentication.Challenge(.digest, parameters)))
    }

    private func known(_ url: String) throws -> NonceUse? {
        guard case .digest(let nonceUse)? = spaces.useProof(for: try resource(url)) else { return nil }
        return nonceUse
    }

    @Test func protectedPlacesHaveOriginPathAndFolder() throws {
        let resource = try resource("https://[::1]/a/b?c")
        #expect(resource.origin == "https://[::1]:443" && resource.path == "/a/b" && resource.folder == "/a/")
        #expect(try self.resource("http://a/").folder == "/")
    }

    @Test func credentialsAreReusedOnlyAfterAcceptance() throws {
        let home = try resource("http://a/x")
        let nonceUse = spaces.begin(try challenge("r", "n"), for: home)
        #expect(nonceUse.count == 1 && nonceUse.clientNonce == "mine" && nonceUse.nonce == "n")
        #expect(spaces.useProof(for: home) == nil)
        spaces.accepted(.digest(nonceUse), for: home)
        #expect(try known("http://a/other")?.count == 2)
        #expect(try known("http://a/x")?.count == 3)
        for other in ["http://b/x", "https://a/x"] { #expect(try known(other) == nil) }
    }

    @Test func repeatedNoncesContinueTheirCount() throws {
        let home = try resource("http://a/")
        for (nonce, count) in [("n", 1), ("n", 2), ("m", 1), ("n", 3), ("m", 2)] as [(String, UInt32)] {
            #expect(spaces.begin(try challenge("r", nonce), for: home).count == count)
        }
        for number in 0..<ProtectionSpaces.maximumNonces {
            _ = spaces.begin(try challenge("r", "\(number)"), for: home)
        }
        #expect(spaces.begin(try challenge("r", "n"), for: home).count == 1, "the oldest nonce must be forgotten")
    }

    @Test func refusedNonceIsForgotten() throws {
        let home = try resource("http://a/")
        let old = spaces.begin(try challenge("r", "old"), for: home)
        spaces.accepted(.digest(old), for: home)
        let new = spaces.begin(try challenge("r", "new"), for: home)
        spaces.refused(.digest(old), for: home)
        #expect(try known("http://a/")?.nonce == "new", "a later challenge has replaced the refused nonce")
        spaces.refused(.digest(new), for: home)
        #expect(spaces.useProof(for: home) == nil)
    }

    @Test func nextnonceReplacesTheNonce() throws {
        let home = try resource("http://a/")
        let first = spaces.begin(try challenge("r", "n", ["algorithm": "MD5-sess"]), for: home)
        spaces.accepted(.digest(first), for: home, next: "n2")
        let renewed = try known("http://a/")
        let second = try #require(renewed)
        #expect(second.nonce == "n2" && second.count == 1 && second.firstNonce == "n")
        spaces.accepted(.digest(first), for: home, next: "n2")
        #expect(try known("http://a/")?.count == 2)
    }

    @Test func sessAlgorithmsKeepTheClientNonce() throws {
        let spaces = ProtectionSpaces { ProtectionSpaces.randomNonce() }
        let home = try resource("http://a/")
        let first = spaces.begin(try challenge("r", "n", ["algorithm": "SHA-256-sess"]), for: home)
        let second = spaces.begin(try challenge("r", "n", ["algorithm": "SHA-256-sess"]), for: home)
        #expect(second.clientNonce == first.clientNonce && second.firstClientNonce == first.clientNonce)
        let third = spaces.begin(try challenge("r2", "n"), for: home)
        let fourth = spaces.begin(try challenge("r2", "n"), for: home)
        #expect(third.clientNonce != fourth.clientNonce && third.clientNonce.utf8.count == 32)
    }

    @Test func domainPathsSelectTheRealm() throws {
        let home = try resource("http://a/")
        for (realm, domain) in [("all", nil), ("x", "/x/ http://a/y http://other/z"), ("gone", "http://other/")] {
            let nonceUse = spaces.begin(try challenge(realm, realm, domain.map { ["domain": $0] } ?? [:]), for: home)
            spaces.accepted(.digest(nonceUse), for: home)
        }
        for (path, realm) in [("/", "all"), ("/x/1", "x"), ("/y", "x"), ("/x", "all"), ("/z", "all")] {
            #expect(try known("http://a\(path)")?.challenge.realm == realm, "\(path)")
        }
    }

    @Test func latestAcceptedRealmIsUsed() throws {
        let home = try resource("http://a/")
        for realm in ["a", "b", "a"] {
            spaces.accepted(.digest(spaces.begin(try challenge(realm, realm), for: home)), for: home)
        }
        #expect(try known("http://a/")?.challenge.realm == "a")
    }

    @Test func basicAppliesBelowTheFolder() throws {
        let home = try resource("http://a/x/y")
        let proof = spaces.beginBasic("r", for: home)
        #expect(proof == .basic(realm: "r") && spaces.useProof(for: home) == nil)
        spaces.accepted(proof, for: home)
        spaces.accepted(proof, for: home)
        let (near, far) = (try resource("http://a/x/z/1"), try resource("http://a/"))
        #expect(spaces.useProof(for: near) == proof && spaces.useProof(for: far) == nil)
        spaces.refused(proof, for: home)
        spaces.accepted(proof, for: home)
        #expect(spaces.useProof(for: home) == nil)
        _ = spaces.begin(try challenge("r", "n"), for: home)
        #expect(spaces.beginBasic("r", for: home) == proof)
    }

    @Test func rememberedSpacesAreLimited() throws {
        for number in 0...ProtectionSpaces.maximumSpaces {
            let other = try resource("http://host\(number)/")
            spaces.accepted(.digest(spaces.begin(try challenge("r", "n"), for: other)), for: other)
        }
        #expect(try known("http://host0/") == nil)
        #expect(try known("http://host1/") != nil)
    }

    @Test func concurrentUsesHaveDistinctNonceCounts() async throws {
        let home = try resource("http://a/")
        let challenge = try challenge("r", "n")
        spaces.accepted(.digest(spaces.begin(challenge, for: home)), for: home)
        let counts = await withTaskGroup(of: UInt32.self) { group in
            for number in 0..<500 {
                group.addTask {
                    if number % 2 == 0 { return spaces.begin(challenge, for: home).count }
                    guard case .digest(let nonceUse)? = spaces.useProof(for: home) else { return 0 }
                    return nonceUse.count
                }
            }
            return await group.reduce(into: Set<UInt32>()) { $0.insert($1) }
        }
        #expect(counts == Set(2...501))
    }
}
