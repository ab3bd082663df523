// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// Multipart: bodies of several parts (RFC 2046 §5.1, RFC 7578), written for requests and read out of responses. A form
// is a value that becomes the pieces of a RequestBody; the reader is a pure parser with serializers around it.

/// A form of several parts, as `multipart/form-data` (RFC 7578), that is sent as it is read.
///
/// Nothing is read before the request is on the wire, and no more than 512 KiB ahead of the peer, however long the files
/// are. The length is known, and said, when that of each part is; otherwise the body goes in chunks. It can be sent again
/// when each part can.
///
/// ```swift
/// let form = MultipartForm {
///     Part("title", "Alps")
///     for path in paths { Part("image", file: path) }
/// }
/// let request = Request(.put, url, fields: form.fields, body: .multipart(form))
/// ```
///
/// A form without parts, and one whose names or fields cannot be written, makes its request `.invalidRequest`.
public struct MultipartForm: Sendable {
    /// What it consists of, in the order in which it is sent.
    public let parts: [Part]
    /// What stands between the parts.
    public let boundary: MultipartBoundary
    /// The body and how it is made of the parts; one for all copies, so that each knows how far it was sent.
    let layout: MultipartLayout

    /// A form of parts at hand.
    ///
    /// - Parameters:
    ///   - parts: The parts.
    ///   - boundary: What stands between them; chosen at random unless given.
    public init(_ parts: [Part], boundary: MultipartBoundary = MultipartBoundary()) {
        self.parts = parts
        self.boundary = boundary
        layout = MultipartLayout(parts, boundary)
    }

    /// A form of the parts of a builder.
    ///
    /// - Parameters:
    ///   - boundary: What stands between them; chosen at random unless given.
    ///   - parts: Lists the parts.
    /// - Throws: What the builder throws.
    public init(
        boundary: MultipartBoundary = MultipartBoundary(), @PartsBuilder _ parts: () throws -> [Part]
    ) rethrows {
        self.init(try parts(), boundary: boundary)
    }

    /// `multipart/form-data` with the boundary.
    public var contentType: MediaType { .formData.adding("boundary", boundary.text) }

    /// The field that says what the body is, for a ``Request`` that is made by hand.
    public var fields: HeaderFields { [.contentType: contentType.description] }

    /// How far each part was sent, at one moment of the transfer.
    ///
    /// Sent is what was handed to the connection; a body that is sent again starts over. Bytes of files and streams are
    /// told apart once the form's body is on its way, so ask the form that was sent, or a copy of it. Of a body that is
    /// compressed while it is sent nothing can be said.
    ///
    /// ```swift
    /// for await progress in transfer.progress {
    ///     for part in form.progress(at: progress) { bars[part.index].set(part.fraction ?? 0) }
    /// }
    /// ```
    /// - Parameter progress: The transfer's.
    /// - Returns: One for each part, in their order.
    public func progress(at progress: TransferProgress) -> [PartProgress] {
        layout.progress(sent: progress.sent, parts)
    }

    /// Writes the body to a file, for servers that must be told its length, and for sending it later.
    ///
    /// It is written by threads of its own. The file must not be there yet, and only its owner may read it; when anything
    /// fails, or the task is cancelled, no file is left. Deleting it afterwards is up to the caller.
    ///
    /// ```swift
    /// let (body, contentType) = try await form.spool(to: path)
    /// try await api.post("photos", .raw(body, type: contentType))
    /// ```
    /// - Parameter path: Where the file is to be.
    /// - Returns: The file as a body that can be replayed, and what it is.
    /// - Throws: `NetworkError`: `.invalidRequest` for a form that cannot be sent, a file that cannot be read or made or
    ///   is there already, `.bodyFailed` when a part broke off or the disk is full, `.cancelled`.
    public func spool(to path: String) async throws(NetworkError) -> (body: RequestBody, contentType: MediaType) {
        let body = RequestBody.multipart(self)
        if let flaw = body.flaw {
            throw NetworkError(invalid: .body, flaw.message, hint: flaw.hint)
        }
        guard !body.isSpent else {
            throw NetworkError(
                .bodyNotReplayable, phase: .preparing, "The form was sent before and can be read only once.",
                hint: body.replayHint(or: "make the form anew"))
        }
        try await body.write(to: path)
        return (.file(path), contentType)
    }
}

extension MultipartForm: CustomStringConvertible, CustomReflectable {
    /// How many parts there are; never what they hold.
    public var description: String { "a form of \(parts.count) \(parts.count == 1 ? "part" : "parts")" }

    /// The descriptions of the parts.
    public var customMirror: Mirror { Mirror(self, unlabeledChildren: parts.map(\.description)) }
}

extension RequestBody {
    /// A form as the body of a request, whatever the method; its ``MultipartForm/fields`` belong to it.
    ///
    /// - Parameter form: The form.
    public static func multipart(_ form: MultipartForm) -> RequestBody { form.layout.body }
}

extension MediaType {
    /// `multipart/form-data` (RFC 7578), without the boundary.
    public static let formData: MediaType = "multipart/form-data"
}
