// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import CurlewTesting
import FoundationEssentials
import Testing

@testable import Curlew

/// A clock that advances by 100 s with each wait, and not otherwise.
private final class SlowClock: Clock {
    private let time = Lock(Duration.zero)

    var now: RecordingClock.Instant { RecordingClock.Instant(offset: time.withLock { $0 }) }
    var minimumResolution: Duration { .nanoseconds(1) }

    func sleep(until deadline: RecordingClock.Instant, tolerance: Duration?) async throws {
        time.withLock { $0 += .seconds(100) }
    }
}

/// The retries of downloads and of their range fetchers follow the retry policy of the session.
@Suite(.timeLimit(.minutes(5)))
struct DownloadRetryTests {
    private let folder: Folder
    private let body = PatternBody(seed: 5, length: 2_000_000)

    init() throws { folder = try Folder() }

    private func session(
        _ policy: RetryPolicy, clock: any Clock<Duration> = ContinuousClock(), _ interceptors: [any Interceptor] = []
    ) -> Session {
        let retry = RetryInterceptor(policy, isOfSession: true, clock: clock, chance: { 1 })
        let configuration = Session.Configuration { $0.retry = policy }
        return Session(
            core: SessionCore(configuration, trust: SystemTrust(), interceptors: interceptors, retry: retry))
    }

    /// Two connections: the front, which stalls at 300,000 bytes, and one range fetcher.
    private func server(
        _ gate: Gate, _ fetched: @escaping @Sendable (RecordedRequest, MockResponse) -> MockResponse
    ) throws -> MockServer {
        let body = body
        return try MockServer { request in
            let response = RangeResource(body, tag: "\"1\"").response(to: request)
            return request.field("Range") == nil
                ? response.fault(.stall(gate), at: .body(300_000)) : fetched(request, response)
        }
    }

    private var options: DownloadOptions {
        var options = DownloadOptions()
        options.segments = 2
        options.minimumChunk = 100_000
        return options
    }

    /// The requests of the range fetcher, which name the end of their range.
    private func fetches(_ server: MockServer) -> Int {
        server.requests.count { $0.field("Range")?.hasSuffix("-") == false }
    }

    private func isWhole(_ file: DownloadedFile) -> Bool { file.bytes == 2_000_000 && folder.bytes("a") == body.bytes }

    /// Waits until the server has received so many requests.
    private func requests(_ count: Int, at server: MockServer) async {
        for _ in 0..<count { _ = await server.nextRequest() }
    }

    @Test func rangeFetcherStopsAfterAPermanentError() async throws {
        let (gate, attempts) = (Gate(), Lock(0))
        let server = try server(gate) { $1 }
        let policy = RetryPolicy(limit: 5, backoff: .none, budget: nil)
        let refused = ClosureInterceptor(scope: .attempt) { request, _, next in
            guard request.fields[.range]?.hasSuffix("-") == false else { return try await next(request) }
            if attempts.withLock({ count in
                count += 1; return count
            }) == 1 {
                gate.open()
            }
            throw NetworkError(.untrusted, phase: .securing, "Another certificate.", request: request)
        }
        let file = try await session(policy, [refused])
            .download(Request(server.url("/")), to: .file(folder("a")), options: options)
        #expect(isWhole(file) && attempts.withLock { $0 } == 1)
    }

    /// Three workers: one fails with an error that the others would get too, while their first requests still wait.
    @Test func permanentErrorStopsAllRangeFetchers() async throws {
        let (gate, arrived, held, count) = (Gate(), Gate(), Gate(), Lock(0))
        let server = try server(gate) { $1 }
        let refused = ClosureInterceptor(scope: .attempt) { request, _, next in
            guard request.fields[.range]?.hasSuffix("-") == false else { return try await next(request) }
            let number = count.withLock { count in
                count += 1
                return count
            }
            if number == 3 { arrived.open() }
            if number == 1 {
                await arrived.wait()
                throw NetworkError(.untrusted, phase: .securing, "Another certificate.", request: request)
            }
            await held.wait()
            return try await next(request)
        }
        var options = options
        options.segments = 4
        let transfer = session(RetryPolicy(limit: 5, backoff: .none, budget: nil), [refused])
            .downloadTransfer(Request(server.url("/")), to: .file(folder("a")), options: options).start()
        while transfer.run.download?.fetcher?.isStopped != true { await Task.yield() }
        held.open()
        // The front, and the requests that waited.
        await requests(3, at: server)
        gate.open()
        #expect(isWhole(try await transfer.value) && fetches(server) == 2)
    }

