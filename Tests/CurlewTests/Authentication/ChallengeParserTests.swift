// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// Authentication is tested from the inside out: grammar, digests, protection spaces, then whole transfers with servers
// that check digests with independent code.

import Testing

@testable import Curlew

@Suite("Challenges (RFC 9110 §11.6.1)", .timeLimit(.minutes(5)))
struct ChallengeParserTests {
    private func read(_ values: String...) -> [ChallengeAuthentication.Challenge] {
        let fields = HeaderFields(values.map { HeaderFields.Field(name: .wwwAuthenticate, value: $0) })
        return ResponseHead(status: .unauthorized, fields: fields).challenges
    }

    @Test func rfc9110ExampleIsParsed() {
        let expected = [
            ChallengeAuthentication.Challenge(.basic, ["realm": "simple"]),
            ChallengeAuthentication.Challenge("Newauth", ["realm": "apps", "type": "1", "title": "Login to \"apps\""]),
        ]
        #expect(read(#"Basic realm="simple", Newauth realm="apps", type=1, title="Login to \"apps\"""#) == expected)
    }

    @Test func schemesWithoutParametersAreParsed() {
        #expect(read("Negotiate") == [ChallengeAuthentication.Challenge("Negotiate")])
        let three = [ChallengeAuthentication.Challenge("Negotiate"), .init("NTLM"), .init(.basic, ["realm": "x"])]
        #expect(read("Negotiate, NTLM,Basic realm=x") == three)
        #expect(read("") == [] && read(" , ,\t,") == [])
    }

    @Test(arguments: ["YII=", "a", "abc==", "-._~+/", "TlRMTVNTUAAC=="]) func token68ValuesAreParsed(_ token: String) {
        for text in ["Negotiate \(token)", "Negotiate   \(token)  , Basic realm=x"] {
            #expect(read(text).first == ChallengeAuthentication.Challenge("negotiate", token68: token))
            #expect(read(text).first?.parameters == [:])
        }
    }

    @Test func severalFieldsFormOneList() {
        let challenges = read("Digest nonce=a,realm=b", "Basic realm=c", "Bearer")
        #expect(challenges.map(\.scheme) == [.digest, .basic, .bearer])
        #expect(challenges.map(\.realm) == ["b", "c", nil])
    }

