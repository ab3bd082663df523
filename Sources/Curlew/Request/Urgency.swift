// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension Request {
    /// The urgency of a response: the value of the field `Priority` (RFC 9218).
    ///
    /// A server of HTTP/2 or HTTP/3 may use the field to order the responses on a connection. Many servers ignore the
    /// field. ``Options-swift.struct/priority`` is independent of the field: it orders the requests that wait in this
    /// process.
    ///
    /// ```swift
    /// request.fields[.priority] = Request.Urgency(1).fieldValue
    /// let api = Client("https://api.example.com").with {
    ///     $0.fields = [.priority: Request.Urgency(5, isIncremental: true)]
    /// }
    /// ```
    public struct Urgency: Hashable, Sendable, HeaderValue {
        /// The urgency, from 0 (the highest) to 7 (the lowest); servers use 3 by default.
        public let level: Int
        /// Whether the client can use parts of the response, so that the response may share bandwidth with others.
        public let isIncremental: Bool

        /// Creates an urgency; a level below 0 counts as 0, and a level above 7 counts as 7.
        public init(_ level: Int = 3, isIncremental: Bool = false) {
            self.level = min(max(level, 0), 7)
            self.isIncremental = isIncremental
        }

        /// The structured field, such as "u=1, i".
        public var fieldValue: String { isIncremental ? "u=\(level), i" : "u=\(level)" }
    }
}
