// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension JSON {
    /// Where decoding failed in a text of JSON, and what stands there: the `underlyingError` of a `DecodingError`.
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
        /// What is wrong, without values of the text.
        public let reason: String
        /// The byte at which it stands, from 0, behind a byte order mark.
        public let offset: Int
        /// The line, from 1.
        ///
        /// Lines end with a line feed.
        public let line: Int
        /// The column, from 1, in Unicode scalars.
        public let column: Int
        /// At most 64 characters around the place, on one line.
        ///
        /// Values of members whose names speak of secrets, such as `password`, are `<redacted>`.
        public let excerpt: String
        /// What it is, for those who choose their words by it.
        let kind: Kind

        enum Kind: Sendable, Hashable {
            /// The text is not JSON.
            case syntax
            /// A number that its type cannot hold.
            case range
            /// Another value than was expected.
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

extension DecodingError {
    /// A text that is not JSON.
    init(_ flaw: JSONFlaw, in text: Span<UInt8>) {
        let fault = JSON.Fault("\(flaw.reason)", .syntax, at: flaw.offset, in: text)
        self = .dataCorrupted(
            Context(
                codingPath: [], debugDescription: "The given data was not valid JSON: \(fault)", underlyingError: fault)
        )
    }
}

extension JSON.Fault: CustomStringConvertible {
    /// The place, the reason and the excerpt.
    public var description: String { "\(place): \(reason), near `\(excerpt)`" }

    /// "line 4, column 17"; without the line in texts of one line, and in the first.
    var place: String { line > 1 ? "line \(line), column \(column)" : "column \(column)" }
}
