// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting
import FoundationEssentials
import Testing

/// Many streams on one connection, and the effect of GOAWAY and of closing on each (RFC 9113 §5.1.2 and §6.8).
@Suite(.timeLimit(.minutes(5)))
struct HTTP2SharingTests {
    /// Runs requests concurrently and returns their bodies, sorted.
    private func bodies(_ scene: HTTP2Scene, _ count: Int) async throws -> [String] {
        try await withThrowingTaskGroup(of: String.self) { group in
            for number in 0..<count {
                group.addTask {
                    String(decoding: try await scene.session.data(for: scene.request("/\(number)")).0, as: UTF8.self)
                }
            }
            return try await group.reduce(into: []) { $0.append($1) }.sorted()
        }
    }

    @Test func hundredStreamsShareOneConnection() async throws {
        let gate = Gate()
        let scene = try HTTP2Scene { request in
            request.path == "/warm" ? .respond(200) : .afterRequest.fault(.stall(gate)).respond(200, body: [65])
        }
        _ = try await scene.session.data(for: scene.request("/warm"))
        async let all = bodies(scene, 100)
        await gate.waitUntilReached(times: 100)
        #expect(scene.server.mostOpenStreams == 100)
        gate.open()
        #expect(try await all == [String](repeating: "A", count: 100))
        #expect(scene.server.connectionCount == 1 && scene.server.violations.isEmpty)
    }

    @Test func maxConcurrentStreamsIsRespected() async throws {
        let scene = try HTTP2Scene(connection: { _ in .now.settings([.maxConcurrentStreams(1)]) }) { _ in
            .respond(200, text: "ok")
        }
        _ = try await scene.session.data(for: scene.request("/warm"))
        #expect(try await bodies(scene, 20) == [String](repeating: "ok", count: 20))
        // The server enforces its limit once the client has acknowledged the settings.
        #expect(scene.server.violations == [])
    }

    /// The settings of the only connection are known before further streams begin.
    @Test func maxConcurrentStreamsIsRespectedOnTheOnlyConnection() async throws {
        let scene = try HTTP2Scene(
            configure: { $0.limits.connectionsPerHost = 1 },
            connection: { _ in .now.settings([.maxConcurrentStreams(1)]) }
        ) { _ in
            .respond(200, text: "ok")
        }
        _ = try await scene.session.data(for: scene.request("/warm"))
        #expect(try await bodies(scene, 20) == [String](repeating: "ok", count: 20))
        #expect(scene.server.mostOpenStreams == 1 && scene.server.connectionCount == 1)
        #expect(scene.server.violations == [])
    }

    /// Until its settings arrive, streams may begin on a connection without a limit (RFC 9113 §5.1.2).
    @Test func streamsAreUnlimitedUntilSettingsArrive() async throws {
        let gate = Gate()
        // An acknowledgement must not be the first frame (RFC 9113 §3.4).
        let scene = try HTTP2Scene(
            acknowledgesSettings: false, configure: { $0.limits.connectionsPerHost = 2 },
            connection: { number in
                (number == 1 ? HTTP2Script.now : .now.fault(.stall(gate))).settings([.maxConcurrentStreams(1)])
            }
        ) { request in
            request.path == "/warm" ? .respond(200) : .afterRequest.fault(.stall(gate)).respond(200, text: "ok")
        }
        _ = try await scene.session.data(for: scene.request("/warm"))
        async let all = bodies(scene, 6)
        for _ in 0..<7 { _ = await scene.server.nextRequest() }
        #expect(scene.server.mostOpenStreams == 5 && scene.server.connectionCount == 2)
        gate.open()
        #expect(try await all == [String](repeating: "ok", count: 6))
        #expect(scene.server.violations == [])
    }

