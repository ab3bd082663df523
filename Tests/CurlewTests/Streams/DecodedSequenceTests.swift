// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewTesting
import FoundationEssentials
import Testing

@testable import Curlew

/// Stream serializers applied to other sequences of bytes: those of transfers, and sequences in memory.
@Suite(.timeLimit(.minutes(5)))
struct DecodedSequenceTests {
    private struct Odd: Error {}

    private func stream(_ chunks: [String], end: (any Error)? = nil) -> AsyncThrowingStream<[UInt8], any Error> {
        AsyncThrowingStream { continuation in
            for chunk in chunks { continuation.yield(Array(chunk.utf8)) }
            continuation.finish(throwing: end)
        }
    }

    /// Returns the elements of a sequence and the errors of two further calls of `next`.
    private func read<S: AsyncSequence>(
        _ sequence: S
    ) async -> ([S.Element], [NetworkError]) where S.Failure == NetworkError {
        var (elements, errors): ([S.Element], [NetworkError]) = ([], [])
        var iterator = sequence.makeAsyncIterator()
        while errors.count < 2 {
            do throws(NetworkError) {
                guard let element = try await iterator.next(isolation: #isolation) else { break }
                elements.append(element)
            } catch {
                errors.append(error)
            }
        }
        return (elements, errors)
    }

    @Test func anyByteSequenceIsDecoded() async throws {
        var lines: [String] = []
        for try await line in stream(["a\nb", "", "c\r", "\nd"]).decoded(by: .lines) { lines.append(line) }
        #expect(lines == ["a", "bc", "d"])
        let latin = ResponseHead(status: .ok, fields: ["Content-Type": "text/plain; charset=latin1"])
        let data = AsyncStream<Data> { continuation in
            continuation.yield(Data([0xE9]))
            continuation.finish()
        }
        #expect(await read(data.decoded(by: .lines, of: latin)).0 == ["é"])
    }

    @Test func errorsOfDecodersAndSequencesAreRepeated() async {
        let (numbers, errors) = await read(stream(["1\n2\nx\n3\n"]).decoded(by: .ndjson(Int.self)))
        #expect(numbers == [1, 2] && errors.map(\.kind) == [.decodingFailed, .decodingFailed])
        let (lines, broken) = await read(stream(["a\nb"], end: Odd()).decoded(by: .lines))
        #expect(lines == ["a"], "an incomplete line is dropped after an error")
        #expect(broken.map(\.kind) == [.bodyFailed, .bodyFailed] && broken.first?.cause is Odd)
        #expect(broken.first?.message == "The sequence of bytes failed: Odd.")
        let (_, cancelled) = await read(stream([], end: CancellationError()).decoded(by: .lines))
        #expect(cancelled.map(\.kind) == [.cancelled, .cancelled])
        let (_, lost) = await read(
            stream([], end: NetworkError(.connectionLost, phase: .receiving, "gone")).decoded(by: .lines))
        #expect(lost.map(\.message) == ["gone", "gone"])
    }

    @Test func transferBytesAreDecoded() async throws {
        let server = try MockServer { _ in .text("one\ntwo\nthree").chunked(size: 2) }
        let session = Session()
        let transfer = session.transfer(Request(server.url("/")))
        #expect(await read(transfer.bytes.decoded(by: .lines)).0 == ["one", "two", "three"])
    }

    /// `AsyncThrowingStream` ends without an error in a cancelled task; the decoder throws, and drops incomplete lines.
    @Test func cancellationThrows() async throws {
        let (bytes, continuation) = AsyncThrowingStream<[UInt8], any Error>.makeStream()
        continuation.yield(Array("one\ntw".utf8))
        let (reached, proceed) = (Gate(), Gate())
        let task = Task {
            for try await line in bytes.decoded(by: .lines) {
                #expect(line == "one")
                reached.open()
                await proceed.wait()
            }
        }
        await reached.wait()
        task.cancel()
        #expect(try await networkError { try await task.value }.kind == .cancelled)
        continuation.finish()
    }

    /// Leaving the loop releases the iterator, which cancels the transfer.
    @Test func leavingTheLoopCancelsTheTransfer() async throws {
        let gate = Gate()
        let server = try MockServer { _ in .text("one\ntwo\n").fault(.stall(gate), at: .body(4)) }
        let session = Session()
        let transfer = session.transfer(Request(server.url("/")))
        for try await line in transfer.bytes.decoded(by: .lines) {
            #expect(line == "one")
            break
        }
        await server.waitUntil(openConnections: 0)
        try await session.idle()
        #expect(transfer.state == .finished && !gate.isOpen)
    }
}
