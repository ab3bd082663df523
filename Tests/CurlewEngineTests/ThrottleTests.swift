// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import CurlewEngine

/// The arithmetic of `TokenBucket` at times that the test chooses.
@Suite struct ThrottleTests {
    private let second: UInt64 = 1_000_000_000

    @Test func bucketReopensAfterPayingAtTheRate() throws {
        var bucket = try #require(TokenBucket(rate: 1000))
        let start = 10 * second
        #expect(bucket.isOpen(at: start))
        bucket.take(1100, at: start)
        #expect(!bucket.isOpen(at: start))
        // 100 of the 1100 bytes were credit, a tenth of a second.
        #expect(bucket.paidAt == start + second)
        #expect(!bucket.isOpen(at: start + second - 1) && bucket.isOpen(at: start + second))
    }

    @Test func creditIsLimitedToATenthOfASecond() throws {
        var bucket = try #require(TokenBucket(rate: 1000))
        bucket.take(1, at: 10 * second)
        bucket.take(100, at: 3600 * second)
        #expect(bucket.paidAt == 3600 * second)
        bucket.take(1, at: 3600 * second)
        #expect(!bucket.isOpen(at: 3600 * second))
    }

    @Test func lateCallsKeepTheAverageRate() throws {
        var bucket = try #require(TokenBucket(rate: 1 << 20))
        let start = 5 * second
        var now = start
        var taken = 0
        while now < start + 10 * second {
            bucket.take(bucket.quantum, at: now)
            taken += bucket.quantum
            // The waiter is called up to a hundredth of a second late.
            now = max(now, bucket.paidAt) + UInt64(taken % 10) * 1_000_000
        }
        let exact = Double(10 << 20)
        #expect(Double(taken) > exact * 0.99 && Double(taken) < exact * 1.03)
    }

    @Test func smallChunksAreNotFaster() throws {
        var small = try #require(TokenBucket(rate: 3))
        var large = try #require(TokenBucket(rate: 3))
        for _ in 0..<300 { small.take(1, at: second) }
        large.take(300, at: second)
        #expect(small.paidAt >= large.paidAt && small.paidAt - large.paidAt <= 300)
    }

    @Test(arguments: [(1, 512), (10_240, 512), (102_400, 5120), (1 << 30, 64 << 10)] as [(UInt64, Int)])
    func quantumSizeFollowsTheRate(rate: UInt64, quantum: Int) throws {
        #expect(try #require(TokenBucket(rate: rate)).quantum == quantum)
    }

    @Test func extremeRatesAreSupported() throws {
        #expect(TokenBucket(rate: nil) == nil && TokenBucket(rate: .max) == nil)
        var fastest = try #require(TokenBucket(rate: TokenBucket.fastest))
        fastest.take(1 << 30, at: 0)
        #expect(fastest.paidAt == 15_625_000)
        var slowest = try #require(TokenBucket(rate: 0))
        slowest.take(2, at: 0)
        #expect(slowest.paidAt == 2 * second)
    }
}
