// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials

/// JSON (RFC 8259), both ways, by Foundation's encoder and decoder.
///
/// Reads UTF-8, with a byte order mark or without, and what old servers write: UTF-16 and UTF-32, and with a charset in
/// `Content-Type` the encoding it names, when the body is no UTF-8.
///
/// ```swift
/// let json = JSON { encoder, decoder in
///     encoder.dateEncodingStrategy = .iso8601
///     decoder.dateDecodingStrategy = .iso8601
/// }
/// ```
public struct JSON: RequestFormat, ResponseFormat {
    private let encoder: JSONEncoder
    private let decoder: JSONDecoder
    private let prefixes: [String]

    /// JSON by an encoder and a decoder, which must not be changed afterwards.
    ///
    /// - Parameters:
    ///   - encoder: For requests.
    ///   - decoder: For responses.
    ///   - prefixes: What may stand before the JSON and is skipped, the longest that does; nothing unless given. See
    ///     ``guardPrefixes``.
    public init(
        encoder: JSONEncoder = JSONEncoder(), decoder: JSONDecoder = JSONDecoder(), stripping prefixes: [String] = []
    ) {
        self.encoder = encoder
        self.decoder = decoder
        self.prefixes = prefixes
    }

    /// JSON by a new encoder and decoder, which the closure sets up.
    ///
    /// - Parameters:
    ///   - prefixes: What may stand before the JSON and is skipped.
    ///   - configure: Called once, now.
    /// - Throws: What the closure throws.
    public init(
        stripping prefixes: [String] = [], configure: (_ encoder: JSONEncoder, _ decoder: JSONDecoder) throws -> Void
    ) rethrows {
        self.init(stripping: prefixes)
        try configure(encoder, decoder)
    }

    /// What servers put before JSON lest a page of another site runs it as a script: `)]}'`, `for(;;);`, `while(1);`.
    public static let guardPrefixes = [")]}',", ")]}'", "for(;;);", "for (;;);", "while(1);", "while (1);", "{}&&"]

    /// `application/json`.
    public var contentType: MediaType { .json }

    /// `application/json`, every type with the suffix `+json` (RFC 6839 §3.1), and the two older names.
    public var accepts: [MediaType] { Self.ranges }

    private static let ranges: [MediaType] = [
        .json, "application/*+json", "text/json;q=0.5", "text/javascript;q=0.1",
    ]

    /// JSON as it is when nobody says otherwise.
    static let standard = JSON()

    /// Encodes by the encoder.
    /// - Throws: `EncodingError`, or what the value's own encoding throws.
    public func encode(_ value: some Encodable) throws -> Data { try encoder.encode(value) }

    /// Decodes by the decoder.
    ///
    /// ``JSONValue``, arrays and dictionaries of it and ``ProblemDetails`` are read without it, in time that grows with
    /// nothing but the length of the body, unless the decoder is to read more than JSON (JSON5).
    /// - Throws: `DecodingError`, what the value's own decoding throws, or `NetworkError` when the body is no JSON.
    public func decode<T: Decodable>(_ type: T.Type, from body: Data, of head: ResponseHead) throws -> T {
        let text = try plain(body, of: head)
        if let value = try untyped(type, text) { return value }
        do {
            return try decoder.decode(type, from: text)
        } catch DecodingError.dataCorrupted(let context) where context.codingPath.isEmpty {
            throw failure(type, text, cause: DecodingError.dataCorrupted(context))
        }
    }

    /// A value of a type that holds any JSON; nil for other types, and when the JSON does not fit.
    private func untyped<T>(_ type: T.Type, _ text: Data) throws -> T? {
        guard JSONReader.reads(type), !decoder.allowsJSON5, !decoder.assumesTopLevelDictionary else { return nil }
        do throws(JSONReader.Failure) {
            let value = try JSONReader.value(ofUnicode: text)
            if type == ProblemDetails.self { return value.asObject.map { ProblemDetails(members: $0) } as? T }
            if type == JSONValue.self { return value as? T }
            return type == [JSONValue].self ? value.asArray as? T : value.asObject as? T
        } catch {
            let context = DecodingError.Context(codingPath: [], debugDescription: "\(error)")
            let cause = DecodingError.dataCorrupted(context)
            if case .overflow = error { throw misfit(type, cause: cause) }
            throw malformed(type, text, cause: cause)
        }
    }

