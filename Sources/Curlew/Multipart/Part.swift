// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension MultipartForm {
    /// One part of a ``MultipartForm``: its name, its fields and its body.
    ///
    /// Names and file names are encoded as browsers do: in UTF-8, with `%22`, `%0D` and `%0A` for quotes, CR and LF.
    /// Each line break of a name is first normalized to CR LF (WHATWG HTML, multipart/form-data encoding algorithm).
    ///
    /// ```swift
    /// MultipartForm.Part("title", "Alps")
    /// MultipartForm.Part("image", file: "/srv/alps.jpg")
    /// MultipartForm.Part("thumb", bytes: thumbnail, filename: "alps.png")
    /// MultipartForm.Part("log", stream: lines, filename: "log.txt")
    /// MultipartForm.Part(fields: ["Content-Disposition": "form-data; name=meta"], body: .text("{}"))
    /// ```
    public struct Part: Sendable {
        /// The name; nil for a part that was created from fields.
        public let name: String?
        /// The part's own fields, as the request sends them.
        public let fields: HeaderFields
        /// The content of the part.
        public let body: RequestBody

        /// Creates a text part.
        ///
        /// - Parameters:
        ///   - name: The name.
        ///   - value: The text, sent unchanged in UTF-8 without a content type. Browsers would normalize its line
        ///     breaks to CR LF.
        public init(_ name: String, _ value: String) {
            self.init(named: name, .text(value), filename: nil, type: nil)
        }

        /// Creates a part from a file, which is opened when the part is sent and is read ahead on its own thread.
        ///
        /// A missing or unreadable file, and a directory, are `.invalidRequest` when the transfer is created. A file
        /// whose size changes before it is sent completely is `.bodyFailed`.
        /// - Parameters:
        ///   - name: The name.
        ///   - path: The path of the file.
        ///   - filename: The file name to send; the last component of the path by default.
        ///   - type: The media type; derived from the file name's extension by default.
        public init(_ name: String, file path: String, filename: String? = nil, type: MediaType? = nil) {
            let last = path.split(separator: "/").last.map(String.init) ?? path
            self.init(
                named: name, .file(path), filename: filename ?? last,
                type: type ?? filename.flatMap(MediaType.known) ?? MediaType(forFile: last))
        }

        /// Creates a part from bytes in memory.
        ///
        /// - Parameters:
        ///   - name: The name.
        ///   - bytes: Any bytes.
        ///   - filename: The file name to send; no file name by default.
        ///   - type: The media type; derived from the file name's extension by default.
        public init(_ name: String, bytes: some Sequence<UInt8>, filename: String? = nil, type: MediaType? = nil) {
            self.init(name, body: .bytes(bytes), filename: filename, type: type)
        }

        /// Creates a part from a sequence of chunks; see ``RequestBody/stream(_:length:canReplay:)``.
        ///
        /// - Parameters:
        ///   - name: The name.
        ///   - sequence: Chunks of bytes; the sequence is iterated when the request sends this part.
        ///   - length: The total number of bytes; nil if it is unknown.
        ///   - canReplay: Whether iterating the sequence again yields the same bytes; if not, the form cannot be sent
        ///     again.
        ///   - filename: The file name to send; no file name by default.
        ///   - type: The media type; derived from the file name's extension by default.
        public init<S: AsyncSequence & Sendable>(
            _ name: String, stream sequence: S, length: Int64? = nil, canReplay: Bool = false, filename: String? = nil,
            type: MediaType? = nil
        ) where S.Element: Sequence, S.Element.Element == UInt8 {
            let body = RequestBody.stream(sequence, length: length, canReplay: canReplay)
            self.init(name, body: body, filename: filename, type: type)
        }

        /// Creates a part from any request body, such as a descriptor.
        ///
        /// - Parameters:
        ///   - name: The name.
        ///   - body: The content of the part.
        ///   - filename: The file name to send; no file name by default.
        ///   - type: The media type; derived from the file name's extension by default.
        public init(_ name: String, body: RequestBody, filename: String? = nil, type: MediaType? = nil) {
            self.init(
                named: name, body, filename: filename,
                type: type ?? filename.map { MediaType(forFile: $0) } ?? .octetStream
            )
        }

        /// Creates a part with custom fields, which are validated and sent unchanged, without any other fields.
        ///
        /// - Parameters:
        ///   - fields: The part's fields; a part of a form needs `Content-Disposition` (RFC 7578 §4.2).
        ///   - body: The content of the part.
        public init(fields: HeaderFields, body: RequestBody) {
            name = nil
            self.fields = fields
            self.body = body
        }

        private init(named name: String, _ body: RequestBody, filename: String?, type: MediaType?) {
            self.name = name
            self.body = body
            var disposition = "form-data; name=\"\(Self.escaped(Self.normalised(name)))\""
            if let filename { disposition += "; filename=\"\(Self.escaped(filename))\"" }
            var fields: HeaderFields = [.contentDisposition: disposition]
            if let type { fields.append(.contentType, type.description) }
            self.fields = fields
        }

        /// Replaces each line break (CR, LF or CR LF) with CR LF.
        private static func normalised(_ name: String) -> String {
            var result = String.UnicodeScalarView()
            var last: Unicode.Scalar?
            for scalar in name.unicodeScalars {
                if scalar == "\n", last == "\r" {
                    last = scalar
                    continue
                }
                if scalar == "\r" || scalar == "\n" { result.append("\r") }
                result.append(scalar == "\r" ? "\n" : scalar)
                last = scalar
            }
            return String(result)
        }

        private static func escaped(_ name: String) -> String {
            var result = String.UnicodeScalarView()
            for scalar in name.unicodeScalars {
                switch scalar {
                case "\"": result.append(contentsOf: "%22".unicodeScalars)
                case "\r": result.append(contentsOf: "%0D".unicodeScalars)
                case "\n": result.append(contentsOf: "%0A".unicodeScalars)
                default: result.append(scalar)
                }
            }
            return String(result)
        }
    }
}

