// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewTesting
import Testing

@Suite(.timeLimit(.minutes(5)))
struct LifecycleTests {
    @Test func serverURLsContainOriginAndPath() throws {
        let server = try MockServer()
        #expect(server.origin == "http://127.0.0.1:\(server.port)")
        #expect(server.url("a?b") == server.origin + "/a?b" && server.url("/a") == server.origin + "/a")
        #expect(server.url() == server.origin + "/")
    }

    @Test func serverListensOnIPv6() throws {
        let server = try MockServer(address: .v6)
        #expect(server.origin == "http://[::1]:\(server.port)")
        #expect(try WireClient(server, address: .v6).exchange("GET", "/").status == 404)
    }

    @Test func nextRequestReturnsRequestsInOrderAndThenWaits() async throws {
        let server = try MockServer()
        let client = try WireClient(server)
        _ = try client.exchange("GET", "/1")
        _ = try client.exchange("GET", "/2")
        #expect(await server.nextRequest()?.path == "/1")
        #expect(await server.nextRequest()?.path == "/2")
        async let third = server.nextRequest()
        try client.request("GET", "/3")
        #expect(await third?.path == "/3")
        #expect(server.requests.count == 3)
    }

    @Test func stopEndsNextRequest() async throws {
        let server = try MockServer()
        _ = try WireClient(server).exchange("GET", "/")
        async let first = server.nextRequest()
        async let second = server.nextRequest()
        server.stop()
        let paths = await [first?.path, second?.path].compactMap { $0 }
        #expect(paths == ["/"])
        #expect(await server.nextRequest() == nil)
    }

    @Test func cancellationEndsEveryWait() async throws {
        let server = try MockServer()
        let gate = Gate()
        let tasks = [
            Task { await server.nextRequest() == nil },
            Task { await !gate.wait() },
            Task { await !gate.waitUntilReached() },
            Task { await !server.waitUntil(openConnections: 7) },
        ]
        for task in tasks { task.cancel() }
        for task in tasks { #expect(await task.value) }
    }

    @Test func openGateLetsAllThrough() async throws {
        let gate = Gate()
        let server = try MockServer()
        server.on("GET", "/", .text("ok").fault(.stall(gate), at: .start))
        let clients = try (0..<3).map { _ in try WireClient(server) }
        for client in clients { try client.request("GET", "/") }
        await gate.waitUntilReached(times: 3)
        #expect(gate.arrivals == 3 && !gate.isOpen)
        async let passed = gate.wait()
        gate.open()
        gate.open()
        #expect(await passed && gate.isOpen)
        for client in clients { #expect(try client.response().text == "ok") }
        #expect(try WireClient(server).exchange("GET", "/").text == "ok")
    }

    @Test func stopEndsConnectionsInEveryState() async throws {
        var options = MockServer.Options()
        options.socketBufferSize = 8192
        let (gate, second) = (Gate(), Gate())
        let server = try MockServer(options: options)
        server.on("GET", "/stall", .text("x").fault(.stall(gate), at: .start))
        server.on("GET", "/pause", .text("x").fault(.pause(.seconds(600)), at: .body(0)))
        server.on("GET", "/full", .pattern(PatternBody(seed: 1, length: 1 << 40)))
        server.on("POST", "/body", .text("x"), reading: .whole.stalling(at: second, after: 1))
        let clients = try (0..<5).map { _ in try WireClient(server) }
        try clients[0].request("GET", "/stall")
        try clients[1].request("GET", "/pause")
        try clients[2].request("GET", "/full")
        try clients[3].send("POST /body HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\na")
        await gate.waitUntilReached()
        await second.waitUntilReached()
        #expect(await server.waitUntil(connectionCount: 5))
        #expect(try clients[1].head().status == 200)
        #expect(try clients[2].head().status == 200)
        server.stop()
        #expect(server.openConnections == 0)
        #expect(throws: WireError.cannotConnect) { try WireClient(server) }
        server.stop()
    }

    @Test func releaseOfTheLastReferenceStopsTheServer() throws {
        var server = try Optional(MockServer())
        let client = try WireClient(try #require(server))
        _ = try client.exchange("GET", "/")
        server = nil
        #expect(try client.rest() == ([], .fin))
    }

    @Test func routeMayStopItsServer() async throws {
        let server = try MockServer()
        server.on("GET", "/") { _ in
            server.stop()
            return .text("too late")
        }
        let client = try WireClient(server)
        try client.request("GET", "/")
        _ = try client.rest()
        server.stop()
        #expect(server.openConnections == 0)
        #expect(throws: WireError.cannotConnect) { try WireClient(server) }
    }

    @Test func serverRestartsOnTheSamePort() throws {
        let first = try MockServer()
        let client = try WireClient(first)
        _ = try client.exchange("GET", "/")
        first.stop()
        var options = MockServer.Options()
        options.port = first.port
        let second = try MockServer(options: options)
        #expect(second.port == first.port)
        #expect(try WireClient(second).exchange("GET", "/").status == 404)
        #expect(throws: TestingError.self) { try MockServer(options: options) }
    }

    @Test func sixHundredConcurrentConnectionsAreServed() async throws {
        raiseDescriptorLimit()
        let gate = Gate()
        let server = try MockServer()
        server.on("GET", "/", .text("ok").fault(.stall(gate), at: .start))
        let clients = try (0..<600).map { _ in try WireClient(server) }
        for client in clients { try client.request("GET", "/") }
        await gate.waitUntilReached(times: 600)
        #expect(server.openConnections == 600)
        gate.open()
        for client in clients { #expect(try client.response().text == "ok") }
        for client in clients { client.close() }
        #expect(await server.waitUntil(openConnections: 0))
    }

    @Test func bytesSentAreCountedAndLimitedByAnUnreadConnection() async throws {
        var options = MockServer.Options()
        options.socketBufferSize = 16_384
        let server = try MockServer(options: options)
        server.on("GET", "/big", .pattern(PatternBody(seed: 2, length: 1 << 40)))
        server.on("GET", "/small", .text("0123456789"))
        let small = try WireClient(server)
        try small.request("GET", "/small")
        let length = try small.head().fields.reduce(19) { $0 + $1.name.utf8.count + $1.value.utf8.count + 4 } + 10
        _ = try small.take(10)
        server.disconnectAll()
        #expect(await server.waitUntil(openConnections: 0))
        #expect(server.bytesSent == length)
        let big = try WireClient(server)
        try big.request("GET", "/big")
        _ = try big.head()
        // The kernel's buffers of both sides limit the bytes of an unread response.
        #expect(server.bytesSent < 64 << 20)
    }

    @Test func recordedRequestsAreLimitedToTenThousand() async throws {
        let server = try MockServer()
        server.on("GET", "/*", .status(204))
        let client = try WireClient(server)
        for batch in 0..<201 {
            let requests = (0..<100).map { "GET /\(batch * 100 + $0) HTTP/1.1\r\nHost: a\r\n\r\n" }
            try client.send(requests.joined())
            for _ in 0..<100 { _ = try client.response() }
        }
        #expect(server.requests.count == 10_000)
        #expect(server.requests.first?.path == "/10100" && server.requests.last?.path == "/20099")
        #expect(await server.nextRequest()?.path == "/10000")
    }
}
