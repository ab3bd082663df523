// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import CurlewTesting
import Testing

@testable import CurlewEngine

/// Ends that the chain must see, which hold the loop, and ends that are final.
@Suite("Final ends", .timeLimit(.minutes(5)))
struct FinalEndTests {
    @Test(arguments: [
        ("/status", false), ("/field", false), ("/failed", false), ("/plain", true),
    ])
    func responseOfInterestHoldsTheLoop(path: String, isFinal: Bool) async throws {
        let bench = try EngineBench()
        bench.server.on("GET", "/status", .text("later", status: 503))
        bench.server.on("GET", "/field", .status(200, [(name: "Content-Encoding", value: "gzip")], body: [1, 2, 3]))
        bench.server.on("GET", "/failed", .text("later", status: 503).fault(.close, at: .body(2)))
        bench.server.on("GET", "/plain", .text("hello"))
        let interest = ChainInterest(statuses: [503], fields: .contentEncoding)
        let transfer = bench.transfer(path) { $0.interest = interest }
        transfer.start()
        let outcome = await transfer.waitForEndUncancelled()
        #expect((outcome.failure != nil) == (path == "/failed"))
        #expect(outcome.isFinal == isFinal)
        #expect(outcome.endsTransfer == isFinal)
        #expect(bench.share.loop.holds.withLock { $0.count } == (isFinal ? 0 : 1))
        #expect((transfer.takeHold() == nil) == isFinal)
        #expect(bench.share.loop.holds.withLock { $0.count } == 0)
    }

    @Test(arguments: [false, true], [false, true])
    func failureOfInterestHoldsTheLoop(isOfInterest: Bool, isStreamed: Bool) async throws {
        let bench = try EngineBench()
        let port = try #require(ClosedPort())
        let transfer = bench.transfer("/") { plan in
            plan.lead(to: "http://127.0.0.1:\(port.number)/", port: port.number)
            plan.interest = ChainInterest(failures: isOfInterest)
        }
        if isStreamed { transfer.claimStream() }
        transfer.start()
        let outcome = await transfer.waitForEndUncancelled()
        #expect(outcome.failure != nil)
        #expect(outcome.isFinal == !isOfInterest)
        #expect(outcome.endsTransfer == !isOfInterest)
        #expect((transfer.takeHold() != nil) == isOfInterest)
        #expect(bench.share.loop.holds.withLock { $0.count } == 0)
        withExtendedLifetime(port) {}
    }

    /// The reader of a stream has received a part of the body, which no other attempt can replace.
    @Test(
        arguments: [(false, [], false), (true, [], true), (true, [200], false)] as [(Bool, [Int], Bool)])
    func failureAfterADeliveredFinalHeadIsFinal(isStreamed: Bool, statuses: [Int], isFinal: Bool) async throws {
        let bench = try EngineBench()
        bench.server.on("GET", "/", .text("hello").fault(.close, at: .body(2)))
        let transfer = bench.transfer("/") { $0.interest = ChainInterest(statuses: statuses, failures: true) }
        if isStreamed { transfer.claimStream() }
        transfer.start()
        let outcome = await transfer.waitForEndUncancelled()
        #expect(outcome.failure != nil)
        #expect(outcome.isFinal == isFinal)
        #expect((transfer.takeHold() == nil) == isFinal)
    }

    @Test(arguments: [false, true]) func endThatTheCallerRequestedHoldsNothing(_ closesTheLoop: Bool) async throws {
        let bench = try EngineBench()
        let loop = bench.share.loop
        let gate = Gate()
        bench.server.on("GET", "/", .text("later", status: 503).fault(.stall(gate), at: .body(2)))
        let transfer = bench.transfer("/") { $0.interest = ChainInterest(statuses: [503], failures: true) }
        transfer.start()
        #expect(await transfer.waitForEnd(orHead: true) == nil)
        #expect(loop.holds.withLock { $0.count } == 1)
        if closesTheLoop { await loop.shutDown(within: 0) } else { transfer.cancel() }
        let outcome = await transfer.waitForEndUncancelled()
        #expect(outcome.failure?.isRequested == true)
        #expect(outcome.isFinal && outcome.endsTransfer)
        #expect(transfer.takeHold() == nil)
        // The hold is released in the turn that makes the outcome visible.
        await loop.round()
        #expect(loop.holds.withLock { $0.count } == 0)
        gate.open()
    }
}
