// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Which bytes of a whole a response carries: `Content-Range` (RFC 9110 §14.4), in bytes.
///
/// ```swift
/// let range = ContentRange("bytes 500-999/8000")
/// print(range?.bytes ?? 0...0, range?.total ?? 0)   // 500...999 8000
/// ```
public struct ContentRange: Sendable, Hashable, CustomStringConvertible {
    /// The positions of the first and of the last byte; nil where no part was to be had (a 416 response).
    public let bytes: ClosedRange<Int64>?
    /// How many bytes the whole has; nil when the server does not know.
    public let total: Int64?

    /// A part of a whole.
    ///
    /// - Parameters:
    ///   - bytes: The positions of the first and of the last byte.
    ///   - total: How many bytes the whole has; nil for not known.
    public init(_ bytes: ClosedRange<Int64>?, of total: Int64?) {
        self.bytes = bytes
        self.total = total
    }

    /// Reads a field's value; nil for another unit and for what makes no sense, such as a part beyond the whole.
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

    /// Digits alone, of a number that fits.
    private static func number(_ text: Substring) -> Int64? {
        text.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) } ? Int64(text) : nil
    }

    /// The field's value.
    public var description: String {
        let part = bytes.map { "\($0.lowerBound)-\($0.upperBound)" } ?? "*"
        return "bytes \(part)/\(total.map { "\($0)" } ?? "*")"
    }
}
