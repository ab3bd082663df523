// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing

@testable import Curlew

struct LinesTests {
    private func lines(_ text: String, _ serializer: Streams.Lines = .lines) -> [String] {
        let outcome = serializer.outcome(ofAnyCutting: text)
        #expect(outcome.failure == nil)
        return outcome.elements
    }

    private func quoted(_ lines: String...) -> [String] { lines.map { String(reflecting: $0) } }

    @Test func lineEndsAreLFOrCRLF() {
        #expect(lines("a\nb\r\nc") == quoted("a", "b", "c"))
        #expect(lines("a\n\n\r\nb\n") == quoted("a", "", "", "b"))
        #expect(lines("a\rb\n\rc\r\n") == quoted("a\rb", "\rc"), "a lone CR ends no line")
        #expect(lines("a\r") == quoted("a"), "the end may lack its LF")
        #expect(lines("") == [] && lines("\n") == quoted("") && lines("é\n漢\n👴🏻") == quoted("é", "漢", "👴🏻"))
        #expect(lines("a\u{2028}b\u{85}c\u{B}d") == quoted("a\u{2028}b\u{85}c\u{B}d"), "nor do other separators")
    }

    @Test func emptyLinesCanBeOmitted() {
        #expect(lines("\na\r\n\r\n\n b\n\n", .lines(omittingEmpty: true)) == quoted("a", " b"))
    }

    @Test func invalidUTF8IsReplaced() {
        let bytes: [UInt8] = [0x61, 0xFF, 0x0A, 0xE2, 0x82, 0x0A, 0xAC, 0xF0, 0x9F]
        let outcome = Streams.Lines.lines.outcome(ofAnyCutting: bytes)
        #expect(outcome.elements == quoted("a\u{FFFD}", "\u{FFFD}", "\u{FFFD}\u{FFFD}"))
    }

    /// A byte order mark overrides the charset and is no part of the text; a second mark is text.
    @Test func byteOrderMarkOverridesTheCharset() {
        let mark: [UInt8] = [0xEF, 0xBB, 0xBF]
        #expect(
            Streams.Lines.lines.outcome(ofAnyCutting: mark + mark + Array("a\n".utf8)).elements == quoted("\u{FEFF}a"))
        let latin: HeaderFields = ["Content-Type": "text/plain; charset=iso-8859-1"]
        #expect(Streams.Lines.lines.outcome(ofAnyCutting: mark + [0xC3, 0xA9], latin).elements == quoted("é"))
        #expect(
            Streams.Lines.lines.outcome(ofAnyCutting: [0xC3, 0xA9, 0x0A, 0xE9], latin).elements == quoted("Ã©", "é"))
        for bytes: [UInt8] in [[0xEF], [0xEF, 0xBB], [0xFE], [0xFF], [0xEF, 0xBB, 0x0A]] {
            let text = String(decoding: bytes, as: UTF8.self).split(separator: "\n").map {
                String(reflecting: String($0))
            }
            #expect(Streams.Lines.lines.outcome(ofAnyCutting: bytes).elements == text, "\(bytes) is no mark")
        }
        #expect(Streams.Lines.lines.outcome(ofAnyCutting: mark) == Outcome(), "only a mark")
    }

    @Test(arguments: [false, true]) func utf16LinesAreRead(_ isBigEndian: Bool) {
        let bytes = { (text: String) in
            text.utf16.flatMap {
                isBigEndian ? [UInt8($0 >> 8), UInt8($0 & 0xFF)] : [UInt8($0 & 0xFF), UInt8($0 >> 8)]
            }
        }
        let text = "é漢\r\n👴🏻\n\u{0A0A}\u{010A}x"
        let expected = quoted("é漢", "👴🏻", "\u{0A0A}\u{010A}x")
        #expect(Streams.Lines.lines.outcome(ofAnyCutting: bytes("\u{FEFF}" + text)).elements == expected)
        let fields: HeaderFields = ["Content-Type": "text/plain; charset=utf-16\(isBigEndian ? "be" : "le")"]
        #expect(Streams.Lines.lines.outcome(ofAnyCutting: bytes(text), fields).elements == expected)
        let broken = bytes("a\n") + (isBigEndian ? [0xD8, 0x00] : [0x00, 0xD8])
        #expect(Streams.Lines.lines.outcome(ofAnyCutting: broken, fields).elements == quoted("a", "\u{FFFD}"))
        #expect(Streams.Lines.lines.outcome(ofAnyCutting: broken + [0x61], fields).elements == quoted("a", "\u{FFFD}"))
        #expect(Streams.Lines.lines.outcome(ofAnyCutting: bytes("a") + [0x61], fields).elements == quoted("a\u{FFFD}"))
    }

    @Test func otherEncodingsAreRead() {
        let koi: HeaderFields = ["Content-Type": "text/plain; charset=koi8-r"]
        let text = Streams.Lines.lines.outcome(ofAnyCutting: [0xEB, 0x0D, 0x0A, 0xD2, 0x61], koi)
        #expect(text.elements == quoted("К", "рa"))
        let assumed = Streams.Lines.lines(assuming: .windows1252).outcome(ofAnyCutting: [0x80, 0x0A])
        #expect(assumed.elements == quoted("€"))
        let unknown: HeaderFields = ["Content-Type": "text/plain; charset=none"]
        #expect(Streams.Lines.lines.outcome(ofAnyCutting: "é\n", unknown).elements == quoted("é"))
    }

    /// The limit applies to each line without its end, and earlier lines are returned for every split.
    @Test func lineLengthIsLimited() {
        let lines = Streams.Lines.lines(limit: 3)
        #expect(lines.outcome(ofAnyCutting: "abc\r\nabc\nabc\r").elements == quoted("abc", "abc", "abc"))
        let failure = "body too large: Line 3 of the stream has more than 3 bytes."
        for text in ["a\n\nabcd\nb\n", "a\n\nabcd", "a\n\nabc\rd\n", "a\n\nabc\r\r\n", "a\n\nabcdefgh\r\n"] {
            let outcome = lines.outcome(ofAnyCutting: text)
            #expect(outcome == Outcome(elements: quoted("a", ""), failure: failure), "\(text.debugDescription)")
        }
    }

    /// Random input yields the lines of the whole text.
    @Test(arguments: 0..<200 as Range<UInt64>) func randomLinesAreEqualForEverySplit(_ seed: UInt64) {
        var chance = SeededChance(seed)
        let pieces: [[UInt8]] =
            ["a", "é", "👴🏻", "\n", "\r\n", "\r", "", " "].map { Array($0.utf8) } + [[0xFF], [0xE2, 0x82]]
        let bytes = [UInt8].random(of: pieces, upTo: 60, by: &chance)
        var expected = bytes.split(separator: 0x0A, omittingEmptySubsequences: false)
        if expected.last?.isEmpty == true { expected.removeLast() }
        let texts = expected.map { line in
            String(reflecting: String(decoding: line.last == 0x0D ? line.dropLast() : line, as: UTF8.self))
        }
        #expect(Streams.Lines.lines.outcome(ofAnyCutting: bytes, seed: seed).elements == texts)
    }
}
