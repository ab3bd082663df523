// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// A request method (RFC 9110 §9): an open set of case-sensitive tokens.
///
/// Any text makes a method, so `"PURGE"` works like `.get`. ``isValid`` says whether the method can be sent; a request
/// with an invalid method fails with `NetworkError.Kind.invalidRequest` when it is run.
///
/// ```swift
/// let purge: Method = "PURGE"
/// ```
public struct Method: RawRepresentable, Hashable, Sendable, Codable {
    /// The method as it is sent.
    public let rawValue: String

    /// Creates a method from any text, unchanged; methods are case-sensitive (RFC 9110 §9.1), so `"get"` is not `.get`.
    public init(rawValue: String) {
        self.rawValue = rawValue
    }

    /// Creates a method from any text, unchanged, as `init(rawValue:)` does.
    public init(_ rawValue: String) {
        self.rawValue = rawValue
    }

    /// Whether this is a token (RFC 9110 §5.6.2), which every method must be.
    public var isValid: Bool { rawValue.isToken }

    /// Whether the method is defined as read-only: GET, HEAD, OPTIONS and TRACE (RFC 9110 §9.2.1).
    public var isSafe: Bool { self == .get || self == .head || self == .options || self == .trace }

    /// Whether several identical requests have the same effect as one: true for the safe methods, PUT and DELETE
    /// (RFC 9110 §9.2.2).
    ///
    /// The value is false for unknown methods.
    public var isIdempotent: Bool { isSafe || self == .put || self == .delete }

    /// The methods with a constant here.
    static let known: Set<Method> = [.get, .head, .post, .put, .patch, .delete, .options, .trace, .connect]
}

extension Method {
    /// GET (RFC 9110 §9.3.1).
    public static let get = Method("GET")
    /// HEAD (RFC 9110 §9.3.2).
    public static let head = Method("HEAD")
    /// POST (RFC 9110 §9.3.3).
    public static let post = Method("POST")
    /// PUT (RFC 9110 §9.3.4).
    public static let put = Method("PUT")
    /// PATCH (RFC 5789).
    public static let patch = Method("PATCH")
    /// DELETE (RFC 9110 §9.3.5).
    public static let delete = Method("DELETE")
    /// OPTIONS (RFC 9110 §9.3.7).
    public static let options = Method("OPTIONS")
    /// TRACE (RFC 9110 §9.3.8).
    public static let trace = Method("TRACE")
    /// CONNECT (RFC 9110 §9.3.6).
    public static let connect = Method("CONNECT")
}

extension Method: ExpressibleByStringLiteral, CustomStringConvertible {
    /// Creates a method from a literal, unchanged.
    public init(stringLiteral value: String) {
        self.init(value)
    }

    /// The method as it is sent.
    public var description: String { rawValue }
}
