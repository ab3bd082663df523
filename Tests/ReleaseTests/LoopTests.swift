// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// ReleaseTests are compiled with optimisation, as users compile the package: loops over all kinds of our sequences,
// typed errors, cancellation and pipes. The optimiser has crashed on such loops; a debug build cannot show such
// crashes.

import Curlew
import CurlewTesting
import FoundationEssentials
import Testing

@Suite("Loops", .timeLimit(.minutes(5)))
struct LoopTests {
    private let server: MockServer
    private let session = Session()
    private static let pattern = PatternBody(seed: 3, length: 2_000_003)

    init() throws {
        server = try MockServer()
        server.on("GET", "/long", .pattern(Self.pattern))
        server.on("GET", "/endless", .text("hello").fault(.stall(Gate()), at: .body(3)))
        server.on("GET", "/drip", .bytes([1, 2, 3, 4]).dripping(bytes: 1, every: .milliseconds(1)))
    }

    private func transfer(_ path: String) -> Transfer<Data> { session.transfer(Request(.get, server.url(path))) }

    @Test func bytesAreReadToTheEnd() async throws {
        var (count, chunks) = (0, 0)
        for try await chunk in transfer("/long").bytes {
            count += chunk.count
            chunks += 1
        }
        #expect(count == Self.pattern.length)
        #expect(chunks > 1)
    }

    @Test func breakingOutOfBytesCancelsTheTransfer() async throws {
        let transfer = transfer("/long")
        var (count, chunks) = (0, 0)
        for try await chunk in transfer.bytes {
            count += chunk.count
            chunks += 1
            if chunks == 3 { break }
        }
        #expect(chunks == 3)
        #expect(count < Self.pattern.length)
        // Leaving the loop cancels the transfer; the progress sequence ends when the cancellation is complete.
        for await _ in transfer.progress {}
        #expect(transfer.state == .finished)
        let error = await #expect(throws: NetworkError.self) { try await transfer.value }
        #expect(error?.kind == .cancelled)
    }

    @Test func breakingOutOfTheStreamEndsTheLoop() async throws {
        let transfer = transfer("/long")
        var (heads, chunks) = (0, 0)
        for try await element in transfer.stream {
            switch element {
            case .head: heads += 1
            case .progress: continue
            case .bytes: chunks += 1
            default: continue
            }
            if chunks == 2 { break }
        }
        #expect(heads == 1)
        #expect(chunks == 2)
    }

    @Test func streamElementsArriveInOrder() async throws {
        var offset = 0
        var order: [String] = []
        for try await element in transfer("/long").stream {
            switch element {
            case .head(let head):
                #expect(head.status == 200)
                order.append("head")
            case .progress(let progress): if progress.isFinished { order.append("finished") }
            case .bytes(let chunk):
                #expect(chunk.elementsEqual(Self.pattern.bytes(in: offset..<(offset + chunk.count))))
                offset += chunk.count
                if order.last != "bytes" { order.append("bytes") }
            default: break
            }
        }
        #expect(offset == Self.pattern.length)
        #expect(order == ["head", "bytes", "finished"])
    }

    @Test func iteratorsAreCalledDirectly() async throws {
        var bytes = transfer("/drip").bytes.makeAsyncIterator()
        var collected: [UInt8] = []
        while let chunk = try await bytes.next() { collected += chunk }
        #expect(collected == [1, 2, 3, 4])
        #expect(try await bytes.next() == nil)

        var stream = transfer("/drip").stream.makeAsyncIterator()
        var count = 0
        while let element = try await stream.next() {
            if case .bytes(let chunk) = element { count += chunk.count }
        }
        #expect(count == 4)
    }

    @Test func progressIsReadToTheEnd() async throws {
        let transfer = transfer("/long")
        var (count, last) = (0, TransferProgress())
        for await progress in transfer.progress {
            count += 1
            #expect(progress.received >= last.received)
            last = progress
        }
        #expect(count >= 1)
        #expect(last.isFinished)
        #expect(last.received == Int64(Self.pattern.length))
        #expect(try await transfer.value.count == Self.pattern.length)
    }

    @Test func breakingOutOfProgressDoesNotCancel() async throws {
        let transfer = transfer("/long")
        for await _ in transfer.progress { break }
        #expect(try await transfer.value.count == Self.pattern.length)
    }

    @Test func asyncSequenceAlgorithmsWorkOnBytes() async throws {
        let counts = transfer("/long").bytes.map(\.count).filter { $0 > 0 }
        #expect(try await counts.reduce(0, +) == Self.pattern.length)
        let first = try await transfer("/endless").bytes.first { !$0.isEmpty }
        #expect(first.map { Array($0) } == Array("hel".utf8))
    }

    @Test func sessionEventsEndWithClosed() async throws {
        let events = session.events
        try await session.shutdown(.immediate)
        var closed = 0
        for await event in events { if case .closed = event { closed += 1 } }
        #expect(closed == 1)
    }
}
