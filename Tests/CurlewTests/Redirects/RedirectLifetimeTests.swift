// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import Curlew
import CurlewEngine
import CurlewTesting
import FoundationEssentials
import Testing

/// Timeouts, priority, pausing and cancellation across all requests of a redirected transfer.
@Suite(.timeLimit(.minutes(5)))
struct RedirectLifetimeTests {
    static let ways: [Taking] = [.data, .value, .stream, .bytes, .started, .watched]

    // MARK: Time

    @Test(arguments: ways)
    func totalTimeoutCoversAllRedirects(_ way: Taking) async throws {
        let server = try MockServer { request in
            .redirect(to: "/\((Int(request.path.dropFirst()) ?? 0) + 1)")
                .fault(.pause(.milliseconds(500)), at: .start)
        }
        var request = Request(server.url("/1"))
        request.options.timeouts = Timeouts(total: .seconds(2))
        request.options.redirects = .follow(max: 1000)
        let start = ContinuousClock.now
        let error = try await networkError { [request] in _ = try await way(request, by: Session()) }
        #expect(error.kind == .timedOut && start.duration(to: .now) >= .milliseconds(1990), "\(error)")
        #expect(server.requestCount <= 5)
    }

    @Test(arguments: ways)
    func totalTimeoutExpiresDuringRedirectDecision(_ way: Taking) async throws {
        let server = try MockServer { _ in .redirect(to: "/2") }
        let slow = try MockServer { _ in .text("late").fault(.pause(.milliseconds(2100)), at: .start) }
        var request = Request(server.url("/1"))
        request.options.timeouts = Timeouts(total: .seconds(2))
        request.options.redirects = .custom { _ in
            _ = try await Session().data(for: Request(slow.url("/")))
            return .follow
        }
        let error = try await networkError { [request] in _ = try await way(request, by: Session()) }
        #expect(error.kind == .timedOut, "\(error)")
        #expect(server.requestCount == 1)
    }

    // MARK: Pause and priority

    @Test func pauseWorksBeforeStartAndBetweenRedirects() async throws {
        let scene = try RedirectScene()
        let transfer = scene.session.transfer(scene.request)
        transfer.pause()
        transfer.start()
        #expect(await scene.session.transfers.map(\.state) == [.paused])
        #expect(transfer.state == .paused && scene.server.requestCount == 0)
        transfer.resume()
        await scene.reached.wait()
        transfer.pause()
        #expect(transfer.state == .paused)
        scene.onward.open()
        while await scene.session.transfers.map(\.id) != [transfer.id], !Task.isCancelled { await Task.yield() }
        #expect(await scene.session.transfers.map(\.state) == [.paused])
        #expect(transfer.state == .paused && scene.server.requestCount == 1)
        transfer.resume()
        #expect(try await transfer.value == Data("there".utf8))
        #expect(scene.server.asked == ["GET /1", "GET /2"])
    }

    @Test(arguments: [false, true])
    func priorityIsKeptAcrossRedirects(_ isSetBetween: Bool) async throws {
        let scene = try RedirectScene { $0.limits.transfersPerHost = 1 }
        let held = Gate()
        scene.server.on("GET", "/held", .text("held").fault(.stall(held), at: .start))
        var request = scene.request
        if !isSetBetween { request.options.priority = .high }
        let transfer = scene.session.transfer(request).start()
        await scene.reached.wait()
        let blocker = scene.session.transfer(Request(scene.server.url("/held"))).start()
        await held.waitUntilReached()
        let other = scene.session.transfer(Request(scene.server.url("/other"))).start()
        if isSetBetween { transfer.priority = .high }
        #expect(transfer.priority == .high)
        scene.onward.open()
        while await scene.session.transfers.count < 3, !Task.isCancelled { await Task.yield() }
        held.open()
        for each in [blocker, other, transfer] { _ = try await each.value }
        #expect(scene.server.asked == ["GET /1", "GET /held", "GET /2", "GET /other"])
    }

    // MARK: Cancelling

    @Test(arguments: ways, [false, true])
    func taskCancellationDuringRedirectsEndsTheTransfer(_ way: Taking, _ isBetween: Bool) async throws {
        let gate = Gate()
        let scene = try RedirectScene(answer: .text("there").fault(.stall(gate), at: .body(2)))
        let task = Task { try await way(scene.request, by: scene.session) }
        await scene.reached.wait()
        if !isBetween {
            scene.onward.open()
            await gate.waitUntilReached()
        }
        task.cancel()
        if [.stream, .started, .watched].contains(way) {
            // A started transfer continues, a watched one is cancelled with its last reference, and a standard stream
            // ends without an error.
            _ = try? await task.value
            if way == .started { try await scene.session.shutdown(.immediate) }
            scene.onward.open()
        } else {
            let error = try await networkError { _ = try await task.value }
            #expect(error.kind == .cancelled, "\(error)")
        }
        try await scene.session.idle()
        #expect(scene.server.requestCount == (isBetween ? 1 : 2))
        #expect(scene.wasCancelled.withLock { $0 } == (isBetween && way != .started))
    }

