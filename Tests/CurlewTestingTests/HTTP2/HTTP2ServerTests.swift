// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewTesting
import Testing

/// Tests of the frames that a script sends, their timing, and the server's records.
@Suite(.timeLimit(.minutes(5)))
struct HTTP2ServerTests {
    @Test func responseIsSentAndRequestRecorded() async throws {
        let server = try HTTP2Server { request in .respond(200, [("x-path", request.path)], text: "hello") }
        let client = try HTTP2Client(server)
        try client.request(1, "GET", "/a?b=c", fields: [("x-a", "1")])
        let frames = try client.answer(1)
        #expect(frames.kinds == [.headers, .data] && frames.body == Array("hello".utf8))
        let request = try #require(await server.nextRequest())
        #expect(request.method == "GET" && request.target == "/a?b=c" && request.path == "/a" && request.query == "b=c")
        #expect(request.scheme == "http" && request.authority == "test" && request.field("X-A") == "1")
        #expect(request.version == "HTTP/2" && request.stream == 1 && request.connection == 1 && request.ordinal == 1)
        #expect(request.isBodyComplete && server.violations.isEmpty)
        #expect(server.frames.map(\.frame.kind).prefix(2) == [.settings, .headers])
    }

    @Test func alpnNegotiatesHTTP2OverTLS() async throws {
        let authority = try TestAuthority()
        let server = try HTTP2Server(tls: authority.issue()) { _ in .respond(200) }
        let client = try HTTP2Client(server, tls: SecureSettings(authorityPEM: authority.certificatePEM))
        try client.request(1)
        #expect(try client.answer(1).kinds == [.headers])
        #expect(client.wire.applicationProtocol == "h2")
        #expect(server.requests.first?.tls?.applicationProtocol == "h2")
        #expect(server.origin == "https://localhost:\(server.port)")
    }

    @Test func stalledStreamDoesNotBlockOtherStreams() async throws {
        let gate = Gate()
        let server = try HTTP2Server { request in
            request.stream == 1
                ? .afterRequest.head(200).fault(.stall(gate)).body("late", endStream: true) : .respond(204)
        }
        let client = try HTTP2Client(server)
        try client.request(1)
        await gate.waitUntilReached()
        #expect(try client.next(.headers).stream == 1)
        try client.request(3)
        #expect(try client.next(.headers).stream == 3)
        #expect(server.mostOpenStreams == 2)
        gate.open()
        #expect(try client.answer(1).body == Array("late".utf8))
    }

    @Test func bodiesObeyFlowControlWindows() async throws {
        let body = PatternBody(seed: 1, length: 200_000)
        let server = try HTTP2Server { _ in .respond(200, pattern: body) }
        let client = try HTTP2Client(server)
        try client.send(.settings([.initialWindowSize(100)]))
        try client.request(1)
        #expect(try client.next(.data).payload.count == 100)
        try client.send(.windowUpdate(1, by: 200_000))
        var received = 100
        while received < 65_535 { received += try client.next(.data).payload.count }
        #expect(received == 65_535)
        try client.send(.ping())
        #expect(try client.next() == .ping(ack: true))
        try client.send(.windowUpdate(0, by: 200_000))
        #expect(SHA256Stream.hex(of: try client.answer(1).body) == body[65_535..<200_000].sha256)
    }

    @Test func uploadsAreRecordedAndWindowsReplenished() async throws {
        let server = try HTTP2Server { _ in .afterRequest { .now.respond(200, body: $0.body) } }
        let client = try HTTP2Client(server)
        try client.request(1, "POST", fields: [("content-length", "5")], endStream: false)
        try client.send(.data(1, [1, 2, 3], padding: 10))
        let updates = [try client.next(.windowUpdate), try client.next(.windowUpdate)]
        #expect(updates.map(\.stream).sorted() == [0, 1] && updates.map(\.increment) == [14, 14])
        try client.send(.data(1, [4, 5]))
        try client.send(.headers(1, [("x-check", "sum")], endStream: true))
        #expect(try client.answer(1).body == [1, 2, 3, 4, 5])
        let request = try #require(server.requests.first)
        #expect(request.body == [1, 2, 3, 4, 5] && request.bodyLength == 5 && request.isBodyComplete)
        #expect(request.bodySHA256 == SHA256Stream.hex(of: [1, 2, 3, 4, 5]))
        #expect(request.trailers.map(\.name) == ["x-check"] && server.violations.isEmpty)
    }

    @Test func withheldWindowIsOpenedByTheScript() async throws {
        let gate = Gate()
        let server = try HTTP2Server { _ in
            .now.withholdingWindow().reading(bytes: 3).fault(.stall(gate)).windowUpdate(by: 1000).replenishingWindow()
                .reading().respond(200)
        }
        let client = try HTTP2Client(server)
        try client.request(1, "POST", endStream: false)
        try client.send(.data(1, [1, 2, 3]))
        await gate.waitUntilReached()
        #expect(try client.next(.windowUpdate).stream == 0)
        gate.open()
        let updates = [try client.next(.windowUpdate), try client.next(.windowUpdate)]
        #expect(updates.map(\.increment) == [1000, 3] && updates.allSatisfy { $0.stream == 1 })
        try client.send(.data(1, endStream: true))
        #expect(try client.answer(1).kinds == [.headers])
    }

