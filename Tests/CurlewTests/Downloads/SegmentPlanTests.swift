// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Curlew

@Suite struct SegmentPlanTests {
    @Test func piecesAreTakenFromTheEnd() {
        var plan = SegmentPlan(of: 1000, piece: 100, front: 0)
        #expect(plan.claim(by: 0) == 900..<1000)
        #expect(plan.claim(by: 1) == 800..<900)
        // A piece without a response yet does not move the border.
        #expect(plan.border == 1000 && plan.next == .missing)
        for worker in 0..<2 { #expect(plan.answered(worker) == true) }
        #expect(plan.border == 800)
        plan.fetched(0, upTo: 1000)
        plan.release(0)
        #expect(plan.claim(by: 0) == 700..<800)
        plan.advance(to: 700)
        #expect(plan.next == .awaited)
        plan.fetched(0, upTo: 750)
        #expect(plan.next == .there(750) && plan.storedBehindFront == 150)
        plan.advance(to: 750)
        #expect(plan.next == .awaited)
    }

    @Test func frontTakesPiecesWithoutAResponse() {
        var plan = SegmentPlan(of: 1000, piece: 100, front: 700)
        #expect(plan.claim(by: 0) == 900..<1000)
        #expect(plan.claim(by: 1) == 800..<900)
        #expect(plan.answered(0) == true)
        plan.advance(to: 801)
        #expect(plan.answered(1) == false)
        #expect(plan.claims == [0: 900..<1000] && plan.border == 900)
    }

    @Test func pieceRightBehindTheFrontIsNotClaimed() {
        var plan = SegmentPlan(of: 1000, piece: 100, front: 801)
        #expect(plan.claim(by: 0) == nil)
        plan = SegmentPlan(of: 1000, piece: 100, front: 800)
        #expect(plan.claim(by: 0) == 900..<1000)
        #expect(plan.claim(by: 1) == nil)
    }

    @Test func releasedPieceIsClaimedByOthers() {
        var plan = SegmentPlan(of: 1000, piece: 100, front: 0)
        _ = plan.claim(by: 0)
        plan.fetched(0, upTo: 930)
        plan.release(0)
        #expect(plan.storedRanges == [900..<930])
        #expect(plan.claim(by: 1) == 930..<1000)
        plan.advance(to: 900)
        #expect(plan.next == .there(930))
        plan.advance(to: 930)
        #expect(plan.next == .awaited)
        plan.release(1)
        #expect(plan.next == .missing && plan.border == 1000)
    }

    @Test func lateReportOfAnEarlierPieceIsIgnored() {
        var plan = SegmentPlan(of: 1000, piece: 100, front: 0)
        _ = plan.claim(by: 0)
        plan.fetched(0, upTo: 1000)
        plan.release(0)
        #expect(plan.claim(by: 0) == 800..<900)
        plan.fetched(0, upTo: 1000)
        #expect(plan.storedRanges == [900..<1000] && plan.claims[0] == 800..<900)
    }

    @Test func storedPiecesAreMergedAndInvalidOnesDropped() {
        let plan = SegmentPlan(
            of: 1000, piece: 100, front: 100,
            storedRanges: [500..<600, 50..<90, 600..<650, 550..<620, 900..<1001, -5..<3, 200..<200])
        #expect(plan.storedRanges == [500..<650] && plan.storedBehindFront == 150)
    }

    @Test func pieceSizesGrowWithTheFile() {
        #expect(SegmentPlan.piece(of: 1 << 20, for: 4, smallest: 1 << 20) == 1 << 20)
        #expect(SegmentPlan.piece(of: 64 << 20, for: 4, smallest: 1 << 20) == 2 << 20)
        #expect(SegmentPlan.piece(of: 1 << 40, for: 4, smallest: 1 << 20) == 32 << 20)
    }

    /// Workers take random steps: every byte is fetched exactly once, and the plan ends.
    @Test(arguments: UInt64(0)..<300)
    func everyByteIsFetchedOnce(_ seed: UInt64) {
        var chance = SeededChance(seed)
        let total = Int64(chance.next() % 5000)
        var plan = SegmentPlan(of: total, piece: Int64(chance.next() % 700) + 1, front: 0)
        var fetched = [Int](repeating: 0, count: Int(total))
        var claims: [Int: Range<Int64>] = [:]
        var steps = 0
        while plan.next != .nothing, steps < 100_000 {
            steps += 1
            let worker = Int(chance.next() % 4)
            switch chance.next() % 3 {
            case 0:
                // The connection at the front reads up to the border.
                if case .there(let end) = plan.next { plan.advance(to: end) }
                let count = min(Int64(chance.next() % 300), max(plan.border - plan.front, 0))
                for place in plan.front..<plan.front + count { fetched[Int(place)] += 1 }
                plan.advance(to: plan.front + count)
            case 1:
                guard let claim = claims[worker] else {
                    claims[worker] = plan.claim(by: worker)
                    continue
                }
                guard plan.answered(worker) else {
                    claims[worker] = nil
                    plan.release(worker)
                    continue
                }
                let end = min(claim.lowerBound + Int64(chance.next() % 300) + 1, claim.upperBound)
                for place in claim.lowerBound..<end { fetched[Int(place)] += 1 }
                plan.fetched(worker, upTo: end)
                claims[worker] = end..<claim.upperBound
                guard end == claim.upperBound else { continue }
                claims[worker] = nil
                plan.release(worker)
            default:
                guard chance.next() % 10 == 0 else { continue }
                claims[worker] = nil
                plan.release(worker)
            }
        }
        #expect(plan.next == .nothing && plan.front == total)
        #expect(fetched.allSatisfy { $0 == 1 })
    }
}
