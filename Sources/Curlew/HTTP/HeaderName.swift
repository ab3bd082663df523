// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The name of a header field (RFC 9110 §5.1): compared without regard to ASCII case, sent as it was spelled.
///
/// Any text makes a name; ``isValid`` says whether the name can be sent.
///
/// ```swift
/// let trace: HeaderName = "X-Trace"
/// print(trace == "x-trace")     // true
/// print(trace.rawValue)         // X-Trace
/// ```
///
/// The type has a `rawValue` but is not `RawRepresentable`: the standard `!=` of raw-representable types compares raw
/// values, so `==` and `!=` would both be true for `"Accept"` and `"accept"`.
public struct HeaderName: Sendable {
    /// The name as it was spelled.
    public let rawValue: String

    /// Creates a name from any text, unchanged.
    public init(_ name: String) {
        self.rawValue = name
    }

    /// The name in lower case (ASCII only), as HTTP/2 sends it (RFC 9113 §8.2.1); equal for equal names.
    public var canonical: String {
        rawValue.utf8.contains { $0 != $0.asciiLowercased }
            ? String(decoding: rawValue.utf8.map(\.asciiLowercased), as: UTF8.self) : rawValue
    }

    /// Whether this is a token (RFC 9110 §5.6.2), which every field name must be.
    public var isValid: Bool { rawValue.isToken }

    /// Whether values of this field are credentials and must not be shown or stored: `Authorization`,
    /// `Proxy-Authorization`, `Cookie`, `Set-Cookie`, `API-Key`, `X-API-Key`, `X-Access-Token`, `X-Auth-Token`,
    /// `X-CSRF-Token`, `X-XSRF-Token`, `X-Amz-Security-Token`, `X-Vault-Token`, `Private-Token`, `X-Goog-API-Key`,
    /// `Ocp-Apim-Subscription-Key`, `X-Signature`, `X-Hub-Signature` and `X-Hub-Signature-256`.
    public var isSensitive: Bool { Self.sensitiveSet.contains(self) }

    /// Whether values of this field must not be shown: credentials, and fields with "signature" in their name.
    var isHidden: Bool { isSensitive || canonical.contains("signature") }

    /// Whether values of this field are URLs, whose user-info and query may hold credentials.
    var carriesURL: Bool { self == .location || self == .contentLocation || self == .referer }

    /// The names whose values are credentials.
    static let sensitive: [HeaderName] = [
        .authorization, .proxyAuthorization, .cookie, .setCookie, "API-Key", "X-API-Key", "X-Access-Token",
        "X-Auth-Token", "X-CSRF-Token", "X-XSRF-Token", "X-Amz-Security-Token", "X-Vault-Token", "Private-Token",
        "X-Goog-API-Key", "Ocp-Apim-Subscription-Key", "X-Signature", "X-Hub-Signature", "X-Hub-Signature-256",
    ]
    private static let sensitiveSet = Set(sensitive)
}

extension HeaderName: Hashable {
    /// Whether both names have the same letters, regardless of ASCII case (RFC 9110 §5.1).
    public static func == (lhs: HeaderName, rhs: HeaderName) -> Bool {
        let left = lhs.rawValue.utf8.span
        let right = rhs.rawValue.utf8.span
        guard left.count == right.count else { return false }
        for index in left.indices where left[index] != right[index] {
            guard left[index].asciiLowercased == right[index].asciiLowercased else { return false }
        }
        return true
    }

    /// Feeds the lower-case name to the hasher, eight bytes at a time.
    public func hash(into hasher: inout Hasher) {
        var word: UInt64 = 0
        let bytes = rawValue.utf8.span
        for index in bytes.indices {
            word = word << 8 | UInt64(bytes[index].asciiLowercased)
            if index & 7 == 7 {
                hasher.combine(word)
                word = 0
            }
        }
        hasher.combine(word)
        hasher.combine(bytes.count)
    }
}

extension HeaderName: ExpressibleByStringLiteral, CustomStringConvertible, Codable {
    /// Creates a name from a literal, unchanged.
    public init(stringLiteral value: String) {
        self.init(value)
    }

    /// Decodes a single string.
    /// - Throws: `DecodingError` for another value.
    public init(from decoder: any Decoder) throws {
        self.init(try decoder.singleValueContainer().decode(String.self))
    }

    /// Encodes the name as it was spelled, as a single string.
    /// - Throws: Any error of the encoder.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(rawValue)
    }

    /// The name as it was spelled.
    public var description: String { rawValue }
}
