// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials

extension MultipartElements {
    /// An element of a multipart response, as it arrives; see ``MultipartElements``.
    public enum Element: Sendable, Hashable {
        /// A part begins, with these fields.
        case part(HeaderFields)
        /// The next bytes of the part.
        case bytes(ByteChunk)
        /// The part has ended.
        case end
    }
}

extension MultipartElements {
    /// Limits of the data that a reader of a multipart response stores.
    public struct Limits: Sendable, Hashable {
        /// The maximum number of parts; nil for no limit.
        public var parts: Int?
        /// The maximum size of one part's fields.
        public var fields: ByteCount
        /// The maximum size of one part when parts are collected; the response limit applies to all parts together.
        public var part: ByteCount

        /// Creates limits, each with a default.
        public init(parts: Int? = 1000, fields: ByteCount = .kibibytes(16), part: ByteCount = .defaultBodyLimit) {
            self.parts = parts
            self.fields = fields
            self.part = part
        }
    }
}

extension MultipartElements {
    /// One complete part of a multipart response.
    public struct Part: Sendable, Hashable {
        /// The part's own fields.
        public let fields: HeaderFields
        /// The received bytes of the part; a nested multipart is not parsed.
        public let body: Data

        /// Creates a part from its fields and bytes.
        public init(fields: HeaderFields, body: Data) {
            self.fields = fields
            self.body = body
        }

        /// The media type; nil if the fields have no valid `Content-Type`.
        public var contentType: MediaType? { fields[.contentType].flatMap { MediaType($0) } }

        /// The name of a form's part (RFC 7578 §4.2); nil if the fields do not have a name.
        public var name: String? { parameter("name").map(unescaped) }

        /// The file name that the sender set; nil without one.
        ///
        /// The value is that of a valid `filename*` (RFC 8187), else that of `filename`. The percent-escapes of
        /// browsers are decoded.
        ///
        /// The name is untrusted: do not use it as a path.
        public var filename: String? {
            parameter("filename*").flatMap(\.extendedValue) ?? parameter("filename").map(unescaped)
        }

        /// Decodes the escapes that browsers use for quotes and line breaks (HTML, multipart/form-data encoding
        /// algorithm).
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
}

extension MultipartElements.Part: CustomStringConvertible, CustomReflectable {
    /// The size of the part; never its content.
    public var description: String { "a part of \(body.count) bytes" }

    /// A mirror that shows the description, and the fields without credentials.
    public var customMirror: Mirror {
        let children: KeyValuePairs<String, Any> = ["description": description, "fields": fields.map(\.description)]
        return Mirror(self, children: children, displayStyle: .struct)
    }
}
