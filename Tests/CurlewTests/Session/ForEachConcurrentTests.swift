// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting
import Testing

@Suite("forEachConcurrent and mapConcurrent", .timeLimit(.minutes(5)))
struct ForEachConcurrentTests {
    private struct Broken: Error, Equatable { let index: Int }

    /// Records the order of closures and the maximum number of closures that run concurrently.
    private actor ConcurrencyRecorder {
        private(set) var order: [Int] = []
        private(set) var most = 0
        private(set) var ended = 0
        private var inside = 0
        private var waiting: [(count: Int, continuation: CheckedContinuation<Void, Never>)] = []

        func enter(_ index: Int) {
            order.append(index)
            inside += 1
            most = max(most, inside)
            let ready = waiting.filter { order.count >= $0.count }
            waiting.removeAll { order.count >= $0.count }
            for waiter in ready { waiter.continuation.resume() }
        }

        func leave() {
            inside -= 1
            ended += 1
        }

        func waitUntilEntered(_ count: Int) async {
            if order.count < count { await withCheckedContinuation { waiting.append((count, $0)) } }
        }
    }

    @Test(arguments: [(1, 1), (3, 3), (10, 10), (100, 20), (0, 1), (-5, 1)])
    func closuresRunConcurrentlyUpToTheLimit(_ limit: Int, _ expected: Int) async {
        let recorder = ConcurrencyRecorder()
        let gates = (0..<20).map { _ in Gate() }
        async let all: Void = (0..<20).forEachConcurrent(limit: limit) { index in
            await recorder.enter(index)
            await gates[index].wait()
            await recorder.leave()
        }
        for index in 0..<20 {
            await recorder.waitUntilEntered(min(20, index + expected))
            #expect(await recorder.order.count == min(20, index + expected))
            gates[index].open()
        }
        await all
        #expect(await recorder.most == expected)
        #expect(await recorder.ended == 20)
        if expected < 20 { #expect(await recorder.order.suffix(20 - expected).elementsEqual(expected..<20)) }
    }

    @Test func resultsKeepTheOrderOfElements() async throws {
        let last = Gate()
        let doubled = await (0..<5).mapConcurrent(limit: 5) { index in
            if index < 4 { await last.wait() } else { last.open() }
            return index * 2
        }
        #expect(doubled == [0, 2, 4, 6, 8])
        let other = Gate()
        let texts = try await AsyncStream(0..<5).mapConcurrent(limit: 5) { index in
            if index < 4 { await other.wait() } else { other.open() }
            return "\(index)"
        }
        #expect(texts == ["0", "1", "2", "3", "4"])
    }

    @Test func emptySequencesRunNoClosures() async throws {
        await [Int]().forEachConcurrent(limit: 2) { _ in Issue.record("the closure ran") }
        #expect(await [Int]().mapConcurrent(limit: 2) { $0 }.isEmpty)
        try await AsyncStream([Int]()).forEachConcurrent(limit: 2) { _ in Issue.record("the closure ran") }
        #expect(try await AsyncStream([Int]()).mapConcurrent(limit: 2) { $0 }.isEmpty)
    }

    @Test func optionalResultsKeepNil() async throws {
        #expect(await [1, 2, 3].mapConcurrent(limit: 2) { $0 == 2 ? nil : $0 } == [1, nil, 3])
        #expect(try await AsyncStream([1, 2]).mapConcurrent(limit: 2) { $0 == 2 ? nil : $0 } == [1, nil])
    }

    @Test func firstErrorCancelsRunningClosuresAndStartsNoMore() async {
        let recorder = ConcurrencyRecorder()
        let others = Gate()
        // The closure's typed error is the only error that can be thrown.
        let error = await #expect(throws: Broken.self) {
            try await (0..<10).forEachConcurrent(limit: 3) { index throws(Broken) in
                await recorder.enter(index)
                if index == 1 {
                    await recorder.waitUntilEntered(3)
                    throw Broken(index: 1)
                }
                // The gate never opens: only cancellation ends the wait.
                #expect(await !others.wait())
                await recorder.leave()
                throw Broken(index: index)
            }
        }
        #expect(error == Broken(index: 1))
        #expect(await recorder.order.sorted() == [0, 1, 2])
        #expect(await recorder.ended == 2)
    }

