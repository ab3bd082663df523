// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The pixels of an X bitmap: C source text with bytes, or words of 16 bits in the form of X10, whose lowest bit is the
/// leftmost pixel (X11 manual, bitmap(1), "File format").
///
/// gdk-pixbuf writes such a file to the disk first, and takes memory before it reports the size.
enum XBMPixels {
    /// Returns the pixels in RGB; a set bit is black.
    static func decode(_ file: [UInt8], width: Int, height: Int) throws(ImageError) -> [UInt8] {
        guard let brace = file.firstIndex(of: UInt8(ascii: "{")) else { throw .truncated(.xbm) }
        let isX10 = String(decoding: file[..<brace], as: UTF8.self).contains("short")
        var numbers = Numbers(rest: file[(brace + 1)...])
        var pixels = [UInt8](repeating: 255, count: width * height * 3)
        let bits = isX10 ? 16 : 8
        for row in 0..<height {
            for first in stride(from: 0, to: width, by: bits) {
                guard let number = numbers.next() else { throw .truncated(.xbm) }
                for bit in 0..<min(bits, width - first) where number >> bit & 1 == 1 {
                    let start = (row * width + first + bit) * 3
                    for channel in 0..<3 { pixels[start + channel] = 0 }
                }
            }
        }
        return pixels
    }

    /// The numbers of an array in C source text, decimal or hexadecimal.
    private struct Numbers {
        var rest: ArraySlice<UInt8>

        mutating func next() -> Int? {
            guard let start = rest.firstIndex(where: { 0x30...0x39 ~= $0 || $0 == UInt8(ascii: "}") }),
                rest[start] != UInt8(ascii: "}")
            else { return nil }
            let word = rest[start...].prefix { Character(UnicodeScalar($0)).isLetter || 0x30...0x39 ~= $0 }
            rest = rest[word.endIndex...]
            let text = String(decoding: word.prefix(8), as: UTF8.self).lowercased()
            return text.hasPrefix("0x") ? Int(text.dropFirst(2), radix: 16) : Int(text)
        }
    }
}
