// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import Curlew
import CurlewEngine
import CurlewTesting
import FoundationEssentials
import Testing

/// A transfer that ends at the client ends its stream at the server at once (RFC 9113 §5.4.2).
///
/// The client sends RST_STREAM if the connection has other streams; otherwise it may close the connection.
@Suite(.timeLimit(.minutes(5)))
struct HTTP2CancellationTests {
    private static let upload = PatternBody(seed: 1, length: 8 << 20)

    /// A download that stays open until its gate opens.
    private struct Neighbour {
        let gate = Gate()
        var transfer: Transfer<Data>?

        static let path = "/neighbour"
        var script: HTTP2Script { .now.head(200).body("x").fault(.stall(gate)).body("y", endStream: true) }

        mutating func start(_ scene: HTTP2Scene) async {
            let started = scene.session.transfer(scene.request(Neighbour.path))
            started.start()
            await gate.waitUntilReached()
            _ = await scene.server.nextRequest()
            transfer = started
        }

        /// Opens the gate and returns the body.
        func value() async throws -> Data? {
            gate.open()
            return try await transfer?.value
        }
    }

    private func scene(
        _ neighbour: Neighbour, _ script: HTTP2Script
    ) throws -> HTTP2Scene {
        try HTTP2Scene(idle: .seconds(300)) { $0.path == Neighbour.path ? neighbour.script : script }
    }

