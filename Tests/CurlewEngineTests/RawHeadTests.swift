// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import CurlewEngine

@Suite("RawHead")
struct RawHeadTests {
    @Test func rawHeadCountersAndMetricsHaveInitialValues() {
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

    @Test func failureReportsCancellation() {
        #expect(EngineFailure(.cancelled, phase: .queued).isCancellation)
        #expect(!EngineFailure(.closed, phase: .queued).isCancellation)
        #expect(!EngineFailure(.timedOut(.idle, after: 1), phase: .receiving).isCancellation)
    }
}
