// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import FoundationEssentials

/// A decoder of text that arrives in parts; for one task at a time.
///
/// The result is the same as that of ``TextEncoding/text(of:lossy:)`` with `lossy` for all parts together, except that
/// a byte order mark stays.
package struct TextStream {
    private let encoding: TextEncoding
    /// The bytes after the last boundary between characters.
    private var pending: [UInt8] = []

    /// Creates a decoder.
    package init(_ encoding: TextEncoding) { self.encoding = encoding }

    /// The number of bytes that wait for the rest of a character, or for a byte that surely ends one.
    ///
    /// In UTF-8, UTF-16 and single-byte encodings there are at most three. In other encodings there may be many: a
    /// boundary needs a byte below 0x30, such as a blank or "/", and with shift states there is only the end.
    package var pendingCount: Int { pending.count }

    /// Appends the characters that some bytes complete, as UTF-8; invalid bytes become U+FFFD.
    ///
    /// - Throws: `NetworkError` like ``TextEncoding/text(of:lossy:)``, if glibc's table cannot be opened.
    package mutating func decode(
        _ bytes: some Collection<UInt8>, isLast: Bool, into output: inout [UInt8]
    ) throws(NetworkError) {
        let scanned = pending.count
        pending += bytes
        let end = isLast ? pending.count : boundary(from: scanned)
        if end == 0 { return }
        let part = pending[..<end]
        switch encoding.scheme {
        case .utf8: output += String(decoding: part, as: UTF8.self).utf8
        case .utf16(let isBigEndian): output += Self.utf16(part, isBigEndian).utf8
        default: output += try encoding.text(of: Data(part), lossy: true).utf8
        }
        pending.removeFirst(end)
    }

    /// Returns the position of the last boundary between characters; there is no boundary before `start`.
    private func boundary(from start: Int) -> Int {
        switch encoding.scheme {
        case .windows1252, .singleByte: return pending.count
        case .utf8:
            for back in 1...3 where back <= pending.count {
                let byte = pending[pending.count - back]
                if byte < 0x80 { break }
                if byte >= 0xC0 {
                    let length = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : 2
                    return length > back ? pending.count - back : pending.count
                }
            }
            return pending.count
        case .utf16(let isBigEndian):
            let even = pending.count & ~1
            guard even > 0 else { return 0 }
            let high = pending[isBigEndian ? even - 2 : even - 1]
            return high & 0xFC == 0xD8 ? even - 2 : even
        case .multibyte(_, []): return 0
        case .multibyte:
            // Second and later bytes of a character are at least 0x30 in all these encodings. After two bytes of a
            // character of four bytes in gb18030, an invalid byte is no boundary: the digit before it counts again.
            let last = pending.indices[start...].last { index in
                pending[index] < 0x30
                    && !(index >= 2 && pending[index - 2] >= 0x81 && 0x30...0x39 ~= pending[index - 1])
            }
            return last.map { $0 + 1 } ?? 0
        }
    }

    private static func utf16(_ bytes: ArraySlice<UInt8>, _ isBigEndian: Bool) -> String {
        var units: [UInt16] = []
        units.reserveCapacity(bytes.count / 2)
        for index in stride(from: bytes.startIndex, to: bytes.endIndex - 1, by: 2) {
            let (first, second) = (UInt16(bytes[index]), UInt16(bytes[index + 1]))
            units.append(isBigEndian ? first << 8 | second : second << 8 | first)
        }
        let text = String(decoding: units, as: UTF16.self)
        // An odd byte after a lead surrogate belongs to the same incomplete character.
        let isCounted = units.last.map(UTF16.isLeadSurrogate) ?? false
        return bytes.count.isMultiple(of: 2) || isCounted ? text : text + "\u{FFFD}"
    }
}

extension TextEncoding {
    /// The encoding that a byte order mark names, and the length of the mark; nil without a mark.
    package static func byteOrderMark(of bytes: [UInt8]) -> (encoding: TextEncoding, length: Int)? {
        TextEncoding(byteOrderMarkOf: Data(bytes.prefix(4))).map { ($0, $0.byteOrderMark.count) }
    }
}
