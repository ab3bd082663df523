// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import CurlewEngine

/// Where the TLS sessions of many hosts are kept.
@Suite("TLSShares")
struct TLSSharesTests {
    private func origin(_ number: Int) -> Origin {
        Origin(host: "host-\(number % 7).example", port: UInt16(1 + number), isSecure: true)
    }

    @Test func noShareHasMoreOriginsThanRoom() throws {
        var shares = try #require(TLSShares(lifetime: 100, now: 5))
        var counts: [ObjectIdentifier: Int] = [:]
        for number in 0..<(TLSShares.most * TLSShares.room) {
            counts[ObjectIdentifier(shares.sessions(of: origin(number), now: 5)), default: 0] += 1
        }
        #expect(counts.count == TLSShares.most && counts.values.allSatisfy { $0 == TLSShares.room })
    }

    @Test func anOriginKeepsItsPlaceWhoeverAsks() throws {
        var shares = try #require(TLSShares(lifetime: 100, now: 5))
        let first = (0..<50).map { shares.sessions(of: origin($0), now: 5) }
        #expect(shares.count == 50)
        for number in (0..<50).reversed() { #expect(shares.sessions(of: origin(number), now: 5) === first[number]) }
        #expect(shares.count == 50)
    }

    @Test func thousandsOfOriginsNeedNoMore() throws {
        var shares = try #require(TLSShares(lifetime: 100, now: 5))
        let first = shares.sessions(of: origin(0), now: 5)
        for number in 0..<5000 { _ = shares.sessions(of: origin(number), now: 5) }
        #expect(shares.count == TLSShares.most)
        // The first ones have given way, in the order they came, and are assigned again.
        let last = shares.sessions(of: origin(4999), now: 5)
        #expect(shares.sessions(of: origin(4999), now: 5) === last)
        #expect(shares.sessions(of: origin(0), now: 5) !== first)
    }

    /// However often sessions are resumed, there comes a time when the server has to show its certificate again.
    @Test func oldSessionsAreForgotten() throws {
        var shares = try #require(TLSShares(lifetime: 100, now: 5))
        let first = shares.sessions(of: origin(0), now: 50)
        #expect(first.bornAt == 5)
        #expect(!shares.areOld(first, now: 0) && !shares.areOld(first, now: 104) && shares.areOld(first, now: 105))
        #expect(shares.sessions(of: origin(0), now: 104) === first)
        let second = shares.sessions(of: origin(0), now: 150)
        #expect(second !== first && second.bornAt == 150)
        #expect(shares.sessions(of: origin(0), now: 200) === second && shares.count == 1)
        #expect(shares.end(of: second) == 250)
        // Also those that are given to an origin that comes when all places are taken.
        for number in 1..<(TLSShares.most * TLSShares.room) { _ = shares.sessions(of: origin(number), now: 200) }
        #expect(shares.sessions(of: origin(5000), now: 400).bornAt == 400)
    }
}