    @Test func firstErrorEndsTheWaitForTheNextElement() async {
        let (elements, source) = AsyncStream.makeStream(of: Int.self)
        source.yield(0)
        source.yield(1)
        let recorder = ConcurrencyRecorder()
        let never = Gate()
        // The sequence has no further element and does not end.
        let error = await #expect(throws: Broken.self) {
            try await elements.forEachConcurrent(limit: 8) { index in
                await recorder.enter(index)
                if index == 1 { throw Broken(index: 1) }
                await never.wait()
                await recorder.leave()
                throw Broken(index: 0)
            }
        }
        #expect(error == Broken(index: 1))
        let begun = await recorder.order
        #expect(begun == [0, 1] || begun == [1, 0] || begun == [1])
        #expect(await recorder.ended == begun.count - 1)
        source.finish()
    }

    @Test func sequenceErrorCancelsRunningClosures() async {
        let (elements, source) = AsyncThrowingStream.makeStream(of: Int.self)
        let never = Gate()
        source.yield(0)
        let error = await #expect(throws: Broken.self) {
            _ = try await elements.mapConcurrent(limit: 2) { index in
                source.finish(throwing: Broken(index: 7))
                await never.wait()
                return index
            }
        }
        #expect(error == Broken(index: 7))
    }

    @Test func elementsAreRequestedOnlyBelowTheLimit() async throws {
        let asked = ConcurrencyRecorder()
        let elements = AsyncStream<Int> {
            let next = await asked.order.count
            await asked.enter(next)
            return next < 6 ? next : nil
        }
        try await elements.forEachConcurrent(limit: 2) { index in
            // At most two closures run, and a third element is requested only after one of them has ended.
            #expect(await asked.order.count - asked.ended <= 2)
            await asked.leave()
        }
        #expect(await asked.order.count == 7)
    }

    @Test func cancelledCallerStartsNoMoreThrowingClosures() async {
        let recorder = ConcurrencyRecorder()
        let never = Gate()
        let task = Task {
            await (0..<10).forEachConcurrent(limit: 2) { index in
                await recorder.enter(index)
                await never.wait()
                await recorder.leave()
            }
        }
        let throwing = Task {
            try await (0..<10).forEachConcurrent(limit: 2) { index throws(any Error) in
                await recorder.enter(index)
                await never.wait()
                await recorder.leave()
            }
        }
        await recorder.waitUntilEntered(4)
        throwing.cancel()
        await #expect(throws: CancellationError.self) { try await throwing.value }
        #expect(await recorder.order.count == 4)
        // Closures that cannot throw run for every element, in a cancelled task.
        task.cancel()
        _ = await task.result
        #expect(await recorder.order.count == 12)
        #expect(await recorder.ended == 12)
    }

    @Test func cancellationIsANetworkErrorForNetworkErrorClosures() async {
        let recorder = ConcurrencyRecorder()
        let never = Gate()
        let task = Task {
            try await (0..<10).mapConcurrent(limit: 2) { index throws(NetworkError) in
                await recorder.enter(index)
                await never.wait()
            }
        }
        await recorder.waitUntilEntered(2)
        task.cancel()
        let error = await #expect(throws: NetworkError.self) { _ = try await task.value }
        #expect(error?.kind == .cancelled)
        #expect(await recorder.order.count == 2)
    }

    @Test func cancelledWaitForElementsThrowsCancellationError() async {
        let (elements, source) = AsyncStream.makeStream(of: Int.self)
        source.yield(0)
        let recorder = ConcurrencyRecorder()
        let task = Task { try await elements.forEachConcurrent(limit: 2) { await recorder.enter($0) } }
        await recorder.waitUntilEntered(1)
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        source.finish()
    }

    @Test func cancellationAfterTheLastElementStillReturnsResults() async throws {
        let recorder = ConcurrencyRecorder()
        let gate = Gate()
        let task = Task {
            try await [0, 1].mapConcurrent(limit: 2) { index throws(any Error) in
                await recorder.enter(index)
                await gate.wait()
                return index
            }
        }
        await recorder.waitUntilEntered(2)
        task.cancel()
        #expect(try await task.value == [0, 1])
    }

    /// The sequence is iterated in the caller's isolation, so it need not be Sendable.
    @MainActor @Test func nonSendableSequenceIsIteratedOnTheCallersActor() async {
        final class Source: Sequence, IteratorProtocol {
            var left = 3
            func next() -> Int? {
                MainActor.assertIsolated()
                left -= 1
                return left < 0 ? nil : left
            }
        }
        let source = Source()
        #expect(await source.mapConcurrent(limit: 2) { $0 } == [2, 1, 0])
    }
}

extension AsyncStream where Element: Sendable {
    /// Creates a stream that has all elements of a sequence at once.
    fileprivate init(_ elements: some Sequence<Element>) {
        let (stream, source) = AsyncStream.makeStream(of: Element.self)
        for element in elements { source.yield(element) }
        source.finish()
        self = stream
    }
}
