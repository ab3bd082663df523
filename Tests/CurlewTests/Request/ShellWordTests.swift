// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing

@testable import Curlew

@Suite("Quoted shell words", .timeLimit(.minutes(5)))
struct ShellWordTests {
    /// Texts with characters that have a meaning in shells.
    private static let plain = [
        "", "a", "it's", "'", "''", "'a'", "a b", "$HOME `id` $(id) ${x}", #"\ \n \' \\ "quoted""#, "!! !$ !1", "~",
        "~root",
        "* ? [a] {a,b}", "# ; & | < > ( )", "=ls", "-n", "--", "%s", "é – 日本", "'\u{301}", "@file", "\\",
        String(repeating: "'", count: 100),
    ]
    private static let lines = ["a\nb", "\n", "'\n'", "a\n\n"]
    private static let controls = [
        "\t", "\r\n", "a\nb", "\u{1}2", "\u{7F}'", "\u{1B}[2J", "\u{202E}x", "\u{85}", "\\\t'\\'", "\u{2028}7",
        "'\u{301}\t",
    ]

    private func words(_ texts: [String], shell: String, keepsLines: Bool = false) async throws -> [String] {
        let list = texts.map { ShellWord.quoted($0, keepsLines: keepsLines) }.joined(separator: " ")
        let output = try await ShellCommand.output("printf '%s\\0' \(list)", shell: shell)
        return output.split(separator: 0, omittingEmptySubsequences: false).dropLast().map {
            String(decoding: $0, as: UTF8.self)
        }
    }

    @Test(arguments: ["sh", "bash"])
    func plainTextsSurviveEveryShell(_ shell: String) async throws {
        #expect(try await words(Self.plain, shell: shell) == Self.plain)
        #expect(Self.plain.allSatisfy { !ShellWord.quoted($0).hasPrefix("$'") })
    }

    @Test(arguments: ["sh", "bash"])
    func newlinesSurviveInSingleQuotes(_ shell: String) async throws {
        #expect(try await words(Self.lines, shell: shell, keepsLines: true) == Self.lines)
    }

    @Test func controlCharactersSurviveInBash() async throws {
        let texts = Self.controls + Self.lines
        #expect(try await words(texts, shell: "bash").map(\.utf8.count) == texts.map(\.utf8.count))
        #expect(try await words(texts, shell: "bash").map { Array($0.utf8) } == texts.map { Array($0.utf8) })
        for text in texts {
            let word = ShellWord.quoted(text)
            #expect(word.hasPrefix("$'"))
            #expect(word.escapingControls == word, "the word has no control characters")
        }
    }

    @Test(arguments: [
        ("abc", "abc"), ("a b", "'a b'"), ("it's", #"'it'\''s'"#), ("", "''"), ("a\tb\n", #"$'a\011b\n'"#),
    ])
    func wordsAreQuotedForTheShell(_ text: String, _ word: String) {
        #expect(ShellWord.quoted(text) == word)
    }

    private static let bytes: [[UInt8]] = [
        [], Array(0...255), Array(0...255).reversed(), [0], [0, 0x31], Array("-n".utf8), Array("--".utf8),
        Array("%d %% \\n \\101 '$HOME' `id`".utf8), Array("\u{7F}1".utf8), [0xFF, 0x37, 0xC3], Array("\n\n".utf8),
        (0..<5000).map { UInt8(truncatingIfNeeded: $0 &* $0 >> 3) },
    ]

    @Test(arguments: ["sh", "bash"])
    func printfFormatPrintsTheBytes(_ shell: String) async throws {
        for bytes in Self.bytes {
            let format = ShellWord.printfFormat(bytes)
            #expect(try await ShellCommand.output("printf \(format)", shell: shell) == Data(bytes))
            #expect(format.utf8.allSatisfy { 0x20..<0x7F ~= $0 })
        }
    }
}