    /// Foundation says the same of text that is no JSON and of numbers that do not fit.
    private func failure(_ type: Any.Type, _ text: Data, cause: DecodingError) -> NetworkError {
        (try? decoder.decode(Anything.self, from: text)) != nil
            ? misfit(type, cause: cause) : malformed(type, text, cause: cause)
    }

    private func misfit(_ type: Any.Type, cause: DecodingError) -> NetworkError {
        .undecodable(
            type, ": the body is JSON, but a value in it does not fit the type it is read as",
            hint: "Numbers may have fractions or be larger than the property's type, as 1.5 is for Int.", cause: cause)
    }

    private func malformed(_ type: Any.Type, _ text: Data, cause: DecodingError) -> NetworkError {
        let isMarkup = text.first { !$0.isBlank } == UInt8(ascii: "<")
        return .undecodable(
            type, ": the body is no valid JSON", hint: isMarkup ? "It begins with “<”, as HTML and XML do." : nil,
            cause: cause)
    }

    /// The body in an encoding the decoder knows, without what stands before the JSON.
    private func plain(_ body: Data, of head: ResponseHead) throws(NetworkError) -> Data {
        if prefixes.isEmpty, body.isPlainASCII { return body }
        var text = body
        if let encoding = Self.encoding(of: body, head) { text = Data(try encoding.text(of: body).utf8) }
        if let mark = Self.marks.first(where: { text.starts(with: $0) }) { text = Data(text.dropFirst(mark.count)) }
        let start = text.drop(while: \.isBlank)
        let found = prefixes.filter { start.starts(with: $0.utf8) }.max { $0.utf8.count < $1.utf8.count }
        return found.map { Data(start.dropFirst($0.utf8.count)) } ?? text
    }

    /// What the body has to be converted from; nil when the decoder sees that by itself.
    ///
    /// JSON has no charset parameter (RFC 8259 §11), so it counts only when the body is not what it should be.
    private static func encoding(of body: Data, _ head: ResponseHead) -> TextEncoding? {
        guard let charset = head.charset, let named = TextEncoding(label: charset), named != .utf8,
            TextEncoding(byteOrderMarkOf: body) == nil
        else { return nil }
        // JSON holds no NUL, while what it begins with has one in UTF-16 and UTF-32.
        let isUnicode = body.prefix(4).contains(0) || String(validating: body, as: UTF8.self) != nil
        return isUnicode ? nil : named
    }

    /// Of UTF-8, before which nothing could be skipped, and of UTF-32, which the decoder takes for that of UTF-16.
    private static let marks: [[UInt8]] = [[0xEF, 0xBB, 0xBF], [0xFF, 0xFE, 0x00, 0x00]]
    private static let null = Array("null".utf8)
}

/// Any JSON, of which nothing is read.
private struct Anything: Decodable {
    init(from decoder: any Decoder) {}
}

extension JSON: TextualFormat {
    func isNull(_ body: Data, of head: ResponseHead) -> Bool {
        guard let text = try? plain(body, of: head).drop(while: \.isBlank) else { return false }
        return text.starts(with: Self.null) && text.dropFirst(Self.null.count).allSatisfy(\.isBlank)
    }
}

extension Data {
    /// Whether these are ASCII characters but NUL, which no other encoding of JSON gives.
    fileprivate var isPlainASCII: Bool {
        let bytes = span
        for index in bytes.indices where bytes[index] &- 1 >= 0x7F { return false }
        return true
    }
}

extension UInt8 {
    /// White space between the tokens of JSON (RFC 8259 §2), and of XML.
    var isBlank: Bool { self == 0x20 || self == 0x0A || self == 0x0D || self == 0x09 }
}

extension RequestFormat where Self == JSON {
    /// JSON with Foundation's defaults.
    public static var json: JSON { JSON() }

    /// JSON by an encoder, which must not be changed afterwards.
    public static func json(encoder: JSONEncoder) -> JSON { JSON(encoder: encoder) }
}

extension ResponseFormat where Self == JSON {
    /// JSON with Foundation's defaults.
    public static var json: JSON { JSON() }

    /// JSON by a decoder, which must not be changed afterwards.
    ///
    /// - Parameters:
    ///   - decoder: The decoder.
    ///   - prefixes: What may stand before the JSON and is skipped; see ``JSON/guardPrefixes``.
    public static func json(decoder: JSONDecoder, stripping prefixes: [String] = []) -> JSON {
        JSON(decoder: decoder, stripping: prefixes)
    }
}