    @Test(arguments: [false, true])
    func cancelledTransferStopsRedirects(_ isBetween: Bool) async throws {
        let gate = Gate()
        let scene = try RedirectScene(answer: .text("there").fault(.stall(gate), at: .start))
        let transfer = scene.session.transfer(scene.request).start()
        await scene.reached.wait()
        if !isBetween {
            scene.onward.open()
            await gate.waitUntilReached()
        }
        transfer.cancel()
        let error = try await networkError { try await transfer.value }
        #expect(error.kind == .cancelled && transfer.state == .finished && !transfer.currentProgress.isFinished)
        try await scene.session.idle()
    }

    @Test func cancellingOneOfTwoWaitersKeepsRedirectRunning() async throws {
        let scene = try RedirectScene()
        let transfer = scene.session.transfer(scene.request)
        let first = Task.immediate { try await transfer.value }
        let second = Task.immediate { try await transfer.value }
        await scene.reached.wait()
        first.cancel()
        #expect(try await networkError { try await first.value }.kind == .cancelled)
        scene.onward.open()
        #expect(try await second.value == Data("there".utf8))
        #expect(try await transfer.value == Data("there".utf8))
    }

    @Test func cancellingAllWaitersCancelsRedirect() async throws {
        let scene = try RedirectScene()
        let transfer = scene.session.transfer(scene.request)
        let tasks = (0..<3).map { _ in Task.immediate { try await transfer.value } }
        await scene.reached.wait()
        for task in tasks { task.cancel() }
        for task in tasks { #expect(try await networkError { try await task.value }.kind == .cancelled) }
        #expect(try await networkError { try await transfer.value }.kind == .cancelled)
        #expect(scene.wasCancelled.withLock { $0 } && scene.server.requestCount == 1)
        try await scene.session.idle()
    }

    // MARK: References

    @Test(arguments: [false, true])
    func breakingOutOfStreamAfterRedirectCancelsTransfer(_ ofBytes: Bool) async throws {
        let gate = Gate()
        let script = MockResponse.pattern(PatternBody(seed: 1, length: 1 << 20)).fault(.stall(gate), at: .body(70_000))
        let scene = try RedirectScene(answer: script)
        scene.onward.open()
        let transfer = scene.session.transfer(scene.request)
        if ofBytes {
            for try await _ in transfer.bytes { break }
        } else {
            for try await element in transfer.stream { if case .bytes = element { break } }
        }
        await transfer.waitUntilFinished()
        #expect(try await networkError { try await transfer.value }.kind == .cancelled)
        // Both requests used the same connection, so no connection stays open.
        await scene.server.waitUntil(openConnections: 0)
    }

    @Test(arguments: [false, true])
    func releasingTransferDuringRedirectCancelsUnlessStarted(_ isStarted: Bool) async throws {
        let scene = try RedirectScene()
        func begin() async {
            let transfer = scene.session.transfer(scene.request)
            if isStarted { transfer.start() } else { await transfer.startWithoutDetaching() }
            await scene.reached.wait()
        }
        await begin()
        if isStarted { scene.onward.open() }
        try await scene.session.idle()
        #expect(scene.server.asked == (isStarted ? ["GET /1", "GET /2"] : ["GET /1"]))
        #expect(scene.wasCancelled.withLock { $0 } == !isStarted)
    }

    // MARK: State and progress

    @Test func transferStaysRunningAcrossRedirects() async throws {
        let gates = [Gate(), Gate()]
        let scene = try RedirectScene(answer: .text("there").fault(.stall(gates[1]), at: .start))
        scene.server.on("GET", "/1", .redirect(to: "/2").fault(.stall(gates[0]), at: .start))
        let transfer = scene.session.transfer(scene.request).start()
        for (gate, between) in zip(gates, [scene.reached, nil]) {
            await gate.waitUntilReached()
            #expect(await scene.session.transfers.map(\.id) == [transfer.id])
            #expect(transfer.state == .running && transfer.metrics == nil && !transfer.currentProgress.isFinished)
            gate.open()
            guard let between else { continue }
            await between.wait()
            #expect(transfer.state == .running && transfer.metrics == nil && !transfer.currentProgress.isFinished)
            scene.onward.open()
        }
        #expect(try await transfer.value == Data("there".utf8))
        #expect(transfer.state == .finished && transfer.currentProgress.isFinished)
        #expect(transfer.metrics?.responseBodyBytes == 5)
    }

    @Test(arguments: [false, true])
    func progressIsMonotonicAcrossRedirects(_ isStreamed: Bool) async throws {
        let server = try MockServer { request in
            let number = Int(request.path.dropFirst()) ?? 0
            return number == 200 ? .text("there") : .redirect(to: "/\(number + 1)")
        }
        let session = Session { $0.redirects = .follow(max: 1000) }
        let transfer = session.transfer(Request(server.url("/1")))
        let observer = Task.detached {
            var last = Duration.zero
            while transfer.state != .finished {
                let progress = transfer.currentProgress
                #expect(progress.elapsed >= last)
                #expect(!progress.isFinished || transfer.state == .finished)
                last = progress.elapsed
                await Task.yield()
            }
            return server.requestCount
        }
        if isStreamed {
            let record = try await StreamRecord(transfer)
            #expect(record.body == Data("there".utf8))
            #expect(record.progress.last?.isFinished == true)
            #expect(!record.progress.dropLast().map(\.isFinished).contains(true))
            #expect(zip(record.progress, record.progress.dropFirst()).allSatisfy { $0.elapsed <= $1.elapsed })
        } else {
            #expect(try await transfer.value == Data("there".utf8))
        }
        #expect(await observer.value == 200)
    }
}
