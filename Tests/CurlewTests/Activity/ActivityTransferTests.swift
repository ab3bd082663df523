// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import CurlewTesting
import FoundationEssentials
import Testing

@testable import Curlew

/// The transfers that a monitor counts.
@Suite(.timeLimit(.minutes(5)))
struct ActivityTransferTests {
    private let session = Session()

    // MARK: Starts and ends

    @Test(arguments: Taking.allCases) func transferCountsUntilItsEnd(_ taking: Taking) async throws {
        let scene = try ActivityScene()
        let monitor = ActivityMonitor(immediatelyFor: session)
        async let taken = taking(scene.request(), by: session)
        await scene.gate().waitUntilReached()
        #expect(monitor.transfers.count == 1)
        scene.gate().open()
        _ = try await taken
        await monitor.wait(for: .notActive)
        #expect(monitor.transfers.isEmpty)
    }

    @Test func endIsCountedBeforeTheCallerContinues() async throws {
        let scene = try ActivityScene()
        let monitor = ActivityMonitor(immediatelyFor: session)
        for number in 1...20 {
            _ = try await session.data(for: scene.request(number))
            #expect(monitor.state == .notActive)
            _ = try await session.transfer(scene.request(number)).value
            #expect(monitor.state == .notActive)
        }
    }

    @Test func failedAndRedirectedTransfersAreRemoved() async throws {
        let server = try MockServer { request in
            request.path == "/from" ? .redirect(to: "/to") : .text("x").fault(.reset, at: .body(0))
        }
        let monitor = ActivityMonitor(immediatelyFor: session)
        for path in ["/from", "/to"] {
            _ = try? await session.data(for: Request(server.url(path)))
            _ = try? await session.transfer(Request(server.url(path))).value
        }
        _ = try? await session.data(for: "http://127.0.0.1:1/")
        _ = try? await session.data(for: "no url")
        #expect(monitor.state == .notActive && monitor.transfers.isEmpty)
    }

    @Test func queuedTransferCounts() async throws {
        let scene = try ActivityScene(1)
        let session = Session { $0.limits.transfersPerHost = 1 }
        let monitor = ActivityMonitor(immediatelyFor: session)
        let first = await scene.start(on: session)
        let second = session.transfer(scene.request(1)).start()
        #expect(await session.transfers.map(\.state) == [.running, .queued])
        #expect(monitor.transfers == [first.id, second.id])
        scene.gate().open()
        _ = try await (first.value, second.value)
        #expect(monitor.transfers.isEmpty)
    }

    @Test func transferCancelledBeforeItsStartNeverCounts() async throws {
        let scene = try ActivityScene()
        let monitor = ActivityMonitor(immediatelyFor: session)
        let transfer = session.transfer(scene.request())
        monitor.follow(transfer)
        transfer.cancel()
        _ = try? await transfer.value
        let data = Task { [session] in
            withUnsafeCurrentTask { $0?.cancel() }
            return try await session.data(for: scene.request())
        }
        _ = try? await data.value
        #expect(monitor.transfers.isEmpty && scene.server.requestCount == 0)
    }

    @Test func answersFromTheCacheAreBalanced() async throws {
        let scene = try CacheScene(respond: CacheScene.counting([.cacheControl: "max-age=60"]))
        let monitor = ActivityMonitor(immediatelyFor: scene.session)
        for _ in 0..<3 {
            try await scene.get("/")
            #expect(monitor.transfers.isEmpty)
            _ = try await scene.session.transfer(Request(scene.server.url("/"))).value
            #expect(monitor.transfers.isEmpty)
        }
        #expect(scene.requests == 1)
    }

    // MARK: Pauses (NA-02, NA-09)

    @Test func pausedTransferThatEndsIsRemovedOnce() async throws {
        let scene = try ActivityScene(2)
        let monitor = ActivityMonitor(immediatelyFor: session)
        let first = await scene.start(0, on: session)
        let second = await scene.start(1, on: session)
        first.pause()
        first.pause()
        #expect(monitor.transfers == [second.id])
        first.cancel()
        _ = try? await first.value
        // A counter that also counts the end of a paused transfer would be zero now.
        #expect(monitor.transfers == [second.id] && monitor.isActive)
        scene.gate(1).open()
        _ = try await second.value
        #expect(monitor.transfers.isEmpty && !monitor.isActive)
    }

    @Test func pausedTransferDoesNotCountUntilItIsResumed() async throws {
        let scene = try ActivityScene()
        let monitor = ActivityMonitor(immediatelyFor: session)
        let transfer = session.transfer(scene.request())
        transfer.pause()
        transfer.start()
        _ = await session.transfers
        #expect(!monitor.isActive)
        transfer.resume()
        await scene.gate().waitUntilReached()
        #expect(monitor.transfers == [transfer.id])
        transfer.pause()
        #expect(!monitor.isActive)
        transfer.resume()
        #expect(monitor.isActive)
        scene.gate().open()
        _ = try await transfer.value
        #expect(!monitor.isActive)
    }

