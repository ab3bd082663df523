// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting
import FoundationEssentials
import Testing

/// Every typed entry point and sequence throws an error on cancellation, while the server is still stalled.
@Suite(.timeLimit(.minutes(5)))
struct CancellationTests {
    /// A server that never finishes its response, because its gate stays closed.
    private struct Silence {
        let gate = Gate()
        let server: MockServer
        let session = Session()

        init(at point: MockResponse.Point = .start) throws {
            server = try MockServer { [gate] _ in
                .pattern(PatternBody(seed: 1, length: 200_000)).fault(.stall(gate), at: point)
            }
        }

        var transfer: Transfer<Data> { session.transfer(Request(server.url("/"))) }
    }

    /// Runs an entry point in a task, cancels the task once the server is reached, and checks the error.
    private func expectCancellation(
        _ silence: Silence, phase: NetworkError.Phase = .waiting, _ location: SourceLocation = #_sourceLocation,
        of entry: @escaping @Sendable () async throws -> Void
    ) async throws {
        let task = Task { try await entry() }
        await silence.gate.waitUntilReached()
        task.cancel()
        let error = try await networkError(location) { try await task.value }
        #expect(error.kind == .cancelled && error.isCancellation, sourceLocation: location)
        #expect(error.phase == phase, sourceLocation: location)
        #expect(error.retriability == .never && error.exitCode == 75, sourceLocation: location)
        #expect(!silence.gate.isOpen, sourceLocation: location)
        await silence.server.waitUntil(openConnections: 0)
        #expect(await silence.session.transfers.isEmpty, sourceLocation: location)
    }

    // MARK: The task is cancelled

    @Test func dataThrowsCancelled() async throws {
        let silence = try Silence()
        try await expectCancellation(silence) {
            _ = try await silence.session.data(for: Request(silence.server.url("/")))
        }
    }

    @Test func valueThrowsCancelled() async throws {
        let silence = try Silence()
        try await expectCancellation(silence) { [transfer = silence.transfer] in _ = try await transfer.value }
    }

    @Test func responseThrowsCancelled() async throws {
        let silence = try Silence()
        try await expectCancellation(silence) { [transfer = silence.transfer] in _ = try await transfer.response() }
    }

    @Test func bytesThrowCancelledBeforeTheHead() async throws {
        let silence = try Silence()
        try await expectCancellation(silence) { [transfer = silence.transfer] in for try await _ in transfer.bytes {} }
    }

    @Test func bytesThrowCancelledInTheBody() async throws {
        let silence = try Silence(at: .body(70_000))
        try await expectCancellation(silence, phase: .receiving) { [transfer = silence.transfer] in
            for try await _ in transfer.bytes {}
        }
    }

    @Test func streamThrowsCancelledInsideNext() async throws {
        let silence = try Silence()
        try await expectCancellation(silence) { [transfer = silence.transfer] in
            var reader = transfer.stream.makeAsyncIterator()
            while try await reader.next() != nil {}
        }
    }

    @Test func bytesThrowCancelledBetweenElements() async throws {
        let silence = try Silence(at: .body(70_000))
        let proceed = Gate()
        let transfer = silence.transfer
        let task = Task {
            for try await _ in transfer.bytes { await proceed.wait() }
        }
        await silence.gate.waitUntilReached()
        task.cancel()
        let error = try await networkError { try await task.value }
        #expect(error.kind == .cancelled && error.phase == .receiving)
        await silence.server.waitUntil(openConnections: 0)
    }

    @Test func streamEndsBetweenElementsAndValueThrowsCancelled() async throws {
        let silence = try Silence(at: .body(70_000))
        let proceed = Gate()
        let transfer = silence.transfer
        let task = Task {
            for try await element in transfer.stream { if case .bytes = element { await proceed.wait() } }
        }
        await silence.gate.waitUntilReached()
        task.cancel()
        _ = await task.result
        await silence.server.waitUntil(openConnections: 0)
        await transfer.waitUntilFinished()
        #expect(try await networkError { try await transfer.value }.kind == .cancelled)
    }

    // MARK: The transfer is cancelled

