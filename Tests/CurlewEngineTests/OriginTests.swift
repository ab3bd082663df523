// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import CurlewEngine

/// The number of connections that the transfers of an origin need.
@Suite("Origin")
struct OriginTests {
    @Test(arguments: [
        (false, 0, 0, 0), (false, 7, 2, 7), (true, 0, 0, 0), (true, 1, 0, 1), (true, 100, 0, 1), (true, 101, 0, 2),
        (true, 5, 5, 5), (true, 105, 5, 6), (true, 106, 5, 7),
    ])
    func connectionsOfSharedAndOwnTransfersAreCounted(isShared: Bool, active: Int, alone: Int, expected: Int) {
        let origin = Origin(host: "a.example", port: 443, isSecure: true)
        origin.isShared = isShared
        origin.active = active
        origin.exclusive = alone
        #expect(origin.connections == expected)
    }

    /// Open connections, shared transfers, transfers that open one, sockets being connected, waiting transfers.
    @Test(arguments: [
        (0, 0, 0, 0, 0, Origin.Sharing.opens), (0, 1, 1, 0, 0, .joins), (0, 1, 1, 1, 0, .joins),
        (0, 9, 1, 1, 0, .joins),
        (0, 10, 1, 1, 0, .opens), (0, 10, 1, 1, 1, .opens), (0, 11, 2, 2, 9, .waits), (0, 11, 2, 2, 10, .opens),
        (1, 0, 0, 0, 0, .joins), (1, 9, 0, 0, 100, .joins), (1, 10, 0, 0, 0, .opens), (1, 10, 0, 1, 5, .waits),
        (1, 11, 1, 0, 9, .waits), (1, 11, 1, 0, 10, .opens), (1, 12, 2, 2, 10, .waits), (3, 29, 0, 0, 9, .joins),
        (3, 30, 0, 0, 1, .opens),
    ])
    func roomDecidesWhetherATransferJoinsOpensOrWaits(
        made: Int, active: Int, opening: Int, connecting: Int, waiting: Int, expected: Origin.Sharing
    ) {
        for alone in [0, 2] {
            let origin = Origin(host: "a.example", port: 443, isSecure: true, streamsPerConnection: 10)
            origin.isShared = true
            origin.exclusive = alone
            origin.active = active + alone
            origin.opening = opening
            for number in 0..<(made + alone) { origin.descriptors[number] = CInt(number) }
            origin.sockets = made + alone + connecting
            origin.waiting = waiting
            #expect(origin.sharing == expected, "with \(alone) transfers on connections of their own")
        }
    }

    @Test func openingTransfersCountAsConnections() {
        let origin = Origin(host: "a.example", port: 443, isSecure: true)
        origin.isShared = true
        origin.active = 5
        origin.opening = 3
        #expect(origin.connections == 3)
        origin.descriptors[1] = 1
        #expect(origin.connections == 4, "the other two transfers share the open connection")
    }
}
