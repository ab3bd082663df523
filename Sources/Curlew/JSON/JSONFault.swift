// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension JSON {
    /// The position and the reason of a decoding failure in a JSON text: the `underlyingError` of a `DecodingError`.
    ///
    /// ```swift
    /// do {
    ///     let user = try JSON().decode(User.self, from: bytes)
    ///     print(user.name)
    /// } catch DecodingError.typeMismatch(_, let context) {
    ///     if let fault = context.underlyingError as? JSON.Fault { print(fault.line, fault.excerpt) }
    /// }
    /// ```
    public struct Fault: Error, Sendable, Hashable {
        /// The reason, without values of the text.
        public let reason: String
        /// The offset of the byte, from 0, in the text as UTF-8 without a byte order mark and a prefix.
        public let offset: Int
        /// The line, from 1.
        ///
        /// Lines end with a line feed.
        public let line: Int
        /// The column, from 1, in Unicode scalars.
        public let column: Int
        /// The text around the position on one line: 32 bytes before and 32 after it, with “…” where the text is cut.
        ///
        /// Values of members with names of secrets, such as `password`, are `<redacted>`.
        public let excerpt: String
        /// The category of the failure, which selects the message of a `NetworkError`.
        let kind: Kind

        enum Kind: Sendable, Hashable {
            /// The text is not JSON.
            case syntax
            /// The text exceeds the decoder's limit of size or of nested levels.
            case limit
            /// An array has no more elements.
            case end
            /// The type cannot hold a number.
            case range
            /// A value has another kind than the type expects, or the type refuses it.
            case value
        }

        init(_ reason: String, _ kind: Kind, at offset: Int, in text: Span<UInt8>) {
            self.reason = reason
            self.offset = offset
            var (line, start) = (1, 0)
            for place in 0..<min(offset, text.count) where text[place] == UInt8(ascii: "\n") {
                line += 1
                start = place + 1
            }
            var column = 1
            for place in start..<max(start, min(offset, text.count)) where text[place] & 0xC0 != 0x80 { column += 1 }
            self.line = line
            self.column = column
            excerpt = JSONExcerpt.text(around: offset, of: text)
            self.kind = kind
        }
    }
}

extension JSONFlaw.Reason {
    fileprivate var kind: JSON.Fault.Kind { self == .depth || self == .size ? .limit : .syntax }
}

extension JSON.Fault {
    /// The reason for errors that types throw themselves; their own messages may quote the text.
    static let refusal = "the value is malformed or out of range"
}

extension DecodingError {
    /// Creates the error for a text that is not JSON.
    init(_ flaw: JSONFlaw, in text: Span<UInt8>) {
        let fault = JSON.Fault("\(flaw.reason)", flaw.reason.kind, at: flaw.offset, in: text)
        self = .dataCorrupted(
            Context(
                codingPath: [], debugDescription: "The given data was not valid JSON: \(fault)", underlyingError: fault)
        )
    }
}

extension JSON.Fault: CustomStringConvertible {
    /// The position, the reason and the excerpt.
    public var description: String { "\(place): \(reason), near `\(excerpt)`" }

    /// The position, such as "line 4, column 17"; positions in the first line omit the line.
    var place: String { line > 1 ? "line \(line), column \(column)" : "column \(column)" }
}
