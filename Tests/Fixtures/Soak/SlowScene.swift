// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting

/// Measures the memory of a long body with a reader that reads bytes only when the buffer is full.
struct SlowScene {
    struct Result: Codable {
        /// Resident memory before the body, and the peak since the process started, in KiB.
        var base: Int
        var peak: Int
        var received: Int
        var isIntact: Bool
        /// The number of times the reader found the pipe full.
        var fillings: Int
    }

    private let servers: Servers

    init(_ servers: Servers) { self.servers = servers }

    func run() async throws -> Result {
        let session = try Session(trust: servers.trust)
        // Warm up, so that one-time allocations of the process are part of the base.
        _ = try await session.data(for: Request(.get, servers.plain + "/data"))
        let base = ProcessFigures.memory("VmRSS")
        let full = session.configuration.buffers.highWater.bytes

        let transfer = session.transfer(Request(.get, servers.plain + "/slow"))
        let pattern = PatternBody(seed: 512, length: 512 << 20)
        var bytes = transfer.bytes.makeAsyncIterator()
        var (taken, fillings, isIntact) = (0, 0, true)
        while let chunk = try await bytes.next() {
            if chunk.first != pattern.byte(at: taken) { isIntact = false }
            taken += chunk.count
            if Int64(taken) + full / 2 < transfer.currentProgress.received { continue }
            while transfer.state != .finished {
                let received = transfer.currentProgress.received
                if received - Int64(taken) >= full {
                    fillings += 1
                    break
                }
                await Task.yield()
            }
        }
        return Result(
            base: base, peak: ProcessFigures.memory("VmHWM"), received: taken, isIntact: isIntact, fillings: fillings)
    }
}
