// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import CurlewEngine
import CurlewTesting
import FoundationEssentials
import Testing

@testable import Curlew

/// Requests that wait because of rate limits of the server or of the client.
@Suite(.timeLimit(.minutes(5)))
struct RateLimitTests {
    private let clock = StubClock()

    /// A server that sends the given responses first, and then 200.
    private func server(_ answers: [MockResponse]) throws -> MockServer {
        let left = Lock(answers)
        return try MockServer { _ in left.withLock { $0.isEmpty ? .text("fine") : $0.removeFirst() } }
    }

    private func busy(_ field: String = "Retry-After", _ value: String = "7", status: Int = 429) -> MockResponse {
        .text("busy", status: status).field(field, value)
    }

    /// Starts transfers one after the other, so that their order in the queue is known.
    private func line(_ session: Session, _ server: MockServer, _ count: Int) async -> [Transfer<Data>] {
        var transfers: [Transfer<Data>] = []
        for number in 1...count {
            transfers.append(session.transfer(Request(server.url("/\(number)"))).start())
            await clock.waitUntil(sleepers: number)
        }
        return transfers
    }

    @Test func requestsAreSentInOrderAfterRetryAfter() async throws {
        let server = try server([busy()])
        let session = Session(interceptors: [RateLimitInterceptor(clock: clock, chance: { 1 })])
        #expect(try await session.data(for: Request(server.url("/0"))).1.status == .tooManyRequests)
        let transfers = await line(session, server, 3)
        clock.advance(by: .milliseconds(6999))
        await clock.waitForSleeper(at: .seconds(7))
        #expect(server.requestCount == 1)
        clock.advance(by: .milliseconds(1))
        await clock.waitForSleeper(at: .milliseconds(7020))
        _ = try await transfers[0].value
        #expect(server.requestCount == 2)
        clock.advance(by: .milliseconds(20))
        await clock.waitForSleeper(at: .milliseconds(7040))
        _ = try await transfers[1].value
        #expect(server.requestCount == 3)
        clock.advance(by: .milliseconds(20))
        _ = try await transfers[2].value
        #expect(server.requests.map(\.path) == ["/0", "/1", "/2", "/3"])
    }

    @Test func laterRetryAfterExtendsTheHold() async throws {
        let server = try server([busy(), busy("Retry-After", "9")])
        let session = Session(interceptors: [RateLimitInterceptor(clock: clock, chance: { 1 })])
        _ = try await session.data(for: Request(server.url("/0")))
        let transfers = await line(session, server, 2)
        clock.advance(by: .seconds(7))
        #expect(try await transfers[0].response().head.status == 429)
        // The second request reaches the front of the queue before or after the first response arrives.
        await clock.waitForSleeper(at: .milliseconds(7020), .seconds(16))
        clock.advance(by: .milliseconds(20))
        await clock.waitForSleeper(at: .seconds(16))
        #expect(server.requestCount == 2)
        clock.advance(by: .seconds(9))
        #expect(try await transfers[1].response().head.status == .ok)
    }

