// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewTesting
import Testing

/// The server records violations of a client, and ends the connection if RFC 9113 requires it.
@Suite(.timeLimit(.minutes(5)))
struct HTTP2ViolationTests {
    @Test(arguments: [
        ([HTTP2Frame.data(1, [1])], HTTP2ErrorCode.protocolError),
        ([.data(0, [1])], .protocolError),
        ([.continuation(1)], .protocolError),
        ([.headers(1, [], endHeaders: false), .ping()], .protocolError),
        ([.headers(2, [])], .protocolError),
        ([.rstStream(5, .cancel)], .protocolError),
        ([.windowUpdate(0, by: 0)], .protocolError),
        ([.windowUpdate(0, by: Int(Int32.max))], .flowControlError),
        ([HTTP2Frame(.ping, stream: 0, payload: [1])], .frameSizeError),
        ([HTTP2Frame(.settings, stream: 0, payload: [1])], .frameSizeError),
        ([HTTP2Frame(.windowUpdate, stream: 0, payload: [0, 0, 0, 1, 0])], .frameSizeError),
        ([HTTP2Frame(.rstStream, stream: 1, payload: [0, 0, 0])], .frameSizeError),
        ([HTTP2Frame(.settings, flags: .ack, stream: 0, payload: [0, 1, 0, 0, 0, 0])], .frameSizeError),
        ([.settings([HTTP2Setting(identifier: 2, value: 2)])], .protocolError),
        ([.settings([.maxFrameSize(0)])], .protocolError),
        ([.settings([.maxFrameSize(1 << 24)])], .protocolError),
        ([.settings([.initialWindowSize(1 << 31)])], .flowControlError),
        ([HTTP2Frame(.init(rawValue: 99), stream: 0, payload: [UInt8](repeating: 0, count: 16_385))], .frameSizeError),
        ([HTTP2Frame(.headers, flags: .endHeaders, stream: 1, payload: [0xFF])], .compressionError),
        ([.pushPromise(1, promising: 2, [])], .protocolError),
    ]) func violationsEndTheConnection(_ frames: [HTTP2Frame], _ code: HTTP2ErrorCode) throws {
        let server = try HTTP2Server()
        let client = try HTTP2Client(server)
        for frame in frames { try client.send(frame) }
        let goAway = try client.next(.goAway)
        #expect(goAway.errorCode == code)
        #expect(server.violations.count == 1)
        #expect(try client.ending() == .fin)
    }

    /// The windows of open streams have a maximum size, too (RFC 9113 §6.9.2).
    @Test func settingsThatOverflowAWindowEndTheConnection() throws {
        let server = try HTTP2Server()
        let client = try HTTP2Client(server)
        try client.request(1, endStream: false)
        try client.send(.windowUpdate(1, by: Int(Int32.max) - 65_535), .settings([.initialWindowSize(65_536)]))
        #expect(try client.next(.goAway).errorCode == .flowControlError)
        #expect(server.violations.count == 1)
    }

    @Test func missingPrefaceEndsTheConnection() throws {
        let server = try HTTP2Server()
        let wire = try WireClient(port: server.port)
        try wire.send("GET / HTTP/1.1\r\n\r\n")
        #expect(throws: WireError.ended(.fin)) { while true { try wire.receive() } }
        #expect(server.violations.count == 1 && server.requests.isEmpty)
    }

    @Test(arguments: [
        [(":method", "GET"), (":path", "/"), (":scheme", "http"), ("X-A", "1")],
        [(":method", "GET"), (":path", "/"), (":scheme", "http"), ("connection", "close")],
        [(":method", "GET"), (":path", "/"), (":scheme", "http"), ("te", "gzip")],
        [(":method", "GET"), (":path", "/"), ("a", "b"), (":scheme", "http")],
        [(":method", "GET"), (":scheme", "http")],
        [(":path", "/"), (":scheme", "http")],
        [(":method", "GET"), (":method", "GET"), (":path", "/"), (":scheme", "http")],
    ]) func invalidFieldsAreRecorded(_ fields: [(String, String)]) throws {
        let server = try HTTP2Server { _ in .respond(200) }
        let client = try HTTP2Client(server)
        try client.send(.headers(1, fields.map { (name: $0.0, value: $0.1) }, endStream: true))
        #expect(try client.answer(1).kinds == [.headers])
        #expect(!server.violations.isEmpty)
    }

    @Test func lengthWindowAndStreamLimitViolationsAreRecorded() throws {
        var options = HTTP2Server.Options()
        options.connection = { _ in .now.settings([.maxConcurrentStreams(1), .initialWindowSize(2)]) }
        let server = try HTTP2Server(options: options) { _ in .afterRequest.head(200) }
        let client = try HTTP2Client(server)
        _ = try client.next(.settings)
        try client.send(.settingsAck)
        try client.request(1, "POST", fields: [("content-length", "5")], endStream: false)
        try client.send(.data(1, [1, 2, 3], endStream: true))
        try client.request(3)
        // The server responds after it has checked the frame.
        while try client.next(.headers).stream != 3 {}
        #expect(server.violations.count == 3, "\(server.violations)")
    }
}
