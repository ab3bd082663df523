// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// A set of status codes, made of ranges and single codes, such as the codes that a caller accepts.
///
/// ```swift
/// let accepted = StatusSet.success.inserting(.notModified)
/// print(accepted.contains(404))               // false
/// print(accepted)                             // 200…299, 304
/// ```
public struct StatusSet: Sendable, Hashable {
    /// The ranges in order; they neither overlap nor touch, so that equal sets have equal ranges.
    let ranges: [ClosedRange<Int>]

    /// Creates the set of the codes in one or more ranges, which may overlap; the empty set is `[]`.
    public init(_ range: ClosedRange<Int>, _ more: ClosedRange<Int>...) {
        self.init(joining: [range] + more)
    }

    private init(joining ranges: [ClosedRange<Int>]) {
        var joined: [ClosedRange<Int>] = []
        for range in ranges.sorted(by: { $0.lowerBound < $1.lowerBound }) {
            // The addition cannot overflow: it runs only when `last.upperBound` is below `range.lowerBound`.
            if let last = joined.last, last.upperBound >= range.lowerBound || last.upperBound + 1 == range.lowerBound {
                joined[joined.count - 1] = last.lowerBound...max(last.upperBound, range.upperBound)
            } else {
                joined.append(range)
            }
        }
        self.ranges = joined
    }

    /// 200…299 (RFC 9110 §15.3).
    public static let success = StatusSet(200...299)
    /// Every code: no response is refused for its status.
    public static let any = StatusSet(Int.min...Int.max)

    /// Whether a code is in the set.
    public func contains(_ status: Status) -> Bool { ranges.contains { $0.contains(status.code) } }

    /// Returns the set of the codes that are in this set, in `other` or in both.
    public func union(_ other: StatusSet) -> StatusSet { StatusSet(joining: ranges + other.ranges) }

    /// Returns this set with one more code.
    public func inserting(_ status: Status) -> StatusSet { StatusSet(joining: ranges + [status.code...status.code]) }
}

extension StatusSet: ExpressibleByArrayLiteral, CustomStringConvertible {
    /// Creates the set of the codes in a literal, such as `[.ok, .notFound, 425]`.
    public init(arrayLiteral elements: Status...) {
        self.init(joining: elements.map { $0.code...$0.code })
    }

    /// The ranges and codes in order: "200…299, 304"; "any" for all codes, "none" for the empty set.
    public var description: String {
        if ranges.isEmpty { return "none" }
        if self == .any { return "any" }
        return ranges.map { $0.lowerBound == $0.upperBound ? "\($0.lowerBound)" : "\($0.lowerBound)…\($0.upperBound)" }
            .joined(separator: ", ")
    }
}

extension StatusSet: Codable {
    /// Decodes a list of ranges, each a list of its first and last code.
    /// - Throws: `DecodingError` for another value.
    public init(from decoder: any Decoder) throws {
        self.init(joining: try decoder.singleValueContainer().decode([ClosedRange<Int>].self))
    }

    /// Encodes the ranges, as `[[200, 299], [304, 304]]`.
    /// - Throws: Any error of the encoder.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(ranges)
    }
}
