// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting
import FoundationEssentials
import Testing

/// Metrics of successful, failed and cancelled transfers.
@Suite(.timeLimit(.minutes(5)))
struct MetricsTests {
    private func expectPlausible(
        _ metrics: TransferMetrics, _ location: SourceLocation = #_sourceLocation
    ) {
        let phases = [
            metrics.queued, metrics.resolve, metrics.connect, metrics.secure, metrics.send, metrics.wait,
            metrics.receive,
        ]
        #expect(phases.allSatisfy { $0 >= .zero }, "\(metrics)", sourceLocation: location)
        #expect(phases.reduce(.zero, +) <= metrics.total + .milliseconds(2), "\(metrics)", sourceLocation: location)
        #expect(metrics.total < .seconds(60), sourceLocation: location)
    }

    /// Returns the number of bytes of the head of a recorded request.
    private func headLength(of request: RecordedRequest) -> Int64 {
        let line = "\(request.method) \(request.target) \(request.version)\r\n"
        let fields = request.fields.map { "\($0.name): \($0.value)\r\n" }.joined()
        return Int64((line + fields + "\r\n").utf8.count)
    }

    private func measure(
        _ request: Request, _ server: MockServer, in session: Session = Session()
    ) async throws -> TransferMetrics {
        let transfer = session.transfer(request)
        #expect(transfer.metrics == nil)
        let metrics = try await transfer.response().metrics
        #expect(transfer.metrics == metrics)
        expectPlausible(metrics)
        #expect(metrics.requestHeadBytes == headLength(of: try #require(server.requests.last)))
        return metrics
    }

    @Test func downloadBytesAreCounted() async throws {
        let server = try MockServer { _ in .bytes(Array(repeating: 1, count: 12_345)) }
        let metrics = try await measure(Request(server.url("/path?query")), server)
        let head = "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: 12345\r\n\r\n"
        #expect(metrics.responseHeadBytes == Int64(head.utf8.count))
        #expect(metrics.responseBodyBytes == 12_345)
        #expect(metrics.requestBodyBytes == 0)
        #expect(metrics.version == .http1_1)
    }

    @Test func bodyBytesExcludeChunkFraming() async throws {
        let server = try MockServer { _ in .bytes(Array(repeating: 1, count: 12_345)).chunked(size: 100) }
        let metrics = try await measure(Request(server.url("/")), server)
        #expect(metrics.responseBodyBytes == 12_345)
    }

    @Test(arguments: [1, 1000, 65_536, 65_537, 3 << 20], ["bytes", "known", "unknown"])
    func uploadBytesAreCounted(_ length: Int, _ origin: String) async throws {
        let server = try MockServer { _ in .status(204) }
        let pattern = PatternBody(seed: 1, length: length)
        let body: RequestBody =
            switch origin {
            case "bytes": .bytes(pattern.bytes)
            case "known": .stream(ChunkSource(body: pattern), length: Int64(length))
            default: .stream(ChunkSource(body: pattern))
            }
        let metrics = try await measure(Request(.put, server.url("/"), body: body), server)
        #expect(metrics.requestBodyBytes == Int64(length))
        #expect(metrics.responseBodyBytes == 0)
        let asked = server.requests.first?.sentContinue == true ? "HTTP/1.1 100 Continue\r\n\r\n" : ""
        #expect(metrics.responseHeadBytes == Int64((asked + "HTTP/1.1 204 No Content\r\n\r\n").utf8.count))
    }

    @Test func connectionMetricsDistinguishNewAndReusedConnections() async throws {
        let server = try MockServer { _ in .text("x") }
        let session = Session()
        let first = try await measure(Request(server.url("/")), server, in: session)
        let second = try await measure(Request(server.url("/")), server, in: session)
        #expect(!first.isConnectionReused && second.isConnectionReused)
        #expect(first.connect > .zero && first.secure == .zero)
        #expect(second.resolve == .zero && second.connect == .zero && second.secure == .zero)
        for metrics in [first, second] {
            #expect(metrics.remoteAddress == "127.0.0.1:\(server.port)")
            #expect(metrics.localAddress.hasPrefix("127.0.0.1:"))
            #expect(metrics.tlsVersion == nil && metrics.tlsCipher == nil && !metrics.isTLSSessionResumed)
        }
        #expect(first.localAddress == second.localAddress)
    }

    @Test func handshakeMetricsDistinguishNewAndReusedConnections() async throws {
        let authority = try TestAuthority()
        let server = try MockServer(tls: authority.issue()) { _ in .text("x") }
        let session = try Session(trust: CustomRoots(pem: authority.certificatePEM))
        let first = try await measure(Request(server.url("/")), server, in: session)
        let second = try await measure(Request(server.url("/")), server, in: session)
        #expect(first.secure > .zero && second.secure == .zero && second.isConnectionReused)
        for metrics in [first, second] {
            #expect(metrics.tlsVersion == "TLSv1.3")
            #expect(metrics.tlsCipher?.hasPrefix("TLS_") == true)
        }
    }

