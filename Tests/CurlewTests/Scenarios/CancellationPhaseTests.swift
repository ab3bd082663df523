// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting
import FoundationEssentials
import Testing

/// Cancellation in every phase: it is immediate, the error has the phase, and the connection closes.
@Suite(.timeLimit(.minutes(5)))
struct CancellationPhaseTests {
    /// Cancels the task, then in a second run the transfer, once `ready` has returned in the given phase.
    private func expectCancellation(
        of request: Request, in session: Session = Session(), phase: NetworkError.Phase,
        _ location: SourceLocation = #_sourceLocation, when ready: (Transfer<Data>) async throws -> Void,
        then: () async -> Void = {}
    ) async throws {
        for byTask in [false, true] {
            let transfer = session.transfer(request)
            await transfer.startWithoutDetaching()
            let task = Task { try await transfer.value }
            try await ready(transfer)
            if byTask { task.cancel() } else { transfer.cancel() }
            let error = try await networkError(location) { try await task.value }
            #expect(error.kind == .cancelled, "by task: \(byTask)", sourceLocation: location)
            #expect(error.phase == phase, "by task: \(byTask)", sourceLocation: location)
            await transfer.waitUntilFinished()
            await then()
        }
    }

    @Test func cancelledTaskStartsNoTransfer() async throws {
        let server = try MockServer { _ in .text("x") }
        let session = Session()
        let request = Request(server.url("/"))
        let entries: [@Sendable () async throws -> Void] = [
            { _ = try await session.data(for: request) },
            { _ = try await session.transfer(request).value },
            { _ = try await session.transfer(request).response() },
            { for try await _ in session.transfer(request).bytes {} },
        ]
        for entry in entries {
            let go = Gate()
            let task = Task {
                await go.wait()
                try await entry()
            }
            task.cancel()
            let error = try await networkError { try await task.value }
            #expect(error.kind == .cancelled && error.phase == .preparing)
        }
        #expect(await session.transfers.isEmpty)
        #expect(server.requestCount == 0)
    }

    @Test func cancellationEndsAQueuedTransfer() async throws {
        let gate = Gate()
        let server = try MockServer { _ in .text("x").fault(.stall(gate), at: .start) }
        let session = Session { $0.limits.transfersPerHost = 1 }
        let held = session.transfer(Request(server.url("/held"))).start()
        await gate.waitUntilReached()
        try await expectCancellation(of: Request(server.url("/queued")), in: session, phase: .queued) {
            #expect(await session.transfers.count == 2)
            #expect($0.state == .queued)
        }
        #expect(!gate.isOpen && held.state == .running)
        gate.open()
        _ = try await held.value
        #expect(server.requests.map(\.path) == ["/held"])
    }

    @Test func cancellationEndsAConnectingTransfer() async throws {
        let listener = try #require(StuckListener())
        let session = Session { $0.timeouts.connect = .seconds(50) }
        try await expectCancellation(
            of: Request("http://127.0.0.1:\(listener.port)/"), in: session, phase: .connecting
        ) {
            #expect(await session.transfers.map(\.state) == [.running])
            #expect($0.state == .running)
        }
        #expect(await session.transfers.isEmpty)
    }

