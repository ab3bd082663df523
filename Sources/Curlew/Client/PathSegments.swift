// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// A builder of a path's text: it keeps literals unchanged and escapes values.
struct PathSegments {
    private(set) var text = ""
    /// The first segment, made of values, that names a different resource.
    private(set) var misleading: Path.Misleading?
    /// The UTF-8 offset in `text` where the current segment begins.
    private var start = 0
    private var hasValue = false
    /// Whether `text` contains a "?" or "#"; no segments follow it.
    private var isPastPath = false
    private var values = 0
    /// Whether the literal before the first value makes the path an absolute URL.
    private var isAbsolute = false

    /// The finished path; a leading "./" prevents values from making it an absolute URL (RFC 3986 §4.2).
    var reference: String { values > 0 && !isAbsolute && BaseURL.isAbsolute(text) ? "./" + text : text }

    mutating func append(literal: String) {
        guard !isPastPath else { return text += literal }
        var rest = literal.utf8[...]
        while let index = rest.firstIndex(where: Self.endsSegment) {
            text += String(Substring(rest[..<index]))
            end()
            text.unicodeScalars.append(Unicode.Scalar(rest[index]))
            isPastPath = rest[index] != UInt8(ascii: "/")
            start = text.utf8.count
            rest = rest[rest.index(after: index)...]
            if isPastPath { break }
        }
        text += String(Substring(rest))
    }

    mutating func append(value: String) {
        if values == 0 { isAbsolute = BaseURL.isAbsolute(text) }
        values += 1
        hasValue = true
        text += value.percentEncoded(keeping: .unreserved)
    }

    /// Ends the current segment and records it if it is misleading; also called once at the end of the path.
    mutating func end() {
        guard hasValue, !isPastPath else { return }
        hasValue = false
        let segment = text[text.utf8.index(text.utf8.startIndex, offsetBy: start)...]
        guard misleading == nil, ["", ".", ".."].contains(segment) else { return }
        misleading = Path.Misleading(number: values, segment: String(segment))
    }

    private static func endsSegment(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: "/") || byte == UInt8(ascii: "?") || byte == UInt8(ascii: "#")
    }
}