    @Test func pausedStreamDoesNotBlockOthers() async throws {
        let body = PatternBody(seed: 2, length: 8 << 20)
        let scene = try HTTP2Scene { request in
            request.path == "/big" ? .respond(200, pattern: body) : .respond(200, text: "ok")
        }
        let transfer = scene.session.transfer(scene.request("/big"))
        var chunks = transfer.bytes.makeAsyncIterator()
        var digest = SHA256Stream()
        if let first = try await chunks.next() { digest.update(Data(first)) }
        #expect(try await bodies(scene, 20) == [String](repeating: "ok", count: 20))
        while let next = try await chunks.next() { digest.update(Data(next)) }
        #expect(digest.hex == body.sha256 && scene.server.connectionCount == 1)
    }

    @Test func goAwayAfterTheRequestDoesNotAffectIt() async throws {
        let scene = try HTTP2Scene { request in
            .afterRequest.goAway(upTo: Int(Int32.max)).goAway(upTo: request.stream).respond(200, text: "ok")
        }
        for _ in 0..<2 { #expect(try await scene.session.data(for: scene.request()).0 == Data("ok".utf8)) }
        #expect(scene.server.connectionCount == 2 && scene.server.requests.map(\.stream) == [1, 1])
    }

    @Test(arguments: [SocketFault.close, .cut, .reset], [true, false])
    func closedIdleConnectionIsNotUsed(_ fault: SocketFault, _ says: Bool) async throws {
        let gate = Gate()
        let scene = try HTTP2Scene(connection: { number in
            number == 1
                ? .now.settings().fault(.stall(gate)).then(says ? .now.goAway() : .now).fault(fault) : .now.settings()
        }) { _ in .respond(200) }
        _ = try await scene.session.data(for: scene.request())
        gate.open()
        await scene.server.waitUntil(openConnections: 0)
        let (_, head) = try await scene.session.data(for: scene.post(.text("order")))
        #expect(head.status == .ok)
        #expect(scene.server.requests.count { $0.method == "POST" } == 1)
    }

    @Test func goAwayRetriesOnlyStreamsAboveItsLast() async throws {
        let (gate, answer) = (Gate(), Gate())
        let scene = try HTTP2Scene(connection: { number in
            number == 1 ? .now.settings().fault(.stall(gate)).goAway(upTo: 5) : .now.settings()
        }) { request in
            guard request.connection == 1, request.path != "/warm" else { return .respond(200, text: "second") }
            return .afterRequest.fault(.stall(answer)).respond(200, body: Array("first".utf8))
        }
        _ = try await scene.session.data(for: scene.request("/warm"))
        _ = await scene.server.nextRequest()
        async let all = bodies(scene, 5)
        for _ in 0..<5 { _ = await scene.server.nextRequest() }
        gate.open()
        // Requests above the last stream move to another connection while the streams below it are still stalled.
        await scene.server.waitUntil(connectionCount: 2)
        answer.open()
        #expect(try await all == ["first", "first", "second", "second", "second"])
        #expect(scene.server.violations.isEmpty)
    }

    /// An HTTP/2 connection could be shared, so an own connection uses HTTP/1.1, which this server does not support.
    @Test func ownConnectionUsesHTTP1() async throws {
        let gate = Gate()
        let scene = try HTTP2Scene { _ in .afterRequest.fault(.stall(gate)).respond(200, text: "shared") }
        let transfer = scene.session.transfer(scene.request())
        transfer.start()
        await gate.waitUntilReached()
        var request = scene.request("/own")
        request.options.connection = .own
        let error = try await scene.failure(request)
        #expect(error.kind == .connectionLost || error.kind == .invalidResponse)
        #expect(scene.server.connectionCount == 2 && scene.server.requests.count == 1)
        // The client may detect the end before the server records the violation.
        while scene.server.violations.isEmpty, !Task.isCancelled { await Task.yield() }
        #expect(Set(scene.server.violations) == ["The connection does not begin with HTTP/2's preface."])
        gate.open()
        #expect(try await transfer.value == Data("shared".utf8))
    }
}
