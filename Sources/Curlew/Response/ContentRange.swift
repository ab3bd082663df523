// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension ResponseHead {
    /// The byte range that a response carries: `Content-Range` (RFC 9110 §14.4) with the unit `bytes`.
    ///
    /// ```swift
    /// let range = ResponseHead.ContentRange("bytes 500-999/8000")
    /// print(range?.bytes ?? 0...0, range?.total ?? 0)   // 500...999 8000
    /// ```
    public struct ContentRange: Sendable, Hashable, CustomStringConvertible {
        /// The positions of the first and the last byte; nil when the range was not satisfiable (a 416 response).
        public let bytes: ClosedRange<Int64>?
        /// The complete length in bytes; nil when the server does not know it.
        public let total: Int64?

        /// Creates a range.
        ///
        /// - Parameters:
        ///   - bytes: The positions of the first and the last byte; nil for a range that was not satisfiable.
        ///   - total: The complete length in bytes; nil when it is unknown.
        public init(_ bytes: ClosedRange<Int64>?, of total: Int64?) {
            self.bytes = bytes
            self.total = total
        }

        /// Parses a field's value; nil for another unit and for an invalid value, such as a range beyond the total.
        public init?(_ text: String) {
            let words = text.split(separator: " ", omittingEmptySubsequences: true)
            guard words.count == 2, words[0].lowercased() == "bytes" else { return nil }
            let parts = words[1].split(separator: "/", omittingEmptySubsequences: false)
            guard parts.count == 2 else { return nil }
            let total = Self.number(parts[1])
            guard total != nil || parts[1] == "*" else { return nil }
            if parts[0] == "*" {
                guard total != nil else { return nil }
                self.init(nil, of: total)
                return
            }
            let ends = parts[0].split(separator: "-", omittingEmptySubsequences: false)
            guard ends.count == 2, let first = Self.number(ends[0]), let last = Self.number(ends[1]), first <= last,
                last < total ?? .max
            else { return nil }
            self.init(first...last, of: total)
        }

        /// Parses a number without a sign; nil for anything but digits and for a number that overflows.
        private static func number(_ text: Substring) -> Int64? {
            text.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) } ? Int64(text) : nil
        }

        /// The field's value.
        public var description: String {
            let part = bytes.map { "\($0.lowerBound)-\($0.upperBound)" } ?? "*"
            return "bytes \(part)/\(total.map { "\($0)" } ?? "*")"
        }
    }
}
