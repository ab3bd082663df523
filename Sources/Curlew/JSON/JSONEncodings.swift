// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import FoundationEssentials

/// The Unicode encoding of a JSON text.
enum JSONEncodings {
    /// Bytes of UTF-8's byte order mark.
    static let mark: [UInt8] = [0xEF, 0xBB, 0xBF]

    /// Converts a text in UTF-16 or UTF-32 to UTF-8; returns nil when the text is already in UTF-8.
    /// - Throws: `JSONFlaw` if the text is not well-formed.
    static func utf8(_ text: some Collection<UInt8>) throws(JSONFlaw) -> [UInt8]? {
        // Most texts begin with two characters of ASCII, each in a byte.
        var start = text.makeIterator()
        if let first = start.next(), first != 0, first < 0x80, start.next() != 0 { return nil }
        guard let (encoding, mark) = encoding(of: Array(text.prefix(4))) else { return nil }
        guard let text = String(bytes: text.dropFirst(mark), encoding: encoding) else {
            throw JSONFlaw(.encoding, at: 0)
        }
        return Array(text.utf8)
    }

    /// Returns the encoding and the length of the byte order mark; nil for UTF-8.
    ///
    /// JSON begins with an ASCII character and contains no NUL (RFC 4627 §3).
    private static func encoding(of start: [UInt8]) -> (String.Encoding, mark: Int)? {
        if start == [0x00, 0x00, 0xFE, 0xFF] { return (.utf32BigEndian, 4) }
        if start == [0xFF, 0xFE, 0x00, 0x00] { return (.utf32LittleEndian, 4) }
        if start.starts(with: [0xFE, 0xFF]) { return (.utf16BigEndian, 2) }
        if start.starts(with: [0xFF, 0xFE]) { return (.utf16LittleEndian, 2) }
        switch start.map({ $0 == 0 }) {
        case [true, true, true, false]: return (.utf32BigEndian, 0)
        case [false, true, true, true]: return (.utf32LittleEndian, 0)
        case let nuls where nuls.starts(with: [true, false]): return (.utf16BigEndian, 0)
        case let nuls where nuls.starts(with: [false, true]): return (.utf16LittleEndian, 0)
        default: return nil
        }
    }
}

extension UInt8 {
    /// White space between the tokens of JSON (RFC 8259 §2), and of XML.
    var isBlank: Bool { self == 0x20 || self == 0x0A || self == 0x0D || self == 0x09 }
}
