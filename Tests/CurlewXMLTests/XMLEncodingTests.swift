// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import FoundationEssentials
import Testing

@testable import CurlewXML

/// Tests of the detected encoding of a document (RFC 7303 §3) and of the resulting text.
@Suite(.timeLimit(.minutes(5)))
struct XMLEncodingTests {
    private static let text = "é€"

    private static func utf16(_ text: String, isBig: Bool) -> [UInt8] {
        text.utf16.flatMap { unit in
            let bytes = [UInt8(unit >> 8), UInt8(unit & 0xFF)]
            return isBig ? bytes : bytes.reversed()
        }
    }

    private static func utf32(_ text: String, isBig: Bool) -> [UInt8] {
        text.unicodeScalars.flatMap { scalar in
            let bytes = [
                UInt8(0), UInt8(scalar.value >> 16), UInt8(scalar.value >> 8 & 0xFF), UInt8(scalar.value & 0xFF),
            ]
            return isBig ? bytes : bytes.reversed()
        }
    }

    /// The bytes, the server's charset and the text of the root element.
    private static let table: [([UInt8], String?, String)] = [
        (Array("<a>é€</a>".utf8), nil, text),
        ([0xEF, 0xBB, 0xBF] + Array("<a>é€</a>".utf8), nil, text),
        // A byte order mark overrides the server's charset and the declaration.
        ([0xEF, 0xBB, 0xBF] + Array("<?xml version='1.0' encoding='iso-8859-1'?><a>é€</a>".utf8), "utf-16", text),
        ([0xFE, 0xFF] + utf16("<a>é€𝄞</a>", isBig: true), "utf-8", text + "𝄞"),
        ([0xFF, 0xFE] + utf16("<?xml version='1.0' encoding='utf-8'?><a>é€</a>", isBig: false), nil, text),
        ([0, 0, 0xFE, 0xFF] + utf32("<a>é€𝄞</a>", isBig: true), nil, text + "𝄞"),
        ([0xFF, 0xFE, 0, 0] + utf32("<a>é€</a>", isBig: false), nil, text),
        // Without a mark, the bytes of "<" determine the byte order if the server does not name it.
        (utf16("<a>é€</a>", isBig: false), nil, text), (utf16("<a>é€</a>", isBig: true), nil, text),
        (utf16("<?xml version='1.0' encoding='UTF-16'?><a>é€</a>", isBig: false), "utf-16", text),
        (utf16("<a>é€</a>", isBig: true), "utf-16", text), (utf16("<a>é€</a>", isBig: false), "utf-16le", text),
        (utf32("<a>é€</a>", isBig: false), nil, text), (utf32("<a>é€</a>", isBig: true), "utf-32", text),
        // The server's charset overrides the declaration.
        (Array("<?xml version='1.0' encoding='utf-8'?><a>".utf8) + [0xE9] + Array("</a>".utf8), "iso-8859-1", "é"),
        (Array("<?xml version='1.0' encoding='iso-8859-1'?><a>é</a>".utf8), "UTF-8", "é"),
        (Array("<?xml version='1.0' encoding='klingon'?><a>é</a>".utf8), "utf8", "é"),
        // Only the declaration names the encoding.
        (
            Array("<?xml version='1.0' encoding='ISO-8859-1'?><a>".utf8) + [0xE9, 0x85] + Array("</a>".utf8), nil,
            "é\u{85}"
        ),
        (
            Array("<?xml version='1.0' encoding='windows-1252' ?><a>".utf8) + [0xE9, 0x80] + Array("</a>".utf8), nil,
            text
        ),
        (
            Array("<?xml version = '1.0' encoding = \"ISO-8859-15\"?><a>".utf8) + [0xE9, 0xA4] + Array("</a>".utf8),
            nil, text
        ),
        (Array("<?xml\nversion='1.0'\tencoding='windows-1251'?><a>".utf8) + [0xFF] + Array("</a>".utf8), nil, "я"),
        (Array("<?xml version='1.0' encoding='Shift_JIS'?><a>".utf8) + [0x93, 0xFA] + Array("</a>".utf8), nil, "日"),
        (Array("<?xml version='1.0' encoding='us-ascii'?><a>x&#233;</a>".utf8), nil, "xé"),
        (Array("<?xml version='1.0'?><a encoding='latin1'>é</a>".utf8), nil, "é"),
    ]

