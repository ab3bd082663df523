// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials

extension ResponseHead {
    /// The `charset` parameter of `Content-Type` (RFC 9110 §8.3.2), without quotes, as it was spelled; nil without one.
    ///
    /// Of several the first is taken. ``TextEncoding/init(label:)`` says what the name means.
    public var charset: String? {
        guard let contentType, let start = contentType.utf8.firstIndex(of: UInt8(ascii: ";")) else { return nil }
        var parameters = Parameters(rest: contentType.utf8[start...])
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
        if value.isEmpty { return "" }
        do throws(NetworkError) {
            if let marked = TextEncoding(byteOrderMarkOf: value) { return try marked.text(of: value, lossy: lossy) }
            return try head.encoding(else: assuming).text(of: value, lossy: lossy)
        } catch {
            throw error.with(response: head, body: Array(value.prefix(NetworkError.bodyLimit)))
        }
    }
}

extension ResponseHead {
    /// The encoding the server names, or the other one when it names none.
    fileprivate func encoding(else other: TextEncoding) throws(NetworkError) -> TextEncoding {
        guard let charset else { return other }
        guard let encoding = TextEncoding(label: charset) else {
            throw NetworkError(
                .decodingFailed, phase: .decoding,
                "The server names the charset “\(String(charset.prefix(64)).escapingControls)”, which is not known.",
                hint: "Read the bytes by the encoding you know them to be in: TextEncoding.utf8.text(of: value).")
        }
        return encoding
    }
}

/// The parameters of a field's value (RFC 9110 §5.6.6), one after the other, whatever stands between them.
private struct Parameters {
    /// From a ";" on.
    var rest: Substring.UTF8View

    mutating func next() -> (name: String, value: String)? {
        while let byte = rest.first {
            rest.removeFirst()
            guard byte == UInt8(ascii: ";") else { continue }
            let name = take { $0 != UInt8(ascii: "=") && $0 != UInt8(ascii: ";") }
            guard rest.first == UInt8(ascii: "=") else { continue }
            rest.removeFirst()
            rest = rest.drop(while: \.isLinearSpace)
            if rest.first == UInt8(ascii: "\"") { return (name, quoted()) }
            // A comma ends the value where two fields were joined.
            return (name, take { $0 != UInt8(ascii: ";") && $0 != UInt8(ascii: ",") })
        }
        return nil
    }

    /// What comes next and matches, without white space around it.
    private mutating func take(while matches: (UInt8) -> Bool) -> String {
        var taken = rest.prefix(while: matches)
        rest = rest[taken.endIndex...]
        taken = taken.drop(while: \.isLinearSpace)
        while let last = taken.last, last.isLinearSpace { taken.removeLast() }
        return String(Substring(taken))
    }

    /// A quoted string, whose end may be missing (RFC 9110 §5.6.4).
    private mutating func quoted() -> String {
        rest.removeFirst()
        var bytes: [UInt8] = []
        while let byte = rest.popFirst(), byte != UInt8(ascii: "\"") {
            bytes.append(byte == UInt8(ascii: "\\") ? rest.popFirst() ?? byte : byte)
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
