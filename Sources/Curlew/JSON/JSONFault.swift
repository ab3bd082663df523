// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension JSON {
    /// Where and why decoding failed in a text of JSON: the `underlyingError` of a `DecodingError`.
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
        /// The text around the place on one line: 32 bytes before it and 32 behind it, with “…” where more follows.
        ///
        /// Values of members whose names speak of secrets, such as `password`, are `<redacted>`.
        public let excerpt: String
        /// The category of the failure, which selects the message of a `NetworkError`.
        let kind: Kind

        enum Kind: Sendable, Hashable {
            /// The text is not JSON.
            case syntax
            /// The text is larger or nested more deeply than the decoder reads.
            case limit
            /// An array has no more elements.
            case end
            /// A number that its type cannot hold.
            case range
            /// A value of another kind than the type expects, or one that the type refuses.
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
    /// The reason of errors that types throw themselves, whose words may quote the text.
    static let refusal = "the value is malformed or out of range"
}

extension DecodingError {
    /// A text that is not JSON.
    init(_ flaw: JSONFlaw, in text: Span<UInt8>) {
        let fault = JSON.Fault("\(flaw.reason)", flaw.reason.kind, at: flaw.offset, in: text)
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
