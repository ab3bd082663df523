// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// A media type (RFC 9110 §8.3.1), such as `application/json`, or a range of them, such as `image/*`.
///
/// Type, subtype and the names of parameters are kept in lower case; they are compared regardless of case.
///
/// ```swift
/// let type: MediaType = "application/problem+json; charset=utf-8"
/// print(type.matches("application/*+json"))   // true
/// print(type[parameter: "charset"] ?? "")      // utf-8
/// ```
public struct MediaType: Sendable, Hashable {
    /// A parameter: its name in lower case and its value, unquoted.
    struct Parameter: Sendable, Hashable {
        let name: String
        let value: String
    }

    /// The part before the "/", in lower case; `*` for any.
    public let type: String
    /// The part after the "/", in lower case; `*` for any, `*+json` for any with that suffix (RFC 6838 §4.2.8).
    public let subtype: String
    let parameters: [Parameter]
    /// Type and subtype, which are enough for most comparisons.
    let essence: String

    /// Parses a media type or range, as in `Content-Type` or in a member of `Accept`.
    ///
    /// Invalid and repeated parameters are dropped, as in browsers.
    /// - Parameter text: A text such as `text/html; charset=utf-8`.
    /// - Returns: Nil when the type or the subtype is missing or invalid.
    public init?(_ text: String) {
        let utf8 = text.utf8
        let end = utf8.firstIndex(of: UInt8(ascii: ";")) ?? utf8.endIndex
        let names = text[..<end].split(separator: "/", omittingEmptySubsequences: false)
            .map { String($0).trimmingSpace }
        guard names.count == 2, names[0].isToken, names[1].isToken else { return nil }
        type = names[0].lowercased()
        subtype = names[1].lowercased()
        var rest = FieldParameters(rest: utf8[end...])
        var parameters: [Parameter] = []
        while let (name, value) = rest.next() {
            let name = name.lowercased()
            guard name.isToken, !parameters.contains(where: { $0.name == name }) else { continue }
            parameters.append(Parameter(name: name, value: value))
        }
        self.parameters = parameters
        essence = "\(type)/\(subtype)"
    }

    private init(_ range: MediaType, parameters: [Parameter]) {
        (type, subtype, essence) = (range.type, range.subtype, range.essence)
        self.parameters = parameters
    }

    /// Returns this type with one more parameter.
    ///
    /// - Parameters:
    ///   - name: The parameter's name, in lower case.
    ///   - value: The parameter's value; the description quotes it where needed.
    func adding(_ name: String, _ value: String) -> MediaType {
        MediaType(self, parameters: parameters + [Parameter(name: name, value: value)])
    }

    /// The value of a parameter, unquoted; the first of several.
    ///
    /// - Parameter name: The parameter's name, in any case.
    /// - Returns: Nil without such a parameter.
    public subscript(parameter name: String) -> String? {
        let name = name.lowercased()
        return parameters.first { $0.name == name }?.value
    }

    /// Whether this type is in a range: `*/*`, `image/*`, `application/*+json`, or the type itself.
    ///
    /// Parameters are ignored.
    /// - Parameter range: A range, or a type.
    public func matches(_ range: MediaType) -> Bool {
        guard range.type == "*" || range.type == type else { return false }
        if range.subtype == "*" || range.subtype == subtype { return true }
        guard range.subtype.hasPrefix("*+") else { return false }
        return subtype.hasSuffix(range.subtype.dropFirst()) && subtype.utf8.count >= range.subtype.utf8.count
    }

    /// Whether this range is allowed in `Accept` (RFC 9110 §12.5.1), which has no ranges of suffixes.
    var isAcceptable: Bool { !subtype.hasPrefix("*+") }
}

extension MediaType {
    /// `*/*`: any type.
    public static let any: MediaType = "*/*"
    /// `application/json` (RFC 8259).
    public static let json: MediaType = "application/json"
    /// `application/problem+json` (RFC 9457).
    public static let problem: MediaType = "application/problem+json"
    /// `application/x-www-form-urlencoded`.
    public static let form: MediaType = "application/x-www-form-urlencoded"
    /// `application/x-plist`.
    public static let propertyList: MediaType = "application/x-plist"
    /// `text/plain; charset=utf-8`.
    public static let text: MediaType = "text/plain; charset=utf-8"
    /// `application/octet-stream`: bytes of an unknown type.
    public static let octetStream: MediaType = "application/octet-stream"
}

extension MediaType: ExpressibleByStringLiteral {
    /// Creates the media type of a literal.
    /// - Precondition: The literal is a valid media type; use ``init(_:)`` for text from outside.
    public init(stringLiteral value: String) {
        guard let type = MediaType(value) else { preconditionFailure("“\(value)” is not a media type") }
        self = type
    }
}

extension MediaType: CustomStringConvertible {
    /// The type as a field's value, with its parameters, which are quoted where needed.
    public var description: String {
        parameters.reduce(essence) { text, parameter in
            let value = parameter.value
            return text + "; \(parameter.name)=" + (value.isToken ? value : Self.quoted(value))
        }
    }

    /// Returns a quoted string (RFC 9110 §5.6.4) without the characters that it must not contain.
    private static func quoted(_ value: String) -> String {
        var result = "\""
        for scalar in value.unicodeScalars where scalar == "\t" || scalar.value >= 0x20 && scalar.value != 0x7F {
            if scalar == "\"" || scalar == "\\" { result += "\\" }
            result.unicodeScalars.append(scalar)
        }
        return result + "\""
    }
}

extension MediaType: Codable {
    /// Decodes a text.
    /// - Throws: `DecodingError` when the text is not a media type.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        let text = try container.decode(String.self)
        guard let type = MediaType(text) else {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "“\(text)” is not a media type")
        }
        self = type
    }

    /// Encodes the ``description``.
    /// - Throws: Any error of the encoder.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(description)
    }
}

/// An iterator over the parameters of a field's value (RFC 9110 §5.6.6), which skips any text between them.
struct FieldParameters {
    /// The unread bytes, from a ";" on.
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

    /// Removes the next bytes while they match, and returns them without surrounding white space.
    private mutating func take(while matches: (UInt8) -> Bool) -> String {
        var taken = rest.prefix(while: matches)
        rest = rest[taken.endIndex...]
        taken = taken.drop(while: \.isLinearSpace)
        while let last = taken.last, last.isLinearSpace { taken.removeLast() }
        return String(Substring(taken))
    }

    /// Removes and returns a quoted string, whose closing quote may be missing (RFC 9110 §5.6.4).
    private mutating func quoted() -> String {
        rest.removeFirst()
        var bytes: [UInt8] = []
        while let byte = rest.popFirst(), byte != UInt8(ascii: "\"") {
            bytes.append(byte == UInt8(ascii: "\\") ? rest.popFirst() ?? byte : byte)
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}

extension String {
    /// This text without SP and HTAB at either end.
    var trimmingSpace: String {
        var taken = utf8.drop(while: \.isLinearSpace)
        while let last = taken.last, last.isLinearSpace { taken.removeLast() }
        return String(Substring(taken))
    }
}
