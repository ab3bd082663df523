// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting
import FoundationEssentials
import Glibc
import Testing

/// Bytes and closes by the server on an idle connection, which must never affect the next request.
@Suite(.timeLimit(.minutes(5)))
struct IdleConnectionTests {
    private static let stray = "HTTP/1.1 408 Request Timeout\r\nContent-Length: 6\r\nConnection: close\r\n\r\nforged"

    /// Returns a server that applies `faults` to the connection after its response to "/first", when `gate` opens.
    private func server(_ faults: [SocketFault], identity: TestIdentity? = nil, gate: Gate) throws -> MockServer {
        let server = try MockServer(tls: identity) { .text("answer to \($0.path)") }
        var first = MockResponse.text("first").fault(.stall(gate), at: .end)
        for fault in faults { first = first.fault(fault, at: .end) }
        let done = Gate()
        server.on("GET", "/first", first.fault(.stall(done), at: .end))
        return server
    }

    @Test(arguments: [stray, "x", "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged", "\r\n"], [false, true])
    func unsolicitedBytesOnIdleConnectionAreNotAResponse(_ bytes: String, isSecure: Bool) async throws {
        let gate = Gate()
        let authority = try TestAuthority()
        let server = try server([.send(Array(bytes.utf8))], identity: isSecure ? authority.issue() : nil, gate: gate)
        let session = try Session(trust: CustomRoots(pem: authority.certificatePEM))
        #expect(try await session.data(for: Request(server.url("/first"))).0 == Data("first".utf8))
        gate.open()
        // The connection ends because of the bytes alone: the server keeps it open.
        await server.waitUntil(openConnections: 0)
        for path in ["/a", "/b"] {
            let (data, head) = try await session.data(for: Request(server.url(path)))
            #expect(head.status == .ok && data == Data("answer to \(path)".utf8))
        }
        #expect(server.connectionCount == 2)
    }

    /// Extra bytes after a response without a body: the first ones with or after its head, the rest once the connection
    /// is idle.
    @Test(arguments: [false, true], [false, true])
    func unsolicitedBytesInTwoWritesAreNotAResponse(isTogether: Bool, isSecure: Bool) async throws {
        let gate = Gate()
        let done = Gate()
        let authority = try TestAuthority()
        let server = try MockServer(tls: isSecure ? authority.issue() : nil) { .text("answer to \($0.path)") }
        let forged = Array("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged".utf8)
        let (start, rest) = (forged.prefix(20), Array(forged.dropFirst(20)))
        let head = Array("HTTP/1.1 204 No Content\r\n\r\n".utf8)
        let first = isTogether ? MockResponse.raw(head + start) : .raw(head).fault(.send(Array(start)), at: .end)
        server.on(
            "GET", "/first",
            first.fault(.stall(gate), at: .end).fault(.send(rest), at: .end).fault(.stall(done), at: .end))
        let session = try Session(trust: CustomRoots(pem: authority.certificatePEM))
        #expect(try await session.data(for: Request(server.url("/first"))).1.status == .noContent)
        gate.open()
        // The connection ends because of the bytes alone: the server keeps it open.
        await server.waitUntil(openConnections: 0)
        for path in ["/a", "/b"] {
            let (data, head) = try await session.data(for: Request(server.url(path)))
            #expect(head.status == .ok && data == Data("answer to \(path)".utf8))
        }
        #expect(server.connectionCount == 2 && server.violations.isEmpty)
    }

    /// libcurl 7.88 drops bytes that arrive with the head of a response without a body, and keeps the connection.
    @Test(
        arguments: ["HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged", "HTTP/1.1 200 OK\r\n", "x"], [false, true])
    func unsolicitedBytesWithBodilessHeadAreNotAResponse(_ bytes: String, isSecure: Bool) async throws {
        let authority = try TestAuthority()
        let server = try MockServer(tls: isSecure ? authority.issue() : nil) { .text("answer to \($0.path)") }
        server.on("GET", "/first", .raw("HTTP/1.1 204 No Content\r\n\r\n" + bytes))
        let session = try Session(trust: CustomRoots(pem: authority.certificatePEM))
        for path in ["/a", "/b"] {
            #expect(try await session.data(for: Request(server.url("/first"))).1.status == .noContent)
            let (data, head) = try await session.data(for: Request(server.url(path)))
            #expect(head.status == .ok && data == Data("answer to \(path)".utf8))
        }
        #expect(server.violations.isEmpty)
    }

