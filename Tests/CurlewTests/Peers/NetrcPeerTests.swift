// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing

@testable import Curlew
@testable import CurlewAuth

/// `NetrcFile` and Python's `netrc` module read the same entries.
@Suite(.enabledIfInstalled(.python3), .peer(.python3), .timeLimit(.minutes(5)))
struct NetrcPeerTests {
    @Test func randomFilesAreParsedLikePython() async throws {
        var chance = SeededChance(42)
        let files = (0..<60).map { _ in RandomNetrcFile(&chance, plain: true) }
        let texts = try ScratchFile(try JSONEncoder().encode(files.map(\.text)))
        let script = try ScratchFile(Self.script.utf8)
        let output = try await ShellCommand.output("/usr/bin/python3 -B '\(script.path)' '\(texts.path)'")
        let read = try JSONDecoder().decode([[String: [String]]].self, from: output)
        try #require(read.count == files.count)
        for (file, hosts) in zip(files, read) {
            let entries = try NetrcFile(file.text.utf8).entries
            let own = entries.map { ($0.machine ?? "default", [$0.login ?? "", $0.account ?? "", $0.password ?? ""]) }
            #expect(Dictionary(own) { first, _ in first } == hosts, "\(file.text)")
        }
    }

    private static let script = """
        import json, netrc, sys, tempfile
        answers = []
        for text in json.load(open(sys.argv[1])):
            with tempfile.NamedTemporaryFile("w", encoding="utf-8", newline="") as file:
                file.write(text)
                file.flush()
                answers.append(netrc.netrc(file.name).hosts)
        json.dump(answers, sys.stdout)
        """
}
