// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting
import FoundationEssentials
import Testing

/// `progress`: any number of observers; each gets only the newest value, and always the last one.
@Suite(.timeLimit(.minutes(5)))
struct ProgressTests {
    private func all(_ transfer: Transfer<Data>) async -> [TransferProgress] {
        await transfer.progress.reduce(into: []) { $0.append($1) }
    }

    @Test func progressObserverDoesNotBlockALargeBody() async throws {
        let large = PatternBody(seed: 1, length: 20 << 20)
        let server = try MockServer { _ in .pattern(large) }
        let transfer = Session().transfer(Request(server.url("/")))
        let values = await all(transfer)
        #expect(try await transfer.value.sha256 == large.sha256)
        let last = try #require(values.last)
        #expect(last.isFinished && last.received == 20 << 20 && last.expectedToReceive == 20 << 20)
        #expect(values.count { $0.isFinished } == 1)
        #expect(values.map(\.received) == values.map(\.received).sorted())
        #expect(values.map(\.elapsed) == values.map(\.elapsed).sorted())
    }

    @Test func everyObserverReceivesTheLastProgress() async throws {
        let gate = Gate()
        let server = try MockServer { _ in
            .pattern(PatternBody(seed: 1, length: 500_000)).fault(.stall(gate), at: .body(1000))
        }
        let transfer = Session().transfer(Request(server.url("/")))
        let observers = (0..<5).map { _ in Task { await all(transfer).last } }
        await gate.waitUntilReached()
        gate.open()
        for observer in observers {
            let last = await observer.value
            #expect(last?.isFinished == true && last?.received == 500_000 && last?.fraction == 1)
        }
    }

    @Test func lateObserverReceivesOnlyTheLastProgress() async throws {
        let server = try MockServer { _ in .text("hello") }
        let transfer = Session().transfer(Request(server.url("/")))
        _ = try await transfer.value
        for _ in 0..<2 {
            let values = await all(transfer)
            #expect(values.count == 1)
            #expect(values.first?.isFinished == true && values.first?.received == 5)
        }
        #expect(transfer.currentProgress.isFinished && transfer.currentProgress.received == 5)
    }

    @Test func failedTransferEndsProgressUnfinished() async throws {
        let server = try MockServer { _ in
            .pattern(PatternBody(seed: 1, length: 500_000)).fault(.cut, at: .body(70_000))
        }
        let transfer = Session().transfer(Request(server.url("/")))
        for _ in 0..<2 {
            let last = try #require(await all(transfer).last)
            #expect(!last.isFinished && last.received == 70_000 && last.expectedToReceive == 500_000)
            #expect(try #require(last.fraction) < 1)
        }
        #expect(try await networkError { try await transfer.value }.kind == .connectionLost)
    }

    @Test func cancelledTransferEndsProgressUnfinished() async throws {
        let gate = Gate()
        let server = try MockServer { _ in .text("x").fault(.stall(gate), at: .start) }
        let transfer = Session().transfer(Request(server.url("/")))
        let observer = Task { await all(transfer) }
        await gate.waitUntilReached()
        transfer.cancel()
        let last = try #require(await observer.value.last)
        #expect(!last.isFinished && last.received == 0)
        #expect(await all(transfer).count == 1)
    }

    @Test func slowObserverSkipsToTheLastProgress() async throws {
        let gate = Gate()
        let server = try MockServer { _ in
            .pattern(PatternBody(seed: 1, length: 2 << 20)).fault(.stall(gate), at: .body(1000))
        }
        let transfer = Session().transfer(Request(server.url("/")))
        var values: [TransferProgress] = []
        for await progress in transfer.progress {
            values.append(progress)
            if values.count == 1 {
                gate.open()
                _ = try await transfer.value
            }
        }
        #expect(values.count == 2)
        #expect(values.last?.isFinished == true && values.last?.received == 2 << 20)
    }

    @Test func cancelledObserverDoesNotCancelTheTransfer() async throws {
        let gate = Gate()
        let server = try MockServer { _ in .text("x").fault(.stall(gate), at: .start) }
        let transfer = Session().transfer(Request(server.url("/")))
        let observer = Task { await all(transfer) }
        await gate.waitUntilReached()
        observer.cancel()
        #expect(await observer.value.allSatisfy { !$0.isFinished })
        gate.open()
        #expect(try await transfer.value == Data("x".utf8))
    }

    @Test func unknownLengthsHaveNoFractionUntilTheEnd() async throws {
        let gate = Gate()
        let server = try MockServer { _ in
            .pattern(PatternBody(seed: 1, length: 100_000)).chunked().fault(.stall(gate), at: .body(50_000))
        }
        let session = Session()
        let transfer = session.transfer(Request(server.url("/"))).start()
        await gate.waitUntilReached()
        await session.waitUntil(transfer, has: 50_000, \.received)
        #expect(transfer.currentProgress.fraction == nil && transfer.currentProgress.expectedToReceive == nil)
        gate.open()
        _ = try await transfer.value
        #expect(transfer.currentProgress.fraction == 1)
    }
}
