// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewTesting
import Testing

@Suite(.timeLimit(.minutes(5)))
struct FaultTests {
    private static let headLength = [
        "HTTP/1.1 200 OK", "Content-Type: text/plain; charset=utf-8", "Content-Length: 10", "\r\n",
    ].joined(separator: "\r\n").utf8.count

    /// Requests ten digits and returns the number of received bytes and the end of the connection.
    private func outcome(_ fault: SocketFault, at point: MockResponse.Point) throws -> (count: Int, ending: Ending) {
        let server = try MockServer()
        server.on("GET", "/", .text("0123456789").fault(fault, at: point))
        let client = try WireClient(server)
        try client.request("GET", "/")
        let (bytes, ending) = try client.rest()
        return (bytes.count, ending)
    }

    @Test(arguments: [
        (MockResponse.Point.start, 0), (.head(7), 7), (.head(9999), headLength), (.body(0), headLength),
        (.body(4), headLength + 4), (.body(9999), headLength + 10), (.end, headLength + 10),
    ])
    func resetWorksAtEveryPoint(point: MockResponse.Point, count: Int) throws {
        #expect(try outcome(.reset, at: point) == (count, .reset))
    }

    @Test(arguments: [
        (MockResponse.Point.start, 0), (.head(0), 0), (.head(20), 20), (.body(4), headLength + 4),
        (.end, headLength + 10),
    ])
    func closeWorksAtEveryPoint(point: MockResponse.Point, count: Int) throws {
        #expect(try outcome(.close, at: point) == (count, .fin))
        #expect(try outcome(.cut, at: point) == (count, .fin))
    }

    @Test func resetKeepsTheBytesSentBefore() throws {
        let pattern = PatternBody(seed: 1, length: 8_000_000)
        let server = try MockServer()
        server.on("GET", "/", .pattern(pattern).fault(.reset, at: .body(5_000_000)))
        let client = try WireClient(server)
        try client.request("GET", "/")
        _ = try client.head()
        let (bytes, ending) = try client.rest()
        // Compare digests, because the report of a failed comparison of such long arrays would take minutes.
        #expect(SHA256Stream.hex(of: bytes) == pattern[0..<5_000_000].sha256)
        #expect(ending == .reset)
    }

    @Test(arguments: [
        (MockResponse.Point.start, 0), (.head(0), 25), (.head(9), 34), (.body(0), 25 + headLength),
        (.body(3), 28 + headLength), (.end, 35 + headLength),
    ])
    func stallWorksAtEveryPoint(point: MockResponse.Point, before: Int) async throws {
        let gate = Gate()
        let server = try MockServer()
        server.on("GET", "/", .text("0123456789").informational(100).fault(.stall(gate), at: point).closing())
        let shift = point == .start || before <= 34 ? 0 : "Connection: close\r\n".utf8.count
        let client = try WireClient(server)
        try client.request("GET", "/")
        await gate.waitUntilReached()
        #expect(try client.take(before + shift).count == before + shift)
        #expect(client.isQuiet)
        gate.open()
        #expect(try client.rest().ending == .fin)
    }

    @Test func faultWithinAChunkKeepsItsDeclaredSize() throws {
        let server = try MockServer()
        server.on("GET", "/", .text("0123456789").chunked(size: 6).fault(.close, at: .body(8)))
        let client = try WireClient(server)
        try client.request("GET", "/")
        _ = try client.head()
        #expect(try client.rest().bytes == Array("6\r\n012345\r\n4\r\n67".utf8))
    }

    @Test func extraBytesAreSentWithinAndAfterABody() throws {
        let server = try MockServer()
        server.on("GET", "/bad", .text("0123").chunked(size: 2).fault(.send(Array("zz\r\n".utf8)), at: .body(2)))
        server.on("GET", "/surplus", .text("ok").fault(.send(Array("surplus".utf8)), at: .end))
        let client = try WireClient(server)
        try client.request("GET", "/bad")
        _ = try client.head()
        #expect(try client.chunk() == Array("01".utf8))
        #expect(throws: WireError.notHTTP) { try client.chunk() }
        let other = try WireClient(server)
        #expect(try other.exchange("GET", "/surplus").text == "ok")
        #expect(try other.take(7) == Array("surplus".utf8))
        #expect(try other.exchange("GET", "/surplus").text == "ok")
    }

    @Test func drippingAndPausesTakeTime() throws {
        let server = try MockServer()
        let drip = MockResponse.text("0123456789").dripping(bytes: 4, every: .milliseconds(20))
        server.on("GET", "/", drip.fault(.pause(.milliseconds(20)), at: .start))
        let client = try WireClient(server)
        let begin = ContinuousClock.now
        #expect(try client.exchange("GET", "/").text == "0123456789")
        #expect(ContinuousClock.now - begin >= .milliseconds(60))
    }

    @Test func silentResponseEndsWhenTheClientCloses() async throws {
        let server = try MockServer()
        server.on("GET", "/", .silence)
        let client = try WireClient(server)
        try client.request("GET", "/")
        #expect(await server.nextRequest()?.path == "/")
        #expect(client.isQuiet && server.openConnections == 1)
        client.close()
        #expect(await server.waitUntil(openConnections: 0))
    }

    @Test func acceptFaultsApplyByConnectionNumber() throws {
        var options = MockServer.Options()
        options.onAccept = { [[.reset], [.close], [.send([33]), .cut]][safe: $0 - 1] ?? [] }
        let server = try MockServer(options: options)
        #expect(try WireClient(server).rest() == ([], .reset))
        #expect(try WireClient(server).rest() == ([], .fin))
        #expect(try WireClient(server).rest() == ([33], .fin))
        #expect(try WireClient(server).exchange("GET", "/").status == 404)
    }

    @Test func keepAliveConnectionIsClosedWithoutNotice() throws {
        let server = try MockServer()
        server.on("GET", "/", .text("ok").fault(.close, at: .end))
        let client = try WireClient(server)
        let response = try client.exchange("GET", "/")
        #expect(response.text == "ok" && response.field("Connection") == nil)
        #expect(try client.rest() == ([], .fin))
    }

    @Test func disconnectAllClosesIdleConnections() async throws {
        let server = try MockServer()
        let clients = try (0..<3).map { _ in try WireClient(server) }
        for client in clients { #expect(try client.exchange("GET", "/").status == 404) }
        server.disconnectAll()
        for client in clients { #expect(try client.rest() == ([], .fin)) }
        #expect(await server.waitUntil(openConnections: 0))
        #expect(try WireClient(server).exchange("GET", "/").status == 404)
        #expect(server.connectionCount == 4)
    }
}

extension Array {
    subscript(safe index: Int) -> Element? {
        indices.contains(index) ? self[index] : nil
    }
}
