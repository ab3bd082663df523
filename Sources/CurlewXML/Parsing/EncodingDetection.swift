// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// Parsing: turns bytes of any encoding into complete units of markup in UTF-8. libxml2 gets only these, so its result
// does not depend on the chunks in which a document arrives.

internal import Curlew

/// The encoding of a document, detected from its first bytes.
struct EncodingDetection: Equatable {
    /// glibc's name of the encoding's table; nil for UTF-8.
    var table: String?
    /// The length of the byte order mark in bytes.
    var markLength = 0

    /// The number of bytes in which the detection searches for the XML declaration.
    static let maximumStartLength = 1024

    /// Detects the encoding of a document.
    ///
    /// The precedence is: a byte order mark, the server's charset (RFC 7303 §3), the first characters and the
    /// declaration (XML 1.0 appendix F), UTF-8.
    ///
    /// - Parameters:
    ///   - start: The first bytes.
    ///   - charset: The server's charset.
    ///   - isWhole: Whether the document has no more bytes.
    /// - Returns: The encoding; nil if more bytes are needed.
    /// - Throws: `.unsupportedEncoding`; `.invalidEncoding` if the declaration contradicts the encoding of its own
    ///   bytes.
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
            return isWhole || start.count >= maximumStartLength ? EncodingDetection() : nil
        }
        guard let label = declaredEncoding(start[5..<end]) else { return EncodingDetection() }
        guard let named = table(labelled: label) else { throw unknown(label, by: "document") }
        if named.hasPrefix("UTF-16") || named.hasPrefix("UTF-32") {
            throw XMLError(
                .invalidEncoding, "The document declares \(named), but its declaration uses another encoding.",
                hint: "If the document is UTF-8, pass XMLEvents(charset: \"utf-8\").", line: 1, column: 1)
        }
        return EncodingDetection(table: named == "UTF-8" ? nil : named)
    }

    /// Returns glibc's table for an IANA name or a WHATWG label; nil for an unknown name.
    static func table(labelled label: String) -> String? {
        let label = String(decoding: label.utf8.map { 0x41...0x5A ~= $0 ? $0 | 0x20 : $0 }, as: UTF8.self)
        return exact[label] ?? TextEncoding(label: label)?.table
    }

    /// Names that browsers map to a larger encoding, but that XML takes literally.
    private static let exact = [
        "ansi_x3.4-1968": "US-ASCII", "ascii": "US-ASCII", "us-ascii": "US-ASCII",
        "cp819": "ISO-8859-1", "ibm819": "ISO-8859-1", "iso-8859-1": "ISO-8859-1", "iso8859-1": "ISO-8859-1",
        "iso_8859-1": "ISO-8859-1", "l1": "ISO-8859-1", "latin1": "ISO-8859-1",
        "iso-8859-9": "ISO-8859-9", "iso_8859-9": "ISO-8859-9", "l5": "ISO-8859-9", "latin5": "ISO-8859-9",
        "iso-8859-11": "ISO-8859-11", "tis-620": "TIS-620",
        "utf-16": "UTF-16", "iso-10646-ucs-2": "UTF-16", "ucs-2": "UTF-16",
        "utf-32": "UTF-32BE", "utf-32be": "UTF-32BE", "utf-32le": "UTF-32LE",
    ]

    /// The byte order marks, longer marks first.
    private static let marks: [(String?, [UInt8])] = [
        ("UTF-32LE", [0xFF, 0xFE, 0, 0]), ("UTF-32BE", [0, 0, 0xFE, 0xFF]), (nil, [0xEF, 0xBB, 0xBF]),
        ("UTF-16LE", [0xFF, 0xFE]), ("UTF-16BE", [0xFE, 0xFF]),
    ]

    /// The bytes of "<" in encodings with more than one byte per character.
    private static let shapes: [(String, [UInt8])] = [
        ("UTF-32LE", [0x3C, 0, 0, 0]), ("UTF-32BE", [0, 0, 0, 0x3C]), ("UTF-16LE", [0x3C, 0]), ("UTF-16BE", [0, 0x3C]),
    ]

    private static func unknown(_ label: String, by source: String) -> XMLError {
        let shown = label.unicodeScalars.prefix(40).map { 0x20...0x7E ~= $0.value ? Character($0) : "?" }
        return XMLError(
            .unsupportedEncoding, "The \(source) names the unknown encoding “\(String(shown))”.",
            hint: "Pass the real charset: XMLEvents(charset:) or XMLDocumentSerializer(charset:).", line: 1,
            column: 1)
    }

    private static func endOfInstruction(_ bytes: [UInt8]) -> Int? {
        bytes.indices.dropLast().dropFirst(5).first { bytes[$0] == 0x3F && bytes[$0 + 1] == 0x3E }
    }

    /// Returns the value of `encoding` in an XML declaration (XML 1.0 §4.3.3); nil if it is missing or malformed.
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
