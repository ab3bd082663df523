// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The parts of a path as they are put together: literals as they are, values escaped.
struct PathSegments {
    private(set) var text = ""
    /// The first segment made of values that names another resource than it should.
    private(set) var misleading: Path.Misleading?
    /// Where the segment begins that is being written, in UTF-8.
    private var start = 0
    private var hasValue = false
    /// Whether a "?" or "#" has come, behind which there are no segments.
    private var isPastPath = false
    private var values = 0
    /// Whether a literal makes it a URL of its own before the first value comes.
    private var isAbsolute = false

    /// The path; "./" keeps values from making it a URL of its own (RFC 3986 §4.2).
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

    /// Ends the segment that is being written; at last the one at the end.
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
