// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import CurlewTesting
import Glibc
import Testing

@testable import CurlewEngine

@Suite("UploadPipe", .timeLimit(.minutes(5)))
struct UploadPipeTests {
    private struct Broken: Error, CustomStringConvertible {
        let description = "broken"
    }

    private static let limit = 512 << 10
    private static let low = 128 << 10

    @Test func firstPullOpensTheProducer() {
        let opened = OpenedPipe()
        #expect(opened.openings == 0)
        #expect("\(opened.reader.pull(10).result)" == "wait")
        #expect("\(opened.reader.pull(10).result)" == "wait")
        #expect(opened.openings == 1)
    }

    @Test(arguments: [1, 2, 3, 7, 100, 4096, 65_536], [UInt64(1), 2])
    func bytesKeepTheirOrderForAllChunkAndBufferSizes(capacity: Int, seed: UInt64) async {
        var random = SeededGenerator(seed)
        let opened = OpenedPipe()
        var reference: [UInt8] = []
        let feed = opened.feed
        for _ in 0..<40 {
            let part = random.bytes(Int(random.below(997)))
            reference += part
            #expect(await feed.push(part))
        }
        feed.finish()
        let (bytes, result) = opened.reader.pullAll(capacity)
        #expect(bytes == reference)
        #expect("\(result)" == "end")
        #expect("\(opened.reader.pull(capacity).result)" == "end", "the end is reported again")
    }

