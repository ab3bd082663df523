// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// Multipart bodies (RFC 2046 §5.1, RFC 7578), written for requests and read from responses. A form is a value that
// becomes the pieces of a RequestBody. The reader is a parser without I/O; serializers wrap it.

/// A form of several parts in `multipart/form-data` (RFC 7578), which is streamed while it is sent.
///
/// Reading starts only when the request is sent, and stays at most 512 KiB ahead of the peer, regardless of the size of
/// the files. The request sends the body's length if the length of each part is known; otherwise it sends the body in
/// chunks. The form can be sent again if each part can.
///
/// ```swift
/// let form = MultipartForm {
///     MultipartForm.Part("title", "Alps")
///     for path in paths { MultipartForm.Part("image", file: path) }
/// }
/// let request = Request(.put, url, fields: form.fields, body: .multipart(form))
/// ```
///
/// A form without parts, and a form with invalid names or fields, makes its request fail with `.invalidRequest`.
public struct MultipartForm: Sendable {
    /// The parts, in the order in which they are sent.
    public let parts: [MultipartForm.Part]
    /// The delimiter between the parts.
    public let boundary: MultipartForm.Boundary
    /// The body and its layout; all copies share it, so that each copy knows the progress of the transfer.
    let layout: MultipartLayout

    /// Creates a form from parts.
    ///
    /// - Parameters:
    ///   - parts: The parts.
    ///   - boundary: The delimiter between the parts; random by default.
    public init(_ parts: [MultipartForm.Part], boundary: MultipartForm.Boundary = MultipartForm.Boundary()) {
        self.parts = parts
        self.boundary = boundary
        layout = MultipartLayout(parts, boundary)
    }

    /// Creates a form from the parts of a builder.
    ///
    /// - Parameters:
    ///   - boundary: The delimiter between the parts; random by default.
    ///   - parts: A builder that lists the parts.
    /// - Throws: The error of the builder.
    public init(
        boundary: MultipartForm.Boundary = MultipartForm.Boundary(),
        @MultipartForm.PartsBuilder _ parts: () throws -> [MultipartForm.Part]
    ) rethrows {
        self.init(try parts(), boundary: boundary)
    }

    /// `multipart/form-data` with the boundary.
    public var contentType: MediaType { .formData.adding("boundary", boundary.text) }

    /// The `Content-Type` field of the body, for a ``Request`` that is created without a client.
    public var fields: HeaderFields { [.contentType: contentType.description] }

    /// Returns the progress of each part at one moment of the transfer.
    ///
    /// The sent bytes are those handed to the connection; the count restarts when the body is sent again. The lengths
    /// of files and streams are known only after the form's body has started, so call this method on the form that was
    /// sent, or on a copy of it. The progress of a body that is compressed while it is sent is not available.
    ///
    /// ```swift
    /// for await progress in transfer.progress {
    ///     for part in form.progress(at: progress) { bars[part.index].set(part.fraction ?? 0) }
    /// }
    /// ```
    /// - Parameter progress: The progress of the transfer.
    /// - Returns: The progress of each part, in the order of the parts.
    public func progress(at progress: TransferProgress) -> [MultipartForm.PartProgress] {
        layout.progress(sent: progress.sent, parts)
    }

    /// Writes the body to a file, for servers that require its length, or to send it later.
    ///
    /// Separate threads write the file. The file must not exist; it is created readable only by its owner. If any step
    /// fails, or the task is cancelled, the file is removed. The caller deletes the file when it is no longer needed.
    ///
    /// ```swift
    /// let (body, contentType) = try await form.spool(to: path)
    /// try await api.post("photos", .raw(body, type: contentType))
    /// ```
    /// - Parameter path: The path of the new file.
    /// - Returns: The file as a replayable body, and its media type.
    /// - Throws: `NetworkError`: `.invalidRequest` for a form that cannot be sent, for a file that cannot be read or
    ///   created, or for an existing file at the path; `.bodyFailed` if a part breaks off or the disk is full;
    ///   `.cancelled`.
    public func spool(to path: String) async throws(NetworkError) -> (body: RequestBody, contentType: MediaType) {
        let body = RequestBody.multipart(self)
        if let flaw = body.flaw {
            throw NetworkError(invalid: .body, flaw.message, hint: flaw.hint)
        }
        guard !body.isConsumed else {
            throw NetworkError(
                .bodyNotReplayable, phase: .preparing, "The form was sent before and can be read only once.",
                hint: body.replayHint(or: "create the form again"))
        }
        try await body.write(to: path)
        return (.file(path), contentType)
    }
}

extension MultipartForm: CustomStringConvertible, CustomReflectable {
    /// The number of parts; never their content.
    public var description: String { "a form of \(parts.count) \(parts.count == 1 ? "part" : "parts")" }

    /// A mirror that shows the descriptions of the parts.
    public var customMirror: Mirror { Mirror(self, unlabeledChildren: parts.map(\.description)) }
}

extension RequestBody {
    /// Creates a request body from a form, for any method; the request also needs the form's ``MultipartForm/fields``.
    ///
    /// - Parameter form: The form.
    public static func multipart(_ form: MultipartForm) -> RequestBody { form.layout.body }
}

extension MediaType {
    /// `multipart/form-data` (RFC 7578), without the boundary.
    public static let formData: MediaType = "multipart/form-data"
}
