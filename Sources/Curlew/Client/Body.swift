// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import FoundationEssentials

/// What a call sends: a value and how it is written, or bytes and what they are.
///
/// A value is encoded when the call is made, in the caller's task; `Content-Type` says what came of it, unless the call's
/// or the client's fields say something themselves. Without a body there is no `Content-Type`.
///
/// ```swift
/// try await api.post("users", .encoding(draft))                       // in the client's format
/// try await api.post("login", .form(["user": "ada", "code": 7]))
/// try await api.post("notes", .json(["title": "Alps", "tags": ["a", "b"]]))
/// try await api.put("logo.png", .file("/srv/logo.png", type: "image/png"))
/// ```
///
/// In a literal for `json` every value has to be a literal, too; a dictionary in it whose values differ in type needs
/// `as JSONValue`.
public struct Body: Sendable {
    enum Content: Sendable {
        case made(RequestBody, MediaType?)
        /// By the format of the client, unless it brings its own.
        case value((any RequestFormat)?, @Sendable (any RequestFormat) throws -> Data)
    }

    let content: Content

    /// A value in the client's format for requests.
    ///
    /// - Parameter value: Any `Encodable` value.
    public static func encoding(_ value: some Encodable & Sendable) -> Body {
        Body(content: .value(nil) { try $0.encode(value) })
    }

    /// A value in a format of its own.
    ///
    /// - Parameters:
    ///   - value: Any `Encodable` value.
    ///   - format: What writes it.
    public static func encoding(_ value: some Encodable & Sendable, as format: some RequestFormat) -> Body {
        Body(content: .value(format) { try $0.encode(value) })
    }

    /// A value as JSON.
    ///
    /// - Parameters:
    ///   - value: Any `Encodable` value. Its text is made as a whole; see ``jsonArray(_:by:)`` for large arrays.
    ///   - format: What writes it; JSON with the default options unless given.
    @_disfavoredOverload
    public static func json(_ value: some Encodable & Sendable, by format: JSON = JSON()) -> Body {
        encoding(value, as: format)
    }

    /// JSON that is written as a literal.
    ///
    /// - Parameter value: Such as `["title": "Alps", "size": 3]`.
    public static func json(_ value: JSONValue) -> Body { encoding(value, as: JSON()) }

    /// A form: `application/x-www-form-urlencoded`.
    ///
    /// - Parameters:
    ///   - value: A keyed value: a struct, or a dictionary.
    ///   - encoder: The rules; AFNetworking's unless given.
    @_disfavoredOverload
    public static func form(_ value: some Encodable & Sendable, by encoder: QueryEncoder = QueryEncoder()) -> Body {
        encoding(value, as: Form(encoder))
    }

    /// A form that is written as a literal: `application/x-www-form-urlencoded`.
    ///
    /// - Parameters:
    ///   - fields: Names and values of any type; nil is written as the rules say.
    ///   - encoder: The rules; AFNetworking's unless given.
    public static func form(_ fields: Query, by encoder: QueryEncoder = QueryEncoder()) -> Body {
        encoding(fields, as: Form(encoder))
    }

    /// A value as a property list.
    ///
    /// - Parameters:
    ///   - value: Any `Encodable` value that is a dictionary or an array.
    ///   - format: What writes it; XML unless given.
    public static func plist(_ value: some Encodable & Sendable, by format: PropertyList = PropertyList()) -> Body {
        encoding(value, as: format)
    }

    /// Bytes at hand.
    ///
    /// - Parameters:
    ///   - bytes: Any bytes.
    ///   - type: What they are.
    public static func bytes(_ bytes: some Sequence<UInt8>, type: MediaType = .octetStream) -> Body {
        raw(.bytes(bytes), type: type)
    }

    /// Text in UTF-8.
    ///
    /// - Parameters:
    ///   - text: The text.
    ///   - type: What it is.
    public static func text(_ text: String, type: MediaType = .text) -> Body { raw(.text(text), type: type) }

    /// A file; see ``RequestBody/file(_:)``.
    ///
    /// - Parameters:
    ///   - path: Where it is.
    ///   - type: What it is.
    public static func file(_ path: String, type: MediaType = .octetStream) -> Body { raw(.file(path), type: type) }

    /// What a sequence yields; see ``RequestBody/stream(_:length:canReplay:)``.
    ///
    /// - Parameters:
    ///   - sequence: Chunks of bytes.
    ///   - length: How many bytes will come; nil when that is not known.
    ///   - canReplay: Whether iterating it again yields the same bytes.
    ///   - type: What they are.
    public static func stream<S: AsyncSequence & Sendable>(
        _ sequence: S, length: Int64? = nil, canReplay: Bool = false, type: MediaType = .octetStream
    ) -> Body where S.Element: Sequence, S.Element.Element == UInt8 {
        raw(.stream(sequence, length: length, canReplay: canReplay), type: type)
    }

    /// A form of several parts: `multipart/form-data`.
    ///
    /// ```swift
    /// let form = Body.multipart {
    ///     Part("title", "Alps")
    ///     Part("image", file: path)
    /// }
    /// let photo = try await api.post("photos", form, as: Photo.self)
    /// ```
    /// - Parameters:
    ///   - boundary: What stands between the parts; chosen at random unless given.
    ///   - parts: Lists the parts.
    /// - Throws: What the builder throws.
    public static func multipart(
        boundary: MultipartBoundary = MultipartBoundary(), @PartsBuilder _ parts: () throws -> [Part]
    ) rethrows -> Body {
        multipart(try MultipartForm(boundary: boundary, parts))
    }

    /// A form of several parts that is kept, to watch its progress or to send it again: `multipart/form-data`.
    ///
    /// - Parameter form: The form.
    public static func multipart(_ form: MultipartForm) -> Body { raw(.multipart(form), type: form.contentType) }

    /// Any body of a request.
    ///
    /// - Parameters:
    ///   - body: The body.
    ///   - type: What it is; nil for no `Content-Type`.
    public static func raw(_ body: RequestBody, type: MediaType?) -> Body { Body(content: .made(body, type)) }

    /// The body of a request and what it is.
    ///
    /// - Parameter client: The client's format.
    /// - Throws: What the format throws.
    func made(by client: any RequestFormat) throws -> (RequestBody, MediaType?) {
        switch content {
        case .made(let body, let type): return (body, type)
        case .value(let own, let encode):
            let format = own ?? client
            return (.bytes(try encode(format)), format.contentType)
        }
    }
}

extension Body: CustomStringConvertible, CustomReflectable {
    /// What kind of body it is; never its bytes.
    public var description: String {
        switch content {
        case .made(let body, let type):
            "\(type.map { "\($0)" } ?? "a body")" + (body.length.map { ", \($0) bytes" } ?? "")
        case .value(let format, _): "a value as \(format.map { "\($0.contentType)" } ?? "the client writes it")"
        }
    }

    /// The description alone: what it sends may be secret.
    public var customMirror: Mirror { Mirror(self, children: ["description": description]) }
}