    @Test func commasAndQuotesInsideQuotedStringsAreKept() {
        let challenge = read(#"Digest realm="a, Basic realm=\"b\", \\ c" , qop="auth,auth-int""#)
        #expect(
            challenge == [
                ChallengeAuthentication.Challenge(
                    .digest, ["realm": #"a, Basic realm="b", \ c"#, "qop": "auth,auth-int"])
            ])
    }

    @Test func schemesAndParameterNamesIgnoreCase() {
        let challenge = read("dIgEsT REALM=\"A\", Nonce=\"B\"")[0]
        #expect(challenge.scheme == .digest && Set([challenge.scheme]).contains("DIGEST"))
        #expect(challenge["realm"] == "A" && challenge["NONCE"] == "B" && challenge.scheme != .basic)
        #expect(ChallengeAuthentication.Challenge(.digest, ["Realm": "A"])["realm"] == "A")
    }

    @Test func whiteSpaceAroundEquals() {
        #expect(read("Basic realm = \"a\" , charset\t=\tUTF-8") == [.init(.basic, ["realm": "a", "charset": "UTF-8"])])
    }

    @Test func duplicateParametersKeepTheFirstValue() {
        #expect(read("Basic realm=a, realm=b") == [.init(.basic, ["realm": "a"])])
    }

    /// Malformed fields, and the challenges that the parser recovers from them.
    @Test(
        arguments: [
            ("Digest realm=\"a\" nonce=\"b\"", [.init(.digest, ["realm": "a", "nonce": "b"])]),
            ("Digest nonce=ab==, realm=a", [.init(.digest, ["nonce": "ab==", "realm": "a"])]),
            ("Basic realm=My App, charset=UTF-8", [.init(.basic, ["realm": "My", "charset": "UTF-8"])]),
            ("realm=a, Basic realm=b", [.init(.basic, ["realm": "b"])]),
            ("\"x\", Basic realm=b", [.init(.basic, ["realm": "b"])]),
            ("@ \"a, Bearer\", Basic realm=b", [.init(.basic, ["realm": "b"])]),
            ("Basic realm=\"b", [.init(.basic)]), ("Basic realm=\"b\\", [.init(.basic)]),
            ("Basic realm=, charset=x", [.init(.basic, ["charset": "x"], token68: "realm=")]),
            ("Basic charset=x, realm=", [.init(.basic, ["charset": "x", "realm": ""])]),
            ("Basic =a, realm=b", []), ("Basic\"x\"", [.init(.basic)]),
            ("NTLM a b, Basic", [.init("NTLM"), .init(.basic)]),
        ] as [(String, [ChallengeAuthentication.Challenge])])
    func malformedFieldsAreRecovered(_ text: String, _ expected: [ChallengeAuthentication.Challenge]) {
        #expect(read(text) == expected)
    }

    @Test func challengeCountAndLengthAreLimited() {
        let many = Array(repeating: "Basic realm=a", count: 40).joined(separator: ", ")
        #expect(read(many).count == 32 && read(many, many).count == 32)
        #expect(read(Array(repeating: "A, B", count: 3).joined(separator: ","), many).count == 32)
        let long = String(repeating: "x", count: 9000)
        #expect(read("Basic realm=\(long), Bearer realm=a") == [.init(.bearer, ["realm": "a"])])
        #expect(read("Negotiate \(long), Bearer") == [.init(.bearer)])
        #expect(read("Basic a=\"\(String(repeating: "x", count: 8100))\"").count == 1)
    }

    @Test func parametersWithoutSchemeAreParsed() {
        #expect(
            ChallengeParser.parameters(in: "nextnonce=\"a\", qop=auth , nc=1") == [
                "nextnonce": "a", "qop": "auth", "nc": "1",
            ])
        #expect(ChallengeParser.parameters(in: "") == [:] && ChallengeParser.parameters(in: "auth") == [:])
    }

    @Test func descriptionsAreEscapedAndHideNonces() {
        let challenge = ChallengeAuthentication.Challenge(
            .digest, ["realm": "a\u{1B}[2J", "nonce": "hidden"], token68: nil)
        #expect("\(challenge)" == "Digest realm=\"a\\u{1B}[2J\"")
        var dumped = ""
        dump(challenge, to: &dumped)
        #expect(!dumped.contains("hidden") && dumped.contains("nonce"))
        #expect("\(ChallengeAuthentication.Challenge("A\nb"))" == "A\\nb")
    }

    /// Random text never traps the parser, and each scheme that it returns occurs in the text.
    @Test(arguments: 0..<20) func randomTextYieldsOnlyValidTokens(_ seed: UInt64) {
        var chance = SeededChance(seed)
        let pieces = [
            "Basic", "Digest", " ", ",", "=", "\"", "\\", "realm", "é", "\t", "==", "a/b", "\u{0}", "qop=\"a,b\"", ";",
        ]
        for _ in 0..<500 {
            let text = (0..<Int.random(in: 0...24, using: &chance)).map { _ in pieces.randomElement(using: &chance)! }
                .joined()
            for challenge in read(text) {
                #expect(challenge.scheme.rawValue.isToken && text.contains(challenge.scheme.rawValue))
                let names = challenge.parameters.keys.filter { !$0.isToken }
                #expect(names.isEmpty)
            }
        }
    }

    /// In a truncated field, all challenges before the last one keep their values.
    @Test func truncatedFieldsKeepEarlierChallenges() {
        let text = #"Digest realm="a \"b\", c", nonce=x/y==, qop="auth,auth-int", Negotiate YII=, Basic realm="d""#
        let whole = read(text)
        #expect(whole.count == 3)
        for length in 0...text.utf8.count {
            let part = read(String(decoding: text.utf8.prefix(length), as: UTF8.self))
            #expect(part.count <= 3)
            for (mine, theirs) in zip(part.dropLast(), whole) {
                #expect(mine.scheme == theirs.scheme && mine.token68 == theirs.token68)
                let others = mine.parameters.filter { theirs[$0.key] != $0.value }
                #expect(others.isEmpty)
            }
        }
    }

    /// Challenges that are written by the grammar survive parsing unchanged.
    @Test(arguments: 0..<10) func writtenChallengesRoundTrip(_ seed: UInt64) {
        var chance = SeededChance(seed)
        let letters = Array("ab,=\"\\ é~:/+")
        for _ in 0..<100 {
            let count = Int.random(in: 1...4, using: &chance)
            let challenges = (0..<count).map { number in
                var parameters: [String: String] = [:]
                for name in ["realm", "nonce", "x-\(number)"].prefix(Int.random(in: 1...3, using: &chance)) {
                    parameters[name] = String(
                        (0..<Int.random(in: 0...6, using: &chance)).map { _ in letters.randomElement(using: &chance)! })
                }
                return ChallengeAuthentication.Challenge(.init("Scheme\(number)"), parameters)
            }
            let text = challenges.map { challenge in
                "\(challenge.scheme) "
                    + challenge.parameters.map { name, value in
                        "\(name)=\"" + value.map { $0 == "\"" || $0 == "\\" ? "\\\($0)" : "\($0)" }.joined() + "\""
                    }.joined(separator: ",  ")
            }
            #expect(read(text.joined(separator: " ,")) == challenges)
            #expect(text.flatMap { read($0) } == challenges)
        }
    }
}
