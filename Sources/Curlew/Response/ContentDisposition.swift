// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension ResponseHead {
    /// The `Content-Disposition` of a response (RFC 6266): whether to save the body, and under which name.
    ///
    /// ```swift
    /// let disposition = ResponseHead.ContentDisposition(
    ///     "attachment; filename=\"r.pdf\"; filename*=UTF-8''r%C3%A9sum%C3%A9.pdf")
    /// print(disposition?.filename ?? "")   // résumé.pdf
    /// ```
    public struct ContentDisposition: Sendable, Hashable {
        /// The disposition type in lower case, such as `attachment` or `inline`.
        public let type: String
        /// The file name that the server sent, unchanged; nil without one.
        ///
        /// The name is taken from `filename*` (RFC 8187) when that is valid, else from `filename`. It is untrusted: do
        /// not build a path from it, use ``safeFilename``.
        public let filename: String?

        /// Parses a field's value; nil without a type.
        public init?(_ text: String) {
            let end = text.utf8.firstIndex(of: UInt8(ascii: ";")) ?? text.utf8.endIndex
            let type = text[..<end].lowercased().trimmingSpace
            guard type.isToken else { return nil }
            self.type = type
            var parameters = FieldParameters(rest: text.utf8[end...])
            var (plain, extended) = (String?.none, String?.none)
            while let (name, value) = parameters.next() {
                switch name.lowercased() {
                case "filename": plain = plain ?? value
                case "filename*": extended = extended ?? value.extendedValue
                default: break
                }
            }
            filename = extended ?? plain
        }

        /// Whether the response should be saved instead of shown: true for every type except `inline` (RFC 6266 §4.2).
        public var isAttachment: Bool { type != "inline" }

        /// The file name made safe for a new file in a directory that the caller chooses; nil when no character is
        /// left.
        ///
        /// Only the last component after a "/" or "\" is used. Control and bidirectional characters are removed, and
        /// white space and dots at both ends. A name of more than 200 bytes is shortened and keeps its extension. An
        /// ending of incomplete downloads (`.part`, `.part.json`, `.part.json.new`) begins with "_" instead of a dot.
        public var safeFilename: String? { filename.flatMap(FileName.safe) }
    }
}
