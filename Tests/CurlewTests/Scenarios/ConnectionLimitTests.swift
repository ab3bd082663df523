// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import Curlew
import CurlewEngine
import CurlewTesting
import FoundationEssentials
import Testing

/// Limits of the whole session: across hosts, trust domains, and idle and busy connections.
@Suite(.timeLimit(.minutes(5)))
struct ConnectionLimitTests {
    private func stallingServers(_ count: Int) throws -> (servers: [MockServer], gate: Gate) {
        let gate = Gate()
        let servers = try (0..<count).map { _ in
            try MockServer { _ in .text("x").fault(.stall(gate), at: .start) }
        }
        return (servers, gate)
    }

    @Test func totalConnectionLimitHoldsAcrossHosts() async throws {
        let (servers, gate) = try stallingServers(4)
        let session = Session { $0.limits.connections = 5 }
        let transfers = (0..<20).map { session.transfer(Request(servers[$0 % 4].url("/"))).start() }
        await gate.waitUntilReached(times: 5)
        let states = await session.transfers.map(\.state)
        #expect(states.count { $0 == .running } == 5 && states.count { $0 == .queued } == 15)
        #expect(servers.reduce(0) { $0 + $1.connectionCount } == 5)
        gate.open()
        for transfer in transfers { #expect(try await transfer.value == Data("x".utf8)) }
        #expect(servers.allSatisfy { $0.requestCount == 5 })
    }

    @Test func queuedTransfersOfAllHostsStartByPriorityAndAge() async throws {
        let gate = Gate()
        let order = MockServer.OrderLog()
        let holding = try MockServer { _ in .text("x").fault(.stall(gate), at: .start) }
        let servers = try (0..<3).map { _ in
            try MockServer { request in
                order.append(request.path)
                return .text("x")
            }
        }
        let session = Session { $0.limits.connections = 1 }
        let held = session.transfer(Request(holding.url("/"))).start()
        await gate.waitUntilReached()
        let wishes: [(path: String, server: Int, priority: Request.Priority)] = [
            ("/1", 0, .normal), ("/2", 1, .normal), ("/low", 2, .low), ("/3", 0, .normal), ("/high", 1, .high),
            ("/4", 2, .normal),
        ]
        let transfers = wishes.map { wish in
            session.transfer(
                Request(servers[wish.server].url(wish.path), options: Request.Options(priority: wish.priority))
            ).start()
        }
        #expect(await session.transfers.count == 7)
        gate.open()
        _ = try await held.value
        for transfer in transfers { _ = try await transfer.value }
        #expect(order.entries == ["/high", "/1", "/2", "/3", "/4", "/low"])
    }

    @Test func connectionsPerHostLimitHoldsAcrossTrustDomains() async throws {
        let (servers, gate) = try stallingServers(1)
        let session = Session { $0.limits.connectionsPerHost = 3 }
        let transfers = (0..<9).map { number in
            var request = Request(servers[0].url("/"))
            request.trust = InsecureTrust(reason: "domain \(number % 3)")
            return session.transfer(request).start()
        }
        await gate.waitUntilReached(times: 3)
        #expect(await session.transfers.count { $0.state == .running } == 3)
        #expect(servers[0].connectionCount == 3)
        gate.open()
        for transfer in transfers { _ = try await transfer.value }
    }

    @Test func idleConnectionsOfOtherDomainsAreEvicted() async throws {
        let server = try MockServer { _ in .text("x") }
        let others = try MockServer { _ in .text("x") }
        let session = Session {
            $0.limits.connectionsPerHost = 2
            $0.limits.connections = 3
        }
        for number in 0..<6 {
            for url in [server.url("/"), others.url("/")] {
                var request = Request(url)
                request.trust = InsecureTrust(reason: "domain \(number)")
                _ = try await session.data(for: request)
            }
            _ = await session.transfers
            await server.waitUntil(openConnectionsAtMost: 2)
        }
        await others.waitUntil(openConnectionsAtMost: 3 - server.openConnections)
        #expect(server.openConnections + others.openConnections <= 3)
        #expect(server.connectionCount == 6)
    }

    @Test func queueTimeoutErrorNamesTheHostLimit() async throws {
        let (servers, gate) = try stallingServers(1)
        let session = Session { $0.limits.connectionsPerHost = 2 }
        let export = Request(servers[0].url("/"), options: Request.Options(label: "export"))
        var holders = [session.transfer(export).start()]
        await gate.waitUntilReached()
        holders.append(session.transfer(Request(servers[0].url("/"))).start())
        await gate.waitUntilReached(times: 2)
        let waiting = session.transfer(Request(servers[0].url("/"))).start()
        let request = Request(
            servers[0].url("/"), options: Request.Options(timeouts: Timeouts(queue: .milliseconds(100))))
        let error = try await networkError { try await session.data(for: request) }
        #expect(error.kind == .timedOut && error.phase == .queued)
        for fact in ["timeouts.queue", "2 of 2 slots at 127.0.0.1", "2 transfers wait", "“export”"] {
            #expect(error.message.contains(fact), "\(error)")
        }
        #expect(error.hint?.contains("limits.connectionsPerHost") == true)
        #expect(error.retriability == .safe(after: nil))
        gate.open()
        for transfer in holders + [waiting] { _ = try await transfer.value }
    }

    @Test func queueTimeoutErrorNamesTheTotalLimit() async throws {
        let (servers, gate) = try stallingServers(2)
        let session = Session { $0.limits.connections = 1 }
        let holder = session.transfer(Request(servers[0].url("/"))).start()
        await gate.waitUntilReached()
        let request = Request(
            servers[1].url("/"), options: Request.Options(timeouts: Timeouts(queue: .milliseconds(100))))
        let error = try await networkError { try await session.data(for: request) }
        #expect(error.message.contains("0 of 64 slots") && error.message.contains("1 of 1 connections are in use"))
        gate.open()
        _ = try await holder.value
    }

    @Test func pausedTransferHasNoQueueTimeout() async throws {
        let server = try MockServer { _ in .text("x") }
        let (servers, gate) = try stallingServers(1)
        let session = Session {
            $0.limits.connectionsPerHost = 1
            $0.timeouts.queue = .seconds(1)
        }
        let holder = session.transfer(Request(servers[0].url("/"))).start()
        await gate.waitUntilReached()
        let transfer = session.transfer(Request(server.url("/")))
        transfer.pause()
        transfer.start()
        // The queue timeout of a transfer that was queued later and is not paused shows that the time has passed.
        let error = try await networkError { try await session.data(for: Request(servers[0].url("/"))) }
        #expect(error.kind == .timedOut && error.phase == .queued)
        #expect(transfer.state == .paused)
        transfer.resume()
        #expect(try await transfer.value == Data("x".utf8))
        gate.open()
        _ = try await holder.value
    }

    /// Pausing and resuming a queued transfer repeatedly leaves no state behind and does not affect other transfers.
    @Test func repeatedPauseInTheQueueDoesNotAffectOthers() async throws {
        let (servers, gate) = try stallingServers(1)
        let session = Session { $0.limits.connectionsPerHost = 1 }
        let holder = session.transfer(Request(servers[0].url("/"))).start()
        await gate.waitUntilReached()
        let restless = session.transfer(Request(servers[0].url("/restless"))).start()
        let patient = session.transfer(Request(servers[0].url("/patient"))).start()
        for _ in 0..<200 {
            restless.pause()
            #expect(await session.transfers.map(\.state) == [.running, .paused, .queued])
            restless.resume()
            #expect(await session.transfers.map(\.state) == [.running, .queued, .queued])
        }
        restless.pause()
        gate.open()
        for transfer in [holder, patient] { _ = try await transfer.value }
        #expect(restless.state == .paused)
        restless.resume()
        _ = try await restless.value
        #expect(servers[0].requests.map(\.path) == ["/", "/patient", "/restless"])
    }

    @Test func ownConnectionIsNotShared() async throws {
        let server = try MockServer { .text("\($0.connection)") }
        let session = Session()
        #expect(try await session.data(for: Request(server.url("/"))).0 == Data("1".utf8))
        let own = Request(server.url("/"), options: Request.Options(connection: .own))
        #expect(try await session.data(for: own).0 == Data("2".utf8))
        #expect(try await session.data(for: Request(server.url("/"))).0 == Data("1".utf8))
        await server.waitUntil(openConnections: 1)
    }
}

extension MockServer {
    /// The requests of several servers in the order of arrival.
    final class OrderLog: Sendable {
        private let log = Lock<[String]>([])
        func append(_ entry: String) { log.withLock { $0.append(entry) } }
        var entries: [String] { log.withLock { $0 } }
    }

    /// Waits until at most `count` connections are open.
    fileprivate func waitUntil(openConnectionsAtMost count: Int) async {
        while openConnections > count, !Task.isCancelled { await Task.yield() }
    }
}