    @Test func rangeFetcherStopsAtAnOpenCircuit() async throws {
        let (gate, attempts) = (Gate(), Lock(0))
        let server = try server(gate) { $1 }
        let broken = ClosureInterceptor(scope: .attempt) { request, _, next in
            guard request.fields[.range]?.hasSuffix("-") == false else { return try await next(request) }
            attempts.withLock { $0 += 1 }
            gate.open()
            throw NetworkError(.circuitOpen, phase: .preparing, "The circuit is open.", request: request)
        }
        let file = try await session(RetryPolicy(limit: 5, backoff: .none, budget: nil), [broken])
            .download(Request(server.url("/")), to: .file(folder("a")), options: options)
        #expect(isWhole(file) && attempts.withLock { $0 } == 1)
    }

    @Test func rangeFetcherStopsIfTheDeadlineLeavesNoTime() async throws {
        let gate = Gate()
        let server = try server(gate) { _, _ in
            gate.open()
            return MockResponse.status(503).field("Retry-After", "7")
        }
        let policy = RetryPolicy(limit: 3, backoff: .none, deadline: .seconds(5), budget: nil)
        let file = try await session(policy, clock: RecordingClock())
            .download(Request(server.url("/")), to: .file(folder("a")), options: options)
        #expect(isWhole(file) && fetches(server) == 1)
    }

    @Test func rangeFetcherWaitsForConnectivity() async throws {
        let (gate, attempts, waits) = (Gate(), Lock(0), Lock(0))
        let server = try server(gate) { _, response in
            gate.open()
            return response
        }
        let offline = ClosureInterceptor(scope: .attempt) { request, _, next in
            guard request.fields[.range]?.hasSuffix("-") == false else { return try await next(request) }
            guard
                attempts.withLock({ count in
                    count += 1
                    return count
                }) == 1
            else { return try await next(request) }
            throw NetworkError(.cannotConnect, phase: .connecting, "No route.", request: request)
        }
        var policy = RetryPolicy(limit: 1, backoff: .none, budget: nil)
        policy.waitsForConnectivity = true
        let retry = RetryInterceptor(policy, isOfSession: true, connectivity: { _ in waits.withLock { $0 += 1 } })
        let core = SessionCore(.init { $0.retry = policy }, trust: SystemTrust(), interceptors: [offline], retry: retry)
        let file = try await Session(core: core)
            .download(Request(server.url("/")), to: .file(folder("a")), options: options)
        #expect(isWhole(file) && waits.withLock { $0 } == 1 && attempts.withLock { $0 } > 1)
    }

    @Test func rangeFetcherWaitsForRetryAfter() async throws {
        let (gate, busy, clock) = (Gate(), Lock(true), RecordingClock())
        let server = try server(gate) { _, response in
            guard
                busy.withLock({ isFirst in
                    defer { isFirst = false }; return isFirst
                })
            else { return response }
            return MockResponse.status(503).field("Retry-After", "7")
        }
        let policy = RetryPolicy(limit: 3, backoff: .none, budget: nil)
        let transfer = session(policy, clock: clock)
            .downloadTransfer(Request(server.url("/")), to: .file(folder("a")), options: options).start()
        await requests(3, at: server)
        gate.open()
        #expect(isWhole(try await transfer.value))
        #expect(await clock.notes.all().first == .seconds(7))
    }

    @Test func rangeFetcherStopsIfTheRequestedWaitIsTooLong() async throws {
        let gate = Gate()
        let server = try server(gate) { _, _ in
            gate.open()
            return MockResponse.status(503).field("Retry-After", "3600")
        }
        let file = try await session(RetryPolicy(limit: 3, backoff: .none, budget: nil))
            .download(Request(server.url("/")), to: .file(folder("a")), options: options)
        #expect(isWhole(file) && fetches(server) == 1)
    }

