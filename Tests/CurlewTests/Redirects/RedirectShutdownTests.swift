// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import Curlew
import CurlewEngine
import CurlewTesting
import FoundationEssentials
import Testing

/// Shutdown and `idle()` of sessions while redirects are followed.
@Suite(.timeLimit(.minutes(5)))
struct RedirectShutdownTests {
    @Test(arguments: [Taking.data, .value, .stream, .started], [nil, Duration.seconds(200)])
    func gracefulShutdownLetsRedirectFinish(_ way: Taking, total: Duration?) async throws {
        for isBetween in [false, true] {
            let gate = Gate()
            let scene = try RedirectScene { $0.timeouts.total = total }
            scene.server.on("GET", "/1", .redirect(to: "/2").fault(.stall(gate), at: .start))
            let taken = Task { try await way(scene.request, by: scene.session) }
            await gate.waitUntilReached()
            if isBetween {
                gate.open()
                await scene.reached.wait()
            }
            let end = await scene.shutDown(.graceful(within: .seconds(50)))
            gate.open()
            scene.onward.open()
            #expect(try await taken.value.body == Data("there".utf8), "\(isBetween)")
            try await end.value
        }
    }

    @Test(arguments: [Taking.data, .value, .stream, .started])
    func immediateShutdownCancelsRedirect(_ way: Taking) async throws {
        for isBetween in [false, true] {
            let gate = Gate()
            let scene = try RedirectScene(answer: .text("there").fault(.stall(gate), at: .start))
            let taken = Task { try await way(scene.request, by: scene.session) }
            await scene.reached.wait()
            if !isBetween {
                scene.onward.open()
                await gate.waitUntilReached()
            }
            try await scene.session.shutdown(.immediate)
            scene.onward.open()
            #expect(try await networkError { _ = try await taken.value }.kind == .sessionClosed)
            #expect(scene.server.requestCount == (isBetween ? 1 : 2))
        }
    }

    @Test(arguments: RedirectLifetimeTests.ways)
    func idleWaitsForTheWholeRedirectChain(_ way: Taking) async throws {
        let scene = try RedirectScene()
        let taken = Task { try await way(scene.request, by: scene.session) }
        await scene.reached.wait()
        let isIdle = Lock(false)
        let idle = Task.immediate {
            try await scene.session.idle()
            isIdle.withLock { $0 = true }
        }
        for _ in 0..<10 { _ = await scene.session.transfers }
        #expect(!isIdle.withLock { $0 })
        scene.onward.open()
        try await idle.value
        #expect(scene.server.asked == ["GET /1", "GET /2"])
        #expect(try await taken.value.body == Data("there".utf8))
    }
}
