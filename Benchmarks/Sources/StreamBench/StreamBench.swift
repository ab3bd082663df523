// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// Measures the speed of stream decoders, compared with hand-written loops over the same bytes in the same chunks of
// 64 KiB. It uses no network and prints the best of several rounds in which both alternate.

import Curlew
import FoundationEssentials
import Glibc

struct Record: Codable, Sendable {
    var id: Int
    var name: String
    var tags: [String]
}

/// A sequence of fixed chunks.
struct Chunks64: AsyncSequence, Sendable {
    let chunks: [ByteChunk]

    struct Iterator: AsyncIteratorProtocol {
        var rest: ArraySlice<ByteChunk>

        mutating func next() async -> ByteChunk? { rest.popFirst() }
        mutating func next(isolation actor: isolated (any Actor)?) async -> ByteChunk? { rest.popFirst() }
    }

    func makeAsyncIterator() -> Iterator { Iterator(rest: chunks[...]) }
}

@main
struct StreamBench {
    static func main() async throws {
        let rounds = CommandLine.arguments.dropFirst().first.flatMap { Int($0) } ?? 7
        let size = rounds == 1 ? 1 << 20 : 32 << 20
        print("decoder        elements     MB/s   M elements/s   by hand, MB/s   time, × by hand")
        let short = made(size) { "line \($0) of a log that says little\n" }
        try await row("lines", short, rounds, by: .lines, { $0.utf8.count + 1 }, linesByHand)
        let small = made(size) { "data: \($0)\n\n" }
        try await row("SSE, small", small, rounds, by: .serverSentEvents, weight, eventsByHand)
        let large = made(size) { "id: \($0)\nevent: tick\ndata: {\"id\": \($0), \"text\": \"\(text)\"}\n\n" }
        try await row("SSE, 200 bytes", large, rounds, by: .serverSentEvents, weight, eventsByHand)
        let records = made(size) { "{\"id\": \($0), \"name\": \"user \($0)\", \"tags\": [\"a\", \"b\"]}\n" }
        try await row("NDJSON", records, rounds, by: .ndjson(Record.self), \.id, recordsByHand)
    }

    private static let text = String(repeating: "some words ", count: 14)

    @Sendable private static func weight(_ event: ServerSentEvent) -> Int {
        event.data.utf8.count + event.type.utf8.count + event.id.utf8.count
    }

    private static func made(_ size: Int, _ element: (Int) -> String) -> [ByteChunk] {
        var bytes: [UInt8] = []
        var count = 0
        while bytes.count < size {
            bytes += element(count).utf8
            count += 1
        }
        return stride(from: 0, to: bytes.count, by: 64 << 10).map { start in
            ByteChunk(bytes[start..<min(start + 64 << 10, bytes.count)])
        }
    }

    /// Measures one decoder and a hand-written loop; both must compute the same sum.
    private static func row<S: StreamSerializer>(
        _ name: String, _ chunks: [ByteChunk], _ rounds: Int, by serializer: S, _ weigh: @Sendable (S.Element) -> Int,
        _ byHand: @Sendable ([ByteChunk]) throws -> Int
    ) async throws {
        var (best, bestByHand) = (Duration.seconds(3600), Duration.seconds(3600))
        var count = 0
        for _ in 0..<rounds {
            var sum = 0
            count = 0
            let start = ContinuousClock.now
            for try await element in Chunks64(chunks: chunks).decoded(by: serializer) {
                sum += weigh(element)
                count += 1
            }
            let middle = ContinuousClock.now
            guard try byHand(chunks) == sum else { fail("\(name): the hand-written loop has another result") }
            bestByHand = min(bestByHand, ContinuousClock.now - middle)
            best = min(best, middle - start)
        }
        let megabytes = Double(chunks.reduce(0) { $0 + $1.count }) / 1e6
        let cells = [
            (8, "\(count)"), (9, "\(Int(megabytes / (best / .seconds(1))))"),
            (15, "\(Double(Int(Double(count) / (best / .seconds(1)) / 1e4)) / 100)"),
            (16, "\(Int(megabytes / (bestByHand / .seconds(1))))"),
            (18, "\(Double(Int(best / bestByHand * 100)) / 100)"),
        ]
        let row = cells.map { width, text in String(repeating: " ", count: max(0, width - text.count)) + text }
        print(name + String(repeating: " ", count: max(1, 15 - name.count)) + row.joined())
    }

    private static func fail(_ message: String) -> Never {
        print(message)
        exit(1)
    }
}
