// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewEngine
import CurlewTesting
import Testing

@testable import Curlew

@Suite struct DownloadQueueTests {
    private let folder: Folder
    private let server: MockServer
    private let gate = Gate()
    private let session = Session()

    init() throws {
        folder = try Folder()
        let gate = gate
        server = try MockServer { request in
            let answer = RangeResource(PatternBody(seed: 3, length: 200_000)).response(to: request)
            return request.path.hasPrefix("/held") ? answer.fault(.stall(gate), at: .body(100_000)) : answer
        }
    }

    private func transfer(_ name: String, _ queue: DownloadOptions.Queue, grace: Duration = .seconds(30)) -> Transfer<
        DownloadedFile
    > {
        var options = DownloadOptions()
        options.queue = queue
        options.pauseGrace = grace
        return session.downloadTransfer(Request(server.url("/\(name)")), to: .file(folder(name)), options: options)
    }

    private func paths() -> [String] { server.requests.map(\.path) }

    /// Starts a download that holds the only slot until the gate opens.
    private func hold(_ queue: DownloadOptions.Queue) async -> Transfer<DownloadedFile> {
        let held = transfer("held", queue).start()
        #expect(await gate.waitUntilReached())
        return held
    }

    /// Starts a download and waits until it is queued.
    private func waiting(_ name: String, _ queue: DownloadOptions.Queue) async -> Transfer<DownloadedFile> {
        let count = queue.waiting
        let transfer = transfer(name, queue).start()
        while queue.waiting == count, !Task.isCancelled { await Task.yield() }
        return transfer
    }

    @Test func waitingDownloadIsQueued() async throws {
        let queue = DownloadOptions.Queue(atMost: 1)
        let held = await hold(queue)
        let next = await waiting("next", queue)
        #expect(held.state == .running && next.state == .queued)
        gate.open()
        _ = try await (held.value, next.value)
        #expect(next.state == .finished)
    }

    /// The slot is released even while the server has not sent a response yet.
    @Test func pauseBeforeTheHeadReleasesTheSlot() async throws {
        let (gate, queue) = (Gate(), DownloadOptions.Queue(atMost: 1))
        let slow = try MockServer { request in
            RangeResource(PatternBody(seed: 3, length: 200_000)).response(to: request).fault(.stall(gate), at: .start)
        }
        var options = DownloadOptions()
        options.queue = queue
        options.pauseGrace = .zero
        let first = session.downloadTransfer(Request(slow.url("/first")), to: .file(folder("first")), options: options)
            .start()
        #expect(await gate.waitUntilReached())
        first.pause()
        #expect(try await transfer("second", queue).value.bytes == 200_000)
        gate.open()
        first.resume()
        #expect(try await first.value.bytes == 200_000)
    }

    @Test(arguments: [
        (DownloadOptions.Queue.Order.firstInFirstOut, ["/held", "/a", "/b", "/c"]),
        (.lastInFirstOut, ["/held", "/c", "/b", "/a"]),
    ])
    func downloadsStartInQueueOrder(_ order: DownloadOptions.Queue.Order, _ expected: [String]) async throws {
        let queue = DownloadOptions.Queue(atMost: 1, order: order)
        let held = await hold(queue)
        var others: [Transfer<DownloadedFile>] = []
        for name in ["a", "b", "c"] { others.append(await waiting(name, queue)) }
        #expect(queue.running == 1 && queue.waiting == 3 && paths() == ["/held"])
        gate.open()
        _ = try await held.value
        for other in others { #expect(try await other.value.bytes == 200_000) }
        #expect(paths() == expected)
        #expect(queue.running == 0 && queue.waiting == 0)
    }

    @Test func highestPriorityStartsNext() async throws {
        let queue = DownloadOptions.Queue(atMost: 1)
        let held = await hold(queue)
        let (a, b, c) = (await waiting("a", queue), await waiting("b", queue), await waiting("c", queue))
        c.priority = .high
        a.priority = .low
        gate.open()
        for transfer in [held, a, b, c] { _ = try await transfer.value }
        #expect(paths() == ["/held", "/c", "/b", "/a"])
    }

    @Test func pausedDownloadIsSkipped() async throws {
        let queue = DownloadOptions.Queue(atMost: 1)
        let held = await hold(queue)
        let (a, b) = (await waiting("a", queue), await waiting("b", queue))
        a.pause()
        #expect(a.state == .paused)
        gate.open()
        _ = try await held.value
        _ = try await b.value
        #expect(paths() == ["/held", "/b"] && queue.running == 0 && queue.waiting == 1)
        a.resume()
        _ = try await a.value
        #expect(paths() == ["/held", "/b", "/a"])
    }

    @Test func cancelledDownloadLeavesTheQueue() async throws {
        let queue = DownloadOptions.Queue(atMost: 1)
        let held = await hold(queue)
        let a = await waiting("a", queue)
        a.cancel()
        #expect(await failure { () async throws(NetworkError) in try await a.value }?.kind == .cancelled)
        #expect(queue.waiting == 0 && queue.running == 1)
        gate.open()
        _ = try await held.value
        #expect(queue.running == 0 && paths() == ["/held"])
    }

    @Test func failureReleasesTheSlot() async throws {
        let queue = DownloadOptions.Queue(atMost: 1)
        folder.write("taken", [1])
        let taken = transfer("taken", queue)
        #expect(await failure { () async throws(NetworkError) in try await taken.value }?.kind == .destinationFailed)
        #expect(queue.running == 0)
        #expect(try await transfer("a", queue).value.bytes == 200_000)
    }

    @Test func longPauseReleasesTheSlot() async throws {
        let queue = DownloadOptions.Queue(atMost: 1)
        let held = transfer("held", queue, grace: .zero).start()
        for await progress in held.progress where progress.received >= 100_000 { break }
        let a = await waiting("a", queue)
        held.pause()
        #expect(try await a.value.bytes == 200_000)
        gate.open()
        held.resume()
        #expect(try await held.value.bytes == 200_000)
        #expect(queue.running == 0)
    }

    @Test func raisedLimitStartsWaitingDownloadsAtOnce() async throws {
        let queue = DownloadOptions.Queue(atMost: 0)
        #expect(queue.atMost == 1)
        let held = await hold(queue)
        let a = await waiting("a", queue)
        queue.atMost = 2
        #expect(try await a.value.bytes == 200_000)
        gate.open()
        _ = try await held.value
    }

    @Test func sessionShutdownFailsQueuedDownloads() async throws {
        let queue = DownloadOptions.Queue(atMost: 1)
        let held = await hold(queue)
        let a = await waiting("a", queue)
        try await session.shutdown(.immediate)
        for transfer in [held, a] {
            #expect(await failure { () async throws(NetworkError) in try await transfer.value }?.kind == .sessionClosed)
        }
        gate.open()
        #expect(queue.running == 0 && queue.waiting == 0)
    }

    @Test func sessionListsDownloadsWithTheirKind() async throws {
        let queue = DownloadOptions.Queue()
        let held = await hold(queue)
        #expect(await session.transfers.map(\.kind) == [.download])
        gate.open()
        _ = try await held.value
    }
}