    /// Three range fetchers, one of which the server refuses for an hour: the other two fetch the rest.
    @Test func refusedRangeFetcherDoesNotStopTheOthers() async throws {
        let (gate, count) = (Gate(), Lock(0))
        let server = try server(gate) { _, response in
            let number = count.withLock { count in
                count += 1
                return count
            }
            return number == 1 ? MockResponse.status(503).field("Retry-After", "3600") : response
        }
        var options = options
        options.segments = 4
        let transfer = session(RetryPolicy(limit: 3, backoff: .none, budget: 0.2))
            .downloadTransfer(Request(server.url("/")), to: .file(folder("a")), options: options).start()
        for await progress in transfer.progress where progress.received >= 1_800_000 { break }
        gate.open()
        #expect(isWhole(try await transfer.value) && fetches(server) > 3)
    }

    @Test func retriesOfTheSessionDoNotMultiplyWithThoseOfTheRangeFetcher() async throws {
        let gate = Gate()
        let server = try server(gate) { _, _ in MockResponse.status(503).field("Retry-After", "0") }
        let clock = RecordingClock()
        let policy = RetryPolicy(limit: 2, backoff: RetryPolicy.Backoff(first: .seconds(1)), budget: nil)
        let transfer = session(policy, clock: clock)
            .downloadTransfer(Request(server.url("/")), to: .file(folder("a")), options: options).start()
        await requests(4, at: server)
        gate.open()
        #expect(isWhole(try await transfer.value) && fetches(server) == 3)
        #expect(await clock.notes.all() == [.seconds(1), .seconds(2)])
    }

    /// A server that breaks every body after 1000 bytes: each response is progress, but too little.
    @Test func retriesOfBrokenBodiesTakeFromTheBudget() async throws {
        let body = body
        let server = try MockServer { request in
            RangeResource(body, tag: "\"1\"").response(to: request).fault(.close, at: .body(1000))
        }
        let policy = RetryPolicy(limit: 40, backoff: .none, budget: 0)
        let error = await #expect(throws: NetworkError.self) {
            try await session(policy, clock: RecordingClock())
                .download(Request(server.url("/")), to: .file(folder("a")))
        }
        #expect(error?.kind == .connectionLost && error?.resumeToken != nil)
        // The budget starts with ten retries and regains one in a second.
        #expect((11...20).contains(server.requestCount))
    }

    /// Each wait takes 100 s by the session's clock.
    @Test func deadlineOfADownloadIsMeasuredByTheClockOfTheSession() async throws {
        let body = body
        let server = try MockServer { request in
            RangeResource(body, tag: "\"1\"").response(to: request).fault(.close, at: .body(1000))
        }
        let policy = RetryPolicy(
            limit: 9, backoff: RetryPolicy.Backoff(first: .seconds(1)), deadline: .seconds(60), budget: nil)
        let error = await #expect(throws: NetworkError.self) {
            try await session(policy, clock: SlowClock())
                .download(Request(server.url("/")), to: .file(folder("a")))
        }
        #expect(error?.hint?.contains("`deadline`") == true && server.requestCount == 2)
    }

    @Test func downloadWaitsByTheClockAndTheChanceOfTheSession() async throws {
        let (body, clock, count) = (body, RecordingClock(), Lock(0))
        let server = try MockServer { request in
            let response = RangeResource(body, tag: "\"1\"").response(to: request)
            let number = count.withLock { count in
                count += 1; return count
            }
            return number < 3 ? response.fault(.close, at: .body(1000)) : response
        }
        let policy = RetryPolicy(limit: 5, backoff: RetryPolicy.Backoff(first: .seconds(10)), budget: nil)
        let file = try await session(policy, clock: clock)
            .download(Request(server.url("/")), to: .file(folder("a")))
        #expect(isWhole(file))
        #expect(await clock.notes.all() == [.seconds(10), .seconds(20)])
    }
}