    // MARK: Monitors that are created later (NA-10)

    @Test(arguments: [false, true]) func transfersThatRunAlreadyCount(isRecorded: Bool) async throws {
        struct Recorder: Session.Recorder { func record(_ end: TransferEvent) {} }
        let session = isRecorded ? Session(observers: [Recorder()]) : session
        let scene = try ActivityScene(2)
        let running = await scene.start(0, on: session)
        let paused = await scene.start(1, on: session)
        paused.pause()
        let monitor = ActivityMonitor(immediatelyFor: session)
        await monitor.wait(for: .active)
        #expect(monitor.transfers == [running.id])
        paused.resume()
        #expect(monitor.transfers == [running.id, paused.id])
        for number in 0..<2 { scene.gate(number).open() }
        _ = try await (running.value, paused.value)
        #expect(monitor.transfers.isEmpty)
    }

    @Test func enablingCountsTransfersThatRunAlready() async throws {
        let scene = try ActivityScene()
        let monitor = ActivityMonitor(immediatelyFor: session)
        monitor.isEnabled = false
        let transfer = await scene.start(on: session)
        #expect(!monitor.isActive)
        monitor.isEnabled = true
        #expect(monitor.isActive)
        scene.gate().open()
        _ = try await transfer.value
        #expect(!monitor.isActive)
    }

    // MARK: Waits for retries

    /// A server whose first response asks for a retry after ten seconds.
    private func refusing() throws -> MockServer {
        let isFirst = Lock(true)
        return try MockServer { _ in
            let refuses = isFirst.withLock { isFirst in
                defer { isFirst = false }
                return isFirst
            }
            return refuses ? .text("no", status: 503).field("Retry-After", "10") : .text("fine")
        }
    }

    @Test(arguments: [false, true]) func waitForARetryCounts(isMonitoredLate: Bool) async throws {
        let clock = StubClock()
        let session = Session(clock: clock) { $0.retry = RetryPolicy(limit: 1) }
        let server = try refusing()
        var monitor = isMonitoredLate ? nil : ActivityMonitor(immediatelyFor: session)
        let transfer = session.transfer(Request(server.url("/"))).start()
        await clock.waitUntil(sleepers: 1)
        let found = monitor ?? ActivityMonitor(immediatelyFor: session)
        monitor = found
        #expect(found.transfers == [transfer.id])
        transfer.pause()
        #expect(found.transfers.isEmpty)
        transfer.resume()
        #expect(found.transfers == [transfer.id])
        clock.advance(by: .seconds(60))
        #expect(try await transfer.value == Data("fine".utf8))
        #expect(found.transfers.isEmpty && server.requestCount == 2)
    }

    @Test func finishedRetryIsNotFoundByANewMonitor() async throws {
        let clock = StubClock()
        let session = Session(clock: clock) { $0.retry = RetryPolicy(limit: 1) }
        let server = try refusing()
        let transfer = session.transfer(Request(server.url("/"))).start()
        await clock.waitUntil(sleepers: 1)
        clock.advance(by: .seconds(60))
        _ = try await transfer.value
        let monitor = ActivityMonitor(immediatelyFor: session)
        _ = await session.transfers
        #expect(monitor.transfers.isEmpty)
    }

    // MARK: Sessions

    @Test func severalSessionsCount() async throws {
        let scene = try ActivityScene(2)
        let other = Session()
        let monitor = ActivityMonitor(for: session, other, activationDelay: .zero, completionDelay: .zero)
        monitor.watch(other)
        let first = await scene.start(0, on: session)
        let second = await scene.start(1, on: other)
        #expect(monitor.transfers == [first.id, second.id])
        monitor.unwatch(other)
        #expect(monitor.transfers == [first.id] && !other.core.relay.isObserved)
        monitor.unwatch(other)
        monitor.watch(other)
        monitor.unwatch(session)
        await monitor.wait(for: .active)
        #expect(monitor.transfers == [second.id])
        for number in 0..<2 { scene.gate(number).open() }
        _ = try await (first.value, second.value)
        #expect(monitor.transfers.isEmpty)
    }

    @Test(arguments: [false, true]) func shutdownRemovesTheTransfers(isPaused: Bool) async throws {
        let scene = try ActivityScene()
        let monitor = ActivityMonitor(immediatelyFor: session)
        let transfer = await scene.start(on: session)
        if isPaused { transfer.pause() }
        try await session.shutdown(.immediate)
        _ = try? await transfer.value
        #expect(monitor.state == .notActive && monitor.transfers.isEmpty)
        monitor.watch(session)
        monitor.unwatch(session)
        #expect(!session.core.relay.isObserved)
    }

    @Test func monitorDoesNotKeepASession() async throws {
        let monitor = ActivityMonitor(immediatelyFor: session)
        weak var relay: SessionRelay?
        let scene = try ActivityScene()
        do {
            let session = Session()
            relay = session.core.relay
            monitor.watch(session)
            _ = try await session.data(for: scene.request(1))
            try await session.shutdown()
        }
        #expect(relay == nil || relay?.isObserved == false)
        #expect(monitor.transfers.isEmpty)
    }

