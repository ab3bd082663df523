// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// A `Set-Cookie` field as written by the server, parsed (RFC 6265bis §5.6) but not judged.
struct SetCookie: Sendable, Equatable {
    var name: String
    var value: String
    /// The attribute `Domain` in lower case, without a dot at its start; nil when it is missing or empty.
    var domain: String?
    /// The attribute `Path`; nil when it is missing or does not begin with "/".
    var path: String?
    /// The seconds of `Max-Age`: 0 for zero and less, at most 400 days; nil when it is missing or invalid.
    var maxAge: Int64?
    /// The seconds since 1970 of `Expires`; nil when it is missing or invalid.
    var expires: Int64?
    var isSecure = false
    var isHTTPOnly = false
    var sameSite: Cookie.SameSite?

    /// The maximum length of an attribute's value in bytes; a longer attribute is ignored.
    private static let maximumAttributeLength = 1024

    /// Parses the value of a field; it fails only for control characters.
    ///
    /// Complexity: O(*n*).
    init(_ text: String) throws(Cookie.Refusal.Reason) {
        let pieces = text.utf8.split(separator: UInt8(ascii: ";"), omittingEmptySubsequences: false)
        (name, value) = Self.nameAndValue(pieces[0])
        guard !text.utf8.contains(where: { $0.isControl && $0 != 0x09 }) else { throw .controlCharacter }
        for piece in pieces.dropFirst() {
            let (name, value) = Self.pair(piece) ?? (Self.text(Self.trimmed(piece)), "")
            if value.utf8.count <= Self.maximumAttributeLength { take(name.lowercased(), value) }
        }
    }

    /// Returns the name in a field that is perhaps invalid.
    static func name(in text: String) -> String { nameAndValue(text.utf8.prefix { $0 != UInt8(ascii: ";") }).0 }

    private static func nameAndValue(_ bytes: Substring.UTF8View) -> (String, String) {
        pair(bytes) ?? ("", Self.text(trimmed(bytes)))
    }

    /// Stores an attribute; a later one of the same name replaces an earlier one.
    private mutating func take(_ name: String, _ value: String) {
        switch name {
        case "expires": if let seconds = CookieDate.seconds(value) { expires = seconds }
        case "max-age": if let seconds = Self.age(value) { maxAge = seconds }
        case "domain":
            // Bytes are compared, because a combining mark makes another character of "." and "/".
            let domain = value.utf8.first == UInt8(ascii: ".") ? Self.text(value.utf8.dropFirst()) : value
            self.domain = domain.isEmpty ? nil : domain.lowercased()
        case "path": path = value.utf8.first == UInt8(ascii: "/") ? value : nil
        case "secure": isSecure = true
        case "httponly": isHTTPOnly = true
        case "samesite": sameSite = Cookie.SameSite(rawValue: value.lowercased())
        default: break
        }
    }

    /// Returns the seconds of `Max-Age`, at most the age limit; nil for a text that is not an integer.
    private static func age(_ text: String) -> Int64? {
        let isNegative = text.utf8.first == UInt8(ascii: "-")
        let digits = isNegative ? text.utf8.dropFirst() : text.utf8[...]
        guard !digits.isEmpty, digits.allSatisfy(ByteSet.digits.contains) else { return nil }
        if isNegative { return 0 }
        return min(Int64(Substring(digits)) ?? .max, CookieRules.longestAge)
    }

    /// Returns the trimmed texts before and after the first "="; nil without one.
    private static func pair(_ bytes: Substring.UTF8View) -> (String, String)? {
        guard let equals = bytes.firstIndex(of: UInt8(ascii: "=")) else { return nil }
        return (text(trimmed(bytes[..<equals])), text(trimmed(bytes[bytes.index(after: equals)...])))
    }

    private static func trimmed(_ bytes: Substring.UTF8View) -> Substring.UTF8View {
        var bytes = bytes.drop { $0.isLinearSpace }
        while let last = bytes.last, last.isLinearSpace { bytes.removeLast() }
        return bytes
    }

    private static func text(_ bytes: Substring.UTF8View) -> String { String(Substring(bytes)) }
}
