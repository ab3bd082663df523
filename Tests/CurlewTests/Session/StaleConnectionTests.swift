// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting
import FoundationEssentials
import Testing

/// Servers may close an idle connection at any time, even while the client sends a request on it.
@Suite(.timeLimit(.minutes(5)))
struct StaleConnectionTests {
    @Test func requestOnClosedIdleConnectionIsRetried() async throws {
        let server = try MockServer()
        server.on("GET", "/") { $0.ordinal == 1 ? .text("fresh") : .raw("").fault(.close, at: .start) }
        let session = Session()
        for _ in 0..<20 {
            let (body, _) = try await session.data(for: Request(server.url("/")))
            #expect(String(decoding: body, as: UTF8.self) == "fresh")
        }
        #expect(server.connectionCount == 20)
        #expect(server.requests.count == 39)
    }
}
