// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Testing

@testable import Curlew

/// Lists the scalars of a text: canonically equal strings are equal in Swift, but an encoding must not compose.
private func scalars(_ text: String) -> String {
    text.unicodeScalars.map { String($0.value, radix: 16) }.joined(separator: " ")
}

private func data(_ hex: String) -> Data { Data(EncodedText.bytes(hex)) }

@Suite("TextEncoding", .timeLimit(.minutes(5)))
struct TextEncodingTests {
    @Test(arguments: EncodedText.upperHalves)
    func singleByteUpperHalvesAreDecoded(label: String, text: String) throws {
        let encoding = try #require(TextEncoding(label: label))
        let first = label.hasPrefix("iso") ? 0xA0 : 0x80
        let bytes = Data((first...0xFF).map { UInt8($0) })
        #expect(scalars(try encoding.text(of: bytes, lossy: true)) == scalars(text))
        let hole = text.unicodeScalars.enumerated().first { $0.element == "\u{FFFD}" }?.offset
        if let hole {
            let error = try #require(throws: NetworkError.self) { try encoding.text(of: bytes) }
            #expect(error.kind == .decodingFailed && error.phase == .decoding)
            #expect(error.message.hasSuffix("the bytes at offset \(hole) are not a character."))
        } else {
            #expect(scalars(try encoding.text(of: bytes)) == scalars(text))
        }
        if first == 0xA0 {
            let controls = Data((0x80..<0xA0).map { UInt8($0) })
            #expect(try encoding.text(of: controls).unicodeScalars.map(\.value) == Array(0x80..<0xA0))
        }
        let ascii = Data((0..<0x80).map { UInt8($0) })
        #expect(try encoding.text(of: ascii).unicodeScalars.map(\.value) == Array(0..<0x80))
    }

    @Test(arguments: EncodedText.texts)
    func textsOfEachEncodingAreDecoded(label: String, hex: String, text: String) throws {
        let encoding = try #require(TextEncoding(label: label))
        #expect(scalars(try encoding.text(of: data(hex))) == scalars(text))
        #expect(scalars(try encoding.text(of: data(hex), lossy: true)) == scalars(text))
        // Offsets in a slice start at the slice.
        #expect(scalars(try encoding.text(of: data("7e7e" + hex).dropFirst(2))) == scalars(text))
    }

    @Test(arguments: EncodedText.texts)
    func longTextsAreDecodedInSteps(label: String, hex: String, text: String) throws {
        let encoding = try #require(TextEncoding(label: label))
        let long = data(String(repeating: hex, count: 9000))
        #expect(try encoding.text(of: long) == String(repeating: text, count: 9000))
    }