    @Test func onePullCombinesManyChunks() {
        let opened = OpenedPipe()
        for byte in UInt8(0)..<10 { #expect(opened.feed.offer([byte, byte])) }
        #expect(opened.reader.pull(7).bytes == [0, 0, 1, 1, 2, 2, 3])
        #expect(opened.reader.pull(100).bytes == [3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9])
    }

    @Test func emptyChunksAreIgnored() async {
        let opened = OpenedPipe(length: 0)
        #expect(await opened.feed.push([]))
        #expect(opened.feed.offer([]))
        #expect("\(opened.reader.pull(5).result)" == "wait")
        opened.feed.finish()
        #expect("\(opened.reader.pull(5).result)" == "end")
    }

    @Test func bytesAfterFinishAreRejected() async {
        let opened = OpenedPipe()
        opened.feed.finish()
        #expect(await opened.feed.push([1]) == false)
        #expect(opened.feed.offer([1]) == false)
        opened.feed.finish(Broken())
        #expect("\(opened.reader.pull(5).result)" == "end")
    }

    // MARK: Back-pressure

    @Test func fullPipeSuspendsTheProducerUntilTheLowWaterMark() async {
        let opened = OpenedPipe()
        let feed = opened.feed
        let first = [UInt8](repeating: 1, count: Self.limit - 1)
        #expect(await feed.push(first))
        #expect(feed.hasCapacity)
        let isOn = Lock(false)
        let producer = Task.immediate {
            let acceptsMore = await feed.push([2])
            isOn.withLock { $0 = true }
            return acceptsMore
        }
        #expect(!isOn.withLock { $0 }, "the pipe is full")
        #expect(!feed.hasCapacity)
        #expect(opened.reader.pull(Self.limit - Self.low - 1).bytes.count == Self.limit - Self.low - 1)
        #expect(opened.wanted == 0, "one byte more than the low-water mark is left")
        #expect(!isOn.withLock { $0 })
        #expect(opened.reader.pull(1).bytes == [1])
        #expect(await producer.value)
        #expect(opened.wanted == 1)
        #expect(feed.hasCapacity)
        #expect(opened.reader.pull(1).bytes == [1])
        #expect(opened.wanted == 1, "the pipe was no longer full")
    }

    @Test func producerSuspendsEachTimeThePipeIsFull() async {
        let opened = OpenedPipe()
        let feed = opened.feed
        for round in 1...3 {
            let producer = Task.immediate { await feed.push([UInt8](repeating: 1, count: Self.limit)) }
            #expect(opened.reader.pull(Self.limit / 2).bytes.count == Self.limit / 2)
            #expect(opened.wanted == round - 1)
            #expect(opened.reader.pull(Self.limit).bytes.count == Self.limit / 2)
            #expect(await producer.value)
            #expect(opened.wanted == round)
        }
    }

    @Test func rewindClearsTheFullState() {
        let opened = OpenedPipe(canReplay: true)
        #expect(opened.feed.offer([UInt8](repeating: 1, count: Self.limit)))
        #expect(opened.reader.pull(1).bytes == [1])
        #expect(opened.pipe.rewind())
        #expect("\(opened.reader.pull(5).result)" == "wait")
        #expect(opened.feed.offer([2]))
        #expect(opened.reader.pull(5).bytes == [2])
        #expect(opened.wanted == 0)
    }

    @Test func offerIsAcceptedBeyondTheLimit() {
        let opened = OpenedPipe()
        #expect(opened.feed.offer([UInt8](repeating: 1, count: Self.limit + 5)))
        #expect(!opened.feed.hasCapacity)
        #expect(opened.reader.pullAll(1000).bytes.count == Self.limit + 5)
        #expect(opened.wanted == 1)
    }

    // MARK: Lengths and errors

    @Test func bodyLongerThanDeclaredFails() {
        let opened = OpenedPipe(length: 3)
        #expect(opened.feed.offer([1, 2]))
        #expect(opened.reader.pull(10).bytes == [1, 2])
        #expect(!opened.pipe.hasOverrun)
        #expect(opened.feed.offer([3, 4]))
        #expect(opened.pipe.hasOverrun)
        #expect("\(opened.reader.pull(10).result)" == "too long: over 3")
    }

    @Test func bodyShorterThanDeclaredFails() {
        let opened = OpenedPipe(length: 3)
        #expect(opened.feed.offer([1, 2]))
        opened.feed.finish()
        let (bytes, result) = opened.reader.pullAll(10)
        #expect(bytes == [1, 2])
        #expect("\(result)" == "too short: 2 of 3")
    }

    @Test func bodyOfDeclaredLengthEnds() {
        let opened = OpenedPipe(length: 3)
        #expect(opened.feed.offer([1, 2, 3]))
        opened.feed.finish()
        let (bytes, result) = opened.reader.pullAll(2)
        #expect(bytes == [1, 2, 3])
        #expect("\(result)" == "end")
    }

    @Test func producerErrorFollowsItsBytes() {
        let opened = OpenedPipe()
        #expect(opened.feed.offer([1, 2]))
        opened.feed.finish(Broken())
        let (bytes, result) = opened.reader.pullAll(10)
        #expect(bytes == [1, 2])
        #expect("\(result)" == "failed: broken")
    }

    // MARK: Starting over

    @Test func untouchedBodyCanAlwaysBeRewound() {
        let opened = OpenedPipe(canReplay: false)
        #expect(opened.pipe.rewind())
        #expect(opened.feed.offer([1]))
        #expect(opened.pipe.rewind(), "no byte has been pulled yet")
        #expect(opened.reader.pull(5).bytes == [1])
        #expect(opened.openings == 1)
    }

    @Test func nonReplayableBodyIsNotRewound() {
        let opened = OpenedPipe(canReplay: false)
        #expect(opened.feed.offer([1, 2]))
        #expect(opened.reader.pull(1).bytes == [1])
        #expect(!opened.pipe.rewind())
        #expect(opened.reader.pull(1).bytes == [2], "no byte is lost")
        #expect(opened.stopped == [])
    }

    @Test func rewindStopsTheProducerAndOpensANewOne() async {
        let opened = OpenedPipe(length: 4, canReplay: true)
        let old = opened.feed
        #expect(old.offer([1, 2, 3]))
        #expect(opened.reader.pull(2).bytes == [1, 2])
        #expect(opened.pipe.rewind())
        #expect(opened.stopped == [1])
        #expect("\(opened.reader.pull(5).result)" == "wait")
        #expect(opened.openings == 2)
        let new = opened.feed
        // The calls of the old producer belong to an attempt that is over, so the pipe ignores them.
        #expect(await old.push([9]) == false)
        #expect(old.offer([9]) == false)
        #expect(!old.hasCapacity)
        old.finish(Broken())
        #expect(new.offer([5, 6, 7, 8]))
        new.finish()
        let (bytes, result) = opened.reader.pullAll(3)
        #expect(bytes == [5, 6, 7, 8])
        #expect("\(result)" == "end")
    }

    @Test func rewindResetsAFinishedOrOverlongBody() {
        let opened = OpenedPipe(length: 2, canReplay: true)
        #expect(opened.feed.offer([1, 2]))
        #expect(opened.reader.pull(1).bytes == [1])
        #expect(opened.feed.offer([3]))
        opened.feed.finish(Broken())
        #expect(opened.pipe.rewind())
        #expect(!opened.pipe.hasOverrun)
        #expect("\(opened.reader.pull(5).result)" == "wait")
        #expect(opened.feed.offer([7, 8]))
        opened.feed.finish()
        #expect(opened.reader.pullAll(5).bytes == [7, 8])
    }

    @Test func rewindStopsASuspendedProducer() async {
        let opened = OpenedPipe(canReplay: true)
        let feed = opened.feed
        let producer = Task.immediate { await feed.push([UInt8](repeating: 1, count: Self.limit * 2)) }
        #expect(opened.reader.pull(3).bytes == [1, 1, 1])
        #expect(opened.pipe.rewind())
        #expect(await producer.value == false)
    }

    // MARK: The end

    @Test func closeStopsAFinishedProducer() {
        let opened = OpenedPipe()
        opened.feed.finish()
        #expect(opened.stopped == [])
        opened.pipe.close()
        #expect(opened.stopped == [1], "the stop closure runs even after the producer has finished")
    }

    @Test func closeResumesASuspendedProducerOnce() async {
        let opened = OpenedPipe()
        let feed = opened.feed
        let producer = Task.immediate { await feed.push([UInt8](repeating: 1, count: Self.limit)) }
        opened.pipe.close()
        #expect(await producer.value == false)
        #expect(opened.stopped == [1])
        opened.pipe.close()
        #expect(opened.stopped == [1])
        #expect(await feed.push([1]) == false)
        #expect(!feed.hasCapacity)
        #expect("\(opened.reader.pull(5).result)" == "wait")
    }

    @Test func closedPipeOpensNoProducer() {
        let opened = OpenedPipe(canReplay: true)
        opened.pipe.close()
        #expect("\(opened.reader.pull(5).result)" == "wait")
        #expect(opened.openings == 0)
    }

    @Test func producerMayFinishWhileItIsOpened() {
        let pipe = UploadPipe(length: nil, canReplay: false) { feed in
            #expect(feed.offer([4, 2]))
            feed.finish()
            return nil
        }
        let (bytes, result) = PipeReader(pipe: pipe).pullAll(10)
        #expect(bytes == [4, 2])
        #expect("\(result)" == "end")
    }

    @Test func closeWhileOpeningStopsTheProducer() {
        let stops = Lock(0)
        let box = Lock<UploadPipe?>(nil)
        let pipe = UploadPipe(length: nil, canReplay: false) { _ in
            box.withLock { $0 }?.close()
            return { stops.withLock { $0 += 1 } }
        }
        box.withLock { $0 = pipe }
        #expect("\(PipeReader(pipe: pipe).pull(1).result)" == "wait")
        #expect(stops.withLock { $0 } == 1)
        box.withLock { $0 = nil }
    }

    @Test(arguments: UInt64(1)...4)
    func concurrentProducerAndReaderTransferAllBytes(seed: UInt64) async throws {
        var random = SeededGenerator(seed)
        let parts = (0..<80).map { _ in random.bytes(Int(random.below(30_000))) }
        let reference = parts.flatMap { $0 }
        let producer = Lock<Task<Void, Never>?>(nil)
        let pipe = UploadPipe(length: Int64(reference.count), canReplay: false) { feed in
            let task = Task {
                for part in parts { if await !feed.push(part) { return } }
                feed.finish()
            }
            producer.withLock { $0 = task }
            return { task.cancel() }
        }
        let capacity = Int(random.below(50_000)) + 1
        let bytes = Lock<[UInt8]>([])
        // The consumer is a thread, like the loop. It spins where the loop would tell libcurl to pause.
        let thread = try TestThread {
            let reader = PipeReader(pipe: pipe)
            while true {
                let (pulled, result) = reader.pull(capacity)
                switch result {
                case .bytes: bytes.withLock { $0 += pulled }
                case .wait: sched_yield()
                default:
                    #expect("\(result)" == "end")
                    return
                }
            }
        }
        #expect(await eventually { producer.withLock { $0 } != nil })
        await producer.withLock { $0 }?.value
        thread.join()
        #expect(SHA256Stream.hex(of: bytes.withLock { $0 }) == SHA256Stream.hex(of: reference))
    }
}
