// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting
import FoundationEssentials
import Testing

/// Each timeout ends its own phase of a transfer, and no other.
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

    private func stallingServer(_ point: MockResponse.Point) throws -> MockServer {
        let gate = Gate()
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
        try await expectTimeout(Request(server.url("/")), Timeouts(idle: short), phase: .receiving, naming: "idle")
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
        let post = Request(.post, server.url("/"), body: .text("body"))
        try await expectTimeout(post, limit, phase: .waiting, naming: "responseHead")
        let upload = Request(.post, server.url("/"), body: .bytes(PatternBody(seed: 1, length: 200_000).bytes))
        try await expectTimeout(upload, limit, phase: .waiting, naming: "responseHead")
        await server.waitUntil(openConnections: 0)
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
        let head = Timeouts(responseHead: short)
        let drip = MockResponse.bytes(Array(repeating: 7, count: 12)).dripping(bytes: 1, every: .milliseconds(250))
        let server = try MockServer { _ in drip }
        let clock = ContinuousClock.now
        let request = Request(server.url("/"), options: Request.Options(timeouts: head))
        #expect(try await Session().data(for: request).0.count == 12)
        #expect(clock.duration(to: .now) > short)

        // Sending the body takes longer than the timeout of the response head.
        let gate = Gate()
        server.on("POST", "/", .text("done"))
        let body = RequestBody.stream(ChunkSource(body: PatternBody(seed: 1, length: 100), chunk: 50, hold: (1, gate)))
        let session = Session()
        let upload = session.transfer(
            Request(.post, server.url("/"), body: body, options: Request.Options(timeouts: head))
        ).start()
        // Another transfer's timeout shows that the time has passed.
        let silent = try stallingServer(.start)
        try await expectTimeout(
            Request(silent.url("/")), Timeouts(idle: .seconds(3)), in: session, phase: .waiting, naming: "idle")
        #expect(upload.state == .running)
        gate.open()
        #expect(try await upload.value == Data("done".utf8))
    }

    @Test func minimumRateTimeoutEndsASlowTransfer() async throws {
        let drip = MockResponse.bytes(Array(repeating: 7, count: 1000)).dripping(bytes: 1, every: .milliseconds(100))
        let server = try MockServer { _ in drip }
        let limit = Timeouts(minimumRate: Timeouts.MinimumRate(bytes: 100, within: short))
        try await expectTimeout(Request(server.url("/")), limit, phase: .receiving, naming: "minimumRate")
    }

    @Test func minimumRateIgnoresASlowReader() async throws {
        let body = PatternBody(seed: 1, length: 4 << 20)
        let server = try MockServer { _ in .pattern(body) }
        let session = Session {
            $0.buffers.highWater = .kibibytes(64)
            $0.buffers.lowWater = .kibibytes(16)
        }
        let limit = Timeouts(minimumRate: Timeouts.MinimumRate(bytes: .kibibytes(64), within: short))
        let transfer = session.transfer(Request(server.url("/"), options: Request.Options(timeouts: limit)))
        var reader = transfer.bytes.makeAsyncIterator()
        var count = try #require(try await reader.next()).count
        // Another transfer's timeout shows that much more than the span has passed.
        let silent = try stallingServer(.start)
        try await expectTimeout(
            Request(silent.url("/")), Timeouts(idle: .seconds(5)), in: session, phase: .waiting, naming: "idle")
        while let chunk = try await reader.next() { count += chunk.count }
        #expect(count == body.length)
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
        let drip = MockResponse.bytes(Array(repeating: 7, count: 50)).dripping(bytes: 1, every: .milliseconds(100))
        let server = try MockServer { _ in drip }
        let limit = Timeouts(minimumRate: Timeouts.MinimumRate(bytes: 1, within: short))
        let clock = ContinuousClock.now
        let request = Request(server.url("/"), options: Request.Options(timeouts: limit))
        #expect(try await Session().data(for: request).0.count == 50)
        #expect(clock.duration(to: .now) > short * 2, "several spans have passed")
    }

    @Test func sessionTimeoutsApply() async throws {
        let server = try stallingServer(.start)
        let session = Session { $0.timeouts.idle = short }
        let error = try await networkError { try await session.data(for: Request(server.url("/"))) }
        #expect(error.kind == .timedOut && error.phase == .waiting)
    }

    @Test func receivedBytesResetTheIdleTimeout() async throws {
        let script = MockResponse.bytes(Array(repeating: 7, count: 12)).dripping(bytes: 1, every: .milliseconds(250))
        let server = try MockServer { _ in script }
        let request = Request(
            server.url("/"), options: Request.Options(timeouts: Timeouts(idle: short)))
        let clock = ContinuousClock.now
        #expect(try await Session().data(for: request).0.count == 12)
        #expect(clock.duration(to: .now) > short)
    }

    @Test func pausedTransferIsNotIdle() async throws {
        let gate = Gate()
        let server = try MockServer { _ in .text("x").fault(.stall(gate), at: .start) }
        let session = Session()
        let options = Request.Options(timeouts: Timeouts(idle: short))
        let transfer = session.transfer(Request(server.url("/"), options: options))
        // On the loop's thread, so that a busy machine does not delay the pause beyond the timeout.
        await Task(executorPreference: session.executor) {
            transfer.start()
            await gate.waitUntilReached()
            transfer.pause()
        }.value
        #expect(await session.transfers.map(\.state) == [.paused])
        // Another transfer's idle timeout shows that the time has passed.
        let silent = try stallingServer(.start)
        try await expectTimeout(
            Request(silent.url("/")), Timeouts(idle: .seconds(3)), in: session, phase: .waiting, naming: "idle")
        #expect(transfer.state == .paused)
        gate.open()
        transfer.resume()
        #expect(try await transfer.value == Data("x".utf8))
    }

    @Test func transferWithASlowReaderIsNotIdle() async throws {
        let body = PatternBody(seed: 1, length: 4 << 20)
        let server = try MockServer { _ in .pattern(body) }
        let session = Session {
            $0.buffers.highWater = .kibibytes(128)
            $0.buffers.lowWater = .kibibytes(64)
        }
        let options = Request.Options(timeouts: Timeouts(idle: short))
        var reader = session.transfer(Request(server.url("/"), options: options)).bytes.makeAsyncIterator()
        var received = Data(try #require(try await reader.next()))
        let silent = try stallingServer(.start)
        for _ in 0..<2 {
            try await expectTimeout(
                Request(silent.url("/")), Timeouts(idle: short), in: session, phase: .waiting, naming: "idle")
        }
        while let chunk = try await reader.next() { received.append(contentsOf: chunk) }
        #expect(received.sha256 == body.sha256)
    }

    @Test func totalTimeoutEndsAQueuedTransfer() async throws {
        let gate = Gate()
        let server = try MockServer { _ in .text("x").fault(.stall(gate), at: .start) }
        let session = Session { $0.limits.transfersPerHost = 1 }
        let held = session.transfer(Request(server.url("/held"))).start()
        await gate.waitUntilReached()
        try await expectTimeout(
            Request(server.url("/")), Timeouts(total: short), in: session, phase: .queued, naming: "total")
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
        let server = try MockServer()
        server.on("POST", "/", .text("x"), reading: .whole.slowly(bytes: 100, every: .milliseconds(20)))
        let body = RequestBody.stream(ChunkSource(body: PatternBody(seed: 1, length: 20 << 20)))
        try await expectTimeout(
            Request(.post, server.url("/"), body: body), Timeouts(total: short), phase: .sending, naming: "total")
    }

    @Test func totalTimeoutEndsAPausedTransfer() async throws {
        let server = try stallingServer(.body(1000))
        let options = Request.Options(timeouts: Timeouts(total: short))
        let transfer = Session().transfer(Request(server.url("/"), options: options))
        let task = Task { try await transfer.value }
        await transfer.startWithoutDetaching()
        transfer.pause()
        #expect(try await networkError { try await task.value }.kind == .timedOut)
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
        let listener = try #require(StuckListener())
        try await expectTimeout(
            Request("http://127.0.0.1:\(listener.port)/"), Timeouts(connect: .seconds(4), idle: short),
            phase: .connecting, naming: "connect")
    }

    @Test func connectTimeoutExcludesTheQueue() async throws {
        let gate = Gate()
        let server = try MockServer { _ in .text("x").fault(.stall(gate), at: .start) }
        let silent = try stallingServer(.start)
        let session = Session { $0.limits.transfersPerHost = 1 }
        let held = session.transfer(Request(server.url("/held"))).start()
        await gate.waitUntilReached()
        let options = Request.Options(timeouts: Timeouts(connect: short))
        let queued = session.transfer(Request(server.url("/queued"), options: options)).start()
        for _ in 0..<2 {
            try await expectTimeout(
                Request(silent.url("/")), Timeouts(idle: short), in: session, phase: .waiting, naming: "idle")
        }
        #expect(queued.state == .queued)
        gate.open()
        _ = try await held.value
        #expect(try await queued.value == Data("x".utf8))
    }
}
