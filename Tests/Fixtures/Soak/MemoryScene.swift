// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import Glibc

/// Measures what stays resident after many large bodies, once the session has been idle for a while.
struct MemoryScene {
    struct Result: Codable {
        /// Kibibytes: resident before the bodies, after the last of them, and the least while the session was idle.
        var base: Int
        var full: Int
        var final: Int
        var received: Int
    }

    let origin: String

    func run() async throws -> Result {
        let session = Session()
        let origin = origin
        // What a process needs once for any transfer is part of the base.
        _ = try await session.data(for: Request(.get, origin + "/data"))
        let base = ProcessFigures.memory("VmRSS")
        let received = try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 0..<32 {
                group.addTask { try await session.data(for: Request(.get, origin + "/large")).0.count }
            }
            return try await group.reduce(0, +)
        }
        // The pieces between which a program keeps something are those that the allocator does not give back by itself.
        leaveHoles()
        _ = try await session.data(for: Request(.get, origin + "/data"))
        let full = ProcessFigures.memory("VmRSS")
        let end = ContinuousClock.now + .seconds(60)
        var final = full
        while final > base + 16 << 10, ContinuousClock.now < end {
            // Nothing tells when it happens.
            poll(nil, 0, 100)
            final = min(final, ProcessFigures.memory("VmRSS"))
        }
        return withExtendedLifetime(session) { Result(base: base, full: full, final: final, received: received) }
    }
}
