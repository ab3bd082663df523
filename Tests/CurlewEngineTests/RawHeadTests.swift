// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import CurlewEngine

@Suite("RawHead")
struct RawHeadTests {
    @Test(arguments: [
        ("HTTP/1.1 200 OK\r\n\r\n", 200), ("HTTP/1.0 404\r\n", 404), ("HTTP/2 301 \r\n", 301), ("HTTP/3 100", 100),
        ("HTTP/1.1 999 odd", 999), ("HTTP/1.1 2000", 200), ("HTTP/9 599", 599),
    ])
    func readsTheStatus(block: String, status: Int) {
        #expect(RawHead.status(of: Array(block.utf8)) == status)
    }

    @Test(arguments: [
        "", "HTTP/", "HTTP/1.1", "HTTP/1.1 ", "HTTP/1.1 20", "HTTP/1.1 2x0 OK", "HTTP/1.1 099 low", "HTTP/1.1 -20 no",
        "http/1.1 200 OK", "ICY 200 OK music", "HTTP/1.1200OK", "HTTP/1.1  200 OK", "Content-Length: 3",
    ])
    func otherBlocksHaveNone(block: String) {
        #expect(RawHead.status(of: Array(block.utf8)) == nil)
    }

    @Test func valuesStartEmpty() {
        let head = RawHead(bytes: [1, 2], status: 200)
        #expect(head.bytes == [1, 2])
        #expect(head.status == 200)
        let counters = Counters()
        #expect(counters.expectedToSend == -1)
        #expect(counters.expectedToReceive == -1)
        #expect(!counters.isFinished)
        let metrics = RawMetrics()
        #expect(metrics.total == 0)
        #expect(metrics.tlsVersion == nil)
        #expect(metrics.remoteAddress.isEmpty)
    }

    @Test func aFailureKnowsWhetherItIsACancellation() {
        #expect(EngineFailure(.cancelled, phase: .queued).isCancellation)
        #expect(!EngineFailure(.closed, phase: .queued).isCancellation)
        #expect(!EngineFailure(.timedOut(.idle), phase: .receiving).isCancellation)
    }
}
