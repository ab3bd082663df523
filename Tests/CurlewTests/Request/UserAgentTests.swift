// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing

@testable import Curlew

@Suite("User-Agent (RQ-26, RQ-27)", .timeLimit(.minutes(5)))
struct UserAgentTests {
    private func text(program: String? = "app", version: String? = nil, library: String = "0.1.0") -> String {
        UserAgent.text(program: program, version: version, library: library)
    }

    @Test func userAgentContainsAllParts() {
        #expect(text(version: "1.2") == "app/1.2 Curlew/0.1.0")
        #expect(text() == "app Curlew/0.1.0")
    }

    @Test func userAgentOmitsMissingParts() {
        #expect(text(program: nil) == "Curlew/0.1.0")
        #expect(text(program: "日本", version: "1") == "Curlew/0.1.0")
        #expect(text(version: "", library: "") == "app Curlew")
    }

    @Test func unsafeCharactersAreDropped() {
        let unsafe = "Mü(l)l\\er\r\nX: \u{0}{y}\"/;,\u{7F}z é"
        let field = text(program: unsafe, version: unsafe, library: unsafe)
        #expect(field == "MllerXyz/MllerXyz Curlew/MllerXyz")
        #expect(HeaderFields.isValidValue(field))
        #expect(text(program: String(repeating: "a", count: 1000)).utf8.count < 200)
    }

    @Test(
        "Program names from the link /proc/self/exe",
        arguments: [
            ("/usr/bin/app", "app"), ("/opt/a b/app (deleted)", "app"), ("app", "app"), ("/", nil), (nil, nil),
        ] as [(String?, String?)])
    func programNameIsReadFromTheLink(_ link: String?, _ expected: String?) {
        #expect(UserAgent.program(link: link) == expected)
    }

    @Test func userAgentOfThisProcessNamesItsProgram() throws {
        let own = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe").split(separator: "/").last
        let name = try #require(own).filter { "\($0)".isToken }
        #expect(UserAgent.standard == "\(name) Curlew/\(libraryVersion)")
    }

    @Test func userAgentDoesNotRevealTheMachine() {
        let field = UserAgent.standard
        for word in ["Linux", "libcurl", "x86_64", "aarch64", "debian", "(", ";"] { #expect(!field.contains(word)) }
    }
}
