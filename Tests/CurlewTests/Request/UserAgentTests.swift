// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing

@testable import Curlew

@Suite("User-Agent (RQ-26, RQ-27)", .timeLimit(.minutes(5)))
struct UserAgentTests {
    private func text(
        program: String? = "app", version: String? = nil, kernel: String? = "6.1.0-18-amd64",
        architecture: String? = "x86_64", distribution: String? = "debian 12", library: String = "0.1.0",
        curl: String? = "7.88.1"
    ) -> String {
        UserAgent.text(
            program: program, version: version, kernel: kernel, architecture: architecture, distribution: distribution,
            library: library, curl: curl)
    }

    @Test func whole() {
        #expect(text(version: "1.2") == "app/1.2 (Linux 6.1; x86_64; debian 12) Curlew/0.1.0 libcurl/7.88.1")
        #expect(text() == "app (Linux 6.1; x86_64; debian 12) Curlew/0.1.0 libcurl/7.88.1")
    }

    @Test func withoutSomeParts() {
        #expect(text(program: nil) == "Curlew/0.1.0 (Linux 6.1; x86_64; debian 12) libcurl/7.88.1")
        #expect(text(program: "日本", version: "1") == "Curlew/0.1.0 (Linux 6.1; x86_64; debian 12) libcurl/7.88.1")
        #expect(text(kernel: nil) == "app (Linux; x86_64; debian 12) Curlew/0.1.0 libcurl/7.88.1")
        #expect(text(architecture: nil, distribution: nil) == "app (Linux 6.1) Curlew/0.1.0 libcurl/7.88.1")
        #expect(text(distribution: " () ") == "app (Linux 6.1; x86_64) Curlew/0.1.0 libcurl/7.88.1")
        #expect(text(curl: nil) == "app (Linux 6.1; x86_64; debian 12) Curlew/0.1.0")
        #expect(text(curl: "") == "app (Linux 6.1; x86_64; debian 12) Curlew/0.1.0 libcurl")
    }

    @Test(
        "Of the kernel two numbers are told",
        arguments: [
            ("6.1", "Linux 6.1"), ("6.18.44-fc-v657\n", "Linux 6.18"), ("5.10-rc3", "Linux 5.10"), ("6", "Linux"),
            ("six.one", "Linux"), ("6.x", "Linux"), ("", "Linux"), ("٦.١", "Linux"),
        ])
    func kernels(_ release: String, _ expected: String) {
        #expect(text(kernel: release, architecture: nil, distribution: nil).contains("(\(expected)) "))
    }

    @Test func everythingUnsafeIsDropped() {
        let unsafe = "Mü(l)l\\er\r\nX: \u{0}{y}\"/;,\u{7F}z é"
        let field = text(
            program: unsafe, version: unsafe, kernel: unsafe, architecture: unsafe, distribution: unsafe,
            library: unsafe, curl: unsafe)
        #expect(field == "MllerXyz/MllerXyz (Linux; MllerX: y/z; MllerX: y/z) Curlew/MllerXyz libcurl/MllerXyz")
        #expect(HeaderFields.isValidValue(field))
        #expect(text(program: String(repeating: "a", count: 1000)).utf8.count < 200)
    }

    @Test(
        "Distributions by their os-release",
        arguments: [
            ("ID=debian\nVERSION_ID=\"12\"\n", "debian 12"), ("NAME=x\nID='arch'\n", "arch"),
            ("# ID\nVERSION_ID=1\nID_LIKE=debian\nID=\"ubuntu\"", "ubuntu 1"), ("ID=\n", nil), ("", nil), ("junk", nil),
        ] as [(String, String?)])
    func distributions(_ text: String, _ expected: String?) {
        #expect(UserAgent.distribution(osRelease: text) == expected)
    }

    @Test(
        "Programs by their links",
        arguments: [
            ("/usr/bin/app", "app"), ("/opt/a b/app (deleted)", "app"), ("app", "app"), ("/", nil), (nil, nil),
        ] as [(String?, String?)])
    func programs(_ link: String?, _ expected: String?) {
        #expect(UserAgent.program(link: link) == expected)
    }

    @Test func thisProcess() throws {
        let field = UserAgent.standard(curl: "8.0.1")
        let parts = try #require(field.wholeMatch(of: /([^ (]+) \((.*)\) Curlew\/([0-9.]+) libcurl\/8\.0\.1/))
        let own = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe").split(separator: "/").last
        #expect(parts.1 == own && parts.3 == libraryVersion[...])
        #expect(parts.2.wholeMatch(of: /Linux [0-9]+\.[0-9]+(; [^;]+){0,2}/) != nil)
    }
}