    @Test func postOnClosedConnectionIsNotRetried() async throws {
        let server = try MockServer()
        server.on(nil, "/") { $0.ordinal == 1 ? .text("fresh") : .raw("").fault(.close, at: .start) }
        let session = Session()
        for body in [RequestBody.text("order"), .bytes(PatternBody(seed: 1, length: 100_000).bytes)] {
            _ = try await session.data(for: Request(server.url("/")))
            let before = server.requestCount
            let error = try await networkError {
                try await session.data(for: Request(.post, server.url("/"), body: body))
            }
            #expect(error.kind == .connectionLost && error.phase == .waiting)
            #expect(error.retriability == .ifIdempotent)
            #expect(error.message.contains("reused connection"))
            #expect(server.requestCount == before + 1, "sent once")
        }
    }

    /// The server has read the whole request when it ends the connection.
    @Test(arguments: [false, true], [SocketFault.close, .cut, .reset])
    func postIsResentWithResendingOption(isSecure: Bool, _ end: SocketFault) async throws {
        let authority = try TestAuthority()
        let server = try MockServer(tls: isSecure ? authority.issue() : nil)
        server.on(nil, "/") { $0.ordinal == 1 ? .text("fresh") : .raw("").fault(end, at: .start) }
        let session = try Session(trust: CustomRoots(pem: authority.certificatePEM))
        for body in [RequestBody.text("order"), .bytes(PatternBody(seed: 1, length: 100_000).bytes)] {
            _ = try await session.data(for: Request(server.url("/")))
            let before = server.requestCount
            var request = Request(.post, server.url("/"), body: body)
            request.options.connection = .resending
            #expect(try await session.data(for: request).0 == Data("fresh".utf8))
            #expect(server.requestCount == before + 2, "sent twice")
        }
    }

    /// A new connection was not closed for being idle, and a response that has begun shows that the server has acted.
    @Test(arguments: [1, 2]) func resendingPostIsSentOnceWhenServerMayHaveActed(_ ordinal: Int) async throws {
        let server = try MockServer()
        let fault = MockResponse.raw(ordinal == 1 ? "" : "HTTP/1.1 200 OK\r\nConten").fault(.close, at: .end)
        server.on(nil, "/") { $0.ordinal == ordinal ? fault : .text("fresh") }
        let session = Session()
        if ordinal == 2 { _ = try await session.data(for: Request(server.url("/"))) }
        var request = Request(.post, server.url("/"), body: .text("order"))
        request.options.connection = .resending
        let error = try await networkError { try await session.data(for: request) }
        #expect(error.kind == .connectionLost && error.retriability == .ifIdempotent, "\(error)")
        #expect(server.requestCount == ordinal, "sent once")
    }

    /// The server has closed the connection when libcurl gets the request, and the loop has not noticed it yet.
    @Test(arguments: [false, true], [SocketFault.close, .cut])
    func connectionClosedRightBeforePostIsNotUsed(isSecure: Bool, _ end: SocketFault) async throws {
        let authority = try TestAuthority()
        let gate = Gate()
        let server = try MockServer(tls: isSecure ? authority.issue() : nil) { .text("answer to \($0.path)") }
        server.on("GET", "/first", MockResponse.text("first").fault(.stall(gate), at: .end).fault(end, at: .end))
        let session = try Session(trust: CustomRoots(pem: authority.certificatePEM))
        _ = try await session.data(for: Request(server.url("/first")))
        // This runs on the loop's thread, so the loop cannot check the connection meanwhile.
        let transfer = await Task(executorPreference: session.executor) {
            gate.open()
            while server.openConnections > 0 { sched_yield() }
            let transfer = session.transfer(Request(.post, server.url("/second"), body: .text("order")))
            transfer.start()
            return transfer
        }.value
        #expect(try await transfer.value == Data("answer to /second".utf8))
        #expect(server.connectionCount == 2)
    }

    @Test(arguments: ["GET", "HEAD", "PUT", "DELETE", "OPTIONS"])
    func idempotentRequestsAreRetriedOnClosedConnection(_ method: String) async throws {
        let server = try MockServer()
        server.on(nil, "/") { $0.ordinal == 1 ? .text("fresh") : .raw("").fault(.close, at: .start) }
        let session = Session()
        for _ in 0..<5 {
            let head = try await session.data(for: Request(Method(rawValue: method), server.url("/"))).1
            #expect(head.status == .ok)
        }
        #expect(server.connectionCount == 5)
        #expect(server.requests.filter { $0.method == method }.count == 9)
    }

    @Test func closedIdleConnectionsAreDetectedBeforePost() async throws {
        let server = try MockServer { .text($0.path) }
        let session = Session()
        for _ in 0..<5 {
            #expect(try await session.data(for: Request(.post, server.url("/"), body: .text("x"))).1.status == .ok)
            server.disconnectAll()
            await server.waitUntil(openConnections: 0)
        }
        #expect(server.requestCount == 5)
    }
}
