// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import Testing

@testable import CurlewEngine

/// Each order to a transfer in each of its states, as a table.
@Suite("Orders", .timeLimit(.minutes(5)))
struct OrderTests {
    enum State: String, CaseIterable { case queued, connecting, sending, waiting, receiving, paused, ended }
    enum Order: String, CaseIterable {
        case start, pause, resume, cancel
        /// The last owner of the loop releases it.
        case drop
        case shutDown
    }

    private enum End: Equatable { case success, cancelled, closed, otherwise }

    /// The state that users see after the order, and the end of the transfer.
    private struct Expected: Equatable {
        var state: Lifecycle.State
        var end: End
        /// The phase of the failure.
        var phase: EngineFailure.Phase?
    }

    private static func phase(_ state: State) -> EngineFailure.Phase? {
        switch state {
        case .queued: .queued
        case .connecting: .connecting
        case .sending: .sending
        case .waiting: .waiting
        case .receiving, .paused: .receiving
        case .ended: nil
        }
    }

    private static func expected(_ order: Order, _ state: State) -> Expected {
        if state == .ended { return Expected(state: .finished, end: .success) }
        let stays: Lifecycle.State = state == .queued ? .queued : state == .paused ? .paused : .running
        switch order {
        case .start: return Expected(state: stays, end: .success)
        case .pause: return Expected(state: .paused, end: .success)
        case .resume: return Expected(state: state == .paused ? .running : stays, end: .success)
        case .cancel: return Expected(state: .finished, end: .cancelled, phase: phase(state))
        case .drop where state == .paused, .shutDown:
            return Expected(state: .finished, end: .closed, phase: phase(state))
        case .drop: return Expected(state: stays, end: .success)
        }
    }

    /// A transfer that stalls in a state, with the transfer that occupies the only slot before it.
    private func transfer(in state: State, _ bench: StubBench) async -> (EngineTransfer, EngineTransfer?) {
        let rest: [StubTransport.Step] = [.body(3), .end]
        let long = TransferPlan.Upload.bytes([UInt8](repeating: 1, count: 100_000))
        let transfer =
            switch state {
            case .queued, .ended: bench.transfer([.connect, .head(200), .body(2)] + rest)
            case .connecting: bench.transfer([.stall, .connect, .head(200), .body(2)] + rest)
            case .sending:
                bench.transfer([.connect, .take(1000), .stall, .take(.max), .head(200), .body(2)] + rest, upload: long)
            case .waiting: bench.transfer([.connect, .stall, .head(200), .body(2)] + rest)
            case .receiving, .paused: bench.transfer([.connect, .head(200), .body(2), .stall] + rest)
            }
        var first: EngineTransfer?
        if state == .queued {
            first = bench.transfer([.connect, .stall, .head(200), .end])
            first?.start()
        }
        transfer.start()
        if state == .paused {
            await bench.settle()
            transfer.pause()
        }
        await bench.settle()
        return (transfer, first)
    }

    private func end(of outcome: EngineTransfer.Outcome) -> End {
        switch outcome.failure?.reason {
        case nil: .success
        case .cancelled: .cancelled
        case .closed: .closed
        default: .otherwise
        }
    }

    @Test(arguments: State.allCases, Order.allCases)
    func ordersHaveTheirEffectInEachState(_ state: State, _ order: Order) async throws {
        var bench: StubBench? = StubBench(slots: 1)
        let loop = try #require(bench?.loop)
        let recorder = EventRecorder()
        let (transfer, first) = try await self.transfer(in: state, #require(bench))
        transfer.watch(recorder)
        let expected = Self.expected(order, state)
        switch order {
        case .start: transfer.start()
        case .pause: transfer.pause()
        case .resume: transfer.resume()
        case .cancel: transfer.cancel()
        case .drop: break
        case .shutDown: await loop.shutDown(within: 0)
        }
        if order == .drop {
            bench = nil
            if state == .paused { _ = await transfer.waitForEndUncancelled() }
        }
        await bench?.settle()
        #expect(transfer.snapshot.state == expected.state)
        // The peer continues: only a running transfer continues.
        for transfer in [first, transfer].compactMap({ $0 }) {
            loop.call { ($0 as? StubTransport)?.proceed(transfer) }
        }
        await bench?.settle()
        if expected.state == .paused, expected.end == .success {
            #expect(!transfer.hasFinished, "a paused transfer does not continue")
            transfer.resume()
        }
        let outcome = await transfer.waitForEndUncancelled()
        #expect(end(of: outcome) == expected.end && outcome.failure?.phase == expected.phase)
        if expected.end == .success { #expect(transfer.takeBodyChunk()?.count == 5) }
        if state != .ended {
            let ends = recorder.words(of: transfer).filter { $0.hasPrefix("ended") }
            #expect(ends.count == 1, "\(recorder.words)")
        }
        if let first { _ = await first.waitForEndUncancelled() }
        #expect(await loop.idle())
        #expect(loop.holds.withLock { $0.count } == 0)
    }

    /// A transfer that is not paused finishes although its loop was released, and the thread of the loop ends.
    @Test(arguments: [State.queued, .connecting, .sending, .waiting, .receiving])
    func releasedLoopFinishesTransfers(_ state: State) async throws {
        var bench: StubBench? = StubBench(slots: 1)
        let loop = try #require(bench?.loop)
        let (transfer, first) = try await self.transfer(in: state, #require(bench))
        bench = nil
        for transfer in [first, transfer].compactMap({ $0 }) {
            loop.call { ($0 as? StubTransport)?.proceed(transfer) }
        }
        #expect(await transfer.waitForEndUncancelled().failure == nil)
        await loop.waitUntilExited()
    }

    @Test func closingLoopEndsTransfersAtItsLimit() async throws {
        let bench = StubBench()
        let transfer = bench.transfer([.connect, .stall, .head(200), .end])
        transfer.start()
        await bench.settle()
        let closed = Task { await bench.loop.shutDown(within: 5_000_000_000) }
        while !bench.loop.holds.withLock({ $0.isClosing }) { await bench.settle() }
        await bench.advance(by: 4_999_000_000)
        #expect(!transfer.hasFinished)
        let late = bench.transfer([.connect, .head(200), .end])
        late.start()
        #expect(end(of: await late.waitForEndUncancelled()) == .closed, "a closing loop refuses new transfers")
        await bench.advance(by: 1_000_000)
        #expect(end(of: await transfer.waitForEndUncancelled()) == .closed)
        await closed.value
    }
}
