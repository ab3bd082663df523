// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import Curlew
import CurlewTesting
import FoundationEssentials
import Testing

/// Calls on a transfer that race with its chain, its attempts and other calls.
@Suite(.timeLimit(.minutes(5)))
struct RunRaceTests {
    @Test(arguments: [1000, 4 << 20])
    func lateReaderGetsTheBodyThatAnInterceptorCollects(length: Int) async throws {
        let pattern = PatternBody(seed: 4, length: length)
        let (gate, collecting) = (Gate(), Gate())
        let server = try MockServer { _ in .pattern(pattern).fault(.stall(gate), at: .body(500)) }
        let session = Session(interceptors: [
            .intercept { request, _, next in
                let response = try await next(request)
                collecting.open()
                return response.with(body: try await response.collect())
            }
        ])
        let transfer = session.transfer(Request(server.url("/"))).start()
        await collecting.wait()
        let reader = Task.immediate {
            var count = 0
            for try await chunk in transfer.bytes { count += chunk.count }
            return count
        }
        gate.open()
        #expect(try await reader.value == length)
    }

    @Test(arguments: [false, true])
    func bodyOfAnInterceptorReplacesABodyThatFailed(isCollected: Bool) async throws {
        let pattern = PatternBody(seed: 5, length: 1 << 20)
        let server = try MockServer { _ in .pattern(pattern).fault(.close, at: .body(600_000)) }
        let session = Session(interceptors: [
            .intercept { request, _, next in
                let response = try await next(request)
                if isCollected {
                    _ = try? await response.collect()
                } else {
                    for try await _ in response.bytes { break }
                    await Task.yield()
                }
                return response.with(body: "instead".utf8)
            }
        ])
        let body = Data("instead".utf8)
        #expect(try await session.data(for: Request(server.url("/"))).0 == body)
        #expect(try await session.transfer(Request(server.url("/"))).value == body)
        #expect(try await session.transfer(Request(server.url("/"))).start().value == body)
    }

    /// A session whose retries surround an interceptor that opens a gate when the head has arrived.
    private func sessionWithRetries(_ headArrived: Gate) -> Session {
        var configuration = Session.Configuration()
        configuration.retry = RetryPolicy(limit: 1, backoff: .none)
        return Session(
            configuration,
            interceptors: [
                .intercept(scope: .attempt) { request, _, next in
                    let response = try await next(request)
                    headArrived.open()
                    return response
                }
            ])
    }

    @Test func failureAfterTheHeadOfACollectedBodyIsRetried() async throws {
        let (gate, headArrived, isFirst) = (Gate(), Gate(), Lock(true))
        let server = try MockServer { _ in
            let isFirst = isFirst.withLock { isFirst in
                defer { isFirst = false }
                return isFirst
            }
            return isFirst
                ? .text("cut off").fault(.stall(gate), at: .body(2)).fault(.close, at: .body(3)) : .text("whole")
        }
        let session = sessionWithRetries(headArrived)
        let task = Task { try await session.data(for: Request(server.url("/"))).0 }
        await headArrived.wait()
        gate.open()
        #expect(try await task.value == Data("whole".utf8))
        #expect(server.requestCount == 2)
    }

    @Test func streamReaderEndsTheWaitOfRetries() async throws {
        let (gate, headArrived) = (Gate(), Gate())
        let server = try MockServer { _ in .text("streamed").fault(.stall(gate), at: .body(2)) }
        let transfer = sessionWithRetries(headArrived).transfer(Request(server.url("/"))).start()
        await headArrived.wait()
        var body = Data()
        for try await chunk in transfer.bytes {
            gate.open()
            body.append(contentsOf: chunk)
        }
        #expect(body == Data("streamed".utf8))
    }

    /// The reader of a replaced body and the discard of the response must not wait for the same step.
    @Test func discardOfABodyThatIsReadEndsItsReader() async throws {
        let (gate, started) = (Gate(), Gate())
        let server = try MockServer { request in
            if request.path == "/next" { return .text("next") }
            return .pattern(PatternBody(seed: 9, length: 4000)).fault(.stall(gate), at: .body(500))
        }
        let error = Lock<NetworkError?>(nil)
        let session = Session(interceptors: [
            .intercept { request, _, next in
                let response = try await next(request)
                if response.request.url.hasSuffix("/next") { return response }
                let replaced = response.with(chunks: response.bytes)
                let reader = Task {
                    for try await _ in response.bytes { started.open() }
                }
                await started.wait()
                await replaced.discard()
                do { try await reader.value } catch let failure as NetworkError { error.withLock { $0 = failure } }
                return try await next(Request(server.url("/next")))
            }
        ])
        #expect(try await session.data(for: Request(server.url("/"))).0 == Data("next".utf8))
        #expect(error.withLock { $0?.kind } == .cancelled)
        gate.open()
    }

