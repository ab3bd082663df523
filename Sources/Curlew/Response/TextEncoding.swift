// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials

/// A character encoding of the WHATWG Encoding Standard, under any of its labels.
///
/// UTF-8, UTF-16 and windows-1252 are always available. The other encodings use glibc's tables, which for ISO-2022-JP
/// follow JIS where the standard follows Microsoft (wave dash, minus and a few more characters).
///
/// ```swift
/// let cyrillic = TextEncoding(label: "windows-1251") ?? .utf8
/// print(try cyrillic.text(of: data, lossy: true))
/// ```
public struct TextEncoding: Hashable, Sendable, CustomStringConvertible {
    /// How bytes become characters.
    enum Scheme: Hashable, Sendable {
        case utf8
        case utf16(isBigEndian: Bool)
        case windows1252
        /// One byte for each character, with a table of glibc.
        case singleByte(table: String)
        /// One or more bytes for each character, with a table of glibc; without lead bytes, with shift states.
        case multibyte(table: String, leads: [ClosedRange<UInt8>])
    }

    /// The standard's name of the encoding, such as "UTF-8", "Shift_JIS" or "windows-1252".
    public let name: String
    let scheme: Scheme

    init(name: String, scheme: Scheme) {
        self.name = name
        self.scheme = scheme
    }

    /// glibc's name of the encoding's table.
    package var table: String {
        switch scheme {
        case .utf8: "UTF-8"
        case .utf16(let isBigEndian): isBigEndian ? "UTF-16BE" : "UTF-16LE"
        case .windows1252: "CP1252"
        case .singleByte(let table), .multibyte(let table, _): table
        }
    }

    /// Finds the encoding of a label; nil for an unknown label.
    ///
    /// - Parameter label: The value of a charset parameter or a `<meta>` element, in any case and with or without
    ///   surrounding white space. "us-ascii", "iso-8859-1" and "latin1" are labels of windows-1252.
    public init?(label: String) {
        let words = label.utf8.split { [0x09, 0x0A, 0x0C, 0x0D, 0x20].contains($0) }
        guard words.count == 1,
            let found = Self.byLabel[String(decoding: words[0].map(\.asciiLowercased), as: UTF8.self)]
        else { return nil }
        self = found
    }

    /// UTF-8, the encoding of nearly all text and of all JSON (RFC 8259 §8.1).
    public static let utf8 = TextEncoding(name: "UTF-8", scheme: .utf8)
    /// UTF-16 in little-endian order, which is also what the label "utf-16" means without a byte order mark.
    public static let utf16LittleEndian = TextEncoding(name: "UTF-16LE", scheme: .utf16(isBigEndian: false))
    /// UTF-16 in big-endian order.
    public static let utf16BigEndian = TextEncoding(name: "UTF-16BE", scheme: .utf16(isBigEndian: true))
    /// Western European: ISO 8859-1 with printable characters instead of C1 controls.
    ///
    /// Every byte is a character, so decoding never fails.
    public static let windows1252 = TextEncoding(name: "windows-1252", scheme: .windows1252)

    /// The name.
    public var description: String { name }

    /// Decodes bytes in exactly this encoding and drops its byte order mark.
    ///
    /// - Parameters:
    ///   - data: The bytes.
    ///   - lossy: Whether invalid bytes become U+FFFD instead of an error.
    /// - Throws: `NetworkError` in phase `decoding`: `.decodingFailed` with the offset of the first invalid byte,
    ///   `.unsupported` when glibc's table of the encoding is not installed, `.resourceExhausted` when it cannot be
    ///   opened.
    public func text(of data: Data, lossy: Bool = false) throws(NetworkError) -> String {
        do throws(TextFailure) {
            return try decode(data, lossy: lossy)
        } catch {
            throw NetworkError(error, in: self)
        }
    }
}

extension NetworkError {
    /// Creates the error that a user sees when bytes cannot be decoded as text.
    init(_ failure: TextFailure, in encoding: TextEncoding) {
        let hint = "Decode the text with lossy: true, or decode the bytes with another TextEncoding."
        switch failure {
        case .invalid(let offset):
            self.init(
                .decodingFailed, phase: .decoding,
                "The body is not \(encoding): the bytes at offset \(offset) are not a character.", hint: hint)
        case .incomplete(let offset):
            self.init(
                .decodingFailed, phase: .decoding,
                "The body ends inside a character of \(encoding), which begins at offset \(offset).", hint: hint)
        case .unavailable(let refusal) where refusal.isMissing:
            self.init(
                .unsupported, phase: .decoding, "This machine's C library has no table of \(encoding).",
                hint: "Install glibc's character sets (glibc-gconv-extra in Fedora; part of libc6 in Debian).")
        case .unavailable(let refusal):
            self.init(
                .resourceExhausted, phase: .decoding,
                "The table of \(encoding) cannot be opened: \(errorText(refusal.code)).")
        }
    }
}
