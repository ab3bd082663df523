// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import CurlewEngine

/// The addresses that replace the first, second and further address of libcurl when a connection is opened.
@Suite("AddressOrder")
struct AddressOrderTests {
    private static let mixed = ["2001:db8::1", "192.0.2.1", "2001:db8::2", "192.0.2.2", "192.0.2.3"]

    /// Returns the addresses in the order of the attempts.
    private func tried(_ addresses: [String], _ order: EngineConfiguration.AddressOrder, _ turn: Int) -> [[UInt8]] {
        let changed = AddressOrder(addresses, order, turn: turn)
        return addresses.map { text in
            let bytes = AddressOrder.bytes(of: text)
            return changed?[bytes] ?? bytes
        }
    }

    @Test func addressesAreParsed() {
        #expect(AddressOrder.bytes(of: "192.0.2.1") == [192, 0, 2, 1])
        #expect(AddressOrder.bytes(of: "::1") == [UInt8](repeating: 0, count: 15) + [1])
        for text in ["", "a.example", "192.0.2", "1::2::3"] { #expect(AddressOrder.bytes(of: text).isEmpty) }
    }

    @Test func unchangedOrderNeedsNoMapping() {
        #expect(AddressOrder(Self.mixed, .asResolved, turn: 1) == nil)
        for order in [EngineConfiguration.AddressOrder.shuffled, .roundRobin] {
            #expect(AddressOrder([], order, turn: 1) == nil)
            #expect(AddressOrder(["192.0.2.1"], order, turn: 1) == nil)
            #expect(AddressOrder(["192.0.2.1", "::1"], order, turn: 1) == nil, "one address of each family")
        }
    }

    @Test(arguments: [
        (0, ["2001:db8::1", "192.0.2.1", "2001:db8::2", "192.0.2.2", "192.0.2.3"]),
        (1, ["2001:db8::2", "192.0.2.2", "2001:db8::1", "192.0.2.3", "192.0.2.1"]),
        (2, ["2001:db8::1", "192.0.2.3", "2001:db8::2", "192.0.2.1", "192.0.2.2"]),
        (6, ["2001:db8::1", "192.0.2.1", "2001:db8::2", "192.0.2.2", "192.0.2.3"]),
    ])
    func roundRobinRotatesWithinEachFamily(turn: Int, expected: [String]) {
        #expect(tried(Self.mixed, .roundRobin, turn) == expected.map(AddressOrder.bytes))
    }

    @Test func shufflingTriesEachAddressOnce() {
        let all = Set(Self.mixed.map(AddressOrder.bytes))
        var first: Set<[UInt8]> = []
        for _ in 0..<200 {
            let order = tried(Self.mixed, .shuffled, 0)
            #expect(order.map(\.count) == [16, 4, 16, 4, 4] && Set(order) == all)
            first.insert(order[1])
        }
        #expect(first.count == 3)
    }
}
