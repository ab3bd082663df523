// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials

extension ResponseHead {
    /// The media type in `Content-Type`; nil when the field is missing or invalid.
    ///
    /// If the field is repeated, the last value counts: servers that add a second field intend that.
    public var mediaType: MediaType? {
        guard let contentType else { return nil }
        return MediaType(contentType) ?? fields.values(for: .contentType).last.flatMap { MediaType($0) }
    }

    /// The `charset` parameter of `Content-Type` (RFC 9110 §8.3.2), without quotes, as it was spelled; nil without one.
    ///
    /// If the parameter is repeated, the first one counts. ``TextEncoding/init(label:)`` interprets the name.
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
    /// Decodes the body as text, in the encoding that the body or the server declares.
    ///
    /// A byte order mark of UTF-8 or UTF-16 decides the encoding and is dropped. Without a mark, the charset of
    /// `Content-Type` decides, by the labels of the WHATWG Encoding Standard. Without a charset, `assuming` decides. An
    /// empty body is the empty text.
    ///
    /// ```swift
    /// let page = try await transfer.response().text()
    /// ```
    ///
    /// - Parameters:
    ///   - assuming: The encoding when neither the body nor the server declares one; UTF-8 by default.
    ///   - lossy: Whether invalid bytes become U+FFFD instead of an error.
    /// - Throws: `NetworkError` in phase `decoding` with the head and the first bytes: `.decodingFailed` when the
    ///   charset is unknown or a byte is invalid in it, `.unsupported` when its table is not installed,
    ///   `.resourceExhausted` when its table cannot be opened.
    public func text(assuming: TextEncoding = .utf8, lossy: Bool = false) throws(NetworkError) -> String {
        try head.text(of: value, assuming: assuming, lossy: lossy)
    }
}

extension ResponseHead {
    /// Decodes the body of this head as text; see ``Response/text(assuming:lossy:)``.
    func text(of body: Data, assuming: TextEncoding, lossy: Bool) throws(NetworkError) -> String {
        if body.isEmpty { return "" }
        do throws(NetworkError) {
            if let marked = TextEncoding(byteOrderMarkOf: body) { return try marked.text(of: body, lossy: lossy) }
            return try encoding(else: assuming).text(of: body, lossy: lossy)
        } catch {
            throw error.with(response: self, body: Array(body.prefix(NetworkError.bodyLimit)))
        }
    }

    /// Returns the encoding that the server declares, else `other`.
    private func encoding(else other: TextEncoding) throws(NetworkError) -> TextEncoding {
        guard let charset else { return other }
        guard let encoding = TextEncoding(label: charset) else {
            throw NetworkError(
                .decodingFailed, phase: .decoding,
                "The server names the charset “\(charset.shortened(to: 64).escapingControls)”, which is not known.",
                hint: "Decode the bytes with the encoding that you expect, such as TextEncoding.utf8.text(of: value).")
        }
        return encoding
    }
}
