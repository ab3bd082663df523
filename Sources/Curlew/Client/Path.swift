// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
// Client knows an API: a base URL, what every call has in common, and the formats that its values are written in. Its
// verbs turn a call into a request of the session below and the response into a value.

public import FoundationEssentials

/// Where a call goes, below its client's base URL: a literal, in which every interpolation is escaped.
///
/// What is interpolated is one segment of the path, or after a "?" a value of the query. Nothing in it can reach another
/// segment: "/", "?", "#" and all else but letters, digits and `-._~` are percent-encoded. A segment that interpolations
/// leave empty, or make "." or "..", is refused when the call is made: it names another resource, however it is encoded
/// (RFC 3986 §6.2.2), and `DELETE users/` is not what was meant.
///
/// ```swift
/// let user = "../admin?x"
/// let path: Path = "users/\(user)/photos?size=\(7)"
/// print(path)     // users/..%2Fadmin%3Fx/photos?size=<redacted>
/// ```
///
/// A path whose literal begins with "http://" or "https://" is an absolute URL, which wins over the base URL unless that
/// joins (``BaseURL/Joining/joined``). Any other path is relative, also where its first segment has a colon.
public struct Path: Sendable, Hashable {
    /// The path as it is put below the base URL, percent-encoded.
    public let text: String
    /// A segment made of interpolations that names another resource than it should.
    struct Misleading: Sendable, Hashable {
        /// The last interpolation in it, counted from 1.
        let number: Int
        /// "", "." or "..".
        let segment: String
    }

    let misleading: Misleading?

    /// Takes a text as it is, for one that is escaped already, such as a link that a server gave.
    ///
    /// - Parameter text: A relative reference or an absolute URL (RFC 3986 §4.1); nothing in it is escaped.
    public init(raw text: String) {
        self.text = text
        misleading = nil
    }
}

extension Path: ExpressibleByStringInterpolation {
    /// A path written as a literal.
    public init(stringLiteral value: String) { self.init(raw: value) }

    /// A literal with escaped interpolations.
    public init(stringInterpolation: StringInterpolation) {
        var segments = stringInterpolation.segments
        segments.end()
        text = segments.reference
        misleading = segments.misleading
    }

    /// Collects the parts of a literal.
    public struct StringInterpolation: StringInterpolationProtocol {
        fileprivate var segments = PathSegments()

        /// An empty one.
        public init(literalCapacity: Int, interpolationCount: Int) {}

        /// Takes a part of the literal as it is.
        public mutating func appendLiteral(_ literal: String) { segments.append(literal: literal) }

        /// Takes a text as one segment, or as a value of the query.
        public mutating func appendInterpolation(_ value: some StringProtocol) {
            segments.append(value: String(value))
        }

        /// Takes a number as one segment, or as a value of the query.
        public mutating func appendInterpolation(_ value: some BinaryInteger) {
            segments.append(value: String(value))
        }

        /// Takes a UUID as one segment, or as a value of the query.
        public mutating func appendInterpolation(_ value: UUID) { segments.append(value: value.uuidString) }

        /// Takes the text of an enumeration or an identifier as one segment, or as a value of the query.
        public mutating func appendInterpolation<Value: RawRepresentable>(_ value: Value)
        where Value.RawValue: StringProtocol {
            segments.append(value: String(value.rawValue))
        }

        /// Takes the number of an enumeration or an identifier as one segment, or as a value of the query.
        public mutating func appendInterpolation<Value: RawRepresentable>(_ value: Value)
        where Value.RawValue: BinaryInteger {
            segments.append(value: String(value.rawValue))
        }

        /// Takes several segments with the "/" between them; each is escaped, and none but the last may be empty.
        public mutating func appendInterpolation(path value: some StringProtocol) {
            let parts = value.split(separator: "/", omittingEmptySubsequences: false)
            for (index, part) in parts.enumerated() {
                if index > 0 { segments.append(literal: "/") }
                if !part.isEmpty || index == 0 || index < parts.count - 1 { segments.append(value: String(part)) }
            }
        }

        /// An optional has to be unwrapped: a path has no place for a missing value.
        @available(*, unavailable, message: "unwrap the optional: a path has no place for a missing value")
        public mutating func appendInterpolation<Value>(_ value: Value?) {}
    }
}

extension Path: CustomStringConvertible, CustomReflectable {
    /// The path without the values of its query.
    public var description: String { redactedURL(text) }

    /// The description alone.
    public var customMirror: Mirror { Mirror(self, children: ["description": description]) }
}
