// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing

@testable import Curlew

@Suite("HeaderName, RFC 9110 §5.1")
struct HeaderNameTests {
    @Test(arguments: [
        ("Accept", "accept", true), ("X-Trace-Identifier", "x-trace-identifieR", true), ("A", "B", false),
        ("Accept", "Accepts", false), ("@", "`", false), ("[", "{", false), ("É", "é", false),
    ])
    func equalityIgnoresASCIICase(left: String, right: String, isEqual: Bool) {
        #expect((HeaderName(left) == HeaderName(right)) == isEqual)
        #expect((HeaderName(left) != HeaderName(right)) == !isEqual)
        #expect(Set([HeaderName(left), HeaderName(right)]).count == (isEqual ? 1 : 2))
    }

    @Test func spellingIsKept() {
        let name: HeaderName = "x-TRACE"
        #expect(name.rawValue == "x-TRACE")
        #expect("\(name)" == "x-TRACE")
        #expect(name.canonical == "x-trace")
        #expect(HeaderName("etag").canonical == "etag")
    }

    @Test(arguments: [("Accept", true), ("", false), ("A B", false), ("A:", false), ("Ä", false), ("A\n", false)])
    func validityRequiresAToken(text: String, isValid: Bool) {
        #expect(HeaderName(text).isValid == isValid)
    }

    @Test(arguments: [
        ("AUTHORIZATION", true), ("Proxy-Authorization", true), ("cookie", true), ("Set-Cookie", true),
        ("x-api-key", true), ("X-Auth-Token", true), ("X-CSRF-Token", true), ("WWW-Authenticate", false),
        ("Accept", false), ("api-key", true), ("X-Access-Token", true), ("X-Vault-Token", true),
        ("PRIVATE-TOKEN", true), ("X-Goog-Api-Key", true), ("Ocp-Apim-Subscription-Key", true), ("X-Signature", true),
        ("X-Hub-Signature-256", true), ("Stripe-Signature", false), ("X-Sign", false),
    ])
    func sensitivityFollowsTheName(text: String, isSensitive: Bool) {
        #expect(HeaderName(text).isSensitive == isSensitive)
    }

    @Test func registeredNamesHaveTheirSpelling() {
        #expect(HeaderName.wwwAuthenticate.rawValue == "WWW-Authenticate")
        #expect(HeaderName.etag.rawValue == "ETag")
        #expect(HeaderName.contentType == "content-type")
    }

    @Test func headerNameIsCodedAsAString() throws {
        let data = try JSONEncoder().encode([HeaderName.accept])
        #expect(String(decoding: data, as: UTF8.self) == #"["Accept"]"#)
        #expect(try JSONDecoder().decode([HeaderName].self, from: data) == ["ACCEPT"])
    }
}
