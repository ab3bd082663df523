// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import Curlew

/// A converter from the bytes of an HTML page in any encoding to normalised UTF-8.
///
/// The output consists of whole characters, its line ends are U+000A (HTML §13.2.3.5), and it contains no byte order
/// mark. Invalid bytes and U+0000 become U+FFFD.
struct PageCharacters {
    private enum Source {
        case unknown
        /// The page has no declared encoding, and all bytes up to here are ASCII, with the bytes not yet converted.
        case ascii([UInt8])
        case known(TextStream)
    }

    private let charset: String?
    private var source = Source.unknown
    private var isAfterReturn = false

    /// Creates a converter.
    ///
    /// - Parameter charset: The server's charset.
    init(charset: String?) { self.charset = charset }

    /// The number of bytes that are not converted yet.
    var pendingCount: Int { if case .known(let stream) = source { stream.pendingCount } else { 0 } }

    /// Appends the characters that some bytes complete.
    ///
    /// - Parameters:
    ///   - bytes: The next bytes; the first call has at least ``MetaPrescan/maximumLength`` bytes or the whole page.
    ///   - isLast: Whether these are the last bytes.
    ///   - output: The characters.
    /// - Throws: `.unsupportedEncoding` if the encoding's table is missing.
    mutating func append(_ bytes: [UInt8], isLast: Bool, to output: inout [UInt8]) throws(XMLError) {
        let start = output.count
        switch source {
        case .unknown:
            let (encoding, length) = Self.encoding(of: bytes, charset: charset)
            source = encoding.map { .known(TextStream($0)) } ?? .ascii([])
            try append(Array(bytes.dropFirst(length)), isLast: isLast, to: &output)
            return
        case .ascii(let pending):
            let bytes = pending + bytes
            let end = bytes.firstIndex { $0 >= 0x80 } ?? bytes.count
            output += bytes[..<end]
            let rest = Array(bytes[end...])
            if rest.isEmpty || (rest.count < 4 && !isLast) {
                source = .ascii(rest)
            } else {
                source = .known(TextStream(Self.isUTF8(rest) ? .utf8 : .windows1252))
                normalise(&output, from: start)
                try append(rest, isLast: isLast, to: &output)
                return
            }
        case .known(var stream):
            // Release the other reference to the bytes that the stream keeps.
            source = .unknown
            do throws(NetworkError) {
                try stream.decode(bytes, isLast: isLast, into: &output)
            } catch {
                throw XMLError(.unsupportedEncoding, error.message, hint: error.hint)
            }
            source = .known(stream)
        }
        normalise(&output, from: start)
    }

    /// Returns the encoding of a page, or nil if neither the page nor the server names one, and the length of the byte
    /// order mark.
    ///
    /// The precedence is: a byte order mark (WHATWG Encoding Standard, "decode"), the server's charset, the page's own
    /// declaration (HTML §13.2.3.2). Unknown names do not count.
    static func encoding(of start: [UInt8], charset: String?) -> (encoding: TextEncoding?, markLength: Int) {
        if let mark = TextEncoding.byteOrderMark(of: start) { return (mark.encoding, mark.length) }
        return (charset.flatMap { TextEncoding(label: $0) } ?? MetaPrescan.encoding(of: start), 0)
    }

    /// Returns whether some bytes begin with a character in UTF-8 outside ASCII.
    private static func isUTF8(_ bytes: [UInt8]) -> Bool {
        (2...4).contains { length in
            bytes.count >= length
                && String(validating: bytes[..<length], as: UTF8.self)?.unicodeScalars.count == 1
        }
    }

    /// Normalises line ends and U+0000 in the output from `start` on.
    private mutating func normalise(_ output: inout [UInt8], from start: Int) {
        var zeros = 0
        var end = start
        for index in start..<output.count {
            let byte = output[index]
            if byte == 0 { zeros += 1 }
            // Skip the line feed after a carriage return, which has already ended the line.
            if !(byte == 0x0A && isAfterReturn) {
                output[end] = byte == 0x0D ? 0x0A : byte
                end += 1
            }
            isAfterReturn = byte == 0x0D
        }
        output.removeSubrange(end...)
        if zeros == 0 { return }
        var replaced: [UInt8] = []
        replaced.reserveCapacity(output.count - start + 2 * zeros)
        for byte in output[start...] {
            if byte == 0 { replaced += [0xEF, 0xBF, 0xBD] } else { replaced.append(byte) }
        }
        output.replaceSubrange(start..., with: replaced)
    }
}
