// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import CurlewTesting
import FoundationEssentials
import Testing

@testable import Curlew

/// Each timeout ends its own phase of a transfer, and no other.
///
/// One test of each timeout, and those that depend on libcurl, take real time. The others advance a stub of the clock.
@Suite(.timeLimit(.minutes(5)))
struct TimeoutTests {
    /// Long enough for a busy machine to connect, send and receive, so that the failure has the expected phase.
    private let short = Duration.seconds(2)

    private func expectTimeout(
        _ request: Request, _ timeouts: Timeouts, in session: Session = Session(), phase: NetworkError.Phase,
        naming limit: String, _ location: SourceLocation = #_sourceLocation
    ) async throws {
        var request = request
        request.options.timeouts = timeouts
        let clock = ContinuousClock.now
        let error = try await networkError(location) { try await session.data(for: request) }
        #expect(clock.duration(to: .now) >= short, sourceLocation: location)
        #expect(error.kind == .timedOut && error.phase == phase, "\(error)", sourceLocation: location)
        #expect(error.message.contains("timeouts.\(limit)"), "\(error)", sourceLocation: location)
        #expect(error.code == "curlew.timed_out.\(phase)" && error.exitCode == 75, sourceLocation: location)
        #expect(try #require(error.duration) >= short, sourceLocation: location)
    }

    /// Starts a transfer in the time of a stub, and expects its timeout once the time has passed.
    ///
    /// - Parameter isReady: Returns when the transfer is in the phase of the timeout.
    private func expectStubTimeout(
        _ request: Request, _ timeouts: Timeouts, phase: NetworkError.Phase, naming limit: String,
        _ location: SourceLocation = #_sourceLocation, when isReady: (Session, Transfer<Data>) async -> Void
    ) async throws {
        let clock = StubClock()
        let session = Session(clock: clock)
        var request = request
        request.options.timeouts = timeouts
        let transfer = session.transfer(request).start()
        await isReady(session, transfer)
        await session.advance(clock, by: short - .milliseconds(1))
        #expect(transfer.state == .running, sourceLocation: location)
        // libcurl's own times are real, so the limits that depend on them count a little later. A limit starts again
        // when it is due and the engine finds that bytes have left the machine since.
        for _ in 0..<3 where transfer.state == .running { await session.advance(clock, by: short) }
        let error = try await networkError(location) { try await transfer.value }
        #expect(error.kind == .timedOut && error.phase == phase, "\(error)", sourceLocation: location)
        #expect(error.message.contains("timeouts.\(limit)"), "\(error)", sourceLocation: location)
        #expect(try #require(error.duration) >= short, sourceLocation: location)
    }

    private func stallingServer(_ point: MockResponse.Point, _ gate: Gate = Gate()) throws -> MockServer {
        return try MockServer { _ in
            .pattern(PatternBody(seed: 1, length: 100_000)).fault(.stall(gate), at: point)
        }
    }

    @Test func idleTimeoutEndsAWaitingTransfer() async throws {
        let server = try stallingServer(.start)
        try await expectTimeout(Request(server.url("/")), Timeouts(idle: short), phase: .waiting, naming: "idle")
        await server.waitUntil(openConnections: 0)
    }

    @Test func idleTimeoutEndsAReceivingTransfer() async throws {
        let server = try stallingServer(.body(1000))
        try await expectStubTimeout(
            Request(server.url("/")), Timeouts(idle: short), phase: .receiving, naming: "idle",
            when: { await $0.waitUntil($1, has: 1000, \.received) })
        await server.waitUntil(openConnections: 0)
    }

    @Test func idleTimeoutEndsASendingTransfer() async throws {
        var options = MockServer.Options()
        options.socketBufferSize = 32 << 10
        let server = try MockServer(options: options)
        server.on("POST", "/", .text("x"), reading: .whole.stalling(at: Gate(), after: 1000))
        let request = Request(.post, server.url("/"), body: .bytes(PatternBody(seed: 1, length: 20 << 20).bytes))
        try await expectTimeout(request, Timeouts(idle: short), phase: .sending, naming: "idle")
    }

