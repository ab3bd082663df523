// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting
import FoundationEssentials
import Testing

/// Connections that end, stall or drip in every phase, and user input that must not inject header lines.
@Suite(.timeLimit(.minutes(5)))
struct WirePhaseTests {
    /// The points at which a chunked response of "hello" is interrupted, with the phase and the body received so far.
    static let points: [(MockResponse.Point, NetworkError.Phase, String?)] = [
        (.start, .waiting, nil), (.head(17), .receiving, nil), (.head(25), .receiving, nil), (.body(0), .receiving, ""),
        (.body(1), .receiving, "h"), (.body(2), .receiving, "he"), (.body(5), .receiving, "hello"),
    ]

    private func expect(
        _ error: NetworkError, _ kind: NetworkError.Kind, _ phase: NetworkError.Phase, _ body: String?,
        _ location: SourceLocation = #_sourceLocation
    ) {
        #expect(error.kind == kind && error.phase == phase, "\(error)", sourceLocation: location)
        #expect((error.response?.status == .ok) == (body != nil), "\(error)", sourceLocation: location)
        #expect(error.body == Array((body ?? "").utf8), "\(error)", sourceLocation: location)
    }

    @Test(arguments: points, ends)
    func connectionLostInEveryPhaseIsReported(
        _ point: (MockResponse.Point, NetworkError.Phase, String?), _ end: SocketFault
    ) async throws {
        for tls in [false, true] {
            let bench = try WireBench(tls: tls) { _ in .text("hello").chunked(size: 2).fault(end, at: point.0) }
            expect(try await bench.failure(), .connectionLost, point.1, point.2)
            #expect(bench.server.requestCount == 1)
        }
    }

    @Test(arguments: ends) func connectionLostAfterAccept(_ end: SocketFault) async throws {
        var options = MockServer.Options()
        options.onAccept = { _ in [end] }
        let error = try await WireBench(options: options) { _ in .text("x") }.failure()
        // The reset may arrive before the connection is established or before the request is sent.
        let wasEarly = error.kind == .cannotConnect && error.phase == .connecting
        let wasLost = error.kind == .connectionLost && [.sending, .waiting].contains(error.phase)
        #expect(wasEarly || wasLost, "\(error)")
        #expect(error.response == nil)
    }

    // MARK: The TLS handshake

    /// The bytes that the server sends before it ends the handshake: no bytes, or the beginning of a ServerHello in a
    /// record of 122 bytes (RFC 8446 §4.1.3).
    static let hellos: [[UInt8]] = [[], [22, 3, 3, 0, 122, 2, 0, 0, 118, 3, 3, 1, 2, 3, 4]]

    private func bench(
        handshake faults: [SocketFault], connect: Duration = .seconds(30)
    ) throws -> (server: MockServer, session: Session) {
        var options = MockServer.Options()
        options.tls.onClientHello = faults
        let server = try MockServer(tls: .selfSigned(), options: options) { _ in .text("hello") }
        let configuration = Session.Configuration { $0.timeouts.connect = connect }
        return (server, Session(configuration, trust: InsecureTrust(reason: "test")))
    }

    @Test(arguments: hellos, ends)
    func connectionLostInTLSHandshakeIsReported(_ hello: [UInt8], _ end: SocketFault) async throws {
        let (server, session) = try bench(handshake: hello.isEmpty ? [end] : [.send(hello), end])
        let error = try await networkError { try await session.data(for: Request(server.url("/"))) }
        expect(error, .connectionLost, .securing, nil)
        #expect(error.retriability == .safe(after: nil) && error.message.contains("TLS handshake"))
        #expect(server.requestCount == 0 && server.connectionCount == 1)
    }

    /// The alerts that a server sends instead of a ServerHello before it closes (RFC 8446 §6).
    ///
    /// They are handshake_failure, protocol_version, internal_error and close_notify. `isAboutTLS` is true if the error
    /// is a TLS error.
    static let alerts: [(level: UInt8, code: UInt8, isAboutTLS: Bool)] = [
        (2, 40, true), (2, 70, true), (2, 80, true), (1, 0, false),
    ]

    @Test(arguments: alerts.indices) func tlsAlertInHandshakeIsReported(_ index: Int) async throws {
        let (level, code, isAboutTLS) = Self.alerts[index]
        let (server, session) = try bench(handshake: [.send([21, 3, 3, 0, 2, level, code]), .close])
        let error = try await networkError { try await session.data(for: Request(server.url("/"))) }
        expect(error, isAboutTLS ? .tlsFailed : .connectionLost, .securing, nil)
        #expect((error.retriability == .never) == isAboutTLS)
        #expect(server.requestCount == 0 && server.connectionCount == 1)
    }

    @Test func interruptedTLSHandshakeIsRetriedForAnyMethod() async throws {
        var options = MockServer.Options()
        options.onAccept = { $0 < 3 ? [.close] : [] }
        let server = try MockServer(tls: .selfSigned(), options: options) { _ in .text("hello") }
        let policy = RetryPolicy(limit: 2, backoff: .none)
        let session = Session(
            Session.Configuration { $0.retry = policy }, trust: InsecureTrust(reason: "test"))
        let (data, _) = try await session.data(for: Request(.post, server.url("/")))
        #expect(data == Data("hello".utf8) && server.requestCount == 1 && server.connectionCount == 3)
    }

