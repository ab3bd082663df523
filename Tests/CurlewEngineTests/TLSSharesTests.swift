// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import CurlewEngine

/// The assignment of origins to a limited number of TLS session caches.
@Suite("TLSShares")
struct TLSSharesTests {
    private func origin(_ number: Int) -> Origin {
        Origin(host: "host-\(number % 7).example", port: UInt16(1 + number), isSecure: true)
    }

    @Test func sharesHoldALimitedNumberOfOrigins() throws {
        var shares = try #require(TLSShares(lifetime: 100, now: 5))
        var counts: [ObjectIdentifier: Int] = [:]
        for number in 0..<(TLSShares.maximum * TLSShares.originsPerShare) {
            counts[ObjectIdentifier(shares.sessions(of: origin(number), now: 5)), default: 0] += 1
        }
        #expect(counts.count == TLSShares.maximum && counts.values.allSatisfy { $0 == TLSShares.originsPerShare })
    }

    @Test func originsKeepTheirShare() throws {
        var shares = try #require(TLSShares(lifetime: 100, now: 5))
        let first = (0..<50).map { shares.sessions(of: origin($0), now: 5) }
        #expect(shares.count == 50)
        for number in (0..<50).reversed() { #expect(shares.sessions(of: origin(number), now: 5) === first[number]) }
        #expect(shares.count == 50)
    }

    @Test func shareCountIsLimitedAndOldestAssignmentsAreDropped() throws {
        var shares = try #require(TLSShares(lifetime: 100, now: 5))
        let first = shares.sessions(of: origin(0), now: 5)
        for number in 0..<5000 { _ = shares.sessions(of: origin(number), now: 5) }
        #expect(shares.count == TLSShares.maximum)
        // The oldest assignments have been dropped, and their origins get new ones.
        let last = shares.sessions(of: origin(4999), now: 5)
        #expect(shares.sessions(of: origin(4999), now: 5) === last)
        #expect(shares.sessions(of: origin(0), now: 5) !== first)
    }

    /// Cached sessions expire even if they are resumed often, so that the server shows its certificate again.
    @Test func expiredSharesAreReplaced() throws {
        var shares = try #require(TLSShares(lifetime: 100, now: 5))
        let first = shares.sessions(of: origin(0), now: 50)
        #expect(first.bornAt == 5)
        #expect(
            !shares.areExpired(first, now: 0) && !shares.areExpired(first, now: 104)
                && shares.areExpired(first, now: 105))
        #expect(shares.sessions(of: origin(0), now: 104) === first)
        let second = shares.sessions(of: origin(0), now: 150)
        #expect(second !== first && second.bornAt == 150)
        #expect(shares.sessions(of: origin(0), now: 200) === second && shares.count == 1)
        #expect(shares.end(of: second) == 250)
        // The same limit holds for a new origin that arrives when every slot is taken.
        for number in 1..<(TLSShares.maximum * TLSShares.originsPerShare) {
            _ = shares.sessions(of: origin(number), now: 200)
        }
        #expect(shares.sessions(of: origin(5000), now: 400).bornAt == 400)
    }
}