extension MultipartForm.Part {
    /// Returns a part for each name and value that a ``Request/QueryEncoder`` produces for a value, such as `a[b]`.
    ///
    /// A `Data` value is sent unchanged. A nil value becomes a part without bytes, unless the encoder omits it.
    /// - Parameters:
    ///   - value: A structure, a dictionary, or a ``Request/Query``.
    ///   - encoder: The encoding rules; those of AFNetworking by default.
    /// - Throws: `EncodingError` for a value without names; see ``Request/QueryEncoder/encode(_:)``.
    public static func fields(of value: some Encodable, by encoder: Request.QueryEncoder = Request.QueryEncoder())
        throws -> [MultipartForm.Part]
    {
        try encoder.pairs(of: value).map { pair in
            if let bytes = pair.bytes {
                return MultipartForm.Part(named: pair.name, .bytes(bytes), filename: nil, type: .octetStream)
            }
            return MultipartForm.Part(pair.name, pair.values?.joined(separator: ",") ?? "")
        }
    }
}

extension MultipartForm.Part: CustomStringConvertible, CustomReflectable {
    /// The name and the length of the part; never its content.
    public var description: String {
        "\(label(at: nil)), \(body.length.map { "\($0) bytes" } ?? "unknown length")"
    }

    /// A mirror that shows only the description.
    public var customMirror: Mirror { Mirror(self, children: ["description": description], displayStyle: .struct) }

    /// Returns the part's name for error messages.
    func label(at index: Int?) -> String {
        if let name { return "the part “\(name.shortened(to: 64).escapingControls)”" }
        return index.map { "part \($0 + 1)" } ?? "a part"
    }
}

extension MultipartForm {
    /// A result builder that lists the parts of a form, with `if`, `for` and arrays.
    @resultBuilder
    public enum PartsBuilder {
        /// Adds one part.
        public static func buildExpression(_ part: MultipartForm.Part) -> [MultipartForm.Part] { [part] }

        /// Adds the parts of a sequence.
        public static func buildExpression(_ parts: some Sequence<MultipartForm.Part>) -> [MultipartForm.Part] {
            Array(parts)
        }

        /// Rejects a value that is not a part at compile time, with a clear message.
        @available(*, unavailable, message: "a multipart body is made of `MultipartForm.Part(…)` values")
        @_disfavoredOverload
        public static func buildExpression<T>(_ value: T) -> [MultipartForm.Part] { [] }

        /// Joins the parts of several statements.
        public static func buildBlock(_ parts: [MultipartForm.Part]...) -> [MultipartForm.Part] {
            parts.flatMap(\.self)
        }

        /// Adds the parts of an `if` without `else`.
        public static func buildOptional(_ parts: [MultipartForm.Part]?) -> [MultipartForm.Part] { parts ?? [] }

        /// Adds the parts of the first branch.
        public static func buildEither(first parts: [MultipartForm.Part]) -> [MultipartForm.Part] { parts }

        /// Adds the parts of the second branch.
        public static func buildEither(second parts: [MultipartForm.Part]) -> [MultipartForm.Part] { parts }

        /// Adds the parts of a loop.
        public static func buildArray(_ parts: [[MultipartForm.Part]]) -> [MultipartForm.Part] { parts.flatMap(\.self) }

        /// Adds parts that are available only in a newer system.
        public static func buildLimitedAvailability(_ parts: [MultipartForm.Part]) -> [MultipartForm.Part] { parts }
    }
}
