// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// What a server says about saving a response: `Content-Disposition` (RFC 6266).
///
/// ```swift
/// let disposition = ContentDisposition("attachment; filename=\"r.pdf\"; filename*=UTF-8''r%C3%A9sum%C3%A9.pdf")
/// print(disposition?.filename ?? "")   // résumé.pdf
/// ```
public struct ContentDisposition: Sendable, Hashable {
    /// The disposition type in lower case, such as `attachment` or `inline`.
    public let type: String
    /// The name that the server gives, as it gives it; nil without one.
    ///
    /// That of `filename*` (RFC 8187) where it can be read, else that of `filename`. It comes from a stranger: take no path
    /// from it, but ``safeFilename``.
    public let filename: String?

    /// Reads a field's value; nil without a type.
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

    /// Whether the response is to be saved rather than shown: every type but `inline` says so (RFC 6266 §4.2).
    public var isAttachment: Bool { type != "inline" }

    /// The name made safe to be that of a new file in a directory of one's own choice; nil when nothing is left of it.
    ///
    /// The last component alone, whichever slash separates them; without control and bidirectional characters, without dots
    /// at its start and blanks and dots at its end; of at most 200 bytes, the extension kept.
    public var safeFilename: String? { filename.flatMap(FileName.safe) }
}
