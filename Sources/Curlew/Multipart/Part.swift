// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// One part of a ``MultipartForm``: a name, what it is, and its bytes, wherever they come from.
///
/// Names and file names are sent as browsers do: in UTF-8, with `%22`, `%0D` and `%0A` for quotes and line breaks, and
/// with CR LF for each line break of a name (WHATWG HTML, multipart/form-data encoding algorithm).
///
/// ```swift
/// Part("title", "Alps")
/// Part("image", file: "/srv/alps.jpg")
/// Part("thumb", bytes: thumbnail, filename: "alps.png")
/// Part("log", stream: lines, filename: "log.txt")
/// Part(fields: ["Content-Disposition": "form-data; name=meta"], body: .text("{}"))
/// ```
public struct Part: Sendable {
    /// The name; nil for a part whose fields were given.
    public let name: String?
    /// The part's own fields, as they are sent.
    public let fields: HeaderFields
    /// What it holds.
    public let body: RequestBody

    /// A field of text.
    ///
    /// - Parameters:
    ///   - name: The name.
    ///   - value: The text, sent in UTF-8 as it is, without a content type; browsers would turn its line breaks into CR LF.
    public init(_ name: String, _ value: String) {
        self.init(named: name, .text(value), filename: nil, type: nil)
    }

    /// A file, opened when it is sent and read ahead on a thread of its own.
    ///
    /// A missing or unreadable file, and a directory, are `.invalidRequest` when the transfer is made, one whose size
    /// changes before it was sent is `.bodyFailed`.
    /// - Parameters:
    ///   - name: The name.
    ///   - path: Where the file is.
    ///   - filename: What the server is told; the last component of the path unless given.
    ///   - type: What it is; by the file name's extension unless given.
    public init(_ name: String, file path: String, filename: String? = nil, type: MediaType? = nil) {
        let last = path.split(separator: "/").last.map(String.init) ?? path
        self.init(
            named: name, .file(path), filename: filename ?? last,
            type: type ?? filename.flatMap(MediaType.known) ?? MediaType(forFile: last))
    }

    /// Bytes at hand.
    ///
    /// - Parameters:
    ///   - name: The name.
    ///   - bytes: Any bytes.
    ///   - filename: What the server is told; nothing unless given.
    ///   - type: What they are; by the file name's extension unless given.
    public init(_ name: String, bytes: some Sequence<UInt8>, filename: String? = nil, type: MediaType? = nil) {
        self.init(name, body: .bytes(bytes), filename: filename, type: type)
    }

    /// What a sequence yields; see ``RequestBody/stream(_:length:canReplay:)``.
    ///
    /// - Parameters:
    ///   - name: The name.
    ///   - sequence: Chunks of bytes, iterated when it is their turn.
    ///   - length: How many bytes will come; nil when that is not known.
    ///   - canReplay: Whether iterating it again yields the same bytes; unless it does, the form cannot be sent again.
    ///   - filename: What the server is told; nothing unless given.
    ///   - type: What they are; by the file name's extension unless given.
    public init<S: AsyncSequence & Sendable>(
        _ name: String, stream sequence: S, length: Int64? = nil, canReplay: Bool = false, filename: String? = nil,
        type: MediaType? = nil
    ) where S.Element: Sequence, S.Element.Element == UInt8 {
        let body = RequestBody.stream(sequence, length: length, canReplay: canReplay)
        self.init(name, body: body, filename: filename, type: type)
    }

    /// Any body of a request, such as a descriptor.
    ///
    /// - Parameters:
    ///   - name: The name.
    ///   - body: What it holds.
    ///   - filename: What the server is told; nothing unless given.
    ///   - type: What it is; by the file name's extension unless given.
    public init(_ name: String, body: RequestBody, filename: String? = nil, type: MediaType? = nil) {
        self.init(
            named: name, body, filename: filename, type: type ?? filename.map { MediaType(forFile: $0) } ?? .octetStream
        )
    }

    /// A part with fields of one's own, which are checked and sent as they are, and no others.
    ///
    /// - Parameters:
    ///   - fields: Its fields; `Content-Disposition` belongs to a form's (RFC 7578 §4.2).
    ///   - body: What it holds.
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

    /// Each line break as CR LF, whatever it was.
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

extension Part {
    /// A part for each name and value that a ``QueryEncoder`` writes of a value, such as `a[b]`.
    ///
    /// `Data` is sent as it is, and nil as nothing, in a part without bytes unless the encoder leaves it out.
    /// - Parameters:
    ///   - value: A structure, a dictionary, a ``Query``.
    ///   - encoder: The rules; AFNetworking's unless given.
    /// - Throws: `EncodingError` for a value without names; see ``QueryEncoder/encode(_:)``.
    public static func fields(of value: some Encodable, by encoder: QueryEncoder = QueryEncoder()) throws -> [Part] {
        try encoder.pairs(of: value).map { pair in
            if let bytes = pair.bytes {
                return Part(named: pair.name, .bytes(bytes), filename: nil, type: .octetStream)
            }
            return Part(pair.name, pair.values?.joined(separator: ",") ?? "")
        }
    }
}

extension Part: CustomStringConvertible, CustomReflectable {
    /// The name and how long the part is; never what it holds.
    public var description: String {
        "\(label(at: nil)), \(body.length.map { "\($0) bytes" } ?? "unknown length")"
    }

    /// The description alone.
    public var customMirror: Mirror { Mirror(self, children: ["description": description], displayStyle: .struct) }

    /// What errors call it.
    func label(at index: Int?) -> String {
        if let name { return "the part “\(name.shortened(to: 64).escapingControls)”" }
        return index.map { "part \($0 + 1)" } ?? "a part"
    }
}

/// Lists the parts of a form, with `if`, `for` and arrays.
@resultBuilder
public enum PartsBuilder {
    /// A part.
    public static func buildExpression(_ part: Part) -> [Part] { [part] }

    /// Parts at hand.
    public static func buildExpression(_ parts: some Sequence<Part>) -> [Part] { Array(parts) }

    /// What is no part, for the sake of its message.
    @available(*, unavailable, message: "a multipart body is made of `Part(…)` values")
    @_disfavoredOverload
    public static func buildExpression<T>(_ value: T) -> [Part] { [] }

    /// Parts in a row.
    public static func buildBlock(_ parts: [Part]...) -> [Part] { parts.flatMap(\.self) }

    /// Parts that may be missing.
    public static func buildOptional(_ parts: [Part]?) -> [Part] { parts ?? [] }

    /// The parts of the first branch.
    public static func buildEither(first parts: [Part]) -> [Part] { parts }

    /// The parts of the second branch.
    public static func buildEither(second parts: [Part]) -> [Part] { parts }

    /// The parts of a loop.
    public static func buildArray(_ parts: [[Part]]) -> [Part] { parts.flatMap(\.self) }

    /// Parts that need a newer system.
    public static func buildLimitedAvailability(_ parts: [Part]) -> [Part] { parts }
}
