// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import CurlewEngine

/// The endpoints that one connection attempts, and their times.
@Suite("Connection attempts")
struct ConnectionAttemptsTests {
    private static let mixed = ["2001:db8::1", "192.0.2.1", "2001:db8::2", "192.0.2.2", "192.0.2.3"].map {
        SocketAddress($0)
    }

    private func attempts(
        _ endpoints: [SocketAddress] = mixed, _ order: EngineConfiguration.AddressOrder = .asResolved, turn: Int = 0,
        delay: UInt64? = 250
    ) throws -> ConnectionAttempts {
        try #require(ConnectionAttempts(endpoints, order, turn: turn, delay: delay))
    }

    /// Returns the addresses that libcurl attempts if each attempt fails, in the order of the look-up's families.
    private func tried(_ order: EngineConfiguration.AddressOrder, _ turn: Int) throws -> [String] {
        var attempts = try attempts(Self.mixed, order, turn: turn)
        return Self.mixed.compactMap { attempts.next($0.bytes.count, running: [], now: 0)?.ip }
    }

    @Test func addressesAreParsed() {
        #expect(SocketAddress("192.0.2.1").bytes == [192, 0, 2, 1])
        #expect(SocketAddress("::1").bytes == [UInt8](repeating: 0, count: 15) + [1])
        for text in ["", "a.example", "192.0.2", "1::2::3"] { #expect(SocketAddress(text).bytes.isEmpty) }
    }

    @Test func singleEndpointNeedsNoAttempts() {
        for order in EngineConfiguration.AddressOrder.allCases {
            #expect(ConnectionAttempts([], order, turn: 1, delay: 250) == nil)
            #expect(ConnectionAttempts([SocketAddress("192.0.2.1")], order, turn: 1, delay: 250) == nil)
            #expect(ConnectionAttempts([SocketAddress("192.0.2.1", port: 81)], order, turn: 1, delay: 250) != nil)
        }
    }

    @Test(arguments: [
        (0, ["2001:db8::1", "192.0.2.1", "2001:db8::2", "192.0.2.2", "192.0.2.3"]),
        (1, ["2001:db8::2", "192.0.2.2", "2001:db8::1", "192.0.2.3", "192.0.2.1"]),
        (2, ["2001:db8::1", "192.0.2.3", "2001:db8::2", "192.0.2.1", "192.0.2.2"]),
        (6, ["2001:db8::1", "192.0.2.1", "2001:db8::2", "192.0.2.2", "192.0.2.3"]),
    ])
    func roundRobinRotatesWithinEachFamily(turn: Int, expected: [String]) throws {
        #expect(try tried(.roundRobin, turn) == expected)
        #expect(try tried(.asResolved, turn) == Self.mixed.map(\.ip))
    }

    @Test func shufflingTriesEachAddressOnce() throws {
        let all = Set(Self.mixed.map(\.ip))
        var first: Set<String> = []
        for _ in 0..<200 {
            let order = try tried(.shuffled, 0)
            #expect(order.map { SocketAddress($0).bytes.count } == [16, 4, 16, 4, 4] && Set(order) == all)
            first.insert(order[1])
        }
        #expect(first.count == 3)
    }

    @Test func familiesAlternateWithADelayBetweenAttempts() throws {
        var attempts = try attempts()
        #expect(attempts.nextAt == .max, "libcurl begins")
        #expect(attempts.next(16, running: [], now: 1000)?.ip == "2001:db8::1")
        #expect(attempts.nextAt == 1250)
        #expect(attempts.next(4, running: [], now: 1240)?.ip == "192.0.2.1")
        #expect(attempts.nextAt == 1490, "the delay counts from the last attempt")
        #expect(attempts.nextBesideLibcurl(now: 1490)?.ip == "2001:db8::2")
        #expect(attempts.nextBesideLibcurl(now: 1740)?.ip == "192.0.2.2")
        #expect(attempts.nextAt == 1990)
        attempts.hurry(now: 1800)
        #expect(attempts.nextAt == 1800, "a failure starts the next attempt at once")
        #expect(attempts.nextBesideLibcurl(now: 1800)?.ip == "192.0.2.3", "no other family is left")
        #expect(attempts.nextAt == .max && attempts.nextBesideLibcurl(now: 9000) == nil)
        attempts.hurry(now: 9000)
        #expect(attempts.nextAt == .max, "no attempt is left to begin")
    }

    @Test func libcurlTakesOverOnlyWhenNothingElseIsLeft() throws {
        var attempts = try attempts(["192.0.2.1", "192.0.2.2", "192.0.2.3"].map { SocketAddress($0) })
        #expect(attempts.next(4, running: [], now: 0)?.ip == "192.0.2.1")
        let next = attempts.nextBesideLibcurl(now: 250)
        let second = try #require(next)
        #expect(attempts.next(4, running: [second], now: 260)?.ip == "192.0.2.3")
        #expect(attempts.next(4, running: [second], now: 270) == second)
        #expect(attempts.next(4, running: [], now: 280)?.ip == "192.0.2.3", "the last one is repeated")
        #expect(attempts.next(16, running: [], now: 290) == nil)
    }

    @Test func engineMakesNoAttemptsWithoutADelay() throws {
        var attempts = try attempts(delay: nil)
        #expect(attempts.next(16, running: [], now: 1000) != nil)
        #expect(attempts.nextAt == .max)
    }

    @Test func endpointsOfOneAddressDifferByPort() throws {
        let endpoints = [SocketAddress("192.0.2.1", port: 8443), SocketAddress("192.0.2.1")]
        var attempts = try attempts(endpoints)
        #expect(attempts.next(4, running: [], now: 0) == endpoints[0])
        #expect(attempts.next(4, running: [], now: 0) == endpoints[1])
    }
}
