// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// A status code (RFC 9110 §15): an open set of integers, ordered by number.
///
/// ```swift
/// if response.status == .notFound || response.status == 410 { print("gone") }
/// ```
public struct Status: RawRepresentable, Hashable, Sendable, Codable {
    /// The status code, unchecked.
    public let rawValue: Int

    /// Creates a status from any number; ``kind`` is `other` outside 100…599.
    public init(rawValue: Int) {
        self.rawValue = rawValue
    }

    /// Creates a status from any number, as `init(rawValue:)` does.
    public init(_ code: Int) {
        self.rawValue = code
    }

    /// The status code, equal to `rawValue`.
    public var code: Int { rawValue }

    /// The class of the code, from its first digit (RFC 9110 §15).
    public var kind: Kind {
        switch rawValue {
        case 100..<200: .informational
        case 200..<300: .successful
        case 300..<400: .redirection
        case 400..<500: .clientError
        case 500..<600: .serverError
        default: .other
        }
    }

    /// Whether the code is in 200…299.
    public var isSuccess: Bool { kind == .successful }

    /// The phrase registered with IANA for the code, in English; nil for codes that are not registered.
    public var reasonPhrase: String? { Self.phrases[rawValue] }

    /// The classes of status codes (RFC 9110 §15).
    public enum Kind: Hashable, Sendable, CaseIterable {
        /// 1xx: the request was received and processing continues.
        case informational
        /// 2xx: the request was received, understood and accepted.
        case successful
        /// 3xx: the client has to do more to complete the request.
        case redirection
        /// 4xx: the request is wrong or cannot be fulfilled.
        case clientError
        /// 5xx: the server failed to fulfil a request that looks valid.
        case serverError
        /// Any code outside 100…599.
        case other
    }
}

extension Status: ExpressibleByIntegerLiteral, Comparable, CustomStringConvertible {
    /// Creates a status from a literal.
    public init(integerLiteral value: Int) {
        self.init(value)
    }

    /// Orders by number.
    public static func < (lhs: Status, rhs: Status) -> Bool {
        lhs.rawValue < rhs.rawValue
    }

    /// The code and its registered phrase, such as "404 Not Found"; the code alone if it is unregistered, such as
    /// "799".
    public var description: String {
        reasonPhrase.map { "\(rawValue) \($0)" } ?? "\(rawValue)"
    }
}