    @Test func labelsSelectTheEncoding() {
        let names: [(String, String?)] = [
            ("utf-8", "UTF-8"), ("UTF8", "UTF-8"), (" \t\nUtf-8\r\u{C} ", "UTF-8"), ("ASCII", "windows-1252"),
            ("ISO-8859-1", "windows-1252"), ("latin1", "windows-1252"), ("iso-8859-9", "windows-1254"),
            ("TIS-620", "windows-874"), ("utf-16", "UTF-16LE"), ("ucs-2", "UTF-16LE"), ("unicodefffe", "UTF-16BE"),
            ("SJIS", "Shift_JIS"), ("gb2312", "GBK"), ("ks_c_5601-1987", "EUC-KR"), ("big5-hkscs", "Big5"),
            ("visual", "ISO-8859-8"), ("logical", "ISO-8859-8-I"),
            ("", nil), (" ", nil), ("utf 8", nil), ("utf-7", nil), ("utf-32", nil), ("iso-2022-kr", nil),
            ("hz-gb-2312", nil), ("UTF-8//IGNORE", nil), ("../../etc", nil), ("\u{B}utf-8", nil), ("K\u{F6}ln", nil),
        ]
        for (label, name) in names { #expect(TextEncoding(label: label)?.name == name, "\(label)") }
        #expect(TextEncoding(label: "shift_jis")?.description == "Shift_JIS")
        #expect(TextEncoding(label: "latin1") == .windows1252 && TextEncoding.utf8 != .windows1252)
    }

    @Test func everyEncodingHasItsTable() throws {
        let encodings = Set(TextEncoding.byLabel.values)
        #expect(encodings.count == 38)
        for encoding in encodings {
            #expect(try encoding.text(of: Data()) == "")
            #expect(TextEncoding(label: encoding.name) == encoding)
        }
    }

    /// The label, the bytes, the offset of the fault, whether a character is truncated, and the text with replacements.
    static let faults: [(label: String, hex: String, offset: Int, isCut: Bool, lossy: String)] = [
        ("utf-8", "61ff62", 1, false, "a\u{FFFD}b"), ("utf-8", "61c328", 1, false, "a\u{FFFD}("),
        ("utf-8", "efbbbf61c3", 4, true, "a\u{FFFD}"), ("utf-8", "e697", 0, true, "\u{FFFD}"),
        ("utf-8", "c3a9f09f98", 2, true, "é\u{FFFD}"), ("utf-8", "f4", 0, true, "\u{FFFD}"),
        ("utf-8", "e0", 0, true, "\u{FFFD}"), ("utf-8", "c080", 0, false, "\u{FFFD}\u{FFFD}"),
        ("utf-8", "eda080", 0, false, "\u{FFFD}\u{FFFD}\u{FFFD}"), ("utf-8", "eda0", 0, false, "\u{FFFD}\u{FFFD}"),
        ("utf-8", "f5", 0, false, "\u{FFFD}"), ("utf-8", "80", 0, false, "\u{FFFD}"),
        ("utf-16le", "6100620", 2, true, "a\u{FFFD}"), ("utf-16le", "610000d86200", 2, false, "a\u{FFFD}b"),
        ("utf-16le", "00dc6100", 0, false, "\u{FFFD}a"), ("utf-16be", "0061d83d", 2, true, "a\u{FFFD}"),
        ("utf-16be", "0061d83dde", 2, true, "a\u{FFFD}"), ("utf-16be", "feff00", 2, true, "\u{FFFD}"),
        ("utf-16be", "feffdc00", 2, false, "\u{FFFD}"), ("utf-16be", "d83dd83dde00", 0, false, "\u{FFFD}😀"),
        ("iso-8859-6", "61a162", 1, false, "a\u{FFFD}b"), ("windows-1253", "aa", 0, false, "\u{FFFD}"),
        ("shift_jis", "93fa96", 2, true, "日\u{FFFD}"), ("shift_jis", "61a062", 1, false, "a\u{FFFD}b"),
        ("shift_jis", "81223c", 0, false, "\u{FFFD}\"<"), ("shift_jis", "81ff3c", 0, false, "\u{FFFD}<"),
        ("euc-jp", "c6fccb", 2, true, "日\u{FFFD}"), ("euc-jp", "a93c", 0, false, "\u{FFFD}<"),
        ("iso-2022-jp", "1b2442467c4b", 5, true, "日\u{FFFD}"),
        ("iso-2022-jp", "1b2442467cff4b5c1b284261", 5, false, "日\u{FFFD}本a"),
        ("iso-2022-jp", "61ff62", 1, false, "a\u{FFFD}b"),
        ("euc-kr", "c7d1b1", 2, true, "한\u{FFFD}"), ("euc-kr", "c73c", 0, false, "\u{FFFD}<"),
        ("gbk", "bcf2cc", 2, true, "简\u{FFFD}"), ("gbk", "61ff", 1, false, "a\u{FFFD}"),
        ("gb18030", "d6d09439fc", 2, true, "中\u{FFFD}"), ("gb18030", "8130", 0, true, "\u{FFFD}"),
        ("big5", "c163c5", 2, true, "繁\u{FFFD}"), ("big5", "8862ff", 2, false, "Ê\u{304}\u{FFFD}"),
        ("big5", "88623c", -1, false, "Ê\u{304}<"),
    ]

    @Test(arguments: faults)
    func invalidBytesThrowOrAreReplaced(label: String, hex: String, offset: Int, isCut: Bool, lossy: String) throws {
        let encoding = try #require(TextEncoding(label: label))
        #expect(scalars(try encoding.text(of: data(hex), lossy: true)) == scalars(lossy))
        guard offset >= 0 else {
            #expect(scalars(try encoding.text(of: data(hex))) == scalars(lossy))
            return
        }
        let error = try #require(throws: NetworkError.self) { try encoding.text(of: data(hex)) }
        #expect(error.kind == .decodingFailed && error.phase == .decoding)
        #expect(
            error.message
                == (isCut
                    ? "The body ends inside a character of \(encoding), which begins at offset \(offset)."
                    : "The body is not \(encoding): the bytes at offset \(offset) are not a character."))
        #expect(error.hint?.contains("lossy: true") == true)
        #expect(error.retriability == .never && error.exitCode == 65)
    }

    @Test(arguments: [
        ("gbk", "80", "€"), ("gb18030", "6180", "a€"), ("shift_jis", "8061", "\u{80}a"), ("big5", "a2cca2ce", "十卅"),
        ("big5", "a1c3a240", "\u{FFE3}\u{FF3C}"),
    ])
    func bytesThatOnlyTheWHATWGStandardAcceptsAreDecoded(label: String, hex: String, text: String) throws {
        let encoding = try #require(TextEncoding(label: label))
        #expect(scalars(try encoding.text(of: data(hex))) == scalars(text))
    }

    @Test func missingTableIsReported() throws {
        let absent = TextEncoding(name: "X", scheme: .multibyte(table: "no-such-table", leads: [0x81...0xFE]))
        let error = try #require(throws: NetworkError.self) { try absent.text(of: Data([0x81])) }
        #expect(error.kind == .unsupported && error.phase == .decoding)
        #expect(error.message == "This machine's C library has no table of X.")
        #expect(try absent.text(of: Data("ascii".utf8)) == "ascii")
        let one = TextEncoding(name: "Y", scheme: .singleByte(table: "no-such-table"))
        #expect(throws: TextFailure.unavailable(CharacterConverter.Refusal(code: EINVAL))) {
            try one.decode(Data([0x81]), lossy: true)
        }
        let full = NetworkError(.unavailable(CharacterConverter.Refusal(code: EMFILE)), in: .utf8)
        #expect(full.kind == .resourceExhausted && full.message.contains("Too many open files"))
    }

    @Test func textEncodingIsSafeInConcurrentTasks() async throws {
        let encoding = try #require(TextEncoding(label: "euc-jp"))
        let bytes = data("c6fccbdcb8ec")
        try await withThrowingTaskGroup(of: Bool.self) { group in
            for _ in 0..<64 { group.addTask { try encoding.text(of: bytes) == "日本語" } }
            for try await isRight in group { #expect(isRight) }
        }
    }
}