    @Test(arguments: hellos)
    func stalledTLSHandshakeTimesOut(_ hello: [UInt8]) async throws {
        let gate = Gate()
        let stall: [SocketFault] = hello.isEmpty ? [.stall(gate)] : [.send(hello), .stall(gate)]
        let (server, session) = try bench(handshake: stall, connect: .seconds(1))
        let error = try await networkError { try await session.data(for: Request(server.url("/"))) }
        expect(error, .timedOut, .securing, nil)
        #expect(error.message.contains("timeouts.connect"), "\(error)")
        #expect(error.retriability == .safe(after: nil))
        #expect(gate.arrivals == 1 && server.requestCount == 0 && server.connectionCount == 1)
        await server.waitUntil(openConnections: 0)
    }

    @Test func delayedTLSHandshakeCompletes() async throws {
        let gate = Gate()
        let (server, session) = try bench(handshake: [.stall(gate)])
        async let answer = session.data(for: Request(server.url("/")))
        await gate.waitUntilReached()
        #expect(server.requestCount == 0)
        gate.open()
        #expect(try await answer.0 == Data("hello".utf8))
    }

    // MARK: Stalls and drips

    @Test(arguments: points)
    func stalledResponseTimesOutInEveryPhase(_ point: (MockResponse.Point, NetworkError.Phase, String?)) async throws {
        for tls in [false, true] {
            let gate = Gate()
            let bench = try WireBench(tls: tls, idle: .seconds(2)) { _ in
                .text("hello").chunked(size: 2).fault(.stall(gate), at: point.0)
            }
            let error = try await bench.failure()
            expect(error, .timedOut, point.1, point.2)
            #expect(error.message.contains("timeouts.idle"), "\(error)")
            #expect(!gate.isOpen && gate.arrivals == 1)
        }
    }

    @Test func responseInSingleBytesIsParsed() async throws {
        let bench = try WireBench { _ in
            .raw("HTTP/1.1 200 OK\r\nA: b\r\n  c\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX: y\r\n\r\n")
                .dripping(bytes: 1, every: .milliseconds(1))
        }
        let response = try await bench.session.transfer(Request(bench.server.url("/"))).response()
        #expect(response.head["A"] == "b c" && response.value == Data("hello".utf8) && response.trailers == ["X": "y"])
    }

    @Test(arguments: [
        "HTTP/1.1 200 OK\r\nX: ", "HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9;",
    ])
    func totalTimeoutEndsEndlessDrip(_ start: String) async throws {
        let server = try MockServer { _ in
            .raw(start + String(repeating: "x", count: 100_000)).dripping(bytes: 1, every: .milliseconds(5))
        }
        let session = Session { $0.timeouts = Timeouts(idle: .seconds(30), total: .seconds(2)) }
        let error = try await networkError { try await session.data(for: Request(server.url("/"))) }
        #expect(error.kind == .timedOut && error.phase == .receiving, "\(error)")
        #expect(error.message.contains("timeouts.total"))
    }

    // MARK: User input

    @Test(arguments: ["Host", "content-length", "Transfer-Encoding"])
    func framingFieldsOfSessionAreRefused(_ name: String) async throws {
        let server = try MockServer()
        let session = Session { $0.fields = [HeaderName(name): "1"] }
        let error = try await networkError { try await session.data(for: Request(server.url("/"))) }
        #expect(error.kind == .invalidRequest && error.phase == .preparing)
        #expect(server.connectionCount == 0)
    }

    @Test(arguments: ["\r\nX: y", "\n", "\r", "\u{0}"]) func lineBreaksInRequestTextsAreRefused(_ harm: String)
        async throws
    {
        let server = try MockServer { _ in .text("x") }
        let url = server.url("/")
        let requests = [
            Request(url + harm), Request("http://127.0.0.1\(harm):\(server.port)/"),
            Request("http://u\(harm)@127.0.0.1/"),
            Request(url + "?q=\(harm)"), Request(url + "#f\(harm)"), Request("http\(harm)://127.0.0.1/"),
            Request(Method("GET\(harm)"), url), Request(url, fields: [HeaderName("A\(harm)"): "b"]),
            Request(url, fields: ["A": "b\(harm)"]), Request(.post, url, body: .file("/etc/hostname\(harm)")),
        ]
        for request in requests {
            let error = try await networkError { try await Session().data(for: request) }
            #expect(error.kind == .invalidRequest && error.phase == .preparing, "\(error)")
        }
        for fields: HeaderFields in [[HeaderName("A\(harm)"): "b"], ["User-Agent": "b\(harm)"]] {
            let error = try await networkError { try await Session { $0.fields = fields }.data(for: Request(url)) }
            #expect(error.kind == .invalidRequest && error.phase == .preparing, "\(error)")
        }
        #expect(server.connectionCount == 0)
        // A label is only displayed, so it may contain any text.
        var labelled = Request(url)
        labelled.options.label = "a\(harm)"
        #expect(try await Session().data(for: labelled).0 == Data("x".utf8))
        #expect(server.requests.first?.fields.contains { $0.value.contains("X: y") } == false)
        #expect(server.violations.isEmpty)
    }
}