    @Test func waitForResetReturnsTheCode() async throws {
        let server = try HTTP2Server { _ in .now.head(200) }
        let client = try HTTP2Client(server)
        try client.request(1)
        let request = try #require(await server.nextRequest())
        async let code = server.waitForReset(of: request)
        try client.send(.rstStream(1, .cancel))
        #expect(await code == .cancel)
        try client.request(3)
        let other = try #require(await server.nextRequest())
        client.wire.close()
        #expect(await server.waitForReset(of: other) == nil)
        #expect(server.requests.last?.isConnectionClosed == true)
        #expect(await server.waitUntil(openConnections: 0))
    }

    @Test func scriptedFramesAndFaultsAreSentUnchanged() throws {
        let server = try HTTP2Server { request in
            .now.frame(.data(0, [1])).frame(.continuation(request.stream)).flood(.ping(), times: 3)
                .goAway(upTo: 0, .enhanceYourCalm, debug: [65]).fault(.send([1, 2, 3])).fault(.close)
        }
        let client = try HTTP2Client(server)
        try client.request(1)
        #expect(try client.next(.data) == .data(0, [1]))
        #expect(try client.next() == .continuation(1))
        for _ in 0..<3 { #expect(try client.next() == .ping()) }
        #expect(try client.next() == .goAway(lastStream: 0, .enhanceYourCalm, debug: [65]))
        while client.wire.buffer.count < 3 { try client.wire.receive() }
        #expect(client.wire.buffer == [1, 2, 3])
        #expect(try client.ending() == .fin)
    }

    @Test(arguments: [SocketFault.close, .cut, .reset]) func faultsEndTheConnection(_ fault: SocketFault) throws {
        let server = try HTTP2Server { _ in .now.head(200).fault(fault) }
        let client = try HTTP2Client(server)
        try client.request(1)
        #expect(try client.next(.headers).stream == 1)
        if case .reset = fault { #expect(try client.ending() == .reset) } else { #expect(try client.ending() == .fin) }
    }

    @Test func longHeadsUseContinuationFrames() throws {
        let server = try HTTP2Server { _ in .respond(200, [("x-long", String(repeating: "a", count: 40_000))]) }
        let client = try HTTP2Client(server)
        try client.request(1)
        let frames = [try client.next(.headers), try client.next(), try client.next()]
        #expect(frames.kinds == [.headers, .continuation, .continuation])
        #expect(frames.map { $0.flags.contains(.endHeaders) } == [false, false, true])
        #expect(frames[0].flags.contains(.endStream) && !frames[2].flags.contains(.endStream))
    }

    @Test func connectionScriptsRunForEachConnection() async throws {
        let gate = Gate()
        var options = HTTP2Server.Options()
        options.connection = { number in
            .now.settings([.maxConcurrentStreams(UInt32(number))]).fault(.stall(gate)).settings([.initialWindowSize(0)])
        }
        let server = try HTTP2Server(options: options)
        let client = try HTTP2Client(server)
        #expect(try client.next() == .settings([.maxConcurrentStreams(1)]))
        #expect(try client.next() == .settingsAck)
        gate.open()
        #expect(try client.next() == .settings([.initialWindowSize(0)]))
        let second = try HTTP2Client(server)
        #expect(try second.next() == .settings([.maxConcurrentStreams(2)]))
    }

    @Test func streamsAfterGoAwayAreStillServed() throws {
        let server = try HTTP2Server { request in
            request.stream == 1 ? .now.goAway(upTo: 1).respond(200) : .respond(204)
        }
        let client = try HTTP2Client(server)
        try client.request(1)
        #expect(try client.answer(1).kinds == [.headers])
        try client.request(3)
        try client.send(.ping([9, 9, 9, 9, 9, 9, 9, 9]))
        #expect(try client.next() == .ping([9, 9, 9, 9, 9, 9, 9, 9], ack: true))
        #expect(server.requests.map(\.stream) == [1, 3])
    }

    @Test func settingsChangeWindowsOfOpenStreams() throws {
        let server = try HTTP2Server { _ in .respond(200, body: [1, 2, 3]) }
        let client = try HTTP2Client(server)
        try client.send(.settings([.initialWindowSize(0)]))
        try client.request(1)
        _ = try client.next(.headers)
        try client.send(.settings([.initialWindowSize(2)]))
        #expect(try client.next(.data).payload == [1, 2])
        try client.send(.windowUpdate(1, by: 1))
        #expect(try client.next(.data) == .data(1, [3], endStream: true))
    }
}
