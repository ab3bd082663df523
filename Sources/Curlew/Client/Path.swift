// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
// A client describes an API: a base URL, the settings that all calls share, and the formats of its values. Its verbs
// turn a call into a request of the session and turn the response into a value.

public import FoundationEssentials

/// The path of a call below its client's base URL: a string literal whose interpolations are escaped.
///
/// An interpolated value is one segment of the path, or, after a "?", a value of the query. It cannot add a segment:
/// every character except letters, digits and `-._~` is percent-encoded, including "/", "?" and "#". The call throws
/// `.invalidRequest` if interpolations make a segment empty, "." or "..". Such a segment names another resource, even
/// if it is encoded (RFC 3986 §6.2.2): an empty identifier would turn a call into `DELETE users/`.
///
/// ```swift
/// let user = "../admin?x"
/// let path: Path = "users/\(user)/photos?size=\(7)"
/// print(path)     // users/..%2Fadmin%3Fx/photos?size=<redacted>
/// ```
///
/// A path whose literal begins with "http://" or "https://" is an absolute URL. It replaces the base URL, unless the
/// base URL's joining is ``BaseURL/Joining/joined``. Any other path is relative, even if its first segment contains a
/// colon.
public struct Path: Sendable, Hashable {
    /// The percent-encoded text of the path.
    public let text: String
    /// A segment, made of interpolations, that names a different resource.
    struct Misleading: Sendable, Hashable {
        /// The number of the segment's last interpolation, counted from 1.
        let number: Int
        /// The text of the segment: "", "." or "..".
        let segment: String
    }

    let misleading: Misleading?

    /// Creates a path from a text that is escaped already, such as a link that a server sent.
    ///
    /// - Parameter text: A relative reference or an absolute URL (RFC 3986 §4.1); it is not escaped.
    public init(raw text: String) {
        self.text = text
        misleading = nil
    }
}

extension Path: ExpressibleByStringInterpolation {
    /// Creates a path from a string literal, which is not escaped.
    public init(stringLiteral value: String) { self.init(raw: value) }

    /// Creates a path from a string literal with escaped interpolations.
    public init(stringInterpolation: StringInterpolation) {
        var segments = stringInterpolation.segments
        segments.end()
        text = segments.reference
        misleading = segments.misleading
    }

    /// The builder that collects the parts of a literal.
    public struct StringInterpolation: StringInterpolationProtocol {
        fileprivate var segments = PathSegments()

        /// Creates an empty interpolation.
        public init(literalCapacity: Int, interpolationCount: Int) {}

        /// Appends a part of the literal unchanged.
        public mutating func appendLiteral(_ literal: String) { segments.append(literal: literal) }

        /// Appends a text as one segment, or as a value of the query.
        public mutating func appendInterpolation(_ value: some StringProtocol) {
            segments.append(value: String(value))
        }

        /// Appends a number as one segment, or as a value of the query.
        public mutating func appendInterpolation(_ value: some BinaryInteger) {
            segments.append(value: String(value))
        }

        /// Appends a UUID as one segment, or as a value of the query.
        public mutating func appendInterpolation(_ value: UUID) { segments.append(value: value.uuidString) }

        /// Appends the raw string of an enumeration or identifier as one segment, or as a value of the query.
        public mutating func appendInterpolation<Value: RawRepresentable>(_ value: Value)
        where Value.RawValue: StringProtocol {
            segments.append(value: String(value.rawValue))
        }

        /// Appends the raw number of an enumeration or identifier as one segment, or as a value of the query.
        public mutating func appendInterpolation<Value: RawRepresentable>(_ value: Value)
        where Value.RawValue: BinaryInteger {
            segments.append(value: String(value.rawValue))
        }

        /// Appends several segments that "/" separates; each is escaped, and only the last may be empty.
        public mutating func appendInterpolation(path value: some StringProtocol) {
            let parts = value.split(separator: "/", omittingEmptySubsequences: false)
            for (index, part) in parts.enumerated() {
                if index > 0 { segments.append(literal: "/") }
                if !part.isEmpty || index == 0 || index < parts.count - 1 { segments.append(value: String(part)) }
            }
        }

        /// Rejects an optional at compile time: a path cannot contain a missing value.
        @available(*, unavailable, message: "unwrap the optional: a path cannot contain a missing value")
        public mutating func appendInterpolation<Value>(_ value: Value?) {}
    }
}

extension Path: CustomStringConvertible, CustomReflectable {
    /// The path, without the values of its query.
    public var description: String { redactedURL(text) }

    /// A mirror that shows only the description.
    public var customMirror: Mirror { Mirror(self, children: ["description": description]) }
}
