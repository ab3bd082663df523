// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import CurlewMedia

@Suite struct FetchPlanTests {
    private static let limits = FetchPlan.Limits(transfers: 2, ahead: 100, join: 50)

    /// A plan for a file of 1000 bytes.
    private func plan(
        _ cached: [Range<Int64>] = [], mode: FetchPlan.Mode = .ranged, length: Int64? = 1000
    ) throws -> FetchPlan {
        FetchPlan(Self.limits, mode: mode, length: length, cached: try #require(ByteIntervals(cached)))
    }

    /// A reader's first look requests a range that depends on the stored ranges and the reader's position.
    @Test(
        arguments: [
            ([], 0, nil, [.start(2, from: 0, to: nil)]),
            ([], 300, nil, [.start(2, from: 300, to: nil)]),
            ([200..<1000], 0, nil, [.start(2, from: 0, to: 200)]),
            ([0..<50], 0, nil, [.start(2, from: 50, to: nil)]),
            ([0..<50, 80..<90], 0, nil, [.start(2, from: 50, to: 80)]),
            // A gap far behind the position is requested later.
            ([0..<200], 0, nil, []),
            ([0..<1000], 0, nil, []),
            ([0..<50], 0, 50, []),
            ([], 1000, nil, []),
            ([], 5000, nil, []),
        ] as [([Range<Int64>], Int64, Int64?, [FetchPlan.Action])])
    func firstLook(_ cached: [Range<Int64>], _ start: Int64, _ end: Int64?, _ expected: [FetchPlan.Action]) throws {
        var plan = try plan(cached)
        #expect(plan.add(from: start, to: end).1 == expected)
    }

    @Test func openingIsKeptForTheFirstReaderAndHeld() {
        var plan = FetchPlan(Self.limits)
        #expect(plan.wantFacts() == [.start(1, from: 0, to: nil)])
        #expect(plan.wantFacts() == [])
        #expect(plan.openedWhole(1, total: 1000, mode: .ranged) == [])
        #expect(plan.mayContinue(1) == false)
        let (reader, actions) = plan.add(from: 10, to: nil)
        #expect(actions == [.resume(1)])
        #expect(plan.remove(reader: reader) == [.stop(1)])
        #expect(plan.isIdle)
    }

    @Test func openingStopsWithTheLastHandle() {
        var plan = FetchPlan(Self.limits)
        #expect(plan.wantFacts() == [.start(1, from: 0, to: nil)])
        #expect(plan.release() == [.stop(1)])
    }

    @Test func readerNearATransferWaitsForIt() throws {
        var plan = try plan()
        let (first, started) = plan.add(from: 0, to: nil)
        #expect(started == [.start(2, from: 0, to: nil)])
        let (near, none) = plan.add(from: 50, to: nil)
        #expect(none == [])
        #expect(plan.take(near, atMost: 10) == (.wait, []))
        #expect(plan.openedPart(2, to: 1000, total: 1000) == [])
        #expect(plan.received(2, 0..<60, of: 0) == (.more, [.wake(near)]))
        #expect(plan.take(near, atMost: 10) == (.bytes(50..<60), []))
        #expect(plan.take(first, atMost: 10) == (.bytes(0..<10), []))
    }

    @Test func readerFarAwayGetsATransferOfItsOwnAndNoByteTwice() throws {
        var plan = try plan()
        _ = plan.add(from: 0, to: nil)
        #expect(plan.add(from: 500, to: nil).1 == [.start(4, from: 500, to: nil)])
        // The first transfer ends where the second one began.
        #expect(plan.transfers[2]?.end == 500)
        _ = plan.openedPart(2, to: 1000, total: 1000)
        #expect(plan.transfers[2]?.end == 500)
        // A reader before both waits for neither, and there is no free transfer: it takes over the less needed one.
        let (third, actions) = plan.add(from: 200, to: nil)
        #expect(actions == [])
        #expect(plan.take(third, atMost: 1) == (.wait, [.stop(2), .start(6, from: 200, to: 500)]))
    }

    @Test func waitingReadersShareTheTransfers() throws {
        var plan = try plan()
        let (first, _) = plan.add(from: 0, to: nil)
        let (second, _) = plan.add(from: 400, to: nil)
        _ = plan.take(first, atMost: 1)
        _ = plan.take(second, atMost: 1)
        let (third, _) = plan.add(from: 700, to: nil)
        // Both transfers are awaited, and have not delivered their share.
        #expect(plan.take(third, atMost: 1).1 == [])
        _ = plan.openedPart(2, to: 400, total: 1000)
        let (next, actions) = plan.received(2, 0..<100, of: 0)
        #expect(next == .finished)
        #expect(actions == [.wake(first), .stop(2), .start(6, from: 700, to: nil)])
    }

    @Test func transferIsHeldAheadOfASlowReader() throws {
        var plan = try plan()
        let (reader, _) = plan.add(from: 0, to: nil)
        _ = plan.openedPart(2, to: 1000, total: 1000)
        #expect(plan.received(2, 0..<99, of: 0) == (.more, []))
        #expect(plan.received(2, 99..<120, of: 0) == (.hold, []))
        #expect(plan.take(reader, atMost: 20) == (.bytes(0..<20), []))
        #expect(plan.take(reader, atMost: 20) == (.bytes(20..<40), [.resume(2)]))
    }

    @Test func greedyReaderIsNotHeld() throws {
        var plan = try plan()
        let (reader, _) = plan.add(from: 0, to: nil, isGreedy: true)
        _ = plan.openedPart(2, to: 1000, total: 1000)
        #expect(plan.received(2, 0..<900, of: 0).0 == .more)
        #expect(plan.take(reader, atMost: .max).0 == .bytes(0..<900))
    }

    @Test func errorReachesOnlyReadersThatWaitForIt() throws {
        var plan = try plan([0..<10])
        let (reading, _) = plan.add(from: 0, to: nil)
        let (waiting, _) = plan.add(from: 20, to: nil)
        let (other, _) = plan.add(from: 600, to: nil)
        #expect(plan.take(waiting, atMost: 1) == (.wait, []))
        #expect(plan.take(other, atMost: 1) == (.wait, []))
        // The transfer of the first two fails; a new one starts for the reader that still has bytes.
        #expect(plan.ended(2, isWhole: false) == [.fail(waiting), .start(6, from: 10, to: 600)])
        #expect(plan.take(reading, atMost: 100).0 == .bytes(0..<10))
        #expect(plan.take(waiting, atMost: 1).0 == .wait)
    }

    @Test func changeFailsReadersThatHaveBegunAndRestartsOthers() throws {
        var plan = try plan([0..<10])
        let (begun, _) = plan.add(from: 0, to: nil)
        #expect(plan.take(begun, atMost: 10).0 == .bytes(0..<10))
        #expect(plan.take(begun, atMost: 10).0 == .wait)
        let (fresh, _) = plan.add(from: 30, to: nil)
        #expect(plan.take(fresh, atMost: 10).0 == .wait)
        let actions = plan.changed(keeping: 2)
        #expect(actions == [.discard, .wake(begun)])
        #expect(plan.take(begun, atMost: 10) == (.changed, []))
        #expect(plan.openedWhole(2, total: 50, mode: .ranged) == [])
        // Bytes of the old file are ignored, those of the new one are not.
        #expect(plan.received(2, 0..<40, of: 0) == (.finished, []))
        #expect(plan.cached.isEmpty)
        let woken = plan.received(2, 0..<40, of: 1).1
        #expect(woken.contains(.wake(fresh)))
        #expect(plan.take(fresh, atMost: 100).0 == .bytes(30..<40))
    }

    @Test func fileWithoutValidatorIsLostWithItsTransfer() {
        var plan = FetchPlan(Self.limits)
        let (reader, _) = plan.add(from: 0, to: nil)
        #expect(plan.take(reader, atMost: 5) == (.wait, [.start(2, from: 0, to: nil)]))
        #expect(plan.openedWhole(2, total: 1000, mode: .unverified) == [])
        let (far, none) = plan.add(from: 900, to: nil)
        #expect(none == [])
        #expect(plan.take(far, atMost: 5) == (.wait, []))
        #expect(plan.received(2, 0..<50, of: 0) == (.more, [.wake(reader)]))
        #expect(plan.take(reader, atMost: 5).0 == .bytes(0..<5))
        #expect(plan.ended(2, isWhole: false) == [.fail(far), .discard])
        #expect(plan.take(reader, atMost: 5).0 == .changed)
        #expect(plan.take(far, atMost: 5) == (.wait, [.start(4, from: 0, to: nil)]))
    }

    @Test func fileWithoutValidatorIsLostWithItsLastReader() {
        var plan = FetchPlan(Self.limits)
        let (reader, _) = plan.add(from: 0, to: nil)
        _ = plan.take(reader, atMost: 5)
        _ = plan.openedWhole(2, total: 1000, mode: .unverified)
        _ = plan.received(2, 0..<50, of: 0)
        #expect(plan.remove(reader: reader) == [.stop(2), .discard])
        #expect(plan.cached.isEmpty && plan.mode == .unknown)
    }

    @Test func brokenRangesFallBackToTheWhole() throws {
        var plan = try plan([0..<100])
        let (reader, _) = plan.add(from: 500, to: nil)
        #expect(plan.take(reader, atMost: 5).0 == .wait)
        #expect(plan.rangesFailed(2) == [.start(3, from: 0, to: nil)])
        #expect(plan.openedWhole(3, total: 1000, mode: .whole) == [])
        #expect(plan.cached.ranges == [0..<100])
        #expect(plan.received(3, 0..<501, of: 0).1 == [.wake(reader)])
    }

    @Test func endOfAnUnknownLengthWakesReadersBehindIt() {
        var plan = FetchPlan(Self.limits)
        let (reader, _) = plan.add(from: 65, to: nil)
        _ = plan.take(reader, atMost: 5)
        _ = plan.openedWhole(2, total: nil, mode: .ranged)
        // The reader is too far away to wait, but a response beyond the end tells the length.
        #expect(plan.transfers[3] == FetchPlan.Transfer(position: 65))
        #expect(plan.foundLength(3, 60) == [.wake(reader)])
        #expect(plan.length == 60 && plan.isIdle == false)
        #expect(plan.take(reader, atMost: 5).0 == .end)
    }

    @Test func endOfABodyOfUnknownLengthIsTheLength() {
        var plan = FetchPlan(Self.limits)
        let (reader, _) = plan.add(from: 20, to: nil)
        _ = plan.take(reader, atMost: 5)
        _ = plan.openedWhole(2, total: nil, mode: .ranged)
        #expect(plan.received(2, 0..<20, of: 0) == (.more, []))
        #expect(plan.ended(2, isWhole: true) == [.wake(reader)])
        #expect(plan.length == 20 && plan.isComplete)
        #expect(plan.take(reader, atMost: 5).0 == .end)
    }

    @Test func lengthBeforeStoredBytesIsAChange() throws {
        var plan = try plan([0..<100], length: nil)
        let (reader, _) = plan.add(from: 100, to: nil)
        _ = plan.take(reader, atMost: 5)
        #expect(plan.foundLength(2, 90) == [.discard, .start(3, from: 0, to: nil)])
    }

    @Test func emptyFileEndsReadersAtOnce() {
        var plan = FetchPlan(Self.limits)
        let (reader, _) = plan.add(from: 0, to: nil)
        _ = plan.take(reader, atMost: 5)
        #expect(plan.openedWhole(2, total: 0, mode: .ranged) == [.wake(reader), .stop(2)])
        #expect(plan.take(reader, atMost: 5).0 == .end)
        #expect(plan.isComplete)
    }

    @Test func shutDownStopsAndStartsNothing() throws {
        var plan = try plan()
        _ = plan.add(from: 0, to: nil)
        #expect(plan.shutDown() == [.stop(2)])
        #expect(plan.add(from: 0, to: nil).1 == [])
        #expect(plan.wantFacts() == [])
    }
}