    /// libcurl handles of cancelled transfers keep a buffer of the previous size.
    @Test func handlesOfCancelledTransfersAreReusable() async throws {
        let gate = Gate()
        var options = MockServer.Options()
        options.onAccept = { _ in [.stall(gate)] }
        let silent = try MockServer(tls: TestIdentity.selfSigned(), options: options)
        let held = Gate()
        let server = try MockServer { _ in .text("x").fault(.stall(held), at: .start) }
        let session = Session(trust: InsecureTrust(reason: "test")) { $0.timeouts.connect = .seconds(50) }
        // The other transfers wait until the version of the first connection is known.
        let waiting = (0..<5).map { _ in session.transfer(Request(silent.url("/"))).start() }
        await gate.waitUntilReached()
        #expect(await session.transfers.count == 5)
        // Cancelled in reverse, because otherwise each one would get a connection when its predecessor ends.
        for transfer in waiting.reversed() { transfer.cancel() }
        for transfer in waiting { await transfer.waitUntilFinished() }
        let streams = (0..<5).map { _ in session.transfer(Request(server.url("/"))) }
        let bodies = streams.map { stream in Task { try await StreamRecord(stream).body } }
        await held.waitUntilReached(times: 5)
        held.open()
        for body in bodies { #expect(try await body.value == Data("x".utf8)) }
    }

    @Test func cancellationEndsATLSHandshake() async throws {
        let gate = Gate()
        var options = MockServer.Options()
        options.onAccept = { _ in [.stall(gate)] }
        let server = try MockServer(tls: TestIdentity.selfSigned(), options: options)
        let session = Session(trust: InsecureTrust(reason: "test")) { $0.timeouts.connect = .seconds(50) }
        var arrivals = 0
        try await expectCancellation(of: Request(server.url("/")), in: session, phase: .securing) { _ in
            arrivals += 1
            await gate.waitUntilReached(times: arrivals)
            _ = await session.transfers
        } then: {
            await server.waitUntil(openConnections: 0)
        }
        #expect(!gate.isOpen && server.requestCount == 0)
    }

    @Test(arguments: [false, true], [false, true])
    func cancellationEndsASendingTransfer(_ isStream: Bool, _ byTask: Bool) async throws {
        var options = MockServer.Options()
        options.socketBufferSize = 32 << 10
        let gate = Gate()
        let server = try MockServer(options: options)
        server.on("POST", "/", .text("x"), reading: .whole.stalling(at: gate, after: 1000))
        let pattern = PatternBody(seed: 1, length: 20 << 20)
        let body = isStream ? RequestBody.stream(ChunkSource(body: pattern)) : .bytes(pattern.bytes)
        let transfer = Session().transfer(Request(.post, server.url("/"), body: body))
        let task = Task { try await transfer.value }
        await gate.waitUntilReached()
        if byTask { task.cancel() } else { transfer.cancel() }
        let error = try await networkError { try await task.value }
        #expect(error.kind == .cancelled && error.phase == .sending)
        #expect(!gate.isOpen)
        // The server sees the close only after the bytes that the kernel still has to send.
        gate.open()
        await server.waitUntil(openConnections: 0)
        #expect(server.completeRequests == 0)
    }

    @Test func cancellationEndsAWaitingTransfer() async throws {
        let gate = Gate()
        let server = try MockServer { _ in .text("x").fault(.stall(gate), at: .start) }
        var arrivals = 0
        try await expectCancellation(of: Request(.post, server.url("/"), body: .text("b")), phase: .waiting) { _ in
            arrivals += 1
            await gate.waitUntilReached(times: arrivals)
        } then: {
            await server.waitUntil(openConnections: 0)
        }
        #expect(!gate.isOpen)
    }

    @Test func cancellationEndsAReceivingTransfer() async throws {
        let gate = Gate()
        let server = try MockServer { _ in
            .pattern(PatternBody(seed: 1, length: 100_000)).fault(.stall(gate), at: .body(1000))
        }
        let session = Session()
        try await expectCancellation(of: Request(server.url("/")), in: session, phase: .receiving) { transfer in
            await session.waitUntil(transfer, has: 1000, \.received)
        } then: {
            await server.waitUntil(openConnections: 0)
        }
        #expect(!gate.isOpen)
    }

    @Test func cancellationEndsAPausedTransfer() async throws {
        let gate = Gate()
        let server = try MockServer { _ in
            .pattern(PatternBody(seed: 1, length: 100_000)).fault(.stall(gate), at: .body(1000))
        }
        let session = Session()
        try await expectCancellation(of: Request(server.url("/")), in: session, phase: .receiving) { transfer in
            await session.waitUntil(transfer, has: 1000, \.received)
            transfer.pause()
            #expect(await session.transfers.map(\.state) == [.paused])
        } then: {
            await server.waitUntil(openConnections: 0)
        }
        #expect(!gate.isOpen)
    }

    @Test(arguments: [false, true]) func cancellationEndsATransferPausedInTheQueue(_ byTask: Bool) async throws {
        let server = try MockServer { _ in .text("x") }
        let session = Session()
        let transfer = session.transfer(Request(server.url("/")))
        transfer.pause()
        let task = Task { try await transfer.value }
        await transfer.startWithoutDetaching()
        #expect(await session.transfers.map(\.state) == [.paused])
        if byTask { task.cancel() } else { transfer.cancel() }
        let error = try await networkError { try await task.value }
        #expect(error.kind == .cancelled && error.phase == .queued)
        #expect(await session.transfers.isEmpty)
        #expect(server.connectionCount == 0)
    }

    @Test func hundredTransfersCanBeCancelledAtOnce() async throws {
        let gate = Gate()
        let server = try MockServer { _ in .text("x").fault(.stall(gate), at: .start) }
        let session = Session()
        let tasks = (0..<100).map { _ in Task { try await session.data(for: Request(server.url("/"))) } }
        await gate.waitUntilReached(times: 64)
        for task in tasks { task.cancel() }
        for task in tasks { #expect(try await networkError { try await task.value }.isCancellation) }
        await server.waitUntil(openConnections: 0)
        #expect(await session.transfers.isEmpty)
        gate.open()
        #expect(try await session.data(for: Request(server.url("/"))).0 == Data("x".utf8))
    }
}
