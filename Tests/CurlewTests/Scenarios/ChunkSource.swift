// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewTesting
import FoundationEssentials

/// A body source that counts its reads and can wait or fail at a chunk.
struct ChunkSource: AsyncSequence, Sendable {
    struct Broken: Error, Equatable {
        let reason: String
    }

    /// Counts the reads and iterations of the source.
    actor Meter {
        private(set) var pulls = 0
        private(set) var iterations = 0
        func pulled() { pulls += 1 }
        func iterated() { iterations += 1 }
    }

    typealias Element = [UInt8]

    let body: PatternBody
    var chunk = 64 << 10
    /// The chunk before which to wait, and the gate to wait for.
    var hold: (index: Int, gate: Gate)?
    /// The chunk at which to throw.
    var failsAt: Int?
    let meter = Meter()

    func makeAsyncIterator() -> Iterator { Iterator(source: self) }

    struct Iterator: AsyncIteratorProtocol {
        let source: ChunkSource
        var index = 0

        mutating func next() async throws -> [UInt8]? {
            if index == 0 { await source.meter.iterated() }
            if let hold = source.hold, hold.index == index { await hold.gate.wait() }
            if source.failsAt == index { throw Broken(reason: "chunk \(index)") }
            let start = index * source.chunk
            guard start < source.body.length else { return nil }
            index += 1
            await source.meter.pulled()
            return source.body.bytes(in: start..<Swift.min(start + source.chunk, source.body.length))
        }
    }
}
