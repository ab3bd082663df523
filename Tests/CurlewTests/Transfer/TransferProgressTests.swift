// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Curlew

@Suite("TransferProgress")
struct TransferProgressTests {
    static let rows: [(TransferProgress, Double?, Duration?)] = [
        (TransferProgress(), nil, nil),
        (TransferProgress(isFinished: true), 1, .zero),
        (TransferProgress(sent: 25, expectedToSend: 100, bytesPerSecond: 25), 0.25, .seconds(3)),
        (TransferProgress(sent: 25, expectedToSend: 100, expectedToReceive: 10), 0.25, nil),
        (TransferProgress(sent: 100, expectedToSend: 100), 1, nil),
        (TransferProgress(sent: 120, expectedToSend: 100, bytesPerSecond: 1), 1, .zero),
        (TransferProgress(sent: 100, received: 5, expectedToSend: 100, expectedToReceive: 10), 0.5, nil),
        (TransferProgress(received: 5, expectedToReceive: 10, bytesPerSecond: 10), 0.5, .milliseconds(500)),
        (TransferProgress(received: 20, expectedToReceive: 10, bytesPerSecond: 10), 1, .zero),
        (TransferProgress(received: 5, bytesPerSecond: 10), nil, nil),
        (TransferProgress(sent: 5, received: 5, expectedToSend: 5, bytesPerSecond: 10), nil, nil),
        (TransferProgress(expectedToSend: 0, expectedToReceive: 10), 0, nil),
        (TransferProgress(sent: -5, expectedToSend: 10), 0, nil),
        (TransferProgress(expectedToSend: 0, expectedToReceive: 0), nil, nil),
        (TransferProgress(received: 0, expectedToReceive: .max, bytesPerSecond: 1e-3), 0, nil),
    ]

    @Test(arguments: rows)
    func fractionAndTimeRemainingAreComputed(progress: TransferProgress, fraction: Double?, left: Duration?) {
        #expect(progress.fraction == fraction)
        #expect(progress.timeRemaining == left)
    }
}

@Suite("RateMeter")
struct RateMeterTests {
    private let second: UInt64 = 1_000_000_000

    private func isClose(_ rate: Double, _ expected: Double) -> Bool {
        (rate - expected).magnitude <= expected * 0.02 + 0.001
    }

    @Test func steadyRateIsExactFromTheStart() {
        var meter = RateMeter()
        #expect(meter.bytesPerSecond == 0)
        for step in 0..<100 {
            meter.record(now: 5 + UInt64(step) * second / 5, totalBytes: Int64(step) * 200)
            if step > 0 { #expect(isClose(meter.bytesPerSecond, 1000)) }
        }
    }

    @Test func rateDecaysDuringAStall() {
        var meter = RateMeter(timeConstant: .seconds(3))
        for step in 0...100 { meter.record(now: UInt64(step) * second, totalBytes: Int64(step) * 1000) }
        meter.record(now: 103 * second, totalBytes: 100_000)
        #expect(isClose(meter.bytesPerSecond, 367.9))
    }

    @Test func shortIntervalsAreAccumulated() {
        var meter = RateMeter()
        meter.record(now: 0, totalBytes: 0)
        meter.record(now: 1, totalBytes: 1_000_000)
        #expect(meter.bytesPerSecond == 0)
        meter.record(now: second, totalBytes: 1_000_000)
        #expect(isClose(meter.bytesPerSecond, 1_000_000))
    }

    @Test(arguments: [(UInt64(11), Int64(5)), (3, 100)])
    func meterResetsWhenTimeOrBytesGoBack(time: UInt64, bytes: Int64) {
        var meter = RateMeter()
        meter.record(now: 0, totalBytes: 0)
        meter.record(now: 10 * second, totalBytes: 100)
        meter.record(now: time * second, totalBytes: bytes)
        #expect(meter.bytesPerSecond == 0)
        meter.record(now: (time + 1) * second, totalBytes: bytes + 50)
        #expect(isClose(meter.bytesPerSecond, 50))
    }
}

@Suite("TransferMetrics")
struct TransferMetricsTests {
    @Test func descriptionIsOneLine() {
        let metrics = TransferMetrics(
            connect: .milliseconds(12), wait: .milliseconds(40), total: .milliseconds(84), requestHeadBytes: 100,
            requestBodyBytes: 20, responseHeadBytes: 24, responseBodyBytes: 1000, version: .http2,
            remoteAddress: "1.2.3.4:443", isConnectionReused: true, tlsVersion: "TLSv1.3", isTLSSessionResumed: true)
        #expect(
            metrics.description == "84 ms total: connect 12 ms, wait 40 ms; 120 bytes sent, 1 KiB received; "
                + "HTTP/2 to 1.2.3.4:443; TLSv1.3 resumed; reused")
        #expect(TransferMetrics().description == "0 s total; 0 bytes sent, 0 bytes received; HTTP/1.1")
        #expect(TransferMetrics(tlsVersion: "TLSv1.2").description.hasSuffix("; TLSv1.2"))
    }

    @Test func initializerStoresEveryMember() {
        var metrics = TransferMetrics(
            queued: .seconds(1), resolve: .seconds(2), connect: .seconds(3), secure: .seconds(4), send: .seconds(5),
            wait: .seconds(6), receive: .seconds(7), total: .seconds(8), localAddress: "l", tlsCipher: "c")
        #expect([metrics.queued, metrics.resolve, metrics.connect, metrics.secure] == (1...4).map { .seconds($0) })
        #expect([metrics.send, metrics.wait, metrics.receive, metrics.total] == (5...8).map { .seconds($0) })
        #expect(metrics.localAddress == "l" && metrics.tlsCipher == "c")
        metrics.total = .seconds(9)
        #expect(metrics != TransferMetrics())
    }
}