    @Test func responseHeadTimeoutEndsATransferWithoutAHead() async throws {
        let server = try stallingServer(.start)
        let limit = Timeouts(responseHead: short)
        try await expectTimeout(Request(server.url("/")), limit, phase: .waiting, naming: "responseHead")
        await server.waitUntil(openConnections: 0)
    }

    @Test func responseHeadTimeoutEndsUploadsWithoutAHead() async throws {
        for body in [RequestBody.text("body"), .bytes(PatternBody(seed: 1, length: 200_000).bytes)] {
            let gate = Gate()
            let server = try stallingServer(.start, gate)
            try await expectStubTimeout(
                Request(.post, server.url("/"), body: body), Timeouts(responseHead: short), phase: .waiting,
                naming: "responseHead", when: { _, _ in await gate.waitUntilReached() })
            await server.waitUntil(openConnections: 0)
        }
    }

    @Test func responseHeadTimeoutEndsATransferWithinTheHead() async throws {
        let gate = Gate()
        let server = try MockServer { _ in
            .text("x").informational(103).fault(.stall(gate), at: .head(30))
        }
        try await expectTimeout(
            Request(server.url("/")), Timeouts(responseHead: short), phase: .receiving, naming: "responseHead")
    }

    @Test func responseHeadTimeoutExcludesTheBodies() async throws {
        let clock = StubClock()
        let session = Session(clock: clock) { $0.timeouts.responseHead = short }
        let (first, second) = (Gate(), Gate())
        let server = try stallingServer(.body(1000), first)
        let download = session.transfer(Request(server.url("/"))).start()
        await session.waitUntil(download, has: 1000, \.received)
        server.on("POST", "/", .text("done"))
        let body = RequestBody.stream(
            ChunkSource(body: PatternBody(seed: 1, length: 100), chunk: 50, hold: (1, second)))
        let upload = session.transfer(Request(.post, server.url("/"), body: body)).start()
        await session.waitUntil(upload, has: 50, \.sent)
        await session.advance(clock, by: short * 10)
        #expect(upload.state == .running && download.state == .running)
        first.open()
        second.open()
        #expect(try await upload.value == Data("done".utf8))
        #expect(try await download.value.count == 100_000)
    }

    @Test func minimumRateTimeoutEndsASlowTransfer() async throws {
        let drip = MockResponse.bytes(Array(repeating: 7, count: 1000)).dripping(bytes: 1, every: .milliseconds(100))
        let server = try MockServer { _ in drip }
        let limit = Timeouts(minimumRate: Timeouts.MinimumRate(bytes: 100, within: short))
        try await expectTimeout(Request(server.url("/")), limit, phase: .receiving, naming: "minimumRate")
    }

    @Test func minimumRateIgnoresASlowReader() async throws {
        try await expectPatience(
            with: Timeouts(minimumRate: Timeouts.MinimumRate(bytes: .kibibytes(64), within: short)))
    }

