// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import FoundationEssentials

/// The body of a call: a value with the format that encodes it, or bytes with their media type.
///
/// A value is encoded when the call is made, in the caller's task. The body sets `Content-Type`, unless the fields of
/// the call or the client set it. A call without a body has no `Content-Type`.
///
/// ```swift
/// try await api.post("users", .encoding(draft))                       // in the client's format
/// try await api.post("login", .form(["user": "ada", "code": 7]))
/// try await api.post("notes", .json(["title": "Alps", "tags": ["a", "b"]]))
/// try await api.put("logo.png", .file("/srv/logo.png", type: "image/png"))
/// ```
///
/// In a literal for `json`, every value must be a literal too. A nested dictionary whose values differ in type needs
/// `as JSONValue`.
public struct Body: Sendable {
    enum Content: Sendable {
        case raw(RequestBody, MediaType?)
        /// A value to encode: with its own format, or with the client's format if its own is nil.
        case value((any RequestFormat)?, @Sendable (any RequestFormat) throws -> Data)
    }

    let content: Content

    /// Creates a body that encodes a value in the client's request format.
    ///
    /// - Parameter value: Any `Encodable` value.
    public static func encoding(_ value: some Encodable & Sendable) -> Body {
        Body(content: .value(nil) { try $0.encode(value) })
    }

    /// Creates a body that encodes a value in a given format.
    ///
    /// - Parameters:
    ///   - value: Any `Encodable` value.
    ///   - format: The format that encodes the value.
    public static func encoding(_ value: some Encodable & Sendable, as format: some RequestFormat) -> Body {
        Body(content: .value(format) { try $0.encode(value) })
    }

    /// Creates a body that encodes a value as JSON.
    ///
    /// - Parameters:
    ///   - value: Any `Encodable` value. It is encoded as a whole, in memory; see ``jsonArray(_:by:)`` for large
    ///     arrays.
    ///   - format: The encoder; JSON with the default options by default.
    @_disfavoredOverload
    public static func json(_ value: some Encodable & Sendable, by format: JSON = JSON()) -> Body {
        encoding(value, as: format)
    }

    /// Creates a JSON body from a literal.
    ///
    /// - Parameter value: A JSON literal, such as `["title": "Alps", "size": 3]`.
    public static func json(_ value: JSONValue) -> Body { encoding(value, as: JSON()) }

    /// Creates a form body from a value: `application/x-www-form-urlencoded`.
    ///
    /// - Parameters:
    ///   - value: A keyed value: a struct, or a dictionary.
    ///   - encoder: The encoding rules; those of AFNetworking by default.
    @_disfavoredOverload
    public static func form(
        _ value: some Encodable & Sendable, by encoder: Request.QueryEncoder = Request.QueryEncoder()
    ) -> Body {
        encoding(value, as: Form(encoder))
    }

    /// Creates a form body from a literal: `application/x-www-form-urlencoded`.
    ///
    /// - Parameters:
    ///   - fields: Names and values of any type; the encoding rules decide how a nil value is written.
    ///   - encoder: The encoding rules; those of AFNetworking by default.
    public static func form(_ fields: Request.Query, by encoder: Request.QueryEncoder = Request.QueryEncoder()) -> Body
    {
        encoding(fields, as: Form(encoder))
    }

    /// Creates a body that encodes a value as a property list.
    ///
    /// - Parameters:
    ///   - value: Any `Encodable` value that is a dictionary or an array.
    ///   - format: The encoder; XML by default.
    public static func plist(_ value: some Encodable & Sendable, by format: PropertyList = PropertyList()) -> Body {
        encoding(value, as: format)
    }

    /// Creates a body from bytes in memory.
    ///
    /// - Parameters:
    ///   - bytes: Any bytes.
    ///   - type: The `Content-Type`; `application/octet-stream` by default.
    public static func bytes(_ bytes: some Sequence<UInt8>, type: MediaType = .octetStream) -> Body {
        raw(.bytes(bytes), type: type)
    }

    /// Creates a body from a text, in UTF-8.
    ///
    /// - Parameters:
    ///   - text: The text.
    ///   - type: The `Content-Type`.
    public static func text(_ text: String, type: MediaType = .text) -> Body { raw(.text(text), type: type) }

    /// Creates a body from a file; see ``RequestBody/file(_:)``.
    ///
    /// - Parameters:
    ///   - path: The path of the file.
    ///   - type: The `Content-Type`.
    public static func file(_ path: String, type: MediaType = .octetStream) -> Body { raw(.file(path), type: type) }

    /// Creates a body from a sequence of chunks; see ``RequestBody/stream(_:length:canReplay:)``.
    ///
    /// - Parameters:
    ///   - sequence: Chunks of bytes.
    ///   - length: The total number of bytes; nil if it is unknown.
    ///   - canReplay: Whether iterating the sequence again yields the same bytes.
    ///   - type: The `Content-Type`; `application/octet-stream` by default.
    public static func stream<S: AsyncSequence & Sendable>(
        _ sequence: S, length: Int64? = nil, canReplay: Bool = false, type: MediaType = .octetStream
    ) -> Body where S.Element: Sequence, S.Element.Element == UInt8 {
        raw(.stream(sequence, length: length, canReplay: canReplay), type: type)
    }

    /// Creates a `multipart/form-data` body from the parts of a builder.
    ///
    /// ```swift
    /// let form = Body.multipart {
    ///     MultipartForm.Part("title", "Alps")
    ///     MultipartForm.Part("image", file: path)
    /// }
    /// let photo = try await api.post("photos", form, as: Photo.self)
    /// ```
    /// - Parameters:
    ///   - boundary: The delimiter between the parts; random by default.
    ///   - parts: A builder that lists the parts.
    /// - Throws: The error of the builder.
    public static func multipart(
        boundary: MultipartForm.Boundary = MultipartForm.Boundary(),
        @MultipartForm.PartsBuilder _ parts: () throws -> [MultipartForm.Part]
    ) rethrows -> Body {
        multipart(try MultipartForm(boundary: boundary, parts))
    }

    /// Creates a `multipart/form-data` body from a form that the caller keeps, to observe its progress or to send it
    /// again.
    ///
    /// - Parameter form: The form.
    public static func multipart(_ form: MultipartForm) -> Body { raw(.multipart(form), type: form.contentType) }

    /// Creates a body from a request body and its media type.
    ///
    /// - Parameters:
    ///   - body: The body.
    ///   - type: The `Content-Type`; nil for no `Content-Type`.
    public static func raw(_ body: RequestBody, type: MediaType?) -> Body { Body(content: .raw(body, type)) }

    /// Encodes the body and returns it with its media type.
    ///
    /// - Parameter client: The client's format, for a value without its own format.
    /// - Throws: The error of the format.
    func encoded(by client: any RequestFormat) throws -> (RequestBody, MediaType?) {
        switch content {
        case .raw(let body, let type): return (body, type)
        case .value(let own, let encode):
            let format = own ?? client
            return (.bytes(try encode(format)), format.contentType)
        }
    }
}

extension Body: CustomStringConvertible, CustomReflectable {
    /// The media type and the length of the body; never its bytes.
    public var description: String {
        switch content {
        case .raw(let body, let type):
            "\(type.map { "\($0)" } ?? "a body")" + (body.length.map { ", \($0) bytes" } ?? "")
        case .value(let format, _): "a value as \(format.map { "\($0.contentType)" } ?? "the client writes it")"
        }
    }

    /// A mirror that shows only the description, because the body may contain secrets.
    public var customMirror: Mirror { Mirror(self, children: ["description": description]) }
}
