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
        var shares = try #require(TLSShares())
        var counts: [ObjectIdentifier: Int] = [:]
        for number in 0..<(TLSShares.most * TLSShares.room) {
            counts[ObjectIdentifier(shares.sessions(of: origin(number))), default: 0] += 1
        }
        #expect(counts.count == TLSShares.most && counts.values.allSatisfy { $0 == TLSShares.room })
    }

    @Test func anOriginKeepsItsPlaceWhoeverAsks() throws {
        var shares = try #require(TLSShares())
        let first = (0..<50).map { shares.sessions(of: origin($0)) }
        #expect(shares.count == 50)
        for number in (0..<50).reversed() { #expect(shares.sessions(of: origin(number)) === first[number]) }
        #expect(shares.count == 50)
    }

    @Test func thousandsOfOriginsNeedNoMore() throws {
        var shares = try #require(TLSShares())
        let first = shares.sessions(of: origin(0))
        for number in 0..<5000 { _ = shares.sessions(of: origin(number)) }
        #expect(shares.count == TLSShares.most)
        // The first ones have given way, in the order they came, and are assigned again.
        let last = shares.sessions(of: origin(4999))
        #expect(shares.sessions(of: origin(4999)) === last)
        #expect(shares.sessions(of: origin(0)) !== first)
    }
}
