// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The Huffman code for the strings of fields (RFC 7541 Appendix B).
package enum Huffman {
    /// Decodes compressed bytes.
    package static func decode(_ bytes: some Sequence<UInt8>) throws -> [UInt8] {
        var output: [UInt8] = []
        var code: UInt32 = 0
        var length = 0
        for byte in bytes {
            for bit in stride(from: 7, through: 0, by: -1) {
                code = code << 1 | UInt32(byte >> bit & 1)
                length += 1
                if let symbol = symbol(code, length) {
                    guard symbol < 256 else { throw MalformedFields("A compressed string has an end mark.") }
                    output.append(UInt8(symbol))
                    (code, length) = (0, 0)
                } else if length > 30 {
                    throw MalformedFields("A compressed string has an unknown code.")
                }
            }
        }
        // The remaining bits must be a prefix of the end mark, which is all ones (RFC 7541 §5.2).
        guard length < 8, code == 1 << length - 1 else { throw MalformedFields("A compressed string is badly padded.") }
        return output
    }

    private static func symbol(_ code: UInt32, _ length: Int) -> Int? {
        guard length < codes.count else { return nil }
        let row = codes[length]
        guard code >= row.first, Int(code - row.first) < row.symbols.count else { return nil }
        return row.symbols[Int(code - row.first)]
    }

    /// The first code of each length and the symbols from that code on.
    ///
    /// The code is canonical: symbols are numbered by length and, within a length, by value.
    private static let codes: [(first: UInt32, symbols: [Int])] = {
        var rows: [(first: UInt32, symbols: [Int])] = [(0, [])]
        var next: UInt32 = 0
        for length in 1...30 {
            next <<= 1
            let symbols = lengths.indices.filter { lengths[$0] == length }
            rows.append((next, symbols))
            next += UInt32(symbols.count)
        }
        return rows
    }()

    /// The number of bits in each symbol's code (RFC 7541 Appendix B); the last symbol is the end mark.
    static let lengths: [UInt8] = [
        13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28,
        28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15,
        6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
        15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28, 20, 22,
        20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23,
        23, 24, 22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22,
        22, 22, 23, 22, 22, 23, 26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26,
        27, 24, 21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, 26, 27,
        26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26, 30,
    ]
}
