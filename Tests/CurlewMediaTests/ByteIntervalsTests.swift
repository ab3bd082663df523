// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import CurlewMedia

@Suite struct ByteIntervalsTests {
    @Test(
        arguments: [
            ([], 5..<9, [5..<9], 4),
            ([0..<4], 4..<6, [0..<6], 2),
            ([4..<6], 0..<4, [0..<6], 4),
            ([0..<2, 8..<9], 3..<5, [0..<2, 3..<5, 8..<9], 2),
            ([0..<2, 4..<6, 8..<9], 1..<9, [0..<9], 4),
            ([0..<10], 3..<5, [0..<10], 0),
            ([3..<5], 0..<10, [0..<10], 8),
            ([0..<2], 7..<7, [0..<2], 0),
        ] as [([Range<Int64>], Range<Int64>, [Range<Int64>], Int64)])
    func insertMergesNeighbours(
        _ old: [Range<Int64>], _ new: Range<Int64>, _ expected: [Range<Int64>], _ added: Int64
    ) throws {
        var set = try #require(ByteIntervals(old))
        #expect(set.insert(new) == added)
        #expect(set.ranges == expected)
        #expect(set.count == expected.reduce(0) { $0 + Int64($1.count) })
    }

    @Test func invalidRangesAreRefused() {
        #expect(ByteIntervals([0..<2, 2..<4]) == nil)
        #expect(ByteIntervals([4..<6, 0..<2]) == nil)
        #expect(ByteIntervals([3..<3]) == nil)
        #expect(ByteIntervals([-2..<1]) == nil)
        #expect(ByteIntervals((0...4096).map { Int64($0 * 2)..<Int64($0 * 2 + 1) }) == nil)
    }

    @Test func questionsAboutPositions() throws {
        let set = try #require(ByteIntervals([2..<4, 6..<9]))
        #expect((0...9).map { set.firstGap(from: $0) } == [0, 1, 4, 4, 4, 5, 9, 9, 9, 9])
        #expect((0...7).map { set.nextStart(after: $0) } == [2, 2, 6, 6, 6, 6, nil, nil])
        #expect(set.end(at: 3) == 4 && set.end(at: 4) == nil)
        #expect(set.contains(6..<9) && set.contains(3..<3) && !set.contains(3..<6) && !set.contains(1..<3))
    }

    @Test func numberOfRangesIsBounded() {
        var set = ByteIntervals()
        for index in 0..<5000 { set.insert(Int64(index * 10)..<Int64(index * 10 + 1 + index % 7)) }
        #expect(set.ranges.count == ByteIntervals.maximum)
        #expect(set.count == set.ranges.reduce(0) { $0 + Int64($1.count) })
    }

    @Test(arguments: 1...20)
    func setOfRangesEqualsSetOfPositions(_ seed: UInt64) {
        var chance = SeededGenerator(seed)
        var (set, oracle) = (ByteIntervals(), Set<Int64>())
        for _ in 0..<300 {
            let start = Int64.random(in: 0..<400, using: &chance)
            let range = start..<start + Int64.random(in: 0..<30, using: &chance)
            let known = oracle.count
            oracle.formUnion(range)
            #expect(set.insert(range) == Int64(oracle.count - known))
            #expect(set.count == Int64(oracle.count))
            let place = Int64.random(in: 0..<450, using: &chance)
            var gap = place
            while oracle.contains(gap) { gap += 1 }
            #expect(set.firstGap(from: place) == gap)
            #expect(ByteIntervals(set.ranges) == set)
        }
    }
}

/// A generator of the same numbers for the same seed (SplitMix64).
struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64

    init(_ seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}
