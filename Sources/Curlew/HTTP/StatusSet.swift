// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// A set of status codes: ranges of them and single ones, for what a caller accepts.
///
/// ```swift
/// let accepted = StatusSet.success.inserting(.notModified)
/// print(accepted.contains(404))               // false
/// print(accepted)                             // 200…299, 304
/// ```
public struct StatusSet: Sendable, Hashable {
    /// The ranges in order; they neither overlap nor touch, so that equal sets have equal ranges.
    private let ranges: [ClosedRange<Int>]

    /// The codes of one range or several, which may overlap; the empty set is `[]`.
    public init(_ range: ClosedRange<Int>, _ more: ClosedRange<Int>...) {
        self.init(joining: [range] + more)
    }

    private init(joining ranges: [ClosedRange<Int>]) {
        var joined: [ClosedRange<Int>] = []
        for range in ranges.sorted(by: { $0.lowerBound < $1.lowerBound }) {
            // Written so that it does not overflow at either end of Int.
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
    /// Every code: nothing is refused for its status.
    public static let any = StatusSet(Int.min...Int.max)

    /// Whether a code is in the set.
    public func contains(_ status: Status) -> Bool { ranges.contains { $0.contains(status.code) } }

    /// What is in this set, in the other or in both.
    public func union(_ other: StatusSet) -> StatusSet { StatusSet(joining: ranges + other.ranges) }

    /// The same set with one more code.
    public func inserting(_ status: Status) -> StatusSet { StatusSet(joining: ranges + [status.code...status.code]) }
}

extension StatusSet: ExpressibleByArrayLiteral, CustomStringConvertible {
    /// The codes of a literal, such as `[.ok, .notFound, 425]`.
    public init(arrayLiteral elements: Status...) {
        self.init(joining: elements.map { $0.code...$0.code })
    }

    /// The ranges and codes in order: "200…299, 304"; "any" for all, "none" for none.
    public var description: String {
        if ranges.isEmpty { return "none" }
        if self == .any { return "any" }
        return ranges.map { $0.lowerBound == $0.upperBound ? "\($0.lowerBound)" : "\($0.lowerBound)…\($0.upperBound)" }
            .joined(separator: ", ")
    }
}

extension StatusSet: Codable {
    /// Decodes a list of ranges, each the list of its first and last code.
    /// - Throws: `DecodingError` when it is none.
    public init(from decoder: any Decoder) throws {
        self.init(joining: try decoder.singleValueContainer().decode([ClosedRange<Int>].self))
    }

    /// Encodes the ranges, as `[[200, 299], [304, 304]]`.
    /// - Throws: What the encoder throws.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(ranges)
    }
}
