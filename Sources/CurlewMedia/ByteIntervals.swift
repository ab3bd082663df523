// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// A set of byte positions, as ranges that neither overlap nor touch, in ascending order.
///
/// The number of ranges is bounded: beyond the limit, the set forgets its shortest range.
struct ByteIntervals: Sendable, Hashable {
    /// The maximum number of ranges.
    static let maximum = 4096

    /// The ranges in ascending order.
    private(set) var ranges: [Range<Int64>] = []
    /// The number of positions.
    private(set) var count: Int64 = 0

    init() {}

    /// Creates a set from ranges; nil unless they are ascending, not empty, not negative and apart from each other.
    init?(_ ranges: [Range<Int64>]) {
        guard ranges.count <= Self.maximum else { return nil }
        var end: Int64 = -1
        for range in ranges {
            guard range.lowerBound > end, !range.isEmpty else { return nil }
            end = range.upperBound
            count += Int64(range.count)
        }
        self.ranges = ranges
    }

    var isEmpty: Bool { ranges.isEmpty }

    /// Adds a range, and merges it with its neighbours.
    ///
    /// - Returns: The number of positions that were not in the set.
    @discardableResult
    mutating func insert(_ range: Range<Int64>) -> Int64 {
        guard !range.isEmpty else { return 0 }
        // The first range that ends at or behind the new one's start, and the first one that begins behind its end.
        let first = index { $0.upperBound >= range.lowerBound }
        let last = index { $0.lowerBound > range.upperBound }
        var merged = range
        var known: Int64 = 0
        for old in ranges[first..<last] {
            merged = min(merged.lowerBound, old.lowerBound)..<max(merged.upperBound, old.upperBound)
            known += Int64(old.count)
        }
        ranges.replaceSubrange(first..<last, with: CollectionOfOne(merged))
        let added = Int64(merged.count) - known
        count += added
        if ranges.count > Self.maximum { forgetShortest(except: merged) }
        return added
    }

    private mutating func forgetShortest(except kept: Range<Int64>) {
        let others = ranges.indices.filter { ranges[$0] != kept }
        guard let shortest = others.min(by: { ranges[$0].count < ranges[$1].count }) else { return }
        count -= Int64(ranges.remove(at: shortest).count)
    }

    /// Returns the end of the range that contains a position; nil if the position is not in the set.
    func end(at position: Int64) -> Int64? {
        let found = index { $0.upperBound > position }
        guard found < ranges.count, ranges[found].lowerBound <= position else { return nil }
        return ranges[found].upperBound
    }

    /// Returns the first position at or behind another one that is not in the set.
    func firstGap(from position: Int64) -> Int64 { end(at: position) ?? position }

    /// Returns the start of the first range that begins behind a position; nil without such a range.
    func nextStart(after position: Int64) -> Int64? {
        let found = index { $0.lowerBound > position }
        return found < ranges.count ? ranges[found].lowerBound : nil
    }

    /// Returns whether all positions of a range are in the set.
    func contains(_ range: Range<Int64>) -> Bool {
        range.isEmpty || end(at: range.lowerBound).map { $0 >= range.upperBound } ?? false
    }

    /// Returns the index of the first range with a property that all ranges behind it have as well.
    private func index(where predicate: (Range<Int64>) -> Bool) -> Int {
        var (low, high) = (0, ranges.count)
        while low < high {
            let middle = (low + high) / 2
            if predicate(ranges[middle]) { high = middle } else { low = middle + 1 }
        }
        return low
    }
}
