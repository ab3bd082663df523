// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewEngine
import CurlewTesting
import FoundationEssentials
import Testing

@testable import Curlew

/// A minimum rate counts only the slowness of the peer.
@Suite(.timeLimit(.minutes(5)))
struct SlowPeerTests {
    /// 64 KiB in every 100 ms.
    private static let demanding = Timeouts(
        minimumRate: Timeouts.MinimumRate(bytes: .kibibytes(64), within: .milliseconds(100)))

    /// Waits for several spans of the demanding rate on the session's loop, by the timeout of another transfer.
    private func waitForSpans(_ session: Session) async throws {
        let gate = Gate()
        let silent = try MockServer { _ in .text("x").fault(.stall(gate), at: .start) }
        let options = Request.Options(timeouts: Timeouts(idle: .milliseconds(500)))
        let error = try await networkError { try await session.data(for: Request(silent.url("/"), options: options)) }
        #expect(error.kind == .timedOut)
    }

    @Test func minimumRateIgnoresTheWaitForTheHead() async throws {
        let gate = Gate()
        let server = try MockServer { _ in .text("done").fault(.stall(gate), at: .start) }
        let session = Session()
        let options = Request.Options(timeouts: Self.demanding)
        let transfer = session.transfer(
            Request(.post, server.url("/"), body: .text("body"), options: options)
        ).start()
        await gate.waitUntilReached()
        try await waitForSpans(session)
        #expect(transfer.state == .running)
        gate.open()
        #expect(try await transfer.value == Data("done".utf8))
    }

    @Test func minimumRateEndsUploadToSlowServer() async throws {
        var options = MockServer.Options()
        options.socketBufferSize = 32 << 10
        let server = try MockServer(options: options)
        server.on("POST", "/", .text("x"), reading: .whole.slowly(bytes: 100, every: .milliseconds(20)))
        let body = RequestBody.stream(ChunkSource(body: PatternBody(seed: 1, length: 20 << 20)))
        let request = Request(.post, server.url("/"), body: body, options: Request.Options(timeouts: Self.demanding))
        let error = try await networkError { try await Session().data(for: request) }
        #expect(error.kind == .timedOut && error.phase == .sending && error.message.contains("timeouts.minimumRate"))
    }

    /// A large buffer that is sent slowly takes longer than the limits, although the body moves all the time.
    ///
    /// libcurl reads the next bytes only after a large chunk was sent, and the kernel buffers even more.
    @Test(arguments: [Timeouts(idle: .milliseconds(1500)), Timeouts(responseHead: .milliseconds(1500))])
    func slowlySentBodyIsNotIdle(_ timeouts: Timeouts) async throws {
        var options = MockServer.Options()
        options.socketBufferSize = 32 << 10
        let server = try MockServer(options: options)
        server.on("POST", "/", .text("done"), reading: .whole.slowly(bytes: 100_000, every: .milliseconds(100)))
        let body = RequestBody.stream(ChunkSource(body: PatternBody(seed: 1, length: 4 << 20)))
        var timeouts = timeouts
        timeouts.minimumRate = Timeouts.MinimumRate(bytes: .kibibytes(1), within: .milliseconds(1500))
        let request = Request(.post, server.url("/"), body: body, options: Request.Options(timeouts: timeouts))
        #expect(try await Session().data(for: request).0 == Data("done".utf8))
    }

    @Test func minimumRateIgnoresAWaitingBodySource() async throws {
        let gate = Gate()
        let server = try MockServer()
        server.on("POST", "/", .text("done"))
        let body = RequestBody.stream(ChunkSource(body: PatternBody(seed: 1, length: 100), chunk: 50, hold: (1, gate)))
        let session = Session()
        let options = Request.Options(timeouts: Self.demanding)
        let transfer = session.transfer(Request(.post, server.url("/"), body: body, options: options)).start()
        await session.waitUntil(transfer, has: 50, \.sent)
        try await waitForSpans(session)
        #expect(transfer.state == .running)
        gate.open()
        #expect(try await transfer.value == Data("done".utf8))
    }

    /// Rare bytes are accepted from an event stream, and too slow for any other content type.
    @Test(arguments: [("text/event-stream", true), ("Text/Event-Stream; charset=utf-8", true), ("text/plain", false)])
    func minimumRateIgnoresEventStreams(_ type: String, _ mayBeSlow: Bool) async throws {
        let gate = Gate()
        let events = Array("data: 1\n\ndata: 2\n\n".utf8)
        let server = try MockServer { _ in
            .status(200, [("Content-Type", type)], body: events).fault(.stall(gate), at: .body(9))
        }
        let session = Session()
        let options = Request.Options(timeouts: Self.demanding)
        let transfer = session.transfer(Request(server.url("/"), options: options)).start()
        guard mayBeSlow else {
            let error = try await networkError { try await transfer.value }
            #expect(error.kind == .timedOut && error.message.contains("timeouts.minimumRate"), "\(error)")
            return
        }
        await gate.waitUntilReached()
        try await waitForSpans(session)
        #expect(transfer.state == .running)
        gate.open()
        #expect(try await transfer.value.count == 18)
    }

