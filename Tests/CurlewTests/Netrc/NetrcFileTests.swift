// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing

@testable import Curlew
@testable import CurlewAuth

/// The parser of .netrc files: entries and errors.
@Suite struct NetrcFileTests {
    private typealias Entry = NetrcFile.Entry

    private func entries(_ text: String) throws(InvalidNetrc) -> [NetrcFile.Entry] { try NetrcFile(text.utf8).entries }

    @Test func entriesAreParsedInEverySyntax() throws {
        let text = """
            # a comment with machine words
            machine a.example port 8443 protocol https login anna password s3cret account x
            machine
              b.example # an aside
                user "quoted user" password "a \\"b\\" \\\\ \\n\\r\\t\\q é"
            macdef init
            machine not.this login nobody

            machine c.example password #hash
            macdef last
            cd /pub
            \r
            default login anonymous password me@example
            """
        #expect(
            try entries(text) == [
                Entry(machine: "a.example", login: "anna", password: "s3cret", account: "x"),
                Entry(machine: "b.example", login: "quoted user", password: "a \"b\" \\ \n\r\tq é"),
                Entry(machine: "c.example", password: "#hash"),
                Entry(login: "anonymous", password: "me@example"),
            ])
    }

    @Test(arguments: ["", " \t\r\n", "# only this", "macdef x", "macdef x\nmachine", "\u{FEFF}"])
    func filesWithoutEntriesAreEmpty(text: String) throws {
        #expect(try entries(text).isEmpty)
    }

    @Test func entryOrderAndByteOrderMarkAreRespected() throws {
        #expect(try entries("\u{FEFF}machine a").map(\.machine) == ["a"])
        #expect(try entries("machine a login x login y").first?.login == "y")
        let file = try NetrcFile("machine a login 1 machine a login 2 machine b default login 3".utf8)
        #expect(file.entry { $0 == "a" }?.login == "1")
        #expect(file.entry { $0 == "b" } == Entry(machine: "b"))
        #expect(file.entry { $0 == "c" }?.login == "3")
        #expect(try NetrcFile("machine a".utf8).entry { $0 == "c" } == nil)
    }

    @Test(arguments: [
        ("machine", 1, InvalidNetrc.Reason.noValue), ("\nmachine a login\n\n", 2, .noValue), ("macdef", 1, .noValue),
        ("login x", 1, .noMachine), ("\n\nmachine a\nSECRET", 4, .unknownKeyword),
        ("machine a password SECRET word SECRET", 1, .unknownKeyword), ("machine a \"SECRET", 1, .unterminatedQuote),
        ("machine a password \"SECRET\nmore\"", 1, .unterminatedQuote),
        ("machine a password \"x\\", 1, .unterminatedQuote),
        ("machine a password \"x\\\n\"", 1, .unterminatedQuote), ("default\nmachine a", 2, .entryAfterDefault),
        ("default default", 1, .entryAfterDefault), ("macdef x\n\n\nfoo", 4, .unknownKeyword),
    ])
    func malformedFilesFailWithTheLine(text: String, line: Int, reason: InvalidNetrc.Reason) throws {
        let error = #expect(throws: InvalidNetrc.self) { try entries(text) }
        #expect(error == InvalidNetrc(line, reason))
        let description = try #require(error).description
        #expect(description.hasPrefix("Line \(line) ") && !description.contains("SECRET"))
    }

    @Test func nonUTF8FilesFail() throws {
        let error = #expect(throws: InvalidNetrc.self) { try NetrcFile("machine a login ".utf8 + [0xFF]) }
        #expect(error == InvalidNetrc(1, .notUTF8))
        #expect(Set(InvalidNetrc.Reason.allCases.map { InvalidNetrc(1, $0).description }).count == 6)
    }

    /// Random files with any spacing, quotes and comments are parsed into the entries that they were written from.
    @Test func writtenFilesRoundTrip() throws {
        var chance = SeededChance(41)
        for _ in 0..<500 {
            let file = RandomNetrcFile(&chance)
            #expect(try entries(file.text) == file.entries, "\(file.text)")
        }
    }
}

/// A random file and its entries.
struct RandomNetrcFile {
    let entries: [NetrcFile.Entry]
    let text: String

    private static let words = [
        "a", "B-7", "x.example", "péß", "#", "login", "machine", "p:w!", "'", "é#\u{1F426}", "0",
    ]
    private static let spaces = [" ", "\n", "\t ", "\r\n", "\n\n  "]

    /// - Parameter plain: Whether the file uses only syntax that all parsers read in the same way.
    init(_ chance: inout SeededChance, plain: Bool = false) {
        var (entries, text) = ([NetrcFile.Entry](), "")
        for index in 0..<Int.random(in: 0...5, using: &chance) {
            var entry = NetrcFile.Entry(machine: plain ? "host\(index)" : Self.word(&chance))
            text += "machine" + Self.space(&chance) + Self.written(entry.machine ?? "", &chance) + Self.space(&chance)
            for (name, set) in Self.members.shuffled(using: &chance) where Bool.random(using: &chance) {
                let value = plain ? String(Self.word(&chance).filter { $0 != "#" }) + "v" : Self.word(&chance)
                set(&entry, value)
                text += name + Self.space(&chance) + Self.written(value, &chance) + Self.space(&chance)
            }
            // Python's parser does not recognise a comment after an empty line.
            if !plain, Bool.random(using: &chance) { text += "\n# a \"comment login\n" }
            if Int.random(in: 0..<4, using: &chance) == 0 { text += "\nmacdef m\nmachine z login\n\n" }
            entries.append(entry)
        }
        (self.entries, self.text) = (entries, text)
    }

    private static let members: [(String, @Sendable (inout NetrcFile.Entry, String) -> Void)] = [
        ("login", { $0.login = $1 }), ("password", { $0.password = $1 }), ("account", { $0.account = $1 }),
    ]

    private static func word(_ chance: inout SeededChance) -> String {
        (0..<Int.random(in: 1...3, using: &chance)).compactMap { _ in words.randomElement(using: &chance) }.joined()
    }

    private static func space(_ chance: inout SeededChance) -> String { spaces.randomElement(using: &chance) ?? " " }

    /// Returns the word, with quotes in half of the cases.
    private static func written(_ word: String, _ chance: inout SeededChance) -> String {
        guard Bool.random(using: &chance) else { return word }
        return "\"" + word + "\""
    }
}
