// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import Glibc

/// Measures the memory that stays resident after many large bodies, once the session has been idle for a while.
struct MemoryScene {
    struct Result: Codable {
        /// Resident memory before the bodies, after the last body, and the minimum while the session is idle, in KiB.
        var base: Int
        var full: Int
        var final: Int
        var received: Int
    }

    let origin: String

    func run() async throws -> Result {
        let session = Session()
        let origin = origin
        // Warm up, so that one-time allocations of the process are part of the base.
        _ = try await session.data(for: Request(.get, origin + "/data"))
        let base = ProcessFigures.memory("VmRSS")
        let received = try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 0..<32 {
                group.addTask { try await session.data(for: Request(.get, origin + "/large")).0.count }
            }
            return try await group.reduce(0, +)
        }
        // Leave holes in the heap: the allocator does not return free blocks between used blocks by itself.
        fragmentHeap()
        _ = try await session.data(for: Request(.get, origin + "/data"))
        let full = ProcessFigures.memory("VmRSS")
        let end = ContinuousClock.now + .seconds(60)
        var final = full
        while final > base + 16 << 10, ContinuousClock.now < end {
            // Poll, because no event reports the release of memory.
            poll(nil, 0, 100)
            final = min(final, ProcessFigures.memory("VmRSS"))
        }
        return withExtendedLifetime(session) { Result(base: base, full: full, final: final, received: received) }
    }
}
