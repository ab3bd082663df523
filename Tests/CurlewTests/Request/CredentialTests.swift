// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Curlew

@Suite("Credentials (RQ-31)", .timeLimit(.minutes(5)))
struct CredentialTests {
    /// The first two rows are the examples of RFC 7617 §2 and §2.1.
    @Test(arguments: [
        ("Aladdin", "open sesame", "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="), ("test", "123£", "Basic dGVzdDoxMjPCow=="),
        ("", "", "Basic Og=="), ("a", "b:c", "Basic YTpiOmM="), ("ключ", "👴🏻", "Basic 0LrQu9GO0Yc68J+RtPCfj7s="),
    ])
    func basicCredentialIsEncodedAsBase64(_ user: String, _ password: String, _ expected: String) throws {
        let credential = try Credential.basic(user, password)
        #expect(credential.fieldValue == expected && credential.scheme == "Basic")
        #expect(HeaderFields.isValidValue(credential.fieldValue))
    }

    @Test(
        arguments: [
            ("a:b", "", .colonInUser), (":", "x", .colonInUser), ("a\n", "b", .controlInUser),
            ("a", "b\n", .controlInPassword), ("a", "b\r\n", .controlInPassword), ("\u{0}", "b", .controlInUser),
            ("a", "\u{85}", .controlInPassword), ("a\u{7F}", "b", .controlInUser),
        ] as [(String, String, Credential.Invalid)])
    func invalidBasicCredentialThrows(_ user: String, _ password: String, _ expected: Credential.Invalid) {
        #expect(throws: expected) { try Credential.basic(user, password) }
        #expect("\(expected)".hasPrefix(expected == .controlInPassword ? "The password has" : "The user name has"))
    }

    @Test(arguments: ["abc.DEF-_~+/==", "not a b64token", ""])
    func bearerCredentialIsWrittenUnchanged(_ token: String) {
        #expect(Credential.bearer(token).fieldValue == "Bearer " + token)
        #expect(Credential.bearer(token).scheme == "Bearer")
    }

    @Test func bearerTokenWithNewlineIsAnInvalidField() {
        #expect(!HeaderFields.isValidValue(Credential.bearer("abc\n").fieldValue))
    }

    @Test func descriptionShowsOnlyTheScheme() throws {
        for (credential, shown) in [
            (try Credential.basic("anna", "secret"), "Basic <redacted>"), (.bearer("secret"), "Bearer <redacted>"),
        ] {
            #expect("\(credential)" == shown)
            var dumped = ""
            dump([credential], to: &dumped)
            let secret = String(credential.fieldValue.dropFirst(credential.scheme.count + 1))
            #expect(!dumped.contains(secret) && !String(reflecting: credential).contains(secret))
            #expect(dumped.contains(shown))
        }
    }

    @Test func credentialEqualityComparesSchemeAndSecret() throws {
        #expect(try Credential.basic("a", "b") == .basic("a", "b"))
        #expect(try Set([Credential.basic("a", "b"), .basic("a", "c"), .bearer("a"), .bearer("a")]).count == 3)
    }
}