    @Test func releasedMonitorLeavesRunningTransfersAlone() async throws {
        let scene = try ActivityScene()
        var monitor: ActivityMonitor? = ActivityMonitor(immediatelyFor: session)
        let transfer = await scene.start(on: session)
        if let monitor { monitor.follow(transfer) }
        #expect(monitor?.isActive == true && session.core.relay.isObserved)
        monitor = nil
        #expect(!session.core.relay.isObserved)
        scene.gate().open()
        #expect(try await transfer.value == Data("done".utf8))
    }

    // MARK: Single transfers

    @Test func followedTransferCountsFromItsStart() async throws {
        let scene = try ActivityScene()
        let monitor = ActivityMonitor(immediatelyFor: Session())
        let transfer = session.transfer(scene.request())
        monitor.follow(transfer)
        monitor.follow(transfer)
        #expect(!monitor.isActive)
        transfer.start()
        #expect(monitor.transfers == [transfer.id])
        transfer.pause()
        #expect(!monitor.isActive)
        transfer.resume()
        #expect(monitor.isActive)
        scene.gate().open()
        _ = try await transfer.value
        #expect(!monitor.isActive)
        monitor.follow(transfer)
        #expect(!monitor.isActive)
    }

    @Test func followedTransferOfAWatchedSessionCountsOnce() async throws {
        let scene = try ActivityScene()
        let monitor = ActivityMonitor(immediatelyFor: session)
        let transfer = await scene.start(on: session)
        monitor.follow(transfer)
        #expect(monitor.transfers == [transfer.id])
        monitor.unwatch(session)
        #expect(monitor.isActive)
        scene.gate().open()
        _ = try await transfer.value
        #expect(!monitor.isActive)
    }

    // MARK: Random operations

    /// Compares the set of a monitor with a plain model after each of many random operations.
    @Test(arguments: 0..<4 as Range<UInt64>) func setEqualsAModel(seed: UInt64) async throws {
        enum State { case idle, running, finished }
        var chance = SeededChance(seed)
        let count = 12
        let scene = try ActivityScene(count)
        let sessions = [Session(), Session()]
        let monitor = ActivityMonitor(immediatelyFor: sessions[0], sessions[1])
        let transfers = (0..<count).map { sessions[$0 % 2].transfer(scene.request($0)) }
        var states = Array(repeating: State.idle, count: count)
        var paused = Set<Int>()
        for _ in 0..<150 {
            let number = Int.random(in: 0..<count, using: &chance)
            let transfer = transfers[number]
            switch (Int.random(in: 0..<6, using: &chance), states[number]) {
            case (0, .idle), (1, .idle):
                transfer.start()
                states[number] = .running
            case (2, _):
                transfer.pause()
                paused.insert(number)
            case (3, _):
                transfer.resume()
                paused.remove(number)
            case (4, .running):
                transfer.cancel()
                _ = try? await transfer.value
                states[number] = .finished
            case (5, .running) where !paused.contains(number):
                scene.gate(number).open()
                _ = try await transfer.value
                states[number] = .finished
            default: continue
            }
            // The loops have executed all earlier commands when they have listed their transfers.
            for session in sessions { _ = await session.transfers }
            let model = (0..<count).filter { states[$0] == .running && !paused.contains($0) }
            #expect(monitor.transfers == Set(model.map { transfers[$0].id }))
            #expect(monitor.isActive == !model.isEmpty)
        }
        for transfer in transfers {
            transfer.cancel()
            _ = try? await transfer.value
        }
        #expect(monitor.transfers.isEmpty && !monitor.isActive)
    }

    @Test func manyConcurrentTransfersEndInactive() async throws {
        let scene = try ActivityScene()
        let sessions = [Session(), Session { $0.retry = RetryPolicy(limit: 2, backoff: .none) }]
        let monitor = ActivityMonitor(immediatelyFor: sessions[0], sessions[1])
        await withTaskGroup(of: Void.self) { group in
            for number in 1...300 {
                group.addTask {
                    let session = sessions[number % 2]
                    let transfer = session.transfer(scene.request(number))
                    switch number % 6 {
                    case 0: _ = try? await session.data(for: scene.request(number))
                    case 1: _ = try? await transfer.value
                    case 2:
                        transfer.start()
                        transfer.cancel()
                        _ = try? await transfer.value
                    case 3:
                        transfer.start()
                        transfer.pause()
                        transfer.resume()
                        _ = try? await transfer.value
                    case 4:
                        monitor.follow(transfer)
                        transfer.start()
                        transfer.pause()
                        transfer.cancel()
                        _ = try? await transfer.value
                    default:
                        let task = Task { try await session.data(for: scene.request(number)) }
                        task.cancel()
                        _ = try? await task.value
                    }
                }
            }
        }
        for session in sessions { try await session.idle() }
        #expect(monitor.transfers.isEmpty && monitor.state == .notActive)
    }
}
