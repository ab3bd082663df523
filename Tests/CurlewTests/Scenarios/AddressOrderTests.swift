// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewEngine
import CurlewTesting
import FoundationEssentials
import Testing

@testable import Curlew

/// The order in which new connections use the addresses of a name.
@Suite("Scenarios: AddressOrder", .timeLimit(.minutes(5)))
struct AddressOrderTests {
    private static let addresses = ["127.0.0.1", "127.0.0.2", "127.0.0.3"]

    /// Returns three servers with the same port, at the three addresses of a name.
    private func servers(_ response: MockResponse) throws -> [MockServer] {
        // A port that is free on one address may be taken on another.
        for _ in 0..<20 {
            if let servers = try? serversOfOnePort(response) { return servers }
        }
        return try serversOfOnePort(response)
    }

    private func serversOfOnePort(_ response: MockResponse) throws -> [MockServer] {
        let first = try MockServer(address: .v4Host(1)) { _ in response }
        var options = MockServer.Options()
        options.port = first.port
        return try [first] + [2, 3].map { try MockServer(address: .v4Host($0), options: options) { _ in response } }
    }

    private func session(_ order: Session.Configuration.TCP.AddressOrder) -> Session {
        Session(
            Session.Configuration { $0.tcp.addressOrder = order },
            resolver: Resolver { _ in .success(.init(AddressOrderTests.addresses)) })
    }

    /// Sends requests and returns the number of requests for each address.
    private func spread(_ session: Session, _ servers: [MockServer], _ count: Int) async throws -> [String: Int] {
        var spread: [String: Int] = [:]
        for _ in 0..<count {
            let request = Request("http://service.example:\(servers[0].port)/")
            let address = try await session.transfer(request).response().metrics.remoteAddress
            spread[String(address.prefix { $0 != ":" }), default: 0] += 1
        }
        return spread
    }

    @Test func asResolvedUsesTheFirstAddress() async throws {
        let servers = try servers(.text("x").closing())
        #expect(try await spread(session(.asResolved), servers, 6) == ["127.0.0.1": 6])
        #expect(servers.map(\.connectionCount) == [6, 0, 0])
    }

    @Test func roundRobinSpreadsConnectionsEvenly() async throws {
        let servers = try servers(.text("x").closing())
        let session = session(.roundRobin)
        #expect(try await spread(session, servers, 30) == ["127.0.0.1": 10, "127.0.0.2": 10, "127.0.0.3": 10])
        #expect(servers.map(\.connectionCount) == [10, 10, 10])
    }

    /// Round robin holds for connections that are opened concurrently.
    @Test func roundRobinSpreadsConcurrentConnectionsEvenly() async throws {
        let gate = Gate()
        let servers = try servers(.text("x").fault(.stall(gate), at: .start))
        let session = session(.roundRobin)
        let url = "http://service.example:\(servers[0].port)/"
        let transfers = (0..<30).map { _ in session.transfer(Request(url)).start() }
        await gate.waitUntilReached(times: 30)
        #expect(servers.map(\.connectionCount) == [10, 10, 10])
        gate.open()
        for transfer in transfers { _ = try await transfer.value }
    }

    /// Round robin advances for each connection, not for each request.
    @Test func roundRobinAdvancesOnlyForNewConnections() async throws {
        let servers = try servers(.text("x"))
        let session = session(.roundRobin)
        #expect(try await spread(session, servers, 30).values.sorted() == [30])
        #expect(servers.map(\.connectionCount).sorted() == [0, 0, 1])
    }

    @Test func shuffledUsesAllAddresses() async throws {
        let servers = try servers(.text("x").closing())
        let spread = try await spread(session(.shuffled), servers, 120)
        #expect(spread.count == 3 && spread.values.allSatisfy { $0 >= 12 }, "\(spread)")
    }

    /// In every order, the other addresses are attempted after the first one fails.
    @Test(arguments: Session.Configuration.TCP.AddressOrder.allCases)
    func unreachableAddressesAreSkipped(_ order: Session.Configuration.TCP.AddressOrder) async throws {
        let servers = try servers(.text("x").closing())
        servers[0].stop()
        servers[1].stop()
        #expect(try await spread(session(order), servers, 9) == ["127.0.0.3": 9])
    }
}
