// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials

extension ResponseHead {
    /// The media type that `Content-Type` names; nil without one, and when it is none.
    ///
    /// Of several the last is taken, as servers mean it that have one added.
    public var mediaType: MediaType? {
        guard let contentType else { return nil }
        return MediaType(contentType) ?? fields.values(for: .contentType).last.flatMap { MediaType($0) }
    }

    /// The `charset` parameter of `Content-Type` (RFC 9110 §8.3.2), without quotes, as it was spelled; nil without one.
    ///
    /// Of several the first is taken. ``TextEncoding/init(label:)`` says what the name means.
    public var charset: String? {
        guard let contentType, let start = contentType.utf8.firstIndex(of: UInt8(ascii: ";")) else { return nil }
        var parameters = FieldParameters(rest: contentType.utf8[start...])
        while let (name, value) = parameters.next() {
            if name.lowercased() == "charset", !value.isEmpty { return value }
        }
        return nil
    }
}

extension Response where Value == Data {
    /// The body as text, in the encoding it says itself or the server says for it.
    ///
    /// A byte order mark of UTF-8 or UTF-16 decides and is dropped; without one the charset of `Content-Type` does, by
    /// the labels of the WHATWG Encoding Standard, and without that `assuming`. An empty body is the empty text.
    ///
    /// ```swift
    /// let page = try await transfer.response().text()
    /// ```
    ///
    /// - Parameters:
    ///   - assuming: The encoding when nobody names one.
    ///   - lossy: Whether what is no character becomes U+FFFD instead of an error.
    /// - Throws: `NetworkError` in phase `decoding` with the head and the first bytes: `.decodingFailed` when the charset
    ///   is unknown or a byte is no character of it, `.unsupported` when its table is not installed.
    public func text(assuming: TextEncoding = .utf8, lossy: Bool = false) throws(NetworkError) -> String {
        try head.text(of: value, assuming: assuming, lossy: lossy)
    }
}

extension ResponseHead {
    /// The text of a body that came with this head; see ``Response/text(assuming:lossy:)``.
    func text(of body: Data, assuming: TextEncoding, lossy: Bool) throws(NetworkError) -> String {
        if body.isEmpty { return "" }
        do throws(NetworkError) {
            if let marked = TextEncoding(byteOrderMarkOf: body) { return try marked.text(of: body, lossy: lossy) }
            return try encoding(else: assuming).text(of: body, lossy: lossy)
        } catch {
            throw error.with(response: self, body: Array(body.prefix(NetworkError.bodyLimit)))
        }
    }

    /// The encoding the server names, or the other one when it names none.
    private func encoding(else other: TextEncoding) throws(NetworkError) -> TextEncoding {
        guard let charset else { return other }
        guard let encoding = TextEncoding(label: charset) else {
            throw NetworkError(
                .decodingFailed, phase: .decoding,
                "The server names the charset “\(charset.shortened(to: 64).escapingControls)”, which is not known.",
                hint: "Read the bytes by the encoding you know them to be in: TextEncoding.utf8.text(of: value).")
        }
        return encoding
    }
}
