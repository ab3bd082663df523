// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewTesting
import Testing

@testable import CurlewEngine

/// Concurrent transfers are distributed over several multi handles (domains) and reuse their connections.
@Suite("Domains", .timeLimit(.minutes(5)))
struct DomainTests {
    private func bench(places: Int = 200) throws -> EngineBench {
        var configuration = EngineConfiguration()
        configuration.connectionsPerHost = places
        configuration.transfersPerHost = places
        return try EngineBench(configuration)
    }

    /// Returns the number of active transfers of each domain.
    private func population(of bench: EngineBench) async -> [Int] {
        let found = Latch<[Int]>()
        bench.share.loop.call { transport in
            found.set((transport as? CurlTransport)?.domains.compactMap { $0?.active } ?? [])
        }
        return await found.value
    }

    /// Runs `count` transfers at once and returns their number in each domain while all of them waited.
    private func run(_ count: Int, on bench: EngineBench) async throws -> [Int] {
        let gate = Gate()
        bench.server.on("GET", "/", .text("hello").fault(.stall(gate), at: .start))
        let transfers = (0..<count).map { _ in bench.transfer("/") }
        for transfer in transfers { transfer.start() }
        #expect(await gate.waitUntilReached(times: count))
        let population = await population(of: bench)
        gate.open()
        for transfer in transfers {
            let outcome = await transfer.waitForEndUncancelled()
            #expect(outcome.failure == nil)
            #expect(transfer.takeBodyChunk()?.count == 5)
        }
        return population
    }

    @Test func transfersAreSpreadOverDomainsAndReuseConnections() async throws {
        let bench = try bench()
        let most = CurlTransport.transfersPerDomain
        #expect(try await run(1, on: bench) == [1])
        #expect(try await run(2 * most + 3, on: bench) == [most, most, 3])
        #expect(bench.server.connectionCount == 2 * most + 3)
        for count in [2 * most + 3, 1, most + 1, 2 * most + 3] {
            let population = try await run(count, on: bench)
            #expect(population.reduce(0, +) == count)
            #expect(population.count == 3)
            #expect(population.allSatisfy { $0 <= most })
        }
        #expect(bench.server.connectionCount == 2 * most + 3, "every transfer reused an open connection")
    }

    @Test func domainsAreLimited() async throws {
        let most = CurlTransport.transfersPerDomain * CurlTransport.domainsPerTrust
        let bench = try bench(places: most + 20)
        let population = try await run(most + 20, on: bench)
        #expect(population.count == CurlTransport.domainsPerTrust)
        #expect(population.reduce(0, +) == most + 20)
        #expect(population.allSatisfy { abs($0 - CurlTransport.transfersPerDomain) <= 2 })
    }

    @Test func resetClosesAllDomains() async throws {
        let bench = try bench()
        let most = CurlTransport.transfersPerDomain
        _ = try await run(most + 1, on: bench)
        bench.share.loop.call { $0.resetConnections() }
        #expect(await population(of: bench) == [])
        #expect(try await run(1, on: bench) == [1])
        #expect(bench.server.connectionCount == most + 2)
    }
}