    /// A reader that does not read for long, while the server could send.
    private func expectPatience(with timeouts: Timeouts) async throws {
        let clock = StubClock()
        let body = PatternBody(seed: 1, length: 4 << 20)
        let server = try MockServer { _ in .pattern(body) }
        let session = Session(clock: clock) {
            $0.buffers.highWater = .kibibytes(64)
            $0.buffers.lowWater = .kibibytes(16)
        }
        let transfer = session.transfer(Request(server.url("/"), options: Request.Options(timeouts: timeouts)))
        var reader = transfer.bytes.makeAsyncIterator()
        var received = Data(try #require(try await reader.next()))
        await session.waitUntil(transfer, has: 64 << 10, \.received)
        for _ in 0..<5 { await session.advance(clock, by: short) }
        #expect(transfer.state == .running)
        while let chunk = try await reader.next() { received.append(contentsOf: chunk) }
        #expect(received.sha256 == body.sha256)
    }

    /// Over TLS, libcurl makes further connections to a host wait for the first one.
    @Test func connectTimeoutRunsForAllTransfersAtOnce() async throws {
        let listener = try #require(StuckListener())
        let session = Session { $0.timeouts.connect = short }
        let transfers = (0..<12).map { _ in
            session.transfer(Request("https://127.0.0.1:\(listener.port)/")).start()
        }
        for transfer in transfers {
            let error = try await networkError { try await transfer.value }
            #expect(error.kind == .timedOut && error.message.contains("timeouts.connect"), "\(error)")
            // The total time by the loop; one after the other, the transfers would take 24 s.
            #expect(try #require(transfer.metrics).total < .seconds(16))
        }
    }

    @Test func minimumRateAcceptsAFastEnoughServer() async throws {
        let clock = StubClock()
        let gates = (1...4).map { _ in Gate() }
        let server = try MockServer { _ in
            gates.enumerated().reduce(.bytes(Array(repeating: 7, count: 50))) {
                $0.fault(.stall($1.element), at: .body(10 * ($1.offset + 1)))
            }
        }
        let session = Session(clock: clock) {
            $0.timeouts.minimumRate = Timeouts.MinimumRate(bytes: .bytes(10), within: short)
        }
        let transfer = session.transfer(Request(server.url("/"))).start()
        for (index, gate) in gates.enumerated() {
            await session.waitUntil(transfer, has: Int64(10 * (index + 1)), \.received)
            await session.advance(clock, by: short)
            #expect(transfer.state == .running)
            gate.open()
        }
        #expect(try await transfer.value.count == 50)
    }

    @Test func sessionTimeoutsApply() async throws {
        let (clock, gate) = (StubClock(), Gate())
        let server = try stallingServer(.start, gate)
        let session = Session(clock: clock) { $0.timeouts.idle = short }
        let transfer = session.transfer(Request(server.url("/"))).start()
        await gate.waitUntilReached()
        clock.advance(by: short)
        let error = try await networkError { try await transfer.value }
        #expect(error.kind == .timedOut && error.phase == .waiting)
    }

    @Test func receivedBytesResetTheIdleTimeout() async throws {
        let (clock, first, second) = (StubClock(), Gate(), Gate())
        let server = try MockServer { _ in
            .bytes(Array(repeating: 7, count: 12)).fault(.stall(first), at: .body(4))
                .fault(.stall(second), at: .body(8))
        }
        let session = Session(clock: clock) { $0.timeouts.idle = short }
        let transfer = session.transfer(Request(server.url("/"))).start()
        for (gate, count) in [(first, Int64(4)), (second, 8)] {
            await session.waitUntil(transfer, has: count, \.received)
            await session.advance(clock, by: short - .milliseconds(1))
            gate.open()
        }
        #expect(try await transfer.value.count == 12)
    }

    @Test func pausedTransferIsNotIdle() async throws {
        let (clock, gate) = (StubClock(), Gate())
        let server = try MockServer { _ in .text("x").fault(.stall(gate), at: .start) }
        let session = Session(clock: clock) { $0.timeouts.idle = short }
        let transfer = session.transfer(Request(server.url("/"))).start()
        await gate.waitUntilReached()
        transfer.pause()
        #expect(await session.transfers.map(\.state) == [.paused])
        await session.advance(clock, by: short * 10)
        #expect(transfer.state == .paused)
        gate.open()
        transfer.resume()
        #expect(try await transfer.value == Data("x".utf8))
    }

    @Test func transferWithASlowReaderIsNotIdle() async throws {
        try await expectPatience(with: Timeouts(idle: short))
    }

    @Test func totalTimeoutEndsAQueuedTransfer() async throws {
        let (clock, gate) = (StubClock(), Gate())
        let server = try MockServer { _ in .text("x").fault(.stall(gate), at: .start) }
        let session = Session(clock: clock) { $0.limits.transfersPerHost = 1 }
        let held = session.transfer(Request(server.url("/held"))).start()
        await gate.waitUntilReached()
        let options = Request.Options(timeouts: Timeouts(total: short))
        let queued = session.transfer(Request(server.url("/"), options: options)).start()
        await session.advance(clock, by: short - .milliseconds(1))
        #expect(queued.state == .queued)
        await session.advance(clock, by: .milliseconds(1))
        let error = try await networkError { try await queued.value }
        #expect(error.kind == .timedOut && error.phase == .queued && error.message.contains("timeouts.total"))
        #expect(held.state == .running)
        gate.open()
        _ = try await held.value
        #expect(server.requests.map(\.path) == ["/held"])
    }

    @Test func totalTimeoutEndsAReceivingTransfer() async throws {
        let script = MockResponse.bytes(Array(repeating: 7, count: 1000)).dripping(bytes: 1, every: .milliseconds(20))
        let server = try MockServer { _ in script }
        try await expectTimeout(
            Request(server.url("/")), Timeouts(total: short), phase: .receiving, naming: "total")
    }

    @Test func totalTimeoutEndsAnUpload() async throws {
        let (server, gate) = (try MockServer(), Gate())
        server.on("POST", "/", .text("x"))
        let source = ChunkSource(body: PatternBody(seed: 1, length: 100), chunk: 50, hold: (1, gate))
        try await expectStubTimeout(
            Request(.post, server.url("/"), body: .stream(source)), Timeouts(total: short), phase: .sending,
            naming: "total", when: { await $0.waitUntil($1, has: 50, \.sent) })
    }

    @Test func totalTimeoutEndsAPausedTransfer() async throws {
        let clock = StubClock()
        let server = try stallingServer(.body(1000))
        let session = Session(clock: clock) { $0.timeouts.total = short }
        let transfer = session.transfer(Request(server.url("/"))).start()
        await session.waitUntil(transfer, has: 1000, \.received)
        transfer.pause()
        await session.advance(clock, by: short)
        #expect(try await networkError { try await transfer.value }.kind == .timedOut)
    }

    @Test func connectTimeoutEndsTheTLSHandshake() async throws {
        var options = MockServer.Options()
        options.onAccept = { _ in [.stall(Gate())] }
        let server = try MockServer(tls: TestIdentity.selfSigned(), options: options)
        var request = Request(server.url("/"))
        request.trust = InsecureTrust(reason: "test")
        try await expectTimeout(request, Timeouts(connect: short), phase: .securing, naming: "connect")
        await server.waitUntil(openConnections: 0)
        #expect(server.requestCount == 0)
    }

    @Test func connectTimeoutEndsWithoutTCPResponse() async throws {
        let listener = try #require(StuckListener())
        try await expectTimeout(
            Request("http://127.0.0.1:\(listener.port)/"), Timeouts(connect: short), phase: .connecting,
            naming: "connect")
    }

    @Test func idleTimeoutDoesNotApplyWhileConnecting() async throws {
        let clock = StubClock()
        let listener = try #require(StuckListener())
        let session = Session(clock: clock) { $0.timeouts = Timeouts(connect: .seconds(3600), idle: short) }
        let transfer = session.transfer(Request("http://127.0.0.1:\(listener.port)/")).start()
        for _ in 0..<5 { await session.advance(clock, by: short) }
        #expect(transfer.state == .running)
        await session.advance(clock, by: .seconds(3600))
        let error = try await networkError { try await transfer.value }
        #expect(error.kind == .timedOut && error.phase == .connecting && error.message.contains("timeouts.connect"))
    }

    @Test func connectTimeoutExcludesTheQueue() async throws {
        let (clock, gate) = (StubClock(), Gate())
        let server = try MockServer { _ in .text("x").fault(.stall(gate), at: .start) }
        let session = Session(clock: clock) { $0.limits.transfersPerHost = 1 }
        let held = session.transfer(Request(server.url("/held"))).start()
        await gate.waitUntilReached()
        let options = Request.Options(timeouts: Timeouts(connect: short))
        let queued = session.transfer(Request(server.url("/queued"), options: options)).start()
        await session.advance(clock, by: short * 5)
        #expect(queued.state == .queued)
        gate.open()
        _ = try await held.value
        #expect(try await queued.value == Data("x".utf8))
    }
}
