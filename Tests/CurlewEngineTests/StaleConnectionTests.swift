// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewTesting
import Testing

@testable import CurlewEngine

/// The requests that may reuse a connection that was idle for a long time.
@Suite(.timeLimit(.minutes(5)))
struct StaleConnectionTests {
    /// - Parameter resends: Whether the plan allows the request to be sent twice.
    @Test(arguments: [
        ("GET", false, 1), ("PUT", false, 1), ("POST", false, 2), ("PATCH", false, 2), ("POST", true, 1),
    ])
    func staleConnectionIsReusedForRepeatableRequestsOnly(_ method: String, _ resends: Bool, _ connections: Int)
        async throws
    {
        var configuration = EngineConfiguration()
        configuration.staleAfter = 0
        let bench = try EngineBench(configuration)
        bench.server.on(nil, "/", .text("ok"))
        for method in ["GET", method] {
            var plan = bench.plan("/", method: method)
            plan.resends = resends
            let transfer = EngineTransfer(plan, on: bench.share.loop)
            transfer.start()
            #expect(await transfer.waitForEndUncancelled().failure == nil)
        }
        #expect(bench.server.connectionCount == connections)
    }

    @Test func frequentPOSTsReuseTheConnection() async throws {
        let bench = try EngineBench()
        bench.server.on(nil, "/", .text("ok"))
        for _ in 0..<20 {
            let transfer = bench.transfer("/", method: "POST", upload: .bytes([1]))
            transfer.start()
            #expect(await transfer.waitForEndUncancelled().failure == nil)
        }
        #expect(bench.server.connectionCount == 1)
    }
}
