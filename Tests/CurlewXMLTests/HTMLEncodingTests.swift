// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import FoundationEssentials
import Testing

@testable import CurlewXML

/// Tests of the encodings of pages.
@Suite(.timeLimit(.minutes(5)))
struct HTMLEncodingTests {
    private func text(_ bytes: [UInt8], charset: String? = nil) throws -> String {
        try HTMLDocument(parsing: Data(bytes), charset: charset).root.text
    }

    private let meta = Array("<meta charset=koi8-r><p>".utf8)

    /// A byte order mark precedes the server's charset, which precedes the `<meta>` element.
    @Test func precedenceIsMarkServerMeta() throws {
        let letter: [UInt8] = [0xC1]
        #expect(try text(meta + letter) == "а")
        #expect(try text(meta + letter, charset: "windows-1252") == "Á")
        #expect(try text(meta + letter, charset: "klingon") == "а", "unknown names do not count")
        #expect(try text([0xEF, 0xBB, 0xBF] + meta + [0xC3, 0xA9], charset: "windows-1252") == "é")
        #expect(
            try text([0xFF, 0xFE] + "<p>é".utf16.flatMap { [UInt8($0 & 0xFF), UInt8($0 >> 8)] }, charset: "utf-8")
                == "é")
        #expect(try text([0xFE, 0xFF] + "<p>é".utf16.flatMap { [UInt8($0 >> 8), UInt8($0 & 0xFF)] }) == "é")
        #expect(try text("<p>é𝄞".utf16.flatMap { [UInt8($0 >> 8), UInt8($0 & 0xFF)] }, charset: "utf-16be") == "é𝄞")
        // A page that declares UTF-16 in ASCII is not in UTF-16.
        #expect(try text(Array("<meta charset=utf-16><p>é".utf8)) == "é")
    }

    /// Without a declared encoding, the first character outside ASCII decides.
    @Test func firstCharacterDecidesWithoutADeclaration() throws {
        #expect(try text(Array("<p>plain".utf8)) == "plain")
        #expect(try text(Array("<p>é".utf8)) == "é")
        #expect(try text(Array("<p>𝄞".utf8) + [0xE9]) == "𝄞\u{FFFD}")
        #expect(try text(Array("<p>".utf8) + [0xE9, 0x20, 0x80]) == "é €")
        #expect(try text(Array("<p>".utf8) + [0xE9]) == "é")
        #expect(try text(Array("<p>".utf8) + [0xC3]) == "Ã")
        #expect(try text(Array("<p>".utf8) + [0xED, 0xA0, 0x80]) == "í\u{A0}€", "a surrogate is not UTF-8")
        // The character is at the boundary between two steps of the reader.
        for count in 16_370...16_390 {
            let start = "<p>" + String(repeating: "x", count: count - 3)
            #expect(try text(Array("\(start)é€".utf8)).suffix(2) == "é€")
            #expect(try text(Array(start.utf8) + [0xE9, 0x80]).suffix(2) == "é€")
        }
    }

    /// Invalid bytes do not end the page.
    @Test(
        arguments: [
            ("utf-8", [0x61, 0xFF, 0x62, 0xE2, 0x82, 0x3C, 0x62, 0x3E, 0xC3], "a\u{FFFD}b\u{FFFD}\u{FFFD}"),
            ("shift_jis", [0x81, 0x3C, 0x62, 0x3E, 0x82, 0xA0, 0xFD], "\u{FFFD}あ\u{FFFD}"),
            ("gb18030", [0xC4, 0xE3, 0xFF, 0x2F, 0xC4], "你\u{FFFD}/\u{FFFD}"),
            ("iso-8859-3", [0xA5, 0xA1], "\u{FFFD}Ħ"),
            ("utf-16le", [0x41, 0, 0, 0xD8, 0x42, 0, 0x43], "A\u{FFFD}B\u{FFFD}"),
            ("iso-2022-jp", [0x1B, 0x24, 0x42, 0x24, 0x22, 0x1B, 0x28, 0x42, 0x61], "あa"),
            ("koi8-u", [0xAE], "ў"), ("windows-1255", [0xCA], "\u{5BA}"), ("big5", [0xA4, 0xA4], "中"),
            ("euc-kr", [0xB0, 0xA1], "가"), ("euc-jp", [0xA4, 0xA2], "あ"), ("x-user-defined", [0xC3, 0xA9], "é"),
        ] as [(String, [UInt8], String)])
    func invalidBytesAreReplaced(_ charset: String, _ bytes: [UInt8], _ expected: String) throws {
        let isWide = charset == "utf-16le"
        let start = isWide ? "<p>".utf8.flatMap { [$0, 0] } : Array("<p>".utf8)
        #expect(try text(start + bytes, charset: charset) == expected)
    }

    /// A decoder of parts returns the same as one of the whole text, for all encodings and all cuts.
    @Test func partsDecodeLikeTheWhole() throws {
        var chance = SeededChance(3)
        for label in [
            "utf-8", "utf-16le", "utf-16be", "latin1", "koi8-r", "gbk", "gb18030", "big5", "euc-jp", "shift_jis",
            "euc-kr",
            "iso-2022-jp",
        ] {
            let encoding = try #require(TextEncoding(label: label))
            for _ in 0..<200 {
                let bytes = (0..<Int.random(in: 0...24, using: &chance)).map { _ in
                    let ranges: [ClosedRange<UInt8>] = [
                        0x20...0x7E, 0x80...0xFF, 0xD8...0xDF, 0x2F...0x3F, 0x1B...0x1B,
                    ]
                    return UInt8.random(in: ranges.randomElement(using: &chance) ?? 0...0, using: &chance)
                }
                guard TextEncoding.byteOrderMark(of: bytes) == nil else { continue }
                let whole = try encoding.text(of: Data(bytes), lossy: true)
                var output: [UInt8] = []
                var stream = TextStream(encoding)
                let size = Int.random(in: 1...4, using: &chance)
                for start in stride(from: 0, to: bytes.count, by: size) {
                    try stream.decode(bytes[start..<min(bytes.count, start + size)], isLast: false, into: &output)
                }
                try stream.decode([], isLast: true, into: &output)
                #expect(output == Array(whole.utf8), "\(label) \(bytes)")
            }
        }
    }

    @Test func lineEndsAreNormalised() throws {
        #expect(try text(Array("<p>a\r\nb\rc\n\r\n".utf8)) == "a\nb\nc\n\n")
        #expect(try HTMLDocument(parsing: Data("<p a='x\r\ny'>".utf8)).string("//p/@a") == "x\ny")
    }

    /// The tree depends neither on the chunks in which a page arrives nor on the steps of the reader.
    @Test func chunksDoNotAffectTheTree() throws {
        var maker = TagSoupMaker(chance: SeededChance(11))
        for count in 0..<60 {
            let text = maker.page(count) + "é</body>\r\n<script>a</b>"
            let whole = try HTMLDocument(parsing: Data(text.utf8)).html
            for size in [1, 7, 1000] {
                let reader = try PageReader(charset: nil, limits: XMLLimits())
                let bytes = Array(text.utf8)
                for start in stride(from: 0, to: bytes.count, by: size) {
                    try reader.append(bytes[start..<min(bytes.count, start + size)])
                }
                #expect(try HTMLDocument(reader.finish()).html == whole)
            }
            for step in [1, 4, 30] {
                let reader = try PageReader(charset: "utf-8", limits: XMLLimits(), step: step)
                try reader.append(text.utf8)
                #expect(try HTMLDocument(reader.finish()).html == whole, "\(text)")
            }
        }
    }
}
