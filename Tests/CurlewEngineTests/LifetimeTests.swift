// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewTesting
import Glibc
import Testing

@testable import CurlewEngine

/// A transfer is freed with its handle, domain and pipe after it has ended and its owners have released it.
@Suite("Lifetimes", .timeLimit(.minutes(5)))
struct LifetimeTests {
    /// Weak references to the objects of one transfer.
    private struct Traces {
        weak var transfer: EngineTransfer?
        weak var handle: EasyHandle?
        weak var domain: CurlDomain?
        weak var pipe: UploadPipe?

        var isGone: Bool { transfer == nil && handle == nil && domain == nil && pipe == nil }
    }

    private enum Way: CaseIterable {
        case collected, streamed, uploaded, uploadedFile, refused, cancelled, abandoned, failed
    }

    private func traces(of transfer: EngineTransfer) -> Traces {
        var traces = Traces(transfer: transfer)
        if case .pipe(let pipe) = transfer.plan.upload { traces.pipe = pipe }
        return traces
    }

    /// Weak references to the libcurl objects of a transfer, passed from the loop to a test.
    private struct WireTraces: @unchecked Sendable {
        // Safe because both are weak references that a test only compares with nil.
        weak var handle: EasyHandle?
        weak var domain: CurlDomain?
    }

    private func wireTraces(of transfer: EngineTransfer, _ traces: Traces) async -> Traces {
        let found = Latch<WireTraces>()
        transfer.loop.call { _ in
            found.set(WireTraces(handle: transfer.loopState.handle, domain: transfer.plan.trust.live?.domains.first))
        }
        let wire = await found.value
        var traces = traces
        traces.handle = wire.handle
        traces.domain = wire.domain
        return traces
    }

    private func run(_ way: Way, on bench: EngineBench) async throws -> Traces {
        let upload: TransferPlan.Upload
        switch way {
        case .uploaded:
            upload = .pipe(
                UploadPipe(length: nil, canReplay: false) { feed in
                    let producer = Task {
                        for _ in 0..<50 where await !feed.push([UInt8](repeating: 1, count: 10_000)) { return }
                        feed.finish()
                    }
                    return { producer.cancel() }
                })
        case .uploadedFile: upload = .pipe(try UploadPipe.file("/proc/self/exe".resolved))
        default: upload = .none
        }
        let method = if case .none = upload { "GET" } else { "PUT" }
        let gate = Gate()
        let path = "/\(way)"
        bench.server.on(method, path, answer(to: way, gate))
        let transfer = bench.transfer(path, method: method, upload: upload)
        var traces = traces(of: transfer)
        if way == .streamed || way == .abandoned { transfer.claimStream() }
        transfer.start()
        switch way {
        case .streamed:
            while case .bytes = await afterHead(transfer) {}
        case .abandoned:
            _ = await transfer.next(withProgress: false)
            traces = await wireTraces(of: transfer, traces)
            transfer.cancel()
            _ = await transfer.waitForEndUncancelled()
        case .cancelled:
            await gate.waitUntilReached()
            traces = await wireTraces(of: transfer, traces)
            #expect(traces.handle != nil)
            transfer.cancel()
            let outcome = await transfer.waitForEndUncancelled()
            #expect(outcome.failure?.isCancellation == true)
        default:
            _ = await transfer.waitForEndUncancelled()
        }
        return traces
    }

    private func afterHead(_ transfer: EngineTransfer) async -> EngineTransfer.Step {
        while true {
            let step = await transfer.next(withProgress: false)
            if case .head = step { continue }
            return step
        }
    }

    private func answer(to way: Way, _ gate: Gate) -> MockResponse {
        switch way {
        case .collected, .streamed, .uploaded, .uploadedFile: .pattern(PatternBody(seed: 1, length: 300_000))
        case .refused: .text("no", status: 500)
        case .cancelled, .abandoned: .text("hello").fault(.stall(gate), at: .body(2))
        case .failed: .text("hello").fault(.reset, at: .body(2))
        }
    }

    @Test func transferCancelledInTheQueueIsFreed() async throws {
        weak var loop: EventLoop?
        weak var left: EngineTransfer?
        do {
            let bench = try EngineBench()
            loop = bench.share.loop
            let transfer = bench.transfer("/")
            left = transfer
            transfer.pause()
            transfer.start()
            transfer.cancel()
            #expect(await transfer.waitForEndUncancelled().failure?.phase == .queued)
        }
        #expect(await eventually { left == nil && loop == nil })
    }

    @Test func removedElementsLeaveThePriorityQueue() {
        var line = PriorityQueue<Int>()
        for number in 0..<100 { line.join(number, priority: number % 3, sequenceNumber: UInt64(number)) }
        line.removeAll { element, _ in !element.isMultiple(of: 7) }
        #expect(line.count == 15)
        var order: [Int] = []
        while let entry = line.next() { order.append(entry.element) }
        let expected = (0..<100).filter { $0.isMultiple(of: 7) }.sorted { ($1 % 3, $0) < ($0 % 3, $1) }
        #expect(order == expected)
    }

    @Test func finishedTransfersAreFreedWithAllTheirParts() async throws {
        var traces: [(Way, Traces)] = []
        weak var loop: EventLoop?
        do {
            let bench = try EngineBench()
            loop = bench.share.loop
            for way in Way.allCases { traces.append((way, try await run(way, on: bench))) }
            for way in [Way.cancelled, .abandoned] {
                #expect(traces.contains { $0.0 == way && $0.1.domain != nil }, "the domain outlives the transfer")
            }
            for (way, trace) in traces {
                #expect(await eventually { trace.transfer == nil && trace.pipe == nil }, "\(way)")
            }
        }
        #expect(await eventually { loop == nil })
        for (way, trace) in traces { #expect(trace.isGone, "\(way)") }
    }
}

extension String {
    /// The path with symbolic links resolved.
    fileprivate var resolved: String {
        guard let path = realpath(self, nil) else { return self }
        defer { free(path) }
        return String(cString: path)
    }
}