    @Test func requestInheritsUnsetTimeoutsOfTheSession() throws {
        let session = Session { $0.timeouts = Timeouts(idle: nil, total: .seconds(50)) }
        var request: Request = "http://localhost/"
        request.options.timeouts.responseHead = nil
        request.options.timeouts.connect = .seconds(2)
        let limits = try session.core.plan(for: request).limits
        #expect(limits.total == 50_000_000_000 && limits.idle == nil, "of the session")
        #expect(limits.head == nil && limits.connect == 2_000_000_000, "of the request")
        #expect(limits.minimumRate?.bytes == 1024 && limits.queue == nil, "the defaults")
        let client = Client("http://localhost/", session: session).with { $0.options.timeouts.idle = .seconds(9) }
        let call = try client.request(for: Call(.get, "a", options: .timeout(.seconds(3))))
        #expect(call.options.timeouts == Timeouts(idle: .seconds(9), total: .seconds(3)))
        #expect(try session.core.plan(for: call).limits.idle == 9_000_000_000)
    }

    @Test func requestsWithoutLimitsOfTheirOwnShareThoseOfTheSession() throws {
        let core = Session { $0.limits.responseHead = .kibibytes(3) }.core
        func limits(_ change: (inout Request) -> Void = { _ in }) throws -> SharedLimits {
            var request: Request = "http://localhost/"
            change(&request)
            return try core.plan(for: request).sharedLimits
        }
        let common = try limits()
        #expect(try limits { $0.options.priority = .high } === common)
        #expect(common.values.headSize == 3072 && common.values.throttle == nil)
        let events = try limits { $0.fields[.accept] = "text/event-stream" }
        #expect(try events !== common && limits { $0.fields[.accept] = "text/event-stream" } === events)
        let own = try limits {
            $0.options.responseLimit = .bytes(7)
            $0.options.bandwidth = Request.BandwidthLimit(upload: .bytes(9))
        }
        #expect(own.values.bodySize == 7 && own.values.throttle != nil && own.values.headSize == 3072)
    }

    @Test func laterAttemptsGetTheRestOfTheTotalTimeout() throws {
        let core = Session { $0.timeouts.total = .seconds(2) }.core
        func rest(after offset: UInt64) throws -> UInt64? {
            let position = AttemptPosition(id: 1, ordinal: 2, offset: offset, continues: true)
            return try core.engineTransfer(for: "http://localhost/", at: position).plan.remainingTotal
        }
        #expect(try rest(after: 0) == 2_000_000_000 && rest(after: 500_000_000) == 1_500_000_000)
        let error = #expect(throws: NetworkError.self) { try rest(after: 2_000_000_000) }
        #expect(error?.kind == .timedOut && error?.phase == .preparing)
    }

    /// A client sends the Accept field of its serializer, so event sources have no default timeout of the head.
    @Test func eventStreamRequestsHaveNoDefaultHeadTimeout() throws {
        let session = Session()
        let core = session.core
        let minute: UInt64 = 60_000_000_000
        func head(_ accept: String?, _ timeouts: Timeouts?) throws -> UInt64? {
            var request = Request("http://localhost/")
            if let accept { request.fields[.accept] = accept }
            request.options.timeouts = timeouts ?? Timeouts()
            return try core.plan(for: request).limits.head
        }
        #expect(try head(nil, nil) == minute && head("text/plain", nil) == minute)
        #expect(try head("text/event-stream", nil) == nil && head("text/event-stream, */*", Timeouts()) == nil)
        #expect(try head("application/json, Text/Event-Stream", nil) == nil)
        #expect(try head("text/event-stream", Timeouts(responseHead: .seconds(5))) == 5_000_000_000)
        #expect(try head("text/event-stream", Timeouts(responseHead: .seconds(60))) == minute)
        #expect(try head(nil, Timeouts(responseHead: nil)) == nil)
        #expect(try core.plan(for: Request("http://localhost/")).limits.minimumRate?.bytes == 1024)
    }

    @Test(arguments: [
        ("Content-Type: text/event-stream\r\n", true), ("content-type:TEXT/EVENT-STREAM;x=y\n", true),
        ("Content-Type: text/event-streams\r\n", false), ("X-Content-Type: text/event-stream\r\n", false),
        ("Content-Type: text/plain\r\n", false), ("Content-Type: \r\n", false), ("", false),
    ])
    func rawHeadDetectsEventStreams(_ field: String, _ isEventStream: Bool) {
        let head = RawHead(bytes: Array("HTTP/1.1 200 OK\r\nServer: x\r\n\(field)\r\n".utf8), status: 200)
        #expect(head.isEventStream == isEventStream)
    }
}