    static let fields: [(name: String, value: String, status: Int, isHeld: Bool)] = [
        ("Retry-After", "7", 429, true), ("Retry-After", "7", 503, true), ("Retry-After", "7", 200, false),
        ("Retry-After", "7", 500, false), ("Retry-After", "0", 429, false), ("Server", "s", 429, false),
        ("RateLimit", #""a";r=0;t=7"#, 200, true), ("RateLimit", #""a";r=1;t=7"#, 200, false),
        ("RateLimit", #""a";r=0;t=7"#, 404, true),
    ]

    @Test(arguments: fields.indices) func responseFieldsHoldRequests(_ index: Int) async throws {
        let (name, value, status, isHeld) = Self.fields[index]
        let server = try server([busy(name, value, status: status)])
        let limit = RateLimitInterceptor(longestWait: .seconds(1), clock: clock)
        let session = Session(interceptors: [limit])
        _ = try await session.data(for: Request(server.url("/")))
        if isHeld {
            let error = try await networkError { try await session.data(for: Request(server.url("/"))) }
            #expect(error.kind == .timedOut && error.retryAfter == .seconds(7))
        } else {
            #expect(try await session.data(for: Request(server.url("/"))).1.status == .ok)
        }
        #expect(server.requestCount == (isHeld ? 1 : 2))
    }

    @Test func olderRateLimitFieldsHoldRequests() async throws {
        for prefix in ["", "X-"] {
            let answer = MockResponse.text("fine").field("\(prefix)RateLimit-Remaining", "0")
                .field("\(prefix)RateLimit-Reset", "61")
            let server = try server([answer])
            let session = Session(interceptors: [RateLimitInterceptor(clock: StubClock())])
            #expect(try await session.data(for: Request(server.url("/"))).1.status == .ok)
            let error = try await networkError { try await session.data(for: Request(server.url("/"))) }
            #expect(error.retryAfter == .seconds(61))
        }
    }

    @Test func requestWithTooLongAWaitFailsAtOnce() async throws {
        let server = try server([busy("Retry-After", "61")])
        let session = Session(interceptors: [RateLimitInterceptor(clock: clock)])
        _ = try await session.data(for: Request(server.url("/")))
        let error = try await networkError { try await session.data(for: Request(.post, server.url("/"))) }
        #expect(error.kind == .timedOut && error.phase == .queued && error.code == "curlew.timed_out.queued")
        #expect(error.retriability == .safe(after: .seconds(61)))
        #expect(error.message.contains("61 s") && error.message.contains("127.0.0.1:\(server.port)"), "\(error)")
        #expect(clock.sleeps == 0)
        clock.advance(by: .seconds(2))
        var hurried = Request(server.url("/"))
        hurried.options = .timeout(.seconds(58))
        let second = try await networkError { try await session.data(for: hurried) }
        #expect(second.kind == .timedOut && second.message.contains("the time left of 58 s (`options.timeouts.total`)"))
        let patient = session.transfer(Request(server.url("/"))).start()
        await clock.waitForSleeper(at: .seconds(61))
        clock.advance(by: .seconds(59))
        #expect(try await patient.response().head.status == .ok)
        #expect(server.requestCount == 2)
    }

    @Test func queuedRequestFailsAtItsOwnTimeout() async throws {
        let gate = Gate()
        let server = try server([busy("Retry-After", "50").fault(.stall(gate), at: .start), busy()])
        let session = Session(interceptors: [RateLimitInterceptor(clock: clock, chance: { 1 })])
        let slow = session.transfer(Request(server.url("/slow"))).start()
        await gate.waitUntilReached()
        _ = try await session.data(for: Request(server.url("/0")))
        let first = session.transfer(Request(server.url("/1"))).start()
        await clock.waitForSleeper(at: .seconds(7))
        var hurried = Request(server.url("/2"))
        hurried.options = .timeout(.seconds(10))
        let second = session.transfer(hurried).start()
        await clock.waitUntil(sleepers: 2)
        gate.open()
        #expect(try await slow.response().head.status == .tooManyRequests)
        clock.advance(by: .seconds(7))
        await clock.waitForSleeper(at: .seconds(50))
        clock.advance(by: .seconds(3))
        let error = try await networkError { try await second.value }
        #expect(error.kind == .timedOut && error.phase == .queued)
        clock.advance(by: .seconds(40))
        #expect(try await first.response().head.status == .ok && server.requestCount == 3)
    }

    @Test func originsHaveSeparateRateLimits() async throws {
        let (busy, free) = (try server([busy()]), try server([]))
        let session = Session(interceptors: [RateLimitInterceptor(longestWait: .zero, clock: clock)])
        _ = try await session.data(for: Request(busy.url("/")))
        #expect(try await networkError { try await session.data(for: Request(busy.url("/"))) }.kind == .timedOut)
        #expect(try await session.data(for: Request(free.url("/"))).1.status == .ok)
    }

    @Test func clientSideRateIsKept() async throws {
        let server = try server([])
        let limit = RateLimitInterceptor(requests: 10, per: .seconds(1), burst: 3, clock: clock)
        let session = Session(interceptors: [limit])
        for _ in 0..<3 { _ = try await session.data(for: Request(server.url("/"))) }
        let transfers = await line(session, server, 3)
        for (index, transfer) in transfers.enumerated() {
            await clock.waitForSleeper(at: .milliseconds(100 * (index + 1)))
            #expect(server.requestCount == 3 + index)
            clock.advance(by: .milliseconds(100))
            _ = try await transfer.value
        }
        #expect(server.requests.suffix(3).map(\.path) == ["/1", "/2", "/3"])
    }

    @Test func invalidRateLimitsAreRefused() async throws {
        let server = try server([])
        for limit: RateLimitInterceptor in [
            .rateLimit(requests: 0, per: .seconds(1)), .rateLimit(requests: 1, per: .zero),
            .rateLimit(requests: 1, per: .seconds(1), burst: 0), .rateLimit(requests: 1, per: .seconds(1 << 62)),
        ] {
            let session = Session(interceptors: [limit])
            let error = try await networkError { try await session.data(for: Request(server.url("/"))) }
            #expect(error.kind == .invalidRequest && error.message.contains("rate limit"))
        }
        #expect(server.requestCount == 0)
    }

    @Test func cancelledRequestLeavesTheQueue() async throws {
        let server = try server([busy()])
        let limit = RateLimitInterceptor(clock: clock, chance: { 0 })
        let session = Session(interceptors: [limit])
        _ = try await session.data(for: Request(server.url("/0")))
        let transfers = await line(session, server, 4)
        for index in [2, 0] {
            transfers[index].cancel()
            #expect(try await networkError { try await transfers[index].value }.kind == .cancelled)
        }
        #expect(limit.waiting(for: Request(server.url("/"))) == 2)
        await clock.waitForSleeper(at: .seconds(7))
        clock.advance(by: .seconds(7))
        for index in [1, 3] { #expect(try await transfers[index].response().head.status == .ok) }
        // Both may be sent at once, over separate connections.
        #expect(server.requests.map(\.path).sorted() == ["/0", "/2", "/4"])
        #expect(limit.waiting(for: Request(server.url("/"))) == 0)
    }

    @Test func sessionShutdownEndsRateLimitWaits() async throws {
        let server = try server([busy()])
        let session = Session(interceptors: [RateLimitInterceptor(clock: clock)])
        _ = try await session.data(for: Request(server.url("/0")))
        let transfers = await line(session, server, 3)
        try await session.shutdown(.immediate)
        for transfer in transfers {
            #expect(try await networkError { try await transfer.value }.kind == .sessionClosed)
        }
        #expect(server.requestCount == 1)
    }

    @Test func onlyTheFirstQueuedRequestSleepsForTheLimit() async throws {
        let server = try server([busy()])
        let limit = RateLimitInterceptor(clock: clock, chance: { 0 })
        let session = Session(interceptors: [limit])
        _ = try await session.data(for: Request(server.url("/")))
        let request = Request(server.url("/"))
        let fine = try await withThrowingTaskGroup(of: Bool.self) { group in
            for _ in 0..<1000 { group.addTask { try await session.data(for: request).1.status == .ok } }
            await clock.waitUntil(sleepers: 1000)
            await clock.waitForSleeper(at: .seconds(7))
            // One sleep for the timeout of each request, and one for the first request in the queue.
            let before = clock.sleeps
            #expect(before <= 1001 && limit.waiting(for: request) == 1000)
            for _ in 0..<60 { clock.advance(by: .milliseconds(100)) }
            #expect(clock.sleeps == before, "no request wakes up to check")
            clock.advance(by: .seconds(1))
            return try await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
        }
        #expect(fine == 1000 && server.requestCount == 1001)
        #expect(clock.sleeps <= 2001)
    }

    @Test func retryWaitsOnlyOnceForRetryAfter() async throws {
        let server = try server([busy()])
        let notes = RecordingClock()
        var request = Request(server.url("/"))
        request.interceptors = [
            RetryInterceptor(RetryPolicy(limit: 1, backoff: .none), clock: notes),
            RateLimitInterceptor(longestWait: .seconds(8), clock: clock),
        ]
        let transfer = Session().transfer(request).start()
        // The retry's own wait returns at once, so only the rate limit holds the request.
        await clock.waitForSleeper(at: .seconds(7))
        clock.advance(by: .seconds(7))
        #expect(try await transfer.response().head.status == .ok && server.requestCount == 2)
        #expect(await notes.notes.all() == [.seconds(7)])
    }
}
