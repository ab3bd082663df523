// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import Curlew
import CurlewEngine
import CurlewTesting
import FoundationEssentials
import Testing

/// Servers that allow no streams when a connection begins (RFC 9113 §6.5.2) and reset streams opened anyway.
@Suite(.timeLimit(.minutes(5)))
struct HTTP2SettingsTests {
    /// Returns a scene whose server allows streams of a connection only after `delay`, or never.
    private func scene(after delay: Duration?) throws -> HTTP2Scene {
        let begun = Lock<[Int: ContinuousClock.Instant]>([:])
        return try HTTP2Scene(
            connection: { number in
                begun.withLock { $0[number] = .now }
                let start = HTTP2Script.now.settings([.maxConcurrentStreams(0)])
                guard let delay else { return start }
                return start.fault(.pause(delay)).settings([.maxConcurrentStreams(100)])
            },
            { request in
                let since = begun.withLock { $0[request.connection] } ?? .now
                if let delay, since.duration(to: .now) >= delay { return .respond(200, text: "ok") }
                return .now.reset(.refusedStream)
            })
    }

    @Test(arguments: [Method.get, .post]) func requestsWaitUntilStreamsAreAllowed(_ method: Method) async throws {
        let scene = try scene(after: .milliseconds(500))
        #expect(try await scene.session.data(for: scene.small(method)).0 == Data("ok".utf8))
        #expect(scene.server.violations.isEmpty && scene.server.requests.count <= 7)
    }

    @Test func uploadWaitsUntilStreamsAreAllowed() async throws {
        let body = PatternBody(seed: 8, length: 1 << 20)
        let scene = try scene(after: .milliseconds(500))
        #expect(try await scene.session.data(for: scene.post(.bytes(body.bytes))).0 == Data("ok".utf8))
        #expect(scene.server.requests.last?.bodySHA256 == body.sha256)
    }

    @Test func totalTimeoutEndsTheWaitForStreams() async throws {
        let scene = try scene(after: nil)
        var request = scene.small(.post)
        request.options.timeouts = Timeouts(total: .seconds(1))
        let error = try await scene.failure(request)
        #expect(error.kind == .timedOut && error.phase == .waiting && error.response == nil, "\(error)")
    }

    @Test func requestWaitingForStreamsCanBeCancelled() async throws {
        let scene = try scene(after: nil)
        let transfer = scene.session.transfer(scene.small(.post))
        transfer.start()
        await scene.server.waitUntil(connectionCount: 2)
        transfer.cancel()
        let error = try await networkError { try await transfer.value }
        #expect(error.kind == .cancelled)
    }
}