    @Test func cancelledTransferThrowsForAllWaiters() async throws {
        let silence = try Silence()
        let transfer = silence.transfer
        let waiters = [
            Task { _ = try await transfer.value }, Task { _ = try await transfer.response() },
            Task { _ = try await transfer.value },
        ]
        let observer = Task { await transfer.progress.reduce(0) { count, _ in count + 1 } }
        await silence.gate.waitUntilReached()
        transfer.cancel()
        for waiter in waiters {
            let error = try await networkError { try await waiter.value }
            #expect(error.isCancellation && error.phase == .waiting)
        }
        #expect(await observer.value >= 1)
        await silence.server.waitUntil(openConnections: 0)
        #expect(transfer.state == .finished)
    }

    @Test func cancelledTransferThrowsForReaders() async throws {
        for withProgress in [false, true] {
            let silence = try Silence(at: .body(70_000))
            let transfer = silence.transfer
            let reader = Task {
                if withProgress { for try await _ in transfer.stream {} } else { for try await _ in transfer.bytes {} }
            }
            await silence.gate.waitUntilReached()
            await silence.session.waitUntil(transfer, has: 70_000, \.received)
            transfer.cancel()
            let error = try await networkError { try await reader.value }
            #expect(error.isCancellation && error.phase == .receiving)
            #expect(error.response?.status == .ok)
            await silence.server.waitUntil(openConnections: 0)
        }
    }

    @Test func unreadBytesAreDroppedByCancellation() async throws {
        let silence = try Silence(at: .body(70_000))
        let transfer = silence.transfer
        var reader = transfer.stream.makeAsyncIterator()
        while let element = try await reader.next() { if case .head = element { break } }
        await silence.gate.waitUntilReached()
        await silence.session.waitUntil(transfer, has: 70_000, \.received)
        transfer.cancel()
        await transfer.waitUntilFinished()
        // The loop may not have taken the order yet.
        try await silence.session.idle()
        var next: TransferElement?
        let error = try await networkError { next = try await reader.next() }
        #expect(error.isCancellation && error.phase == .receiving)
        #expect(next == nil)
    }

    @Test func cancellingAFinishedTransferChangesNothing() async throws {
        let server = try MockServer { _ in .text("done") }
        let transfer = Session().transfer(Request(server.url("/")))
        _ = try await transfer.value
        transfer.cancel()
        transfer.cancel()
        #expect(try await transfer.value == Data("done".utf8))
        let task = Task { [transfer] in try await transfer.value }
        task.cancel()
        #expect(try await task.value == Data("done".utf8))
    }

    @Test func transferCancelledBeforeStartSendsNothing() async throws {
        let server = try MockServer { _ in .text("x") }
        let session = Session()
        let transfer = session.transfer(Request(server.url("/")))
        transfer.cancel()
        #expect(transfer.state == .finished)
        transfer.start()
        let error = try await networkError { try await transfer.value }
        #expect(error.isCancellation && error.phase == .preparing)
        for withProgress in [false, true] {
            let other = session.transfer(Request(server.url("/")))
            other.cancel()
            let error = try await networkError {
                if withProgress { for try await _ in other.stream {} } else { for try await _ in other.bytes {} }
            }
            #expect(error.isCancellation && error.phase == .preparing)
        }
        #expect(await session.transfers.isEmpty)
        #expect(server.connectionCount == 0)
    }

    // MARK: Several waiters

    @Test func cancellingOneOfTwoWaitersKeepsTransferRunning() async throws {
        let silence = try Silence()
        let transfer = silence.transfer
        async let staying = transfer.value
        await silence.gate.waitUntilReached()
        let goes = Task { try await transfer.value }
        goes.cancel()
        #expect(try await networkError { try await goes.value }.isCancellation)
        #expect(transfer.state == .running)
        silence.gate.open()
        #expect(try await staying.count == 200_000)
    }

    @Test func startedTransferContinuesAfterWaiterIsCancelled() async throws {
        let silence = try Silence()
        let transfer = silence.transfer.start()
        let task = Task { try await transfer.value }
        await silence.gate.waitUntilReached()
        task.cancel()
        #expect(try await networkError { try await task.value }.isCancellation)
        #expect(transfer.state == .running)
        silence.gate.open()
        #expect(try await transfer.value.count == 200_000)
    }
}
