// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting
import FoundationEssentials
import Testing

/// References that keep a transfer alive: the transfer, its streams, or its session once it was started.
@Suite(.timeLimit(.minutes(5)))
struct OwnershipTests {
    /// Returns a server whose responses stall in the middle of the body.
    private func stallingServer(_ gate: Gate) throws -> MockServer {
        try MockServer { _ in .pattern(PatternBody(seed: 2, length: 1 << 20)).fault(.stall(gate), at: .body(70_000)) }
    }

    @Test func breakingOutOfStreamCancelsTransfer() async throws {
        let gate = Gate()
        let server = try stallingServer(gate)
        let transfer = Session().transfer(Request(server.url("/")))
        for try await element in transfer.stream { if case .bytes = element { break } }
        await server.waitUntil(openConnections: 0)
        await transfer.waitUntilFinished()
        #expect(try await networkError { try await transfer.value }.kind == .cancelled)
        #expect(!gate.isOpen)
    }

    @Test func breakingOutOfBytesCancelsTransfer() async throws {
        let gate = Gate()
        let server = try stallingServer(gate)
        let transfer = Session().transfer(Request(server.url("/")))
        for try await _ in transfer.bytes { break }
        await server.waitUntil(openConnections: 0)
        await transfer.waitUntilFinished()
        #expect(try await networkError { try await transfer.value }.kind == .cancelled)
    }

    @Test func breakingOutOfBytesCancelsStartedTransfer() async throws {
        let server = try stallingServer(Gate())
        let transfer = Session().transfer(Request(server.url("/"))).start()
        for try await _ in transfer.bytes { break }
        await server.waitUntil(openConnections: 0)
    }

    @Test func releasingTheReaderCancelsTransfer() async throws {
        let server = try stallingServer(Gate())
        let session = Session()
        func readOnce() async throws {
            var reader = session.transfer(Request(server.url("/"))).bytes.makeAsyncIterator()
            #expect(try await reader.next() != nil)
        }
        try await readOnce()
        await server.waitUntil(openConnections: 0)
        #expect(await session.transfers.isEmpty)
    }

    @Test func readerKeepsTransferAlive() async throws {
        let gate = Gate()
        let server = try stallingServer(gate)
        var reader = Session().transfer(Request(server.url("/"))).stream.makeAsyncIterator()
        var count = 0
        while let element = try await reader.next() {
            if case .bytes(let chunk) = element { count += chunk.count }
            gate.open()
        }
        #expect(count == 1 << 20)
    }

    @Test func progressSequenceKeepsTransferAlive() async throws {
        let server = try MockServer { _ in .pattern(PatternBody(seed: 2, length: 1 << 20)) }
        var last: TransferProgress?
        for await progress in Session().transfer(Request(server.url("/"))).progress { last = progress }
        #expect(last?.isFinished == true && last?.received == 1 << 20)
    }

    @Test func releasingTheProgressObserverCancelsTransfer() async throws {
        let server = try stallingServer(Gate())
        let session = Session()
        func watchOnce() async {
            for await progress in session.transfer(Request(server.url("/"))).progress where progress.received > 0 {
                break
            }
        }
        await watchOnce()
        await server.waitUntil(openConnections: 0)
        #expect(await session.transfers.isEmpty)
    }

    @Test func leavingProgressDoesNotCancelReferencedTransfer() async throws {
        let gate = Gate()
        let server = try stallingServer(gate)
        let transfer = Session().transfer(Request(server.url("/")))
        for await progress in transfer.progress where progress.received > 0 { break }
        #expect(transfer.state == .running)
        gate.open()
        #expect(try await transfer.value.count == 1 << 20)
    }

    @Test func unusedTransferOpensNoConnection() async throws {
        let server = try MockServer { _ in .text("x") }
        let session = Session()
        do {
            let transfer = session.transfer(Request(server.url("/")))
            #expect(transfer.state == .idle)
            _ = transfer.stream
            _ = transfer.bytes.makeAsyncIterator()
            _ = transfer.progress
            _ = transfer.currentProgress
        }
        #expect(await session.transfers.isEmpty)
        #expect(server.connectionCount == 0)
    }

    @Test func startedTransferRunsWithoutReferences() async throws {
        var options = MockServer.Options()
        options.socketBufferSize = 32 << 10
        let sent = PatternBody(seed: 3, length: 1 << 20)
        let answered = Gate()
        let server = try MockServer(options: options) { _ in
            .pattern(PatternBody(seed: 4, length: 4 << 20)).fault(.stall(answered), at: .end)
        }
        func fireAndForget() {
            let request = Request(.post, server.url("/"), body: .bytes(sent.bytes))
            Session().transfer(request).start()
        }
        fireAndForget()
        await answered.waitUntilReached()
        #expect(server.digests == [sent.sha256])
        #expect(server.bytesSent > 4 << 20)
        answered.open()
        await server.waitUntil(openConnections: 0)
    }

    @Test func transferWorksAfterItsSessionIsReleased() async throws {
        let server = try MockServer { _ in .text("still here") }
        func make() -> Transfer<Data> { Session().transfer(Request(server.url("/"))) }
        let transfer = make()
        #expect(try await transfer.value == Data("still here".utf8))
    }
}
