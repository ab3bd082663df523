// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials

/// What a multipart response consists of, as it arrives; see ``MultipartElements``.
public enum MultipartElement: Sendable, Hashable {
    /// A part begins, with these fields.
    case part(HeaderFields)
    /// The next bytes of the part.
    case bytes(ByteChunk)
    /// The part has ended.
    case end
}

/// How much a multipart response may have of what is kept.
public struct MultipartLimits: Sendable, Hashable {
    /// The most parts; nil for any number.
    public var parts: Int?
    /// The most bytes that the fields of one part have.
    public var fields: ByteCount
    /// The most bytes that one part has when parts are collected; what all have is limited as every body is.
    public var part: ByteCount

    /// Limits with their defaults.
    public init(parts: Int? = 1000, fields: ByteCount = .kibibytes(16), part: ByteCount = .mebibytes(64)) {
        self.parts = parts
        self.fields = fields
        self.part = part
    }
}

/// One whole part of a multipart response.
public struct MultipartPart: Sendable, Hashable {
    /// The part's own fields.
    public let fields: HeaderFields
    /// What it holds, as it came; a multipart inside is not taken apart.
    public let body: Data

    /// A part of its fields and bytes.
    public init(fields: HeaderFields, body: Data) {
        self.fields = fields
        self.body = body
    }

    /// What it is; nil when its fields do not say.
    public var contentType: MediaType? { fields[.contentType].flatMap { MediaType($0) } }

    /// The name of a part of a form (RFC 7578 §4.2); nil when its fields do not say.
    public var name: String? { parameter("name").map(unescaped) }

    /// The file name that the sender gave; nil without one.
    ///
    /// That of `filename*` (RFC 8187), where it can be read, else that of `filename`; the escapes of browsers are
    /// undone.
    ///
    /// It comes from a stranger: take no path from it.
    public var filename: String? {
        parameter("filename*").flatMap(\.extendedValue) ?? parameter("filename").map(unescaped)
    }

    /// What browsers write instead of quotes and line breaks (HTML, multipart/form-data encoding algorithm).
    private func unescaped(_ name: String) -> String {
        guard name.utf8.contains(UInt8(ascii: "%")) else { return name }
        return [("%22", "\""), ("%0D", "\r"), ("%0A", "\n")].reduce(name) { text, escape in
            text.replacing(escape.0, with: escape.1)
        }
    }

    private func parameter(_ name: String) -> String? {
        guard let text = fields[.contentDisposition], let start = text.utf8.firstIndex(of: UInt8(ascii: ";")) else {
            return nil
        }
        var parameters = FieldParameters(rest: text.utf8[start...])
        while let (found, value) = parameters.next() {
            if found.lowercased() == name { return value }
        }
        return nil
    }
}

extension MultipartPart: CustomStringConvertible, CustomReflectable {
    /// How long it is; never what it holds.
    public var description: String { "a part of \(body.count) bytes" }

    /// The description, and the fields without credentials.
    public var customMirror: Mirror {
        let children: KeyValuePairs<String, Any> = ["description": description, "fields": fields.map(\.description)]
        return Mirror(self, children: children, displayStyle: .struct)
    }
}
