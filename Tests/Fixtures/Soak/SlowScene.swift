// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting

/// Measures the memory of a long body with a reader that takes bytes only when as much waits as may wait.
struct SlowScene {
    struct Result: Codable {
        /// Kibibytes: resident before the body, and the most since the process began.
        var base: Int
        var peak: Int
        var received: Int
        var isIntact: Bool
        /// How often the reader found the pipe full.
        var fillings: Int
    }

    private let servers: Servers

    init(_ servers: Servers) { self.servers = servers }

    func run() async throws -> Result {
        let session = try Session(trust: servers.trust)
        // What a process needs once for any transfer is part of the base.
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
