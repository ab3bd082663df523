// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing

@testable import Curlew

@Suite("Method, RFC 9110 §9")
struct MethodTests {
    static let rows: [(Method, String, Bool, Bool)] = [
        (Method.get, "GET", true, true), (.head, "HEAD", true, true), (.options, "OPTIONS", true, true),
        (.trace, "TRACE", true, true), (.put, "PUT", false, true), (.delete, "DELETE", false, true),
        (.post, "POST", false, false), (.patch, "PATCH", false, false), (.connect, "CONNECT", false, false),
        ("PURGE", "PURGE", false, false), ("get", "get", false, false),
    ]

    @Test(arguments: rows)
    func propertiesFollowTheMethod(method: Method, text: String, isSafe: Bool, isIdempotent: Bool) {
        #expect(method.rawValue == text)
        #expect("\(method)" == text)
        #expect(method.isSafe == isSafe)
        #expect(method.isIdempotent == isIdempotent)
        #expect(method.isValid)
        #expect(Method(rawValue: text) == method)
    }

    @Test(arguments: ["", "GET ", "GE T", "GET\r\n", "GÉT", "A:B", "A/B", "A\u{7F}"])
    func invalidMethodsAreRecognised(text: String) {
        #expect(!Method(text).isValid)
    }

    @Test func everyTokenCharacterIsValid() {
        #expect(Method("!#$%&'*+-.^_`|~09azAZ").isValid)
    }

    @Test func methodIsCodedAsAString() throws {
        let data = try JSONEncoder().encode([Method.get])
        #expect(String(decoding: data, as: UTF8.self) == #"["GET"]"#)
        #expect(try JSONDecoder().decode([Method].self, from: data) == [.get])
    }
}
