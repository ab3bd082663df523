// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension ResponseHead {
    /// The protocol version of a message (RFC 9110 §2.5): an open set.
    ///
    /// ```swift
    /// if response.head.version == .http2 { print("one connection for all") }
    /// ```
    public struct HTTPVersion: RawRepresentable, Hashable, Sendable, Codable {
        /// The version as a status line names it, such as "HTTP/1.1" or "HTTP/2".
        public let rawValue: String

        /// Creates a version from a text such as "HTTP/1.1"; "HTTP/2.0" and "HTTP/3.0" become "HTTP/2" and "HTTP/3".
        public init(rawValue: String) {
            switch rawValue {
            case "HTTP/2.0": self.rawValue = "HTTP/2"
            case "HTTP/3.0": self.rawValue = "HTTP/3"
            default: self.rawValue = rawValue
            }
        }

        /// HTTP/1.0 (RFC 1945).
        public static let http1_0 = ResponseHead.HTTPVersion(rawValue: "HTTP/1.0")
        /// HTTP/1.1 (RFC 9112).
        public static let http1_1 = ResponseHead.HTTPVersion(rawValue: "HTTP/1.1")
        /// HTTP/2 (RFC 9113).
        public static let http2 = ResponseHead.HTTPVersion(rawValue: "HTTP/2")
        /// HTTP/3 (RFC 9114).
        public static let http3 = ResponseHead.HTTPVersion(rawValue: "HTTP/3")
    }
}

extension ResponseHead.HTTPVersion: CustomStringConvertible {
    /// The version as a status line names it.
    public var description: String { rawValue }
}
