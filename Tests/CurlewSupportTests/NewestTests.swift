// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import Testing

@Suite(.timeLimit(.minutes(5)))
struct NewestTests {
    @Test func readerGetsTheNewestValueOnce() async {
        let newest = Newest<Int>()
        newest.send(1)
        newest.send(2)
        #expect(await newest.next() == 2)
        newest.send(3)
        newest.send(2)
        newest.send(2)
        newest.send(4)
        #expect(await newest.next() == 4)
        newest.send(5)
        newest.finish()
        newest.send(6)
        #expect(await newest.next() == 5)
        #expect(await newest.next() == nil)

        let repeated = Newest<Int>()
        repeated.send(1)
        #expect(await repeated.next() == 1)
        repeated.send(2)
        repeated.send(1)
        repeated.finish()
        #expect(await repeated.next() == nil, "the reader has received the value before")
    }

    @Test func waitingReaderIsWokenByAValueOrItsCancellation() async {
        let newest = Newest<Int>()
        let reader = Task { await newest.next() }
        newest.send(7)
        #expect(await reader.value == 7)
        let cancelled = Task { await newest.next() }
        cancelled.cancel()
        #expect(await cancelled.value == nil)
    }

    @Test func streamEndsItsSubscriptionWithItsReader() async {
        let ended = Signal()
        let stream = AsyncStream<Int>.newest { newest in
            newest.send(1)
            return { ended.send() }
        }
        let reader = Task {
            for await value in stream { #expect(value == 1) }
        }
        reader.cancel()
        await reader.value
        _ = await ended.wait(after: 0)
    }

    @Test func releasedStreamEndsItsSubscription() async {
        let ended = Signal()
        do {
            _ = AsyncStream<Int>.newest { _ in { ended.send() } }
        }
        _ = await ended.wait(after: 0)
        #expect(ended.count == 1)
    }
}
