// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Curlew

@Suite("Digests (RFC 7616)", .timeLimit(.minutes(5)))
struct NonceUseTests {
    private func challenge(_ text: String) throws -> DigestChallenge {
        let head = ResponseHead(status: .unauthorized, fields: [.wwwAuthenticate: text])
        let challenge = try #require(head.challenges.first)
        return try #require(DigestChallenge(challenge))
    }

    private func nonceUse(_ text: String, _ clientNonce: String, count: UInt32 = 1) throws -> NonceUse {
        let challenge = try challenge(text)
        return NonceUse(
            challenge: challenge, nonce: challenge.nonce, count: count, clientNonce: clientNonce,
            firstNonce: challenge.nonce, firstClientNonce: clientNonce)
    }

    // MARK: Published vectors

    @Test(arguments: [
        ("MD5", "8ca523f5e9506fed4657c9700eebdbec"),
        ("SHA-256", "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1"),
    ])
    func rfc7616Section391ExamplesAreReproduced(_ algorithm: String, _ response: String) throws {
        let nonce = "7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v"
        let clientNonce = "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ"
        let opaque = "FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS"
        let nonceUse = try nonceUse(
            """
            Digest realm="http-auth@example.org", qop="auth, auth-int", algorithm=\(algorithm), nonce="\(nonce)", \
            opaque="\(opaque)"
            """, clientNonce)
        let value = DigestCredential(user: "Mufasa", password: "Circle of Life")
            .fieldValue(nonceUse, .auth, method: "GET", uri: "/dir/index.html")
        #expect(
            value == """
                Digest username="Mufasa", realm="http-auth@example.org", nonce="\(nonce)", uri="/dir/index.html", \
                algorithm=\(algorithm), qop=auth, nc=00000001, cnonce="\(clientNonce)", response="\(response)", \
                opaque="\(opaque)"
                """)
    }

    /// The digests printed in RFC 7616 §3.9.2 are truncated SHA-512; erratum 4897 has those of SHA-512/256.
    @Test func rfc7616Section392ExampleIsReproduced() throws {
        let text = """
            Digest realm="api@example.org", qop="auth", algorithm=SHA-512-256, \
            nonce="5TsQWLVdgBdmrQ0XsxbDODV+57QdFR34I9HAbC/RVvkK", \
            opaque="HRPCssKJSGjCrkzDg8OhwpzCiGPChXYjwrI2QmXDnsOS", charset=UTF-8
            """
        let credential = DigestCredential(user: "J\u{E4}s\u{F8}n Doe", password: "Secret, or not?")
        let response = "response=\"3798d4131c277846293534c3edc11bd8a5e4cdcbff78b05db9d95eeb1cec68a5\""
        let clientNonce = "NTg6RKcb9boFIAS3KrFK9BGeh+iDa/sm6jUMp2wds69v"
        for (addition, user) in [
            (", userhash=true", "username=\"793263caabb707a56211940d90411ea4a575adeccb7e360aeb624ed06ece9b0b\""),
            ("", "username*=UTF-8''J%C3%A4s%C3%B8n%20Doe"),
        ] {
            let nonceUse = try nonceUse(text + addition, clientNonce)
            let value = try #require(credential.fieldValue(nonceUse, .auth, method: "GET", uri: "/doe.json"))
            #expect(value.contains(response) && value.contains(user))
            #expect(value.contains("userhash=true") == !addition.isEmpty)
        }
    }

    /// The example of RFC 2617 §3.5, with the rules of RFC 2617 and with those of RFC 2069.
    @Test func rfc2617Section35ExampleIsReproduced() throws {
        let text = "Digest realm=\"testrealm@host.com\", nonce=\"dcd98b7102dd2f0e8b11d0f600bfb0c093\""
        let credential = DigestCredential(user: "Mufasa", password: "Circle Of Life")
        let new = credential.fieldValue(
            try nonceUse(text + ", qop=\"auth,auth-int\"", "0a4f113b"), .auth, method: "GET", uri: "/dir/index.html")
        #expect(new?.contains("response=\"6629fae49393a05397450978507c4ef1\"") == true)
        #expect(new?.contains("algorithm") == false)
        let old = credential.fieldValue(try nonceUse(text, "0a4f113b"), .legacy, method: "GET", uri: "/dir/index.html")
        #expect(
            old == """
                Digest username="Mufasa", realm="testrealm@host.com", nonce="dcd98b7102dd2f0e8b11d0f600bfb0c093", \
                uri="/dir/index.html", response="670fd8c2df070c60b045671b8b24ff02"
                """)
    }

    // MARK: The field

    @Test func valuesAreEscaped() throws {
        let nonceUse = try nonceUse(#"Digest realm="a \"b\" \\", nonce="n\"", opaque="\\o""#, "c")
        let value = DigestCredential(user: #"q"u\"#, password: "").fieldValue(
            nonceUse, .legacy, method: "GET", uri: "/")
        #expect(value?.hasPrefix(#"Digest username="q\"u\\", realm="a \"b\" \\", nonce="n\"", uri="/""#) == true)
        #expect(value?.hasSuffix(#"opaque="\\o""#) == true)
        let read = ChallengeParser.parameters(in: String(value?.dropFirst(7) ?? ""))
        #expect(read["username"] == #"q"u\"# && read["realm"] == #"a "b" \"#)
    }

    @Test func nonASCIIUserNamesAreSentWithoutCharset() throws {
        let nonceUse = try nonceUse("Digest realm=a, nonce=b", "c")
        let value = DigestCredential(user: "é", password: "").fieldValue(nonceUse, .legacy, method: "GET", uri: "/")
        #expect(value?.contains("username=\"é\"") == true)
    }

    @Test func nonceCountsHaveEightHexDigits() throws {
        for (count, digits) in [(1, "00000001"), (0xABC, "00000abc"), (.max, "ffffffff")] as [(UInt32, String)] {
            let nonceUse = try nonceUse("Digest realm=a, nonce=b, qop=auth", "c", count: count)
            let value = DigestCredential(user: "u", password: "p").fieldValue(nonceUse, .auth, method: "GET", uri: "/")
            #expect(value?.contains("nc=\(digits),") == true)
        }
    }

    @Test func legacySessAlgorithmsSendCnonce() throws {
        let nonceUse = try nonceUse("Digest realm=a, nonce=b, algorithm=MD5-sess", "mine")
        let value = DigestCredential(user: "u", password: "p").fieldValue(nonceUse, .legacy, method: "GET", uri: "/")
        #expect(value?.contains("cnonce=\"mine\"") == true && value?.contains("nc=") == false)
    }

    @Test func descriptionsHideCredentials() {
        let credential = DigestCredential(user: "anna", password: "hidden")
        var dumped = ""
        dump(credential, to: &dumped)
        #expect("\(credential)" == "<redacted>" && !dumped.contains("hidden") && !dumped.contains("anna"))
    }

    // MARK: Challenges

    @Test(arguments: [
        "Basic realm=a, nonce=b", "Digest realm=a", "Digest nonce=a", "Digest realm=a, nonce=b, algorithm=SHA-1",
        "Digest realm=a, nonce=b, qop=other", "Digest realm=\"a\u{1}\", nonce=b", "Digest realm=a, nonce=\"b\u{7F}\"",
        "Digest realm=a, nonce=b, opaque=\"\u{2}\"", "Digest realm=a, nonce=b, algorithm=-sess",
    ])
    func unsupportedChallengesAreRejected(_ text: String) throws {
        let head = ResponseHead(status: .unauthorized, fields: [.wwwAuthenticate: text])
        let challenge = try #require(head.challenges.first)
        #expect(DigestChallenge(challenge) == nil)
    }

    @Test func challengeParametersAreParsed() throws {
        let full = try challenge(
            """
            Digest realm=a, nonce=b, opaque=c, algorithm=sha-512-256-SESS, qop="AUTH-INT , auth", stale=TRUE, \
            userhash=True, charset=utf-8, domain="/x  https://other/y"
            """)
        #expect(full.algorithm == .sha512t256 && full.isSession && full.algorithmName == "sha-512-256-SESS")
        #expect(full.offersAuth && full.offersIntegrity && !full.isLegacy && full.isStale && full.hashesUser)
        #expect(full.isUTF8 && full.opaque == "c" && full.domain == ["/x", "https://other/y"])
        let bare = try challenge("Digest realm=a, nonce=b, stale=no, domain=\"\"")
        #expect(bare.algorithm == .md5 && !bare.isSession && bare.algorithmName == nil && bare.isLegacy)
        #expect(!bare.isStale && !bare.hashesUser && !bare.isUTF8 && bare.domain == nil && bare.opaque == nil)
    }

    @Test func strongestAvailableAlgorithmIsChosen() {
        func best(_ names: [String?], without missing: DigestAlgorithm? = nil) -> String? {
            let challenges = names.enumerated().map { number, name in
                var parameters = ["realm": "r", "nonce": "\(number)"]
                parameters["algorithm"] = name
                return ChallengeAuthentication.Challenge(.digest, parameters)
            }
            return DigestChallenge.strongest(of: challenges) { $0 != missing }?.nonce
        }
        #expect(best(["MD5", "SHA-256", "SHA-512-256"]) == "2" && best(["SHA-512-256", "SHA-256", nil]) == "0")
        #expect(best([nil, "SHA-256-sess", "SHA-256"]) == "1" && best(["SHA-999", nil]) == "1" && best([]) == nil)
        #expect(best(["MD5"], without: .md5) == nil && best(["MD5", "SHA-256"], without: .sha256) == "0")
        let missing = DigestAlgorithm.allCases.filter { !$0.digest.isAvailable }
        #expect(missing.isEmpty)
    }
}