    /// A short rest behind a start that was read is read as well, so the connection stays usable.
    @Test func discardAfterPeekKeepsTheConnection() async throws {
        let gates = Lock<[Gate]>([])
        let server = try MockServer { _ in
            let gate = Gate()
            gates.withLock { $0.append(gate) }
            return .text(String(repeating: "a", count: 60_000)).fault(.stall(gate), at: .body(1000))
        }
        // The clock stands still during `discard()`: on a busy machine the time for the rest of a body would pass.
        let clock = StubClock()
        let session = Session(clock: clock)
        var request = Request(server.url("/"))
        request.interceptors = [
            .intercept { request, _, next in
                let isPeeked = Lock(false)
                async let peeking = {
                    defer { isPeeked.withLock { $0 = true } }
                    return try await next(request).peek(.bytes(5))
                }()
                // The loop reports the head only after a while, because the whole response might arrive.
                while !isPeeked.withLock({ $0 }) { await session.advance(clock, by: .milliseconds(10)) }
                let (start, response) = try await peeking
                #expect(start == Data("aaaaa".utf8))
                let discarding = Task.immediate { await response.discard() }
                for _ in 0..<100 { await Task.yield() }
                gates.withLock { $0.last }?.open()
                await discarding.value
                return IncomingResponse(ResponseHead(status: .ok), body: "short".utf8, to: request)
            }
        ]
        for _ in 0..<5 { #expect(try await session.data(for: request).0 == Data("short".utf8)) }
        #expect(server.connectionCount == 1)
    }

    @Test func replacedBodyCannotBeRead() async throws {
        let server = try MockServer { _ in .text("old") }
        let session = Session(interceptors: [
            .intercept { request, _, next in
                let old = try await next(request)
                let response = old.with(body: "new".utf8)
                let error = try await networkError { _ = try await old.collect() }
                #expect(error.kind == .invalidRequest)
                return response
            }
        ])
        #expect(try await session.data(for: Request(server.url("/"))).0 == Data("new".utf8))
    }

    /// Requests that an interceptor sends at the same time have numbers of their own, and a pause reaches all of them.
    @Test func simultaneousAttemptsHaveNumbersAndArePaused() async throws {
        let gate = Gate()
        let server = try MockServer { _ in
            .pattern(PatternBody(seed: 3, length: 4000)).fault(.stall(gate), at: .start)
        }
        let session = Session(interceptors: [
            .intercept { request, _, next in
                async let other = next(request)
                let response = try await next(request)
                await (try await other).discard()
                return response
            }
        ])
        let transfer = session.transfer(Request(server.url("/")))
        let events = transfer.events
        transfer.start()
        await gate.waitUntilReached(times: 2)
        transfer.pause()
        var queued: [Int] = []
        var paused: Set<Int> = []
        for await event in events {
            if case .queued = event.kind { queued.append(event.attempt) }
            if case .paused = event.kind, paused.insert(event.attempt).inserted, paused.count == 2 { break }
        }
        #expect(await session.transfers.map(\.id) == [transfer.id])
        transfer.resume()
        gate.open()
        #expect(try await transfer.value.count == 4000)
        #expect(queued.sorted() == [1, 2])
        #expect(paused == [1, 2])
    }

    /// A body that a task reads while the chain fails or replaces the body is not whole for that task.
    @Test(arguments: [false, true], [false, true])
    func interruptedBodyFailsForItsReader(isCollected: Bool, isReplaced: Bool) async throws {
        let gate = Gate()
        let server = try MockServer { _ in
            .pattern(PatternBody(seed: 2, length: 4000)).fault(.stall(gate), at: .body(500))
        }
        let reader = Lock<Task<Int, any Error>?>(nil)
        let session = Session(interceptors: [
            .intercept { request, _, next in
                let response = try await next(request)
                let started = Gate()
                reader.withLock { reader in
                    reader = Task.immediate {
                        started.open()
                        if isCollected { return try await response.collect().count }
                        var count = 0
                        for try await chunk in response.bytes { count += chunk.count }
                        return count
                    }
                }
                await started.wait()
                if isReplaced { return response.with(body: "new".utf8) }
                throw CancellationError()
            }
        ])
        let result = await Task { try await session.data(for: Request(server.url("/"))).0 }.result
        if isReplaced { #expect(try result.get() == Data("new".utf8)) }
        let error = try await networkError { try await reader.withLock { $0 }?.value }
        #expect(error.kind == .cancelled)
        gate.open()
    }

    /// Retries also wait for a body that an interceptor inside has changed.
    @Test func failureInAChangedBodyIsRetried() async throws {
        let isFirst = Lock(true)
        let server = try MockServer { _ in
            let isFirst = isFirst.withLock { isFirst in
                defer { isFirst = false }
                return isFirst
            }
            return isFirst ? .text("cut off").fault(.close, at: .body(3)) : .text("whole")
        }
        var configuration = Session.Configuration()
        configuration.retry = RetryPolicy(limit: 1, backoff: .none)
        let mapping = ClosureInterceptor(scope: .attempt) { request, _, next in
            try await next(request).mapBytes { $0 }
        }
        let session = Session(configuration, interceptors: [mapping])
        #expect(try await session.data(for: Request(server.url("/"))).0 == Data("whole".utf8))
        isFirst.withLock { $0 = true }
        #expect(try await session.transfer(Request(server.url("/"))).value == Data("whole".utf8))
        #expect(server.requestCount == 4)
    }

    /// A request that an interceptor sends after it has responded is not an event of the finished transfer.
    @Test func eventsEndThoughAnInterceptorContinues() async throws {
        let server = try MockServer { _ in .text("refreshed") }
        server.on(nil, "/stale", .redirect(to: "/fresh"))
        let (respond, refreshed) = (Gate(), Gate())
        let session = Session(interceptors: [
            .intercept { request, _, next in
                Task {
                    await respond.wait()
                    _ = try? await next(request).collect()
                    refreshed.open()
                }
                return IncomingResponse(ResponseHead(status: .ok), body: "stale".utf8, to: request)
            }
        ])
        let events = session.events
        let transfer = session.transfer(Request(server.url("/stale")))
        #expect(try await transfer.value == Data("stale".utf8))
        respond.open()
        await refreshed.wait()
        try await session.shutdown()
        var kinds: [String] = []
        for await event in events {
            if case .transfer(let event) = event { kinds.append("\(event.kind)") }
        }
        #expect(kinds.count == 1, "\(kinds)")
    }

    /// Cancelling a task on the session's executor must not wait for a lock that the task holds.
    @Test func cancellationOfTasksOnTheExecutorIsNoDeadlock() async throws {
        let server = try MockServer { _ in .text("cancelled") }
        let session = Session()
        for _ in 0..<300 {
            let task = Task(executorPreference: session.executor) {
                _ = try await session.data(for: Request(server.url("/")))
            }
            let stream = Task(executorPreference: session.executor) {
                for try await _ in session.transfer(Request(server.url("/"))).bytes {}
            }
            await Task.yield()
            task.cancel()
            stream.cancel()
            _ = await (task.result, stream.result)
        }
    }

    @Test func lateObserverGetsTheMetrics() async throws {
        let server = try MockServer { _ in .text("measured") }
        let transfer = Session().transfer(Request(server.url("/")))
        _ = try await transfer.value
        var kinds: [String] = []
        for await event in transfer.events {
            switch event.kind {
            case .state(.finished): kinds.append("state")
            case .metrics(let metrics): kinds.append("metrics \(metrics.responseBodyBytes)")
            case .finished(nil): kinds.append("finished")
            default: kinds.append("other")
            }
        }
        #expect(kinds == ["state", "metrics 8", "finished"])
    }

    @Test func stateOfADownloadCanBeReadWhileItIsPaused() async throws {
        let folder = try Folder()
        let gate = Gate()
        let server = try MockServer { _ in
            .pattern(PatternBody(seed: 6, length: 1 << 20)).fault(.stall(gate), at: .body(1000))
        }
        let transfer = Session().downloadTransfer(Request(server.url("/")), to: .file(folder("a"))).start()
        await gate.waitUntilReached()
        await withTaskGroup(of: Void.self) { group in
            group.addTask {
                for _ in 0..<2000 {
                    transfer.pause()
                    transfer.resume()
                }
            }
            group.addTask {
                for _ in 0..<4000 { #expect(!transfer.currentProgress.isFinished && transfer.state != .finished) }
            }
        }
        gate.open()
        #expect(try await transfer.value.bytes == 1 << 20)
    }

    @Test func unusedTransferSendsNoSessionEvent() async throws {
        let server = try MockServer { _ in .text("used") }
        let session = Session()
        let events = session.events
        session.transfer(Request(server.url("/unused"))).cancel()
        _ = session.transfer(Request(server.url("/unused")))
        _ = try await session.data(for: Request(server.url("/used")))
        try await session.shutdown()
        var urls: Set<String> = []
        for await event in events { if case .transfer(let event) = event { urls.insert(event.url) } }
        #expect(urls == [server.url("/used")])
    }
}