    /// Expects that the server receives the end of the request's stream.
    private func expectEnd(
        of request: RecordedRequest, isAlone: Bool, _ scene: HTTP2Scene,
        _ location: SourceLocation = #_sourceLocation
    ) async {
        let ended = await scene.server.wait(for: request) { $0.resetCode != nil || $0.isConnectionClosed }
        #expect(ended != nil, sourceLocation: location)
        if !isAlone { #expect(ended?.resetCode != nil, sourceLocation: location) }
        #expect(ended?.isBodyComplete == request.isBodyComplete, sourceLocation: location)
        #expect(scene.server.violations.isEmpty, sourceLocation: location)
    }

    @Test(arguments: [HTTP2Script.now, .now.head(200).body("abc")], [true, false])
    func cancellingSilentDownloadEndsItsStream(_ script: HTTP2Script, _ isAlone: Bool) async throws {
        var neighbour = Neighbour()
        let gate = Gate()
        let scene = try scene(neighbour, script.fault(.stall(gate)))
        if !isAlone { await neighbour.start(scene) }
        let transfer = scene.session.transfer(scene.request())
        transfer.start()
        let request = try #require(await scene.server.nextRequest())
        await gate.waitUntilReached()
        transfer.cancel()
        await expectEnd(of: request, isAlone: isAlone, scene)
        if !isAlone { #expect(try await neighbour.value() == Data("xy".utf8)) }
    }

    @Test(arguments: [true, false]) func cancellingRunningDownloadEndsItsStream(_ isAlone: Bool) async throws {
        var neighbour = Neighbour()
        let scene = try scene(neighbour, .now.head(200).body(PatternBody(seed: 2, length: 1 << 40)))
        if !isAlone { await neighbour.start(scene) }
        let transfer = scene.session.transfer(scene.request())
        var chunks = transfer.bytes.makeAsyncIterator()
        for _ in 0..<3 { _ = try await chunks.next() }
        let request = try #require(await scene.server.nextRequest())
        transfer.cancel()
        await expectEnd(of: request, isAlone: isAlone, scene)
        if !isAlone { #expect(try await neighbour.value() == Data("xy".utf8)) }
    }

    /// - Parameter bytes: The number of bytes after which the server stops reading: within the first window, or later.
    @Test(arguments: [1, 1_000_000], [true, false]) func cancellingUploadEndsItsStream(_ bytes: Int, _ isAlone: Bool)
        async throws
    {
        var neighbour = Neighbour()
        let scene = try scene(neighbour, .now.reading(bytes: bytes).withholdingWindow().reading())
        if !isAlone { await neighbour.start(scene) }
        let transfer = scene.session.transfer(scene.post(.bytes(Self.upload.bytes)))
        transfer.start()
        let request = try #require(await scene.server.nextRequest())
        _ = await scene.server.wait(for: request) { $0.bodyLength >= bytes }
        transfer.cancel()
        let error = try await networkError { try await transfer.value }
        #expect(error.kind == .cancelled && error.phase == .sending)
        await expectEnd(of: request, isAlone: isAlone, scene)
        if !isAlone { #expect(try await neighbour.value() == Data("xy".utf8)) }
    }

    @Test(arguments: [true, false]) func totalTimeoutEndsItsStream(_ isAlone: Bool) async throws {
        var neighbour = Neighbour()
        let scene = try scene(neighbour, .now.head(200).body("abc"))
        if !isAlone { await neighbour.start(scene) }
        var request = scene.request()
        request.options.timeouts = Timeouts(total: .seconds(2))
        let error = try await scene.failure(request)
        // On a busy machine, the timeout may end the transfer before the head arrives.
        #expect(error.kind == .timedOut && [.waiting, .receiving].contains(error.phase))
        let seen = try #require(await scene.server.nextRequest())
        await expectEnd(of: seen, isAlone: isAlone, scene)
        if !isAlone { #expect(try await neighbour.value() == Data("xy".utf8)) }
    }

    @Test(arguments: [[], [(name: "content-length", value: "1000000")]], [true, false])
    func responseLimitEndsItsStream(_ fields: [(name: String, value: String)], _ isAlone: Bool) async throws {
        var neighbour = Neighbour()
        let scene = try scene(
            neighbour, .now.head(200, fields).body(PatternBody(seed: 2, length: 1_000_000)))
        if !isAlone { await neighbour.start(scene) }
        var request = scene.request()
        request.options.responseLimit = .bytes(100_000)
        let error = try await scene.failure(request)
        #expect(error.kind == .bodyTooLarge && error.phase == .receiving && error.response?.status == .ok)
        let seen = try #require(await scene.server.nextRequest())
        await expectEnd(of: seen, isAlone: isAlone, scene)
        if !isAlone { #expect(try await neighbour.value() == Data("xy".utf8)) }
    }

    /// The connection of a cancelled stream serves the next request.
    @Test(arguments: [HTTP2Script.now, .now.head(200).body("abc")])
    func connectionIsReusedAfterCancelledDownload(_ script: HTTP2Script) async throws {
        let gate = Gate()
        let scene = try keepingScene(script.fault(.stall(gate)))
        let transfer = scene.session.transfer(scene.request("/cut"))
        transfer.start()
        await gate.waitUntilReached()
        transfer.cancel()
        try await expectKept(scene)
    }

    @Test(arguments: [[], [(name: "content-length", value: "1000000")]])
    func connectionIsReusedAfterResponseLimit(_ fields: [(name: String, value: String)]) async throws {
        let scene = try keepingScene(.now.head(200, fields).body("abcdef"))
        var request = scene.request("/cut")
        request.options.responseLimit = .bytes(5)
        #expect(try await scene.failure(request).kind == .bodyTooLarge)
        try await expectKept(scene)
    }

    @Test(arguments: [HTTP2Script.now, .now.head(200).body("abc")])
    func connectionIsReusedAfterTimeout(_ script: HTTP2Script) async throws {
        let scene = try keepingScene(script)
        // The first request opens the connection, because the timeout might end a connection attempt.
        _ = try await scene.session.data(for: scene.request())
        var request = scene.request("/cut")
        request.options.timeouts = Timeouts(total: .milliseconds(300))
        #expect(try await scene.failure(request).kind == .timedOut)
        try await expectKept(scene)
    }

    private func keepingScene(_ script: HTTP2Script) throws -> HTTP2Scene {
        try HTTP2Scene(idle: .seconds(300)) { $0.path == "/cut" ? script : .respond(200, text: "next") }
    }

    /// Expects RST_STREAM for the stream, and the next request on the same connection.
    private func expectKept(_ scene: HTTP2Scene, _ location: SourceLocation = #_sourceLocation) async throws {
        let seen = try #require(scene.server.requests.first { $0.path == "/cut" }, sourceLocation: location)
        await expectEnd(of: seen, isAlone: CurlVersion.current.sharesPlainHTTP2, scene, location)
        let (data, _) = try await scene.session.data(for: scene.request())
        #expect(data == Data("next".utf8), sourceLocation: location)
        #expect(scene.server.violations.isEmpty, sourceLocation: location)
        if CurlVersion.current.sharesPlainHTTP2 { return }
        #expect(scene.server.connectionCount == 1, sourceLocation: location)
    }

    /// A window that stays closed counts as idle.
    @Test(arguments: [HTTP2Script.now.settings(), .now.withholdingWindow().settings()])
    func uploadTimesOutWhenItsWindowStaysClosed(_ connection: HTTP2Script) async throws {
        let scene = try HTTP2Scene(idle: .seconds(2), connection: { _ in connection }) { _ in
            .now.withholdingWindow().reading()
        }
        let error = try await scene.failure(scene.post(.bytes(PatternBody(seed: 1, length: 1 << 20).bytes)))
        #expect(error.kind == .timedOut && error.phase == .sending && error.retriability == .ifIdempotent)
        let seen = try #require(await scene.server.nextRequest())
        await expectEnd(of: seen, isAlone: true, scene)
    }
}
