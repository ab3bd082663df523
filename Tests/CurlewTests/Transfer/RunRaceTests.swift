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

    @Test func lateReaderEndsTheWaitOfRetriesForTheBody() async throws {
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

    @Test func responseOfAnotherTransferEndsThisOne() async throws {
        let server = try MockServer { _ in .text("shared") }
        let kept = Lock<IncomingResponse?>(nil)
        let session = Session(interceptors: [
            .intercept { request, _, next in
                if let response = kept.withLock({ $0 }) { return response }
                let response = try await next(request)
                kept.withLock { $0 = response }
                return response
            }
        ])
        _ = try await session.data(for: Request(server.url("/")))
        #expect(try await session.data(for: Request(server.url("/"))).1.status == .ok)
        #expect(server.requestCount == 1)
        kept.withLock { $0 = nil }
        try await session.idle()
    }

    @Test func collectedBodyIsNotStreamedAsAnEmptyOne() async throws {
        let server = try MockServer { _ in .text("shared") }
        let kept = Lock<IncomingResponse?>(nil)
        let session = Session(interceptors: [
            .intercept { request, _, next in
                if let response = kept.withLock({ $0 }) { return response }
                let response = try await next(request)
                kept.withLock { $0 = response }
                return response
            }
        ])
        let first = session.transfer(Request(server.url("/")))
        #expect(try await first.value == Data("shared".utf8))
        let second = session.transfer(Request(server.url("/")))
        let error = try await networkError { for try await _ in second.bytes {} }
        #expect(error.kind == .invalidRequest)
        #expect(try await first.value == Data("shared".utf8))
        kept.withLock { $0 = nil }
    }

    /// Two transfers with one response, whose body is still arriving, both get it.
    @Test func keptResponseGivesItsBodyToBothTransfers() async throws {
        let pattern = PatternBody(seed: 8, length: 4000)
        let (gate, secondResponse) = (Gate(), Gate())
        let server = try MockServer { _ in .pattern(pattern).fault(.stall(gate), at: .body(500)) }
        let kept = Lock<IncomingResponse?>(nil)
        let session = Session(interceptors: [
            .intercept { request, _, next in
                if let response = kept.withLock({ $0 }) {
                    secondResponse.open()
                    return response
                }
                let response = try await next(request)
                kept.withLock { $0 = response }
                return response
            }
        ])
        let first = session.transfer(Request(server.url("/"))).start()
        await gate.waitUntilReached()
        while kept.withLock({ $0 }) == nil { await Task.yield() }
        let second = session.transfer(Request(server.url("/"))).start()
        await secondResponse.wait()
        gate.open()
        let values = try await [first.value, second.value, second.value, first.value]
        #expect(values.allSatisfy { $0 == Data(pattern.bytes(in: 0..<4000)) })
        #expect(try await session.data(for: Request(server.url("/"))).0 == Data(pattern.bytes(in: 0..<4000)))
        kept.withLock { $0 = nil }
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
                    for try await _ in replaced.bytes { started.open() }
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
        let server = try MockServer { _ in .text(String(repeating: "a", count: 60_000)) }
        let session = Session(interceptors: [
            .intercept { request, _, next in
                let (start, response) = try await next(request).peek(.bytes(5))
                #expect(start == Data("aaaaa".utf8))
                await response.discard()
                return response.with(body: "short".utf8)
            }
        ])
        for _ in 0..<3 { #expect(try await session.data(for: Request(server.url("/"))).0 == Data("short".utf8)) }
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
        transfer.resume()
        gate.open()
        #expect(try await transfer.value.count == 4000)
        #expect(queued.sorted() == [1, 2])
        #expect(paused == [1, 2])
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

    @Test func viewsOfADownloadDoNotBlockItsPauses() async throws {
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

    @Test func unusedTransferIsNoEventOfItsSession() async throws {
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
