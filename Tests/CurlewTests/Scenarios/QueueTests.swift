// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting
import FoundationEssentials
import Testing

/// Many concurrent transfers: their IDs, limits and order of admission.
@Suite(.timeLimit(.minutes(5)))
struct QueueTests {
    @Test func concurrentlyCreatedTransfersHaveUniqueIDs() async throws {
        let server = try MockServer()
        let session = Session()
        let request = Request(server.url("/"))
        let names = await withTaskGroup(of: [UInt64].self) { group in
            for _ in 0..<100 { group.addTask { (0..<100).map { _ in session.transfer(request).id } } }
            return await group.reduce(into: [[UInt64]]()) { $0.append($1) }
        }
        #expect(Set(names.joined()).count == 10_000)
        #expect(names.allSatisfy { $0 == $0.sorted() && $0.allSatisfy { $0 > 0 } })
        #expect(server.connectionCount == 0)
        #expect(await session.transfers.isEmpty)
    }

    @Test func threeHundredConcurrentRequestsSucceed() async throws {
        let server = try MockServer { request in .text("answer to \(request.path)") }
        let session = Session()
        let wrong = try await withThrowingTaskGroup(of: Bool.self) { group in
            for number in 0..<300 {
                group.addTask {
                    let (data, head) = try await session.data(for: Request(server.url("/\(number)")))
                    return head.status != .ok || String(decoding: data, as: UTF8.self) != "answer to /\(number)"
                }
            }
            return try await group.reduce(0) { $0 + ($1 ? 1 : 0) }
        }
        #expect(wrong == 0)
        #expect(server.requestCount == 300)
        #expect(server.connectionCount <= 64)
        #expect(server.violations.isEmpty)
        #expect(await session.transfers.isEmpty)
    }

    @Test func transfersPerHostLimitHolds() async throws {
        let server = try MockServer()
        let gates = (0..<8).map { _ in Gate() }
        for (number, gate) in gates.enumerated() {
            server.on("GET", "/\(number)", .text("\(number)").fault(.stall(gate), at: .start))
        }
        let session = Session { $0.limits.transfersPerHost = 3 }
        let transfers = (0..<8).map { session.transfer(Request(server.url("/\($0)"))).start() }
        for number in 0..<3 { await gates[number].waitUntilReached() }
        for number in 0..<8 {
            #expect(server.requestCount == min(number + 3, 8))
            let states = await session.transfers.map(\.state)
            #expect(states.count { $0 == .running } == min(3, 8 - number))
            #expect(states.count { $0 == .queued } == max(0, 5 - number))
            gates[number].open()
            #expect(try await transfers[number].value == Data("\(number)".utf8))
            if number + 3 < 8 { await gates[number + 3].waitUntilReached() }
        }
        #expect(server.connectionCount <= 3)
    }

    @Test func connectionsPerHostLimitHolds() async throws {
        let gate = Gate()
        let server = try MockServer { _ in .text("x").fault(.stall(gate), at: .start) }
        let session = Session { $0.limits.connectionsPerHost = 2 }
        let transfers = (0..<6).map { _ in session.transfer(Request(server.url("/"))).start() }
        await gate.waitUntilReached(times: 2)
        _ = await session.transfers
        #expect(server.connectionCount == 2)
        gate.open()
        for transfer in transfers { _ = try await transfer.value }
        #expect(server.connectionCount == 2)
    }

    @Test func transfersPerHostLimitIsPerHost() async throws {
        let gate = Gate()
        let slow = try MockServer { _ in .text("slow").fault(.stall(gate), at: .start) }
        let quick = try MockServer { _ in .text("quick") }
        let session = Session { $0.limits.transfersPerHost = 1 }
        let held = session.transfer(Request(slow.url("/"))).start()
        await gate.waitUntilReached()
        #expect(try await session.data(for: Request(quick.url("/"))).0 == Data("quick".utf8))
        gate.open()
        #expect(try await held.value == Data("slow".utf8))
    }

    @Test func queuedTransfersStartByPriority() async throws {
        let gate = Gate()
        let server = try MockServer { request in .text(request.path) }
        server.on("GET", "/first", .text("first").fault(.stall(gate), at: .start))
        let session = Session { $0.limits.transfersPerHost = 1 }
        var transfers = [session.transfer(Request(server.url("/first"))).start()]
        await gate.waitUntilReached()
        let queued: [(String, Request.Priority)] = [
            ("/low", .low), ("/normal-1", .normal), ("/raised", .low), ("/high", .high), ("/normal-2", .normal),
            ("/lowered", .high), ("/custom", Request.Priority(rawValue: 50)),
        ]
        for (path, priority) in queued {
            let options = Request.Options(priority: priority)
            transfers.append(session.transfer(Request(server.url(path), options: options)).start())
        }
        transfers[3].priority = Request.Priority(rawValue: 1000)
        transfers[6].priority = Request.Priority(rawValue: -1000)
        #expect(transfers[3].priority.rawValue == 1000)
        #expect(await session.transfers.count == 8)
        gate.open()
        for transfer in transfers { _ = try await transfer.value }
        #expect(
            server.requests.map(\.path) == [
                "/first", "/raised", "/high", "/custom", "/normal-1", "/normal-2", "/low", "/lowered",
            ])
    }

    @Test func cancelledTransferFreesItsSlot() async throws {
        let gate = Gate()
        let server = try MockServer { request in .text(request.path) }
        server.on("GET", "/held", .text("held").fault(.stall(gate), at: .start))
        let session = Session { $0.limits.transfersPerHost = 1 }
        let held = session.transfer(Request(server.url("/held"))).start()
        await gate.waitUntilReached()
        let second = session.transfer(Request(server.url("/second"))).start()
        let third = session.transfer(Request(server.url("/third"))).start()
        second.cancel()
        #expect(try await networkError { try await second.value }.phase == .queued)
        held.cancel()
        #expect(try await third.value == Data("/third".utf8))
        #expect(server.requests.map(\.path) == ["/held", "/third"])
    }
}
