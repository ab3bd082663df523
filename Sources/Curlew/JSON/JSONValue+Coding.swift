// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension JSONValue {
    /// Parses a JSON text, in time proportional to its length.
    ///
    /// ```swift
    /// let value = try JSONValue(parsing: #"{"size": 3}"#.utf8)
    /// ```
    /// - Parameter bytes: A text in UTF-8, UTF-16 or UTF-32, as in ``JSON/decode(_:from:)``.
    /// - Throws: `DecodingError`, with a ``JSON/Fault``: the text is not JSON, or a number is beyond `Double`.
    public init(parsing bytes: some Collection<UInt8>) throws { self = try JSON.standard.decode(from: bytes) }
}

extension JSONValue: Codable {
    /// Decodes any value with a decoder other than that of ``JSON``, which does not call this initializer.
    ///
    /// Other decoders are slow for deep values, so the limit is 64 levels.
    /// - Throws: `DecodingError` for a value that JSON does not have, such as a date of a property list or a number
    ///   beyond `Double`, and for a value more than 64 levels below the root.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if container.decodeNil() {
            self = .null
            // Attempt containers before scalars: each refused type costs time, and there are only two container types.
        } else if (try? decoder.container(keyedBy: Name.self)) != nil {
            try Self.check(decoder.codingPath)
            // Decode a dictionary, because the decoder's key strategy does not apply to its keys.
            self = .object(try container.decode([String: JSONValue].self))
        } else if var elements = try? decoder.unkeyedContainer() {
            try Self.check(decoder.codingPath)
            var values: [JSONValue] = []
            while !elements.isAtEnd { values.append(try elements.decode(JSONValue.self)) }
            self = .array(values)
        } else {
            self = try Self.scalar(of: container)
        }
    }

    private static func scalar(of container: any SingleValueDecodingContainer) throws -> JSONValue {
        if let value = try? container.decode(String.self) { return .string(value) }
        if let value = try? container.decode(Bool.self) { return .bool(value) }
        if let value = try? container.decode(Int64.self) { return .integer(value) }
        if let value = try? container.decode(UInt64.self) { return .unsigned(value) }
        if let value = try? container.decode(Double.self) { return .number(value) }
        throw DecodingError.dataCorruptedError(in: container, debugDescription: "The value has no JSON equivalent.")
    }

    /// Refuses arrays and objects that would have elements below the limit.
    private static func check(_ path: [any CodingKey]) throws {
        guard path.count < 64 else {
            throw DecodingError.dataCorrupted(
                DecodingError.Context(codingPath: path, debugDescription: "more than 64 levels of JSON"))
        }
    }

    private enum Name: CodingKey {}

    /// Encodes the value.
    /// - Throws: The encoder's error, such as that of ``JSON`` for a number that is not finite.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch self {
        case .null: try container.encodeNil()
        case .bool(let value): try container.encode(value)
        case .integer(let value): try container.encode(value)
        case .unsigned(let value): try container.encode(value)
        case .number(let value): try container.encode(value)
        case .string(let value): try container.encode(value)
        case .array(let value): try container.encode(value)
        case .object(let value): try container.encode(value)
        }
    }
}

extension JSONValue: CustomStringConvertible {
    /// The JSON on one line without white space, names in order; `null` for numbers that are not finite.
    public var description: String {
        var text = ""
        write(to: &text)
        return text
    }

    private func write(to text: inout String) {
        switch self {
        case .null: text += "null"
        case .bool(let value): text += value ? "true" : "false"
        case .integer(let value): text += "\(value)"
        case .unsigned(let value): text += "\(value)"
        case .number(let value): text += value.isFinite ? Self.text(of: value) : "null"
        case .string(let value): Self.write(value, to: &text)
        case .array(let values):
            text += "["
            for (index, value) in values.enumerated() {
                if index > 0 { text += "," }
                value.write(to: &text)
            }
            text += "]"
        case .object(let members):
            text += "{"
            for (index, (name, value)) in members.sorted(by: { $0.key < $1.key }).enumerated() {
                if index > 0 { text += "," }
                Self.write(name, to: &text)
                text += ":"
                value.write(to: &text)
            }
            text += "}"
        }
    }

    /// Returns the encoded text of a number, without ".0".
    private static func text(of number: Double) -> String {
        let text = "\(number)"
        return text.hasSuffix(".0") ? String(text.dropLast(2)) : text
    }

    /// Writes a string with the required escapes (RFC 8259 §7).
    private static func write(_ string: String, to text: inout String) {
        text += "\""
        for scalar in string.unicodeScalars {
            switch scalar {
            case "\"": text += "\\\""
            case "\\": text += "\\\\"
            case "\n": text += "\\n"
            case "\r": text += "\\r"
            case "\t": text += "\\t"
            case ..<" ": text += "\\u00" + (scalar.value < 0x10 ? "0" : "") + String(scalar.value, radix: 16)
            default: text.unicodeScalars.append(scalar)
            }
        }
        text += "\""
    }
}
