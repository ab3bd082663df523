// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials

extension JSON: RequestFormat, ResponseFormat {
    /// `application/json`.
    public var contentType: MediaType { .json }

    /// `application/json`, every type with the suffix `+json` (RFC 6839 §3.1), and the two older types.
    public var accepts: [MediaType] { Self.ranges }

    private static let ranges: [MediaType] = [
        .json, "application/*+json", "text/json;q=0.5", "text/javascript;q=0.1",
    ]

    /// Decodes the body of a response.
    ///
    /// Accepts the same input as ``decode(_:from:)``. A body that is not Unicode is converted from the charset of
    /// `Content-Type`, for old servers.
    /// - Throws: `DecodingError`, with a ``Fault``; `NetworkError` of kind `decodingFailed` when the body is not JSON;
    ///   or the error of the type's own decoding.
    public func decode<T: Decodable>(_ type: T.Type, from body: Data, of head: ResponseHead) throws -> T {
        let text = prefixes.isEmpty ? body : try plain(body, of: head)
        do {
            return try decode(type, plain: text)
        } catch DecodingError.dataCorrupted(let context) where isMalformed(text, context) {
            if prefixes.isEmpty, let encoding = Self.encoding(of: body, head) {
                let text = Data(try encoding.text(of: body).utf8)
                do {
                    return try decode(type, plain: text)
                } catch DecodingError.dataCorrupted(let context) where isMalformed(text, context) {
                    throw malformed(type, text, context)
                }
            }
            throw malformed(type, text, context)
        }
    }

    /// Returns the value of one element of a stream.
    ///
    /// - Parameter place: The name of the element, for the error.
    func value<Value: Decodable>(
        of bytes: Span<UInt8>, at place: @autoclosure () -> String, _ head: ResponseHead
    ) throws -> Value {
        do {
            if case .own(let pool) = decoding, prefixes.isEmpty, let value = try pool.decodePlain(Value.self, bytes) {
                return value
            }
            return try decode(Value.self, from: bytes.data, of: head)
        } catch {
            throw NetworkError.decoding(error, as: Value.self, at: place(), bytes: bytes.data)
        }
    }

    /// Whether the error means that the text is not JSON, or is beyond a limit.
    private func isMalformed(_ text: Data, _ context: DecodingError.Context) -> Bool {
        switch decoding {
        case .own: context.fault?.kind == .syntax || context.fault?.kind == .limit
        // Foundation reports numbers out of range with the same error.
        case .foundation(let decoder):
            context.codingPath.isEmpty && (try? decoder.decode(AnyJSON.self, from: text)) == nil
        }
    }

    private func malformed(_ type: Any.Type, _ text: Data, _ context: DecodingError.Context) -> NetworkError {
        let isMarkup = text.first { !$0.isBlank } == UInt8(ascii: "<")
        let fault = context.fault
        let what = fault?.kind == .limit ? "the body is JSON beyond a limit" : "the body is not valid JSON"
        return .undecodable(
            type, ": " + what + (fault.map { " (\($0.place): \($0.reason))" } ?? ""),
            hint: isMarkup ? "It begins with “<”, as HTML and XML do." : nil,
            cause: DecodingError.dataCorrupted(context))
    }

    /// Returns the body in UTF-8, UTF-16 or UTF-32, without any prefix before the JSON.
    private func plain(_ body: Data, of head: ResponseHead) throws(NetworkError) -> Data {
        var text = body
        if let encoding = Self.encoding(of: body, head) { text = Data(try encoding.text(of: body).utf8) }
        return stripped(text)
    }

    /// Returns the encoding that the body has to be converted from; nil when the body is Unicode.
    ///
    /// JSON has no charset parameter (RFC 8259 §11), so the charset counts only when the body is not Unicode.
    private static func encoding(of body: Data, _ head: ResponseHead) -> TextEncoding? {
        guard let charset = head.charset, let named = TextEncoding(label: charset), named != .utf8,
            TextEncoding(byteOrderMarkOf: body) == nil
        else { return nil }
        // JSON contains no NUL, whereas its first characters contain a zero byte in UTF-16 and UTF-32.
        let isUnicode = body.prefix(4).contains(0) || String(validating: body, as: UTF8.self) != nil
        return isUnicode ? nil : named
    }

    private static let null = Array("null".utf8)
}

/// Any JSON value; its initializer reads nothing.
private struct AnyJSON: Decodable {
    init(from decoder: any Decoder) {}
}

extension JSON: TextualFormat {
    func isNull(_ body: Data, of head: ResponseHead) -> Bool {
        guard let text = try? plain(body, of: head).drop(while: \.isBlank) else { return false }
        return text.starts(with: Self.null) && text.dropFirst(Self.null.count).allSatisfy(\.isBlank)
    }
}

extension RequestFormat where Self == JSON {
    /// JSON with the default options.
    public static var json: JSON { JSON() }

    /// JSON with an encoder of Foundation, which must not be changed afterwards.
    public static func json(encoder: JSONEncoder) -> JSON { JSON(encoder: encoder) }
}

extension ResponseFormat where Self == JSON {
    /// JSON with the default options.
    public static var json: JSON { JSON() }

    /// JSON with a decoder of Foundation, which must not be changed afterwards.
    ///
    /// - Parameters:
    ///   - decoder: The decoder.
    ///   - prefixes: The prefixes that are skipped before the JSON; see ``JSON/guardPrefixes``.
    public static func json(decoder: JSONDecoder, stripping prefixes: [String] = []) -> JSON {
        JSON(decoder: decoder, stripping: prefixes)
    }
}