    @Test func durationsAreAssignedToTheirPhases() async throws {
        let pause = Duration.seconds(2)
        let server = try MockServer()
        server.on("GET", "/wait", .text("hello").fault(.pause(pause), at: .start))
        server.on("GET", "/receive", .text("hello").fault(.pause(pause), at: .body(1)))
        let session = Session { $0.limits.transfersPerHost = 1 }
        let slow = session.transfer(Request(server.url("/wait")))
        let late = session.transfer(Request(server.url("/receive")))
        slow.start()
        late.start()
        let waited = try await slow.response().metrics
        let received = try await late.response().metrics
        for metrics in [waited, received] { expectPlausible(metrics) }
        // On a busy machine, a pause may be noticed late at its beginning, but never ends early.
        #expect(waited.wait > pause / 2 && received.receive > pause / 2)
        #expect(waited.wait > waited.receive)
        #expect(received.queued >= pause)
        #expect(waited.total >= pause && received.total > received.queued + pause / 2)
    }

    /// The time between a 100 or 103 and the final response counts as waiting, not as receiving.
    @Test(arguments: [true, false]) func informationalResponsesDoNotEndTheWait(_ isContinue: Bool) async throws {
        let pause = Duration.seconds(2)
        let server = try MockServer { _ in
            let answer = MockResponse.text("hello").fault(.pause(pause), at: .start)
            return isContinue ? answer : answer.informational(103)
        }
        let session = Session { $0.http.expectContinue = isContinue ? .always : .never }
        let request = Request(.put, server.url("/"), body: .bytes(Array(repeating: 1, count: 2 << 20)))
        let metrics = try await session.transfer(request).response().metrics
        expectPlausible(metrics)
        #expect(metrics.responseHeadBytes > 60, "no informational head was sent")
        #expect(metrics.wait > pause / 2 && metrics.wait > metrics.receive, "\(metrics)")
    }

    @Test func metricsAreKeptAfterAFailure() async throws {
        let server = try MockServer { _ in
            .bytes(Array(repeating: 1, count: 5000)).fault(.cut, at: .body(3000))
        }
        let transfer = Session().transfer(Request(server.url("/")))
        _ = try await networkError { try await transfer.value }
        let metrics = try #require(transfer.metrics)
        expectPlausible(metrics)
        #expect(metrics.responseBodyBytes == 3000)
        #expect(metrics.requestHeadBytes == headLength(of: try #require(server.requests.first)))
        #expect(metrics.remoteAddress == "127.0.0.1:\(server.port)")
        #expect(metrics.total > .zero)
    }

    @Test func metricsAreKeptAfterARefusedConnection() async throws {
        let port = try #require(ClosedPort())
        let transfer = Session().transfer(Request("http://127.0.0.1:\(port.number)/"))
        let error = try await networkError { try await transfer.value }
        #expect(error.kind == .cannotConnect, "\(error)")
        let metrics = try #require(transfer.metrics)
        expectPlausible(metrics)
        #expect(metrics.requestHeadBytes == 0 && metrics.responseHeadBytes == 0)
        #expect(!metrics.isConnectionReused)
    }

    @Test func metricsAreKeptAfterACancellation() async throws {
        let gate = Gate()
        let server = try MockServer { _ in
            .text("hello").fault(.pause(.seconds(1)), at: .start).fault(.stall(gate), at: .body(3))
        }
        let session = Session()
        let transfer = session.transfer(Request(server.url("/"))).start()
        await gate.waitUntilReached()
        await session.waitUntil(transfer, has: 3, \.received)
        transfer.cancel()
        let error = try await networkError { try await transfer.value }
        let metrics = try #require(transfer.metrics)
        expectPlausible(metrics)
        #expect(metrics.responseBodyBytes == 3)
        #expect(metrics.wait >= .milliseconds(60) && metrics.total >= .seconds(1))
        #expect(try #require(error.duration) >= .milliseconds(60))
    }

    @Test func metricsAreKeptAfterACancellationInTheQueue() async throws {
        let gate = Gate()
        let server = try MockServer { _ in .text("x").fault(.stall(gate), at: .start) }
        let session = Session { $0.limits.transfersPerHost = 1 }
        let held = session.transfer(Request(server.url("/"))).start()
        let queued = session.transfer(Request(server.url("/"))).start()
        await gate.waitUntilReached()
        queued.cancel()
        _ = try await networkError { try await queued.value }
        let metrics = try #require(queued.metrics)
        expectPlausible(metrics)
        #expect(metrics.queued > .zero && metrics.total >= metrics.queued)
        #expect(metrics.remoteAddress.isEmpty && metrics.requestHeadBytes == 0)
        gate.open()
        _ = try await held.value
    }

    @Test func descriptionContainsTotalAndAddress() async throws {
        let server = try MockServer { _ in .text("hello") }
        let text = try await measure(Request(server.url("/")), server).description
        #expect(text.contains(" total") && text.contains("HTTP/1.1 to 127.0.0.1:\(server.port)"))
    }
}
