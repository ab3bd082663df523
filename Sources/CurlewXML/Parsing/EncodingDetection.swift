// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// Parsing: bytes of any encoding become whole pieces of markup in UTF-8, which is all that libxml2 gets to see. What it
// makes of a document then does not depend on how the document was cut.

internal import Curlew

/// How the bytes of a document are to be read, found by its first bytes.
struct EncodingDetection: Equatable {
    /// glibc's name of the encoding's table; nil for UTF-8.
    var table: String?
    /// How many bytes the byte order mark takes.
    var markLength = 0

    /// How much of a document is looked at for its declaration.
    static let longestStart = 1024

    /// Finds the encoding: by a byte order mark, else by the server's charset (RFC 7303 §3), else by the first characters
    /// and the declaration (XML 1.0 appendix F), else UTF-8.
    ///
    /// - Parameters:
    ///   - start: The first bytes.
    ///   - charset: What the server says.
    ///   - isWhole: Whether there are no more.
    /// - Returns: Nil when more bytes are needed.
    /// - Throws: `.unsupportedEncoding`; `.invalidEncoding` when the declaration contradicts the bytes it is written in.
    static func of(_ start: [UInt8], charset: String?, isWhole: Bool) throws(XMLError) -> EncodingDetection? {
        if start.count < 4, !isWhole { return nil }
        if let (table, mark) = marks.first(where: { start.starts(with: $0.1) }) {
            return EncodingDetection(table: table, markLength: mark.count)
        }
        let shape = shapes.first { start.starts(with: $0.1) }?.0
        if let charset {
            guard let named = table(labelled: charset) else { throw unknown(charset, by: "server") }
            return EncodingDetection(table: named == "UTF-16" ? shape ?? "UTF-16BE" : (named == "UTF-8" ? nil : named))
        }
        if let shape { return EncodingDetection(table: shape) }
        if start.count < 5, !isWhole, "<?xml".utf8.starts(with: start) { return nil }
        guard start.starts(with: "<?xml".utf8) else { return EncodingDetection() }
        guard let end = endOfInstruction(start) else {
            return isWhole || start.count >= longestStart ? EncodingDetection() : nil
        }
        guard let label = declaredEncoding(start[5..<end]) else { return EncodingDetection() }
        guard let named = table(labelled: label) else { throw unknown(label, by: "document") }
        if named.hasPrefix("UTF-16") || named.hasPrefix("UTF-32") {
            throw XMLError(
                .invalidEncoding, "The document declares \(named), and its declaration is not written in that.",
                hint: "If it is UTF-8 in fact, say so: XMLEvents(charset: \"utf-8\").", line: 1, column: 1)
        }
        return EncodingDetection(table: named == "UTF-8" ? nil : named)
    }

    /// glibc's table for a name of IANA's or a label of WHATWG's; nil for neither.
    static func table(labelled label: String) -> String? {
        let label = String(decoding: label.utf8.map { 0x41...0x5A ~= $0 ? $0 | 0x20 : $0 }, as: UTF8.self)
        return exact[label] ?? TextEncoding(label: label)?.table
    }

    /// Names that browsers read as another encoding, with more characters; XML knows no such custom.
    private static let exact = [
        "ansi_x3.4-1968": "US-ASCII", "ascii": "US-ASCII", "us-ascii": "US-ASCII",
        "cp819": "ISO-8859-1", "ibm819": "ISO-8859-1", "iso-8859-1": "ISO-8859-1", "iso8859-1": "ISO-8859-1",
        "iso_8859-1": "ISO-8859-1", "l1": "ISO-8859-1", "latin1": "ISO-8859-1",
        "iso-8859-9": "ISO-8859-9", "iso_8859-9": "ISO-8859-9", "l5": "ISO-8859-9", "latin5": "ISO-8859-9",
        "iso-8859-11": "ISO-8859-11", "tis-620": "TIS-620",
        "utf-16": "UTF-16", "iso-10646-ucs-2": "UTF-16", "ucs-2": "UTF-16",
        "utf-32": "UTF-32BE", "utf-32be": "UTF-32BE", "utf-32le": "UTF-32LE",
    ]

    /// Byte order marks, the longer ones first.
    private static let marks: [(String?, [UInt8])] = [
        ("UTF-32LE", [0xFF, 0xFE, 0, 0]), ("UTF-32BE", [0, 0, 0xFE, 0xFF]), (nil, [0xEF, 0xBB, 0xBF]),
        ("UTF-16LE", [0xFF, 0xFE]), ("UTF-16BE", [0xFE, 0xFF]),
    ]

    /// What "<" looks like where it takes more than a byte.
    private static let shapes: [(String, [UInt8])] = [
        ("UTF-32LE", [0x3C, 0, 0, 0]), ("UTF-32BE", [0, 0, 0, 0x3C]), ("UTF-16LE", [0x3C, 0]), ("UTF-16BE", [0, 0x3C]),
    ]

    private static func unknown(_ label: String, by whom: String) -> XMLError {
        let shown = label.unicodeScalars.prefix(40).map { 0x20...0x7E ~= $0.value ? Character($0) : "?" }
        return XMLError(
            .unsupportedEncoding, "The \(whom) names the encoding “\(String(shown))”, which is not known.",
            hint: "Give the charset it really is in: XMLEvents(charset:) or XMLDocumentSerializer(charset:).", line: 1,
            column: 1)
    }

    private static func endOfInstruction(_ bytes: [UInt8]) -> Int? {
        bytes.indices.dropLast().dropFirst(5).first { bytes[$0] == 0x3F && bytes[$0 + 1] == 0x3E }
    }

    /// The value of `encoding` in an XML declaration (XML 1.0 §4.3.3); nil without one, and when it is malformed.
    private static func declaredEncoding(_ declaration: ArraySlice<UInt8>) -> String? {
        var rest = declaration
        while true {
            let spaces = rest.prefix { $0 == 0x20 || 0x09...0x0D ~= $0 }
            rest = rest.dropFirst(spaces.count)
            let name = rest.prefix { 0x61...0x7A ~= $0 }
            rest = rest.dropFirst(name.count).drop { $0 == 0x20 || 0x09...0x0D ~= $0 }
            guard !spaces.isEmpty, !name.isEmpty, rest.first == 0x3D else { return nil }
            rest = rest.dropFirst().drop { $0 == 0x20 || 0x09...0x0D ~= $0 }
            guard let quote = rest.first, quote == 0x22 || quote == 0x27 else { return nil }
            let value = rest.dropFirst().prefix { $0 != quote }
            rest = rest.dropFirst(value.count + 2)
            if name.elementsEqual("encoding".utf8) { return String(decoding: value, as: UTF8.self) }
        }
    }
}