    @Test func encodingIsSetByMarkServerOrDeclaration() throws {
        for (bytes, charset, text) in Self.table {
            let whole = try Reading(bytes, by: .max, charset: charset)
            #expect(whole.error == nil && whole.text == text, "\(whole) of \(bytes)")
            for size in [1, 2, 3, 5] {
                #expect(try Reading(bytes, by: size, charset: charset) == whole, "\(size) of \(bytes)")
            }
            #expect(try XMLDocument(parsing: Data(bytes), charset: charset).root.text == text)
        }
    }

    /// Bytes, charset, and the expected kind of error.
    private static let wrong: [([UInt8], String?, XMLError.Kind)] = [
        (Array("<?xml version='1.0' encoding='klingon'?><a/>".utf8), nil, .unsupportedEncoding),
        (Array("<a/>".utf8), "klingon", .unsupportedEncoding),
        (Array("<a/>".utf8), "UTF-8//IGNORE", .unsupportedEncoding),
        (Array("<a/>".utf8), "../../etc/x", .unsupportedEncoding),
        (Array("<?xml version='1.0' encoding='utf-16'?><a/>".utf8), nil, .invalidEncoding),
        (Array("<?xml version='1.0' encoding='utf-32le'?><a/>".utf8), nil, .invalidEncoding),
        (Array("<a>é</a>".utf8), "us-ascii", .invalidEncoding),
        (Array("<a>".utf8) + [0xE9] + Array("</a>".utf8), nil, .invalidEncoding),
        // An overlong "/", a lone surrogate, and a code point beyond Unicode.
        (Array("<a>".utf8) + [0xC0, 0xAF] + Array("</a>".utf8), nil, .invalidEncoding),
        (Array("<a>".utf8) + [0xED, 0xA0, 0x80] + Array("</a>".utf8), nil, .invalidEncoding),
        (Array("<a>".utf8) + [0xF4, 0x90, 0x80, 0x80] + Array("</a>".utf8), nil, .invalidEncoding),
        (Array("<a>".utf8) + [0xE2, 0x82], nil, .invalidEncoding),
        ([0xFE, 0xFF] + utf16("<a>", isBig: true) + [0xD8, 0, 0, 0x41], nil, .invalidEncoding),
        ([0xFE, 0xFF] + utf16("<a/>", isBig: true) + [0], nil, .invalidEncoding),
        (Array("<a>\u{0}</a>".utf8), nil, .malformed), ([0, 0, 0], nil, .malformed),
        // EBCDIC.
        ([0x4C, 0x6F, 0xA7, 0x94, 0x93], nil, .malformed),
        // A second mark is a character that is not allowed there.
        ([0xEF, 0xBB, 0xBF, 0xEF, 0xBB, 0xBF] + Array("<a/>".utf8), nil, .malformed),
    ]

    @Test func invalidEncodingsAreRejected() throws {
        for (bytes, charset, kind) in Self.wrong {
            let whole = try Reading(bytes, by: .max, charset: charset)
            #expect(whole.error?.kind == kind, "\(whole) of \(bytes)")
            for size in [1, 2, 3, 5] {
                #expect(try Reading(bytes, by: size, charset: charset) == whole, "\(size) of \(bytes)")
            }
        }
    }

    /// The parser reads the text before a bad byte and reports the position of the byte.
    @Test func invalidByteIsReportedWithItsPosition() throws {
        let reading = try Reading(Array("<a>\n<b/>é".utf8) + [0xFF] + Array("</a>".utf8), by: .max)
        #expect(reading.tags.count == 2)
        #expect(reading.error?.line == 2 && reading.error?.column == 6)
    }

    /// The limits also apply to long text in compact or unusual encodings.
    @Test func limitsCountCharactersAndNotBytes() throws {
        var limits = XMLLimits()
        limits.markup = 100
        let bytes = [0xFF, 0xFE] + Self.utf16("<a b='\(String(repeating: "€", count: 40))'/>", isBig: false)
        #expect(try Reading(bytes, by: 64, limits: limits).error?.kind == .limitExceeded)
    }
}
